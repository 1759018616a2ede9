"""Files that are no table are refused by one sentence with fields, and any bytes give a table or such a sentence."""

from __future__ import annotations

import json
import os
import tracemalloc

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from files.table_files import cells, refused, written
from isopleth import InputError, read_table
from isopleth.files import delimited

pytestmark = pytest.mark.filterwarnings("ignore::isopleth.DataWarning")

ESCAPE = "\x1b[31mred\x07"


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
    "points of thousands": (
        "a;b\n7.700;77\n5.841;58\n656;6\n",
        ["line 2: '7.700' may be 7700 or 7.700"],
        {"value": "7.700"},
    ),
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


def test_half_characters_are_one_sentence(tmp_path):
    lines = "".join(json.dumps({"a\ud800": i, "b": "x"}) + "\n" for i in range(12))
    said = "holds half of a character (a lone surrogate); correct it."
    assert f"the key 'a\\ud800' {said}" in str(refused(written(tmp_path, lines, "t.jsonl")))
    path = written(tmp_path, "a,b\n" + "1,x\n2,y\n" * 9)
    assert f"the column name 'z\\udc80' {said}" in str(refused(path, rename={"a": "z\udc80"}))
    assert f"missing: the word 'z\\udc80' {said}" in str(refused(path, missing=["z\udc80"]))


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
