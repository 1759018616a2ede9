"""``isopleth compare --split``: two parts of one table answer as two tables do, and one line for all that is wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from cli import shell

as_json = partial(shell.found, "compare")
refused = partial(shell.refused, "compare")
run = partial(shell.run, "compare")

FAST = ["--resamples", 99]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng, n = np.random.default_rng(0), 120
    frame = pd.DataFrame(
        {
            "shop": rng.choice(["north", "south", "a,b"], n),
            "day": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "new": rng.random(n) < 0.5,
            "price": np.round(rng.normal(10.0, 1.0, n), 3),
            "weight": np.round(rng.normal(3.0, 1.0, n), 3),
        }
    )
    frame.loc[frame["shop"] == "south", "price"] += 5.0
    frame["weight"] = frame["weight"].where(frame.index < 60, frame["weight"] + 3.0)
    path = tmp_path_factory.mktemp("split") / "orders.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_two_entries_answer_as_two_tables_do(table, tmp_path):
    path, frame = table
    for name in ("north", "south"):
        frame[frame["shop"] == name].drop(columns="shop").to_csv(tmp_path / f"{name}.csv", index=False)
    parts = as_json(path, "--split", "shop=north,south", *FAST)
    whole = as_json(tmp_path / "north.csv", tmp_path / "south.csv", *FAST)
    assert (parts["before"], parts["after"]) == ("shop=north", "shop=south")
    assert [(row["column"], row["pvalue"]) for row in parts["table"]] == [
        (row["column"], row["pvalue"]) for row in whole["table"]
    ]
    assert parts["table"][0]["column"] == "price"


@pytest.mark.parametrize(
    ("split", "before", "rows", "differs"),
    [
        ("shop=south", "shop=south", "south", "price"),
        ("shop=a,b", "shop=a,b", "a,b", None),
        ("day@2024-03-01", "day < 2024-03-01", 60, "weight"),
        ("price@12.5", "price < 12.5", None, "shop"),
        ("day@median", "day < 2024-03-01", 60, "weight"),
    ],
)
def test_one_entry_and_all_others_or_a_place_in_an_order(table, split, before, rows, differs):
    path, frame = table
    found = as_json(path, "--split", split, *FAST)
    assert found["before"] == before
    if isinstance(rows, int):
        assert found["rows"][0] == rows
    if isinstance(rows, str):
        assert found["rows"][0] == (frame["shop"] == rows).sum()
    if differs:
        assert found["table"][0]["column"] == differs
    assert split.partition("=")[0].partition("@")[0] not in [row["column"] for row in found["table"]]


def test_truth_values_are_two_entries_and_out_says_which_part(table, tmp_path):
    path, frame = table
    out = tmp_path / "rows.csv"
    run(path, "--split", "new", "--out", out, *FAST)
    written = pd.read_csv(out)
    assert written["part"].value_counts().to_dict() == {
        "new=yes": int(frame["new"].sum()),
        "new=no": int((~frame["new"]).sum()),
    }
    first = written[written["part"] == "new=no"]["line"].iloc[0]
    assert not frame["new"].iloc[first - 2]


@pytest.mark.parametrize(
    "said",
    [
        ("--id", "weight"),
        ("--categorical", "new"),
        ("--numeric", "price"),
        ("--time-columns", "day"),
        ("--exclude", "day"),
    ],
)
def test_what_is_said_of_other_columns_is_for_the_parts(table, said):
    path, frame = table
    found = as_json(path, "--split", "shop=north", *said, *FAST)
    assert found["rows"][0] == (frame["shop"] == "north").sum()
    assert (said[1] in [row["column"] for row in found["table"]]) == (said[0] not in ("--id", "--exclude"))


def test_rows_without_an_entry_are_said_to_be_left_out(tmp_path):
    frame = pd.DataFrame({"g": ["a", "b"] * 20, "x": np.arange(40.0) ** 1.5})
    frame.loc[[3, 8], "g"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run(tmp_path / "t.csv", "--split", "g", *FAST)
    assert "2 rows have no entry in 'g' and are left out" in done.stderr


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ("shop", "column 'shop' has 3 entries: a,b, north, south; choose two, as in shop=A,B"),
        ("price", "or a value to divide at, as in price@VALUE"),
        ("shop@north", "column 'shop' holds words, which have no order"),
        ("shop=north,east", "no row has shop=east"),
        ("price=1000", "price@1000 divides the column there"),
        ("shop=north,north", "both entries are the same"),
        ("price@cheap", "column 'price' holds numbers and 'cheap' is none"),
        ("price@1000", "no row has price >= 1000"),
        ("town=x", "--split town=x: there is no such column"),
        ("day@soon", "day"),
    ],
)
def test_what_cannot_be_split_is_refused_in_a_sentence(table, split, words):
    assert words in refused(table[0], "--split", split)


def test_one_table_needs_a_split_and_a_split_one_table(table):
    path, _ = table
    assert "give a second one, or --split COL" in refused(path)
    assert "--split divides one table" in refused(path, path, "--split", "shop")
