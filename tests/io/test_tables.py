"""Tables of every format, and one sentence for each file that is not a table."""

from __future__ import annotations

import os
import pickle
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from isopleth.errors import DataWarning, InputError
from isopleth.io import Table, csv_file, open_rows, read_names, read_table

VALUES = np.array([[1.0, -2.5], [3.0, 0.1], [1e-300, 2.0]])


def write(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(autouse=True)
def _no_warnings():
    """Warnings are errors, unless a test expects them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        yield


def refusal(path: Path, **how) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **how)
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestText:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_delimiters_are_found_out(self, tmp_path, delimiter):
        path = write(tmp_path, f"a{delimiter}b\n" + "".join(f"{a!r}{delimiter}{b!r}\n" for a, b in VALUES.tolist()))
        table = read_table(path)
        assert table.names == ["a", "b"]
        assert table.named
        np.testing.assert_array_equal(table.values, VALUES)

    def test_a_comma_inside_semicolons_is_no_delimiter(self, tmp_path):
        assert read_table(write(tmp_path, "a;b\n1,5;2\n1;2\n1;2\n")).values.tolist() == [[1.5, 2], [1, 2], [1, 2]]

    def test_tsv_is_cut_at_tabs_whatever_else_it_holds(self, tmp_path):
        assert read_table(write(tmp_path, "a,b\tc\n1\t2\n3\t4\n", "t.tsv")).names == ["a,b", "c"]

    def test_without_a_header_columns_are_numbered(self, tmp_path):
        table = read_table(write(tmp_path, "1,2\n3,4\n"))
        assert table.names == ["x1", "x2"]
        assert not table.named
        assert table.values.shape == (2, 2)

    def test_byte_order_mark_quotes_blank_lines_and_old_line_ends(self, tmp_path):
        table = read_table(write(tmp_path, b'\xef\xbb\xbf"a, the first",b\r\n\r\n"1", 2\r\n3,"4"\r\n\r\n'))
        assert table.names == ["a, the first", "b"]
        assert table.values.tolist() == [[1, 2], [3, 4]]
        assert table.lines.tolist() == [3, 4]

    def test_lines_count_the_breaks_inside_quotes(self, tmp_path):
        path = write(tmp_path, 'a,note\n1,"two\nlines"\n2,x\n3,y\n')
        assert read_table(path, ["a"]).lines.tolist() == [2, 4, 5]

    def test_booleans_are_numbers(self, tmp_path):
        assert read_table(write(tmp_path, "a,b\nTrue,1\nfalse,2\n")).values.tolist() == [[1, 1], [0, 2]]

    def test_columns_are_read_in_the_order_asked_for(self, tmp_path):
        table = read_table(write(tmp_path, "a,name,b\n1,x,2\n3,y,4\n"), ["b", "a"])
        assert table.names == ["b", "a"]
        assert table.values.tolist() == [[2, 1], [4, 3]]

    def test_one_column(self, tmp_path):
        assert read_table(write(tmp_path, "a\n1\n2\n")).values.tolist() == [[1], [2]]

    def test_numbers_survive_to_the_last_bit_across_chunks(self, tmp_path):
        values = np.random.default_rng(0).normal(size=(1000, 2))
        path = write(tmp_path, "\n".join(",".join(map(repr, row)) for row in values.tolist()))
        np.testing.assert_array_equal(read_table(path).values, values)

    @pytest.mark.parametrize("start", [0, 1])
    def test_row_numbers_without_a_name_are_left_out_and_it_is_said(self, tmp_path, start):
        path = write(tmp_path, ",a,b\n" + "".join(f"{start + i},{i * i},{-i}\n" for i in range(600)))
        with pytest.warns(DataWarning, match="first column has no name and counts the rows") as caught:
            table = read_table(path)
        assert caught[0].filename == __file__
        assert table.names == ["a", "b"]
        assert table.values[:3].tolist() == [[0, 0], [1, -1], [4, -2]]

    @pytest.mark.parametrize("content", [",a\n0,5\n2,6\n", ",a\n2,5\n3,6\n", "id,a\n0,5\n1,6\n", '""\n0\n1\n'])
    def test_other_first_columns_stay(self, tmp_path, content):
        assert read_table(write(tmp_path, content)).values.shape[1] == content.count(",", 0, 4) + 1

    def test_row_numbers_stay_where_they_are_asked_for(self, tmp_path):
        assert read_table(write(tmp_path, ",a\n0,5\n1,6\n"), ["x1", "a"]).values.tolist() == [[0, 5], [1, 6]]

    def test_a_header_that_counts_the_columns_is_no_row_and_it_is_said(self, tmp_path):
        path = write(tmp_path, "0,1,2\n5,6,7\n8,9,1\n")
        with pytest.warns(DataWarning, match="taken as a header"):
            table = read_table(path)
        assert (table.names, table.named, table.values.tolist()) == (["0", "1", "2"], True, [[5, 6, 7], [8, 9, 1]])
        assert read_names(path) == ["0", "1", "2"]

    def test_a_frame_of_an_array_written_with_its_index(self, tmp_path):
        with pytest.warns(DataWarning) as caught:
            table = read_table(write(tmp_path, ",0,1\n0,5,6\n1,7,8\n"))
        assert len(caught) == 2
        assert (table.names, table.values.tolist()) == (["0", "1"], [[5, 6], [7, 8]])

    @pytest.mark.parametrize("first", ["0", "1,2", "0,2", "0.0,1.0"])
    def test_other_first_lines_of_numbers_are_rows(self, tmp_path, first):
        assert len(read_table(write(tmp_path, f"{first}\n{first}\n")).values) == 2

    @pytest.mark.parametrize("other", ["1.5", "True"])
    def test_integers_that_are_rounded_are_named(self, tmp_path, other):
        path = write(tmp_path, f"id,a\n{10**18},1\n{10**18 + 1},{other}\n")
        with pytest.warns(DataWarning, match=r"integers beyond 2\*\*53 in 'id' are rounded"):
            read_table(path, ["id"])

    def test_numbers_that_float64_holds_or_that_are_not_integers_are_not_spoken_of(self, tmp_path):
        read_table(write(tmp_path, f"a,b\n{2**53},1e300\n{2**60},12345678901234567890.5\n"))

    def test_names_without_the_rows(self, tmp_path):
        assert read_names(write(tmp_path, "a,b\n1,2\n")) == ["a", "b"]
        assert read_names(write(tmp_path, "1,2\n3,4\n")) is None


class TestRefusedText:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("", ["is empty"]),
            ("\n\n", ["is empty"]),
            ("a,b\n", ["header but no rows"]),
            ("a,b\n1,2\n", ["only one row", "at least 2"]),
            ("a,b\n1,2\n3\n", ["line 3", "1 cell ", "has 2"]),
            ("a,b\n1,2\n3,4,5\n", ["line 3", "3 cells", "has 2"]),
            ("a,b\n1,2\n3,4\n5,oops\n", ["line 4", "'oops'", "'b'", "not a number"]),
            ("a,b\n1,2\n3,4\n5,oops\n6,7\n8,9\nx,no\n", ["line 7", "'x'", "'a'"]),
            ("a,b\n1,2\n3,4\n5,1_0\n", ["line 4", "'1_0'"]),
            ("a,b\n1,2\n3,4\n5,True\n", ["line 4", "'True'", "'b'"]),
            ("a;b\n1;2\n3;4\n" + "5;6\n" * 600 + "5;1,5\n", ["line 604", "'1,5'", "with a point"]),
            ("a;b\n1,5;2\n3,5;4\n5;2.5\n", ["line 4", "'2.5'", "'b'"]),
            ("a,name\n1,x\n2,y\n", ["'name'", "`columns=['a']`."]),
            ("name,kind\nx,u\ny,v\n", ["'name', 'kind'", "no others"]),
            ("a,b\n1,2\n,3\n4,\n5,\n", ["'a' (line 3)", "'b' (2 rows, the first at line 4)"]),
            ("a,b\n1,nan\n2,3\n", ["NaN", "'b' (line 2)"]),
            ("a,b\n1,inf\n2,3\n", ["infinite", "'b' (line 2)"]),
            ("a,b\n1,NA\n2,3\n", ["'b' (line 2)"]),
            ("a,b,a\n1,2,3\n4,5,6\n", ["'a'", "more than once"]),
            ("5.1,setosa\n4.9,setosa\n", ["'setosa'", "'5.1'", "neither a header nor a row"]),
            (b"a,b\n1,2\n3,\x004\n", ["line 3", "binary"]),
            (b"a,b\n1,2\n3,\xff\n", ["line 3", "UTF-8"]),
            ("a,b\n1,2\n3,4\n".encode("utf-16"), ["UTF-8"]),
            ('a,b\n1,"2\n3,4\n', ["quote"]),
            (b"PK\x03\x04rest", ["zip archive", ".csv"]),
            (b"\x80\x04\x95", ["pickle"]),
        ],
    )
    def test_content(self, tmp_path, content, words):
        message = refusal(write(tmp_path, content))
        for word in ["table.csv", *words]:
            assert word in message
        assert "--" not in message  # the words of the command line are not those of Python

    def test_only_the_worst_of_many_columns_are_listed(self, tmp_path):
        path = write(
            tmp_path, ",".join(f"c{j}" for j in range(9)) + "\n" + ",".join(["nan"] * 9) + "\n" + "1" + ",1" * 8
        )
        assert "4 more columns" in refusal(path)

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            (["a", "z"], ["no column 'z'", "it has 'a', 'b', 'name'"]),
            (["a", "a"], ["'a'", "more than once"]),
            ([], ["at least one"]),
            (["a", "name"], ["'name'", "leave it out of `columns`"]),
        ],
    )
    def test_choice_of_columns(self, tmp_path, columns, words):
        message = refusal(write(tmp_path, "a,b,name\n1,2,x\n3,4,y\n"), columns=columns)
        assert all(word in message for word in words)

    def test_missing_cells_elsewhere_do_no_harm(self, tmp_path):
        assert read_table(write(tmp_path, "a,b\n1,\n2,\n"), ["a"]).values.tolist() == [[1], [2]]


class TestRefusedFiles:
    def test_not_there(self, tmp_path):
        assert "does not exist" in refusal(tmp_path / "none.csv")

    def test_folder(self, tmp_path):
        assert "is a folder" in refusal(tmp_path)

    def test_suffix(self, tmp_path):
        message = refusal(write(tmp_path, "x", "table.doc"))
        assert "'.doc' files are not read" in message
        assert ".csv" in message

    def test_no_plain_file(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        assert "not a plain file" in refusal(tmp_path / "pipe.csv")


class TestNumpy:
    def test_npy(self, tmp_path):
        np.save(tmp_path / "t.npy", VALUES)
        table = read_table(tmp_path / "t.npy")
        assert (table.names, table.named, table.lines) == (["x1", "x2"], False, None)
        np.testing.assert_array_equal(table.values, VALUES)
        assert read_names(tmp_path / "t.npy") is None

    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32, ">f8"])
    def test_dtypes_become_float64(self, tmp_path, dtype):
        np.save(tmp_path / "t.npy", np.asfortranarray(np.array([[0, 1], [1, 1]], dtype=dtype)))
        values = read_table(tmp_path / "t.npy").values
        assert values.dtype == np.dtype("=f8")
        assert values.flags.c_contiguous
        assert values.tolist() == [[0, 1], [1, 1]]

    def test_npz_takes_x_or_the_only_table(self, tmp_path):
        np.savez(tmp_path / "x.npz", X=VALUES, other=VALUES)
        np.savez(tmp_path / "only.npz", table=VALUES, y=np.zeros(3), odd=np.array([None, {}], dtype=object))
        np.testing.assert_array_equal(read_table(tmp_path / "x.npz").values, VALUES)
        np.testing.assert_array_equal(read_table(tmp_path / "only.npz").values, VALUES)

    def test_npz_says_what_it_holds_where_the_table_is_not_clear(self, tmp_path):
        np.savez(tmp_path / "t.npz", a=VALUES, b=VALUES, c=np.zeros(3))
        message = refusal(tmp_path / "t.npz")
        assert all(word in message for word in ["more than one", "'a' (3, 2)", "'c' (3,)", "name the table X"])
        np.savez(tmp_path / "t.npz", c=np.zeros(3))
        assert "holds no two-dimensional array" in refusal(tmp_path / "t.npz")

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.zeros(3), ["shape (3,)", "two axes"]),
            (np.zeros((3, 0)), ["no columns"]),
            (np.zeros((0, 3)), ["no rows"]),
            (np.zeros((1, 3)), ["only one row"]),
            (np.zeros((2, 2), dtype=complex), ["complex128"]),
            (np.array([["a", "b"], ["c", "d"]]), ["<U1"]),
            (np.array([[1.0, np.nan], [np.inf, 2.0]]), ["'x1' (row 2)", "'x2' (row 1)"]),
        ],
    )
    def test_refused_arrays(self, tmp_path, array, words):
        np.save(tmp_path / "t.npy", array)
        message = refusal(tmp_path / "t.npy")
        assert all(word in message for word in words)

    def test_pickled_objects_are_never_read(self, tmp_path):
        objects = np.array([[print, None], [1, 2]], dtype=object)
        np.save(tmp_path / "t.npy", objects, allow_pickle=True)
        np.savez(tmp_path / "t.npz", X=objects)
        write(tmp_path, pickle.dumps(VALUES), "p.npy")
        assert "pickled" in refusal(tmp_path / "t.npy")
        assert "pickled" in refusal(tmp_path / "t.npz")
        assert "pickle" in refusal(tmp_path / "p.npy")

    @pytest.mark.parametrize("name", ["t.npy", "t.npz"])
    @pytest.mark.parametrize("kept", [0.5, 0.9])
    def test_cut_short(self, tmp_path, name, kept):
        (np.save if name == "t.npy" else np.savez)(tmp_path / name, np.zeros((50, 3)))
        whole = (tmp_path / name).read_bytes()
        write(tmp_path, whole[: int(kept * len(whole))], name)
        assert "damaged or cut short" in refusal(tmp_path / name)

    def test_other_content_than_the_suffix_says(self, tmp_path):
        assert "its content is not" in refusal(write(tmp_path, "a,b\n1,2\n", "t.npy"))


class TestParquet:
    @pytest.fixture
    def arrow(self):
        return pyarrow, parquet

    def test_numbers_booleans_and_decimals(self, tmp_path, arrow):
        pa, pq = arrow
        columns = {
            "a": pa.array([1, 2]),
            "b": [True, False],
            "c": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
            "n": ["x", "y"],
        }
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        table = read_table(tmp_path / "t.parquet", ["c", "a", "b"])
        assert table.names == ["c", "a", "b"]
        assert table.values.tolist() == [[1, 1, 1], [2, 2, 0]]
        assert read_names(tmp_path / "t.parquet") == ["a", "b", "c", "n"]

    def test_the_index_that_pandas_stores_is_no_column(self, tmp_path, arrow):
        pd = pytest.importorskip("pandas")
        pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9]).to_parquet(tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").names == ["a"]

    def test_text_and_missing_values_are_refused(self, tmp_path, arrow):
        pa, pq = arrow
        pq.write_table(pa.table({"a": [1.0, None], "name": ["x", "y"], "void": [None, None]}), tmp_path / "t.parquet")
        assert "`columns=['a', 'void']`" in refusal(tmp_path / "t.parquet")
        assert "'a' (row 2)" in refusal(tmp_path / "t.parquet", columns=["a"])
        assert "'void' (2 rows" in refusal(tmp_path / "t.parquet", columns=["void"])
        assert "no column 'z'" in refusal(tmp_path / "t.parquet", columns=["z"])

    @pytest.mark.parametrize("cut", [10, -5])
    def test_cut_short(self, tmp_path, arrow, cut):
        pa, pq = arrow
        pq.write_table(pa.table({"a": [1.0, 2.0]}), tmp_path / "t.parquet")
        write(tmp_path, (tmp_path / "t.parquet").read_bytes()[:cut], "t.parquet")
        assert "damaged or cut short" in refusal(tmp_path / "t.parquet")


CELLS = st.sampled_from(
    ["1", "-2.5e3", "nan", "inf", "", " ", "x", '"', '"q"', "True", "1_0", "é", "\0", "1e999", "0x1"]
)
LINES = st.lists(st.lists(CELLS, max_size=4).map(lambda cells: ",".join(cells)), max_size=6)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | LINES.map(lambda lines: "\n".join(lines).encode()))
@example(content=b"\r\r\n\n")
@example(content=b'"')
@example(content=b"\xef\xbb\xbf")
def test_any_bytes_give_a_table_or_a_sentence(tmp_path, content):
    path = write(tmp_path, content)
    try:
        table = read_table(path)
    except InputError:
        return
    assert isinstance(table, Table)
    assert np.isfinite(table.values).all()
    assert table.values.shape == (len(table.lines), len(table.names))
    assert len(table.values) >= 2


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
    assert np.isfinite(table.values).all()


class TestLongLines:
    def test_fifteen_thousand_named_columns_are_read(self, tmp_path):
        names = [f"a_name_of_some_length_{j:05d}" for j in range(15_000)]
        values = np.arange(3 * len(names), dtype=np.float64).reshape(3, -1)
        path = tmp_path / "wide.csv"
        for delimiter in (",", ";"):
            path.write_text("\n".join(delimiter.join(row) for row in [names, *values.astype(str).tolist()]) + "\n")
            table = read_table(path)
            assert table.names == names
            assert np.array_equal(table.values, values)
            assert read_names(path) == names
        chosen = read_table(path, names[::-1])
        assert np.array_equal(chosen.values, values[:, ::-1])

    def test_many_rows_after_a_long_header_are_read(self, tmp_path):
        """The sample for the delimiter ends before the file does."""
        path = tmp_path / "wide.csv"
        names = [f"{'n' * 100}{j}" for j in range(2_000)]
        path.write_text("\n".join([",".join(names), *[",".join(["1.5"] * 2_000)] * 80]) + "\n")
        assert read_table(path).values.shape == (80, 2_000)

    @pytest.mark.parametrize("before", ["", "a,b\n1,2\n"])
    def test_a_line_that_is_too_long_is_refused_as_such(self, tmp_path, monkeypatch, before):
        monkeypatch.setattr(csv_file, "LONGEST_LINE", 1_000)
        path = tmp_path / "t.csv"
        path.write_text(before + ",".join(["1"] * 500) + "\n")
        line = before.count("\n") + 1
        if not before:
            assert read_table(path, min_rows=1).values.shape == (1, 500)
        path.write_text(before + ",".join(["1"] * 501) + "\n")
        for read in (read_table, open_rows):
            with pytest.raises(InputError, match=f"line {line} is longer than 1,000 characters") as caught:
                read(path)
            assert "quoted cell" not in str(caught.value)

    @pytest.mark.slow
    def test_a_line_of_two_hundred_megabytes_is_refused_in_bounded_memory(self, tmp_path):
        path = tmp_path / "t.csv"
        with open(path, "w") as file:
            file.write("a,b\n1,2\n")
            for _ in range(200):
                file.write("1," * 500_000)
        tracemalloc.start()
        try:
            with pytest.raises(InputError, match=r"line 3 is longer than 16,777,216 characters"):
                read_table(path)
            assert tracemalloc.get_traced_memory()[1] < 100e6
        finally:
            tracemalloc.stop()

    def test_a_long_cell_and_an_open_quote_have_different_messages(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("a,b\n1,2\n" + "x" * 140_000 + ",3\n")
        with pytest.raises(InputError, match="line 3: a cell is longer than 131,072 characters"):
            read_table(path)
        path.write_text('a,b\n1,2\n3,"4\n' + "5,6\n" * 50_000)
        with pytest.raises(InputError, match="line 3: a quoted cell is not closed properly"):
            read_table(path)

    def test_bytes_that_are_no_text_are_found_behind_a_long_line(self, tmp_path, monkeypatch):
        monkeypatch.setattr(csv_file, "_SAMPLE_CHARACTERS", 100)
        path = tmp_path / "t.csv"
        path.write_bytes(b"a,b\n" + "ä".encode() * 333 + b",1\n2,\xff\n")
        with pytest.raises(InputError, match="line 3: not UTF-8"):
            read_table(path)
