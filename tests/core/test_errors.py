"""Errors and warnings about input carry fields, and are worded from them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from isopleth import (
    LSDD,
    SOSREP,
    AnomalyDetector,
    ChangePointDetector,
    DataWarning,
    InputError,
    KernelScore,
    MissingExtraError,
    two_sample_test,
)
from isopleth.core.errors import Hint, Message, listed, meant, require
from isopleth.tables.schema import Schema


def told(error: InputError) -> dict[str, object]:
    fields = {name: getattr(error, name) for name in ("parameter", "column", "row", "value")}
    return {name: field for name, field in fields.items() if field is not None}


def test_the_sentence_is_made_from_the_fields():
    how = Hint("leave it out with {exclude}", exclude=["a", ...])
    error = InputError("{column} holds {value} in {row}", column="a", row=3, value="x", hint=how)
    assert str(error) == "column 'a' holds 'x' in row 3; leave it out with `exclude=['a', ...]`."
    assert (error.hint, error.message.hint.settings) == (
        "leave it out with `exclude=['a', ...]`",
        {"exclude": ["a", ...]},
    )
    located = error.located("t.csv", lambda row: f"line {row + 2}")
    assert str(located) == "t.csv: column 'a' holds 'x' in line 5; leave it out with `exclude=['a', ...]`."
    assert told(located) == told(error) == {"column": "a", "row": 3, "value": "x"}


def test_names_with_braces_and_control_characters_stay_as_they_are():
    error = InputError("{column} has {row} and {other}", column="{value}\x1b[31m", value=1)
    assert str(error) == "column '{value}\\x1b[31m' has row None and {other}"


def test_lists_are_cut_places_stay_and_warnings_point_at_the_caller():
    assert listed(list("abcdefghi")) == "a, b, c, d, e, f, g, h and 1 more"
    located = InputError("{row} is empty", row=3).located("t.csv", lambda row: f"line {row + 2}")
    assert str(located.located("u.csv")) == "u.csv: line 5 is empty"
    with pytest.raises(MissingExtraError, match=r"needs no_module_x, .*: pip install no_module_x \(extra 'plot'\)"):
        require("no_module_x.part", "plot", "Plotting")
    with pytest.warns(DataWarning, match="constant") as caught:
        SOSREP(frame="scale").fit(np.column_stack([ROWS, np.ones(30)]))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("kind", [InputError, DataWarning])
def test_fields_survive_pickling(kind):
    again = pickle.loads(pickle.dumps(kind("{parameter} is {value}", parameter="X", value=[1])))
    assert (str(again), again.parameter, again.value) == ("X is [1]", "X", [1])


ROWS = np.random.default_rng(0).normal(size=(30, 2))


def bad(cell: object) -> pd.DataFrame:
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).astype(object)
    frame.loc[7, "b"] = cell
    return frame


def test_a_long_value_is_shortened_and_not_asked_to_be_typed():
    error = InputError(
        "{column} holds {value}", column="b" * 999, value="x" * 999, hint=Hint("say {missing}", missing=["x" * 999])
    )
    assert str(error).endswith(f"{'x' * 14}'; say `missing=[...]`.")
    assert len(str(error)) < 300
    assert error.value == "x" * 999


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        (lambda: KernelScore().fit(bad("x")), {"parameter": "X", "column": "b", "row": 7, "value": "x"}),
        (lambda: LSDD().fit(ROWS, np.where(ROWS[3, 1] == ROWS, np.inf, ROWS)), {"parameter": "Y", "column": 1, "row": 3}),
        (lambda: LSDD().fit(ROWS, ROWS[:, :1]), {"parameter": "Y", "value": 1}),
        (lambda: SOSREP(frame="scale").fit(ROWS, sample_weight=-np.arange(30)), {"parameter": "sample_weight", "row": 1}),
        (lambda: LSDD().fit(ROWS, ROWS, np.ones(3)), {"parameter": "sample_weight_x", "value": (3,)}),
        (lambda: two_sample_test(ROWS, ROWS, memory_limit=-1), {"parameter": "memory_limit", "value": -1}),
        (lambda: AnomalyDetector().fit(ROWS.astype("datetime64[s]")), {"parameter": "X", "column": 0}),
        (lambda: ChangePointDetector().fit(np.full((30, 2), np.inf)), {"parameter": "series", "column": 0, "row": 0}),
        (lambda: ChangePointDetector().fit(ROWS, times=np.zeros(30)), {"row": 1, "value": 0.0}),
        (lambda: Schema.of(bad(1.0), numeric=["b"]).encode(bad("x")), {"column": "b", "row": 7, "value": "x"}),
    ],
)  # fmt: skip
def test_an_error_names_parameter_column_row_and_value(call, fields):
    with pytest.raises(InputError) as caught:
        call()
    assert told(caught.value) == fields
    assert isinstance(caught.value.message, Message)


def test_similar_names_are_offered_for_unknown_columns():
    assert meant(["colr", "heigth_of"], ["size", "Colour", "height"]) == ", perhaps 'Colour', 'height' are meant"
    assert meant(["weight"], ["a", 3]) == ""
    table = pd.DataFrame({"time": pd.date_range("2024", periods=20), "pressure_in": np.arange(20.0)})
    with pytest.raises(InputError, match=r"no column 'tmie' .*, perhaps 'time' is meant"):
        ChangePointDetector().fit(table, times="tmie")
