"""SIGKILL at random moments: what is under the final name is the old file or the new one, and both are whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

import isopleth
from experiments.reliability import samples
from experiments.reliability.commands import command
from experiments.reliability.outcomes import Tally

_TABLE_ROWS = 2000
_SHARE_OF_COMMANDS = 8
"""One kill of so many is of a whole command; they take seconds, and most of these seconds nothing is written."""


@dataclass(frozen=True, eq=False)
class Subject:
    """Something that writes one file, in a process of its own.

    Parameters
    ----------
    name : str
        What is counted.
    target : Path
        The file.
    start : callable
        ``start()``: begins the work and returns the number of the process, when that is about to begin.
    seen : callable
        ``seen(content)``: what the file gives when it is used, in bytes.
    """

    name: str
    target: Path
    start: Callable[[], int]
    seen: Callable[[bytes], bytes]


def campaign(count: int, seed: int = 0) -> Tally:
    """Kill `count` processes: commands that fit and score, and saves of models from kilobytes to tens of megabytes."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        killed(tally, saves(Path(folder), (30, 40_000, 1_000_000)), count - count // _SHARE_OF_COMMANDS, seed)
        killed(tally, _commands(Path(folder)), count // _SHARE_OF_COMMANDS, seed)
    return tally


def killed(tally: Tally, subjects: list[Subject], count: int, seed: int) -> None:
    """Kill `count` processes of these subjects in turn."""
    rng = random.Random(seed)
    known = {subject.name: _known(subject) for subject in subjects} if count else {}
    for case in range(count):
        subject = subjects[case % len(subjects)]
        _kill(tally, rng, subject, known[subject.name])


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a subject before it is killed.

    Parameters
    ----------
    old : bytes
        The file that is written over.
    before, after : bytes
        What the old and the new file give when they are used.
    seconds, writing : float
        How long it takes, and how long of that its temporary file is there.
    """

    old: bytes
    before: bytes
    after: bytes
    seconds: float
    writing: float


def _known(subject: Subject) -> Known:
    old = subject.target.read_bytes()
    start = time.perf_counter()
    process = subject.start()
    begun = _wait_for_writing(subject, process)
    os.waitpid(process, 0)
    end = time.perf_counter()
    return Known(old, subject.seen(old), subject.seen(subject.target.read_bytes()), end - start, end - begun)


def _temporary(subject: Subject) -> list[Path]:
    return list(subject.target.parent.glob(".isopleth-*.tmp"))


def _wait_for_writing(subject: Subject, process: int) -> float:
    """The time at which the temporary file is there, or the process has ended."""
    while not _temporary(subject):
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(2e-4)
    return time.perf_counter()


def _kill(tally: Tally, rng: random.Random, subject: Subject, known: Known) -> None:
    """One kill: at any moment, or, of three kills two, at one at which the file is being written."""
    existing = rng.random() < 0.7
    if existing:
        subject.target.write_bytes(known.old)
    else:
        subject.target.unlink(missing_ok=True)
    process = subject.start()
    if rng.random() < 2 / 3:
        _wait_for_writing(subject, process)
        time.sleep(rng.uniform(0.0, known.writing))
    else:
        time.sleep(rng.uniform(0.0, known.seconds))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    left = _temporary(subject)
    for path in left:
        path.unlink()
    when = "while writing" if left else "at other moments"
    judge(tally, subject, f"{subject.name}, {when}", known.before if existing else None, known.after)


def judge(tally: Tally, subject: Subject, kind: str, before: bytes | None, after: bytes) -> None:
    """Count what is under the final name after a kill."""
    if not subject.target.exists():
        tally.add(kind, "no file", "" if before is None else "the old file is gone")
        return
    try:
        found = subject.seen(subject.target.read_bytes())
    except Exception as error:
        tally.add(kind, "", f"{type(error).__name__}: {str(error)[:300]}")
        return
    if found == after:
        tally.add(kind, "the new file, whole")
    else:
        tally.add(kind, "the old file, whole", "" if found == before else "neither the old file nor the new one")


def saves(folder: Path, columns: tuple[int, ...]) -> list[Subject]:
    """A model of each of these widths, saved over one with other numbers."""
    rng = np.random.default_rng(5)
    return [
        _save(folder / f"model-{width}", f"save, {24 * width:,} bytes", _scaler(rng, width), _scaler(rng, width))
        for width in columns
    ]


def _scaler(rng: np.random.Generator, columns: int) -> BaseEstimator:
    return StandardScaler().fit(rng.normal(size=(3, columns)))


def _save(folder: Path, name: str, old: BaseEstimator, new: BaseEstimator) -> Subject:
    folder.mkdir()
    target = folder / "model.isopleth"
    isopleth.save(old, target)

    def start() -> int:
        ready, begun = os.pipe()
        process = os.fork()
        if process == 0:
            os.write(begun, b".")
            isopleth.save(new, target)
            os._exit(0)
        os.read(ready, 1)
        os.close(ready)
        os.close(begun)
        return process

    return Subject(name, target, start, lambda content: _answer(folder, content))


def _answer(folder: Path, content: bytes) -> bytes:
    """The bits of what the model says, after it was loaded from these bytes."""
    path = folder.parent / "loaded.isopleth"
    path.write_bytes(content)
    model = isopleth.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = np.linspace(-1.0, 1.0, 2 * model.n_features_in_).reshape(2, -1)
        found = model.score_samples(rows) if hasattr(model, "score_samples") else model.transform(rows)
    return np.asarray(found).tobytes()


def _commands(folder: Path) -> list[Subject]:
    """Commands that write a model, and rows with their scores; each goes on where the one before was killed."""
    table = folder / "table.csv"
    np.savetxt(table, samples.rows(7, _TABLE_ROWS), delimiter=",", header="a,b,c", comments="")
    model = folder / "detector.isopleth"
    isopleth.save(isopleth.AnomalyDetector(random_state=0).fit(samples.rows(8, 200)), model)
    (folder / "fit").mkdir()
    (folder / "score").mkdir()
    fitted = folder / "fit" / "model.isopleth"
    isopleth.save(isopleth.KDE(length_scale=1.0).fit(samples.rows(8, 200)), fitted)
    scores = folder / "score" / "scores.csv"
    scores.write_text("before\n", encoding="utf-8")
    fit = ["fit", str(table), "--out", str(fitted), "--resume", "--chunk-rows", "300", "--size", "50"]
    score = ["score", str(model), str(table), "--out", str(scores), "--resume", "--chunk-rows", "300"]
    return [
        _running("command that fits", fitted, fit, lambda content: content + _answer(fitted.parent, content)),
        _running("command that scores", scores, score, bytes),
    ]


def _running(name: str, target: Path, arguments: list[str], seen: Callable[[bytes], bytes]) -> Subject:
    def start() -> int:
        process = subprocess.Popen(command(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.returncode = 0  # it is waited for by its number
        return process.pid

    return Subject(name, target, start, seen)
