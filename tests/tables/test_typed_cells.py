"""Numbers and codes as cells of the types that a table has."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isopleth import DensityImputer
from isopleth.tables.cells import TRUTH
from isopleth.tables.coded_cells import decode_cells, new_table
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema
from isopleth.tables.typed_cells import in_types, types_of, write_cells

AT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("kind", "value", "other", "expected"),
    [
        ("numeric", 1.75, 2.5, 1.75),
        ("numeric", 1.75, 2, 2),
        ("numeric", 1.75, timedelta(hours=1), timedelta(seconds=1.75)),
        ("numeric", 1.75, np.timedelta64(1, "s"), np.timedelta64(1_750_000, "us")),
        ("numeric", 1.756, Decimal("0.50"), Decimal("1.76")),
        ("numeric", 1.75, "2.5", "1.75"),
        ("time", AT, datetime(2020, 1, 1, 5), datetime(2024, 5, 6, 7, 8, 9)),
        ("time", AT, datetime(2020, 1, 1), datetime(2024, 5, 6)),  # a whole day, as the others are
        (
            "time",
            AT,
            datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            datetime(2024, 5, 6, 9, 8, 9, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("time", AT, date(2020, 1, 1), date(2024, 5, 6)),
        ("time", 3723.5, time(12), time(1, 2, 3, 500_000)),
        ("time", AT, "2020-01-01", "2024-05-06 07:08:09"),
        ("time", AT, np.datetime64("2020-01-01"), np.datetime64("2024-05-06T07:08:09")),
        ("categorical", 1.0, "a", "b"),
    ],
)
def test_a_cell_has_the_type_of_the_others(kind, value, other, expected):
    column = Column(0, kind, levels=("a", "b") if kind == "categorical" else ())
    X = np.array([[None], [other]], dtype=object)
    gaps = np.array([[True], [False]])
    found = write_cells(X, Schema((column,), {}, (), False, 1), np.array([[value], [np.nan]]), gaps)
    assert (found[0, 0], type(found[0, 0]), found[1, 0]) == (expected, type(expected), other)
    assert X[0, 0] is None


def test_a_number_among_whole_and_other_numbers_is_not_rounded():
    X, gaps = np.array([[None], [2], [2.5]], dtype=object), np.array([[True], [False], [False]])
    assert write_cells(X, Schema((Column(0, "numeric"),), {}, (), False, 1), np.full((3, 1), 1.75), gaps)[0, 0] == 1.75


def test_codes_become_words_truth_values_or_numbers():
    codes = np.array([1.0, np.nan, 0.0])
    words, truths, numbers = (Column("x", "categorical", levels=levels) for levels in (("a", "b"), TRUTH, ("1", "20")))
    assert decode_cells(words, codes) == ["b", None, "a"]
    assert decode_cells(truths, codes) == [True, None, False]
    assert decode_cells(truths, codes, "yes") == ["True", None, "False"]
    assert decode_cells(numbers, codes) == ["20", None, "1"]
    for like, kind in ((3, int), (3.0, float)):
        found = decode_cells(numbers, codes, like)
        assert (found, type(found[0])) == ([20, None, 1], kind)


def test_cells_of_several_types_are_filled_with_cells_of_the_column():
    frame = pd.DataFrame({"x": np.arange(40.0), "code": pd.Series([1, "a", 2.5, None] * 10, dtype=object)})
    filled = DensityImputer().fit_transform(frame)["code"].tolist()
    assert all(any(type(cell) is type(one) and cell == one for one in (1, "a", 2.5)) for cell in filled)


def test_times_of_a_zone_are_datetimes_of_it():
    column = Column("x", "time", origin=AT, zone="+05:30")
    found = decode_cells(column, np.array([0.5, np.nan]))
    assert (found[0].isoformat(), found[1]) == ("2024-05-06T12:38:09.500000+05:30", None)
    unknown = decode_cells(Column("x", "time", origin=AT, zone="Nowhere/Town"), np.zeros(1))[0]
    assert unknown.isoformat() == "2024-05-06T07:08:09+00:00"


def test_new_rows_are_a_frame_or_an_array_of_numbers_or_objects():
    number, word = Column("a", "numeric"), Column("b", "categorical", levels=("u", "v"))
    digit = Column("c", "categorical", levels=("1", "2.5"))
    values = np.array([[1.5, 0.0], [np.nan, 1.0]])
    mixed, plain = (Schema((number, column), {}, (), True, 2) for column in (word, digit))
    for library, module in (("pandas", pd), ("polars", pl)):
        frame = new_table(mixed, values, library)
        assert isinstance(frame, module.DataFrame)
        assert list(frame.columns) == ["a", "b"]
        assert frame["b"].to_list() == ["u", "v"]
    np.testing.assert_array_equal(new_table(plain, values, None), [[1.5, 1.0], [np.nan, 2.5]])
    objects = new_table(mixed, values, None)
    assert (objects.dtype, objects[:, 1].tolist(), objects[0, 0]) == (object, ["u", "v"], 1.5)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_seconds_become_durations_of_the_unit_of_the_table(library, unit):
    if library == "polars" and unit == "s":  # polars has no durations in seconds
        return
    like, rows = pa.table({"x": pa.array([timedelta(minutes=1)], pa.duration(unit))}), pa.table({"x": [5400.0, 7.0]})
    if library == "pandas":
        like, rows = like.to_pandas(), rows.to_pandas()
    if library == "polars":
        like, rows = pl.from_arrow(like), pl.from_arrow(rows)
    found = in_types(rows, types_of(like))
    assert types_of(found) == types_of(like)
    cells = found["x"].to_pylist() if library == "pyarrow" else found["x"].to_list()
    assert cells == [timedelta(minutes=90), timedelta(seconds=7)]
