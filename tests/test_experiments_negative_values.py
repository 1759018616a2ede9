"""The experiment on negative values, on tables small enough for a test."""

import numpy as np
import pytest
from experiments import negative_values
from experiments.negative_values import (
    algorithm4_step,
    iterate,
    natural_step,
    sampled_kernel,
    standard_step,
    worst_share,
)

from isopleth.kernels import SDO


@pytest.fixture
def tables(tmp_path):
    """Folder with one table of the paper in a folder below it."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    (tmp_path / "adbench").mkdir()
    np.savez(tmp_path / "adbench" / "14_glass.npz", X=np.c_[X, np.ones(60)], y=np.zeros(60))
    return tmp_path


def test_the_sampled_kernel_estimates_half_of_the_kernel():
    z = np.random.default_rng(0).normal(size=(20, 3))
    k = sampled_kernel(z, 0.7, 200_000, np.random.default_rng(1))
    apart = ((z[:, None] - z[None]) ** 2).sum(axis=2) / 0.7**2
    np.testing.assert_allclose(k, 0.5 * SDO(3, order=2)(apart), atol=0.01)


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


def test_a_kernel_without_negative_values_keeps_the_natural_gradient_positive_and_not_the_standard_one():
    x = np.random.default_rng(0).normal(size=(80, 2))
    k = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=2))
    alpha = np.abs(np.random.default_rng(1).normal(size=(80, 10)))
    assert worst_share(iterate(natural_step, k, alpha, 0.25, 100)) == 0.0
    assert worst_share(iterate(standard_step, k, alpha, 0.02, 100)) > 0.0
    assert worst_share(iterate(algorithm4_step, k, alpha, 0.02, 100)) == 0.0  # its steps are short


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
