"""Length scales stand on the spread of most rows."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import LSDD
from isopleth.difference.grids import factors, relative_spacing, spread_within


def one_and_one(n, m):
    return np.column_stack([np.arange(n + m) < n, np.arange(n + m) >= n]).astype(float)


def test_spread_of_ordinary_rows_is_the_pooled_deviation():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(5.0, 2.0, (80, 2)), rng.normal(-4.0, 1.0, (40, 2))])
    expected = np.sqrt((80 * rows[:80].var(axis=0) + 40 * rows[80:].var(axis=0)) / 120)
    np.testing.assert_allclose(spread_within(rows, one_and_one(80, 40)), expected, rtol=1e-12)


@pytest.mark.parametrize("wild", [1e3, 1e12, -1e300])
@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning")
def test_one_extreme_value_in_each_sample_does_not_change_the_scale(wild):
    rows = np.random.default_rng(1).normal(size=(150, 1))
    calm = spread_within(rows, one_and_one(100, 50))
    rows[[3, 120]] = wild
    assert spread_within(rows, one_and_one(100, 50)) == pytest.approx(calm, rel=0.9)


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


def test_narrow_clusters_far_apart_have_smaller_scales_in_their_column_only():
    rng = np.random.default_rng(4)
    labels, place = one_and_one(300, 300), rng.choice([-2.0, 2.0], size=600)
    rows = np.column_stack([place + rng.normal(scale=0.02, size=600), rng.normal(size=600)])
    scaled = rows / rows.std(axis=0)
    fine = relative_spacing(scaled, labels, 0)
    assert 0.01 < fine[0] < 0.03  # clusters are a hundredth of the deviation; half of their pairs of rows are not close
    assert fine[1] == 1.0
    grid = factors(2, fine)
    np.testing.assert_allclose(grid[[0, -1]], np.sqrt(2.0) * 2.0 ** np.array([[-3.5], [1.5]]) * [fine, [1.0, 1.0]])
    assert (np.diff(grid, axis=0).max(axis=1) > 0.0).all()
    np.testing.assert_allclose(factors(2, 0.25)[:15, 0], np.sqrt(2.0) * 2.0 ** np.arange(-5.5, 1.75, 0.5))
    np.testing.assert_allclose(grid.max(axis=0), 4.0)
    # In units of any column; each row twice; by weights; with the least change.
    np.testing.assert_allclose(relative_spacing(scaled, 3.0 * labels, 0), fine)
    np.testing.assert_allclose(
        relative_spacing(scaled + 1e-12 * rng.normal(size=scaled.shape), labels, 0), fine, rtol=1e-6
    )
    np.testing.assert_array_equal(relative_spacing(scaled, labels[:, ::-1], 0), fine)


@pytest.mark.parametrize(
    ("draw", "least"),
    [(np.random.Generator.normal, 1.0), (np.random.Generator.random, 1.0), (np.random.Generator.exponential, 0.5)],
)
@pytest.mark.parametrize(("n", "d"), [(5, 1), (30, 2), (300, 1), (300, 5)])
def test_ordinary_rows_have_the_grid_of_the_deviation(draw, least, n, d):
    rows = draw(np.random.default_rng(5), size=(2 * n, d))
    assert (relative_spacing(rows / rows.std(axis=0), one_and_one(n, n), 0) >= least).all()


def test_rounded_rows_and_the_rounding_of_sums_ask_for_no_finer_scale():
    rng = np.random.default_rng(6)
    ages = np.round(rng.normal(40.0, 15.0, size=(600, 1))) / 15.0
    rows, place = np.unique(ages, axis=0, return_inverse=True)
    weights = np.array([np.bincount(place.ravel()[i::2], minlength=len(rows)) for i in (0, 1)]).T.astype(float)
    assert relative_spacing(rows, weights, 0) == 1.0
    assert relative_spacing(ages + 1e-12 * rng.normal(size=ages.shape), one_and_one(300, 300), 0) == 1.0
