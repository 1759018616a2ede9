"""``isopleth fill``: known cells leave the file as they stand, and filled ones are written as their column is."""

from __future__ import annotations

import csv
import json
import re
from datetime import datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cli.shell import fine, refused, run

N = 36
RNG = np.random.default_rng(3)
X = RNG.normal(size=N)
DAYS = [datetime(2024, 1, 1) + timedelta(hours=31 * i) for i in range(N)]
COLUMNS = {
    "code": [f"{i % 50:04d}" for i in range(N)],
    "": [f"{1000 * x:,.2f}" for x in X],
    "when": [day.strftime("%d/%m/%Y") for day in DAYS],
    "stamp": [day.strftime("%Y-%m-%dT%H:%M:%SZ") for day in DAYS],
    "flag": ["TRUE" if x > 0 else "FALSE" for x in X],
    "science": [f"{x:.3e}" for x in X],
    "telephone": [f"+39 06{i:06d}" for i in RNG.integers(10**6, size=N)],
    "note": [' two\nlines, "quoted" ' if i % 7 == 0 else "-" for i in range(N)],
    "=name": [f"{2 * x:.1f}" for x in X],
}


def written(path, columns, delimiter=",", encoding="utf-8"):
    with open(path, "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\r\n").writerows(
            [columns, *zip(*columns.values(), strict=True)]
        )
    return path


def cells(path, delimiter=",", encoding="utf-8"):
    with open(path, newline="", encoding=encoding) as file:
        return list(csv.reader(file, delimiter=delimiter))


def with_gaps(columns):
    numbered = list(columns).index
    return {
        name: ["" if (i + numbered(name)) % 11 == 5 and name in GAPS else cell for i, cell in enumerate(cells)]
        for name, cells in columns.items()
    }


GAPS = ("", "when", "stamp", "flag", "science", "=name", "Preis", "Tag")


@pytest.mark.parametrize("gaps", [with_gaps, lambda columns: columns])
def test_known_cells_stay_the_text_that_they_were(tmp_path, gaps):
    before = cells(written(tmp_path / "t.csv", gaps(COLUMNS)))
    fine("fill", tmp_path / "t.csv", "--out", tmp_path / "o.csv", "--raw-text")
    after = cells(tmp_path / "o.csv")
    filled = {name: [] for name in COLUMNS}
    for one, two in zip(before, after, strict=True):
        for name, old, new in zip(COLUMNS, one, two, strict=True):
            if old or name not in GAPS:
                assert new == old
            elif name != "" or old != new:
                filled[name].append(new)
    form = {
        "": r"-?[\d,]+\.\d\d",
        "when": r"\d\d/\d\d/2024",
        "stamp": r"2024-\d\d-\d\dT\d\d:\d\d:00Z|2024-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        "flag": "TRUE|FALSE",
        "science": r"-?\d\.\d{3}e[-+]\d\d",
        "=name": r"-?\d+\.\d",
    }
    for name, pattern in form.items():
        assert all(re.fullmatch(pattern, cell) for cell in filled[name]), (name, filled[name])
        assert bool(filled[name]) == (gaps is with_gaps)


def test_the_decimal_comma_and_the_encoding_stay(tmp_path):
    german = {
        "Größe": [f"{x:.1f}".replace(".", ",") for x in X],
        "Preis": [f"{1000 * x:,.2f}".translate({44: ".", 46: ","}) for x in X],
        "Tag": [day.strftime("%d.%m.%Y") for day in DAYS],
    }
    how = {"delimiter": ";", "encoding": "cp1252"}
    before = cells(written(tmp_path / "t.csv", with_gaps(german), **how), **how)
    fine("fill", tmp_path / "t.csv", "--out", tmp_path / "o.csv", "--interval", "--encoding", "cp1252")
    after = cells(tmp_path / "o.csv", **how)
    assert after[0] == ["Größe", "Preis", "Tag", "Preis_low", "Preis_high", "Tag_low", "Tag_high"]
    for one, two in zip(before, after, strict=True):
        assert all(new == old or not old for old, new in zip(one, two, strict=False))
        assert all(two)
        assert two is after[0] or two[3].count(",") == 1


def test_text_that_other_separators_cut_into_formulas_is_quoted_and_marked(tmp_path):
    words = ["b;@SUM(1)", "c\t=1+1", "\uff1d1+1", "b;-5", "plain"]
    columns = {"word": words * 8, "v": ["" if i % 9 == 0 else f"{i}.5" for i in range(40)], "a;=b": ["1.5", "2.5"] * 20}
    fine("fill", written(tmp_path / "t.csv", columns), "--out", tmp_path / "o.csv")
    after = cells(tmp_path / "o.csv")
    assert after[0] == ["word", "v", "a;'=b"]
    assert [row[0] for row in after[1:6]] == ["b;'@SUM(1)", "c\t'=1+1", "'\uff1d1+1", "b;-5", "plain"]
    text = (tmp_path / "o.csv").read_text()
    assert '"b;\'@SUM(1)",' in text
    assert '"c\t\'=1+1",' in text
    fine("fill", tmp_path / "t.csv", "--out", tmp_path / "o.csv", "--raw-text")
    assert [row[0] for row in cells(tmp_path / "o.csv")[1:6]] == words


def test_types_of_a_parquet_file_stay(tmp_path):
    hours = pa.array([None if i % 9 == 4 else timedelta(hours=i) for i in range(N)], pa.duration("ms"))
    table = pa.table(
        {
            "a": pa.array([None if i % 7 == 2 else i % 5 for i in range(N)], pa.int8()),
            "b": pa.array(X, pa.float32()),
            "text": pa.array([f"0{i}" for i in range(N)], pa.large_string()),
            "word": pa.array([None if i % 8 == 3 else "xy"[i % 2] for i in range(N)]).dictionary_encode(),
            "day": pa.array([None if i % 6 == 1 else day.date() for i, day in enumerate(DAYS)], pa.date32()),
            "price": pa.array([f"{x:.2f}" for x in X]).cast(pa.decimal128(10, 2)),
            "said": pa.array([None if i % 8 == 3 else day.isoformat() for i, day in enumerate(DAYS)]),
            "hours": hours,
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    fine("fill", tmp_path / "t.parquet", "--out", tmp_path / "o.parquet")
    filled = parquet.read_table(tmp_path / "o.parquet")
    assert filled.schema.types == table.schema.types
    for name in table.column_names:
        one, two = table.column(name).to_pylist(), filled.column(name).to_pylist()
        assert all(old is None or old == new for old, new in zip(one, two, strict=True)), name
        assert None not in two
    assert all(len(cell) == len(DAYS[0].isoformat()) for cell in filled.column("said").to_pylist())
    assert all(cell.seconds % 3600 == 0 for cell in filled.column("hours").to_pylist())
    fine("fill", tmp_path / "t.parquet", "--out", tmp_path / "o.parquet", "--interval")
    ends = parquet.read_table(tmp_path / "o.parquet").select(["hours_low", "hours", "hours_high"])
    assert [str(kind) for kind in ends.schema.types] == ["duration[ms]"] * 3
    assert all(low <= cell <= high for low, cell, high in zip(*ends.to_pydict().values(), strict=True))


def test_times_and_best_values_are_written_as_the_file_writes_them(tmp_path):
    days = [(datetime(2024, 1, 1) + timedelta(days=i)).strftime("%d/%m/%Y") for i in range(60)]
    values = [f"{RNG.normal() + 8 * (i > 30):.2f}" for i in range(60)]
    words = ["xy"[i % 2] for i in range(60)]
    fine("changes", written(tmp_path / "t.csv", {"when": days, "v": values}), "--out", tmp_path / "o.csv")
    assert [row[1] for row in cells(tmp_path / "o.csv")[1:]] == days
    table = written(tmp_path / "u.csv", {"when": days, "v": values, "w": words})
    fine("anomalies", table, "--explain", "--top", 60, "--out", tmp_path / "o.csv")
    best = {(row[5], row[6]) for row in cells(tmp_path / "o.csv")[1:]}
    form = {"when": r"\d\d/\d\d/2024", "v": r"-?\d+\.\d\d", "w": "x|y"}
    assert {name for name, _ in best} & {"when", "v"}
    assert all(re.fullmatch(form.get(name, ""), value) for name, value in best)


def test_times_of_day_and_durations_go_through_every_command_as_themselves(tmp_path):
    minutes = RNG.integers(0, 1380, 60).tolist()
    known = [i % 9 != 4 for i in range(60)]
    at = [time(m // 60, m % 60) if there else None for m, there in zip(minutes, known, strict=True)]
    took = [timedelta(minutes=m) if there else None for m, there in zip(minutes, known, strict=True)]
    table = pa.table(
        {
            "at": pa.array(at, pa.time32("s")),
            "took": pa.array(took, pa.duration("ms")),
            "x": np.array(minutes) / 60 + RNG.normal(size=60),
            "w": ["u", "v"] * 30,
        }
    )
    path, out = tmp_path / "t.parquet", tmp_path / "o.parquet"
    parquet.write_table(table, path)
    said = [
        fine("describe", path).stdout,
        fine("anomalies", path, "--explain", "--report", tmp_path / "r.html").stdout,
        fine("compare", path, path).stdout,
        fine("expect", path, "--given", "w=u").stdout,
        fine("fill", path, "--interval", "--out", tmp_path / "o.csv").stdout,
        (tmp_path / "o.csv").read_text(),
    ]
    assert not any("1970" in text for text in said)
    assert "median: 12:" in said[2] or "median: 1" in said[2]
    for command in (("fill",), ("sample", "-n", 5, "--complete")):
        fine(command[0], path, *command[1:], "--out", out)
        made = parquet.read_table(out)
        assert made.schema.types[1:2] == [pa.duration("ms")]
        assert pa.types.is_time(made.schema.types[0])
        assert all(cell.seconds % 60 == 0 for cell in made.column("took").to_pylist())


def test_a_word_that_usually_means_a_missing_cell_is_a_word_where_others_are_said_to(tmp_path):
    rows = [(word, i + 1) for i, word in enumerate(["NA"] * 4 + ["US"] * 4 + ["-", "NA"])]
    path = written(tmp_path / "t.csv", {"k": [word for word, _ in rows], "x": [str(x) for _, x in rows]})
    fine("fill", path, "--missing", "-", "--out", tmp_path / "o.csv")
    after = [row[0] for row in cells(tmp_path / "o.csv")[1:]]
    assert [word for word, _ in rows[:8]] == after[:8]
    assert after[8] in ("NA", "US")
    assert after[9] == "NA"


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """Whole numbers with limits on both sides, one between them, and a gap."""
    path = tmp_path_factory.mktemp("limits") / "lead.csv"
    lead = [str(30 + i * 7 % 31) for i in range(N)]
    lead[4], lead[9:20:5], lead[25] = "", ["<10.5", " <8", ">90"], "<8"
    rest = [f"{x:.2f}" for x in X]
    rest[11] = ""
    return written(path, {"lead": lead, "rest": rest}), lead


def test_limits_stay_text_among_the_numbers_of_json_lines(limited, tmp_path):
    path, lead = limited
    out = tmp_path / "o.jsonl"
    fine("fill", path, "--out", out)
    found = [json.loads(line)["lead"] for line in out.read_text().splitlines()]
    assert isinstance(found[4], (int, float))
    wanted = [cell if "<" in cell or ">" in cell else int(cell) for cell in lead if cell]
    assert found[:4] + found[5:] == wanted
    fine("cells", path, "--repaired", out)
    kept = [json.loads(line).get("lead") for line in out.read_text().splitlines()]
    assert [kept[9], kept[25]] == ["<10.5", "<8"]


@pytest.mark.parametrize("suffix", [".parquet", ".npy"])
def test_formats_of_numbers_alone_refuse_limits_that_stay(limited, tmp_path, suffix):
    path, _ = limited
    out = tmp_path / f"o{suffix}"
    for command in (("fill", path, "--interval", "--out", out), ("cells", path, "--repaired", out)):
        found = run(*command)
        said = " ".join(found.stderr.splitlines()[-1].split())
        assert found.exit_code == 2, said
        assert all(word in said for word in ("'lead'", "'<10.5'", ".csv"))
        assert ("--limits fill" in said) == (command[0] == "fill")
    assert not out.exists()
    fine("fill", path, "--limits", "fill", "--out", out)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_ends_of_a_limit_that_stays_are_the_limit_or_empty(limited, tmp_path, suffix):
    path, lead = limited
    out = tmp_path / f"o{suffix}"
    fine("fill", path, "--interval", "--out", out)
    lines = out.read_text().splitlines()
    rows = list(csv.DictReader(lines)) if suffix == ".csv" else list(map(json.loads, lines))
    ends = [tuple(row.get(end) or None for end in ("lead_low", "lead_high")) for row in rows]
    assert [tuple(end if end is None else float(end) for end in ends[row]) for row in (9, 14, 19, 25)] == [
        (None, 10.5),
        (None, 8.0),
        (90.0, None),
        (None, 8.0),
    ]
    assert all(float(low) == float(high) == float(lead[row]) for row, (low, high) in enumerate(ends[:4]))
    assert float(ends[4][0]) <= float(rows[4]["lead"]) <= float(ends[4][1])


@pytest.mark.parametrize(("key", "left"), [("", ["key"]), ("n5", [])])
def test_columns_that_are_not_used_are_said_to_keep_their_gaps_if_they_have_any(tmp_path, key, left):
    keys = [f"n{i}" if i != 5 else key for i in range(N)]
    columns = {"key": keys, "a": ["", *X[1:].round(2).tolist()], "b": X.round(1).tolist()}
    path = written(tmp_path / "t.csv", columns)
    found = json.loads(fine("fill", path, "--out", tmp_path / "o.csv", "--json").stdout)
    assert (found["filled"], found["left"]) == (1, left)


def test_excluded_columns_are_left_out_as_the_sentence_says(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i * i % 11},{i % 7 if i % 3 == 0 else ''}\n" for i in range(30)))
    said = " ".join(fine("fill", path, "--out", tmp_path / "o.csv").stdout.split())
    assert "--exclude leaves the column out." in said
    fine("fill", path, "--exclude", "b", "--out", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().startswith("a\n0\n1\n")


def test_a_column_that_only_the_reference_has_is_wanted_with_empty_cells(tmp_path):
    known = written(tmp_path / "a.csv", {"x": X.round(2), "y": (2 * X).round(2)})
    new = written(tmp_path / "b.csv", {"x": X[:5].round(2)})
    said = refused("fill", new, "--reference", known, "--out", tmp_path / "o.csv")
    assert "lacks 'y'" in said
    assert "add it with empty cells to have it filled" in said


def test_filled_cells_are_listed_and_a_reference_fills_a_new_file(tmp_path):
    rng = np.random.default_rng(0)
    x, side = rng.normal(size=80).round(2), rng.choice(["left", "right"], 80)
    y = (10.0 * x + 50.0 * (side == "left") + rng.normal(size=80)).round(1)
    old = written(tmp_path / "old.csv", {"x": x, "side": side, "y": y})
    gaps = {"x": [1.5, 0.2, -1.0], "side": ["left", "", "right"], "y": ["", "52.1", ""]}
    new, out, listed = written(tmp_path / "new.csv", gaps), tmp_path / "o.csv", tmp_path / "cells.csv"
    said = fine("fill", new, "--reference", old, "--out", out, "--filled", listed, "--json").stdout
    assert json.loads(said)["reference_rows"] == 80
    whole, (head, *rows) = cells(out), cells(listed)
    assert head == ["line", "column", "value", "low", "high", "probability"]
    assert [row[:2] for row in rows] == [["2", "y"], ["3", "side"], ["4", "y"]]
    assert [row[2] for row in rows] == [whole[1][2], whole[2][1], whole[3][2]]
    assert float(rows[0][3]) < 65.0 < float(rows[0][4])
    assert rows[1][2:5] == ["left", "", ""]
    assert float(rows[1][5]) > 0.8
    assert rows[0][5] == ""
    empty = written(tmp_path / "empty.csv", gaps | {"y": ["", "", ""]})
    made = []
    for seed in (0, 0, 1):
        how = ("--strategy", "draw", "--seed", seed)
        fine("fill", empty, "--reference", old, "--out", out, "--filled", listed, *how)
        made.append([row[2] for row in cells(out)[1:]])
    assert made[0] == made[1] != made[2]
    assert all(cell == f"{float(cell):.1f}" for cell in made[0])  # the decimals of the reference
    assert "FILE" in run("fill", new, "--reference", new, "--out", out).stderr


def test_a_table_without_gaps_has_an_empty_list(tmp_path):
    table = written(tmp_path / "t.csv", {"x": X.round(3), "y": (X**2).round(3)})
    fine("fill", table, "--out", tmp_path / "o.csv", "--filled", tmp_path / "cells.csv")
    assert cells(tmp_path / "cells.csv") == [["line", "column", "value", "low", "high", "probability"]]


def test_means_that_a_few_far_cells_decide_are_said_in_the_answer(tmp_path):
    ph = np.append(np.random.default_rng(5).normal(7.4, 0.1, 200).round(2), 7450.0)
    cells = {"temp": [f"{20.0 + i % 9}" for i in range(211)], "ph": [*map(str, ph.tolist()), *[""] * 10]}
    how = (
        "fill",
        written(tmp_path / "a.csv", cells),
        "--strategy",
        "mean",
        "--out",
        tmp_path / "b.csv",
        "--json",
        "--quiet",
    )
    (said,) = json.loads(run(*how).stdout)["warnings"]
    assert said.startswith("10 of the 10 means that fill column 'ph' are outside")
