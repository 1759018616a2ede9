"""Rows of a file of numbers, checked in one pass and read in chunks."""

from __future__ import annotations

import io

import numpy as np
import pytest

from isopleth import InputError
from isopleth.files import read, stream
from isopleth.files.stream import FileRows


def refused(path):
    with pytest.raises(InputError) as caught:
        FileRows(path)
    return str(caught.value), caught.value.column


def test_cells_without_a_number_behind_the_first_rows_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "FIRST_ROWS", 3)
    monkeypatch.setattr(FileRows, "chunk_rows", 4)
    rows = np.arange(70.0).reshape(10, 7)
    rows[9, 2] = np.inf
    np.save(tmp_path / "x.npy", rows)
    assert "column 'x3' holds infinity in row 10" in refused(tmp_path / "x.npy")[0]
    rows[[5, 8], 1], rows[9, 2] = np.nan, np.nan
    np.save(tmp_path / "x.npy", rows)
    text, column = refused(tmp_path / "x.npy")
    assert "empty cells in 'x2' (2 rows, the first in row 6), 'x3' (row 10); fill or drop" in text
    assert column == "x2"
    rows[9] = np.nan
    path = tmp_path / "x.csv"
    np.savetxt(path, rows, delimiter=",", header="a,b,c,d,e,f,g", comments="")
    text, column = refused(path)
    assert "cells in 'a' (line 11), 'b' (3 rows, the first in line 7), 'c' (line 11)" in text
    assert "'e' (line 11), 2 more columns; fill" in text
    assert column == "a"


def test_one_row_is_too_few_and_a_file_that_shrinks_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    assert "has only one row; at least 2 are needed" in refused(path)[0]
    assert FileRows(path, min_rows=1).n_rows == 1
    path.write_text("a,b\n1,2\n3,4\n")
    rows = FileRows(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="has changed while it was read"):
        list(rows.tables(1))


@pytest.mark.parametrize("kept", [2, 100])
def test_cells_of_another_kind_are_counted_over_all_chunks_and_the_first_are_named(tmp_path, monkeypatch, kept):
    monkeypatch.setattr(read, "FIRST_ROWS", 3)
    monkeypatch.setattr(FileRows, "chunk_rows", 4)
    monkeypatch.setattr(stream, "_KEPT", kept)
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(f"{i},{'x' if i % 3 == 2 and i > 3 else i / 2}\n" for i in range(20)))
    with pytest.raises(InputError) as caught:
        FileRows(path, read.Reading(bad_cells="refuse"))
    assert "column 'b' holds 'x' in line 7 and 4 more such cells; expected a number" in str(caught.value)


def test_a_byte_order_mark_before_the_first_line_of_a_stream_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,4.5\n")
    rows = stream.RowStream(read.read_table(path))
    found = [table.numbers().tolist() for table, _ in rows.batches(io.BytesIO(b"\xef\xbb\xbfa,b\n5,6\n7,8\n"))]
    assert found == [[[5.0, 6.0], [7.0, 8.0]]]
