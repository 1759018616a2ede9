"""SIGINT and SIGTERM at random moments of every command, from the first import on, and readers that leave early."""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isopleth
from experiments.reliability import samples
from experiments.reliability.commands import command, side_by_side
from experiments.reliability.outcomes import Tally
from isopleth.cli.process import ALARM_CODE

_INTERRUPTED = b"isopleth: interrupted"
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
_COMMANDS = {
    "anomalies": ["{place}/in.csv", "--out", "out.csv", "--save", "out.isopleth", "--plot", "out.png"],
    "changes": ["{place}/in.csv", "--out", "out.csv"],
    "compare": ["{place}/in.csv", "{place}/more.csv", "--out", "out.csv", "--resamples", "199"],
    "demo": ["--plot", "out.png"],
    "fit": ["{place}/in.csv", "--out", "out.isopleth", "--size", "20"],
    "monitor": ["--reference", "{place}/in.csv", "--state", "out.state", "--window", "10", "--run-length", "100"],
    "prior": ["{place}/train.csv", "{place}/test.csv", "--target", "k", "--out", "out.csv"],
    "score": ["{place}/model.isopleth", "{place}/in.csv", "--out", "out.csv"],
}


@dataclass(frozen=True, eq=False)
class Undisturbed:
    """A command that was left in peace.

    Parameters
    ----------
    seconds : float
        How long it took.
    code : int
        How it ended: a monitor may raise alarms.
    files : dict of str to bytes
        What it wrote.
    """

    seconds: float
    code: int
    files: dict[str, bytes]


def campaign(count: int, seed: int = 0) -> Tally:
    """Send signals to `count` processes, half of the time the same one twice; every fifth has a reader that leaves instead."""
    names = list(_COMMANDS)
    known: dict[str, Undisturbed] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write_inputs(place)

        def undisturbed(which: int) -> Tally:
            known[names[which]] = _undisturbed(names[which], place)
            return Tally()

        def case(number: int) -> Tally:
            tally, rng, name = Tally(), random.Random(f"{seed} {number}"), names[number % len(names)]
            with tempfile.TemporaryDirectory() as own:
                if number % 5 == 4:
                    _leave(tally, name, place, Path(own), known[name])
                else:
                    _signal(tally, name, place, Path(own), known[name], rng)
            return tally

        side_by_side(undisturbed, min(count, len(names)))
        return side_by_side(case, count)


def _write_inputs(place: Path) -> None:
    for name, seed, n in (("in", 0, 150), ("more", 1, 120)):
        np.savetxt(place / f"{name}.csv", samples.rows(seed, n), delimiter=",", header="a,b,c", comments="")
    isopleth.save(isopleth.KDE(length_scale=1.0, frame="scale").fit(samples.rows(0, 150)), place / "model.isopleth")
    for name, seed in (("train", 4), ("test", 5)):
        labelled = [f"{x:.5f},{y:.5f},{'uv'[int(x > 0)]}" for x, y, _ in samples.rows(seed, 80)]
        (place / f"{name}.csv").write_text("\n".join(["a,b,k", *labelled]) + "\n", encoding="utf-8")


def _start(name: str, place: Path, own: Path) -> subprocess.Popen[bytes]:
    arguments = [argument.format(place=place) for argument in _COMMANDS[name]]
    with open(place / "more.csv", "rb") as rows:
        return subprocess.Popen(
            command([name, *arguments]), stdin=rows, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=own
        )


def _undisturbed(name: str, place: Path) -> Undisturbed:
    with tempfile.TemporaryDirectory() as own:
        start = time.perf_counter()
        process = _start(name, place, Path(own))
        _, said = process.communicate()
        seconds = time.perf_counter() - start
        if process.returncode not in (0, ALARM_CODE):
            raise RuntimeError(f"{name} fails undisturbed: {said.decode()}")
        return Undisturbed(
            seconds, process.returncode, {path.name: path.read_bytes() for path in Path(own).glob("out.*")}
        )


def _catches(process: subprocess.Popen[bytes], number: int) -> bool:
    """Tell whether the program handles a signal, from the process information of Linux."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    except OSError:
        return True
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def _signal(tally: Tally, name: str, place: Path, own: Path, undisturbed: Undisturbed, rng: random.Random) -> None:
    number = signal.SIGINT if rng.random() < 0.7 else signal.SIGTERM
    twice = rng.random() < 0.5
    moment = rng.uniform(0.0, 1.05) * undisturbed.seconds
    process = _start(name, place, own)
    time.sleep(moment)
    begun = _catches(process, signal.SIGTERM)
    process.send_signal(number)
    if twice:
        time.sleep(rng.uniform(0.0, 0.1))
        process.send_signal(number)
    _, said = process.communicate(timeout=120)
    code = process.returncode
    in_words = said.startswith(_INTERRUPTED) and said.count(b"\n") == 1 if number == signal.SIGINT else not said
    if code == undisturbed.code:
        outcome, defect = "finished before", _lines_of_others(said)
    elif code == _CODES[number] and in_words:
        outcome, defect = f"exit {code}", ""
    elif not begun:
        outcome, defect = "while Python itself starts", ""
    else:
        outcome, defect = "", f"after {moment:.2f} s exit {code}, {said[-300:]!r}"
    tally.add(f"{name}, {number.name}{' twice' * twice}", outcome, defect or _left(own, undisturbed))


def _leave(tally: Tally, name: str, place: Path, own: Path, undisturbed: Undisturbed) -> None:
    """A reader that closes the pipe before anything comes."""
    process = _start(name, place, own)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    code = process.wait(timeout=120)
    tally.add(f"{name}, closed pipe", f"exit {code}", _lines_of_others(said) or _left(own, undisturbed))


def _lines_of_others(said: bytes) -> str:
    """Return lines that no command prints."""
    others = [line for line in said.splitlines() if not line.startswith(b"isopleth: ")]
    return f"{said[-300:]!r}" if others else ""


def _left(own: Path, undisturbed: Undisturbed) -> str:
    """Return files that a stopped run must not leave: temporary and incomplete ones."""
    temporary = [path.name for path in own.glob(".isopleth-*")]
    written = [path for path in own.glob("out.*") if path.is_file() and path.suffix != ".partial"]
    torn = [path.name for path in written if not _is_whole(path, undisturbed.files[path.name])]
    return f"left: {temporary}, not whole: {torn}" if temporary or torn else ""


def _is_whole(path: Path, undisturbed: bytes) -> bool:
    """Tell whether a file equals that of an undisturbed run, or is a state, which may be of fewer rows."""
    if path.suffix == ".state":
        isopleth.load(path)
        return True
    return path.read_bytes() == undisturbed
