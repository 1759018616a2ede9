"""Sums of the windows of a stream, and the alarms that they raise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np


@dataclass(frozen=True, eq=False)
class DriftState:
    """Position of a monitor in its stream, with the sums of its window. It is never changed in place.

    The rows since the last alarm are divided into blocks as long as the window. A window consists of the last rows of one block
    and the first rows of the next, so its sum is the sum of a suffix and a prefix. Nothing is subtracted, so rounding errors
    do not accumulate over long streams.

    Parameters
    ----------
    n_rows : int
        Rows of the stream so far.
    alarms : int
        Alarms so far.
    since : int
        Rows since the last alarm.
    block : array of shape (window, r)
        Values at the rows of the current block, zeros after them.
    prefix : array of shape (r,)
        Sum of these values.
    suffix : array of shape (window, r)
        Sums over the last rows of the block before: row k is the sum of the block without its first k rows.
    key : int
        Key of the fitted monitor that computed the values.
    recent : array of shape (k, d)
        Last rows of the stream, at most a window of them and none from before the last alarm.
    """

    n_rows: int
    alarms: int
    since: int
    block: np.ndarray
    prefix: np.ndarray
    suffix: np.ndarray
    key: int
    recent: np.ndarray

    @classmethod
    def empty(cls, window: int, width: int, key: int = 0) -> Self:
        """Return the state before the first row."""
        return cls(
            0, 0, 0, np.zeros((window, width)), np.zeros(width), np.zeros((window, width)), key, np.empty((0, 0))
        )

    def after_alarm(self, taken: int) -> Self:
        """Return the state after an alarm at the last of `taken` more rows, with an empty window."""
        empty = self.empty(len(self.block), len(self.prefix), self.key)
        return replace(empty, n_rows=self.n_rows + taken, alarms=self.alarms + 1)

    def window_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the last rows of the stream, at most a window of them, after `rows` more."""
        older = self.recent[max(0, len(self.recent) + len(rows) - len(self.block)) :]
        return np.vstack([older, rows[-len(self.block) :]]) if len(older) else rows[-len(self.block) :].copy()

    @property
    def rows_left(self) -> int:
        """Number of rows until the current block is full."""
        return len(self.block) - self.since % len(self.block)


def advance(state: DriftState, values: np.ndarray) -> tuple[DriftState, np.ndarray]:
    """Add rows, at most the rest of the block; return sums (k, r) of the windows that end with each, NaN if not full."""
    window, place = len(state.block), state.since % len(state.block)
    end = place + len(values)
    prefixes = np.add.accumulate(np.vstack([state.prefix[None], values]), axis=0)[1:]
    sums = np.full_like(prefixes, np.nan)
    if state.since >= window:
        # The window that ends with the last row of a block is this block, without rows of the block before.
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
    rows, since = state.n_rows + len(values), state.since + len(values)
    return replace(state, n_rows=rows, since=since, block=block, prefix=prefix, suffix=suffix), sums


def take_in(
    state: DriftState, rows: np.ndarray, values: np.ndarray, threshold: float
) -> tuple[DriftState, np.ndarray, list[np.ndarray]]:
    """Return the state after rows with these values, the statistic at each, and the windows that raised alarms."""
    out, windows = np.full(len(rows), np.nan), []
    done = 0
    while done < len(values):
        after, sums = advance(state, values[done : done + state.rows_left])
        sums /= len(state.block)
        statistic = (sums * sums).sum(axis=1)
        raised = np.flatnonzero(statistic > threshold)
        if len(raised):
            taken = int(raised[0]) + 1
            windows.append(state.window_of(rows[done : done + taken]))
            after = state.after_alarm(taken)
            statistic = statistic[:taken]
        else:
            after = replace(after, recent=state.window_of(rows[done : done + len(statistic)]))
        out[done : done + len(statistic)] = statistic
        done += len(statistic)
        state = after
    return state, out, windows
