"""``isopleth monitor`` of rows in their context: times are the context by default, and each cause has one page."""

from __future__ import annotations

import json
from functools import partial

import jsonschema
import numpy as np
import pandas as pd
import pytest

from cli import shell
from isopleth import DriftMonitor
from isopleth.cli.json_schema import json_schema

run = partial(shell.run, "monitor")
PAGED = 3


def hours(start, days, seed):
    rng, n = np.random.default_rng(seed), 24 * days
    when = pd.date_range(start, periods=n, freq="h")
    level = 3.0 * np.sin(np.asarray(when.hour) / 12.0 * np.pi)
    rows = np.round(level[:, None] * [1.0, 0.5] + rng.normal(size=(n, 2)), 4)
    return pd.DataFrame({"time": when, "requests": rows[:, 0], "errors": rows[:, 1]})


REFERENCE, STREAM = hours("2025-01-06", 28, 0), hours("2025-02-03", 7, 1)
STREAM.loc[60:, "errors"] += 1.5


@pytest.fixture
def reference(tmp_path):
    REFERENCE.to_csv(tmp_path / "reference.csv", index=False)
    return tmp_path / "reference.csv"


def text(rows):
    return rows.to_csv(index=False)


def test_times_are_the_context_and_pages_are_those_of_the_library(reference, tmp_path):
    options = ("--reference", reference, "--run-length", 672, "--json")
    result = run(*options, "--metrics", tmp_path / "m.prom", "--report", tmp_path / "page.html", rows=text(STREAM))
    assert result.exit_code == PAGED
    assert "judged by hour and weekday of 'time'; --context none compares windows" in result.stderr
    pages = DriftMonitor(context="time", expected_run_length=672).fit(REFERENCE).update(STREAM).opened
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["row"] for each in found] == [page.row + 1 for page in pages] != []
    assert found[0]["columns"] == ["errors"]
    assert found[0]["time"] == str(STREAM["time"][found[0]["since"] - 1])[:16]
    for each in found:
        jsonschema.validate(each, json_schema("monitor"))
    metrics = (tmp_path / "m.prom").read_text()
    assert "isopleth_monitor_open_pages 1\n" in metrics
    assert 'isopleth_monitor_page{kind="level",columns="errors",direction="up"} 1\n' in metrics
    assert 'isopleth_monitor_page_observed{kind="level",columns="errors",direction="up"} ' in metrics
    assert "errors is higher" in (tmp_path / "page.html").read_text()


def test_a_state_goes_on_and_is_refused_for_another_context(reference, tmp_path):
    options = ("--reference", reference, "--run-length", 672, "--state", tmp_path / "state", "--context", "hour")
    whole = run(
        "--reference", reference, "--run-length", 672, "--context", "hour", rows=text(STREAM)
    ).stdout.splitlines()
    parts = [run(*options, rows=text(part)).stdout.splitlines() for part in (STREAM[:65], STREAM[65:])]
    assert parts[0][:-1] + parts[1][:-1] == whole[:-1]
    assert parts[1][-1] == whole[-1] == "168 rows, 1 page"
    other = run(*options[:-2], rows=text(STREAM))
    assert (other.exit_code, other.stdout) == (2, "")
    assert "--context hour; give the same" in other.stderr.replace("\nisopleth: ", " ")


def test_the_context_is_read_beside_the_columns_that_are_watched(reference):
    options = ("--reference", reference, "--run-length", 672)
    for more in (("--columns", "errors"), ("--columns", "errors", "--ignore-missing")):
        result = run(*options, *more, "--json", rows=text(STREAM))
        assert "'time' is read for the context, beside --columns" in result.stderr
        assert "judged by hour and weekday" in result.stderr
        first = json.loads(result.stdout.splitlines()[0])
        assert (first["event"], first["columns"], first["page"]) == ("opened", ["errors"], 1)
        assert 1.0 < first["observed"] - first["usual"] < 2.0
    named = run(*options, "--columns", "errors", "--context", "hour", rows=text(STREAM))
    assert "'time' is read for the context" in named.stderr
    windows = run(*options, "--columns", "errors", "--window", 10, rows=text(STREAM))
    assert "judged by" not in windows.stderr


def test_columns_of_a_context_are_separated_by_commas_and_a_clock_is_none_of_them(reference):
    """Two numbers are the context; the times are read for the pages only, by the clock of the zone."""
    rows = [
        table.assign(cpu=2.0 * table["requests"] + table["errors"] + np.random.default_rng(k).normal(size=len(table)))
        for k, table in enumerate((REFERENCE, STREAM))
    ]
    rows[1].loc[100:, "cpu"] += 6.0
    rows[0].to_csv(reference, index=False)
    options = ("--reference", reference, "--run-length", 672, "--timezone", "Europe/Berlin", "--columns", "cpu")
    result = run(*options, "--context", "requests,errors", "--json", rows=text(rows[1]))
    assert "'requests', 'errors', 'time' are read for the context" in result.stderr
    first = json.loads(result.stdout.splitlines()[0])
    assert (first["columns"], first["since"]) == (["cpu"], 101)
    assert first["time"] == str(STREAM["time"][100] + pd.Timedelta(hours=1))[:16]
    again = run(*options, "--context", "requests", "--context", "errors", "--json", rows=text(rows[1]))
    assert again.stdout == result.stdout


def test_metrics_hold_the_pages_that_are_open_before_new_rows_come(reference, tmp_path):
    options = ("--reference", reference, "--run-length", 672, "--state", tmp_path / "state", "--replay")
    run(*options, rows=text(STREAM))
    again = run(*options, "--metrics", tmp_path / "m.prom", rows=text(STREAM))
    assert again.exit_code == 0
    assert "isopleth_monitor_open_pages 1\n" in (tmp_path / "m.prom").read_text()


def test_windows_are_compared_if_they_are_asked_for_or_the_reference_is_short(reference, tmp_path):
    few = tmp_path / "few.csv"
    hours("2025-01-06", 5, 2).sample(frac=1.0, random_state=0).to_csv(few, index=False)
    for options in (
        ("--reference", few, "--window", 10, "--run-length", 200),
        ("--reference", few, "--run-length", 200, "--window", 5),
    ):
        result = run(*options, rows=text(STREAM[:20]))
        assert "judged by" not in result.stderr
        assert "'time' (times, which are later in the stream)" in result.stderr
    refused = run("--reference", reference, "--context", "requests", "--context", "errors", rows="")
    assert refused.exit_code == 2
    assert "no column of numbers that vary is left" in refused.stderr


def test_words_are_left_out_of_a_context_that_was_not_asked_for(reference, tmp_path):
    options = ("--run-length", 672, "--json")
    plain = run("--reference", reference, *options, rows=text(STREAM))
    words = [
        table.assign(shop=np.arange(len(table)) % 3).replace({"shop": {0: "web", 1: "app", 2: "desk"}})
        for table in (REFERENCE, STREAM)
    ]
    words[0].to_csv(tmp_path / "words.csv", index=False)
    found = run("--reference", tmp_path / "words.csv", *options, rows=text(words[1]))
    assert found.stdout == plain.stdout != ""
    assert "'shop' holds words, which are not watched in a context: left out; --context none compares" in found.stderr
    assert "--context time,shop takes rows of the same word" in found.stderr


def test_lines_say_when_a_page_was_opened_and_small_changes_are_not_told(reference, tmp_path):
    options = ("--reference", reference, "--run-length", 672)
    result = run(*options, rows=text(STREAM))
    (line,) = (line for line in result.stdout.splitlines() if "errors is higher" in line)
    row = int(line.split()[1])
    assert line.startswith(f"row {row} ({str(STREAM['time'][row - 1])[:16]}): errors is higher")
    small = run(*options, "--min-effect", 4, "--state", tmp_path / "state", rows=text(STREAM))
    assert (small.exit_code, small.stdout) == (0, "168 rows, 0 pages\n")
    other = run(*options, "--state", tmp_path / "state", rows=text(STREAM))
    assert "--min-effect 4; give the same" in other.stderr.replace("\nisopleth: ", " ")
    refused = run(*options, "--min-effect", 1, "--context", "none", rows=text(STREAM))
    assert (refused.exit_code, "below 1, where windows are compared" in refused.stderr) == (2, True)


def test_a_column_that_joins_a_page_and_a_change_that_grows_are_told(reference):
    rows = hours("2025-02-03", 14, 3)
    rows.loc[60:, "errors"] += 6.0
    rows.loc[60:, "requests"] += 6.0 + 0.3 * np.arange(len(rows) - 60)
    options = ("--reference", reference, "--run-length", 672)
    found = [json.loads(line) for line in run(*options, "--json", rows=text(rows)).stdout.splitlines()]
    for each in found:
        jsonschema.validate(each, json_schema("monitor"))
    assert {"opened", "joins", "grows"} <= {each["event"] for each in found}
    words = run(*options, rows=text(rows)).stdout.replace("\n", " ")
    assert all(f"): {word}: " in words for word in ("also", "grows"))


def test_windows_say_the_time_of_an_alarm(tmp_path):
    few = tmp_path / "few.csv"
    hours("2025-01-06", 5, 2).sample(frac=1.0, random_state=0).to_csv(few, index=False)
    rows = STREAM.assign(errors=STREAM["errors"] + 9.0)[:40]
    options = ("--reference", few, "--window", 10, "--run-length", 200)
    found = json.loads(run(*options, "--json", rows=text(rows)).stdout.splitlines()[0])
    jsonschema.validate(found, json_schema("monitor"))
    assert found["row_time"] == str(rows["time"][found["row"] - 1])
    assert f"row {found['row']} ({found['row_time']}): rows" in run(*options, rows=text(rows)).stdout


def test_a_clock_of_another_offset_is_told(tmp_path):
    offsets = [
        table.assign(time=[f"{str(time).replace(' ', 'T')}{offset}" for time in table["time"]])
        for table, offset in ((REFERENCE, "+01:00"), (STREAM, "+02:00"))
    ]
    offsets[0].to_csv(tmp_path / "usual.csv", index=False)
    options = ("--reference", tmp_path / "usual.csv", "--run-length", 672)
    result = run(*options, rows=text(offsets[1]))
    assert "of the clock +02:00, and those of the reference of +01:00" in result.stderr.replace("\nisopleth: ", " ")
    both = text(offsets[1][:30]) + text(offsets[0][-9:]).partition("\n")[2]
    both_said = run(*options, rows=both).stderr.replace("\nisopleth: ", " ")
    assert "of the clock UTC or several offsets, and those of the reference of +01:00" in both_said
    zone = run(*options, "--timezone", "Europe/Berlin", rows=text(offsets[1]))
    assert "of the clock" not in zone.stderr


def test_a_stream_that_is_sent_again_or_rotated_is_told(reference, tmp_path):
    options = ("--reference", reference, "--run-length", 672, "--state", tmp_path / "state")
    assert run(*options, rows=text(STREAM[:50])).exit_code == 0
    again = run(*options, rows=text(STREAM[:50]))
    assert "standard input: the time of line 2, 2025-02-03 00:00, is not later than 2025-02-05 01:00" in again.stderr
    assert "--replay skips the rows that --state has counted" in again.stderr
    (tmp_path / "state").unlink()
    assert run(*options, rows=text(STREAM[:50])).exit_code == 0
    shorter = run(*options, "--replay", rows=text(STREAM[50:80]))
    assert (shorter.exit_code, shorter.stdout) == (2, "")
    assert "fewer rows (30) than the state has counted (50)" in shorter.stderr
    assert "was the file rotated?" in shorter.stderr
    rotated = run(*options, "--replay", rows=text(STREAM[50:]))
    assert (rotated.exit_code, rotated.stdout) == (2, "")
    assert "2025-02-07 03:00:00, is another one than in the state, 2025-02-05 01:00:00" in rotated.stderr


@pytest.mark.parametrize("how", ["context", "windows"])
def test_an_absence_of_rows_is_told(reference, how):
    rows = STREAM.drop(index=range(20, 32))[:50]
    more = ("--run-length", 672) if how == "context" else ("--window", 5, "--run-length", 50)
    options = ("--reference", reference, *more)
    result = run(*options, rows=text(rows))
    if how == "windows":
        assert "no rows for 13 hours before line 22 (2025-02-04 08:00:00)" in result.stderr
        return
    assert "row 21 (2025-02-04 08:00): no rows for 13 hours, since row 20 (2025-02-03 19:00)" in result.stdout
    found = json.loads(run(*options, "--json", rows=text(rows)).stdout.splitlines()[0])
    assert (found["event"], found["row"], found["since"], found["seconds"]) == ("absent", 21, 20, 13 * 3600.0)
    jsonschema.validate(found, json_schema("monitor"))


@pytest.mark.parametrize("unit", [1, 1000])
def test_seconds_and_milliseconds_since_1970_are_times_where_these_are_asked_for(reference, tmp_path, unit):
    for table, path in ((REFERENCE, tmp_path / "counted.csv"), (STREAM, tmp_path / "stream.csv")):
        seconds = (table["time"] - pd.Timestamp(0)) // pd.Timedelta(seconds=1)
        table.assign(time=seconds * unit).to_csv(path, index=False)
    more = ("--run-length", 672, "--context", "hour,weekday", "--json")
    plain = run("--reference", reference, *more, rows=text(STREAM))
    options = ("--reference", tmp_path / "counted.csv", *more)
    found = run(*options, "--time-columns", "time", rows=(tmp_path / "stream.csv").read_text())
    assert found.stdout.replace("+00:00", "") == plain.stdout != ""
    refused = run(*options, rows=(tmp_path / "stream.csv").read_text()).stderr
    assert (
        "--context: 'hour', 'weekday' are taken from the one column of times, and there is none; name a column of times"
        in refused
    )
    assert "--time-columns takes seconds since 1970 as times" in refused


def test_messages_name_what_is_meant_and_speak_as_the_shell_does(reference, tmp_path):
    options = ("--reference", reference, "--run-length", 672)
    assert "no column tme, perhaps 'time' is meant" in run(*options, "--context", "tme", rows="").stderr
    rows = text(STREAM[:20]).splitlines()
    rows[5] = rows[5].rpartition(",")[0] + ",ERR"
    rows[7] = rows[7].rpartition(",")[0]
    lines = "".join(line + "\n" for line in rows)
    found = run(*options, "--bad-cells", "missing", rows=lines)
    assert "take the column as categories with --categorical errors" in found.stderr
    assert "line 8: 2 cells where the first line has 3; correct that line; the line is left out." in found.stderr
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (0, "19 rows, 0 pages")
