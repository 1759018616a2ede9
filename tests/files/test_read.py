"""Tables of every format: what their columns become, and one sentence with fields for each file that is no table."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import sys
import tracemalloc
import warnings
import zipfile
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import forked
from cli import shell
from isopleth import DataWarning, DensityImputer, InputError, read_table
from isopleth.core import parts
from isopleth.files import delimited, read, source
from isopleth.files.file_table import numbers_with_gaps
from isopleth.files.read import Reader, Reading
from isopleth.files.stream import FileRows, RowStream

VALUES = np.array([[1.0, -2.5], [3.0, 0.1], [1e-300, 2.0]])
ESCAPE = "\x1b[31mred\x07"
TEXT = "day,price,colour,sold\n2024-01-31,1.5,red,true\n2024-02-01,NA,blue,False\n2024-02-02,2.5,,true\n"
CELLS = {
    "day": [datetime(2024, 1, 31), datetime(2024, 2, 1), datetime(2024, 2, 2)],
    "price": [1.5, None, 2.5],
    "colour": ["red", "blue", None],
    "sold": [True, False, True],
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def written(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def cells(table):
    return table.data.to_pydict()


def refused(path, **how):
    with pytest.raises(InputError) as caught:
        read_table(path, **how)
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    return caught.value


# What text becomes: bytes, columns, lines of the rows.
READ = {
    "kinds": (TEXT, CELLS, [2, 3, 4]),
    "semicolons": (TEXT.replace(",", ";"), CELLS, None),
    "bars": (TEXT.replace(",", "|"), CELLS, None),
    "tabs": (TEXT.replace(",", "\t"), CELLS, None),
    "all quoted": ('"' + TEXT.replace(",", '","').replace("\n", '"\n"')[:-1], CELLS, [2, 3, 4]),
    "blanks": (" a   b \n 1  2.5 \n-3   4\n", {"a": [1, -3], "b": [2.5, 4]}, [2, 3]),
    "no header": ("1,2\n3,4\n", {"x1": [1, 3], "x2": [2, 4]}, [1, 2]),
    "mark, quotes, blank lines, carriage returns": (
        b'\xef\xbb\xbf"a, the first",b\r\n\r\n"1", 2\r\n3,"4"\r\n\r\n',
        {"a, the first": [1, 3], "b": [2, 4]},
        [3, 4],
    ),
    "old line ends": ("a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}, [2, 3]),
    "lines inside quotes": (
        'a,note\n1,"two\nlines"\n2,x\n3,y\n',
        {"a": [1, 2, 3], "note": ["two\nlines", "x", "y"]},
        [2, 4, 5],
    ),
    "quotes in quotes": ('a,w\n1,"x, ""y"""\n2,z\n', {"a": [1, 2], "w": ['x, "y"', "z"]}, [2, 3]),
    "quotes inside of words": ('a,w\n1,5" pipe\n2,z\n', {"a": [1, 2], "w": ['5" pipe', "z"]}, [2, 3]),
    "quotes behind the first letter": ('w,a\n5"x",1\n6,2\n', {"w": ['5"x"', "6"], "a": [1, 2]}, [2, 3]),
    "blanks before quotes": ('a, w\n1, "x, y"\n2, z\n', {"a": [1, 2], "w": ["x, y", "z"]}, [2, 3]),
    "comments": ("# made on Monday\n# by us\na,b\n1,2\n# half way\n3,4\n", {"a": [1, 3], "b": [2, 4]}, [4, 6]),
    "a name among the cells of a column": ("w,b\nw,1\nx,2\n", {"w": ["w", "x"], "b": [1, 2]}, [2, 3]),
    "colours are no comments": ("c,a\n#ff0000,1\n#00ff00,2\n", {"c": ["#ff0000", "#00ff00"], "a": [1, 2]}, [2, 3]),
    "a header that counts columns": ("0,1\n5,6\n8,9\n", {"0": [5, 8], "1": [6, 9]}, [2, 3]),
    "truth": ("a\nTrue\nfalse\nNA\n", {"a": [True, False, None]}, None),
    "decimal commas": ("a;b\n1,5;2\n-3,25;4\n", {"a": [1.5, -3.25], "b": [2, 4]}, None),
    "groups and commas": ("a;b\n1.234,5;1.000\n-2,25;2.000\n", {"a": [1234.5, -2.25], "b": [1000, 2000]}, None),
    "groups and points": ('a,b\n"1,234.50",2\n"1,000",4\n', {"a": [1234.5, 1000], "b": [2, 4]}, None),
    "one column says what another means": (
        "a;b\n1,234;2.50\n2,000;0.75\n",
        {"a": [1234, 2000], "b": [2.5, 0.75]},
        None,
    ),
    "groups by blanks": ("a;b\n1 234,5;2\n2 000;3\n", {"a": [1234.5, 2000], "b": [2, 3]}, None),
    "groups by apostrophes": ("a;b\n1'234.5;2\n2'000;3\n", {"a": [1234.5, 2000], "b": [2, 3]}, None),
    "zero comma": ("a;b\n0,125;2\n0,250;3\n", {"a": [0.125, 0.25], "b": [2, 3]}, None),
    "days first": ("d\n13/01/2024\n01/02/2024\n", {"d": [datetime(2024, 1, 13), datetime(2024, 2, 1)]}, None),
    "months first": ("d\n01/13/2024\n02/01/2024\n", {"d": [datetime(2024, 1, 13), datetime(2024, 2, 1)]}, None),
    "days with points": ("d\n31.01.2024\n01.02.2024\n", {"d": [datetime(2024, 1, 31), datetime(2024, 2, 1)]}, None),
    "single digits": ("d\n2024/1/31\n2024/2/1\n", {"d": [datetime(2024, 1, 31), datetime(2024, 2, 1)]}, None),
    "the year 1": (
        "d,a\n0001-01-01,1\n2024-02-01,2\n",
        {"d": [datetime(1, 1, 1), datetime(2024, 2, 1)], "a": [1, 2]},
        None,
    ),
    "no such day": ("d\n2024-02-30\n2024-02-01\n", {"d": ["2024-02-30", "2024-02-01"]}, None),
    "clocks": (
        "when\n2024-01-31 12:00\n2024-02-01 12:30\n",
        {"when": [datetime(2024, 1, 31, 12), datetime(2024, 2, 1, 12, 30)]},
        None,
    ),
    "instants": (
        "t\n2024-01-31T12:00Z\n2024-01-31T22:00+09:00\n",
        {"t": [datetime(2024, 1, 31, 12, tzinfo=UTC), datetime(2024, 1, 31, 13, tzinfo=UTC)]},
        None,
    ),
    "a zone behind days with points": (
        "t\n31.01.2024 10:00+01:00\n01.02.2024 11:30+01:00\n",
        {"t": [datetime(2024, 1, 31, 9, tzinfo=UTC), datetime(2024, 2, 1, 10, 30, tzinfo=UTC)]},
        None,
    ),
    "numbers beyond 2**53": (
        f"a,b\n{2**53 + 1},{2**64 + 1}\n1,2\n",
        {"a": [str(2**53 + 1), "1"], "b": [str(2**64 + 1), "2"]},
        None,
    ),
    "decimals that are rounded": (
        "a,b\n12345678901234567890.5,1e300\n2,3\n",
        {"a": [12345678901234567890.5, 2], "b": [1e300, 3]},
        None,
    ),
    "digits with underscores": ("a,b\n1_0,1\n2_0,2\n", {"a": ["1_0", "2_0"], "b": [1, 2]}, None),
    "a line that names the delimiter": ("sep=;\na;b\n1,5;2\n3,25;4\n", {"a": [1.5, 3.25], "b": [2, 4]}, [3, 4]),
    "utf-16": ("a,w\n1,é\n2,b\n".encode("utf-16"), {"a": [1, 2], "w": ["é", "b"]}, None),
}


@pytest.mark.parametrize("name", READ)
def test_text(tmp_path, name, monkeypatch):
    content, columns, lines = READ[name]
    for piece in (2**22, 7):  # a record may end in any piece
        monkeypatch.setattr(delimited, "_PIECE", piece)
        table = read_table(written(tmp_path, content), keep_identifiers=True, missing=None, **_all(columns))
        assert cells(table) == columns
        assert lines is None or table.lines.tolist() == lines


def test_numbers_up_to_twelve_do_not_say_which_is_the_day(tmp_path):
    words = ["12/02/2024", "03/12/2024"]
    assert read_table(written(tmp_path, "d\n" + "\n".join(words))).frame["d"].to_pylist() == words


def _all(columns):
    """Use all columns, whatever they hold."""
    return {"categorical": [n for n, c in columns.items() if {type(x) for x in c} == {str}]}


# What is refused: bytes, words of the message, fields of the error.
REFUSED = {
    "nothing": ("", ["is empty"], {}),
    "blank lines": ("\n\n", ["is empty"], {}),
    "no rows": ("a,b\n", ["header but no rows"], {}),
    "short row": ("a,b\n1,2\n3\n", ["line 3", "1 cell ", "has 2"], {}),
    "long row": ("a,b\n1,2\n3,4,5\n", ["line 3", "3 cells", "has 2"], {}),
    "short row far down": ("a,b\n" + "1,2\n" * 3000 + "\n3\n", ["line 3003", "1 cell"], {}),
    "one cell more, an empty one": (
        "a;b\n" + "1;2;\n" * 9,
        ["every line has one cell more than the header: they end with ';'"],
        {},
    ),
    "one cell more, as R writes names of rows": (
        '"a" "b"\n' + '"n1" 1 2\n' * 9,
        [
            "every line has one cell more than the header",
            "no name for the first column",
            "put a name and a blank before it",
        ],
        {},
    ),
    "one cell less": ("a,b,\n" + "1,2\n" * 9, ["the header in line 1 ends with ',' and no other line does"], {}),
    "a logger with four lines of head": (
        "TOA5,CR1000,7,x,y\nTIMESTAMP,T,RH\nTS,C,%\n,Avg,Smp\n" + "2024-01-01,1.5,2.5\n" * 9,
        ["line 2: 3 cells where the first line has 5", "delete line 1 and lines 3 to 4"],
        {},
    ),
    "a title above semicolons": (
        "Sales\nof 2024\n\na;b;c\n" + "1,5;2,5;x\n" * 9,
        ["line 4: 3 cells where the first line has 1", "delete lines 1 to 2"],
        {},
    ),
    "names twice": ("a,b,a\n1,2,3\n4,5,6\n", ["'a'", "more than once"], {"parameter": "columns"}),
    "header or row": ("5.1,setosa\n4.9,setosa\n", ["'setosa'", "'5.1'", "neither a header nor a row"], {}),
    "long row with a vertical tab": ("a,b\n1,2\n3,4\x0b5,6\n", ["line 3", "3 cells", "has 2"], {}),
    "NUL": (b"a,b\n1,2\n3,\x004\n", ["line 3", "binary"], {}),
    "latin-1": (
        "a,w\n1,Köln\n2,Düsseldorf, Größe\n".encode("latin-1"),
        ["line 2", "not UTF-8"],
        {"parameter": "encoding"},
    ),
    "two encodings": (
        "a,w\n1,Köln\n".encode() + "2,Köln\n".encode("latin-1"),
        ["line 3: not UTF-8"],
        {"parameter": "encoding"},
    ),
    "open quote": ('a,b\n1,"2\n3,4\n', ["line 2", "quote"], {}),
    "word behind quotes": ('a,b\n1,"2"x\n3,4\n', ["line 2", "quote"], {}),
    "zip": (b"PK\x03\x04rest", ["zip archive", ".csv"], {}),
    "pickle": (b"\x80\x04\x95", ["pickle"], {}),
    "header again": ("a,b\n" + "1,2\n" * 5000 + "a,b\n3,4\n", ["line 5002 repeats the header of line 1"], {}),
    "header again, in quotes": ('a,b\n1,2\n"a","b"\n3,4\n', ["line 3 repeats the header of line 1"], {}),
    "header again, by blanks": ("a b\n1 2\n" * 600, ["line 3 repeats the header of line 1"], {}),
    "two signs": ("a;b\n1,5;2\n3;4\n1,234.5;2\n", ["line 2 has '1,5' and line 4 has '1,234.5'"], {}),
    "either sign": ("a;b\n1,234;2\n2,345;3\n", ["line 2: '1,234' may be 1234 or 1.234"], {"value": "1,234"}),
    "two dates": ("a,d\n1,2024-01-31\n2,01.02.2024\n", ["'d'", "two formats", "line 2", "line 3"], {}),
    "days or months first": ("d\n31/01/2024\n02/28/2024\n", ["'d'", "two formats", "line 2", "line 3"], {}),
    "zone or none": ("d\n2024-01-31 12:00Z\n2024-01-31 12:00\n", ["two formats", "line 2", "line 3"], {}),
    "infinity": ("a,b\n1,inf\n2,3\n", ["'b'", "infinity", "line 2"], {"column": "b", "row": 0}),
    "more than floats hold": (
        f"a,b\n1,{2**53 + 1}\n2,3\n",
        ["'b'", "line 2", "would round"],
        {"column": "b", "row": 0, "value": 2**53 + 1},
    ),
    "more digits than floats have": (
        f"a,b\n1,{'9' * 5000}\n1.5,2.5\n",
        ["'b'", "line 2", "would round"],
        {"column": "b", "row": 0, "value": "9" * 5000},
    ),
    "long line": (f"a,b\n1,2\n3,{'x' * 200_000},4\n", ["line 3", "longer than 131,072 characters"], {}),
    "two names twice": (
        "a,b,a,b\n1,2,3,4\n4,5,6,7\n",
        ["names 'a', 'b' occur more than once"],
        {"parameter": "columns"},
    ),
    "controls in a name": (f"a{ESCAPE},a{ESCAPE}\n1,2\n3,4\n", ["\\x1b[31m", "more than once"], {}),
    "controls in a cell": (f"{ESCAPE},3\n1,2\n3,4\n", ["\\x1b[31m"], {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_text(tmp_path, name):
    content, words, fields = REFUSED[name]
    error = refused(written(tmp_path, content))
    for word in ["table.csv", *words]:
        assert word in str(error)
    assert {field: getattr(error, field) for field in fields} == fields


@pytest.mark.parametrize(
    ("how", "words", "fields"),
    [
        (
            {"columns": ["a", "z"]},
            ["no column 'z'", "it has 'a', 'b', 'name'"],
            {"parameter": "columns", "column": "z"},
        ),
        ({"columns": ["a", "a"]}, ["'a'", "more than once"], {"parameter": "columns"}),
        ({"columns": []}, ["at least one"], {"parameter": "columns"}),
        ({"exclude": ["z"]}, ["no column 'z'"], {"parameter": "exclude"}),
        ({"numeric": ["z"]}, ["no column 'z'"], {"parameter": "numeric"}),
        ({"numeric": ["name"]}, ["'name' holds 'x' in line 2"], {"column": "name", "row": 0, "value": "x"}),
        ({"time_columns": ["name"]}, ["'name' holds 'x' in line 2", "time"], {"column": "name", "row": 0}),
        ({"decimal": "x"}, ["expected '.' or ','"], {"parameter": "decimal", "value": "x"}),
        ({"encoding": "utf-99"}, ["unknown"], {"parameter": "encoding", "value": "utf-99"}),
        ({"min_rows": 3}, ["has 2 rows", "at least 3"], {}),
    ],
)
def test_choices_that_do_not_fit(tmp_path, how, words, fields):
    error = refused(written(tmp_path, "a,b,name\n1,2,x\n3,4,y\n"), **how)
    assert all(word in str(error) for word in words)
    assert {field: getattr(error, field) for field in fields} == fields


def test_files_that_cannot_be_read(tmp_path):
    assert "does not exist" in str(refused(tmp_path / "none.csv"))
    assert "is a folder" in str(refused(tmp_path))
    assert "'.doc' files are not read" in str(refused(written(tmp_path, "x", "table.doc")))
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a plain file" in str(refused(tmp_path / "pipe.csv"))
    assert "its content is not" in str(refused(written(tmp_path, "a,b\n1,2\n", "t.npy")))
    name = os.fsdecode(b"caf\xe9.csv")  # no UTF-8
    assert "caf\\udce9.csv, line 3" in str(refused(written(tmp_path, "a,b\n1,2\n3\n", name)))


class TestEncodings:
    CONTENT = "stadt,n\n" + "".join(
        f"{name},{i}\n" for i, name in enumerate(["Köln", "Düsseldorf", "Größenwahn", "Äpfel"] * 5)
    )

    @pytest.mark.parametrize("name", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
    def test_they_are_named_or_guessed(self, tmp_path, name):
        path = written(tmp_path, self.CONTENT.encode(name))
        for encoding in (name, "auto"):
            assert cells(read_table(path, encoding=encoding))["stadt"][:3] == ["Köln", "Düsseldorf", "Größenwahn"]

    def test_the_message_names_one_that_fits(self, tmp_path):
        path = written(tmp_path, self.CONTENT.encode("cp1252"))
        error = refused(path)
        assert error.message.hint.settings["encoding"] == "cp1252"  # cp1250 fits as well, and is less usual


@pytest.mark.parametrize("code", ["-999", "-999.0", "-9.99e2"])
def test_numbers_that_mean_a_missing_cell_are_recognised_by_value(tmp_path, code):
    path = written(tmp_path, f"a,b\n1,x\n{code},y\n2,x\n")
    pd.read_csv(path).to_parquet(tmp_path / "t.parquet")
    for file in (path, tmp_path / "t.parquet"):
        assert cells(read_table(file, missing=["-999"]))["a"] == [1, None, 2]


@pytest.mark.parametrize("code", ["02116", "-007", "01.11", "000415"])
def test_a_number_that_begins_with_0_makes_its_column_words_unless_it_is_said_to_hold_numbers(tmp_path, code):
    path = written(tmp_path, "a,b\n" + f"7,x\n{code},y\n8.5,x\n" * 4)
    table = read_table(path)
    assert set(cells(table)["a"]) == {"7", code, "8.5"}
    assert [column.kind for column in table.schema.columns] == ["categorical", "categorical"]
    assert f"column 'a' holds {code!r}, which begins with 0, so it is taken as words" in str(table.notes[0])
    assert cells(read_table(path, numeric=["a"]))["a"][:3] == [7, float(code), 8.5]
    model = read_table(path, numeric=["a"]).schema
    assert read_table(path, schema=model).values[1, 0] == float(code)


def test_codes_of_one_of_two_tables_are_words_in_both(tmp_path):
    rows = ["02116,1.5", "10001,2.5", "90210,3.5"]
    one = written(tmp_path, "zip,v\n" + "".join(f"{row}\n" for row in rows * 9))
    two = written(tmp_path, "zip,v\n" + "".join(f"{row}\n" for row in rows[1:] * 9), "two.csv")
    said = shell.fine("compare", one, two).stdout
    assert "share of '02116': 33.3 % -> 0 %" in said.replace("0.0 %", "0 %")
    assert "numbers" not in said.partition("pvalue")[0]


@pytest.mark.parametrize("number", ["0", "0.5", "-0.5", "0e0", "10"])
def test_other_numbers_are_numbers(tmp_path, number):
    assert cells(read_table(written(tmp_path, f"a,b\n7,x\n{number},y\n")))["a"] == [7, float(number)]


def test_text_in_files_of_typed_cells_is_words_and_their_gaps_are_their_own(tmp_path):
    pd.DataFrame({"a": ["1", "2.5", "NA"] * 4, "b": range(12)}).to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert cells(table)["a"][:3] == ["1", "2.5", "NA"]
    said = [str(note).partition(": ")[2] for note in table.notes]
    assert said[0].startswith("column 'a' holds 'NA', which is a word there; name missing cells in `missing=['NA']`")
    assert said[1].startswith("column 'a' holds text that looks like numbers, such as '1', so it is taken as words")
    assert cells(read_table(tmp_path / "t.parquet", numeric=["a"], missing=["NA"]))["a"][:3] == [1, 2.5, None]


def test_words_that_mean_a_missing_cell_replace_the_usual_ones_from_the_file_to_the_model(tmp_path):
    path = written(tmp_path, "k,x\n" + "NA,1\nUS,2\n-,3\nNA,5\n" * 3)
    table = read_table(path, missing=["-"])
    assert cells(table)["k"][:4] == ["NA", "US", None, "NA"]
    assert read_table(path, schema=table.schema).values[:4, 0].tolist() == ["NA", "US", None, "NA"]
    fitted = DensityImputer().fit(table)
    for rows in (table, pd.DataFrame({"k": ["NA", "-"], "x": [1, 2]})):
        gaps = np.isnan(fitted.schema_.encode(rows, typed=rows is table).rows[:, 1])
        assert gaps.tolist() == ([False, False, True, False] * 3 if rows is table else [False, True])


@pytest.mark.parametrize("header", ["", "id of nothing"])
def test_a_first_column_of_rising_numbers_without_a_name_has_the_labels_of_the_rows(tmp_path, header):
    labels = np.cumsum(1 + np.arange(40) % 3)
    path = written(tmp_path, f"{header},v\n" + "".join(f"{i},{i % 7}.5\n" for i in labels))
    schema = read_table(path).schema
    assert schema.left_out == ({} if header else {"x1": "identifier"})
    assert read_table(path, columns=["v", header or "x1"]).names == ["v", header or "x1"]
    second = written(tmp_path, "v,\n" + "".join(f"{i % 7}.5,{i}\n" for i in labels), "second.csv")
    assert not read_table(second).schema.left_out


def test_repeated_names_can_be_changed_from_the_shell_and_in_python(tmp_path):
    path = written(tmp_path, "a,b,a\n" + "".join(f"{i % 3},{i % 5},{i % 7}\n" for i in range(20)))
    said = "the column name 'a' occurs more than once; give columns names of their own, as with"
    assert f"{said} `rename={{3: 'a_2'}}`" in str(refused(path))
    assert f"{said} --rename 3=a_2" in shell.refused("describe", path)
    assert read_table(path, rename={3: "a_2", "b": "c"}).names == ["a", "c", "a_2"]
    assert "has 2 columns 'a' (rename): say which by its number, 1, 3." in str(refused(path, rename={"a": "c"}))
    assert "has no column 'z' (rename)" in str(refused(path, rename={"z": "c"}))
    shell.fine("fill", path, "--rename", "3=a_2", "--out", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().startswith("a,b,a_2\n")
    other = written(tmp_path, "a,b,c\n" + "".join(f"{i % 3},{i % 5},{i % 7}\n" for i in range(20)), "other.csv")
    assert "'c'" in shell.fine("compare", path, other, "--rename", "3=a_2").stdout
    assert "--rename has 'a'; write a column and its new name" in shell.refused("describe", path, "--rename", "a")


def test_half_characters_are_one_sentence(tmp_path):
    lines = "".join(json.dumps({"a\ud800": i, "b": "x"}) + "\n" for i in range(12))
    said = "holds half of a character (a lone surrogate); correct it."
    assert f"the key 'a\\ud800' {said}" in str(refused(written(tmp_path, lines, "t.jsonl")))
    path = written(tmp_path, "a,b\n" + "1,x\n2,y\n" * 9)
    assert f"the column name 'z\\udc80' {said}" in str(refused(path, rename={"a": "z\udc80"}))
    assert f"missing: the word 'z\\udc80' {said}" in str(refused(path, missing=["z\udc80"]))


class TestPacked:
    @pytest.mark.parametrize("packing", ["gz", "bz2", "xz", "zst"])
    def test_it_is_unpacked_up_to_a_limit(self, tmp_path, packing):
        packs = {
            "gz": gzip.compress,
            "bz2": bz2.compress,
            "xz": lzma.compress,
            "zst": lambda b: pa.compress(b, "zstd", asbytes=True),
        }
        path = written(tmp_path, packs[packing](TEXT.encode()), f"t.csv.{packing}")
        assert cells(read_table(path)) == CELLS
        rows = FileRows(written(tmp_path, packs[packing](b"a,b\n1,2\n3,4\n5,6\n"), f"n.csv.{packing}"))
        assert [table.numbers().tolist() for table in rows.tables(2, 1)] == [[[3, 4], [5, 6]]]
        error = refused(path, max_unpacked=50)
        assert error.parameter == "max_unpacked"
        assert "t.csv" in str(error)

    def test_messages_name_the_packed_file(self, tmp_path):
        path = written(tmp_path, gzip.compress(b"a,b\n1,2\n3\n"), "t.csv.gz")
        assert str(refused(path)).startswith(f"{path}, line 3: 1 cell")
        assert "damaged or cut short" in str(refused(written(tmp_path, gzip.compress(TEXT.encode())[:-9], "t.csv.gz")))
        assert "its content is not" in str(refused(written(tmp_path, TEXT, "t.csv.gz")))

    def test_standard_input(self, monkeypatch):
        buffer = io.BytesIO()
        np.save(buffer, np.eye(3))
        contents = [TEXT.encode(), gzip.compress(TEXT.encode()), buffer.getvalue(), b'{"a": 1}\n{"a": 2}\n{"a": 4}\n']
        for content in contents:
            monkeypatch.setattr(source, "_read", [])
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
            assert len(read_table("-")) == len(read_table("-")) == 3  # a second time, from what is kept
        monkeypatch.setattr(source, "_read", [])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3\n")))
        assert str(refused("-")).startswith("standard input, line 3")


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


class TestSchema:
    def test_columns_are_used_as_they_are_and_as_is_said(self, tmp_path):
        path = written(tmp_path, "id,a,w,c\n" + "".join(f"{7 * i % 31},{i / 7},w{i % 3},{i % 2}\n" for i in range(31)))
        table = read_table(path)
        assert (table.names, table.schema.left_out) == (["a", "w", "c"], {"id": "identifier"})
        assert read_table(path, keep_identifiers=True).names == read_table(path, columns=["id", "a", "w", "c"]).names
        assert read_table(path, categorical=["c"]).schema.levels == [("w0", "w1", "w2"), ("0", "1")]
        assert read_table(path, identifiers=["a"]).schema.left_out["a"] == "identifier"
        with pytest.warns(DataWarning, match="left out: 'id'"):
            read_table(path)

    def test_a_table_is_read_as_another_one(self, tmp_path):
        first = read_table(written(tmp_path, "a,w\n1.5,01\n2,x\n3,y\n"))
        second = read_table(written(tmp_path, "more,w,a\n0,01,5\n0,02,6\n", "u.csv"), schema=first.schema)
        assert (second.schema, cells(second)) == (first.schema, {"a": [5, 6], "w": ["01", "02"]})
        error = refused(written(tmp_path, "w,a\nx,much\n", "u.csv"), schema=first.schema)
        assert "u.csv: column 'a' holds 'much' in line 2" in str(error)
        assert (error.column, error.row, error.value) == ("a", 0, "much")

    @pytest.mark.parametrize(("header", "words"), [("b,w", "lacks 'a'"), ("u,v", "has none of the columns")])
    def test_columns_that_are_not_there(self, tmp_path, header, words):
        first = read_table(written(tmp_path, "a,w\n1.5,x\n2,x\n3,y\n"))
        assert words in str(refused(written(tmp_path, f"{header}\n1,2\n", "u.csv"), schema=first.schema))

    def test_labels_are_kept_as_they_are_written(self, tmp_path):
        path = written(tmp_path, "a,kind,b\n1, good,2\n3,none,4\n5,007,6\n")
        table = read_table(path, labels=["kind"])
        assert table.labels["kind"].tolist() == ["good", "none", "007"]
        assert (table.names, table.values.tolist()) == (["a", "b"], [[1, 2], [3, 4], [5, 6]])
        assert table.take([2]).labels["kind"].tolist() == ["007"]
        parquet.write_table(pa.table({"a": [1, 2], "kind": [3, None]}), tmp_path / "t.parquet")
        for file, line in (
            (written(tmp_path, "kind,a\n1,1\nnan,2\n", "u.csv"), "line 3"),
            (tmp_path / "t.parquet", "row 2"),
        ):
            error = refused(file, labels=["kind"])
            assert (error.column, error.row, line in str(error)) == ("kind", 1, True)

    def test_numbers_with_gaps(self, tmp_path):
        table = numbers_with_gaps(read_table(written(tmp_path, "a,b\n1,true\n,false\n")))
        np.testing.assert_array_equal(table.values, [[1, 1], [np.nan, 0]])
        with pytest.raises(InputError, match="no numbers in column 'w'") as caught:
            numbers_with_gaps(read_table(written(tmp_path, "a,w\n1,x\n2,y\n")))
        assert caught.value.column == "w"


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


CELL = st.sampled_from(
    [
        "1",
        "-2.5e3",
        " 7",
        "8 ",
        "nan",
        "inf",
        "",
        "x",
        '"',
        '"q"',
        '"3"',
        'a"b',
        '""',
        "True",
        "1_0",
        "é",
        "\0",
        "1e999",
        "+4",
    ]
    + ["9007199254740993", "0x1", "1,5", "1.234,5", '"1\n2"', "2024-01-31", "#"]
)
LINES = st.lists(st.lists(CELL, max_size=4).map(",".join), max_size=6).map(lambda lines: "\n".join(lines).encode())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | LINES | st.text(alphabet='01.,;\t\n\r"a é\0-e#', max_size=60).map(str.encode))
@example(content=b"\r\r\n\n")
@example(content=b'"')
@example(content=b"\xef\xbb\xbf")
@example(content=b"1,2\r3,4\r\n5,6")
@example(content=b"a,b\na,b\n1\n")
@example(content=b'"a" ,b\n"a" ,b\n1\n')
@example(content=b'"1\r\n",2\n3,4')
def test_any_bytes_give_a_table_or_a_sentence_in_pieces_of_any_size(tmp_path, content):
    path, found = written(tmp_path, content), []
    for piece in (2**22, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited, "_PIECE", piece)
            try:
                table = read_table(path)
                found.append((str(cells(table)), table.lines.tolist()))
                assert len(table.lines) == len(table) >= 1
            except InputError as error:
                found.append(str(error))
    assert found[0] == found[1]


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


class TestLongLines:
    def test_many_columns_and_rows_behind_a_long_header(self, tmp_path):
        names = [f"{'n' * 100}{j}" for j in range(2_000)]
        path = written(tmp_path, "\n".join([",".join(names), *[",".join(["1.5"] * 2_000)] * 80]) + "\n")
        assert read_table(path).values.shape == (80, 2_000)

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
            assert tracemalloc.get_traced_memory()[1] < 200e6
        finally:
            tracemalloc.stop()

    def test_an_open_quote_in_a_long_file(self, tmp_path):
        assert "line 3: a quoted cell is not closed properly" in str(
            refused(written(tmp_path, 'a,b\n1,2\n3,"4\n' + "5,6\n" * 50_000))
        )


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


def test_a_second_table_of_dates_is_read_in_the_order_of_the_first(tmp_path):
    def write_text(name, cells):
        (tmp_path / name).write_text("d,a\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))

    write_text("first.csv", ["31/01/2024", "01/02/2024"])
    write_text("clear.csv", ["03/04/2024", "05/04/2024"])
    write_text("other.csv", ["03/04/2024", "04/25/2024"])
    first = read_table(tmp_path / "first.csv")
    schema = first.schema.from_dict(json.loads(json.dumps(first.schema.to_dict())))
    april = [datetime(2024, 4, 3), datetime(2024, 4, 5)]
    assert read_table(tmp_path / "clear.csv", schema=schema).data["d"].to_pylist() == april
    (chunk,) = Reader(tmp_path / "clear.csv", Reading(schema=schema)).chunks(5, first)
    assert chunk.data["d"].to_pylist() == april
    seconds = (
        schema.encode(pd.DataFrame({"d": ["03/04/2024", "05/04/2024"], "a": [0, 1]})).numeric[:, 0]
        + schema.columns[0].origin
    )
    assert seconds.tolist() == [moment.replace(tzinfo=UTC).timestamp() for moment in april]
    ((rows, error),) = RowStream(first).batches(io.BytesIO(b"d,a\n03/04/2024,1\n"))
    assert (error, rows.data["d"].to_pylist()) == (None, april[:1])
    with pytest.raises(
        InputError, match="'04/25/2024' in line 3, and dates with days before months were expected"
    ) as caught:
        read_table(tmp_path / "other.csv", schema=schema)
    assert (caught.value.column, caught.value.row) == ("d", 1)
    assert read_table(tmp_path / "clear.csv").data["d"].to_pylist() == [
        "03/04/2024",
        "05/04/2024",
    ]  # which day is not said
