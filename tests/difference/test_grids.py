"""Length scales stand on the spread of most rows."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import LSDD
from isopleth.difference.grids import spread_within


def one_and_one(n, m):
    return np.column_stack([np.arange(n + m) < n, np.arange(n + m) >= n]).astype(float)


def test_spread_of_ordinary_rows_is_the_pooled_deviation():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(5.0, 2.0, (80, 2)), rng.normal(-4.0, 1.0, (40, 2))])
    expected = np.sqrt((80 * rows[:80].var(axis=0) + 40 * rows[80:].var(axis=0)) / 120)
    np.testing.assert_allclose(spread_within(rows, one_and_one(80, 40)), expected, rtol=1e-12)


@pytest.mark.parametrize("wild", [1e3, 1e12, -1e300])
def test_one_extreme_value_in_each_sample_does_not_change_the_scale(wild, recwarn):
    rows = np.random.default_rng(1).normal(size=(150, 1))
    calm = spread_within(rows, one_and_one(100, 50))
    rows[[3, 120]] = wild
    assert spread_within(rows, one_and_one(100, 50)) == pytest.approx(calm, rel=0.9)
    assert not recwarn.list


def test_columns_of_which_most_is_one_value_use_what_varies():
    rows = np.zeros((200, 3))
    rows[:60, 0] = np.linspace(-1, 1, 60)  # 30 %, beyond the quartiles
    rows[:20, 1] = np.linspace(-1, 1, 20)
    rows[:, 2] = np.arange(200) == 0  # a single one, which is all there is
    rows[0, :2] = 1e9
    spread = spread_within(rows, one_and_one(200, 0) + 1.0)
    assert (spread[:2] < 5.0).all()
    assert spread[2] == pytest.approx(np.std(rows[:, 2]))


def test_spread_counts_weights_as_repetitions_and_follows_units():
    rng = np.random.default_rng(2)
    rows, times = rng.standard_t(1.5, size=(40, 1)), rng.integers(0, 4, size=(40, 2)).astype(float)
    repeated = np.repeat(np.concatenate([rows, rows]), times.T.ravel().astype(int), axis=0)
    labels = one_and_one(int(times[:, 0].sum()), int(times[:, 1].sum()))
    spread = spread_within(rows, times)
    np.testing.assert_allclose(spread_within(repeated, labels), spread, rtol=1e-12)
    np.testing.assert_allclose(spread_within(-1e-5 * rows, times), 1e-5 * spread, rtol=1e-12)


def test_one_extreme_row_hardly_changes_the_difference():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.8, 1.0, size=(80, 2)), rng.normal(size=(70, 2))
    model = LSDD(random_state=0, n_jobs=1, cv=3, alpha=[0.1, 1.0, 10.0])
    calm = model.fit(x, y).squared_l2_
    x[0, 0], y[1, 1] = 1e12, -1e12
    assert model.fit(x, y).squared_l2_ == pytest.approx(calm, rel=0.35)
    assert (model.search_path_.length_scales.max(axis=0) < 10.0).all()
