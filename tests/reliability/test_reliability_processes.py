"""Processes that are killed or interrupted while they write, or run where nothing can be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from experiments.reliability import disk, kills, processes, signals
from experiments.reliability.__main__ import COUNTS
from experiments.reliability.outcomes import Tally

import forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")


def test_some_kills(tmp_path):
    tally = Tally()
    subjects = [*kills.saves(tmp_path, (30, 40_000)), *kills.commands(tmp_path, 600)]
    kills.killed(tally, subjects, 8, seed=3)
    assert tally.defects == []
    assert sum(tally.counts.values()) == 8 + 2  # what was killed twice is left in peace at last


def test_work_that_fails_by_itself_is_not_counted(tmp_path):
    subject = kills.saves(tmp_path, (30,))[0]
    broken = kills.Subject("broken", subject.target, lambda: 1 / 0, subject.seen)
    with pytest.raises(RuntimeError, match="broken fails"):
        kills.killed(Tally(), [broken], 1, seed=3)


def test_a_file_that_is_half_written_would_be_noticed(tmp_path):
    subject = kills.saves(tmp_path, (30,))[0]
    whole = subject.target.read_bytes()
    for content, defects in ((whole, 0), (whole[:-1], 1), (whole[:-1] + b"0", 1)):
        subject.target.write_bytes(content)
        tally = Tally()
        kills.judge(tally, subject, "kind", subject.seen(whole), b"")
        assert len(tally.defects) == defects, content[-10:]


@pytest.mark.parametrize(("number", "code", "words"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "")])
def test_a_signal_during_the_first_import(number, code, words):
    interrupting = f"""
import signal, sys
from isopleth_command import main
class Interrupt:
    def find_spec(self, name, *_):
        if name == "isopleth":
            signal.raise_signal(signal.{number})
sys.meta_path.insert(0, Interrupt())
main()
"""
    done = subprocess.run([sys.executable, "-c", interrupting], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert done.stderr == (f"isopleth: {words}; nothing is left half written.\n" if words else "")


def stopped(tmp_path, before):
    """A run of anomalies after a call of `before`, and the names of what it leaves."""
    table = tmp_path / "in.csv"
    table.write_text("a,b\n" + "\n".join(f"{i % 7},{i * i % 11}" for i in range(60)))
    done = forked.run(["anomalies", table, "--out", tmp_path / "out.csv"], before)
    return done, sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".csv" or path.suffix == ".tmp")


def test_an_interrupt_by_impatient_people_cleans_up_all_the_same(tmp_path):
    def before():
        os.fsync = lambda file: exec("signal.raise_signal(signal.SIGINT)")  # as data classes are made
        unlink = Path.unlink

        def slowly(path, *more):
            signal.raise_signal(signal.SIGINT)
            unlink(path, *more)

        Path.unlink = slowly

    done, left = stopped(tmp_path, before)
    assert (done.returncode, done.stderr) == (130, "isopleth: interrupted; nothing is left half written.\n")
    assert left == ["in.csv"]


def test_a_signal_that_comes_out_as_another_exception_is_the_reason(tmp_path):
    def cut_short(file):
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException:
            raise ImportError("as compiled modules do") from None

    def before():
        os.fsync = cut_short

    done, left = stopped(tmp_path, before)
    assert (done.returncode, done.stderr) == (143, "isopleth: terminated; nothing is left half written.\n")
    assert left == ["in.csv"]


def test_an_interrupt_that_the_shell_ignores(tmp_path):
    def before():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.fsync = lambda file: signal.raise_signal(signal.SIGINT)

    done, left = stopped(tmp_path, before)
    assert (done.returncode, done.stderr) == (0, "")
    assert left == ["in.csv", "out.csv"]


def test_standard_input_that_is_closed(tmp_path):
    table = tmp_path / "in.csv"
    table.write_text("a,b\n" + "\n".join(f"{i % 7},{i * i % 11}" for i in range(60)))

    def before():  # as Python starts with it
        os.close(0)
        sys.stdin = None

    done = forked.run(["monitor", "--reference", table, "--window", "5", "--run-length", "50"], before)
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input has no rows" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("part", [kills, processes, signals, disk], ids=lambda part: part.__name__.rpartition(".")[2])
def test_the_whole_campaign(part):
    count = COUNTS[part.__name__.rpartition(".")[2]]
    assert part.campaign(count, seed=1).defects == []
