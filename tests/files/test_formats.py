"""Formats other than text: JSON lines, Parquet, Arrow, workbooks and NumPy arrays."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import zipfile
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import forked
from files.table_files import cells, refused, written
from isopleth import InputError, read_table

pytestmark = pytest.mark.filterwarnings("ignore::isopleth.DataWarning")

VALUES = np.array([[1.0, -2.5], [3.0, 0.1], [1e-300, 2.0]])


class TestJson:
    def test_lines_are_rows(self, tmp_path):
        rows = [{"a": 1, "w": "x", "d": "31.01.2024"}, {"a": 2.5, "d": "01.02.2024"}, {"a": None, "w": "NA", "d": None}]
        table = read_table(written(tmp_path, "\n".join(map(json.dumps, rows)), "t.jsonl"))
        assert cells(table) == {
            "a": [1, 2.5, None],
            "w": ["x", None, "NA"],  # null says that a cell is missing
            "d": [datetime(2024, 1, 31), datetime(2024, 2, 1), None],
        }
        table = read_table(written(tmp_path, '{"a": 1, "b": true}\n\n{"a": 2, "b": false}\n', "t.jsonl"))
        assert (cells(table), table.lines.tolist()) == ({"a": [1, 2], "b": [True, False]}, [1, 3])
        table = read_table(written(tmp_path, '{"a": 1}\n{"a": "x"}\n', "t.jsonl"))
        assert cells(table) == {"a": ["1", "x"]}
        table = read_table(written(tmp_path, '{"a": 1}\n' * 9000 + '{"a": "x"}\n' * 9000, "t.jsonl"))  # in two pieces
        assert set(cells(table)["a"]) == {"1", "x"}
        assert "is empty" in str(refused(written(tmp_path, "{}\n{}\n", "t.jsonl")))
        assert "is empty" in str(refused(written(tmp_path, "\n\n", "t.jsonl")))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ('{"a": 1}\n{oops\n', "line 2: no JSON"),
            ('{"a": 1}\n[1]\n', "line 2: no JSON object"),
            ('{"a": 1}\nnull\n{"a": 2}\n', "line 2: no JSON object"),
            ('null\n{"a": 1}\n', "line 1: no JSON object"),
            ('{"a": 1}\n{"a": [1]}\n', "lists"),
            ('{"a": 1, "a": 2}\n', "line 1: the key 'a' occurs more than once"),
            ('{"a": 1}\n{"a": 1, "a": 2}\n', "line 2: the key 'a' occurs more than once"),
            ('{"a": "\\ud800"}\n{"a": "b"}\n', "line 1: column 'a' holds half of a character"),
        ],
    )
    def test_refused_lines(self, tmp_path, content, words):
        # In a process of its own: a line that begins with null has killed the interpreter.
        found = forked.run(["describe", written(tmp_path, content, "t.jsonl")])
        assert (found.returncode, words in found.stderr) == (2, True), found.stderr

    def test_a_new_key_in_each_line_stays_within_the_limit(self, tmp_path):
        path = written(tmp_path, "".join(f'{{"key{i}": 1}}\n' for i in range(6_000)), "t.jsonl")
        error = refused(path, max_unpacked=2**24)
        assert error.parameter == "max_unpacked"


class TestOtherFormats:
    def test_parquet_and_arrow_keep_their_types(self, tmp_path):
        zone = timezone(timedelta(hours=9))
        data = pa.table(
            {
                "n": [1, None],
                "w": pa.array(["a", None]).dictionary_encode(),
                "t": [datetime(2024, 1, 31, tzinfo=zone), None],
                "c": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
                "b": [True, False],
            }
        )
        parquet.write_table(data, tmp_path / "t.parquet")
        feather.write_feather(data, tmp_path / "t.feather", compression="uncompressed")
        for name in ("t.parquet", "t.feather"):
            table = read_table(tmp_path / name, columns=["t", "n", "b", "w"])
            assert cells(table) == {
                "t": [datetime(2024, 1, 31, tzinfo=zone), None],
                "n": [1, None],
                "b": [True, False],
                "w": ["a", None],
            }
            assert table.lines is None
            assert read_table(tmp_path / name, columns=["c"]).values.tolist() == [[1], [2]]
            (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-5])
            assert "damaged or cut short" in str(refused(tmp_path / name))
        parquet.write_table(pa.table({"l": [[1], [2]]}), tmp_path / "l.parquet")
        assert refused(tmp_path / "l.parquet").column == "l"
        parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "e.parquet")
        assert "no rows" in str(refused(tmp_path / "e.parquet"))

    def test_the_index_that_pandas_stores_is_no_column(self, tmp_path):
        pd = pytest.importorskip("pandas")
        pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9]).to_parquet(tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").names == ["a"]

    def test_workbook(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        rows = [["day", "n", "word"], [datetime(2024, 1, 31), 1.5, "x"], [None] * 3, [datetime(2024, 2, 1), None, "1"]]
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / "t.xlsx")
        table = read_table(tmp_path / "t.xlsx")
        assert cells(table) == {
            "day": [datetime(2024, 1, 31), datetime(2024, 2, 1)],
            "n": [1.5, None],
            "word": ["x", "1"],
        }
        assert table.lines.tolist() == [2, 4]
        book.active.append(rows[0])
        book.save(tmp_path / "t.xlsx")
        assert "line 5 repeats the header of line 1" in str(refused(tmp_path / "t.xlsx"))
        book.active.delete_rows(2, 9)
        book.save(tmp_path / "t.xlsx")
        assert "has no rows below a header" in str(refused(tmp_path / "t.xlsx"))
        assert "damaged" in str(refused(written(tmp_path, b"PK\x03\x04no", "u.xlsx")))

    @pytest.mark.slow
    def test_one_cell_in_the_last_corner_of_a_sheet_is_refused(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.active["A1"] = "a"
        book.active["XFD1048576"] = 1
        book.save(tmp_path / "t.xlsx")
        tracemalloc.start()
        try:
            assert refused(tmp_path / "t.xlsx").parameter == "max_unpacked"
            assert tracemalloc.get_traced_memory()[1] < 2**28
        finally:
            tracemalloc.stop()


def npy_header(shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


class TestNumpy:
    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, ">f8"])
    def test_dtypes_become_float64(self, tmp_path, dtype):
        array = np.asfortranarray(np.array([[0, 1], [1, 1]], dtype=dtype))
        np.save(tmp_path / "t.npy", array)
        np.savez(tmp_path / "x.npz", X=array, other=VALUES)
        np.savez(tmp_path / "only.npz", table=array, y=np.zeros(3), odd=np.array([None, {}], dtype=object))
        for name in ("t.npy", "x.npz", "only.npz"):
            table = read_table(tmp_path / name)
            assert (table.names, table.named, table.lines) == (["x1", "x2"], False, None)
            assert table.values.dtype == np.dtype("=f8")
            assert table.values.tolist() == [[0, 1], [1, 1]]
            assert read_table(tmp_path / name, exclude=["x1"]).values.tolist() == [[1], [1]]

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.zeros(3), ["shape (3,)", "two axes"]),
            (np.zeros((3, 0)), ["no columns"]),
            (np.zeros((0, 3)), ["no rows"]),
            (np.zeros((2, 2), dtype=complex), ["complex128"]),
            (np.array([["a", "b"], ["c", "d"]]), ["<U1"]),
            (np.array([[1.0, 2.0], [np.inf, 2.0]]), ["'x1'", "infinity", "row 2"]),
            (np.array([[print, None], [1, 2]], dtype=object), ["pickled"]),
        ],
    )
    def test_refused_arrays(self, tmp_path, array, words):
        np.save(tmp_path / "t.npy", array)
        np.savez(tmp_path / "t.npz", X=array)
        for name in ("t.npy", "t.npz"):
            message = str(refused(tmp_path / name))
            assert all(word in message for word in words)

    def test_an_archive_says_what_it_holds_where_the_table_is_not_clear(self, tmp_path):
        np.savez(tmp_path / "t.npz", a=VALUES, b=VALUES, c=np.zeros(3))
        message = str(refused(tmp_path / "t.npz"))
        assert all(word in message for word in ["more than one", "'a' (3, 2)", "'c' (3,)", "name the table X"])
        assert "pickle" in str(refused(written(tmp_path, pickle.dumps(VALUES), "p.npy")))

    @pytest.mark.parametrize("name", ["t.npy", "t.npz"])
    @pytest.mark.parametrize("kept", [0.5, 0.9])
    def test_cut_short(self, tmp_path, name, kept):
        (np.save if name == "t.npy" else np.savez)(tmp_path / name, np.zeros((50, 3)))
        whole = (tmp_path / name).read_bytes()
        assert "damaged or cut short" in str(refused(written(tmp_path, whole[: int(kept * len(whole))], name)))

    @pytest.mark.parametrize("shape", [(10**10, 3), (5, 2), (-1, -2)])
    def test_more_than_there_is(self, tmp_path, shape):
        path = tmp_path / "table.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy", npy_header(shape) + bytes(64))
        assert "array 'X' is damaged" in str(refused(path))

    def test_an_archive_that_declares_much_is_refused_before_memory_is_taken(self, tmp_path):
        path = tmp_path / "table.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as file:
            file.write(npy_header((2**21, 4)))
            for _ in range(64):
                file.write(bytes(2**20))
        tracemalloc.start()
        try:
            assert refused(path, max_unpacked=2**25).parameter == "max_unpacked"
            assert tracemalloc.get_traced_memory()[1] < 2**24
        finally:
            tracemalloc.stop()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10**6), byte=st.integers(0, 255), name=st.sampled_from(["t.npy", "t.npz"]))
def test_a_changed_byte_gives_a_table_or_a_sentence(tmp_path, position, byte, name):
    (np.save if name == "t.npy" else np.savez)(tmp_path / name, VALUES)
    content = bytearray((tmp_path / name).read_bytes())
    content[position % len(content)] = byte
    (tmp_path / name).write_bytes(content)
    try:
        table = read_table(tmp_path / name)
    except InputError:
        return
    assert len(table) >= 1
