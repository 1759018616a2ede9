"""``isopleth monitor``: alarms as they come, a state that survives kill -9, one line for all that is wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forked
from cli import shell
from isopleth import KDE, DriftMonitor, read_table
from isopleth.files.stream import NewWords, RowStream
from isopleth.io import load, save
from isopleth.io.output_files import atomic_write
from isopleth.tasks.drift import calibration as drift_calibration

run = partial(shell.run, "monitor")
refused = partial(shell.refused, "monitor")

RNG = np.random.default_rng(0)
REFERENCE = RNG.normal(size=(200, 2))
STREAM = np.concatenate([RNG.normal(size=(150, 2)), RNG.normal(3.0, size=(150, 2))])
ALARMED = 3
COMMON = ("--window", 20, "--run-length", 400)


@pytest.fixture(autouse=True)
def short_simulations(monkeypatch):
    monkeypatch.setattr(drift_calibration, "FEWEST", 50)
    monkeypatch.setattr(drift_calibration, "SIMULATED_ROWS", 1e4)


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "reference.csv"
    np.savetxt(path, REFERENCE, delimiter=",", header="a,b", comments="")
    return path


def text(rows, header="a,b\n"):
    return header + "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())


def alarms_of(output):
    return [json.loads(line) for line in output.splitlines()]


def expected_rows():
    return [row + 1 for row in DriftMonitor(20, 400, random_state=0).fit(REFERENCE).update(STREAM)]


def test_alarms_are_those_of_the_library(reference):
    result = run("--reference", reference, *COMMON, "--json", rows=text(STREAM))
    assert (result.exit_code, result.stderr) == (ALARMED, "")
    found = alarms_of(result.stdout)
    assert [alarm["row"] for alarm in found] == expected_rows()
    assert found
    for alarm in found:
        assert alarm["first_row"] == alarm["row"] - 19
        assert alarm["statistic"] > alarm["threshold"]
    monitor = DriftMonitor(20, 400, random_state=0).fit(read_table(reference).frame)
    changes = monitor.update(pd.DataFrame(STREAM, columns=["a", "b"])).changes(0)
    given = dict(zip(changes["column"], changes["shift_given_others"], strict=True))
    assert found[0]["shift_given_others"] == {name: by for name, by in given.items() if by}
    assert given["a"]


def test_text_for_people(reference):
    result = run("--reference", reference, *COMMON, rows=text(STREAM))
    lines = result.stdout.splitlines()
    row = expected_rows()[0]
    assert lines[0].startswith(f"row {row}: rows {row - 19} to {row} differ from the reference (distance ")
    assert re.fullmatch(r"    a: median: -?0\.\S+ -> [1-4]\.\S+; spread: \S+ -> \S+", lines[1])
    assert re.fullmatch(r"    [ab]: higher by [\d.]+ deviations from what the other columns let expect", lines[3])
    assert lines[-1] == f"300 rows, {len(expected_rows())} alarms"


@pytest.mark.parametrize(
    "rows",
    [
        text(STREAM, header=""),
        text(STREAM[:, ::-1], header="b,a\n"),
        text(np.column_stack([STREAM[:, 1], RNG.normal(size=300), STREAM[:, 0]]), header="b,other,a\n"),
        text(STREAM).replace(",", ";"),
        "\ufeff" + text(STREAM).replace("\n", "\r\n"),
        text(STREAM).replace("\n", "\n  \n\n").rstrip(),
        re.sub(r"([^,\n]+)", r'"\1"', text(STREAM)),
    ],
    ids=["no header", "turned", "more columns", "semicolons", "windows", "blank lines, none at the end", "quoted"],
)
def test_how_rows_may_be_written(reference, rows):
    result = run("--reference", reference, *COMMON, "--json", rows=rows)
    assert (result.exit_code, result.stderr) == (ALARMED, "")
    assert [alarm["row"] for alarm in alarms_of(result.stdout)] == expected_rows()


@pytest.mark.parametrize(("header", "rows"), [("", 2), ("a,b\n", 2), ("0,1\n", 1)])
def test_a_row_that_counts_the_columns_is_a_header_only_if_the_reference_has_it(tmp_path, header, rows):
    path = tmp_path / "numbers.csv"
    path.write_text(text(REFERENCE.round(1), header=header))
    assert run("--reference", path, *COMMON, rows="0,1\n3,4\n").stdout == f"{rows} row{'s' * (rows > 1)}, 0 alarms\n"


def test_leftovers_of_killed_runs_are_removed(reference, tmp_path):
    state = tmp_path / "state"
    with suppress(KeyError), atomic_write(state) as file:
        left = Path(file.name)
        raise KeyError
    other = left.with_name(left.name.replace("isopleth-", "isopleth-0"))
    fresh = left.with_name(left.stem + "0.tmp")
    for path in (left, other, fresh):
        path.write_bytes(b"")
    for path in (left, other):
        os.utime(path, (0, 0))
    assert run("--reference", reference, *COMMON, "--state", state, rows="").exit_code == 0
    assert (left.exists(), other.exists(), fresh.exists()) == (False, True, True)


def test_a_second_run_on_one_state_is_refused_until_the_first_is_gone(reference, tmp_path):
    state = tmp_path / "state"
    alone = ("--reference", reference, *COMMON, "--state", state)
    with open(tmp_path / "out", "wb") as out, start(reference, state, out) as process:
        deadline = time.monotonic() + 60.0
        while not state.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "another run" in refused(*alone, rows="")
        other = tmp_path / "other"
        assert run("--reference", reference, *COMMON, "--state", other, rows="").exit_code == 0
        link = tmp_path / "link"
        link.symlink_to(state)
        assert "another run" in refused("--reference", reference, *COMMON, "--state", link, rows="")
        process.kill()
    assert run(*alone, rows=text(STREAM)).exit_code == ALARMED
    refused(*alone, rows="a,b\n1,no\n")  # a run that fails gives its lock back too
    assert run(*alone, rows="").exit_code == 0
    assert not list(tmp_path.glob(".isopleth-*"))


def test_where_there_are_no_locks_nothing_is_kept_apart(reference, tmp_path, monkeypatch):
    import fcntl

    def unsupported(file, how):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    assert run("--reference", reference, *COMMON, "--state", tmp_path / "state", rows="").exit_code == 0
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert run("--reference", reference, *COMMON, "--state", tmp_path / "state", rows="").exit_code == 0


def test_a_damaged_state_is_refused(reference, tmp_path):
    state = tmp_path / "state"
    assert run("--reference", reference, *COMMON, "--state", state, rows=text(STREAM[:30])).exit_code == 0
    content = state.read_bytes()
    for broken in (content[: len(content) // 2], content[:-1], b"", b"rows: 3", _flipped(content, len(content) // 3)):
        state.write_bytes(broken)
        words = refused("--reference", reference, *COMMON, "--state", state, rows=text(STREAM))
        assert str(state) in words
        assert state.read_bytes() == broken


def _flipped(content, place):
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


def test_a_state_of_another_version_is_refused(reference, tmp_path):
    state = tmp_path / "state"
    fitted = DriftMonitor(20, 400, random_state=0).fit(read_table(reference).frame)
    for name in ("_key", "_windows", "threshold_"):
        broken = DriftMonitor(20, 400, random_state=0)
        broken.__dict__.update({key: value for key, value in vars(fitted).items() if key != name})
        save(broken, state)
        assert str(state) in refused("--reference", reference, *COMMON, "--state", state, rows=text(STREAM)), name


def test_who_reads_may_go(reference, tmp_path):
    """A pipe that is closed ends the command quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    command = ["monitor", "--json", "--reference", reference, *COMMON]
    with (tmp_path / "err").open("w") as err, forked.Forked(command, None, writer, err) as process:
        os.close(writer)
        with suppress(BrokenPipeError):
            process.stdin.write(text(STREAM + 5.0).encode())
            process.stdin.close()
        assert process.wait() == 1
    assert (tmp_path / "err").read_text() == ""


def test_a_stream_in_parts_goes_on_where_it_was(reference, tmp_path):
    state = tmp_path / "state"
    found = []
    for part in (STREAM[:170], STREAM[170:171], STREAM[171:]):
        result = run("--reference", reference, *COMMON, "--json", "--state", state, rows=text(part))
        assert result.exit_code == (ALARMED if alarms_of(result.stdout) else 0)
        found += alarms_of(result.stdout)
    assert [alarm["row"] for alarm in found] == expected_rows()
    assert load(state).state_.n_rows == 300


def test_going_on_says_nothing_that_was_not_asked_for(reference, tmp_path):
    alone = ("--reference", reference, *COMMON, "--state", tmp_path / "state", "--json")
    for _ in range(2):
        result = run(*alone, rows="")
        assert (result.exit_code, result.stderr) == (0, "")


def test_replay_skips_what_is_counted(reference, tmp_path):
    state = tmp_path / "state"
    found = []
    for part in (STREAM[:163], STREAM, STREAM):
        result = run("--reference", reference, *COMMON, "--json", "--state", state, "--replay", rows=text(part))
        found += alarms_of(result.stdout)
    assert [alarm["row"] for alarm in found] == expected_rows()
    assert load(state).state_.n_rows == 300


def test_rows_before_a_bad_line_are_taken_in(reference, tmp_path):
    state = tmp_path / "state"
    words = refused("--reference", reference, *COMMON, "--state", state, rows=text(STREAM[:5]) + "inf,1\n" + "2,3\n")
    assert "column 'a' holds infinity in line 7" in words
    assert load(state).state_.n_rows == 5


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3: 1 cell where the first line has 2"),
        ("a,b\n1,x\n", "column 'b' holds 'x' in line 2; expected a number"),
        ("a,c\n1,2\n", "lacks 'b' of the reference's columns; it has 'a', 'c'"),
        ("1,2,3\n", "3 columns where the reference has 2"),
        (b"a,b\n1,\xff\n", "line 2: not UTF-8"),
        ('a,b\n"1,2\n', "line 2: a quoted cell is not closed properly"),
        ("a,b\r1,2\r", "line 1: no row of CSV"),
        ("a,b\n1," + "2" * 200_000 + "\n", "column 'b' holds infinity in line 2"),
        ("a,b\n1," + "2" * (2**24 + 2**17), "line 2: more than 16,777,216 bytes without an end of line"),
    ],
)
def test_lines_that_cannot_be_used(reference, rows, words):
    assert words in refused("--reference", reference, *COMMON, rows=rows)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_rows_in_another_encoding(tmp_path, encoding):
    reference = tmp_path / "reference.csv"
    lines = [f"{value},{word}" for value, word in zip(range(200), ["Köln", "Zürich"] * 100, strict=True)]
    reference.write_bytes("\n".join(["größe,ort", *lines, ""]).encode(encoding))
    rows = "\n".join(["größe,ort", *[f"{v},Genf" for v in range(60)], ""]).encode(encoding)
    result = run(
        "--reference", reference, "--window", 20, "--run-length", 400, "--encoding", encoding, "--json", rows=rows
    )
    assert result.exit_code == ALARMED
    assert "ort" in alarms_of(result.stdout)[0]["changes"]
    half = run("--reference", reference, *COMMON, "--encoding", "utf-16", rows=b"\x00\xd8\xff")
    assert encoding != "utf-16" or "standard input is not utf-16 text; name its encoding" in half.stderr


def test_refusals(reference, tmp_path):
    state = tmp_path / "state"
    assert "fewer than the window of 300" in refused("--reference", reference, "--window", 300, rows="")
    short = ("--window", 20, "--run-length", 30)
    assert "--run-length = 30.0 is less than twice the window" in refused("--reference", reference, *short, rows="")
    assert "--encoding latin-1" in refused("--reference", reference, *COMMON, "--encoding", "auto", rows=text(STREAM))
    for nothing in ("", "\n", "a,b\n"):
        assert "standard input has no rows" in refused("--reference", reference, *COMMON, rows=nothing)
    assert "--replay skips" in refused("--reference", reference, "--replay", rows="")
    assert run("--reference", reference, *COMMON, "--state", state, rows=text(STREAM)).exit_code == ALARMED
    assert "made with --window 20 --run-length 400" in refused("--reference", reference, "--state", state, rows="")
    other = tmp_path / "other.csv"
    np.savetxt(other, REFERENCE + 1.0, delimiter=",", header="a,b", comments="")
    assert "another reference" in refused("--reference", other, *COMMON, "--state", state, rows="")
    save(KDE(), state)
    assert "holds a KDE and no monitor" in refused("--reference", reference, *COMMON, "--state", state, rows="")
    save(DriftMonitor(), state)
    assert "does not fit this version" in refused("--reference", reference, *COMMON, "--state", state, rows="")
    folder = tmp_path / "no" / "state"
    assert "does not exist" in refused("--reference", reference, *COMMON, "--state", folder, rows="")


def start(reference, state, out):
    command = ["monitor", "--json", "--replay", *COMMON, "--reference", reference, "--state", state]
    with open(os.devnull, "w") as nothing:
        return forked.Forked(command, None, out, nothing)


def send(process, content, *, to_the_end):
    """The stream in small pieces; only the last run reads its end."""
    with suppress(BrokenPipeError):
        for begin in range(0, len(content), 700):
            process.stdin.write(content[begin : begin + 700])
            process.stdin.flush()
            time.sleep(0.001)
        if to_the_end:
            process.stdin.close()


def kill_at_some_moment(process, state, rng):
    """Every other time while it starts or idles, else soon after it has begun to write the state anew."""
    if rng.random() < 0.5:
        time.sleep(rng.uniform(0.0, 0.5))
    else:
        before, deadline = state.stat().st_mtime_ns, time.monotonic() + 8.0
        while state.stat().st_mtime_ns == before and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.1))
    assert process.kill() == -signal.SIGKILL


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_gives_the_answers_of_an_unbroken_run(tmp_path, reference, kills):
    rng = np.random.default_rng(kills)
    length = 300 + 60 * kills
    rows = rng.normal(size=(length, 2)) + 3.0 * (np.arange(length) > length // 3)[:, None]
    whole = run("--reference", reference, *COMMON, "--json", rows=text(rows)).stdout
    state, out = tmp_path / "state", tmp_path / "alarms"
    assert run("--reference", reference, *COMMON, "--state", state, rows="").exit_code == 0
    with open(out, "wb") as file:
        for number in range(kills + 1):
            process, last = start(reference, state, file), number == kills
            known = text(rows[: length * (number + 1) // (kills + 1)]).encode()  # each run has new rows to count
            sender = threading.Thread(target=send, args=(process, known), kwargs={"to_the_end": last})
            sender.start()
            if last:
                assert process.wait(timeout=120) in (0, ALARMED)
            else:
                kill_at_some_moment(process, state, rng)
            sender.join()
            with suppress(BrokenPipeError):
                process.stdin.close()
    lines = out.read_text().splitlines()
    assert list(dict.fromkeys(lines)) == whole.splitlines()
    assert load(state).state_.n_rows == length
    assert len(whole.splitlines()) > 5


MIXED = "day,colour,temperature,open\n"


def mixed_rows(n, seed, red=0.2, gap=0.0):
    rng = np.random.default_rng(seed)
    days = [
        f"2024-{month:02}-{day:02}" for month, day in zip(rng.integers(1, 13, n), rng.integers(1, 29, n), strict=True)
    ]
    colours = rng.choice(["red", "blue", "green"], n, p=[red, 0.8 - red, 0.2])
    values = [
        "" if lost else f"{value:.2f}"
        for value, lost in zip(rng.normal(20.0, 2.0, n), rng.random(n) < gap, strict=True)
    ]
    flags = rng.choice(["true", "false"], n)
    return "".join(f"{','.join(cells)}\n" for cells in zip(days, colours, values, flags, strict=True))


@pytest.fixture
def mixed_reference(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(MIXED + mixed_rows(400, 0, gap=0.05))
    return path


@pytest.mark.parametrize("change", [{"red": 0.75}, {"gap": 0.8}], ids=["words", "gaps"])
def test_words_times_and_gaps(mixed_reference, tmp_path, change):
    alone = (
        "--reference",
        mixed_reference,
        "--window",
        40,
        "--run-length",
        4000,
        "--state",
        tmp_path / "state",
        "--json",
    )
    quiet = run(*alone, rows=MIXED + mixed_rows(60, 1, gap=0.05))
    assert quiet.exit_code == 0, quiet.output
    assert "400 rows: 1 number, 2 categories, 1 time" in quiet.stderr
    result = run(*alone, rows=MIXED + mixed_rows(100, 2, **change))
    assert result.exit_code == ALARMED
    changes = alarms_of(result.stdout)[0]["changes"]
    if "red" in change:
        assert changes["colour"].startswith("share of ")
        assert "share of 'red': 19.2 % -> " in changes["colour"]
    else:
        assert changes["temperature"].startswith("missing: ")
        ignoring = run(*alone[:-3], "--json", "--ignore-missing", rows=MIXED + mixed_rows(100, 2, **change))
        assert (ignoring.exit_code, ignoring.stdout) == (0, "")
    assert "--ignore-missing" not in quiet.stderr
    assert "give the same ones" in run(*alone, "--ignore-missing", rows="").stderr


def test_new_words_and_cells_that_are_no_times(mixed_reference):
    common = ("--reference", mixed_reference, "--window", 40, "--run-length", 4000)
    result = run(*common, rows=MIXED + "2024-02-03,purple,20.1,TRUE\n02.03.2024,red,NA,False\n")
    assert result.exit_code == 0, result.output
    assert "line 2: colour has words that the reference does not have, 'purple'; they count" in result.stderr
    assert result.stdout == "2 rows, 0 alarms\n"
    wrong = run(*common, rows=MIXED + "2024-02-03,red,20.1,true\nmorning,red,1,false\n").stderr
    assert "standard input: column 'day' holds 'morning' in line 3; expected a time such as 2024-01-31 12:00" in wrong


def test_each_new_word_of_a_stream_is_told_once(mixed_reference):
    """Every batch of rows told again that there were new words, without saying which."""
    stream = NewWords()
    like = read_table(mixed_reference)

    def told(*words):
        lines = "".join(f"2024-02-03,{word},20.1,TRUE\n" for word in words)
        tables = RowStream(like).batches(BytesIO((MIXED + lines).encode()))
        return [sentence for table, _ in tables for sentence in stream.news(table)]

    assert told("red") == []
    (said,) = told("purple", "red", "purple")
    assert said.endswith(
        "line 2: colour has words that the reference does not have, 'purple'; they count as one more category."
    )
    assert told("purple") == []
    assert "'pink'; they count" in told("purple", "pink")[0]
    assert told(*map(str, range(30)))[0].endswith("further ones are not told.")
    assert told("another") == []


def test_a_missing_cell_is_a_row_unlike_all_others(reference):
    assert run("--reference", reference, *COMMON, rows="a,b\n" + "0.1,\n" * 25).exit_code == ALARMED
    assert run("--reference", reference, *COMMON, rows="a,b\n" + "0.1,\n" * 2).exit_code == 0


def metrics_of(path):
    """The values by their names, each of which has a line of help and one of its type before it."""
    lines, found, known = path.read_text().splitlines(), {}, set()
    for line in lines:
        if line.startswith("# "):
            known.add(line.split()[2])
            continue
        name, value = line.rsplit(" ", 1)
        assert name.split("{")[0] in known
        found[name.removeprefix("isopleth_monitor_")] = float(value)
    return found


def test_metrics_are_written_for_prometheus(reference, tmp_path):
    path = tmp_path / "isopleth.prom"
    alone = ("--reference", reference, *COMMON, "--metrics", path)
    assert run(*alone, rows=text(STREAM[:10])).exit_code == 0
    found = metrics_of(path)
    assert (found["rows_total"], found["alarms_total"], found["last_alarm_row"]) == (10, 0, 0)
    assert np.isnan(found["statistic"])
    before = time.time()
    assert run(*alone, rows=text(STREAM)).exit_code == ALARMED
    found = metrics_of(path)
    assert (found["rows_total"], found["alarms_total"]) == (300, len(expected_rows()))
    assert found["last_alarm_row"] == expected_rows()[-1]
    assert before <= found["last_alarm_timestamp_seconds"] <= time.time()
    assert found["threshold"] > 0.0
    assert {name for name in found if name.startswith("column_share")} == {
        f'column_share{{column="{c}"}}' for c in "ab"
    }
    assert not [other for other in tmp_path.iterdir() if other.name.endswith(".tmp")]
    assert "does not exist" in refused(*alone[:-1], tmp_path / "no" / "file", rows="")


def test_names_of_columns_are_written_as_prometheus_reads_them(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(text(REFERENCE, header='"a ""x"" \\ y",b\n'))
    run("--reference", path, *COMMON, "--metrics", tmp_path / "m", rows=text(STREAM, header='"a ""x"" \\ y",b\n'))
    assert 'isopleth_monitor_column_share{column="a \\"x\\" \\\\ y"} ' in (tmp_path / "m").read_text()
