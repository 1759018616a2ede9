"""Processes that are killed or interrupted while they write, or run where nothing can be written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from experiments.reliability import disk, kills, processes, signals
from experiments.reliability.outcomes import Tally

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")


def test_some_kills_while_saving(tmp_path):
    tally = Tally()
    kills.killed(tally, kills.saves(tmp_path, (30, 40_000)), 10, seed=3)
    assert tally.defects == []
    assert sum(tally.counts.values()) == 10


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


def test_standard_input_that_is_closed(tmp_path):
    table = tmp_path / "in.csv"
    table.write_text("a,b\n" + "\n".join(f"{i % 7},{i * i % 11}" for i in range(60)))
    command = [sys.executable, "-c", "from isopleth_command import main; main()"]
    arguments = ["monitor", "--reference", str(table), "--window", "5", "--run-length", "50"]
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *command, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0 rows, 0 alarms\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "count"), [(kills, 200), (processes, 200), (signals, 200), (disk, 1)], ids=lambda p: str(p)[-40:]
)
def test_the_whole_campaign(part, count):
    assert part.campaign(count, seed=1).defects == []
