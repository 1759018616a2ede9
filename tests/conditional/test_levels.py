"""Rows between the levels of a column: steps from level to level are judged by whole levels that are left out."""

import copy
import pickle

import numpy as np
import pytest

from isopleth import ConditionalDensity
from isopleth.io import load, save

DOSES = np.array([0.0, 1.0, 3.0, 6.0, 12.0, 24.0, 30.0])


def _line(dose):
    return 40.0 - 1.3 * dose


def _saturating(dose):
    return 90.0 * dose / (6.0 + dose)


def _trials(response, seed, repeats=7):
    rng = np.random.default_rng(seed)
    dose = np.repeat(DOSES, repeats)
    new = rng.uniform(DOSES[0], DOSES[-1], 60)
    return [(x, np.round(response(x) + rng.normal(size=len(x)), 2)) for x in (dose, new)]


@pytest.mark.parametrize(("response", "widest"), [(_line, 1.6), (_saturating, 4.0)])
def test_intervals_between_levels_hold(response, widest):
    held, width = [], []
    for seed in (31, 32, 33):
        (dose, found), (new, true) = _trials(response, seed)
        low, high = ConditionalDensity(random_state=0).fit(dose[:, None], found).predict_interval(new[:, None])
        held.append(np.mean((low <= true) & (true <= high)))
        width.append(np.median(high - low) / (2 * 1.645))
    assert np.mean(held) > 0.8
    assert np.mean(width) < widest


def test_lines_of_groups_hold_between_levels():
    rng = np.random.default_rng(4)
    slope, start = np.array([2.0, 2.6, 1.7]), np.array([0.0, 5.0, 1.0])
    levels = np.tile(np.repeat(DOSES, 5), 3)
    group = np.repeat([0, 1, 2], 5 * len(DOSES))
    found = start[group] + slope[group] * levels + rng.normal(size=len(levels))
    new, of = rng.uniform(DOSES[0], DOSES[-1], 150), rng.integers(0, 3, 150)
    true = start[of] + slope[of] * new + rng.normal(size=150)

    def rows(dose, group):
        return {"dose": dose, "group": np.array(["p", "q", "r"])[group]}

    pd = pytest.importorskip("pandas")
    model = ConditionalDensity(random_state=0).fit(pd.DataFrame(rows(levels, group)), found.round(2))
    low, high = model.predict_interval(pd.DataFrame(rows(new, of)))
    assert np.mean((low <= true) & (true <= high)) > 0.8
    assert np.median(high - low) < 2.5 * 2 * 1.645


def test_rows_at_levels_are_answered_by_the_law_of_all_rows():
    (dose, found), _ = _trials(_line, 5)
    model = ConditionalDensity(random_state=0).fit(dose[:, None], found)
    law, rows = model._cell_law, np.array([[6.0], [7.5], [np.nan], [40.0]])
    assert law.between.shares(rows).tolist() == [[0.0], [1.0], [0.0], [0.0]]
    alone, among = model.predict_quantile(rows[:1], [0.1, 0.5]), model.predict_quantile(rows, [0.1, 0.5])
    assert np.array_equal(alone, among[:1])
    assert np.allclose(model.cdf(rows[1:2], among[1:2, 1]), 0.5, atol=0.02)


def _two_columns(seed=3):
    rng = np.random.default_rng(seed)
    X = np.repeat([[a, b] for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0, 2.0)], 6, axis=0)
    return X, X[:, 0] + 2.0 * X[:, 1] * (X[:, 0] == 1.0) + 0.2 * rng.normal(size=len(X))


def test_answers_between_levels_do_not_depend_on_the_order_of_columns():
    X, y = _two_columns()
    new = np.array([[0.5, 1.5], [1.0, 0.4], [1.1, 1.1]])
    one, other = (
        ConditionalDensity(random_state=0).fit(X[:, order], y).predict_quantile(new[:, order], [0.1, 0.5, 0.9])
        for order in ([0, 1], [1, 0])
    )
    assert np.allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("level", [(1.0, 1.0), (1.0, 0.5), (1.25, 1.0), (1.25, 0.4), (1.1, 1.15)])
def test_answers_do_not_jump_beside_a_level(level):
    X, y = _two_columns()
    model = ConditionalDensity(random_state=0).fit(X, y)
    rows = np.array(level) + np.array([[0.0, 0.0], [1e-9, 0.0], [0.0, 1e-9], [-1e-9, 1e-9], [1e-5, 1e-5]])
    for answer in (model.predict(rows), model.predict_quantile(rows, 0.1), model.cdf(rows, np.full(5, 2.5))):
        assert np.abs(answer[:4] - answer[0]).max() < 1e-6
        assert abs(answer[4] - answer[0]) < 1e-3
    logs = model.log_prob(rows, np.full(5, 2.5))
    assert np.abs(logs[:4] - logs[0]).max() < 1e-5


def test_a_law_between_levels_has_a_share_that_grows_with_the_distance():
    X, y = _two_columns()
    law = ConditionalDensity(random_state=0).fit(X, y)._cell_law.between
    rows = np.array([[1.0, 1.0], [1.1, 1.0], [0.8, 1.0], [1.25, 1.4], [1.1, 1.15], [0.4, 0.5]])
    shares = law.shares(rows)
    assert np.allclose(1.0 - np.prod(1.0 - shares, axis=1), [0.0, 0.4, 0.8, 1.0, 0.6, 1.0])


def test_columns_of_many_or_two_levels_have_no_laws_between_them():
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 2, 80)])
    assert ConditionalDensity(random_state=0).fit(X, X.sum(axis=1))._cell_law.between is None


def test_a_saved_law_answers_between_levels(tmp_path):
    (dose, found), (new, _) = _trials(_line, 7)
    model = ConditionalDensity(random_state=0).fit(dose[:, None], found)
    before = model.predict_quantile(new[:5, None], 0.9)
    save(model, tmp_path / "law.isopleth")
    assert np.array_equal(load(tmp_path / "law.isopleth").predict_quantile(new[:5, None], 0.9), before)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_models_that_have_answered_between_levels_can_be_copied(copied):
    (dose, found), (new, _) = _trials(_line, 7)
    (X, levels), (beside, _) = _standards(41)
    for cells, target, rows in ((dose[:, None], found, new[:5, None]), (X, levels, beside[:5])):
        model = ConditionalDensity(random_state=0).fit(cells, target)
        before = model.predict_quantile(rows, 0.9)
        assert np.array_equal(copied(model).predict_quantile(rows, 0.9), before)


def _standards(seed, groups=2):
    rng = np.random.default_rng(seed)
    slope, levels = np.array([3.0, 3.5])[:groups], np.array([0.0, 2.0, 5.0, 9.0, 15.0, 25.0, 40.0])
    dose = np.tile(np.repeat(levels, 8), groups)
    group = np.repeat(np.arange(groups), 8 * len(levels))
    new, of = rng.uniform(0, 40, 120), rng.integers(0, groups, 120)
    signal = [slope[g] * x + 2.0 + 0.6 * rng.normal(size=len(x)) for x, g in ((dose, group), (new, of))]
    return (np.column_stack([signal[0], group]), dose), (np.column_stack([signal[1], of]), new)


def test_a_scale_is_read_between_its_standards():
    held, width = [], []
    for seed in (41, 42):
        (X, dose), (new, true) = _standards(seed)
        model = ConditionalDensity(random_state=0).fit(X, dose)
        low, high = model.predict_interval(new)
        held.append(np.mean((low <= true) & (true <= high)))
        width.append(np.median(high - low))
    assert np.mean(held) > 0.75
    assert np.mean(width) < 3 * 2 * 1.645 * 0.6 / 3.0
    middle = model.predict_quantile(new[:20], 0.5)
    assert np.allclose(model.cdf(new[:20], middle), 0.5, atol=0.5)
    assert np.isfinite(model.log_prob(new, true)).all()


def test_a_number_at_a_standard_stays_the_likeliest_and_rows_of_the_fit_stay_sharp():
    (X, dose), _ = _standards(43)
    model = ConditionalDensity(random_state=0).fit(X, dose)
    at = [[3.0 * 15.0 + 2.0, 0.0]]
    assert model.predict_quantile(at, 0.5)[0] == pytest.approx(15.0, abs=0.01)
    assert np.mean(model.predict_quantile(q=0.5) == dose) > 0.8


def test_months_and_ratings_are_no_scale():
    rng = np.random.default_rng(8)
    day = rng.integers(0, 360, 300)
    rating = np.clip(np.rint(3.0 + rng.normal(size=300)), 1.0, 5.0)
    for X, y in ((day, day // 30 + 1.0), (rating + 0.7 * rng.normal(size=300), rating)):
        scale = ConditionalDensity(random_state=0).fit(X[:, None], y)._cell_law.scale
        assert scale is None or scale.law() is None
