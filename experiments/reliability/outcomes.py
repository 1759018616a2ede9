"""Outcomes of a run: a result or one sentence. Anything else is a defect and is recorded."""

from __future__ import annotations

import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from isopleth.cli.process import ALARM_CODE
from isopleth.core.errors import InputError, MissingExtraError

LONGEST_SENTENCE = 2000
# More than this for one small file is a hang.
SECONDS = 20

# Seconds between two words on how far it is.
_REPORT = 10.0

T = TypeVar("T")


class HangError(Exception):
    """A case took too long."""


@dataclass
class Tally:
    """Counts of outcomes, and the first defects in words."""

    counts: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def add(self, kind: str, outcome: str, defect: str = "") -> None:
        """Count one case; a defect is what should not have been."""
        self.counts[f"{kind}: {'DEFECT' if defect else outcome}"] += 1
        if defect:
            self.defects.append(f"{kind}: {defect}")

    def merge(self, other: Tally) -> Tally:
        """Add the cases of another tally to this one."""
        self.counts.update(other.counts)
        self.defects += other.defects
        return self

    def lines(self) -> list[str]:
        """The counts as a table, defects after it."""
        width = max(map(len, self.counts), default=0)
        table = [f"{name:<{width}}  {self.counts[name]:>6,}" for name in sorted(self.counts)]
        total = f"{'cases':<{width}}  {sum(self.counts.values()):>6,}"
        return [*table, total, f"{'defects':<{width}}  {len(self.defects):>6,}", *self.defects[:20]]


def is_sentence(message: str) -> bool:
    """One line that ends like a sentence and can be read."""
    return message.endswith(".") and "\n" not in message and len(message) <= LONGEST_SENTENCE


def wrong_end(code: int, said: Sequence[str]) -> str:
    """What is wrong with an exit code and the lines on standard error, of which the last one is the reason of a refusal."""
    others = [line for line in said if not line.startswith("isopleth: ")]
    if code not in (0, 2, ALARM_CODE) or others:
        return f"exit {code}, {others[-1:] or said}"
    return f"no sentence: {said[-1:]}" if code == 2 and not (said and is_sentence(said[-1])) else ""


def tried(tally: Tally, kind: str, case: str, work: Callable[[], object]) -> object:
    """Run `work`, count how it ended, and hand on its result or None."""
    try:
        with time_limit(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = work()
    except (InputError, MissingExtraError) as error:
        words = str(error)
        tally.add(kind, "one sentence", "" if is_sentence(words) else f"{case}: no sentence: {words[:300]!r}")
        return None
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-2:]).replace("\n", " ")
        tally.add(kind, "", f"{case}: {type(error).__name__}: {str(error)[:200]} {where}")
        return None
    tally.add(kind, "result")
    return result


def progress(cases: Iterable[T], count: int, tally: Tally) -> Iterator[T]:
    """The cases as they come; a line on standard error says now and then how many there have been."""
    due = time.monotonic() + _REPORT
    for i, case in enumerate(cases):
        yield case
        if time.monotonic() >= due:
            print(f"  {i + 1:,} of {count:,} cases, {len(tally.defects)} defects", file=sys.stderr, flush=True)
            due = time.monotonic() + _REPORT


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise HangError in the block after so many seconds."""

    def stop(*_: object) -> None:
        raise HangError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
