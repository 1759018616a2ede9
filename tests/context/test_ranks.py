"""Ranks of cells given their contexts: against sums over rows, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from isopleth.context.ranks import ContextRanks, RowContexts


def days(count, seed=0, per_day=48):
    """Rows of two columns with a day, which is twice as large on working days."""
    rng, place = np.random.default_rng(seed), np.arange(count * per_day)
    hour, day = (place % per_day) * 24.0 / per_day, place // per_day
    contexts = RowContexts(hour, day % 7, day)
    level = np.sin(hour / 12.0 * np.pi) * np.where(day % 7 < 5, 4.0, -4.0)
    return level[:, None] * [1.0, 0.5] + rng.normal(size=(len(place), 2)), contexts


@pytest.fixture(scope="module")
def reference():
    return days(14)


@pytest.fixture(scope="module")
def ranks(reference):
    return ContextRanks.of(*reference, 7, clock=True)


def test_working_days_go_together_and_scores_are_normal(ranks, reference):
    assert len(set(ranks.groups[:5])) == 1
    assert len(set(ranks.groups[5:])) == 1
    assert ranks.groups[0] != ranks.groups[6]
    found = ranks.scores(*reference, own_day=True)
    np.testing.assert_allclose([found.mean(), found.std()], [0.0, 1.0], atol=0.08)
    later = ranks.scores(*days(14, 1))
    np.testing.assert_allclose([later.mean(), later.std()], [0.0, 1.0], atol=0.08)


def test_a_score_is_that_of_the_weighted_rank_without_the_own_day(ranks, reference):
    rows, contexts = reference
    found = ranks.scores(rows, contexts, own_day=True)
    for i in (5, 100, 400):
        centre = (np.floor(contexts.hour[i] * 4.0) + 0.5) / 4.0
        away = np.abs(contexts.hour - centre)
        weights = np.maximum(1.0 - np.minimum(away, 24.0 - away) / ranks.width, 0.0)
        weights *= ranks.groups[contexts.kind] == ranks.groups[contexts.kind[i]]
        weights[contexts.day == contexts.day[i]] = 0.0
        share = weights[rows[:, 0] < rows[i, 0]].sum() / weights.sum()
        assert found[i, 0] == pytest.approx(ndtri(share), abs=1e-9)


def test_scores_go_on_beyond_all_rows_and_say_nothing_of_what_is_not_known(ranks, reference):
    rows, contexts = (reference[0][:3].copy(), reference[1].take(np.arange(3)))
    rows[0, 0], rows[1, 0] = 50.0, np.nan
    unknown = RowContexts(contexts.hour, np.array([0, 0, -1]), contexts.day)
    found = ranks.scores(rows, unknown)
    assert 8.0 < found[0, 0] <= 35.0
    assert (found[1, 0], *found[2]) == (0.0, 0.0, 0.0)


def test_rows_are_judged_one_by_one_and_equal_values_have_uniform_ranks(ranks):
    rows, contexts = days(3, 2)
    found = ranks.scores(rows, contexts)
    np.testing.assert_array_equal(ranks.scores(rows[50:60], contexts.take(np.arange(50, 60))), found[50:60])
    flat = np.zeros((400, 1)), RowContexts(np.zeros(400), np.zeros(400, dtype=int), np.arange(400) % 14)
    equal = ContextRanks.of(*flat, 1, clock=False)
    distinct = np.column_stack([np.zeros(200), np.arange(200.0)])  # keys of rows break the ties
    both = ContextRanks.of(np.column_stack([flat[0], np.arange(400.0)]), flat[1], 1, clock=False)
    found = both.scores(distinct, flat[1].take(np.arange(200)))[:, 0]
    assert equal.width == np.inf
    assert found.std() == pytest.approx(1.0, abs=0.2)
