"""``isopleth cells``: the answer, the repaired file, the rules, and refusals."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import isopleth.cli.run
from cli.shell import fine as run
from cli.shell import found as as_json
from cli.shell import refused
from isopleth import AnomalyDetector, read_table
from isopleth.tasks.cellwise import flagged_rows


@pytest.fixture
def orders(tmp_path):
    """300 orders: a total ten times too large in line 9, a price that cannot be read in line 22, a codes of leading zeros."""
    rng = np.random.default_rng(0)
    rows = ["code,item,count,price,total"]
    for i in range(300):
        item, count = rng.choice(["chair", "lamp", "desk"]), int(rng.integers(1, 9))
        price = {"chair": 49.9, "lamp": 25.5, "desk": 180.0}[item] * float(rng.choice([0.9, 1.0, 1.1]))
        total = f"{count * round(price, 2) * (10 if i == 7 else 1):.2f}"
        rows.append(f"{i % 40:05d},{item},{count},{'1xx19' if i == 20 else f'{price:.2f}'},{total}")
    path = tmp_path / "orders.csv"
    path.write_text("\n".join([*rows, ""]))
    return path


def test_cells_are_named_repaired_and_kept_as_rules(orders, tmp_path):
    repaired, rules = tmp_path / "repaired.csv", tmp_path / "rules.json"
    found = as_json("cells", orders, "--repaired", repaired, "--rules", rules, "--top", "2")
    assert [(row["line"], row["column"], row["flagged"]) for row in found["table"]] == [
        (22, "price", True),
        (9, "total", True),
    ]
    assert found["table"][0]["value"] == "1xx19"
    assert (found["rows"], found["table_rows"]) == (found["table_rows"], len(orders.read_text().splitlines()) - 1)
    old, new = (list(csv.reader(path.open())) for path in (orders, repaired))
    changed = [(i + 1, old[0][j]) for i in range(len(old)) for j in range(5) if old[i][j] != new[i][j]]
    assert sorted(changed) == [(9, "total"), (22, "price")]
    assert float(new[8][4]) == pytest.approx(float(old[8][4]) / 10.0)
    said = run("cells", orders, "--rules", rules).stdout  # read, not written
    assert "total = count x price in 298 of 299 rows; not in line 9." in " ".join(said.split())
    assert any(rule["rule"] == "equation" for rule in json.loads(rules.read_text())["rules"])


def test_columns_that_are_left_out_stay_in_the_repaired_file_and_changes_are_listed(orders, tmp_path):
    out, changes = tmp_path / "repaired.csv", tmp_path / "changes.csv"
    for which in (["--exclude", "code,item"], ["--columns", "count,price,total"]):
        said = " ".join(run("cells", orders, *which, "--repaired", out, "--changes", changes).stdout.split())
        assert f"{out} has 2 cells replaced: {changes} lists them, with what stood there and why." in said
        old, new = (list(csv.reader(path.open())) for path in (orders, out))
        assert [(i + 1, old[0][j]) for i in range(301) for j in range(5) if old[i][j] != new[i][j]] == [
            (9, "total"),
            (22, "price"),
        ]
        listed = list(csv.DictReader(changes.open()))
        assert [(row["line"], row["column"], row["reason"]) for row in listed] == [
            ("9", "total", "total is 10 times too large"),
            ("22", "price", "cannot be read, and total = count x price"),
        ]
        assert (listed[0]["old"], listed[0]["new"]) == (old[8][4], new[8][4])


def test_anomalies_say_what_the_cells_say(orders):
    said = " ".join(run("anomalies", orders, "--top", "1").stdout.split())
    assert "In line 9 (total) a cell does not fit the others of its row" in said


def test_what_cannot_be_used_is_one_sentence(orders, tmp_path):
    junk = tmp_path / "junk.json"
    junk.write_text("[]")
    assert "holds no rules that can be read" in refused("cells", orders, "--rules", junk)
    assert "orders.csv" in refused("cells", orders, "--repaired", orders)
    assert "none.csv does not exist" in refused("cells", tmp_path / "none.csv")


@pytest.mark.filterwarnings("ignore::isopleth.DataWarning")
def test_sentences_about_cells_of_some_flagged_rows_say_of_how_many(orders, monkeypatch):
    table = read_table(orders, bad_cells="missing")
    places = np.arange(2, len(table) + 2)
    monkeypatch.setattr(flagged_rows, "_MOST_FLAGGED", 3)
    detector = AnomalyDetector(random_state=0).fit(table)

    def said(*flagged):
        return flagged_rows.cells_of_flagged(detector, table, np.array(flagged), {"line": places})[0]

    assert said(7, 0, 1, 2).startswith("In line 9 (total), of the 3 least likely flagged ones, a cell does not fit")
    assert "of the" not in said(7, 0, 1).split(" a cell")[0]
    files = {"file": np.repeat(["a.csv", "b.csv"], [5, len(table) - 5]), "line": places}
    of_files = flagged_rows.cells_of_flagged(detector, table, np.array([7]), files)[0]
    assert of_files.startswith("In b.csv, line 9 (total) a cell does not fit")


def test_rows_of_out_are_the_same_in_blocks_of_any_length(orders, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    run("cells", orders, "--bad-cells", "missing", "--out", whole)
    monkeypatch.setattr(isopleth.cli.run, "_BLOCK", 64)
    run("cells", orders, "--bad-cells", "missing", "--out", parts)
    assert parts.read_bytes() == whole.read_bytes()
    rows = list(csv.DictReader(whole.open()))
    assert [int(row["line"]) for row in rows] == list(range(2, 302))
    assert rows[7]["column"] == "total"
