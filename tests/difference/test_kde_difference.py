from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.base import clone

from isopleth import KDE, InputError, load, save
from isopleth.difference import KDEDifference


def test_distance_is_the_integral_of_the_square():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 1, (40, 1)), rng.normal(0, 0.5, (30, 1))
    baseline = KDEDifference(length_scale="scott").fit(x, y, sample_weight_x=np.arange(1, 41))
    square = quad(lambda t: baseline.difference([[t]])[0] ** 2, -6, 8, limit=200)[0]
    assert baseline.squared_l2_ == pytest.approx(square, rel=1e-7)


def test_difference_is_that_of_the_densities():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 50, 2))
    baseline = clone(KDEDifference(length_scale=[0.5, 0.7])).fit(x, y)
    p, q = (KDE(length_scale=[0.5, 0.7], frame="scale").fit(rows) for rows in (x, y))
    np.testing.assert_allclose(baseline.difference(x), np.exp(p.score_samples(x)) - np.exp(q.score_samples(x)))
    with pytest.raises(InputError, match="Y has constant columns"):
        KDEDifference().fit(x, np.ones((4, 2)))
    with pytest.raises(InputError, match="Y contains NaN"):
        KDEDifference().fit(x, np.full((4, 2), np.nan))
    with pytest.raises(InputError, match="Y has constant columns in its rows of positive weight"):
        KDEDifference().fit(x, y, sample_weight_y=np.arange(50) == 3)


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_numbers_whose_squares_are_not_numbers(tmp_path):
    x, y = np.random.default_rng(2).normal(size=(2, 30, 1))
    baseline = KDEDifference(length_scale="scott")
    plain = baseline.fit(x, y).squared_l2_
    assert baseline.fit(1e200 * x, 1e200 * y).squared_l2_ * 1e200 == pytest.approx(plain)
    two = KDEDifference(length_scale="scott").fit(np.tile(1e-200 * x, 2), np.tile(1e-200 * y, 2))
    assert two.squared_l2_ == np.inf  # 1e398 or so
    save(baseline, tmp_path / "baseline.isopleth")
    assert load(tmp_path / "baseline.isopleth").squared_l2_ == baseline.squared_l2_
