"""The benchmark of entropy gradients: its densities, its error, and that it runs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not beside an installed package")
torch = pytest.importorskip("torch")

from benchmarks import entropy  # noqa: E402


@pytest.mark.parametrize("density", [entropy.normal, entropy.separated, entropy.heavy, entropy.curved])
def test_scores_are_those_of_the_density(density):
    """Stein's identity for linear functions: the mean of s_j x_k is minus 1 if j = k, else 0."""
    x, score = density(np.random.default_rng(0), 200_000, 3)
    np.testing.assert_allclose(score.T @ x / len(x), -np.eye(3), atol=0.05)


def test_the_error_is_that_of_the_gradient():
    sample = entropy.normal(np.random.default_rng(0), 50, 2)
    assert entropy.error(lambda x: 0.5 * (x**2).sum() / len(x), sample) == pytest.approx(0.0, abs=1e-20)
    assert entropy.error(lambda x: 0.0 * x.sum(), sample) == pytest.approx(1.0)


@pytest.mark.slow
def test_it_runs(tmp_path, capsys):
    entropy.main(["--quick", "--out", str(tmp_path / "table.txt")])
    printed, text = capsys.readouterr().out, (tmp_path / "table.txt").read_text()
    for name in entropy.estimators():
        assert name in printed
        assert name in text
    assert "no figures to quote" in text
