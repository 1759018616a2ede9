"""SIGINT and SIGTERM at random moments of every command, from the first import on, and readers that leave early."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import isopleth
from experiments.reliability import samples
from experiments.reliability.commands import command
from experiments.reliability.outcomes import Tally

_INTERRUPTED = b"isopleth: interrupted"
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def campaign(count: int, seed: int = 0) -> Tally:
    """Send `count` signals, one to a process; every fifth process has a reader that leaves instead."""
    rng, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        commands = _commands(place)
        seconds: dict[int, float] = {}
        for case in range(count):
            which = case % len(commands)
            if which not in seconds:
                seconds[which] = _seconds(commands[which], place)
            _clear(place)
            if case % 5 == 4:
                _leave(tally, commands[which], place)
            else:
                number = signal.SIGINT if rng.random() < 0.7 else signal.SIGTERM
                _signal(tally, commands[which], place, number, rng.uniform(0.0, 1.05) * seconds[which])
    return tally


def _commands(place: Path) -> list[list[str]]:
    for i, n in enumerate((150, 120)):
        np.savetxt(place / f"in{i}.csv", samples.rows(i, n), delimiter=",", header="a,b,c", comments="")
    first, second, out = str(place / "in0.csv"), str(place / "in1.csv"), str(place / "out.csv")
    isopleth.save(isopleth.KDE(length_scale=1.0).fit(samples.rows(0, 150)), place / "model.isopleth")
    labelled = place / "in2.csv"
    labelled.write_text(
        "a,b,k\n" + "\n".join(f"{x:.5f},{y:.5f},{'uv'[int(x > 0)]}" for x, y, _ in samples.rows(4, 80)),
        encoding="utf-8",
    )
    return [
        ["anomalies", first, "--out", out, "--save", str(place / "out.isopleth"), "--plot", str(place / "out.png")],
        ["compare", first, second, "--out", out, "--permutations", "199"],
        ["changes", first, "--out", out],
        ["fit", first, "--out", str(place / "out.isopleth"), "--size", "20"],
        ["score", str(place / "model.isopleth"), first, "--out", out],
        ["prior", str(labelled), str(labelled), "--target", "k", "--out", out],
        ["monitor", "--reference", first, "--state", str(place / "out.state"), "--window", "10", "--run-length", "100"],
        ["demo", "--plot", str(place / "out.png")],
    ]


def _clear(place: Path) -> None:
    for path in place.glob("out.*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _start(arguments: list[str], place: Path) -> subprocess.Popen[bytes]:
    with open(place / "in1.csv", "rb") as rows:
        return subprocess.Popen(
            command(arguments), stdin=rows, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place
        )


def _seconds(arguments: list[str], place: Path) -> float:
    start = time.perf_counter()
    _start(arguments, place).communicate()
    return time.perf_counter() - start


def _signal(tally: Tally, arguments: list[str], place: Path, number: signal.Signals, moment: float) -> None:
    process = _start(arguments, place)
    time.sleep(moment)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    code, kind = process.returncode, f"{arguments[0]}, {number.name}"
    in_words = said.startswith(_INTERRUPTED) and said.count(b"\n") == 1 if number == signal.SIGINT else not said
    if code == 0:
        outcome, defect = "finished before", ""
    elif code == _CODES[number] and in_words:
        outcome, defect = f"exit {code}", ""
    elif code == -number and not said:
        outcome, defect = "before the program began", ""
    elif b"isopleth" not in said and moment < 0.3:
        outcome, defect = "in the start of Python itself", ""
    else:
        outcome, defect = "", f"after {moment:.2f} s exit {code}, {said[-300:]!r}"
    tally.add(kind, outcome, defect or _left(place))


def _leave(tally: Tally, arguments: list[str], place: Path) -> None:
    """A reader that closes the pipe before anything comes."""
    process = _start(arguments, place)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    code = process.wait(timeout=120)
    bad = [line for line in said.splitlines() if not line.startswith(b"isopleth: ")]
    tally.add(f"{arguments[0]}, closed pipe", f"exit {code}", f"{said[-300:]!r}" if bad else _left(place))


def _left(place: Path) -> str:
    """What a stopped run must not leave: temporary files, and files that are not whole."""
    temporary = [path.name for path in place.glob(".isopleth-*")]
    for path in place.glob(".isopleth-*"):
        path.unlink()
    return f"left: {temporary}" if temporary else ""
