"""The study of the Stein test prints its tables."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("experiments", reason="the studies are not beside an installed package")

from experiments import stein_test


def test_samples_have_the_stated_distributions():
    rng = np.random.default_rng(0)
    x = stein_test.chain(rng, 20_000, 1)[:, 0]
    assert x.std() == pytest.approx(1.0, abs=0.03)
    assert np.corrcoef(x[1:], x[:-1])[0, 1] == pytest.approx(0.5, abs=0.03)
    assert stein_test.laplace(rng, 50_000, 1).std() == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(stein_test.correlated(rng, 20_000, 2).T)[0, 1] == pytest.approx(0.5, abs=0.03)
    student = stein_test.student(rng, 200_000, 1)
    assert float((stein_test.student_score(student) * student).mean()) == pytest.approx(
        -1.0, abs=0.02
    )  # Stein's identity


def test_both_tables_are_printed(monkeypatch, tmp_path, capsys):
    for table in ("LEVEL", "POWER"):
        first = next(iter(getattr(stein_test, table).items()))
        monkeypatch.setattr(stein_test, table, dict([first]))
    stein_test.main(["--runs", "3", "--out", str(tmp_path / "table.txt")])
    text = (tmp_path / "table.txt").read_text()
    assert text == capsys.readouterr().out
    assert text.count("\n") == 4
