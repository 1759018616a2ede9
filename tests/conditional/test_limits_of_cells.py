"""Cells that say a limit of detection, in laws of columns and in filling."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isopleth import ConditionalDensity, DensityImputer, InputError, load, save
from isopleth.conditional import LawsGiven

LIMIT = 0.5


def intervals(y, limit=LIMIT):
    """Numbers of which those below a limit are hidden, as a column of intervals of pandas."""
    lower, upper = np.where(y < limit, -np.inf, y), np.where(y < limit, limit, y)
    return pd.arrays.IntervalArray.from_arrays(lower, upper, closed="both")


def made(seed, n, d):
    """A table of numbers that go together; 15 % of the first column, which is lognormal, are below .5."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.8 * rng.normal(size=(n, d))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    z[:, 0] = np.exp(0.7 * z[:, 0])
    z[:, 0] *= LIMIT / np.quantile(z[:, 0], 0.15)
    return pd.DataFrame(z, columns=[f"c{j}" for j in range(d)])


def hidden(table):
    """The table with the numbers below the limit hidden."""
    return table.assign(c0=intervals(table["c0"].to_numpy()))


@pytest.fixture(scope="module")
def truth():
    return made(0, 900, 8)


@pytest.fixture(scope="module")
def imputer(truth):
    return DensityImputer(random_state=0).fit(hidden(truth))


def test_filled_cells_are_inside_their_limits_and_right_in_the_mean(truth, imputer):
    below = truth["c0"] < LIMIT
    filled = imputer.transform(hidden(truth))
    assert filled["c0"].dtype == float
    pd.testing.assert_frame_equal(filled[~below], truth[~below])
    assert filled["c0"][below].between(0.0, LIMIT).all()
    assert abs(filled["c0"][below].mean() / truth["c0"][below].mean() - 1.0) < 0.1
    lower, upper = imputer.impute_interval(hidden(truth))
    assert (lower["c0"][below] >= 0.0).all()
    assert (upper["c0"][below] <= LIMIT).all()
    held = (lower["c0"] <= truth["c0"]) & (truth["c0"] <= upper["c0"])
    assert held[~below].all()
    assert 0.8 < held[below].mean() < 0.99


def test_draws_follow_what_is_hidden(truth):
    below = truth["c0"] < LIMIT
    drawn = DensityImputer(strategy="draw", random_state=0).fit_transform(hidden(truth))["c0"][below]
    assert drawn.between(0.0, LIMIT).all()
    assert drawn.nunique() == below.sum()
    assert abs(drawn.std() / truth["c0"][below].std() - 1.0) < 0.3


def test_limits_that_are_kept_stay_intervals(truth):
    rows = hidden(truth.head(60))
    rows.loc[3, "c0"] = pd.NA
    filled = DensityImputer(limits="keep", n_estimators=10).fit_transform(rows)
    below = (truth["c0"].head(60) < LIMIT) & (np.arange(60) != 3)
    assert filled["c0"].dtype == rows["c0"].dtype
    assert (filled["c0"][below] == rows["c0"][below]).all()
    assert filled["c0"][3].left == filled["c0"][3].right


def test_answers_do_not_depend_on_library_order_or_copies(truth, imputer):
    some = hidden(truth).head(80)
    model = DensityImputer(n_estimators=10).fit(some)
    answer = model.transform(some)["c0"].to_numpy()
    columns = some["c0"].array
    plain = {name: some[name].to_numpy() for name in some.columns[1:]}
    lower, upper = np.asarray(columns.left), np.asarray(columns.right)
    of_polars = pl.DataFrame({"lower": lower, "upper": upper, **plain}).select(
        pl.struct("lower", "upper").alias("c0"), *plain
    )
    of_arrow = pa.table(
        {"c0": pa.StructArray.from_arrays([pa.array(lower), pa.array(upper)], ["lower", "upper"]), **plain}
    )
    mixed = some.assign(c0=[f"<{high}" if np.isinf(low) else low for low, high in zip(lower, upper, strict=True)])
    for other in (of_polars, of_arrow, pa.Table.from_pandas(some), mixed):
        filled = DensityImputer(n_estimators=10).fit(other).transform(other)["c0"]
        np.testing.assert_allclose(np.asarray(filled, dtype=float), answer, rtol=1e-12)
    turned = some.iloc[::-1, ::-1]
    np.testing.assert_allclose(
        DensityImputer(n_estimators=10).fit(turned).transform(turned)["c0"].to_numpy()[::-1], answer, rtol=1e-8
    )
    twice = DensityImputer(n_estimators=10).fit(pd.concat([some, some], ignore_index=True))
    weighted = DensityImputer(n_estimators=10).fit(some, sample_weight=np.full(80, 2.0))
    np.testing.assert_allclose(twice.transform(some)["c0"], weighted.transform(some)["c0"], rtol=1e-6)


def test_units_and_last_digits(truth, tmp_path):
    some = truth.head(120)
    answer = DensityImputer(n_estimators=10).fit_transform(hidden(some))["c0"].to_numpy()
    y = some["c0"].to_numpy()
    scaled = some.assign(c0=intervals(1000.0 * y, 1000.0 * LIMIT))
    model = DensityImputer(n_estimators=10).fit(scaled)
    np.testing.assert_allclose(model.transform(scaled)["c0"], 1000.0 * answer, rtol=1e-4)
    moved = hidden(some).assign(c1=some["c1"] * (1.0 + 1e-12))
    np.testing.assert_allclose(DensityImputer(n_estimators=10).fit_transform(moved)["c0"], answer, atol=1e-6)
    save(model, tmp_path / "m.isopleth")
    np.testing.assert_array_equal(load(tmp_path / "m.isopleth").transform(scaled)["c0"], model.transform(scaled)["c0"])


@pytest.fixture(scope="module")
def known_law():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 2))
    y = np.exp(0.3 + 0.7 * x[:, 0] + 0.4 * rng.normal(size=500))
    return x, y, ConditionalDensity(random_state=0).fit(x, pd.Series(intervals(y, 0.6)))


def test_the_probability_of_the_limit_is_that_of_the_truth(known_law):
    from scipy.stats import norm

    x, _, model = known_law
    truth = norm.cdf((np.log(0.6) - 0.3 - 0.7 * x[:, 0]) / 0.4)
    assert np.sqrt(np.mean((model.cdf(x, np.full(500, 0.6)) - truth) ** 2)) < 0.04
    lower, upper = model.predict_interval()
    y = known_law[1]
    assert 0.85 < np.mean((lower <= y) & (y <= upper)) < 0.95


def test_a_limit_has_the_probability_of_its_interval(known_law):
    x, _, model = known_law
    cells = pd.Series(
        pd.arrays.IntervalArray.from_arrays([-np.inf, 0.5, 1.0, 2.0], [0.6, 0.9, np.inf, 2.0], closed="both")
    )
    found = model.log_prob(x[:4], cells)
    at = x[[0, 1, 1, 2]]
    ends = model.cdf(at, np.array([0.6, 0.5, 0.9, 1.0]))
    np.testing.assert_allclose(found[:3], np.log([ends[0], ends[2] - ends[1], 1.0 - ends[3]]), atol=1e-4)
    np.testing.assert_allclose(found[3], model.log_prob(x[3:4], [2.0]), rtol=1e-12)
    assert np.isfinite(model.score(x[:4], cells))
    with pytest.raises(InputError, match="has a limit in row 0"):
        model.cdf(x[:4], cells)


def test_several_limits_share_the_mass_below_them():
    rng = np.random.default_rng(5)
    y = np.exp(rng.normal(size=400))
    limit = np.where(rng.random(400) < 0.5, 0.5, 1.0)
    hidden_here = y < limit
    cells = pd.Series(
        pd.arrays.IntervalArray.from_arrays(
            np.where(hidden_here, -np.inf, y), np.where(hidden_here, limit, y), closed="both"
        )
    )
    x = np.arange(400.0)[:, None] % 7.0
    model = ConditionalDensity(random_state=0).fit(x, cells)
    for place in (0.5, 1.0, 2.0):
        assert abs(model.cdf(x, np.full(400, place)).mean() - _self_consistent(cells, place)) < 0.04


def _self_consistent(cells, place, steps=2000):
    """Turnbull's estimate of a distribution function at a place, by its definition: known numbers and one point below all."""
    low, high = np.asarray(cells.array.left), np.asarray(cells.array.right)
    support = np.concatenate([[0.0], np.unique(low[low == high])])
    inside = np.where(
        (low == high)[:, None], support == low[:, None], (support > low[:, None]) & (support < high[:, None])
    )
    mass = np.full(len(support), 1.0 / len(support))
    for _ in range(steps):
        mass = (inside * mass / (inside @ mass)[:, None]).mean(axis=0)
    return mass[support <= place].sum()


def test_limits_of_inputs_are_no_gaps():
    rng = np.random.default_rng(6)
    x = np.exp(rng.normal(size=400))
    y = np.where(x < 0.5, 3.0, 0.0) + 0.1 * rng.normal(size=400)
    table = pd.DataFrame({"x": intervals(x)})
    table.loc[:40, "x"] = pd.NA
    model = ConditionalDensity(random_state=0).fit(table, y)
    asked = pd.DataFrame({"x": pd.arrays.IntervalArray.from_arrays([-np.inf, 1.0], [0.5, 1.0], closed="both")})
    np.testing.assert_allclose(model.predict(asked), [3.0, 0.0], atol=0.5)


def test_expected_values_use_limits_and_may_be_given_one(truth):
    some = hidden(truth).head(200)[["c0", "c1"]]
    laws = LawsGiven({"c1": 0.0}).fit(some)
    assert laws.quantile(0.05)["c0"] > 0.0
    below = LawsGiven({"c0": "<0.5"}).fit(some).mean()["c1"]
    assert below == LawsGiven({"c0": pd.Interval(-np.inf, 0.5)}).fit(some).mean()["c1"]
    hidden_rows = truth.head(200)["c0"] < LIMIT
    assert abs(below - truth.head(200)["c1"][hidden_rows].mean()) < 0.5


def test_all_cells_may_say_limits_and_both_sides_do():
    rng = np.random.default_rng(7)
    n = 80
    x = rng.normal(size=n)
    y = np.exp(x + 0.3 * rng.normal(size=n))
    lower, upper = (
        np.where(y < 0.5, -np.inf, np.where(y > 3.0, 3.0, y)),
        np.where(y < 0.5, 0.5, np.where(y > 3.0, np.inf, y)),
    )
    both = pd.DataFrame({"y": pd.arrays.IntervalArray.from_arrays(lower, upper, closed="both"), "x": x})
    filled = DensityImputer(n_estimators=10).fit_transform(both)["y"]
    assert (filled[y < 0.5].between(0.0, 0.5)).all()
    assert (filled[y > 3.0] > 3.0).all()
    every = pd.DataFrame(
        {
            "y": pd.arrays.IntervalArray.from_arrays(np.full(n, -np.inf), np.where(x > 0, 0.5, 1.0), closed="both"),
            "x": x,
        }
    )
    filled = DensityImputer(n_estimators=10).fit_transform(every)["y"]
    assert (filled >= 0.0).all()
    assert (filled < np.where(x > 0, 0.5, 1.0)).all()


def test_intervals_that_are_none_are_refused():
    wrong = pa.table({"c": pa.array([{"lower": 1.0, "upper": 0.5}, {"lower": 1.0, "upper": 2.0}]), "x": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"'c' holds an interval from '1 to 0.5' in row 0"):
        DensityImputer().fit(wrong)
