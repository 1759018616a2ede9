"""Dependence of rows on each other."""

import numpy as np
import pytest

from isopleth.core.dependence import Dependence


def test_correlations_are_those_of_the_lags():
    rng = np.random.default_rng(0)
    x = np.zeros(4000)
    for i in range(1, len(x)):
        x[i] = 0.8 * x[i - 1] + rng.normal()
    found = Dependence.of((x - x.mean())[:, None], np.arange(len(x)))
    centred = x - x.mean()
    means = [np.mean(centred[lag:] * centred[: len(x) - lag]) for lag in range(4)]
    np.testing.assert_allclose(found.correlations[:3], np.divide(means[1:], means[0]), rtol=1e-9)
    assert found.rows == pytest.approx(9.0, rel=0.3)  # (1 + .8) / (1 - .8)


def test_rows_beside_gaps_keep_their_lags():
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(size=1500), 2)  # equal in pairs: lag 1 has .5, lag 2 nothing
    kept = np.flatnonzero(rng.random(len(x)) < 0.8)
    values = (x - x[kept].mean())[kept]
    found = Dependence.of(values[:, None], kept)
    assert found.correlations[0] == pytest.approx(0.5, abs=0.06)
