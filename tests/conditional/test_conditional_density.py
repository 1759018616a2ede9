"""The law of a cell given its row: exact sums, calibration, words, times, gaps, and what answers must not depend on."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import betainc, ndtr
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from isopleth import ConditionalDensity, InputError, load, save
from isopleth.conditional.number_law import LAWS, WIDTHS

MODEL = ConditionalDensity(n_estimators=25, n_jobs=1, random_state=0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * RNG.normal(size=90)
ASKED = RNG.normal(size=(12, 3))


@pytest.fixture(scope="module")
def model():
    return clone(MODEL).fit(X, Y)


def test_the_distribution_function_is_the_stated_sum(model):
    law = model._cell_law.law
    at = law.at(ASKED)
    y = np.linspace(-1.0, 2.0, 12)
    F = np.zeros(12)
    for one, weights in zip(LAWS, law.weights, strict=True):
        r = law.groups[one.group].centers
        W = np.full((12, len(r)), 1 / len(r))
        if one.kernel != "equal":
            W = at.kernels[one.kernel].toarray() ** one.power
            W /= W.sum(axis=1, keepdims=True)
        u = law.scale(one.group, y) - at.trends[one.group]
        trust = 1.0 if one.group in (1, 2) else at.trust
        for h, weight in zip(WIDTHS * r.std(), weights, strict=True):
            F += trust * weight * (W * ndtr((u[:, None] - r) / h)).sum(axis=1)
    follows = np.array([[one.group in (1, 2)] for one in LAWS])
    total = (law.weights.sum(axis=1)[:, None] * np.where(follows, 1.0, at.trust)).sum(axis=0)
    wide = ndtr((y - Y.mean()) / (8.0 * Y.std()))  # one row of 91 is of a wide law
    F = 90 / 91 * F / total + wide / 91
    # Laws of equal weights are tabulated.
    np.testing.assert_allclose(model.cdf(ASKED, y), betainc(*law.beta, F), atol=2e-3)


def test_quantiles_invert_the_distribution_function(model):
    for q in (0.05, 0.3, 0.5, 0.95):
        np.testing.assert_allclose(model.cdf(ASKED, model.predict_quantile(ASKED, q)), q, atol=0.012)
    inside = np.linspace(*model.predict_quantile(ASKED[:1], [0.001, 0.999])[0], 4001)
    density = np.exp(model.log_prob(np.repeat(ASKED[:1], 4001, axis=0), inside))
    assert abs(np.trapezoid(density, inside) - 0.998) < 0.01
    assert abs(np.trapezoid(density * inside, inside) / 0.998 - model.predict(ASKED[:1])[0]) < 0.05


def test_intervals_of_rows_of_the_fit_and_of_new_rows_hold():
    held, new = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(400, 3))
        rows[rng.random(rows.shape) < 0.1] = np.nan
        y = np.nan_to_num(rows[:, 0]) ** 2 + np.exp(0.3 * np.nan_to_num(rows[:, 1])) * rng.normal(size=400)
        fitted = clone(MODEL).fit(rows[:200], y[:200])
        for which, (low, high), truth in (
            (held, fitted.predict_interval(), y[:200]),
            (new, fitted.predict_interval(rows[200:]), y[200:]),
        ):
            which.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.86 < np.mean(held) < 0.94
    assert 0.86 < np.mean(new) < 0.95


@pytest.mark.parametrize(("rows", "columns"), [(30, 3), (80, 5), (120, 20)])
def test_intervals_of_new_rows_hold_in_small_tables(rows, columns):
    held = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rows + 200, columns))
        y = x[:, 0] + 0.5 * rng.normal(size=len(x))
        law = ConditionalDensity(random_state=0).fit(x[:rows], y[:rows])
        low, high = law.predict_interval(x[rows:], confidence_level=0.8)
        held.append(np.mean((low <= y[rows:]) & (y[rows:] <= high)))
    assert 0.7 < np.mean(held) < 0.9  # standard error about .02: the rows of a fit are few


def test_a_line_leads_beyond_the_data():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.0, 3.0, size=(200, 1))
    fitted = clone(MODEL).fit(x, 2.0 * x[:, 0] + 0.1 * rng.normal(size=200))
    low, high = fitted.predict_interval([[4.5]])
    assert low[0] < 9.0 < high[0]
    assert high[0] - low[0] < 3.0


def test_repeated_values_stay_sharp_and_extremes_that_repeat_are_limits():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 1))
    y = np.where(rng.random(300) < 0.4, 0.0, np.exp(x[:, 0]) + 0.1)
    fitted = clone(MODEL).fit(x, y)
    found = fitted.predict_quantile(x[:40], [0.02, 0.1, 0.5])
    assert (found >= 0.0).all()  # nothing is below a value that many rows share and none goes below
    assert np.mean(found[:, 1] == 0.0) > 0.6


def test_laws_of_groups_do_not_reach_across_the_empty_stretch_between_them():
    rng = np.random.default_rng(4)
    article = rng.choice(["bulb", "lamp", "chair", "table"], size=800, p=[0.3, 0.4, 0.25, 0.05])
    usual = pd.Series({"bulb": 4.0, "lamp": 35.0, "chair": 90.0, "table": 400.0})
    price = usual[article].to_numpy() * np.exp(0.04 * rng.normal(size=800))
    X = pd.DataFrame({"article": article, "units": rng.integers(1, 9, size=800), "days": rng.gamma(4.0, size=800)})
    model = ConditionalDensity(random_state=0).fit(X, price)
    asked = pd.DataFrame({"article": usual.index, "units": 4, "days": 4.0})
    q = model.predict_quantile(asked, [0.05, 0.95]) / usual.to_numpy()[:, None]
    assert (q > 0.7).all()
    assert (q < 1.4).all()  # 40 tables among 800 rows


def test_tables_of_words_are_counted():
    rng = np.random.default_rng(5)
    article = rng.choice(["lamp", "bulb", "chair", "table"], size=600, p=[0.4, 0.3, 0.25, 0.05])
    units = rng.integers(1, 4, size=600)
    kind = np.where(np.isin(article, ["lamp", "bulb"]), "light", "furniture")
    kind = np.where(rng.random(600) < 0.1, "gift", kind)
    for X in (pd.DataFrame({"article": article}), pd.DataFrame({"article": article, "units": units})):
        model = ConditionalDensity(n_estimators=40, random_state=0).fit(X, kind)
        asked = X.drop_duplicates("article")
        P = model.probabilities(asked)
        for row, word in zip(P, asked["article"], strict=True):
            shares = [np.mean(kind[article == word] == name) for name in model.classes_]
            np.testing.assert_allclose(row, shares, atol=0.08)
    prices = np.round(article.size * 0.0 + pd.Series(article).map({"lamp": 35, "bulb": 4, "chair": 90, "table": 400}))
    q = ConditionalDensity(n_estimators=40, random_state=0).fit(pd.DataFrame({"article": article}), prices)
    asked = pd.DataFrame({"article": ["lamp", "table"]})
    np.testing.assert_allclose(q.predict_quantile(asked, [0.1, 0.9]), [[35, 35], [400, 400]])


def test_copies_of_rows_of_numbers_tell_nothing_new():
    twice = np.repeat(np.arange(len(X)), 2)
    once, doubled = (clone(MODEL).fit(X[rows], Y[rows]) for rows in (np.arange(len(X)), twice))
    np.testing.assert_allclose(doubled.log_prob(ASKED, np.zeros(12)), once.log_prob(ASKED, np.zeros(12)), atol=1e-9)


def test_far_values_have_finite_log_densities_in_order(model):
    far = model.log_prob(np.repeat(ASKED[:1], 5, axis=0), [10.0, 100.0, 1e4, 1e8, -1e8])
    assert np.isfinite(far).all()
    assert (np.diff(far[:4]) < 0).all()


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    colour = np.where(rng.random(n) < 0.7, np.where(age > 45, "red", "blue"), rng.choice(["red", "blue", "green"], n))
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(age.astype(int), unit="D")
    frame = pd.DataFrame({"age": age, "colour": colour, "member": age > 60, "day": day})
    for name in ("age", "colour"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame, age


@pytest.mark.parametrize("target", ["colour", "member", "day", "age"])
def test_every_kind_of_target(target):
    frame, age = people(150)
    frame = frame.assign(age=age).dropna()
    X, y = frame.drop(columns=target), frame[target]
    fitted = clone(MODEL).fit(X, y)
    found = fitted.predict(X)
    if target in ("colour", "member"):
        P = fitted.probabilities(X)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        np.testing.assert_allclose(
            fitted.log_prob(X, y)[:3],
            np.log([P[i, list(fitted.classes_).index(y.iloc[i])] for i in range(3)]),
            atol=0.01,
        )
        assert np.mean(found == y.to_numpy()) > 0.7
        assert set(fitted.sample(X, 3, 0).ravel()) <= set(fitted.classes_)
        with pytest.raises(InputError, match="probabilities"):
            fitted.predict_interval(X)
    else:
        low, high = fitted.predict_interval(X)
        assert np.mean((low <= y.to_numpy()) & (y.to_numpy() <= high)) > 0.85
        assert found.dtype.kind == ("M" if target == "day" else "f")
        with pytest.raises(InputError, match="words"):
            fitted.probabilities(X)
    assert np.isfinite(fitted.score(X, y))


def test_out_of_bag_laws_do_not_know_their_row():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)  # nothing to learn
    fitted = clone(MODEL).fit(X, y)
    assert np.mean(fitted.log_prob(None, y)) < np.mean(fitted.log_prob(X, y))
    assert abs(np.corrcoef(fitted.predict(), y)[0, 1]) < 0.35
    words = np.where(y > 0, "a", "b")
    by_words = clone(MODEL).fit(X, words)
    assert np.mean(by_words.log_prob(None, words)) < np.mean(by_words.log_prob(X, words))


ORDER, UNIT, SHIFT = np.array([2, 0, 1]), np.array([1e3, 1.0, 1e-2]), np.array([5.0, -20.0, 0.0])


def test_orders_units_copies_constants_threads_and_files(model, tmp_path):
    asked = model.predict_quantile(ASKED, [0.1, 0.5, 0.9])
    rows, counts = RNG.permutation(90), RNG.integers(0, 4, 90)
    other = clone(MODEL).fit(X[rows][:, ORDER], Y[rows])
    np.testing.assert_array_equal(other.predict_quantile(ASKED[:, ORDER], [0.1, 0.5, 0.9]), asked)
    other = clone(MODEL).fit(X * UNIT + SHIFT, 10.0 * Y)
    np.testing.assert_allclose(other.predict_quantile(ASKED * UNIT + SHIFT, [0.1, 0.5, 0.9]) / 10.0, asked, atol=2e-6)
    noise = 1e-12 * RNG.normal(size=X.shape)
    other = clone(MODEL).fit(X + noise, Y + noise[:, 0])
    np.testing.assert_allclose(other.predict_quantile(ASKED, [0.1, 0.5, 0.9]), asked, atol=2e-6)
    weighted = clone(MODEL).fit(X, Y, sample_weight=counts)
    copies = clone(MODEL).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    np.testing.assert_allclose(weighted.predict(ASKED), copies.predict(ASKED), rtol=1e-9)
    other = clone(MODEL).fit(np.column_stack([X, np.ones(90)]), Y)
    np.testing.assert_array_equal(other.predict(np.column_stack([ASKED, np.ones(12)])), model.predict(ASKED))
    np.testing.assert_array_equal(clone(MODEL).set_params(n_jobs=2).fit(X, Y).predict(ASKED), model.predict(ASKED))
    save(model, tmp_path / "law.isopleth")
    np.testing.assert_array_equal(load(tmp_path / "law.isopleth").predict(ASKED), model.predict(ASKED))


def test_pipelines_and_searches():
    search = GridSearchCV(make_pipeline(FunctionTransformer(), MODEL), {"conditionaldensity__forests": [1, 2]}, cv=2)
    found = search.fit(X[:60], Y[:60])
    assert np.isfinite(found.best_score_)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.where(np.arange(90) == 4, np.nan, Y), "NaN.*row 4"),
        (Y[:80], "80 values for 90 rows"),
        (np.stack([Y, Y], axis=1), "shape"),
        (None, "requires y"),
    ],
)
def test_targets_that_cannot_be_used(y, match):
    with pytest.raises(ValueError, match=match):
        clone(MODEL).fit(X, y)


def test_levels_are_checked(model):
    for call in (lambda: model.predict_quantile(ASKED, 1.5), lambda: model.predict_interval(ASKED, 0.0)):
        with pytest.raises(InputError, match="between 0 and 1"):
            call()


def test_few_rows_are_answered_with_care():
    for n in (2, 3, 8):
        low, high = clone(MODEL).fit(X[:n], Y[:n]).predict_interval(ASKED)
        assert (high - low > 0.3 * np.ptp(Y[:n])).all()


def test_a_column_of_many_words_tells_what_goes_with_each():
    rng = np.random.default_rng(2)
    article = rng.integers(0, 60, size=900)
    usual, kind = np.exp(3.0 + rng.normal(size=60)), rng.choice(["light", "heavy", "odd"], size=60)
    X = pd.DataFrame({"article": [f"no {i}" for i in article], "units": rng.integers(1, 9, size=900)})
    price = usual[article] * np.exp(0.03 * rng.normal(size=900))
    asked = pd.DataFrame({"article": [f"no {i}" for i in range(60)], "units": 4})
    model = ConditionalDensity(n_estimators=40, random_state=0).fit(X, price)
    assert np.mean(np.abs(np.log(model.predict_quantile(asked, 0.5) / usual)) < 0.1) > 0.9
    words = ConditionalDensity(n_estimators=40, random_state=0).fit(X[["article"]], kind[article])
    assert np.mean(words.predict(asked[["article"]]) == kind) > 0.95


def test_the_distribution_function_of_whole_numbers_rises_at_them():
    draws = np.random.default_rng(4)
    x = draws.normal(size=(150, 1))
    y = np.where(draws.uniform(size=150) < 0.4, 40.0, draws.integers(30, 50, 150))
    model = ConditionalDensity(random_state=0).fit(x, y)
    at = np.zeros((5, 1))
    found = model.cdf(at, np.array([39.0, 39.4, 39.999, 40.0, 40.7]))
    np.testing.assert_array_equal(found[[0, 0, 3]], found[[1, 2, 4]])
    assert found[3] - found[0] > 0.3


@pytest.mark.parametrize("rows", [2, 4])
def test_prices_of_articles_with_few_rows_are_known_as_exactly_as_they_repeat(rows):
    """Means of words at rows of the fit were shrunk more than those of new rows: intervals held 23 % and 66 % of prices."""
    rng = np.random.default_rng(11)
    article = np.repeat(np.arange(300), rows + 1)
    price = np.exp(rng.normal(3.0, 1.0, 300)[article] + 0.02 * rng.normal(size=len(article)))
    table = pd.DataFrame({"article": [f"A{k}" for k in article]})
    new = np.arange(len(article)) % (rows + 1) == 0
    law = ConditionalDensity(n_estimators=30, n_jobs=1).fit(table[~new], price[~new])
    low, high = law.predict_interval(table[new], 0.9)
    assert np.mean((low <= price[new]) & (price[new] <= high)) > 0.8
    assert np.median(np.abs(np.log(law.predict(table[new]) / price[new]))) < 0.04


def fixed_prices(rng, articles, rows):
    article = np.repeat(np.arange(articles), rows + 1)
    price = np.exp(rng.normal(3.0, 1.0, articles)).round(2)[article]
    return pd.DataFrame({"article": [f"A{k}" for k in article]}), price, np.arange(len(article)) % (rows + 1) == 0


@pytest.mark.parametrize(("articles", "rows"), [(20, 50), (150, 6)])
def test_fixed_prices_of_articles_are_known_from_the_article_alone(articles, rows):
    """Equal rows of an article and its price were taken for copies of one row, which tells nothing: the median was 65 % off."""
    table, price, new = fixed_prices(np.random.default_rng(12), articles, rows)
    law = ConditionalDensity(n_estimators=30, n_jobs=1).fit(table[~new], price[~new])
    off = np.abs(law.predict(table[new]) / price[new] - 1.0)
    assert np.median(off) < 0.005
    assert np.quantile(off, 0.9) < 0.05
    assert np.mean(law.log_prob(table[new], price[new])) > -1.0  # that of all prices together is -4.6


def test_copies_of_rows_whose_words_do_not_decide_tell_nothing_new():
    rng = np.random.default_rng(13)
    word = rng.integers(0, 6, 240)
    table, y = pd.DataFrame({"word": [f"w{k}" for k in word]}), word + rng.normal(size=240)
    once = ConditionalDensity(n_estimators=30, n_jobs=1).fit(table, y)
    many = np.repeat(np.arange(240), 4)
    often = ConditionalDensity(n_estimators=30, n_jobs=1).fit(table.iloc[many], y[many])
    new = pd.DataFrame({"word": ["w0", "w3"]})
    for one, other in zip(once.predict_interval(new), often.predict_interval(new), strict=True):
        np.testing.assert_allclose(one, other, atol=0.35)
    assert abs(once.log_prob(new, [0.0, 3.0]) - often.log_prob(new, [0.0, 3.0])).max() < 0.2
