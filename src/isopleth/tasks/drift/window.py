"""Means over the last rows of a stream, in constant memory and without sums that drift."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np


@dataclass(frozen=True, eq=False)
class DriftState:
    """Where a monitor is in its stream. It is never changed in place, so a reference to it is a copy.

    The rows since the last alarm are cut into blocks as long as the window. A window that ends in a block is the last rows
    of the block before and the first rows of this one, so that two sums are added and none is ever subtracted from: rounding
    does not build up, however long the stream is.

    Parameters
    ----------
    rows : int
        Rows of the stream so far.
    alarms : int
        Alarms so far.
    since : int
        Rows since the last alarm.
    block : array of shape (window, r)
        Values at the rows of the present block, zeros after them.
    prefix : array of shape (r,)
        Their sum.
    suffix : array of shape (window, r)
        Sums over the last rows of the block before: row k is the sum without its first k rows.
    key : int
        Key of the fitted monitor in whose coordinates these values are.
    recent : array of shape (k, d)
        The last rows of the stream as they came, at most a window of them and none from before the last alarm.
    """

    rows: int
    alarms: int
    since: int
    block: np.ndarray
    prefix: np.ndarray
    suffix: np.ndarray
    key: int
    recent: np.ndarray

    @classmethod
    def empty(cls, window: int, width: int, key: int = 0) -> Self:
        """Before the first row."""
        return cls(
            0, 0, 0, np.zeros((window, width)), np.zeros(width), np.zeros((window, width)), key, np.empty((0, 0))
        )

    def after_alarm(self, taken: int) -> Self:
        """With an alarm at the last of so many rows more, and an empty window."""
        empty = self.empty(len(self.block), len(self.prefix), self.key)
        return replace(empty, rows=self.rows + taken, alarms=self.alarms + 1)

    def window_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the last rows of the stream, at most a window of them, after `rows` more."""
        older = self.recent[max(0, len(self.recent) + len(rows) - len(self.block)) :]
        return np.vstack([older, rows[-len(self.block) :]]) if len(older) else rows[-len(self.block) :].copy()

    @property
    def room(self) -> int:
        """Rows until the present block is full."""
        return len(self.block) - self.since % len(self.block)


def advance(state: DriftState, values: np.ndarray) -> tuple[DriftState, np.ndarray]:
    """Take in at most as many rows as the block has room for.

    Parameters
    ----------
    state : DriftState
        Before these rows.
    values : array of shape (k, r)
        Values at the rows, 1 <= k <= ``state.room``.

    Returns
    -------
    state : DriftState
        After them.
    sums : array of shape (k, r)
        Sum over the window that ends with each row; NaN where there is no full window yet.
    """
    window, place = len(state.block), state.since % len(state.block)
    end = place + len(values)
    prefixes = np.add.accumulate(np.vstack([state.prefix[None], values]), axis=0)[1:]
    sums = np.full_like(prefixes, np.nan)
    if state.since >= window:
        # The last row of a block ends a window that is the block itself; nothing of the one before is in it.
        older = state.suffix[place + 1 : end + 1]
        sums[: len(older)] = prefixes[: len(older)] + older
        sums[len(older) :] = prefixes[len(older) :]
    elif end == window:
        sums[-1] = prefixes[-1]
    block = state.block.copy()
    block[place:end] = values
    prefix, suffix = prefixes[-1], state.suffix
    if end == window:
        suffix = np.add.accumulate(block[::-1], axis=0)[::-1]
        block, prefix = np.zeros_like(block), np.zeros_like(prefix)
    rows, since = state.rows + len(values), state.since + len(values)
    return replace(state, rows=rows, since=since, block=block, prefix=prefix, suffix=suffix), sums
