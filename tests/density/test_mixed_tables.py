"""SOSREP and KDE of tables with words and missing cells, by their public methods, against quadrature and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from isopleth import KDE, SOSREP, DataWarning, InputError, Search
from isopleth.kernels import ProductLaplacian

KINDS = pytest.mark.parametrize("kind", [SOSREP, KDE])
KERNELS = pytest.mark.parametrize("kernel", ["gaussian", ProductLaplacian()], ids=["gaussian", "laplacian"])
NAMES = ["colour", "x", "wet", "y"]
WORDS = ["red", "blue", "green", "a word that no row has"]
NEW = "ignore:words that were not"


def table(n=40, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(WORDS[:3], n, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=n) + 2.0 * (colour == "red")
    out = pd.DataFrame({"colour": colour, "x": x, "wet": rng.random(n) < 0.4, "y": 0.5 * x + rng.normal(size=n)})
    if gaps:
        for name in NAMES:
            column = out[name].astype(object)
            column[rng.random(n) < gaps] = None
            out[name] = column.astype(float) if name in "xy" else column
        out.iloc[0] = ["red", 1.0, True, 0.5]
    return out


def completions(row, step=0.05, reach=14.0):
    """All ways to fill the gaps of a row, and what each counts; gaps of numbers are on a grid (trapezoidal rule)."""
    grid = np.arange(-reach, reach + step / 2, step)
    choices = {"colour": WORDS, "wet": [True, False], "x": grid, "y": grid}
    cells = [choices[name] if pd.isna(row[name]) else [row[name]] for name in NAMES]
    weight = np.prod([step for name in "xy" if pd.isna(row[name])])
    return pd.DataFrame(list(itertools.product(*cells)), columns=NAMES), weight


ROWS = [
    {"colour": "red", "x": None, "wet": True, "y": 0.3},
    {"colour": None, "x": 0.2, "wet": None, "y": 0.3},
    {"colour": None, "x": None, "wet": False, "y": 1.0},
]


@KINDS
@pytest.mark.filterwarnings(NEW)
def test_it_integrates_and_sums_to_one(kind):
    model = kind(frame="scale").fit(table(gaps=0.2))
    rows, weight = completions(dict.fromkeys(NAMES), step=0.25)
    assert weight * np.exp(model.score_samples(rows)).sum() == pytest.approx(1.0, abs=1e-6)


@KINDS
@pytest.mark.filterwarnings(NEW)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_marginals_conditionals_and_means_are_integrals(kind, gaps):
    model = kind(frame="scale").fit(table(gaps=gaps))
    for row in ROWS:
        rows, weight = completions(row)
        share = weight * np.exp(model.score_samples(rows))
        asked = pd.DataFrame([row])
        assert np.exp(model.score_samples(asked)) == pytest.approx(share.sum(), rel=1e-6)
        known = {name: cell for name, cell in row.items() if cell is not None}
        missing = [name for name in NAMES if row[name] is None]
        assert model.marginal(list(known)).score_samples(asked) == pytest.approx(np.log(share.sum()), rel=1e-6)
        given = model.conditional(known)
        assert given.names == missing
        np.testing.assert_allclose(weight * np.exp(given.score_samples(rows)), share / share.sum(), atol=1e-7)
        filled = model.impute(asked).iloc[0]
        for name in missing:
            if name in "xy":
                assert filled[name] == pytest.approx(share @ rows[name] / share.sum(), abs=1e-6)
            else:
                by_word = pd.Series(share).groupby(rows[name].astype(str)).sum()
                assert str(filled[name]) == by_word.drop([WORDS[3]], errors="ignore").idxmax()


@KINDS
@pytest.mark.parametrize("bounds", [None, {"x": (-10.0, None)}])
def test_words_alone_have_a_density_in_the_default_frame(kind, bounds):
    model = kind(bounds=bounds).fit(table(gaps=0.2))
    pairs = pd.DataFrame(list(itertools.product(WORDS[:3], [True, False])), columns=["colour", "wet"])
    alone = model.marginal(["colour", "wet"])
    gaps = pairs.assign(x=np.nan, y=np.nan)[NAMES]
    np.testing.assert_allclose(alone.score_samples(pairs), model.score_samples(gaps), rtol=1e-9)
    given = model.conditional({"x": 0.3, "y": 0.2})
    shares = given.marginal(["wet"]).score_samples(pd.DataFrame({"wet": [True, False]}))
    assert np.exp(shares).sum() == pytest.approx(1.0)
    assert given.sample(5, random_state=0).notna().all(axis=None)
    assert alone.impute(pairs.assign(colour=None)).notna().all(axis=None)


@KINDS
@KERNELS
def test_intervals_hold_their_share_and_draws_follow(kind, kernel):
    model = kind(kernel=kernel, frame="scale").fit(table(gaps=0.1))
    row = pd.DataFrame([{"colour": "red", "x": None, "wet": True, "y": 0.3}]).astype({"x": float})
    low, high = model.conditional({"colour": "red", "wet": True, "y": 0.3}).interval(0.8)["x"]
    drawn = model.sample(4000, given={"colour": "red", "wet": True, "y": 0.3}, random_state=0)
    assert list(drawn.columns) == NAMES
    assert (drawn["y"] == 0.3).all()
    assert (drawn["colour"] == "red").all()
    assert drawn["wet"].all()
    assert drawn["x"].between(low, high).mean() == pytest.approx(0.8, abs=0.03)
    assert drawn["x"].mean() == pytest.approx(model.impute(row)["x"][0], abs=0.1)
    filled = model.impute(pd.concat([row] * 2000), "draw", random_state=1)["x"]
    assert filled.between(low, high).mean() == pytest.approx(0.8, abs=0.04)


@KINDS
@KERNELS
def test_gradients_are_differences(kind, kernel):
    model = kind(kernel=kernel, frame="scale").fit(table(gaps=0.1))
    asked = pd.DataFrame(ROWS)
    found = model.grad_log_density(asked)
    for j, name in ((1, "x"), (3, "y")):
        up, down = asked.copy(), asked.copy()
        up[name], down[name] = up[name] + 1e-5, down[name] - 1e-5
        expected = (model.score_samples(up) - model.score_samples(down)) / 2e-5
        known = asked[name].notna()
        np.testing.assert_allclose(found[known, j], expected[known], rtol=1e-4, atol=1e-7)
        assert np.isnan(found[~known, j]).all()
    assert np.isnan(found[:, [0, 2]]).all()


@KINDS
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_weights_are_repetitions_and_orders_do_not_matter(kind, gaps):
    rows, asked = table(gaps=gaps), table(10, seed=1, gaps=gaps)
    weights = np.random.default_rng(2).integers(1, 4, len(rows))
    weights[0] = 3
    one = kind(frame="scale").fit(rows, sample_weight=weights)
    other = kind(frame="scale").fit(rows.loc[rows.index.repeat(weights)].reset_index(drop=True))
    np.testing.assert_allclose(other.score_samples(asked), one.score_samples(asked), rtol=1e-7)
    shuffled = rows.sample(frac=1.0, random_state=0)[["y", "wet", "colour", "x"]]
    plain, moved = kind(frame="scale").fit(rows), kind(frame="scale").fit(shuffled)
    np.testing.assert_allclose(moved.score_samples(asked), plain.score_samples(asked), rtol=1e-7)
    pd.testing.assert_frame_equal(moved.impute(asked)[NAMES], plain.impute(asked), rtol=1e-6)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_frames_of_all_libraries_alike(gaps):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows = table(gaps=gaps)
    plain = SOSREP(frame="scale").fit(rows)
    filled = plain.impute(table(seed=1, gaps=0.3))
    for convert in (pl.from_pandas, pa.Table.from_pandas):
        model = SOSREP(frame="scale").fit(convert(rows))
        asked = convert(table(seed=1, gaps=0.3))
        np.testing.assert_array_equal(model.score_samples(asked), plain.score_samples(asked))
        back = model.impute(asked)
        assert type(back) is type(asked) is type(model.sample(3))
        back = back.to_pandas()
        for name in NAMES:
            assert back[name].tolist() == filled[name].tolist()


def test_empty_columns_and_rows_are_left_out_with_a_sentence():
    rows = table(gaps=0.1)
    more = rows.assign(nothing=None)
    more.loc[len(more)] = [None] * 5
    with pytest.warns(DataWarning) as caught:
        model = SOSREP(frame="scale").fit(more)
    said = " ".join(str(w.message) for w in caught)
    assert "'nothing' (no value)" in said
    assert "without a known cell are left out: 1" in said
    np.testing.assert_array_equal(model.score_samples(rows), SOSREP(frame="scale").fit(rows).score_samples(rows))
    assert model.score_samples(more)[-1] == 0.0
    filled = model.impute(more)
    assert filled[NAMES].notna().all(axis=None)
    assert filled["nothing"].isna().all()
    X = np.array([[1.0, np.nan, 0.3], [2.0, np.nan, np.nan], [3.0, np.nan, 1.0]])
    with pytest.warns(DataWarning, match="column 1"):
        SOSREP(frame="scale").fit(X)
    with pytest.raises(InputError, match="known cell"):
        SOSREP(frame="scale").fit(np.full((3, 2), np.nan))


@KINDS
def test_arrays_have_gaps_in_numbers_and_categories_where_these_are_named(kind):
    rows = table(gaps=0.2)
    codes = rows["colour"].map({"red": 5.0, "blue": 2.0, "green": 9.0})
    X = np.column_stack([codes.to_numpy(float), rows[["x", "y"]].to_numpy()])
    frame = pd.DataFrame(X, columns=["c", "x", "y"])
    model, named = kind(categorical=[0], frame="scale").fit(X), kind(categorical=["c"], frame="scale").fit(frame)
    np.testing.assert_allclose(model.score_samples(X), named.score_samples(frame), rtol=1e-10)
    filled = model.impute(X)
    assert set(filled[:, 0]) <= {2.0, 5.0, 9.0}
    assert (filled[~np.isnan(X)] == X[~np.isnan(X)]).all()
    assert not np.isnan(filled).any()
    assert set(model.sample(50, random_state=0)[:, 0]) <= {2.0, 5.0, 9.0}
    numbers = kind(frame="scale").fit(X[:, 1:])
    assert numbers.impute(X[:, 1:]).shape == (len(X), 2)
    with pytest.raises(InputError, match="contains inf in column 0"):
        kind(frame="scale").fit(np.where(np.isnan(X), np.inf, X))


@KINDS
@KERNELS
def test_a_density_of_complete_numbers_answers_too(kind, kernel):
    rows = table()[["x", "y"]]
    model = kind(kernel=kernel, frame="scale").fit(rows)
    grid = np.arange(-12.0, 12.0, 0.02)
    line = pd.DataFrame({"x": 0.4, "y": grid})
    asked = pd.DataFrame({"x": [0.4], "y": [np.nan]})
    expected = 0.02 * np.exp(model.score_samples(line)).sum()
    assert np.exp(model.score_samples(asked)) == pytest.approx(expected, rel=1e-3)
    assert np.exp(model.marginal(["x"]).score_samples(asked)) == pytest.approx(expected, rel=1e-3)
    np.testing.assert_array_equal(
        kind(kernel=kernel, frame="scale").fit(rows.to_numpy()).score_samples(rows.to_numpy()),
        model.score_samples(rows),
    )


@KINDS
def test_imputing_training_rows_is_not_answered_by_their_own_fillings(kind):
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 15)) + 0.3 * rng.normal(size=(60, 15))
    X = whole.copy()
    gaps = rng.random(X.shape) < 0.3
    X[gaps] = np.nan
    model = kind(frame="scale").fit(X)
    own, new = model.impute(X), model.impute(X + 1e-6)  # no training rows any more: every centre answers
    errors = [np.sqrt(np.mean((filled - whole)[gaps] ** 2)) for filled in (own, new)]
    assert np.abs(own - new).max() > 0.05
    assert errors[0] < errors[1]


def test_search_moves_both_scales_and_judges_known_cells():
    rows = table(60, gaps=0.1)
    model = SOSREP(length_scale=Search(grid=[0.5, 1.0, 2.0], cv=3), frame="scale").fit(rows)
    assert model.search_path_.criterion == "likelihood"
    plain = SOSREP(frame="scale").fit(rows)
    factor = model.search_path_.best_factor
    np.testing.assert_allclose(model.length_scale_[[1, 3]], factor * plain.length_scale_[[1, 3]])
    wide, narrow = (SOSREP(length_scale=Search(grid=[f, 1.001 * f], cv=3), frame="scale") for f in (2.0, 0.5))
    with pytest.warns(DataWarning, match="of the grid"):
        wide.fit(rows), narrow.fit(rows)
    assert (wide.category_scale_ > plain.category_scale_)[[0, 2]].all()
    assert (narrow.category_scale_ < plain.category_scale_)[[0, 2]].all()
    with pytest.raises(InputError, match="likelihood"):
        SOSREP(length_scale=Search("hyvarinen"), frame="scale").fit(rows)


@KINDS
def test_category_scales_are_a_rule_or_numbers(kind):
    rows = table()
    model = kind(category_scale=[0.2, 0.4], length_scale=0.7, frame="scale").fit(rows)
    np.testing.assert_array_equal(model.category_scale_, [0.2, np.nan, 0.4, np.nan])
    np.testing.assert_array_equal(model.length_scale_, [np.nan, 0.7, np.nan, 0.7])
    for wrong in (0.0, 1.0, "silverman", [0.2], np.nan):
        with pytest.raises(InputError, match="category_scale"):
            kind(category_scale=wrong, frame="scale").fit(rows)


@KINDS
def test_bounds_times_and_level_sets(kind):
    rows = table()
    model = kind(bounds={"x": (-10.0, None)}, frame="scale").fit(rows)
    filled = model.impute(rows.assign(x=np.nan))
    assert (filled["x"] > -10.0).all()
    assert model.score_samples(rows.assign(x=-11.0)).max() == -np.inf
    assert (model.sample(20, random_state=0)["x"] > -10.0).all()
    model = kind(frame="scale").fit(table(200))
    inside = model.score_samples(table(400, seed=1)) >= model.level_set(0.8)
    assert inside.mean() == pytest.approx(0.8, abs=0.08)
    times = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=40, freq="7h"), "colour": rows["colour"]})
    times.loc[3, "when"] = pd.NaT
    drawn = kind(frame="scale").fit(times).sample(10, random_state=0)
    assert drawn["when"].between("2023-06-01", "2024-08-01").all()
    assert kind(frame="scale").fit(times).impute(times)["when"].notna().all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda rows: SOSREP(kernel="laplacian", frame="scale").fit(rows),
        lambda rows: SOSREP(kernel="laplacian", frame="scale").fit(rows[["x", "y"]]).marginal(["x"]),
        lambda rows: SOSREP(kernel="laplacian", frame="scale").fit([[np.nan, 1.0], [0.0, 1.0]]),
        lambda rows: KDE(kernel="matern52", frame="scale").fit(rows[["x", "y"]]).score_samples([[np.nan, 1.0]]),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_kernels_that_are_no_product_are_refused_by_name(ask):
    with pytest.raises(InputError, match=r"(Laplacian|NaN in).*kernel='gaussian' or ProductLaplacian"):
        ask(table())


def test_a_word_that_no_training_row_has_is_named():
    model = KDE(frame="scale").fit(table())
    with pytest.warns(
        DataWarning, match="given has a word for column 'colour' that no training row has; the column has '"
    ):
        model.conditional({"colour": "rde"})


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m: m.marginal(["z"]), "'z', which does not exist"),
        (lambda m: m.marginal(["x", "x"]), "different columns"),
        (lambda m: m.conditional({}), "dict from columns"),
        (lambda m: m.conditional({"x": np.nan}), "no value for column 'x'"),
        (lambda m: m.conditional({"colour": "red", "x": 1.0, "wet": True, "y": 0.0}), "leave at least one out"),
        (lambda m: m.impute(table(), "median"), "'mean' or 'draw'"),
        (lambda m: m.conditional({"x": 1.0}).interval(1.0), "between 0 and 1"),
        (lambda m: m.sample(0), "n_samples"),
        (lambda m: m.hyvarinen_loss(table()), "Hyvarinen"),
        (lambda m: m.plot(), "plot"),
    ],
)
def test_sentences(ask, words):
    with pytest.raises(InputError, match=words):
        ask(SOSREP(frame="scale").fit(table()))


@pytest.mark.parametrize(
    ("zone", "given", "words"),
    [
        (
            "Europe/Berlin",
            "2024-01-05",
            "time zone Europe/Berlin; write a given time with its zone, as 2024-01-31T12:00",
        ),
        (None, "2024-01-05T00:00Z", "no time zone; write a given time without one"),
    ],
)
def test_a_given_time_has_a_zone_if_its_column_has_one(zone, given, words):
    when = pd.date_range("2024-01-01", periods=40, freq="D", tz=zone)
    model = KDE(frame="scale").fit(table().assign(when=when))
    with pytest.raises(InputError, match=words):
        model.conditional({"when": given})
    assert model.conditional({"when": when[4]}).names == NAMES


def test_a_frame_without_rows_is_refused_as_such():
    with pytest.raises(InputError, match="X has no rows"):
        SOSREP().fit(table()[:0])
