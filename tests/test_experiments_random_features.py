"""The experiment on random features."""

import numpy as np
from experiments.random_features import CASES, differs, log_truth, main, study
from scipy.stats import multivariate_normal


def test_the_table(tmp_path, capsys):
    main(["--quick", "--exact", "--out", str(tmp_path / "table.txt")])
    lines = (tmp_path / "table.txt").read_text().splitlines()
    assert lines == capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(CASES)


def test_a_line_has_what_it_says():
    columns, named, passes, _, _, below, approximation, _, _, against = study(600, 200, 2, "auto", True)
    assert (columns, named.split()[1]) == ("2", "(auto)")
    assert 3 <= int(passes) <= 12
    assert float(below.rstrip("%")) < 5.0
    assert 0.5 < float(against) / float(approximation) < 2.0  # fresh rows against the 600 that were fitted


def test_differences():
    rows = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(log_truth(rows), multivariate_normal(np.zeros(3)).logpdf(rows))
    assert differs(np.array([1.0, -np.inf]), np.array([3.0, 0.0])) == 2.0
    assert np.isnan(differs(np.array([-np.inf]), np.zeros(1)))
