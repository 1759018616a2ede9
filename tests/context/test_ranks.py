"""Ranks of cells given their contexts: against sums over rows, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from isopleth.context.ranks import ContextRanks, RowContexts, _law


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
    np.testing.assert_allclose([found.mean(), found.std()], [0.0, 1.0], atol=0.1)  # of fewer days
    later = ranks.scores(*days(14, 1))
    np.testing.assert_allclose([later.mean(), later.std()], [0.0, 1.0], atol=0.1)


def weights_of_day(ranks, contexts, i):
    return ranks.groups[contexts.kind] == ranks.groups[contexts.kind[i]]


def test_a_score_is_that_of_the_weighted_rank_without_the_own_day(ranks, reference):
    rows, contexts = reference
    found = ranks.scores(rows, contexts, own_day=True)
    for i in (5, 100, 400):
        centre = (np.floor(contexts.hour[i] * 4.0) + 0.5) / 4.0
        away = np.abs(contexts.hour - centre)
        weights = np.maximum(1.0 - np.minimum(away, 24.0 - away) / ranks.width, 0.0)
        weights *= weights_of_day(ranks, contexts, i)
        weights[contexts.day == contexts.day[i]] = 0.0
        lag = (contexts.hour - centre + 12.0) % 24.0 - 12.0
        near = np.maximum(1.0 - np.abs(lag) / ranks.width, 0.0) * (weights_of_day(ranks, contexts, i))
        used = near > 0.0
        cells, w, x = rows[used, 0], near[used], lag[used]
        low, middle, high = np.sort(cells)[[len(cells) // 4, len(cells) // 2, 3 * len(cells) // 4]]
        inner = np.clip(cells, middle - 1.5 * (high - low), middle + 1.5 * (high - low))
        x = x - np.average(x, weights=w)
        slope = (w * x) @ inner / ((w * x) @ x + 0.03 * w.sum() * ranks.width**2 / 6.0)
        level = rows[:, 0] - slope * lag
        share = weights[level < level[i]].sum() / weights.sum()
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


def test_a_line_in_the_clock_leaves_no_trace_of_the_time_of_day():
    """Half an hour of a steep rise would widen the law of a cell; brought to one time of day it is that of the noise."""
    rng, place = np.random.default_rng(0), np.arange(20 * 96)
    hour, day = (place % 96) / 4.0, place // 96
    saw = 10.0 * np.abs(hour - 12.0)[:, None]  # ten units an hour, and noise of one
    contexts = RowContexts(hour, np.zeros(len(place), dtype=np.intp), day)
    noise = rng.normal(size=(len(place), 1))
    ranks = ContextRanks.of(saw + noise, contexts, 1, clock=True)
    found = ranks.scores(saw + noise, contexts, own_day=True)[:, 0]
    inner = np.abs(np.abs(hour - 12.0) - 6.0) < 5.0  # away from both corners
    assert np.corrcoef(found[inner], noise[inner, 0])[0, 1] > 0.97
    far = ranks.scores(saw + 8.0, contexts)[inner, 0]
    assert far.min() > 6.0


def test_an_incident_in_the_reference_does_not_tilt_the_line():
    rng, place = np.random.default_rng(0), np.arange(14 * 96)
    hour, day = (place % 96) / 4.0, place // 96
    rows = rng.normal(size=(len(place), 1))
    contexts = RowContexts(hour, np.zeros(len(place), dtype=np.intp), day)
    clean = ContextRanks.of(rows, contexts, 1, clock=True)
    spoilt = rows.copy()
    spoilt[5 * 96 + 47 : 5 * 96 + 50] += 30.0
    asked = RowContexts(hour[:96], contexts.kind[:96], contexts.day[:96] + 100)
    one, two = (
        ContextRanks(each, hour, contexts.kind, day, clean.groups, 1.0, clean.unit, clean.least).scores(
            rows[:96], asked
        )
        for each in (rows, spoilt)
    )
    assert np.abs(one - two)[np.abs(one) < 1.5].max() < 0.25


@pytest.mark.parametrize(
    ("cells", "unit"),
    [
        (ndtri((np.arange(4001) + 0.5) / 4001), 1.0),  # a normal law has the unit of its deviation
        (np.repeat([-1.0, 0.0, 1.0], [150, 100, 150]), 2.0 / 1.35),  # quartiles are wider than tenths
        (np.r_[np.zeros(60), np.linspace(0.0, 5.0, 41)], 3.75 / 1.28),  # one tail
        (-np.r_[np.zeros(60), np.linspace(0.0, 5.0, 41)], 3.75 / 1.28),
    ],
)
def test_the_unit_beyond_all_cells_is_the_largest_of_three(cells, unit):
    law = _law(cells, np.ones(len(cells)), np.zeros((len(cells), 2)), np.zeros(len(cells)), np.full(2, np.inf))
    assert law.unit() == pytest.approx(unit, rel=0.02)
    assert law.mean() == pytest.approx(cells.mean())
    assert law.middle() == pytest.approx(np.median(cells))
    twice = _law(
        2.0 * cells[::-1], np.ones(len(cells)), np.zeros((len(cells), 2)), np.zeros(len(cells)), np.full(2, np.inf)
    )
    assert twice.unit() == pytest.approx(2.0 * law.unit())


def test_weights_of_a_law_are_repeated_cells():
    rng = np.random.default_rng(0)
    cells, counts = rng.normal(size=30), rng.integers(1, 5, 30)

    def law(cells, weights):
        return _law(cells, weights, np.zeros((len(cells), 2)), np.zeros(len(cells)), np.full(2, np.inf))

    weighted, repeated = law(cells, counts.astype(float)), law(np.repeat(cells, counts), np.ones(counts.sum()))
    for name in ("unit", "mean", "middle"):
        assert getattr(weighted, name)() == pytest.approx(getattr(repeated, name)())
    asked = np.r_[cells[:5], 0.123, 9.0, -9.0]
    # Half a row is the least share, and rows of unequal weights are fewer.
    found, expected = (each.scores(asked, np.full(8, 0.5), 0.0, None) for each in (weighted, repeated))
    np.testing.assert_allclose(found[:6], expected[:6], atol=1e-9)
    assert (np.sign(found[6:]) == [1.0, -1.0]).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_units_of_a_column_change_no_score(ranks, reference, seed):
    rows, contexts = reference
    scale = np.array([3.0, 0.25])
    moved = ContextRanks(
        rows * scale + 7.0,
        contexts.hour,
        contexts.kind,
        contexts.day,
        ranks.groups,
        ranks.width,
        ranks.unit * scale,
        ranks.least * scale,
    )
    asked, when = days(2, 5 + seed)
    asked[:4] *= 9.0
    keys = np.arange(len(asked), dtype=np.uint64)
    found, turned = ranks.judge(asked, when, keys=keys), moved.judge(asked * scale + 7.0, when, keys=keys)
    np.testing.assert_allclose(turned[0], found[0], atol=1e-6)
    np.testing.assert_allclose(turned[1], found[1] * scale + 7.0)
