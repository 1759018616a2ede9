"""Two samples: their weights, their folds, and what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import LSDD, InputError
from isopleth.difference import KDEDifference
from isopleth.difference.samples import TwoSamples, enter_both, split_at_random


def test_random_folds_share_out_every_draw():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (50, 1)), rng.integers(0, 6, (33, 1))
    samples = TwoSamples.of(*enter_both(LSDD(), x, y))
    weights = split_at_random(samples, 4, seed=1)
    np.testing.assert_array_equal(weights.sum(axis=2), samples.weights)
    np.testing.assert_array_equal(weights.sum(axis=0), [[13, 13, 12, 12], [9, 8, 8, 8]])
    assert (weights % 1 == 0).all()


def test_copies_are_split_as_independent_draws_are():
    """Neither kept together nor spread evenly: a fold's share of 30 copies among 60 draws is hypergeometric."""
    samples = TwoSamples.of(*enter_both(LSDD(), np.repeat([[0.0], [1.0]], 30, axis=0), [[0.0], [1.0]]))
    shares = np.array([split_at_random(samples, 3, seed)[0, 0, 0] for seed in range(400)])
    variance = 20 * 0.25 * 40 / 59
    assert abs(shares.mean() - 10) < 4 * np.sqrt(variance / 400)
    assert shares.var() == pytest.approx(variance, rel=0.35)


def test_small_weights_are_shares():
    samples = TwoSamples.of(*enter_both(LSDD(), [[0.0], [1.0], [2.0]], [[1.0], [2.0]], [0.5, 0.25, 0.25], [3.0, 1.0]))
    assert samples.counts.tolist() == [3.0, 4.0]
    assert samples.units.sum(axis=0).tolist() == [4, 4]


def test_refusals_name_the_sample_and_leave_columns_as_they_are():
    pd = pytest.importorskip("pandas")
    sound, with_nan = pd.DataFrame({"X": [1.0, 2.0]}), pd.DataFrame({"X": [1.0, np.nan]})
    with pytest.raises(InputError, match=r"^X contains NaN in 'X' "):
        enter_both(KDEDifference(), with_nan, sound)
    with pytest.raises(InputError, match=r"^Y contains NaN in 'X' "):
        enter_both(KDEDifference(), sound, with_nan)
    with pytest.raises(InputError, match=r"^Y lacks 'X'"):
        enter_both(KDEDifference(), sound, sound.rename(columns={"X": "other"}))
    with pytest.raises(InputError, match=r"^sample_weight_y is negative in 1 rows"):
        enter_both(KDEDifference(), sound, sound, None, [1.0, -1.0])
