"""The experiment on negative values, on tables small enough for a test."""

import numpy as np
import pytest
from experiments import negative_values
from experiments.negative_values import algorithm4_step, iterate, natural_step, standard_step


@pytest.fixture
def tables(tmp_path):
    """Folder with one table of the paper in a folder below it."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    (tmp_path / "adbench").mkdir()
    np.savez(tmp_path / "adbench" / "14_glass.npz", X=np.c_[X, np.ones(60)], y=np.zeros(60))
    return tmp_path


def test_the_iterations_are_the_published_ones():
    rng = np.random.default_rng(0)
    k, alpha = np.eye(3) + 0.2, rng.uniform(size=(3, 2))
    f = k @ alpha
    np.testing.assert_allclose(natural_step(k, alpha, 0.1), alpha - 0.2 * (alpha - 1 / f / 3))
    np.testing.assert_allclose(standard_step(k, alpha, 0.1), alpha - 0.2 * (f - k @ (1 / f) / 3))
    np.testing.assert_allclose(algorithm4_step(k, alpha, 0.1), alpha - 0.2 / 3 * (f - k @ (1 / f)))
    steps = (natural_step, standard_step, algorithm4_step)
    natural, standard, algorithm4 = (iterate(step, k, alpha, 0.1, 500) for step in steps)
    np.testing.assert_allclose(np.linalg.solve(k, natural) * natural, 1 / 3, rtol=1e-8)  # the scaling equations
    np.testing.assert_allclose(standard, natural, rtol=1e-8)
    np.testing.assert_allclose(algorithm4, natural * np.sqrt(3), rtol=1e-8)


def test_the_command_prints_names_what_is_missing_and_draws(tables, capsys):
    out = tables / "figure.png"
    negative_values.main(
        ["--data", str(tables), "--out", str(out), "--steps", "5", "--initialisations", "10", "--rows", "40"]
    )
    printed = capsys.readouterr()
    assert "glass" in printed.out
    assert "    40        3" in printed.out  # the constant column is left out
    assert printed.err.count("comes from") == len(negative_values.NAMES) - 1
    assert out.stat().st_size > 0
