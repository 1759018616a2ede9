"""Tables and sentences cut to the width of a terminal."""

from __future__ import annotations

from isopleth.results.text import aligned, ordinal, width_of, wrapped


def test_ordinals_are_those_of_english():
    written = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "53rd", "62nd", "111th", "1,002nd"]
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 53, 62, 111, 1_002)] == written


def test_a_table_without_room_says_which_columns_are_left_out():
    cells = [
        ["p-value", "median A", "median B", "column"],
        ["0.001", "123456789.1234", "223456789.1234", "income of the person"],
    ]
    assert aligned(cells, 80).splitlines()[1].split()[:3] == cells[1][:3]
    narrow = aligned(cells, 50).splitlines()
    assert max(map(len, narrow)) <= 50
    assert narrow[0].split() == ["p-value", "median", "A", "column"]
    assert " ".join(narrow[-2:]).endswith("No room for: median B. A wider terminal or --json shows them.")
    assert "median A, median B" in " ".join(aligned(cells, 34).splitlines())
    assert aligned(cells, 10).split()[:2] == ["p-value", "column"]  # which stand even without room


def test_cells_are_folded_between_words():
    cells = [["row", "reason"], ["1", "a first long reason with words  a second one"]]
    assert aligned(cells, 28).splitlines() == [
        "row  reason",
        "  1  a first long reason",
        "     with words",
        "     a second one",
    ]


def test_only_long_lines_are_wrapped():
    text = "short   line\n" + "word " * 20
    assert wrapped(text, 30).splitlines()[0] == "short   line"
    assert max(map(len, wrapped(text, 30).splitlines())) <= 30
    assert wrapped(text, 30).split() == text.split()


def test_wide_letters_take_two_columns_and_marks_none():
    assert [width_of(text) for text in ("abc", "漢字", "e\u0301", "ｶﾅ", "한국")] == [3, 4, 1, 2, 4]
    cells = [["行", "名前"], ["1", "東京都港区 " * 12], ["22", "ab"]]
    lines = aligned(cells, 40).splitlines()
    assert max(map(width_of, lines)) <= 40
    assert lines[0] == "行  名前"
    assert lines[-1] == "22  ab"
    assert max(map(width_of, wrapped("東京都港区" * 30 + " a " * 30, 40).splitlines())) <= 40
    assert wrapped("東京都", 3).splitlines() == ["東", "京", "都"]


def test_a_table_that_just_fits_keeps_all_columns():
    cells = [["a" * 9, "b" * 9, "change"], ["1", "2", "words " * 6]]
    fitting = 9 + 2 + 9 + 2 + 20  # two blanks between columns, and the last one folded to 20
    lines = aligned(cells, fitting).splitlines()
    assert lines[0].split()[:2] == cells[0][:2]
    assert max(map(width_of, lines)) <= fitting
    assert "No room for: bbbbbbbbb" in aligned(cells, fitting - 1)
