"""The experiment on the theory of scores: its densities have the stated scores, and its report prints them."""

import numpy as np
import pytest
from experiments import score_theory
from experiments.score_theory import Source

from isopleth.kernels import Gaussian


@pytest.mark.slow
@pytest.mark.parametrize("r", [1.0, 2.0])
def test_the_source_condition_holds(r):
    source = Source(r, size=301)
    assert source.gap < 1e-10
    step = source.x[1] - source.x[0]
    inner = np.abs(source.x) < 3
    log_density = np.log(source.mass)
    np.testing.assert_allclose(np.gradient(log_density, step)[inner], (source.rest - source.x)[inner], atol=5e-3)
    f = 1.5 * (Gaussian(dim=1)((source.x - 1.0) ** 2) - Gaussian(dim=1)((source.x + 0.5) ** 2))
    for _ in range(int(r)):
        f = Gaussian(dim=1)(np.subtract.outer(source.x, source.x) ** 2) @ (source.mass * f)
    np.testing.assert_allclose(source.rest, f, atol=1e-8)
    z = source.sample(20_000, np.random.default_rng(0))
    assert z.mean() == pytest.approx(source.mass @ source.x, abs=0.03)


@pytest.mark.slow
def test_errors_fall_with_rows():
    source = Source(1.0, size=301)
    few, many = (np.array(score_theory.source_errors(source, rows, 0.05, 0)) for rows in (50, 800))
    assert (many < few).all()
