"""Tables with columns of all kinds, from every format, and what is refused in them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import sys
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from isopleth.errors import InputError
from isopleth.io import open_rows, read_frame, read_frame_chunks, read_names, read_table, source
from isopleth.tables.schema import Schema

TEXT = "day,price,colour,sold\n2024-01-31,1.5,red,true\n2024-02-01,NA,blue,False\n2024-02-02,2.5,,true\n"
CELLS = {
    "day": [datetime(2024, 1, 31), datetime(2024, 2, 1), datetime(2024, 2, 2)],
    "price": [1.5, None, 2.5],
    "colour": ["red", "blue", None],
    "sold": [True, False, True],
}


def write(tmp_path, content, name="t.csv"):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path / name


def cells(frame):
    return frame.data.to_pydict()


def refusal(path, **how):
    with pytest.raises(InputError) as caught:
        read_frame(path, **how)
    return str(caught.value)


class TestFormats:
    def test_text(self, tmp_path):
        frame = read_frame(write(tmp_path, TEXT))
        assert cells(frame) == CELLS
        assert frame.lines.tolist() == [2, 3, 4]
        assert (frame.names, frame.named) == (list(CELLS), True)

    @pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
    def test_delimiters(self, tmp_path, delimiter):
        assert cells(read_frame(write(tmp_path, TEXT.replace(",", delimiter)))) == CELLS

    def test_blanks_as_delimiters_of_numbers(self, tmp_path):
        path = write(tmp_path, " a   b \n 1  2.5 \n-3   4\n")
        assert read_table(path).values.tolist() == [[1, 2.5], [-3, 4]]
        assert cells(read_frame(path)) == {"a": [1, -3], "b": [2.5, 4]}

    def test_one_column_of_times_is_not_cut_at_blanks(self, tmp_path):
        frame = read_frame(write(tmp_path, "when\n2024-01-31 12:00\n2024-02-01 12:30\n"))
        assert cells(frame) == {"when": [datetime(2024, 1, 31, 12), datetime(2024, 2, 1, 12, 30)]}

    @pytest.mark.parametrize("packing", ["gz", "bz2", "zst"])
    def test_compressed(self, tmp_path, packing):
        data = TEXT.encode()
        packs = {"gz": gzip.compress, "bz2": bz2.compress, "zst": lambda b: pa.compress(b, "zstd", asbytes=True)}
        path = write(tmp_path, packs[packing](data), f"t.csv.{packing}")
        assert cells(read_frame(path)) == CELLS
        numbers = write(tmp_path, packs[packing](b"a,b\n1,2\n3,4\n5,6\n"), f"n.csv.{packing}")
        assert read_table(numbers).values.tolist() == [[1, 2], [3, 4], [5, 6]]
        rows = open_rows(numbers)
        assert rows.source == numbers
        assert [chunk.values.tolist() for chunk in rows.chunks(2, 1)] == [[[3, 4], [5, 6]]]

    def test_messages_name_the_compressed_file(self, tmp_path):
        path = write(tmp_path, gzip.compress(b"a,b\n1,2\n3\n"), "t.csv.gz")
        assert refusal(path).startswith(f"{path}, line 3: 1 cell")

    def test_compressed_files_that_are_damaged_or_something_else(self, tmp_path):
        assert "damaged or cut short" in refusal(write(tmp_path, gzip.compress(TEXT.encode())[:-9], "t.csv.gz"))
        assert "its content is not" in refusal(write(tmp_path, TEXT, "t.csv.gz"))

    @pytest.mark.parametrize("content", [TEXT.encode(), gzip.compress(TEXT.encode())], ids=["text", "gzip"])
    def test_standard_input(self, monkeypatch, content):
        monkeypatch.setattr(source, "_read", [])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_names("-") == list(CELLS)
        assert cells(read_frame("-")) == CELLS  # a second time, from what is kept

    def test_standard_input_in_other_formats(self, monkeypatch):
        buffer = io.BytesIO()
        np.save(buffer, np.eye(3))
        for content in (buffer.getvalue(), b'{"a": 1}\n{"a": 2}\n'):
            monkeypatch.setattr(source, "_read", [])
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert len(read_table("-").values) in (2, 3)

    def test_messages_name_standard_input(self, monkeypatch):
        monkeypatch.setattr(source, "_read", [])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3\n")))
        assert refusal("-").startswith("standard input, line 3")

    def test_json_lines(self, tmp_path):
        rows = [{"a": 1, "w": "x", "d": "31.01.2024"}, {"a": 2.5, "d": "01.02.2024"}, {"a": None, "w": "NA", "d": None}]
        frame = read_frame(write(tmp_path, "\n".join(map(json.dumps, rows)), "t.jsonl"))
        assert cells(frame) == {
            "a": [1, 2.5, None],
            "w": ["x", None, None],
            "d": [datetime(2024, 1, 31), datetime(2024, 2, 1), None],
        }

    def test_json_lines_as_numbers_and_with_blank_lines(self, tmp_path):
        path = write(tmp_path, '{"a": 1, "b": true}\n\n{"a": 2, "b": false}\n', "t.jsonl")
        assert read_table(path).values.tolist() == [[1, 1], [2, 0]]
        assert read_table(path).lines.tolist() == [1, 3]
        assert read_names(path) == ["a", "b"]

    @pytest.mark.parametrize(
        ("second", "words"), [("{oops", "line 2: no JSON"), ("[1]", "line 2: no JSON object"), ('{"a": [1]}', "lists")]
    )
    def test_refused_json(self, tmp_path, second, words):
        assert words in refusal(write(tmp_path, f'{{"a": 1}}\n{second}\n', "t.jsonl"))

    def test_workbook(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        rows = [["day", "n", "word"], [datetime(2024, 1, 31), 1.5, "x"], [None] * 3, [datetime(2024, 2, 1), None, "1"]]
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / "t.xlsx")
        frame = read_frame(tmp_path / "t.xlsx")
        assert cells(frame) == {
            "day": [datetime(2024, 1, 31), datetime(2024, 2, 1)],
            "n": [1.5, None],
            "word": ["x", "1"],
        }
        assert frame.lines.tolist() == [2, 4]
        assert "damaged" in refusal(write(tmp_path, b"PK\x03\x04no", "u.xlsx"))

    def test_parquet_keeps_its_types(self, tmp_path):
        columns = {"n": [1, None], "w": pa.array(["a", None]).dictionary_encode(), "t": [datetime(2024, 1, 31), None]}
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        frame = read_frame(tmp_path / "t.parquet", ["t", "n", "w"], most=1, min_rows=1)
        assert cells(frame) == {"t": [datetime(2024, 1, 31)], "n": [1], "w": ["a"]}
        parquet.write_table(pa.table({"l": [[1], [2]]}), tmp_path / "l.parquet")
        assert "'l' holds lists" in refusal(tmp_path / "l.parquet")

    def test_arrays_stay_arrays(self, tmp_path):
        np.save(tmp_path / "t.npy", np.arange(6.0).reshape(3, 2))
        np.savez(tmp_path / "t.npz", X=np.arange(6.0).reshape(3, 2))
        for name in ("t.npy", "t.npz"):
            frame = read_frame(tmp_path / name, exclude=["x1"])
            assert (frame.names, frame.named, frame.data.tolist()) == (["x2"], False, [[1], [3], [5]])

    def test_a_first_part_of_a_long_file(self, tmp_path):
        path = write(tmp_path, "a,w\n" + "".join(f"{i},w{i % 3}\n" for i in range(200_000)))
        frame = read_frame(path, most=1_000)
        assert frame.data.num_rows == len(frame.lines) == 1_000
        assert Schema.of(frame.data, numeric=["a"]).levels == [("w0", "w1", "w2")]


class TestChunks:
    @pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".jsonl"])
    def test_chunks_are_encoded_as_the_whole(self, tmp_path, suffix):
        rng = np.random.default_rng(0)
        columns = {"a": rng.normal(size=40_000), "w": rng.choice(["x", "y", "01", "7"], 40_000).tolist()}
        table = pa.table(columns | {"d": [datetime(2024, 1, 1 + i % 28) for i in range(40_000)]})
        path = self.written(tmp_path, table, suffix)
        whole, first = read_frame(path), read_frame(path, most=500)
        kinds = Schema.of(first.data)
        chunks = list(read_frame_chunks(path, first, 7_000))
        assert [len(chunk.data) for chunk in chunks] == [7_000] * 5 + [5_000]
        encoded, expected = [kinds.encode(chunk.data) for chunk in chunks], kinds.encode(whole.data)
        assert np.array_equal(np.concatenate([part.numeric for part in encoded]), expected.numeric)
        assert np.array_equal(np.concatenate([part.codes for part in encoded]), expected.codes)
        if whole.lines is not None:
            assert np.array_equal(np.concatenate([chunk.lines for chunk in chunks]), whole.lines)

    @staticmethod
    def written(tmp_path, table, suffix):
        if suffix == ".parquet":
            parquet.write_table(table, tmp_path / "t.parquet")
            return tmp_path / "t.parquet"
        if suffix == ".jsonl":
            text = "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist())
            return write(tmp_path, text, "t.jsonl")
        rows = "".join(f"{r['a']!r},{r['w']},{r['d']}\n" for r in table.to_pylist())
        content = f"a,w,d\n{rows}".encode()
        return write(tmp_path, gzip.compress(content) if suffix.endswith("gz") else content, f"t{suffix}")

    def test_a_blank_line_or_a_short_row_far_down(self, tmp_path):
        text = "a,w\n" + f"1,{'x' * 100}\n" * 20_000 + "\n2,y\n"
        first = read_frame(write(tmp_path, f"a,w\n1,{'x' * 100}\n2,y\n", "first.csv"))
        (chunk,) = read_frame_chunks(write(tmp_path, text), first, 20_001)
        assert chunk.lines[[0, -2, -1]].tolist() == [2, 20_001, 20_003]
        with pytest.raises(InputError, match="line 20004: 1 cell"):
            list(read_frame_chunks(write(tmp_path, text + "3\n"), first, 5_000))


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("a;b\n1,5;2\n-3,25;4\n", [[1.5, 2], [-3.25, 4]]),
            ("a;b\n1.234,5;1.000\n-2,25;2.000\n", [[1234.5, 1000], [-2.25, 2000]]),
            ('a,b\n"1,234.50",2\n"1,000",4\n', [[1234.5, 2], [1000, 4]]),
            ("a;b\n1,234;2.50\n2,000;0.75\n", [[1234, 2.5], [2000, 0.75]]),
            ("a;b\n1 234,5;2\n2 000;3\n", [[1234.5, 2], [2000, 3]]),
            ("a;b\n1'234.5;2\n2'000;3\n", [[1234.5, 2], [2000, 3]]),
            ("a;b\n0,125;2\n0,250;3\n", [[0.125, 2], [0.25, 3]]),
        ],
    )
    def test_signs_are_recognised(self, tmp_path, text, values):
        path = write(tmp_path, text)
        assert read_table(path).values.tolist() == values
        assert list(map(list, zip(*cells(read_frame(path)).values(), strict=True))) == values
        assert len(read_frame(path).notes) == 1

    def test_numbers_that_can_be_read_in_two_ways_are_asked_about(self, tmp_path):
        path = write(tmp_path, "a;b\n1,234;2\n2,345;3\n")
        assert "line 2: '1,234' may be 1234 or 1.234" in refusal(path)
        assert cells(read_frame(path, decimal=","))["a"] == [1.234, 2.345]
        assert cells(read_frame(path, decimal="."))["a"] == [1234, 2345]
        assert read_table(path, decimal=",").values[0, 0] == 1.234
        assert "expected '.' or ','" in refusal(path, decimal="x")

    def test_numbers_written_in_two_ways_are_refused_with_both_lines(self, tmp_path):
        message = refusal(write(tmp_path, "a;b\n1,5;2\n3;4\n1,234.5;2\n"))
        assert "line 2 has '1,5' and line 4 has '1,234.5'" in message

    def test_words_that_look_like_numbers_in_some_rows(self, tmp_path):
        rows = "12\n13\nn/a\n14\n-\n15\n16\n17\n18\n19\n20\n21\n"
        frame = read_frame(write(tmp_path, "a\n" + rows))
        columns = Schema.of(frame.data)
        assert [column.kind for column in columns.columns] == ["numeric"]
        assert np.isnan(columns.encode(frame.data).numeric[:, 0]).tolist() == [c in ("n/a", "-") for c in rows.split()]


class TestMissing:
    @pytest.mark.parametrize("word", ["", "NA", "NaN", "null", "?", "n/a"])
    def test_words_that_mean_missing(self, tmp_path, word):
        path = write(tmp_path, f"a,b,w\n1,2,x\n{word},3,{word}\n4,5,y\n")
        encoded = Schema.of(read_frame(path).data).encode(read_frame(path).data)
        assert np.isnan(encoded.numeric[:, 0]).tolist() == [False, True, False]
        assert encoded.codes[:, 0].tolist() == [0, -1, 1]

    def test_other_words(self, tmp_path):
        path = write(tmp_path, "a,w\n1,x\n-99,NA\n3,none\n")
        frame = read_frame(path, missing=["-99", "none"])
        assert cells(frame) == {"a": [1, None, 3], "w": ["x", "NA", None]}

    def test_a_column_without_a_value(self, tmp_path):
        frame = read_frame(write(tmp_path, "a,void\n1,\n2,NA\n3,?\n"))
        assert Schema.of(frame.data).left_out == {"void": "no value"}

    def test_a_row_without_a_value(self, tmp_path):
        path = write(tmp_path, "a,w\n1,x\n,\n3,y\n")
        assert cells(read_frame(path)) == {"a": [1, None, 3], "w": ["x", None, "y"]}
        with pytest.raises(InputError, match=r"empty, NaN or infinite cells in 'a' \(line 3\)"):
            read_table(path, ["a"])


class TestWords:
    def test_a_category_with_one_level(self, tmp_path):
        frame = read_frame(write(tmp_path, "a,w\n1.5,x\n2,x\n3,x\n"))
        assert Schema.of(frame.data).left_out == {"w": "one value only"}

    def test_ten_thousand_levels(self, tmp_path):
        frame = read_frame(write(tmp_path, "a,w\n" + "".join(f"{i / 7},w{i % 10_000}\n" for i in range(20_000))))
        columns = Schema.of(frame.data)
        assert columns.sizes == (10_001,)
        assert np.array_equal(np.unique(columns.encode(frame.data).codes), np.arange(10_000))

    def test_an_identifier_that_is_the_only_column(self, tmp_path):
        frame = read_frame(write(tmp_path, "order_no\n" + "".join(f"{i}\n" for i in range(100, 120))))
        with pytest.raises(InputError, match=r"no column is left to use: order_no \(identifier\)"):
            Schema.of(frame.data)
        assert len(Schema.of(frame.data, keep_identifiers=True).columns) == 1

    @pytest.mark.parametrize("before", [1, 5_000])
    @pytest.mark.parametrize("read", [read_frame, read_table, open_rows])
    def test_a_header_in_the_middle(self, tmp_path, before, read):
        path = write(tmp_path, "a,b\n" + "1,2\n" * before + "a,b\n3,4\n")
        with pytest.raises(InputError, match=rf"line {before + 2} repeats the header of line 1"):
            read(path)

    def test_mixed_encodings(self, tmp_path):
        path = write(tmp_path, "a,w\n1,Köln\n".encode() + "2,Köln\n".encode("latin-1"))
        assert "line 3: not UTF-8 text" in refusal(path)

    def test_quoted_words_hold_delimiters_and_quotes(self, tmp_path):
        path = write(tmp_path, 'a,w\n1,"x, ""y"""\n2,z\n')
        assert cells(read_frame(path)) == {"a": [1, 2], "w": ['x, "y"', "z"]}


class TestTimes:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("31.01.2024", "01.02.2024"),
            ("31/01/2024", "01/02/2024"),
            ("01/31/2024", "02/01/2024"),
            ("2024/1/31", "2024/2/1"),
        ],
    )
    def test_other_formats(self, tmp_path, first, second):
        assert cells(read_frame(write(tmp_path, f"d\n{first}\n{second}\n"))) == {
            "d": [datetime(2024, 1, 31), datetime(2024, 2, 1)]
        }

    @pytest.mark.parametrize(
        ("first", "second"),
        [("2024-01-31", "01.02.2024"), ("31/01/2024", "02/13/2024"), ("2024-01-31 12:00", "2024/02/01 12:00")],
    )
    def test_two_formats_are_refused_with_both_lines(self, tmp_path, first, second):
        message = refusal(write(tmp_path, f"a,d\n1,{first}\n2,{first}\n3,{second}\n"))
        assert f"{first!r} in" in message
        assert "line 2" in message
        assert "line 4" in message
        assert f"{second!r} in" in message
        assert "two formats" in message

    def test_days_and_months_that_cannot_be_told_apart_stay_words(self, tmp_path):
        assert cells(read_frame(write(tmp_path, "d\n01/02/2024\n03/04/2024\n"))) == {"d": ["01/02/2024", "03/04/2024"]}

    def test_clocks_with_a_zone_are_left_to_the_kinds_of_columns(self, tmp_path):
        frame = read_frame(write(tmp_path, "d\n2024-01-31T12:00:00+02:00\n2024-02-01T12:00:00Z\n"))
        assert [column.kind for column in Schema.of(frame.data).columns] == ["time"]
