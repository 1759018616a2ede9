"""Checks of input: errors, warnings, and input that passes without a message."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone

import isopleth
from estimators import ALL
from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DataWarning,
    DriftMonitor,
    InputError,
    MissingExtraError,
    RandomFeatureSOSREP,
    stein_test,
    two_sample_test,
)
from isopleth.core.errors import require
from isopleth.core.rows import merge_rows
from isopleth.difference import KDEDifference
from isopleth.tables.checks import numbered_groups

ROWS = np.random.default_rng(0).normal(size=(40, 3))

# An estimator that takes numbers only.
NUMBERS = RandomFeatureSOSREP(random_state=0)


def with_cell(value):
    X = ROWS.astype(object if isinstance(value, str) else float).copy()
    X[4, 1] = value
    return X


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.empty((0, 3)), "no rows"),
        (ROWS[:1], "1 sample"),
        (np.ones((5, 3)), "all rows of X are equal"),
        (np.repeat(ROWS[:1], 9, axis=0), "all rows of X are equal"),
        (with_cell(np.nan), r"NaN in column 1 \(1 row\)"),
        (with_cell(np.inf), r"inf in column 1 \(1 row\)"),
        (with_cell("tall"), "column 1: row 4 holds 'tall'"),
        (ROWS[:, 0], "one dimension"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous"),
        (csr_array(ROWS), "sparse"),
    ],
    ids=["empty", "one row", "equal rows", "equal real rows", "NaN", "inf", "text", "1-d", "ragged", "sparse"],
)
def test_refused(X, words):
    with pytest.raises((ValueError, TypeError), match=words):
        NUMBERS.fit(X)


def test_frames_are_refused_by_the_names_of_their_columns():
    frame = pd.DataFrame(ROWS.copy(), columns=["height", "weight", "age"])
    frame.loc[[2, 5], "weight"] = np.nan
    frame.loc[7, "age"] = np.inf
    with pytest.raises(InputError, match=r"NaN and inf in 'weight' \(2 rows\), 'age' \(1 row\)"):
        NUMBERS.fit(frame)
    text = pd.DataFrame(ROWS.copy(), columns=["height", "weight", "age"]).assign(city="Oslo")
    with pytest.raises(InputError, match="column 'city': row 0 holds 'Oslo'"):
        NUMBERS.fit(text)
    for frame in (
        pa.table({"age": [1.0, 2.0], "city": ["Oslo", "Rome"]}),
        pl.DataFrame({"age": [1.0], "city": ["Oslo"]}),
    ):
        with pytest.raises(InputError, match="column 'city'"):
            NUMBERS.fit(frame)
    numbered = pd.DataFrame(with_cell(np.nan), columns=[2, 0, 1])
    with pytest.raises(InputError, match="NaN in '0'"):
        NUMBERS.fit(numbered)
    with pytest.raises(InputError, match="several columns named 'a'"):
        NUMBERS.fit(pd.DataFrame(ROWS.copy(), columns=["a", "a", "b"]))
    with pytest.raises(InputError, match="series has several columns named 'a'"):
        ChangePointDetector().fit(pd.DataFrame(ROWS.copy(), columns=["a", "a", "b"]))
    with pytest.raises(InputError, match="no columns"):
        NUMBERS.fit(pd.DataFrame())
    with pytest.raises(InputError, match="structured"):
        NUMBERS.fit(np.zeros(3, dtype=[("a", float)]))
    with pytest.raises(InputError, match="column 'city'"):
        NUMBERS.fit(pl.DataFrame({"age": [1.0, 2.0], "city": ["Oslo", "Rome"]}))


TIMES = pd.date_range("2026-01-01", periods=40)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (pd.DataFrame({"a": ROWS[:, 0], "when": TIMES}), "dates or times in column 'when'"),
        (pd.DataFrame({"when": TIMES}), "dates or times in column 'when'"),
        (pd.DataFrame({"when": TIMES.tz_localize("UTC")}), "dates or times in column 'when'"),
        (pd.DataFrame({"a": ROWS[:, 0], "when": list(TIMES.date)}), "column 'when': row 0 holds datetime.date"),
        (pl.DataFrame({"a": ROWS[:, 0], "when": TIMES.to_numpy()}), "dates or times in column 'when'"),
        (np.array([["2026-01-01"], ["2026-01-02"]], dtype="datetime64[D]"), "dates or times in column 0"),
        (pd.DataFrame({"a": ROWS[:, 0], "s": pd.array(["x", None] * 20, dtype="string")}), "column 's': row 0"),
        (np.ma.masked_greater(ROWS, 1.0), "X contains NaN in column"),
        (pl.DataFrame({"a": ROWS[:, 0]}).lazy(), "lazy frame"),
        (ROWS + 1j, "Complex data not supported: X has them in column 0"),
        ([[10**400, 1], [2, 3]], "column 0: row 0 holds 1000"),
    ],
    ids=["mixed dates", "dates", "zones", "objects", "polars", "numpy", "strings", "masked", "lazy", "complex", "huge"],
)
def test_what_is_no_number_is_refused_by_its_column(X, words):
    with pytest.raises(InputError, match=words):
        NUMBERS.fit(X)


def test_rows_to_score_are_held_against_the_fit():
    model = NUMBERS.fit(ROWS)
    with pytest.raises(ValueError, match="2 features"):
        model.score_samples(ROWS[:, :2])
    with pytest.raises(InputError, match="NaN in column 1"):
        model.score_samples(with_cell(np.nan))
    assert model.score_samples(ROWS[:1]).shape == (1,)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.c_[ROWS, np.full(40, 3.0)], "constant columns are dropped: column 3"),
        (ROWS[:2], r"fewer distinct rows \(2\) than columns \(3\)"),
        (ROWS.astype(np.float16), "float16"),
    ],
    ids=["constant", "n < d", "float16"],
)
def test_warned_and_then_on(X, words):
    with pytest.warns(DataWarning, match=words):
        model = SOSREP(frame="scale").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(model.score_samples(X)).all()


def frozen(X):
    X = X.copy()
    X.setflags(write=False)
    return X


@pytest.mark.parametrize(
    "X",
    [
        np.rint(ROWS * 10).astype(int),
        frozen(ROWS),
        np.asfortranarray(ROWS),
        ROWS.astype(np.float32),
        ROWS + 1e8,
        np.concatenate([ROWS, ROWS]),
        ROWS.tolist(),
        pd.DataFrame(ROWS, columns=list("abc")),
        pl.DataFrame({c: ROWS[:, j] for j, c in enumerate("abc")}),
        pa.table({c: ROWS[:, j] for j, c in enumerate("abc")}),
        ROWS > 0,
    ],
    ids=[
        "integers",
        "read-only",
        "Fortran",
        "float32",
        "offset",
        "duplicates",
        "list",
        "pandas",
        "polars",
        "arrow",
        "booleans",
    ],
)
def test_silent_and_right(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = SOSREP(length_scale=1.0, frame="scale").fit(X).score_samples(X)
    plain = np.asarray(X, dtype=np.float64)
    if plain.mean() > 1e7:
        plain = plain - 1e8
    np.testing.assert_allclose(
        got, SOSREP(length_scale=1.0, frame="scale").fit(plain).score_samples(plain), rtol=1e-7, atol=1e-7
    )


def test_merged_rows_keep_weight_and_place():
    X = np.array([[1.0, -0.0], [0.0, 2.0], [1.0, 0.0], [5.0, 5.0]])
    rows, weights, place = merge_rows(X, np.array([1.0, 2.0, 3.0, 0.0]))
    np.testing.assert_array_equal(rows, [[0, 2], [1, 0]])
    np.testing.assert_array_equal(weights, [2, 4])
    np.testing.assert_array_equal(place, [1, 0, 1, -1])


def test_a_missing_extra_is_one_sentence_that_names_it():
    with pytest.raises(MissingExtraError, match=r"Plots needs no_such_package.*\(extra 'plot'\)"):
        require("no_such_package", "plot", "Plots")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a", 1.0, "a"], "mix words and numbers"),
        (["1", 1, "1"], "mix words and numbers"),
        ([1.0, np.nan, 2.0], "row 1 of X has no group"),
        (["a", None, "b"], "row 1 of X has no group"),
        ([1, 2], r"shape \(2,\); expected one label a row, \(3,\)"),
    ],
)
def test_groups_that_cannot_be_used(labels, said):
    with pytest.raises(InputError, match=said) as raised:
        numbered_groups([labels], [3])
    assert raised.value.parameter == "groups"


@pytest.mark.parametrize("fit", ["monitor", "detector", "test"])
def test_all_tasks_with_groups_check_them_alike(fit):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 2)), np.repeat(np.arange(15.0), 4)
    groups[7] = np.nan
    tasks = {
        "monitor": lambda: isopleth.DriftMonitor(10, 50).fit(X, groups=groups),
        "detector": lambda: isopleth.AnomalyDetector(novelty=True).fit(X, groups=groups),
        "test": lambda: isopleth.two_sample_test(X, X, groups=(groups, groups)),
    }
    with pytest.raises(InputError, match="row 7 of X has no group"):
        tasks[fit]()


def test_groups_are_numbered_alike_in_all_tables():
    one, two = numbered_groups([["b", "a", "b"], ("a", "c")], [3, 2], ("X", "Y"))
    assert one.tolist() == [1, 0, 1]
    assert two.tolist() == [0, 2]


def test_masked_cells_are_missing_cells():
    masked = np.ma.masked_greater(ROWS, 1.0)
    one, two = (AnomalyDetector(random_state=0).fit(X) for X in (masked, masked.filled(np.nan)))
    np.testing.assert_array_equal(one.training_scores_, two.training_scores_)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[2**53 + 1, 1], [2**53 + 2, 2], [5, 3]], dtype=np.uint64),
        pd.DataFrame({"a": [2**53 + 1, 2**53 + 2, 5], "b": [1, 2, 3]}),
        pl.DataFrame({"a": [2**53 + 1, 2**53 + 2, None], "b": [1, 2, 3]}),
        np.ma.masked_equal(np.array([[2**53 + 1, 1], [2**53 + 2, 2], [5, 3]]), 5),
    ],
    ids=["uint64", "pandas", "polars", "masked"],
)
def test_whole_numbers_that_would_become_equal_are_refused(X):
    with pytest.raises(InputError, match="would round") as caught:
        AnomalyDetector(random_state=0).fit(X)
    assert caught.value.row == 0


OF_EACH_CLASS = list({type(model): model for model in reversed(ALL)}.values())
STAND_INS = {
    "matrix": (csr_array(ROWS), r"toarray\(\)"),
    "sparse frame": (pd.DataFrame.sparse.from_spmatrix(csr_array(ROWS)), r"sparse\.to_dense\(\)"),
    "lazy": (pl.DataFrame(dict(zip("abc", ROWS.T, strict=True))).lazy(), r"\.collect\(\)"),
    "lists": (
        pd.DataFrame(ROWS, columns=["a", "b", "c"]).assign(b=[[1.0]] * len(ROWS)),
        "(has lists or records in column 'b'|needs complete rows of numbers)",
    ),
    "records": (
        pl.DataFrame({"a": ROWS[:, 0], "b": [{"c": 1.0}] * len(ROWS)}),
        "(has lists or records in column 'b'|needs complete rows of numbers)",
    ),
    "file": ("rows.csv", r" is 'rows\.csv'.* read it with isopleth\.read_table"),
    "path": (Path("rows.csv"), r" is \w*Path\('rows\.csv'\).* isopleth\.read_table"),
    "none": (None, r"is of type NoneType; expected a table"),
    "number": (3.0, r"is of type float; expected a table"),
    "three axes": (ROWS[:, None], r"has shape \(40, 1, 3\); expected rows and columns, such as .*reshape\(40, -1\)"),
}


@pytest.mark.parametrize("form", STAND_INS)
@pytest.mark.parametrize(
    "model",
    [*OF_EACH_CLASS, two_sample_test, stein_test],
    ids=lambda model: getattr(model, "__name__", type(model).__name__),
)
def test_what_is_no_table_yet_says_what_to_call(model, form):
    X, words = STAND_INS[form]
    also = {LSDD: [ROWS], KDEDifference: [ROWS], ClassPriorEstimator: [ROWS[:, 0] > 0]}.get(type(model), [])
    fit = clone(model).fit if isinstance(model, BaseEstimator) else model
    if not isinstance(model, BaseEstimator):
        also = [ROWS if model is two_sample_test else np.negative]
    with pytest.raises((InputError, TypeError), match=words):
        fit(X, *also)


def test_detectors_take_no_weights():
    """A copy of a row is the same observation recorded again, so that a weight of 2 would mean nothing."""
    with pytest.raises(TypeError, match="sample_weight"):
        AnomalyDetector().fit(ROWS, sample_weight=np.ones(len(ROWS)))
    assert "sample_weight" in AnomalyDetector.__doc__


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.empty((0, 2)), "X has no rows; expected at least 2."),
        (pl.DataFrame({"a": ["x"], "b": [1.0]}), "X has only 1 sample; expected at least 2 rows."),
        ([[1.0, 2.0]], "X has only 1 sample; expected at least 2 rows."),
        (
            [1.0, 2.0, 3.0],
            "X has one dimension; Reshape your data: X.reshape(-1, 1) is one column, X.reshape(1, -1) one row.",
        ),
        ([{"a": 1.0}, {"a": 2.0}], "X is a list of dicts; make a table of it, as in pandas.DataFrame(X)."),
    ],
)
@pytest.mark.parametrize("model", [KDE(), AnomalyDetector(), NUMBERS], ids=lambda model: type(model).__name__)
def test_too_few_rows_and_no_table_are_one_sentence(model, X, said):
    if model is NUMBERS and isinstance(X, pl.DataFrame):
        X = X.select("b")
    with pytest.raises(InputError) as caught:
        clone(model).fit(X)
    assert str(caught.value) == said


def test_an_empty_second_sample_is_called_by_its_name():
    with pytest.raises(InputError, match=r"^Y has no rows; expected at least 1\.$"):
        LSDD().fit(ROWS, ROWS[:0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t[["b", "a"]], "X has its columns in another order than at fit"),
        (lambda t: t[["a"]], "X lacks 'b', unlike the table of the fit"),
        (lambda t: t.assign(c=1.0), "X also has 'c', unlike the table of the fit"),
        (lambda t: t.rename(columns={"b": "c"}), "X lacks 'b' and also has 'c', unlike the table of the fit"),
    ],
)
def test_a_frame_with_other_columns_than_at_fit_names_them(change, said):
    frame = pd.DataFrame(ROWS[:, :2], columns=["a", "b"])
    model = clone(NUMBERS).fit(frame)
    for library in (pd.DataFrame, pl.from_pandas, pa.Table.from_pandas):
        with pytest.raises(InputError) as caught:
            model.score_samples(library(change(frame)))
        assert str(caught.value) == f"{said}; expected 'a', 'b', in this order."


def test_columns_whose_distances_overflow_are_one_sentence_and_single_values_are_not_refused():
    x = np.random.default_rng(0).normal(size=60)
    X = np.column_stack([np.clip(x / np.abs(x).max() * 1.79e308, -1.79e308, 1.79e308), x])
    mixed = pd.DataFrame(X, columns=["a", "b"]).assign(w=["u", "v"] * 30)
    for ask in (
        lambda: AnomalyDetector(random_state=0).fit(X),
        lambda: DriftMonitor(expected_run_length=20, window=4).fit(X),
        lambda: two_sample_test(X, X, n_resamples=9),
        lambda: LSDD(centers=5).fit(mixed, mixed),
        lambda: KDE().fit(mixed),
    ):
        with pytest.raises(InputError, match=r"(column 0|'a') is of a size that leaves no length scale; rescale it"):
            ask()
    AnomalyDetector(random_state=0).fit(np.column_stack([np.where(np.arange(60) == 7, 1.79e308, x), x]))
