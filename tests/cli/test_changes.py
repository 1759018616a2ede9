"""``isopleth changes``: what it prints, the files it writes, and one line for all that is wrong."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli.shell import fine, refused, rows_of, run
from cli.shell import found as as_json
from isopleth import ChangePointDetector

pytestmark = pytest.mark.usefixtures("few_simulations")

RNG = np.random.default_rng(0)
SERIES = np.column_stack([np.repeat([0.0, 4.0], [40, 30]) + RNG.normal(size=70), RNG.normal(size=70)])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, SERIES, delimiter=",", header="flow,heat", comments="")
    return path


SNAPSHOT = """\
The series of 70 steps changes once.
The first step after a change: line 42 (level).

line  earliest  latest   kind    pvalue  columns  state    before  after
  42        41      42  level  0.002821     flow      1  -0.06044  4.27

line: the first one after the change.
"""


def test_the_change_is_shown_with_its_line_and_its_row_if_asked_for(file):
    result = run("changes", file, "--column", "flow")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(SNAPSHOT)
    (row,) = as_json("changes", file, "--column", "flow", "--row-numbers")["table"]
    assert (row["line"], row["row"], row["kind"]) == (42, 41, "level")


def test_files_are_written(file, tmp_path):
    out, plot = tmp_path / "rows.csv", tmp_path / "changes.svg"
    result = run("changes", file, "--column", "flow", "--out", out, "--plot", plot)
    assert result.exit_code == 0, result.output
    rows = rows_of(out)
    assert len(rows) == 70
    assert [int(row["line"]) for row in rows if row["change"]] == [42]
    assert [row["segment"] for row in rows] == ["0"] * 40 + ["1"] * 30
    assert "flow" in plot.read_text(encoding="utf-8") or plot.stat().st_size > 5000


def test_several_columns_are_one_series_and_calm_is_said(file):
    assert as_json("changes", file)["changes"] == 1
    calm = run("changes", file, "--column", "heat").stdout.splitlines()
    assert calm[0] == "The series of 70 steps shows no change."
    assert "level in the last 4 steps" in calm[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--column", "cold"], "cold"),
        (["--out", "rows.txt"], "none of .csv, .parquet"),
        (["--plot", "table.csv"], "none of .png"),
        (["--false-alarm-rate", "0"], "false-alarm-rate"),
        (["--period", "24,never"], "--period = 'never'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(file, arguments, message):
    result = run("changes", file, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_short_and_infinite_series_and_mostly_unknown_columns_are_refused(tmp_path):
    path = tmp_path / "series.csv"
    for cells, message in (
        (["1", "2", "3"], "3 rows"),
        (["1", "2", "inf"] * 10, "line 4"),
        (["1", "", "NA"] * 10, "20 missing values of 30 in 'a'"),
    ):
        path.write_text("\n".join(["a,b", *(f"{cell},0" for cell in cells)]) + "\n")
        result = run("changes", path)
        assert result.exit_code == 2
        assert message in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("columns", [[], ["--column", "heat"]])
def test_a_mistyped_number_is_named_with_its_column_and_line(file, columns):
    lines = file.read_text().splitlines()
    lines[18] = "1.0,5e3x"
    file.write_text("\n".join(lines) + "\n")
    result = run("changes", file, *columns)
    assert result.exit_code == 2
    assert "column 'heat' holds '5e3x' in line 19, and nearly all other cells are numbers; correct it" in result.stderr
    assert run("changes", file, "--column", "flow").exit_code == 0
    assert run("changes", file, *columns, "--missing", "5e3x").exit_code == 0


def test_the_shell_and_python_agree_on_missing_cells_and_missing_rows(tmp_path):
    rng = np.random.default_rng(5)
    times = pd.date_range("2024-01-01", periods=300, freq="30min")
    frame = pd.DataFrame({"when": times, "flow": np.repeat([0.0, 3.0], 150) + rng.normal(size=300)})
    frame.loc[rng.choice(300, 9, replace=False), "flow"] = np.nan
    frame = frame.drop(index=[40, 41, 42, *range(145, 160)])
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    result = ChangePointDetector(random_state=0).fit(frame).result_
    assert len(result) == 1
    shown = as_json("changes", path)
    (row,) = shown["table"]
    assert row["line"] == result.change_points[0] + 2
    assert [row["earliest"], row["latest"]] == (result.intervals[0] + 2).tolist()
    gaps = "18 of 300 steps of 30 minutes have no row and are taken as gaps"
    assert shown["summary"][-1] == f"{gaps}; the longest gap is of 15 steps, after 2024-01-04 00:00:00."


@pytest.fixture
def timed(tmp_path):
    """The series with a column of times, hour after hour; line 42 is 2024-01-02 16:00."""
    path = tmp_path / "timed.csv"
    times = np.datetime64("2024-01-01T00:00") + np.arange(70) * np.timedelta64(1, "h")
    rows = [f"{str(time).replace('T', ' ')},{a},{b}" for time, (a, b) in zip(times, SERIES, strict=True)]
    path.write_text("\n".join(["when,flow,heat", *rows]) + "\n")
    return path


@pytest.mark.parametrize("arguments", [["--time", "when"], ["--column", "flow"]])
def test_times_stand_beside_lines(timed, tmp_path, arguments):
    out, report = tmp_path / "rows.csv", tmp_path / "page.html"
    result = run("changes", timed, *arguments, "--out", out, "--report", report)
    assert result.exit_code == 0, result.output
    assert "line 42 (level, 2024-01-02 16:00:00)" in result.stdout.splitlines()[1]
    rows = rows_of(out)
    assert [(row["line"], row["time"]) for row in rows if row["change"]] == [("42", "2024-01-02 16:00")]
    assert "2024-01-02 16:00" in report.read_text(encoding="utf-8")
    (row,) = as_json("changes", timed, *arguments)["table"]
    assert (row["line"], row["time"]) == (42, "2024-01-02 16:00:00")
    assert row["earliest"] <= 42 <= row["latest"]


def test_times_may_be_numbers_and_may_be_left_out(timed, tmp_path):
    path = tmp_path / "seconds.csv"
    np.savetxt(path, np.column_stack([0.5 * np.arange(70), SERIES]), delimiter=",", header="t,flow,heat", comments="")
    (row,) = as_json("changes", path, "--time", "t")["table"]
    assert row["time"] == 20.0
    (row,) = as_json("changes", timed, "--exclude", "when")["table"]
    assert "time" not in row


@pytest.mark.parametrize(
    ("line", "time", "message"),
    [
        (30, "2024-01-01 09:00", "'when' does not ascend: 2024-01-01 09:00:00 in line 30"),
        (30, "2024-01-02 03:00", "'when' does not ascend: 2024-01-02 03:00:00 in line 30"),
        (12, "", "no time in line 12"),
    ],
)
def test_the_first_line_where_times_do_not_ascend_is_named(timed, line, time, message):
    lines = timed.read_text().splitlines()
    lines[line - 1] = time + lines[line - 1][lines[line - 1].index(",") :]
    timed.write_text("\n".join(lines) + "\n")
    result = run("changes", timed)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_cell_that_is_no_time_is_named_and_times_alone_are_refused(timed):
    lines = timed.read_text().splitlines()
    lines[20] = "soon" + lines[20][lines[20].index(",") :]
    timed.write_text("\n".join(lines) + "\n")
    assert "column 'when' holds 'soon' in line 21" in run("changes", timed).stderr
    timed.write_text("when\n" + "".join(f"2024-01-{day:02}\n" for day in range(1, 29)))
    assert "has no column besides its times" in run("changes", timed).stderr


def test_a_column_without_a_value_is_named(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("v,w\n" + "".join(f"{i % 7},\n" for i in range(30)))
    assert "column 'w' is left out (no value)" in refused("changes", path, "--column", "w")
    assert "--period = 0: expected 'auto'" in refused("changes", path, "--quiet", "--column", "v", "--period", "0")


def test_several_columns_of_times_and_unknown_ones_are_refused(timed):
    text = timed.read_text().splitlines()
    rows = [text[0] + ",sent", *(f"{row},{row.split(',')[0]}" for row in text[1:])]
    timed.write_text("\n".join(rows) + "\n")
    result = run("changes", timed)
    assert result.exit_code == 2
    assert "several columns hold times, 'when', 'sent'" in result.stderr
    assert run("changes", timed, "--time", "when", "--exclude", "sent").exit_code == 0
    result = run("changes", timed, "--time", "never")
    assert result.exit_code == 2
    assert "no column 'never' (--time)" in result.stderr


def test_a_column_that_rises_as_time_does_is_taken_as_times_unless_it_is_asked_for(tmp_path):
    path = tmp_path / "seconds.csv"
    np.savetxt(path, np.column_stack([0.5 * np.arange(70), SERIES]), delimiter=",", header="t,flow,heat", comments="")
    result = fine("changes", path, "--json")
    assert (
        "'t' rises from row to row by equal steps, as times do, and is taken as the times of the rows" in result.stderr
    )
    assert "; --numeric t takes it as part of the series" in result.stderr
    assert [(row["line"], row["time"]) for row in json.loads(result.stdout)["table"]] == [(42, 20.0)]
    for asked in (["--numeric", "t"], ["--column", "t,flow"]):
        result = fine("changes", path, *asked)
        assert "70 steps" in result.stdout
        assert "rises from row to row" not in result.stderr


def test_a_count_is_judged_per_a_given_column_which_is_no_part_of_the_series(tmp_path):
    rng = np.random.default_rng(1)
    requests = rng.poisson(1000.0 * (1.5 + np.sin(0.5 * np.arange(120.0))))
    errors = rng.poisson(requests * np.where(np.arange(120) < 80, 0.02, 0.05))
    path = tmp_path / "service.csv"
    pd.DataFrame({"requests": requests, "errors": errors}).to_csv(path, index=False)
    found = as_json("changes", path, "--given", "requests", "--period", "none")
    assert ([row["line"] for row in found["table"]], found["columns"]) == ([82], 1)
    assert "Judged as rates: errors, per requests." in found["summary"]
    assert "perhaps 'requests' is meant" in refused("changes", path, "--given", "request")
    assert "--given names 'errors'" in refused("changes", path, "--column", "errors", "--given", "errors")
    assert "besides its times and those that are given" in refused("changes", path, "--given", "errors,requests")


def test_times_are_shown_by_the_offsets_in_the_file_or_by_the_clock_of_a_zone(tmp_path):
    hours = pd.date_range("2026-03-27", periods=70, freq="h", tz="Europe/Berlin")
    path = tmp_path / "summer.csv"
    path.write_text("time,flow\n" + "".join(f"{t.isoformat()},{x}\n" for t, x in zip(hours, SERIES[:, 0], strict=True)))

    def times(*options):
        return [row["time"] for row in as_json("changes", path, "--period", "none", *options)["table"]]

    assert times() == ["2026-03-28 16:00:00+01:00"]
    assert times("--timezone", "Asia/Tokyo") == ["2026-03-29 00:00:00+09:00"]
    follows = "Days and weeks follow the clock of the times, which was set forward by 60 minutes before 2026-03-29 03:00:00+02:00"
    for options, said in (((), True), (("--timezone", "Europe/Berlin"), True), (("--timezone", "UTC"), False)):
        assert (follows in str(as_json("changes", path, *options)["summary"])) == said
    assert "expected the name of a time zone" in refused("changes", path, "--timezone", "Nowhere")
    no_times = tmp_path / "table.csv"
    np.savetxt(no_times, SERIES, delimiter=",", header="flow,heat", comments="")
    assert "has no column of times for --timezone" in refused("changes", no_times, "--timezone", "UTC")
