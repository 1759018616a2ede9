"""Chunks of a file are parts of the whole, and rows of a stream come as their lines are complete."""

from __future__ import annotations

import gzip
import io
import json
import os
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from files.table_files import TEXT, written
from isopleth import InputError, read_table
from isopleth.core import parts
from isopleth.files import delimited, read
from isopleth.files.file_table import numbers_with_gaps
from isopleth.files.read import Reader, Reading
from isopleth.files.stream import FileRows, RowStream

pytestmark = pytest.mark.filterwarnings("ignore::isopleth.DataWarning")

X = np.random.default_rng(0).normal(size=(700, 3))
X[5] = [1e30, -0.0, 1e-30]


def as_text(folder, delimiter=",", end="\n", before="", name="t.csv"):
    """Write text with all that makes lines and rows differ."""
    lines = [delimiter.join(["a", '"b ""of"" it"', "größe"])]
    for i, row in enumerate(X.tolist()):
        numbers = [f'"{row[0]!r}\n"' if i % 50 == 7 else repr(row[0]), repr(row[1]), repr(row[2])]
        lines += [delimiter.join(numbers), *[""] * (i % 31 == 3)]
    return written(folder, (before + end.join(lines)).encode(), name)


def as_parquet(folder, group):
    columns = {"a": X[:, 0], "b": X[:, 1] > 0, "c": np.arange(700, dtype=np.int16) // 2}
    parquet.write_table(pa.table(columns), folder / "t.parquet", row_group_size=group)
    return folder / "t.parquet"


def as_npy(folder, array):
    np.save(folder / "t.npy", array)
    return folder / "t.npy"


def as_json(folder):
    return written(folder, "".join(json.dumps({"a": a, "b": b}) + "\n" for a, b, _ in X.tolist()), "t.jsonl")


FILES = {
    "comma": as_text,
    "carriage returns": lambda folder: as_text(folder, ";", "\r\n"),
    "old line ends": lambda folder: as_text(folder, ",", "\r"),
    "byte order mark": lambda folder: as_text(folder, before="\ufeff"),
    "tabs": lambda folder: as_text(folder, "\t", name="t.tsv"),
    "quotes inside of words": lambda folder: written(
        folder, as_text(folder).read_bytes().replace(b'"b ""of"" it"', b'b 5" it')
    ),
    "groups of rows": lambda folder: as_parquet(folder, 100),
    "one group of rows": lambda folder: as_parquet(folder, 10_000),
    "array": lambda folder: as_npy(folder, X),
    "columns first": lambda folder: as_npy(folder, np.asfortranarray(X)),
    "big end first": lambda folder: as_npy(folder, X.astype(">f4")),
    "json": as_json,
}


# The way of each reader to some columns is tried once, with a header and a line end of its own where it reads texts.
SOME_COLUMNS = ["old line ends", "groups of rows", "columns first", "json"]


@pytest.mark.parametrize(
    ("kind", "columns"), [*((kind, None) for kind in FILES), *((kind, 2) for kind in SOME_COLUMNS)]
)
def test_chunks_are_parts_of_the_whole(tmp_path, kind, columns, monkeypatch):
    monkeypatch.setattr(delimited, "_PIECE", 500)
    path = FILES[kind](tmp_path)
    names = None if columns is None else read_table(path).names[::-1][:2]
    how = Reader(path).how if names is None else type(Reader(path).how)(columns=names)
    whole, rows = numbers_with_gaps(read_table(path, columns=names)), FileRows(path, how)
    assert (rows.names, rows.named, rows.n_rows) == (whole.names, whole.named, len(whole))
    for size, start in [(700, 0), (1, 690), (64, 0), (100, 300), (37, 63), (1000, 64), (5, 699), (5, 700)]:
        chunks = list(rows.tables(size, start))
        assert [len(chunk) for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
        values = np.concatenate([np.empty((0, len(rows.names))), *(chunk.encoded().rows for chunk in chunks)])
        assert values.tobytes() == whole.values[start:].tobytes()
        if whole.lines is not None and kind != "json":
            assert [line for chunk in chunks for line in chunk.lines.tolist()] == whole.lines[start:].tolist()


def test_parquet_is_not_held_as_a_whole_and_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "FIRST_ROWS", 1000)
    monkeypatch.setattr(parts, "_CHUNK", 2**15)
    table = pa.table({f"x{j}": np.arange(2.0**16) + j for j in range(8)})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2**12)
    size = table.nbytes
    del table
    before, shares = pa.total_allocated_bytes(), []
    rows = FileRows(tmp_path / "t.parquet", progress=shares.append)
    held = [pa.total_allocated_bytes() - before for _ in rows.tables(2**12)]
    assert rows.n_rows == 2**16
    assert max(held) < size / 2
    assert shares == [(i + 1) / 16 for i in range(16)]


def test_parquet_that_claims_much_is_refused_in_chunks_too(tmp_path):
    parquet.write_table(pa.table({"a": np.zeros(2**18)}), tmp_path / "t.parquet")
    for read_it in (read_table, lambda path, max_unpacked: FileRows(path, Reading(max_unpacked=max_unpacked))):
        with pytest.raises(InputError, match="262,144 rows and 1 columns would take 2 MiB"):
            read_it(tmp_path / "t.parquet", max_unpacked=2**20)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".jsonl"])
def test_chunks_of_words_are_encoded_as_the_whole(tmp_path, suffix):
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=20_000), "w": rng.choice(["x", "y", "01", "7"], 20_000).tolist()}
    table = pa.table(columns | {"d": [datetime(2024, 1, 1 + i % 28) for i in range(20_000)]})
    if suffix == ".parquet":
        parquet.write_table(table, tmp_path / "t.parquet")
    elif suffix == ".jsonl":
        written(tmp_path, "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()), "t.jsonl")
    else:
        content = ("a,w,d\n" + "".join(f"{r['a']!r},{r['w']},{r['d']}\n" for r in table.to_pylist())).encode()
        written(tmp_path, gzip.compress(content) if suffix.endswith("gz") else content, f"t{suffix}")
    path = tmp_path / f"t{suffix}"
    whole = read_table(path)
    chunks = list(FileRows(path, schema=whole.schema).tables(7_000))
    assert [len(chunk) for chunk in chunks] == [7_000, 7_000, 6_000]
    assert np.array_equal(np.concatenate([c.encoded().numeric for c in chunks]), whole.encoded().numeric)
    assert np.array_equal(np.concatenate([c.encoded().codes for c in chunks]), whole.encoded().codes)


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    for path in (as_text(tmp_path), as_npy(tmp_path, X)):
        chunks = FileRows(path).tables(100)
        next(chunks)
        os.utime(path, ns=(1, 1))
        with pytest.raises(InputError, match="has changed while it was read"):
            next(chunks)


def test_the_share_looked_through_rises_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_PIECE", 500)
    shares = []
    FileRows(as_text(tmp_path), progress=shares.append)
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1.0


class Pipe(io.RawIOBase):
    """Stream that gives a few bytes at a time."""

    def __init__(self, content, size):
        self._parts = [content[i : i + size] for i in range(0, len(content), size)]

    def read1(self, _):
        return self._parts.pop(0) if self._parts else b""


class TestStreams:
    @pytest.mark.parametrize("size", [1, 5, 1000])
    @pytest.mark.parametrize("named", [True, False])
    def test_rows_come_as_their_lines_are_complete(self, tmp_path, size, named):
        like = read_table(written(tmp_path, TEXT))
        content = TEXT if named else TEXT.partition("\n")[2]
        found = [table for table, error in RowStream(like).batches(Pipe(content.encode(), size)) if error is None]
        whole = [row for table in found for row in table.data.to_pylist()]
        assert whole == like.data.to_pylist()

    def test_rows_before_a_wrong_one_are_given(self, tmp_path):
        like = read_table(written(tmp_path, "a,w\n1,x\n2,y\n"))
        content = "w,more,a\nx,0,5\ny,0,6\nx,0,much\nx,0,7\n"
        found = list(RowStream(like).batches(Pipe(content.encode(), 1000)))
        assert [row for table, _ in found for row in table.data.to_pylist()] == [{"a": 5, "w": "x"}, {"a": 6, "w": "y"}]
        error = found[-1][1]
        assert (error.column, error.value, "standard input" in str(error), "line 4" in str(error)) == (
            "a",
            "much",
            True,
            True,
        )
        (found, error) = next(RowStream(like).batches(io.BytesIO(b"\n" * 5000 + b"w,a\nx,much\n")))
        assert (found.data.num_rows, "line 5002" in str(error)) == (0, True)
        with pytest.raises(InputError, match="lacks 'a'"):
            list(RowStream(like).batches(Pipe(b"w,b\nx,1\n", 100)))
