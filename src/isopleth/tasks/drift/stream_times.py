"""Times of the rows of a stream: rows that come late or again, and times without a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from isopleth.core.errors import Message

# Share of the steps of a reference from which on steps back, or rows of one time, are usual in it.
_USUAL_SHARE = 0.01
# Least distance of two rows without others between them that is told: in usual distances, and in the longest one that the
# reference has twice. Nights and weekends without rows are usual where the reference has them.
_FEWEST_STEPS, _LONGER = 3.0, 1.5


class LateRow(NamedTuple):
    """First of some rows whose times are not later than that of a row before."""

    row: int
    seconds: float  # its time
    latest: float  # latest time before it


class Absence(NamedTuple):
    """Time in a stream without a row."""

    row: int  # the first row after it
    seconds: float  # its time
    before_seconds: float  # time of the row before

    @property
    def length(self) -> float:
        """Seconds between the rows before and after it."""
        return self.seconds - self.before_seconds


@dataclass(frozen=True)
class ClockState:
    """Times of a stream so far."""

    latest: float = float("nan")
    late: bool = False  # whether the last row was late
    times_late: int = 0  # how often the times went back or stood still
    last: float = float("nan")  # time of the last row


@dataclass(frozen=True)
class StreamClock:
    """Order and distances of the times in a reference, by which those of a stream are judged."""

    falls: bool  # whether times may go back
    stands: bool  # whether several rows may have one time
    longest: float  # seconds without a row that are usual

    @classmethod
    def of(cls, seconds: np.ndarray) -> Self:
        """Learn from the times of a reference, in the order of its rows; NaN without times."""
        apart = np.diff(seconds[np.isfinite(seconds)])
        if len(apart) < 2 or (apart < 0.0).mean() > _USUAL_SHARE:
            return cls(True, True, np.inf)
        stands, rising = bool((apart <= 0.0).mean() > _USUAL_SHARE), apart[apart > 0.0]
        if len(rising) < 2:
            return cls(False, stands, np.inf)
        return cls(False, stands, max(_FEWEST_STEPS * float(np.median(rising)), _LONGER * float(np.sort(rising)[-2])))

    def judge(
        self, seconds: np.ndarray, first_row: int, state: ClockState
    ) -> tuple[ClockState, list[LateRow], list[Absence]]:
        """Return the state after more rows, the first row of each run of late ones, and the times without a row."""
        latest = np.fmax.accumulate(np.concatenate([[state.latest], seconds]))
        before = latest[:-1]
        late = np.zeros(len(seconds), dtype=bool)
        if not self.falls:
            late = seconds < before if self.stands else seconds <= before
        begins = np.flatnonzero(late & ~np.concatenate([[state.late], late[:-1]]))
        rows = [LateRow(first_row + i, float(seconds[i]), float(before[i])) for i in begins.tolist()]
        gaps = np.flatnonzero(seconds - before > self.longest)
        absent = [Absence(first_row + i, float(seconds[i]), float(before[i])) for i in gaps.tolist()]
        if len(seconds):
            said = float(latest[-1]), bool(late[-1]), state.times_late + len(rows), float(seconds[-1])
            state = ClockState(*said)
        return state, rows, absent


def told_late_rows(late: Sequence[LateRow], before: int) -> list[LateRow]:
    """Return the late rows to warn of, where times had gone back `before` times: the 1st, 2nd, 4th, 8th, ... time.

    A stream in no order would fill a log with one line a row.
    """
    return [row for count, row in enumerate(late, before + 1) if count & (count - 1) == 0]


def late_message(row: LateRow, time: str, latest: str) -> Message:
    """Return what is wrong with a late row, and what to do.

    It is no error, since a stream goes on: a row that was held up on its way says as much as others of its hour and weekday.
    """
    same = row.seconds == row.latest
    return Message(
        f"the time of {{row}}, {time}, is {'that' if same else 'not later than ' + latest} of a row before it, where the rows of "
        "the reference are in the order of their times; the row is judged by its time all the same",
        row=row.row,
        hint="sort the stream by time, leave out rows that come twice, and give times with offsets if a clock was set back",
    )
