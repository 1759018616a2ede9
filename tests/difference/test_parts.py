from __future__ import annotations

import numpy as np
import pytest

from isopleth import LSDD, InputError
from isopleth.difference import DifferenceSearchPath
from isopleth.difference.regions import upper_thresholds
from isopleth.difference.samples import TwoSamples, speaking_of, split_at_random
from isopleth.difference.spectrum import PenalizedSpectrum
from isopleth.difference.volume import over_volume, quotient, smallest


def test_random_folds_share_out_every_draw():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (50, 1)), rng.integers(0, 6, (33, 1))
    samples = TwoSamples.of(LSDD(), x, y, None, None)
    weights = split_at_random(samples, 4, seed=1)
    np.testing.assert_array_equal(weights.sum(axis=2), samples.weights)
    np.testing.assert_array_equal(weights.sum(axis=0), [[13, 13, 12, 12], [9, 8, 8, 8]])
    assert (weights % 1 == 0).all()


def test_copies_are_split_as_independent_draws_are():
    """Neither kept together nor spread evenly: a fold's share of 30 copies among 60 draws is hypergeometric."""
    samples = TwoSamples.of(LSDD(), np.repeat([[0.0], [1.0]], 30, axis=0), [[0.0], [1.0]], None, None)
    shares = np.array([split_at_random(samples, 3, seed)[0, 0, 0] for seed in range(400)])
    variance = 20 * 0.25 * 40 / 59
    assert abs(shares.mean() - 10) < 4 * np.sqrt(variance / 400)
    assert shares.var() == pytest.approx(variance, rel=0.35)


def test_small_weights_are_shares():
    samples = TwoSamples.of(LSDD(), [[0.0], [1.0], [2.0]], [[1.0], [2.0]], [0.5, 0.25, 0.25], [3.0, 1.0])
    assert samples.counts.tolist() == [3.0, 4.0]
    assert samples.units.sum(axis=0).tolist() == [4, 4]


def test_quotients_by_volumes_that_overflow():
    np.testing.assert_allclose(over_volume(np.array([-2.0, 0.0, 3.0]), 1.0), np.array([-2.0, 0.0, 3.0]) / np.e)
    assert over_volume(1e-200, -900.0) == pytest.approx(np.exp(900.0 - 200 * np.log(10)))
    assert over_volume(-1.0, -900.0) == -np.inf
    assert smallest(np.array([[1.0, -1e-3], [-1.0, 2.0]]), np.array([-2000.0, 0.0])) == (0, 1)
    assert smallest(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0.0, 2000.0])) == (1, 0)


@pytest.mark.parametrize(
    ("relative", "log_volume", "said"),
    [
        (-0.25, 0.0, "-0.25"),
        (0.0, 5.0, "0"),
        (-3.0, 800.0 * np.log(10.0), "-3.0000e-800"),
        (20.0, -1000.0, "3.9401e+435"),
    ],
)
def test_quotients_in_digits(relative, log_volume, said):
    assert quotient(relative, log_volume) == said


def test_refusals_bear_the_name_of_the_sample_and_leave_columns_theirs():
    def refuse(sentence):
        def check():
            raise InputError(sentence)

        return check

    with pytest.raises(InputError, match=r"^Y contains NaN in 'X'$"):
        speaking_of("Y", "X", refuse("X contains NaN in 'X'"))
    with pytest.raises(InputError, match=r"^Y: no rows$"):
        speaking_of("Y", "X", refuse("no rows"))


def test_dual_weights_of_any_ridge():
    spectrum = PenalizedSpectrum.of(np.diag([1.0, 3.0]))
    np.testing.assert_allclose(spectrum.dual_weights(0.5), [2.0 / 1.5**2, 4.0 / 3.5**2])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(spectrum.dual_weights(1e300), 2e-300)


def test_thresholds_by_counting():
    values = np.array([5.0, 4.0, 4.0, 3.0, 2.0, -1.0])
    contrast = np.array([0.3, 0.2, -0.1, 0.2, 0.2, -0.8])
    np.testing.assert_array_equal(
        upper_thresholds(values, contrast, np.array([0.3, 0.5, 0.7, 0.99])), [5.0, 4.0, 3.0, 2.0]
    )
    assert upper_thresholds(values, -contrast, np.array(0.5)) == np.inf


def test_steady_length_scale_is_the_largest_that_a_fold_chose():
    scales = np.array([[0.5, 5.0], [1.0, 10.0], [2.0, 20.0]])
    volumes = np.log(scales).sum(axis=1)
    path = DifferenceSearchPath(
        scales, np.ones(1), volumes, np.zeros((3, 3, 1)), (2, 0), np.array([[0, 0], [1, 0], [0, 0]])
    )
    assert path.steady_length_scale.tolist() == [1.0, 10.0]
