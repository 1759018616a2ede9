"""Times of the rows of a stream: rows that come late or again, times without a row, and clocks that were set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from isopleth.core.errors import Hint, Message

if TYPE_CHECKING:
    from isopleth.tasks.drift.page import Page

# Share of the steps of a reference from which on steps back, or rows of one time, are usual in it.
_USUAL_SHARE = 0.01
# Least distance of two rows without others between them that is told: in usual distances, and in the longest one that the
# reference has twice. Nights and weekends without rows are usual where the reference has them.
_FEWEST_STEPS, _LONGER = 3.0, 1.5
# Month of the days on which clocks are set, and which of its Sundays.
_CLOCKS_SET = (("Europe", 3, -1), ("North America", 3, 1), ("Europe", 10, -1), ("North America", 11, 0))
# Fewest pages, and days after clocks were set in which they open, for the clock to be named.
_PAGES_OF_A_CLOCK, _DAYS_OF_A_CLOCK = 3, 14


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


def message_of_clocks(pages: Sequence[Page], begin: int) -> Message | None:
    """Return that clocks were set where several pages have opened since, the last of them in a row from `begin` on.

    Rows that are judged by an hour that is not theirs are higher than usual at some times of the day and lower at others.
    """
    known = [page for page in pages if page.number >= 0 and np.isfinite(page.row_seconds)]
    years = {datetime.fromtimestamp(page.row_seconds, UTC).year for page in known}
    for where, day in (each for year in sorted(years) for each in _days_of_clocks(year)):
        first = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        last = first + timedelta(days=_DAYS_OF_A_CLOCK).total_seconds()
        since = [page for page in known if first <= page.row_seconds < last]
        if _are_of_a_clock(since) and not _are_of_a_clock([page for page in since if page.row < begin]):
            return Message(
                f"{len(since)} pages have opened since {day}, when clocks were set in {where}, and times have no offsets: rows "
                "may be judged by an hour that is not theirs",
                hint=Hint(
                    "if times are in UTC, name the zone whose clock the rows follow, as in {timezone}; if a clock that was set "
                    "gives the times and the rows do not follow it, give times in UTC",
                    timezone="Europe/Berlin",
                ),
            )
    return None


def _are_of_a_clock(pages: Sequence[Page]) -> bool:
    return len(pages) >= _PAGES_OF_A_CLOCK and {page.direction for page in pages} >= {-1, 1}


def _days_of_clocks(year: int) -> Iterator[tuple[str, date]]:
    """Yield where and on which days of a year clocks are set to summer time and back."""
    for where, month, number in _CLOCKS_SET:
        days = [date(year, month, 1) + timedelta(days=k) for k in range(31)]
        yield where, [day for day in days if day.weekday() == 6 and day.month == month][number]
