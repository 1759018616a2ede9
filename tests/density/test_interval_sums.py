"""Joint densities of rows with cells that say a limit."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone

from isopleth import KDE, SOSREP
from isopleth.core.interval_cells import IntervalCells
from isopleth.density.interval_sums import IntervalSums

LIMIT = -1.0


def intervals(lower, upper):
    return pd.arrays.IntervalArray.from_arrays(lower, upper, closed="both")


def hidden(table, limit=LIMIT):
    y = table["a"].to_numpy()
    return table.assign(a=intervals(np.where(y < limit, -np.inf, y), np.where(y < limit, limit, y)))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    return pd.DataFrame({"a": a, "b": 0.8 * a + 0.6 * rng.normal(size=300), "c": rng.normal(size=300)})


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sums_are_probabilities_of_boxes(k):
    covariance = 0.5 * np.eye(4) + 0.5
    law = multivariate_normal(np.zeros(4), covariance)
    lower, upper = np.array([[-np.inf, -0.5, 0.3]]), np.array([[-0.2, 1.0, np.inf]])
    limits = IntervalCells(np.arange(k), lower[:, :k], upper[:, :k])
    rows = np.array([[np.nan] * k + [0.4] * (4 - k)])
    found = IntervalSums(np.ones(4)).log_density(rows, limits, lambda x: np.atleast_1d(law.logpdf(np.nan_to_num(x))))
    rest = 0.5 * np.eye(4 - k) + 0.5
    gain = covariance[:k, k:] @ np.linalg.inv(rest)
    given = multivariate_normal(gain @ np.full(4 - k, 0.4), covariance[:k, :k] - gain @ covariance[k:, :k])
    box = given.cdf(np.minimum(upper[0, :k], 30.0), lower_limit=np.maximum(lower[0, :k], -30.0))
    expected = np.log(box) + multivariate_normal(np.zeros(4 - k), rest).logpdf(np.full(4 - k, 0.4))
    np.testing.assert_allclose(found, [expected], atol=1e-6 if k < 3 else 0.01)


@pytest.mark.parametrize("model", [KDE(frame="marginal"), SOSREP(frame="scale")])
def test_a_limit_has_the_probability_of_its_interval(table, model):
    fitted = model.fit(hidden(table))
    one = fitted.marginal(["a"])
    places = np.linspace(-40.0, LIMIT, 8001)
    mass = np.trapezoid(np.exp(one.score_samples(pd.DataFrame({"a": places}))), places)
    asked = pd.DataFrame({"a": intervals([-np.inf], [LIMIT])})
    np.testing.assert_allclose(one.score_samples(asked), [np.log(mass)], atol=2e-3)
    whole = clone(model).fit(table.to_numpy()).marginal([0])
    assert abs(mass - np.trapezoid(np.exp(whole.score_samples(places[:, None])), places)) < 0.04
    row = hidden(table)[table["a"] < LIMIT].head(1)
    line = pd.concat([table.loc[row.index]] * 801).assign(a=np.linspace(-9.0, LIMIT, 801))
    along = np.trapezoid(np.exp(fitted.score_samples(line)), line["a"])
    np.testing.assert_allclose(fitted.score_samples(row), [np.log(along)], atol=2e-3)
    step = 1e-5
    moved = [fitted.score_samples(row.assign(b=row["b"] + h))[0] for h in (-step, step)]
    slope = fitted.grad_log_density(row)[0]
    assert np.isnan(slope[0])
    np.testing.assert_allclose(slope[1], (moved[1] - moved[0]) / (2 * step), rtol=1e-3, atol=1e-3)


def test_a_density_with_limits_is_near_that_without(table):
    other = np.random.default_rng(1).normal(size=(400, 3))
    other[:, 1] = 0.8 * other[:, 0] + 0.6 * other[:, 1]
    other = pd.DataFrame(other, columns=list("abc"))
    with_limits, without = (KDE().fit(each).score_samples(other).mean() for each in (hidden(table), table))
    assert abs(with_limits - without) < 0.1


def test_filled_cells_are_inside(table):
    positive = np.exp(table)
    y = positive["a"].to_numpy()
    limit = float(np.quantile(y, 0.2))
    rows = positive.assign(a=intervals(np.where(y < limit, -np.inf, y), np.where(y < limit, limit, y)))
    fitted = KDE(frame="scale").fit(rows)
    for strategy in ("mean", "draw"):
        filled = fitted.impute(rows, strategy, 0)["a"]
        assert filled[y < limit].between(0.0, limit).all()
        np.testing.assert_array_equal(filled[y >= limit], y[y >= limit])


def test_words_gaps_one_column_and_order(table):
    rows = hidden(table).head(120).assign(word=np.where(table["c"].head(120) > 0, "x", "y"))
    rows.loc[rows.index[5:9], "b"] = np.nan
    scores = KDE().fit(rows).score_samples(rows)
    assert np.isfinite(scores).all()
    turned = rows.iloc[::-1, ::-1]
    np.testing.assert_allclose(KDE().fit(turned).score_samples(turned)[::-1], scores, rtol=1e-7)
    alone = KDE().fit(hidden(table)[["a"]])
    mass = np.exp(alone.score_samples(pd.DataFrame({"a": intervals([-np.inf], [LIMIT])})))[0]
    assert abs(mass - np.mean(table["a"] < LIMIT)) < 0.05
