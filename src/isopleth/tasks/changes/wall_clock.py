"""Steps of a series whose clock is set, as to summer time and back: what people do follows the clock on the wall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.tables.time_text import as_datetime, length_text, time_words

# Most times that a clock is set in a year: Morocco sets it before and after Ramadan, too. Offsets that change more often are
# those of several sources and not of one clock.
_MOST_A_YEAR = 4
_YEAR = 31_556_952.0
# Share of a step by which the times of one step may differ.
_NEAR = 0.25


@dataclass(frozen=True, eq=False)
class WallClock:
    """A clock that is set while a series runs."""

    instants: np.ndarray  # (T,): times of the rows, in seconds since 1970
    ahead: np.ndarray  # (T,): seconds by which the clock is ahead of UTC
    first: str  # time of the first row after it was set

    @classmethod
    def of(cls, times: np.ndarray) -> WallClock | None:
        """Return the clock of ascending times; None if these have no offsets, or it is never set."""
        if times.dtype.kind not in "OU":
            return None
        moments = [as_datetime(time) for time in times.tolist()]
        offsets = [None if moment is None else moment.utcoffset() for moment in moments]
        if len(set(offsets)) < 2 or None in offsets:
            return None
        instants = np.array([moment.timestamp() for moment in moments if moment is not None])
        ahead = np.array([offset.total_seconds() for offset in offsets if offset is not None])
        rows = 1 + np.flatnonzero(np.diff(ahead))
        often = len(rows) > _MOST_A_YEAR * (1.0 + np.ptp(instants) / _YEAR)
        return None if often else cls(instants, ahead, time_words(times[rows[0]]))

    @property
    def seconds(self) -> np.ndarray:
        """Seconds since 1970 by the clock at each row."""
        return self.instants + self.ahead

    def steps(self, length: float) -> np.ndarray:
        """Return the step of each row by the clock, from 0 on; steps have this length in seconds.

        In the hour that the clock shows twice rows share steps, in their order: two hours pass while it moves on by one.
        """
        shown, order = self.seconds, np.sort(self.seconds)
        shared = np.zeros(len(order), dtype=bool)
        for row in 1 + np.flatnonzero(np.diff(shown) <= 0.0):
            shared |= (order >= shown[row] - _NEAR * length) & (order <= shown[row - 1] + _NEAR * length)
        apart = np.maximum(np.round(np.diff(order) / length), ~(shared[1:] & shared[:-1]))
        return np.concatenate([[0], np.cumsum(apart)]).astype(np.intp)

    def note(self, followed: bool) -> str:
        """Return a sentence on when the clock was set, and whether days follow it."""
        shifts = np.diff(self.ahead)
        shifts = shifts[shifts != 0.0]
        once = f"{'forward' if shifts[0] > 0.0 else 'back'} by {length_text(abs(float(shifts[0])))} before {self.first}"
        how = f"was set {once if len(shifts) == 1 else f'{len(shifts)} times, first {once}'}"
        if not followed:
            return (
                f"The clock {how}; days of 24 hours describe the series better than days by this clock, and are used."
            )
        effects = ["time that it leaves out is a gap"] * bool((shifts > 0.0).any())
        effects += ["rows of time that it shows twice share steps as means"] * bool((shifts < 0.0).any())
        return f"Days and weeks follow the clock of the times, which {how}: {', and '.join(effects)}."
