"""How a text is cut into cells: its delimiter, and first lines that are no header."""

from __future__ import annotations

import pytest

from isopleth import InputError, read_table
from isopleth.files import delimited

LONG = "x" * 140_000  # longer than a cell may be


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["a,b;c", "1,2;3", "4,5;6"], ";"),  # each cuts alike: commas are also met inside of numbers
        (["a\tb,c", "1\t2,3", "4\t5,6"], "\t"),
        (["a|b,c", "1|2,3", "4|5,6"], "|"),
        (["a|b;c", "1|2;3", "4|5;6"], ";"),
        (["a,b;c", "1,2;3", "4,5;6;7"], ","),  # one that cuts all records alike before one that does not
        (["a", "1", "2"], ","),
        (["a b", "1 2", "3 4"], " "),
        (["b", "r1 2", "r2 4"], " "),  # as tables of R
        (["a b", "x y", "z w"], ","),  # words
        (["a b c", "1 2", "3 4"], ","),  # a longer header
        (["a;b", f"1;{LONG},", "2;3,"], ";"),
        ([f"a,b;{LONG}", "1,2;3"], ","),
        (["A title; with words", "a,b,c", *["1,2,3"] * 8], ","),  # below a title the usual width counts
        (["title", "a,b", "1,2", "3,4;5", "6,7", "8,9"], ","),
        (["a;b", "1,5;2", "3,25;4", "x"], ";"),
    ],
)
def test_the_delimiter_is_the_one_that_cuts_records_alike(lines, delimiter):
    assert delimited.find_delimiter([f"{line}\n" for line in lines], whole=True) == delimiter
    # A record that the end of the sample cuts does not count, unless there is no other.
    assert delimited.find_delimiter([f"{line}\n" for line in [*lines, lines[-1]]] + ["1"], whole=False) == delimiter


def test_a_header_that_counts_columns_may_have_a_blank_for_the_index():
    for first, counts in (
        (["0", "1"], True),
        ([" 0", "1 ", "2"], True),
        (["", "0", "1"], True),
        (["0"], False),
        (["", "0"], False),
        (["1", "2"], False),
        (["0", "", "1"], False),
        (["0", "2"], False),
        ([], False),
    ):
        assert delimited.counts_columns(first) == counts, first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a,b\n1,2,\n3,4,\n5,6,\n",
            "every line has one cell more than the header: they end with ',' and the header in line 1",
        ),
        (
            "a,b\nr,1,2\ns,3,4\nt,5,6\n",
            "every line has one cell more than the header: the header in line 1 has no name for",
        ),
        ("a,b,\n1,2\n3,4\n5,6\n", "the header in line 1 ends with ',' and no other line does; delete it there"),
        (
            "Log 7\na,b\n1,2\n3,4\n5,6\n",
            "line 2: 2 cells where the first line has 1, as in nearly all lines below; if the names stand there, delete line 1,",
        ),
        ("Log\nof 7\na,b\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n", "line 3: 2 cells .* delete lines 1 to 2,"),
        ("Log 7\na,b\nmm,V\n1,2\n3,4\n5,6\n", "line 2: 2 cells .* delete line 1 and line 3,"),
    ],
)
def test_a_head_that_is_none_is_refused_with_what_to_delete(tmp_path, text, said):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_table(path)


def test_the_last_record_of_a_sample_may_be_cut_and_does_not_count_for_the_delimiter():
    assert delimited.find_delimiter(["a;b,c\n", "1;2;3,4\n", '"5'], whole=False) == ","
    assert delimited.find_delimiter(["a;b,c\n", "1,2"], whole=False) == ";"
    assert delimited.find_delimiter(["a;b,c\n", "1,2"], whole=True) == ","
