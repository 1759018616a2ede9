"""What every result has: a table in the caller's library, JSON, a picture, a page and a view for notebooks."""

from __future__ import annotations

import copy
import json
import math
import warnings
from html.parser import HTMLParser

import jsonschema
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isopleth import InputError, tasks
from isopleth.results import Result
from isopleth.results.keys import Key, object_schema
from isopleth.results.result import as_frame, plain
from isopleth.results.text import cell_text, in_words
from results.result_cases import CASES, NAMES, ROWS, result_of

FRAMES = {
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "polars": lambda rows: pl.DataFrame(rows, schema=NAMES),
    "pyarrow": lambda rows: pa.table(dict(zip(NAMES, rows.T, strict=True))),
}
TYPES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
each_result = pytest.mark.parametrize("name", CASES)


class Cells(HTMLParser):
    """Cells of the tables of a page, and elements that are not closed."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "wbr", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def test_every_public_result_is_one():
    holders = {
        "Witness",
        "ConfidenceInterval",
        "Separation",
        "ShiftGiven",
        "ShiftsInGroups",
        "GroupsSought",
        "DriftState",
        "AnytimeState",
    }
    results = {name for name in tasks.__all__ if name[0].isupper() and not hasattr(getattr(tasks, name), "get_params")}
    assert {name for name in results if issubclass(getattr(tasks, name), Result)} == results - holders
    covered = {type(result_of(name)).__name__ for name in CASES}
    # tests/cli has the commands of three, and tests/tasks/drift/test_context.py the pages of a stream with times.
    of_files = {"Expectation", "FilledCells", "TableDescription", "DriftPages"}
    assert covered == results - holders - of_files


@each_result
def test_the_table_is_in_the_library_of_the_caller(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CASES[name](FRAMES["polars"])
    agrees(result, "polars")


@each_result
@pytest.mark.parametrize("library", FRAMES)
def test_tables_of_all_libraries_have_the_same_cells(name, library):
    agrees(copy.copy(result_of(name)).like(FRAMES[library](ROWS)), library)


def agrees(result, library):
    """Compare the table of a result with the columns that it was made from."""
    table = result.table()
    assert isinstance(table, TYPES[library])
    frame, expected = nw.from_native(table), result._columns()
    assert frame.columns == list(expected)
    for column, values in expected.items():
        found = frame[column].to_list()
        if np.asarray(values).dtype.kind == "f":
            np.testing.assert_array_equal(np.array(found, dtype=float), values)
        else:
            assert found == list(values)


def test_columns_of_numbers_and_words_are_text_where_a_library_has_none_of_both():
    mixed = {"value": np.array([-1.25, "c", None, float("nan"), np.str_("d")], dtype=object), "plain": np.arange(5)}
    assert as_frame(mixed, "pandas").value.tolist()[:2] == [-1.25, "c"]
    for library in ("polars", "pyarrow"):
        frame = nw.from_native(as_frame(mixed, library))
        assert frame["value"].to_list() == ["-1.25", "c", None, None, "d"]
        assert frame["plain"].to_list() == [0, 1, 2, 3, 4]


@each_result
def test_tables_of_arrays_are_of_pandas_where_it_is_installed(name):
    assert isinstance(result_of(name).table(), pd.DataFrame)


def test_without_pandas_tables_are_of_polars_and_then_of_pyarrow(monkeypatch):
    for missing, kind in (({"pandas"}, pl.DataFrame), ({"pandas", "polars"}, pa.Table)):
        monkeypatch.setattr(
            "isopleth.results.result.find_spec", lambda name, missing=missing: None if name in missing else name
        )
        assert isinstance(as_frame({"a": np.arange(3)}), kind)


@each_result
def test_json_is_as_the_result_declares_its_keys(name):
    result = result_of(name)
    facts = {key: fact.key for key, fact in result.facts.items()}
    items = {key: fact.items for key, fact in result.facts.items()} | {"table": result.row_keys}
    common = {"result": Key("string", ""), "isopleth": Key("string", "")}
    common |= dict.fromkeys(("summary", "warnings"), Key("list of string", ""))
    table = {"table_rows": Key("integer", ""), "table": Key("list of object", "")}
    schema = object_schema(common | facts | table, items)
    values = json.loads(json.dumps(result.to_dict()))
    jsonschema.validate(values, schema)
    assert list(values)[4:-2] == list(facts)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values | {"unknown": 1}, schema)


@each_result
def test_json_holds_the_table_and_comes_back(name):
    result = result_of(name)
    values = result.to_dict()
    again = json.loads(json.dumps(values, allow_nan=False))
    assert again == values
    assert list(values)[:3] == ["result", "isopleth", "summary"]
    assert all(isinstance(sentence, str) and sentence.endswith((".", ")")) for sentence in values["summary"])
    columns = result._columns()
    assert len(values["table"]) == len(next(iter(columns.values())))
    for row, entry in enumerate(values["table"]):
        for column, value in entry.items():
            expected = plain(columns[column][row])
            assert value == expected
    first = result.to_dict(most=1)
    assert len(first["table"]) <= 1
    assert first["table_rows"] == len(values["table"])  # of a part it is said how many there are


def _unknown(notes, result, columns):
    """Return columns of the result that notes explain and that are not among `columns`, such as before_0 of before."""
    names = {name for table in result.content().tables for name in table.columns} | set(result.row_keys)
    heads = [note.split(":")[0].removesuffix(" of a column") for note in notes if ":" in note]
    explained = {name for head in heads for name in head.split(" and ") if name in names} - {
        "flagged",
        "certain",
        "repairable",
    }
    return {name for name in explained if not any(f"{column}_".startswith(f"{name}_") for column in columns)}


@each_result
def test_only_columns_that_are_shown_are_explained(name):
    result = result_of(name)
    content, (sentences, *_) = result.content(), result.text().split("\n\n")
    every = [column for table in content.tables for column in table.columns]
    assert not _unknown(content.notes, result, every)
    notes = result.text().splitlines()[len(sentences.splitlines()) :]
    assert not _unknown(notes, result, content.tables[0].brief or list(content.tables[0].columns))
    assert all(note in content.notes for table in content.tables for note in table.legend.values())


@each_result
def test_the_notebook_shows_sentences_and_at_most_ten_rows(name):
    result = result_of(name)
    text = result._repr_html_()
    page = Cells(text)
    columns = result._columns()
    assert len(page.cells) <= 10 * len(columns)
    assert not page.open
    length = len(next(iter(columns.values())))
    assert text.count("<tr>") == 1 + min(10, length)
    assert text.count(" more rows are in ") == (length > 10)


@each_result
def test_pictures_are_drawn(name):
    pytest.importorskip("matplotlib")
    result = result_of(name)
    if name == "equal rows":
        with pytest.raises(InputError, match="nothing to draw"):
            result.plot()
        return
    drawn = result.plot()
    assert getattr(drawn, "figure", drawn).axes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(1.5), 1.5),
        (np.nan, None),
        (np.array([1.0, np.inf]), [1.0, None]),
        (np.int64(3), 3),
        (np.bool_(True), True),
        ({"a": (1, np.str_("b"))}, {"a": [1, "b"]}),
        (np.datetime64("2024-01-31"), "2024-01-31"),
        (None, None),
    ],
)
def test_plain_values(value, expected):
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


def test_lists_in_sentences():
    said = ["", "a", "a and b", "a, b, c, d and e", "a, b, c, d, e and 1 more"]
    assert [in_words("abcdef"[:count]) for count in (0, 1, 2, 5, 6)] == said


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (3_000_000.0, "3000000"),
        (-999_999_999_999_999.0, "-999999999999999"),
        (1e15, "1e+15"),  # not all digits of larger numbers are known
        (0.123456789, "0.123457"),
        (math.nan, ""),
        (None, ""),
        (True, "yes"),
        (12, "12"),
        ("a", "a"),
    ],
)
def test_cells_as_text(cell, text):
    assert cell_text(cell) == text
    assert cell_text(np.asarray(cell).item() if cell is not None else None) == text


def test_estimators_keep_the_view_of_scikit_learn():
    from isopleth import AnomalyDetector

    assert "sk-" in AnomalyDetector()._repr_html_()
    assert not issubclass(AnomalyDetector, Result)


def test_anomalies_of_the_fit_are_those_of_the_detector():
    from isopleth import AnomalyDetector
    from results.result_cases import AFTER, ROWS

    detector = AnomalyDetector(n_estimators=10, random_state=0).fit(ROWS)
    own = detector.anomalies(ROWS, fdr=0.2)
    assert own.resolution == 0.1 / len(ROWS)
    np.testing.assert_array_equal(own.p_values, np.maximum(detector.p_values_, own.resolution))
    assert own.to_dict()["table"][0]["pvalue"] == own.resolution == own.to_dict()["pvalue_resolution"]
    np.testing.assert_array_equal(own.labels, detector.training_labels_)
    np.testing.assert_array_equal(own.certain, detector.select(fdr=0.2))
    new = detector.anomalies(AFTER)
    np.testing.assert_array_equal(new.p_values, detector.p_values(AFTER))
    np.testing.assert_array_equal(new.labels, detector.predict(AFTER))
    np.testing.assert_array_equal(new.certain, detector.select(AFTER))
    table = own.table()
    np.testing.assert_array_equal(table["score"], np.sort(own.scores))
    assert table["row"][0] == 7


def test_words_of_a_table_are_shown_as_they_are():
    from dataclasses import replace

    cells = np.empty((120, 4), dtype=object)
    cells[:, :3], cells[:, 3] = result_of("anomalies").values, "Rome"
    result = replace(result_of("anomalies"), values=cells, names=[*NAMES, "city"])
    names, numbers = result.numbers
    assert names == NAMES
    np.testing.assert_array_equal(numbers, result_of("anomalies").values)
    assert result.plot().axes
