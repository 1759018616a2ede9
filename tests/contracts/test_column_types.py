"""Columns of every type of pandas (NumPy, nullable, Arrow), polars and pyarrow go through every task that takes tables.

They come back as what they were from the tasks that return tables, or they are left out or refused by name.
"""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from isopleth import (
    KDE,
    LSDD,
    AnomalyDetector,
    ClassPriorEstimator,
    DataWarning,
    DensityImputer,
    DriftMonitor,
    InputError,
    read_table,
    two_sample_test,
)
from isopleth.kernels import ProductLaplacian
from isopleth.tasks import TableDescription, make_rows

N = 36
RNG = np.random.default_rng(0)
INTS = RNG.integers(0, 40, N).tolist()
GAPS = [i % 9 == 4 for i in range(N)]
TIMES = [datetime(2024, 1, 1) + timedelta(hours=7 * i) for i in INTS]


def gaps(cells):
    return [None if gap else cell for gap, cell in zip(GAPS, cells, strict=True)]


WHOLE, REAL, TRUTH = gaps(INTS), gaps([i / 4 for i in INTS]), gaps([i % 2 == 0 for i in INTS])
WORDS = gaps([["aa", "b", "c'c"][i % 3] for i in INTS])
DATES, CLOCKS = gaps([t.date() for t in TIMES]), gaps([t.time() for t in TIMES])
MOMENTS, ZONED = gaps(TIMES), gaps([t.replace(tzinfo=UTC) for t in TIMES])
LENGTHS = gaps([timedelta(minutes=13 * i) for i in INTS])
DECIMALS = gaps([Decimal(25 * i).scaleb(-2) for i in INTS])
UNITS = ("s", "ms", "us", "ns")
BYTES = [word and word.encode() for word in WORDS]

ARROW = {
    **{
        kind: pa.array(WHOLE, kind)
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    "float16": pa.array([None if cell is None else np.float16(cell) for cell in REAL], pa.float16()),
    **{kind: pa.array(REAL, kind) for kind in ("float", "double")},
    "bool": pa.array(TRUTH),
    **{kind: pa.array(WORDS, kind) for kind in ("string", "large_string", "string_view")},
    "codes": pa.array(WORDS).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.large_string())),
    **{f"timestamp {unit}": pa.array(MOMENTS, pa.timestamp(unit)) for unit in UNITS},
    "zoned": pa.array(ZONED, pa.timestamp("us", "Europe/Berlin")),
    "date32": pa.array(DATES, pa.date32()),
    "date64": pa.array(DATES, pa.date64()),
    **{f"time {unit}": pa.array(CLOCKS, pa.time32(unit)) for unit in UNITS[:2]},
    **{f"time {unit}": pa.array(CLOCKS, pa.time64(unit)) for unit in UNITS[2:]},
    **{f"duration {unit}": pa.array(LENGTHS, pa.duration(unit)) for unit in UNITS},
    "decimal": pa.array(DECIMALS, pa.decimal128(8, 2)),
    "runs": pc.run_end_encode(pa.array(WHOLE)),
    "binary": pa.array(BYTES),
    "null": pa.nulls(N),
}
PANDAS = {
    **{kind: pd.Series(INTS, dtype=kind) for kind in ("int8", "int16", "int32", "int64", "uint8", "uint32")},
    **{kind: pd.Series(REAL, dtype=kind) for kind in ("float16", "float32", "float64")},
    **{kind: pd.array(WHOLE, dtype=kind) for kind in ("Int8", "Int32", "Int64", "UInt8", "UInt64")},
    **{kind: pd.array(REAL, dtype=kind) for kind in ("Float32", "Float64")},
    "boolean": pd.array(TRUTH, dtype="boolean"),
    **{
        f"object {name}": pd.Series(cells, dtype=object)
        for name, cells in {
            "truth": TRUTH,
            "words": WORDS,
            "dates": DATES,
            "clocks": CLOCKS,
            "lengths": LENGTHS,
            "decimals": DECIMALS,
            "bytes": BYTES,
        }.items()
    },
    **{kind: pd.array(WORDS, dtype=kind) for kind in ("string", "string[pyarrow]")},
    **{f"datetime {unit}": pd.Series(MOMENTS).astype(f"datetime64[{unit}]") for unit in UNITS},
    **{f"timedelta {unit}": pd.Series(LENGTHS).astype(f"timedelta64[{unit}]") for unit in UNITS},
    "zoned": pd.Series(ZONED).dt.tz_convert("Europe/Berlin"),
    "category": pd.Categorical(WORDS),
    "ordered": pd.Categorical(WORDS, categories=["b", "aa", "never", "c'c"], ordered=True),
    "numbered": pd.Categorical(gaps([i % 3 for i in INTS])),
    "period": pd.PeriodIndex(pd.Series(MOMENTS), freq="D"),
    "interval": pd.arrays.IntervalArray.from_breaks(range(4)).take([i % 3 for i in range(N)]),
}
POLARS = {
    **{
        kind: pl.Series(WHOLE, dtype=getattr(pl, kind))
        for kind in ("Int8", "Int32", "Int64", "Int128", "UInt8", "UInt64")
    },
    **{kind: pl.Series(REAL, dtype=getattr(pl, kind)) for kind in ("Float32", "Float64")},
    **{kind: pl.Series(WORDS, dtype=getattr(pl, kind)) for kind in ("String", "Categorical")},
    "Boolean": pl.Series(TRUTH),
    "Enum": pl.Series(WORDS, dtype=pl.Enum(["b", "aa", "never", "c'c"])),
    "Date": pl.Series(DATES),
    "Time": pl.Series(CLOCKS),
    **{f"Datetime {unit}": pl.Series(MOMENTS, dtype=pl.Datetime(unit)) for unit in UNITS[1:]},
    **{f"Duration {unit}": pl.Series(LENGTHS, dtype=pl.Duration(unit)) for unit in UNITS[1:]},
    "zoned": pl.Series(ZONED, dtype=pl.Datetime("us", "Europe/Berlin")),
    "Decimal": pl.Series(DECIMALS, dtype=pl.Decimal(8, 2)),
    "Binary": pl.Series(BYTES),
    "Null": pl.Series([None] * N),
}
PANDAS |= {
    "several types": pd.Series(gaps([["a", "b", 1][i % 3] for i in INTS]), dtype=object),
    "names of rows": [f"id{i}" for i in range(N)],
}
X = RNG.normal(size=N)
FRAMES = {
    "pandas": pd.DataFrame({"a": X, **PANDAS}),
    "pandas with Arrow": pd.DataFrame(
        {"a": X, **{n: pd.Series(c, dtype=pd.ArrowDtype(c.type)) for n, c in ARROW.items()}}
    ),
    "polars": pl.DataFrame({"a": X, **POLARS}),
    "pyarrow": pa.table({"a": X, **ARROW}),
}
EACH = pytest.mark.parametrize("library", FRAMES)
# The columns of Arrow in frames of pandas are those of Arrow's own tables.
EACH_WITHOUT_COPIES = pytest.mark.parametrize("library", [name for name in FRAMES if name != "pandas with Arrow"])
LEFT_OUT = {"object bytes", "Binary", "Null", "binary", "null", "names of rows"}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ResourceWarning)  # of files that the collector closes
        yield


def types(frame):
    if isinstance(frame, pa.Table):
        return {field.name: field.type for field in frame.schema}
    return dict(zip(frame.columns, frame.dtypes, strict=True))


def cells(frame, name):
    column = frame[name]
    return column.to_pylist() if isinstance(frame, pa.Table) else column.to_list()


def is_gap(cell):
    return cell is None or cell is pd.NA or bool(cell != cell)


def names(frame):
    return list(types(frame))


@EACH
def test_filled_tables_have_the_types_and_the_known_cells_that_they_had(library):
    frame = FRAMES[library]
    filled = DensityImputer(n_estimators=2).fit_transform(frame)
    # Intervals are limits of numbers, which get the number to expect inside them.
    numbers = {"interval": np.dtype(float)} if "interval" in names(frame) else {}
    assert types(filled) == types(frame) | numbers
    for name in set(names(frame)) - set(numbers):
        before, after = cells(frame, name), cells(filled, name)
        assert all(
            is_gap(one) or (type(one), one) == (type(two), two) for one, two in zip(before, after, strict=True)
        ), name
        assert name in LEFT_OUT or not any(map(is_gap, after)), name


@EACH_WITHOUT_COPIES
def test_made_rows_have_the_types_of_the_rows_that_they_are_like(library):
    frame = FRAMES[library]
    made = make_rows(KDE(ProductLaplacian(), frame="scale").fit(frame), 6, random_state=0, complete=True)
    expected = types(frame)
    numbers = {"interval": np.dtype(float)} if "interval" in expected else {}
    assert types(made) == {name: kind for name, kind in (expected | numbers).items() if name not in LEFT_OUT}
    for name in set(names(made)) - set(numbers):
        known = {type(cell) for cell in cells(frame, name) if not is_gap(cell)}
        assert {type(cell) for cell in cells(made, name)} <= known, name


@EACH_WITHOUT_COPIES
def test_every_other_task_takes_them(library):
    frame = FRAMES[library]
    results = [
        AnomalyDetector(novelty=True, fast=True, random_state=0).fit(frame).anomalies(frame, explain=1),
        two_sample_test(frame, frame, n_resamples=9, random_state=0),
        ClassPriorEstimator(random_state=0).fit(frame, np.arange(N) % 2).estimate(frame),
    ]
    for result in results:
        assert str(result)
        json.dumps(result.to_dict(), allow_nan=False)
    DriftMonitor(expected_run_length=20, window=4, random_state=0).fit(frame).update(frame)
    LSDD(centers=10, random_state=0).fit(frame, frame)


def test_files_of_such_types_are_described(tmp_path):
    from pyarrow import parquet

    kept = {name: column for name, column in ARROW.items() if name not in ("float16", "runs", "string_view", "binary")}
    parquet.write_table(pa.table({"a": X, **kept}), tmp_path / "t.parquet")
    found = TableDescription.of(read_table(tmp_path / "t.parquet"))
    assert dict(zip(found.names, found.taken, strict=True))["duration s"] == "number"
    assert str(found)


@EACH
def test_lists_and_records_are_refused_by_name(library):
    frame, nested = FRAMES[library], [[1, 2]] * N
    if library == "polars":
        frame = frame.with_columns(odd=pl.Series(nested))
    elif library == "pyarrow":
        frame = frame.append_column("odd", pa.array(nested))
    else:
        frame = frame.assign(odd=pd.Series(nested))
    with pytest.raises(InputError, match="'odd'"):
        DensityImputer().fit(frame)


@pytest.mark.parametrize("kind", [pd.CategoricalDtype(["a"]), object, "string"])
def test_the_likeliest_word_is_written_where_a_later_table_does_not_declare_it(kind):
    x = [float(i) for i in range(20)] + [100.0 + i for i in range(20)]
    fit = pd.DataFrame({"x": x, "kind": pd.Categorical(["a"] * 20 + ["b"] * 20)})
    new = pd.DataFrame({"x": [110.0, 3.0], "kind": pd.Series([None, "a"], dtype=kind)})
    assert DensityImputer().fit(fit).transform(new)["kind"].tolist() == ["b", "a"]
    other = pl.DataFrame({"x": [110.0, 3.0], "kind": pl.Series([None, "a"], dtype=pl.Enum(["a"]))})
    filled = DensityImputer().fit(fit).transform(other)["kind"]
    assert (filled.to_list(), filled.dtype) == (["b", "a"], pl.Enum(["a", "b"]))


def test_text_is_filled_with_text_as_the_column_writes_it():
    text = {
        "day": gaps([t.strftime("%d.%m.%Y") for t in TIMES]),
        "flag": gaps(["TRUE" if i % 2 else "FALSE" for i in INTS]),
        "size": gaps([f"{i % 5}.0" for i in INTS]),
    }
    filled = DensityImputer().fit_transform(pd.DataFrame({"a": X, **text}))
    assert all(len(cell) == 10 and cell[2] == cell[5] == "." for cell in filled["day"])
    assert set(filled["flag"]) == {"TRUE", "FALSE"}
    assert set(filled["size"]) <= {f"{i}.0" for i in range(5)}
