"""``isopleth describe``: what a table holds and what is odd, in text, JSON and on the pages of other commands."""

from __future__ import annotations

import html

import numpy as np
import pytest

from cli.shell import fine as run
from cli.shell import found as as_json
from cli.shell import refused

NOTHING = (
    "No cell is missing, and there are no repeated rows beyond chance, no columns of one value, no codes of missing cells and no "
    "relations that a few rows break. Single values are not judged here: isopleth cells looks for wrong ones."
)


@pytest.fixture
def odd(tmp_path):
    """60 rows: the last five repeat others but for the id; one temperature in nine is -999; town has ten gaps.

    The load is -999 as often, but no farther from other loads than these are from each other.
    """
    rows = ["id,temp,town,still,rate,load"]
    for i in range(60):
        k = i if i < 55 else i - 50
        town = "" if k % 6 == 0 else ["Rome", "Oslo"][k % 2]
        rows.append(
            f"{i},{-999 if k % 9 == 4 else round(15 + 5 * np.sin(k), 4)},{town},1,{k % 11 - 1},{-999 if k % 9 == 5 else 70 * k}"
        )
    path = tmp_path / "odd.csv"
    path.write_text("\n".join([*rows, ""]))
    return path


def test_what_is_odd_is_said(odd):
    said = run("describe", odd).stdout
    for words in (
        "odd.csv has 60 rows of 6 columns.",
        "5 of 60 rows repeat an earlier one in the columns that are used: line 57 (as line 7), line 58 (as line 8), ",
        "One value only: still.",
        "Nearly every row has a word or number of its own: id.",
        "Missing cells: town 18.3 %.",
        "temp holds -999 in 6 rows, beyond all its other values",
        "load holds -999 in 7 rows, beyond all its other values",
    ):
        assert words in " ".join(said.split())
    assert "rate holds" not in said  # -1 among 0 to 9 is a number like the others


def test_many_repeated_rows_are_counted_and_the_first_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i}.5,{'vwxyz'[i % 5]}\n" for i in range(9)) * 3)
    found = as_json("describe", tmp_path / "t.csv")
    assert (found["repeated_rows"], len(found["repeats"]), found["repeats"]["line 28"]) == (18, 18, "line 10")
    shown = "line 11 (as line 2), line 12 (as line 3), line 13 (as line 4), line 14 (as line 5), line 15 (as line 6) and 13 more."
    assert shown in found["summary"][1]


def test_values_that_repeat_by_chance_are_no_repeated_rows(tmp_path):
    (tmp_path / "t.csv").write_text("errors\n" + "".join(f"{i * i % 7}\n" for i in range(60)))
    found = as_json("describe", tmp_path / "t.csv")
    assert (found["repeated_rows"], found["summary"][1]) == (56, NOTHING)


def test_words_that_look_like_each_other_are_named_in_one_table_and_across_two(tmp_path):
    for name, words in (("a", ["yes", "no", "12 x"]), ("b", ["Yes", "no", "12-X"]), ("c", ["yes", "YES", "no"])):
        (tmp_path / f"{name}.csv").write_text("said,v\n" + "".join(f"{words[i % 3]},{i % 7}\n" for i in range(30)))
    said = run("compare", tmp_path / "a.csv", tmp_path / "b.csv").stderr
    pairs = "said: 'yes' and 'Yes', '12 x' and '12-X' look like one word of which"
    assert pairs in said
    assert "a.csv has the first and" in said
    assert "look like" not in run("compare", tmp_path / "a.csv", tmp_path / "a.csv").stderr
    text = " ".join(run("describe", tmp_path / "c.csv").stdout.split())
    assert "said: 'YES' and 'yes' look like one word: write it in one way if it is one." in text


def test_json_and_a_table_with_nothing_odd(odd, tmp_path):
    found = as_json("describe", odd)
    assert (found["repeated_rows"], found["codes"]) == (
        5,
        {"temp": {"value": -999.0, "rows": 6}, "load": {"value": -999.0, "rows": 7}},
    )
    taken = {row["column"]: row["taken as"] for row in found["table"]}
    assert taken == {
        "id": "left out: identifier",
        "temp": "number",
        "town": "category",
        "still": "number",
        "rate": "number",
        "load": "number",
    }
    plain = tmp_path / "plain.csv"
    plain.write_text("a\n" + "".join(f"{i * i % 97}.5\n" for i in range(20)))
    assert NOTHING in run("describe", plain).stdout
    corrected = as_json("describe", odd, "--missing", "-999")
    assert corrected["codes"] == {}


@pytest.mark.parametrize("command", ["describe", "anomalies"])
def test_pages_have_what_is_odd(odd, tmp_path, command):
    page = tmp_path / "page.html"
    run(command, odd, "--report", page)
    words = html.unescape(page.read_text())
    assert "temp holds -999 in 6 rows" in words
    assert "5 of 60 rows repeat an earlier one" in words


def test_a_total_that_is_no_product_is_said_where_it_stands(tmp_path):
    units, price = np.arange(200) % 17 + 2, np.round(3.0 + 0.37 * (np.arange(200) % 23), 2)
    total = np.round(units * price, 2)
    total[90] += 10.0
    rows = [f"{u},{p:.2f},{t:.2f}" for u, p, t in zip(units, price, total, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["units,price,total", *rows, ""]))
    words = "total = units x price in nearly all rows, but not in line 92: one of these numbers may be wrong."
    assert words in run("describe", tmp_path / "t.csv").stdout
    assert as_json("describe", tmp_path / "t.csv")["broken_relations"] == {"total = units x price": ["line 92"]}
    assert f"t.csv: {words}" in run("anomalies", tmp_path / "t.csv").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["12 %", "9 kg", "15 %"], "numbers with a sign or unit, such as '12 %'"),
        (["$1.50", "€3", "$2.75"], "numbers with a sign or unit, such as '$1.50'"),
        (["2", "4", '"2,4"', '"2,4,4"'], "lists of numbers, such as '2,4'"),
        (["01/02/2024", "03/04/2024", "12/05/2024"], "dates or times, such as '01/02/2024'"),
        (["Jan-14", "Feb-14"], "dates or times"),
        (["01/02/2024 01:05 PM", "03/04/2024 11:50 AM"], "dates or times"),
        (["3A", "12B", "7C"], None),
        (["red", "blue", "9 %"], None),
        (["1-2", "3-4", "5-6"], None),
    ],
)
def test_words_that_look_like_numbers_or_times_are_named(tmp_path, words, said):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{words[i % len(words)]},{i * i % 97}.5\n" for i in range(40)))
    found = " ".join(run("describe", path).stdout.split())
    assert (f"column 'x' is taken as words that look like {said}" in found) if said else ("look like" not in found)


def test_a_title_above_the_header_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Sales of 2024\n\nregion,units\nnorth,3\nsouth,4\n")
    assert "line 3: 2 cells where the first line has 1" in refused("describe", path)


def test_relations_that_all_or_nearly_all_rows_keep_are_named(tmp_path):
    prices = {"chair": 49.9, "lamp": 25.5, "desk": 180.0}
    items = [list(prices)[i * i % 3 if i % 5 else 2] for i in range(120)]
    rows = [
        f"{item},{'office' if item == 'desk' else 'home'},{i % 11 + 1},{prices[item]}" for i, item in enumerate(items)
    ]
    rows[30] = rows[30].replace("office", "home") if "office" in rows[30] else rows[30].replace("home", "office")
    text = [f"{row},{float(row.split(',')[2]) * float(row.split(',')[3]):.2f}" for row in rows]
    (tmp_path / "t.csv").write_text("\n".join(["item,room,count,price,total", *text, ""]))
    found = as_json("describe", tmp_path / "t.csv")
    said = " ".join(found["summary"])
    assert "In all rows: total = count x price" in said
    assert "item -> room in 119 of 120 rows; not in line 32." in said
    assert {"relation": "item -> room", "rows": 120, "broken": ["line 32"]} in found["relations"]


def test_ends_and_zeros_of_columns_are_in_the_table_which_points_to_wrong_cells(odd, tmp_path):
    rows = {row["column"]: row for row in as_json("describe", odd)["table"]}
    assert (rows["temp"]["least"], rows["rate"]["largest"], rows["rate"]["zeros"]) == (-999.0, 9.0, 5)
    assert rows["town"]["least"] is rows["town"]["zeros"] is None
    said = run("describe", odd).stdout
    assert "isopleth cells finds the cells that do not fit their rows" in said
    assert max(map(len, said.split("\n\n")[1].splitlines())) <= 80
    (tmp_path / "t.csv").write_text("day,v\n" + "".join(f"2024-01-{i:02d},{i % 4}\n" for i in range(1, 29)))
    said = run("describe", tmp_path / "t.csv").stdout
    assert "isopleth cells finds" not in said
    assert " ".join(said.split("\n\n")[1].splitlines()[1].split()) == "day time 28 0 2024-01-01 2024-01-28"
