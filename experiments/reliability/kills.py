"""SIGKILL at random moments: what is under the final name is the old file or the new one, and both are whole."""

from __future__ import annotations

import os
import random
import signal
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
from experiments.reliability.outcomes import Tally, progress
from isopleth.cli.commands import program


@dataclass(frozen=True, eq=False)
class Subject:
    """Something that writes one file, in a process of its own.

    Parameters
    ----------
    name : str
        What is counted.
    target : Path
        The file.
    work : callable
        ``work()`` writes it.
    seen : callable
        ``seen(content)``: what the file gives when it is used, in bytes.
    goes_on : bool
        Whether what a killed run has kept in a partial file is gone on with by the next.
    """

    name: str
    target: Path
    work: Callable[[], None]
    seen: Callable[[bytes], bytes]
    goes_on: bool = False

    def start(self) -> int:
        """Begin the work in a process, and return its number."""
        process = os.fork()
        if process == 0:
            code = 1
            try:
                self.work()
                code = 0
            except SystemExit as error:
                code = int(error.code or 0)
            finally:
                os._exit(code)
        return process

    def finish(self, process: int) -> None:
        """Wait for the end of the work."""
        if os.waitpid(process, 0)[1]:
            raise RuntimeError(f"{self.name} fails undisturbed")

    def writing(self) -> list[Path]:
        """Temporary files beside the target."""
        return list(self.target.parent.glob(".isopleth-*.tmp"))

    def begun(self) -> list[Path]:
        """Partial files, and what writes the target."""
        return [*self.target.parent.glob("*.partial"), *self.writing()]


def campaign(count: int, seed: int = 0) -> Tally:
    """Kill `count` processes: half of them save models from kilobytes to tens of megabytes, half are commands."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        subjects = [*saves(Path(folder), (30, 40_000, 1_000_000)), *commands(Path(folder), 6000)]
        killed(tally, subjects, count, seed)
    return tally


def killed(tally: Tally, subjects: list[Subject], count: int, seed: int) -> None:
    """Kill `count` processes of these subjects in turn; what goes on where it was killed comes to its end after that."""
    rng = random.Random(seed)
    known = {subject.name: _known(subject) for subject in subjects[:count]}
    for case in progress(range(count), count, tally):
        subject = subjects[case % len(subjects)]
        _kill(tally, rng, subject, known[subject.name])
    for subject in subjects[:count]:
        if subject.goes_on:
            subject.finish(subject.start())
            judge(tally, subject, f"{subject.name}, left in peace at last", None, known[subject.name].after)


@dataclass(frozen=True, eq=False)
class Known:
    """Facts about a run before it is killed.

    Parameters
    ----------
    old : bytes
        The file that is written over.
    before, after : bytes
        What the old and the new file give when they are used.
    seconds, begun, writing : float
        How long it takes, and of that from the first partial file on, and while its temporary file is there.
    """

    old: bytes
    before: bytes
    after: bytes
    seconds: float
    begun: float
    writing: float


def _known(subject: Subject) -> Known:
    old = subject.target.read_bytes()
    start = time.perf_counter()
    process = subject.start()
    begun = _wait_for(subject.begun, process)
    writing = _wait_for(subject.writing, process)
    written = _wait_for(lambda: not subject.writing(), process)
    subject.finish(process)
    end = time.perf_counter()
    after = subject.seen(subject.target.read_bytes())
    return Known(old, subject.seen(old), after, end - start, written - begun, written - writing)


def _wait_for(sign: Callable[[], object], process: int) -> float:
    """The time at which there is a sign of what is waited for, or the process has ended."""
    while not sign() and os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(1e-4)
    return time.perf_counter()


def _kill(tally: Tally, rng: random.Random, subject: Subject, known: Known) -> None:
    """One kill of four at any moment, one after the work has begun, and two at one at which the file is being written."""
    existing = rng.random() < 0.7
    if existing:
        subject.target.write_bytes(known.old)
    else:
        subject.target.unlink(missing_ok=True)
    sign, seconds = rng.choice(
        [
            (lambda: True, known.seconds),
            (subject.begun, known.begun),
            (subject.writing, known.writing),
            (subject.writing, known.writing),
        ]
    )
    process = subject.start()
    _wait_for(sign, process)
    time.sleep(rng.uniform(0.0, seconds))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    when = "at other moments"
    if subject.writing():
        when = "while writing"
    elif subject.begun():
        when = "while it keeps what is done so far"
    for path in subject.writing():
        path.unlink()
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
    return Subject(name, target, lambda: isopleth.save(new, target), lambda content: _answer(folder, content))


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


def commands(folder: Path, rows: int) -> list[Subject]:
    """Commands that write a model, and so many rows with their scores; each goes on where the one before was killed."""
    table = folder / "table.csv"
    np.savetxt(table, samples.rows(7, rows), delimiter=",", header="a,b,c", comments="")
    model = folder / "detector.isopleth"
    isopleth.save(isopleth.AnomalyDetector(random_state=0).fit(samples.rows(8, 200)), model)
    fitted, scores = folder / "fit" / "model.isopleth", folder / "score" / "scores.csv"
    for path in (fitted, scores):
        path.parent.mkdir()
    isopleth.save(isopleth.KDE(length_scale=1.0, frame="scale").fit(samples.rows(8, 200)), fitted)
    scores.write_text("before\n", encoding="utf-8")
    resumed = ["--resume", "--chunk-rows", str(rows // 12)]
    fit = ["fit", str(table), "--out", str(fitted), "--size", "50", *resumed]
    score = ["score", str(model), str(table), "--out", str(scores), *resumed]
    return [
        Subject(
            "command that fits", fitted, _run(fit), lambda content: content + _answer(fitted.parent, content), True
        ),
        Subject("command that scores", scores, _run(score), bytes, True),
    ]


def _run(arguments: list[str]) -> Callable[[], None]:
    """A command in a process that has imported everything: while that goes on nothing is written, and it takes seconds."""

    def work() -> None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nothing, stream)
        program(arguments)

    return work
