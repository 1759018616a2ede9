"""Normal scores, quantiles and tail weights of weighted observations, held against slow forms."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from isopleth.core.laws import (
    MOST_EXTREME,
    MOST_STEPS,
    EmpiricalLaw,
    RankScores,
    normal_scores,
    normal_scores_of_counts,
    weighted_quantile,
)

RNG = np.random.default_rng(0)


def test_normal_scores_are_normal_quantiles_of_mean_ranks():
    lines = RNG.integers(0, 5, size=(3, 40)).astype(float)
    np.testing.assert_allclose(normal_scores(lines)[1], norm.ppf((rankdata(lines[1]) - 0.5) / 40))
    together = norm.ppf((rankdata(lines) - 0.375) / (120 + 0.25)).reshape(3, 40)
    np.testing.assert_allclose(normal_scores(lines, None, 0.375), together)


@pytest.mark.parametrize("dtype", [int, float])
def test_scores_of_counts_have_the_bits_of_scores_of_all_values(dtype):
    line = RNG.integers(0, 9, size=57)
    _, place, counts = np.unique(line, return_inverse=True, return_counts=True)
    scores = normal_scores_of_counts(counts.astype(dtype))[place]
    np.testing.assert_array_equal(scores, normal_scores(line[None].astype(float))[0])


def test_scores_of_a_law_are_those_of_repeated_rows():
    values, copies = np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 3.0])
    scores = EmpiricalLaw.of(values, copies).scores
    lines = np.repeat(values, copies.astype(int))[None]
    assert scores == pytest.approx([normal_scores(lines)[0, np.argmax(lines[0] == v)] for v in (1.0, 2.0, 3.0)])


def test_a_weighted_quantile_is_that_of_repeated_values():
    values, copies = RNG.normal(size=9), RNG.integers(1, 5, size=9)
    shares = np.array([0.1, 0.33, 0.5, 0.9])
    expected = np.quantile(np.repeat(values, copies), shares, method="inverted_cdf")
    np.testing.assert_array_equal(weighted_quantile(values, copies.astype(float), shares), expected)


def test_a_law_of_many_values_keeps_both_ends_and_hardly_moves_between_them():
    values = RNG.permutation(MOST_STEPS + 5) * 1.0  # so few more that some of the steps that are kept fall together
    law = EmpiricalLaw.of(values, np.ones(len(values)))
    assert len(law.values) <= MOST_STEPS
    assert (np.diff(law.values) > 0.0).all()
    ends = np.r_[np.arange(MOST_EXTREME), len(values) - 1 - np.arange(MOST_EXTREME)] * 1.0
    at_most, at_least = law.tails(ends)
    np.testing.assert_array_equal(at_most, ends + 1.0)
    np.testing.assert_array_equal(at_least, len(values) - ends)
    np.testing.assert_allclose(law.tails(values)[0], values + 1.0, atol=2.0)


def test_laws_of_columns_without_equal_values_share_the_weights_up_to_their_steps():
    columns = RNG.normal(size=(2, MOST_STEPS + 5))
    one, other = (EmpiricalLaw.of_ranked(column, np.ones(len(column)))[0] for column in columns)
    assert one.up_to is other.up_to
    assert not one.up_to.flags.writeable
    weighted = EmpiricalLaw.of(columns[0], np.full(len(columns[0]), 2.0))  # has weights of its own
    np.testing.assert_array_equal(weighted.up_to, 2.0 * one.up_to)
    np.testing.assert_array_equal(weighted.values, one.values)


def test_new_values_have_the_score_of_the_nearest_place_and_known_ones_their_own():
    column = np.array([1.0, 1.0, 2.0, 4.0])
    ranks = RankScores.of(column, np.full(4, 0.25))
    np.testing.assert_allclose(ranks(np.array([1.0, 2.0, 4.0])), norm.ppf([0.25, 0.625, 0.875]))
    np.testing.assert_allclose(ranks(np.array([0.0, 1.5, 3.0, 9.0])), norm.ppf([0.25, 0.5, 0.75, 0.875]))
