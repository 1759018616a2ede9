"""Reading a table in chunks gives the rows, errors and warnings of reading it whole."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from isopleth.errors import InputError
from isopleth.io import csv_file, open_rows, read_table
from isopleth.io.source import unpacked

X = np.random.default_rng(0).normal(size=(700, 3))
X[5] = [1e30, -0.0, 1e-30]


@pytest.fixture(autouse=True)
def _many_places(monkeypatch):
    """Places in text files are remembered far apart; here every few rows."""
    monkeypatch.setattr(csv_file, "_FEW", 16)
    monkeypatch.setattr(csv_file, "_APART", 64)


def as_text(folder: Path, delimiter: str = ",", end: str = "\n", before: str = "", name: str = "t.csv") -> Path:
    """Text with all that makes lines and rows differ."""
    lines = [delimiter.join(["a", '"b ""of"" it"', "größe"])]
    for i, row in enumerate(X.tolist()):
        cells = [f'"{row[0]!r}\n"' if i % 50 == 7 else repr(row[0]), repr(row[1]), repr(row[2])]
        lines += [delimiter.join(cells), *[""] * (i % 31 == 3)]
    path = folder / name
    path.write_bytes((before + end.join(lines)).encode())
    return path


def as_parquet(folder: Path, group: int) -> Path:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": X[:, 0], "b": X[:, 1] > 0, "c": np.arange(700, dtype=np.int16)}
    parquet.write_table(arrow.table(columns), folder / "t.parquet", row_group_size=group)
    return folder / "t.parquet"


def as_npy(folder: Path, array: np.ndarray) -> Path:
    np.save(folder / "t.npy", array)
    return folder / "t.npy"


FILES = {
    "comma": as_text,
    "carriage returns": lambda folder: as_text(folder, ";", "\r\n"),
    "old line ends": lambda folder: as_text(folder, ",", "\r"),
    "byte order mark": lambda folder: as_text(folder, before="\ufeff"),
    "tabs": lambda folder: as_text(folder, "\t", name="t.tsv"),
    "groups of rows": lambda folder: as_parquet(folder, 100),
    "one group of rows": lambda folder: as_parquet(folder, 10_000),
    "array": lambda folder: as_npy(folder, X),
    "columns first": lambda folder: as_npy(folder, np.asfortranarray(X)),
    "big end first": lambda folder: as_npy(folder, X.astype(">f4")),
    "truth values": lambda folder: as_npy(folder, X > 0),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("columns", [None, 1])
def test_rows_are_those_of_the_whole_from_wherever_they_are_read(tmp_path, kind, columns):
    path = FILES[kind](tmp_path)
    names = None if columns is None else read_table(path).names[::-1][:2]
    whole, rows = read_table(path, names), open_rows(path, names)
    assert (rows.names, rows.named, rows.n_rows) == (whole.names, whole.named, len(whole.values))
    for size, start in [(700, 0), (1, 690), (64, 0), (100, 300), (37, 63), (1000, 64), (5, 699), (5, 700)]:
        chunks = list(rows.chunks(size, start))
        assert [len(chunk.values) for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
        values = np.concatenate([np.empty((0, len(rows.names))), *(chunk.values for chunk in chunks)])
        assert values.tobytes() == whole.values[start:].tobytes()
        if whole.lines is not None:
            lines = [line for chunk in chunks for line in chunk.lines.tolist()]
            assert lines == whole.lines[start:].tolist()


def test_chunks_have_eight_megabytes_by_default(tmp_path):
    rows = open_rows(as_npy(tmp_path, np.zeros((10, 4))))
    assert rows.chunk_rows * 4 * 8 == 2**23


def said(read, path: Path) -> tuple[str, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read(path)
            outcome = ""
        except InputError as error:
            outcome = str(error)
    assert all(warning.filename == __file__ for warning in caught)
    return outcome, [str(warning.message) for warning in caught]


ODD = {
    "row numbers": ",a,b\n" + "".join(f"{i},{i * i},{-i}\n" for i in range(300)),
    "row numbers and gaps": ",a,b\n" + "".join(f"{i},{i * i},{-i if i % 9 else ''}\n" for i in range(300)),
    "numbers that stop counting": ",a,b\n" + "".join(f"{i % 299},{i * i},{-i}\n" for i in range(300)),
    "gap among row numbers": ",a\n" + "".join(f"{i if i != 40 else ''},{i}\n" for i in range(60)),
    "numbered header": "0,1\n" + "3,4\n" * 5,
    "no header": "1,2\n3,4\n",
    "mostly words": "a,b\n" + "x,1\ny,2\n3,3\n",
    "a word": "a,b\n" + "1,1\n" * 100 + "2,x\n" + "1,1\n" * 100,
    "ragged": "a,b\n" + "1,1\n" * 100 + "2\n",
    "rounded": "a,b\n9007199254740993,1\n1,1\n",
    "empty cells": "a,b\n" + "1,\n" * 2 + "nan,2\n1,1\n",
    "infinite": "a,b\n1,inf\n1,1\n",
    "one row": "a,b\n1,2\n",
    "header alone": "a,b\n",
    "blank": "\n\n",
    "open quote": 'a,b\n1,2\n"1,2\n',
    "zero byte": "a,b\n" + "1,2\n" * 80 + "1,\0\n",
    "names twice": "a,a\n1,2\n3,4\n",
    "decimal commas": "a;b\n1,5;2\n2,5;3\n",
    "numbers in two ways": "a;b\n1,5;2\n2,5;1,234.5\n",
    "a header again": "a,b\n" + "1,2\n" * 90 + "a,b\n" + "1,2\n" * 90,
}


@pytest.mark.parametrize("kind", ODD)
def test_refusals_and_warnings_are_those_of_the_whole(tmp_path, kind):
    path = tmp_path / "t.csv"
    path.write_text(ODD[kind])
    whole, chunked = said(lambda file: read_table(file), path), said(lambda file: open_rows(file), path)
    assert chunked == whole
    assert any(chunked) or kind in ("no header", "numbers that stop counting", "decimal commas")
    if not whole[0]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, table = open_rows(path), read_table(path)
        assert np.concatenate([chunk.values for chunk in rows.chunks(7)]).tobytes() == table.values.tobytes()


def test_not_utf8_is_refused_with_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 3000 + b"1,\xff\n")
    assert said(lambda file: open_rows(file), path)[0].startswith(f"{path}, line 3002: not UTF-8")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet='01.,;\t\n\r"a é\0-e', max_size=60))
@example("1,2\r3,4\r\n5,6")
@example('"1\r\n",2\n3,4')
def test_any_text_is_read_in_chunks_as_it_is_as_a_whole(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    whole, chunked = said(lambda file: read_table(file), path), said(lambda file: open_rows(file), path)
    assert chunked == whole
    if not whole[0]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, table = open_rows(path), read_table(path)
        for start in range(rows.n_rows):
            values = np.concatenate([chunk.values for chunk in rows.chunks(1, start)])
            assert values.tobytes() == table.values[start:].tobytes()


def test_missing_cells_of_arrays_and_parquet_are_named_by_row(tmp_path):
    values = X.copy()
    values[[3, 600], 1] = np.nan
    assert "'x2' (2 rows, the first at row 4)" in said(lambda file: open_rows(file), as_npy(tmp_path, values))[0]


def test_parquet_without_groups_of_rows_has_no_rows(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.ParquetWriter(tmp_path / "t.parquet", arrow.schema([("a", arrow.float64())])).close()
    with pytest.raises(InputError, match="has no rows; at least 1 is needed"):
        open_rows(tmp_path / "t.parquet", min_rows=1)


@pytest.mark.parametrize(("width", "n", "lines_of_sample"), [(10, 1000, 500), (2**20 - 1, 20, 4)])
def test_the_lines_that_are_looked_at_first_are_few_and_short_in_all(tmp_path, width, n, lines_of_sample):
    (tmp_path / "t.csv").write_text(f"{'1' * width}\n" * n)
    with csv_file.opened(unpacked(tmp_path / "t.csv")) as lines:
        assert len(lines.sample().lines) == lines_of_sample
        assert len(list(lines)) == n


@pytest.mark.parametrize("change", ["shorter", "objects", "three axes"])
def test_arrays_that_are_no_table_are_refused_as_ever(tmp_path, change):
    path = as_npy(tmp_path, X if change != "three axes" else X[None])
    if change == "shorter":
        path.write_bytes(path.read_bytes()[:-1])
    if change == "objects":
        np.save(path, np.array([[1, None]], dtype=object), allow_pickle=True)
    refusal = said(lambda file: open_rows(file), path)[0]
    assert {"shorter": "cut short", "objects": "pickled", "three axes": "two axes"}[change] in refusal
    assert refusal == said(lambda file: read_table(file), path)[0]


def test_an_array_without_rows_has_too_few(tmp_path):
    assert "no rows" in said(lambda file: open_rows(file), as_npy(tmp_path, np.empty((0, 3))))[0]


def test_archives_are_read_as_a_whole_only(tmp_path):
    np.savez(tmp_path / "t.npz", X=X)
    assert "save the table as .npy" in said(lambda file: open_rows(file), tmp_path / "t.npz")[0]


@pytest.mark.parametrize("kind", ["comma", "array"])
def test_a_file_that_changes_meanwhile_is_refused(tmp_path, kind):
    path = FILES[kind](tmp_path)
    rows = open_rows(path)
    chunks = rows.chunks(100)
    next(chunks)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match="has changed while it was read"):
        next(chunks)


@pytest.mark.parametrize("kind", ["comma", "groups of rows", "array"])
def test_the_share_looked_through_rises_to_the_end(tmp_path, kind):
    shares: list[float] = []
    open_rows(FILES[kind](tmp_path), progress=shares.append)
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1.0
