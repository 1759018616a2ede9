"""Training rows for all kinds of evidence: distinct rows, their weights, and an index to recognise them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from isopleth.rows import merge_rows, row_keys

COMMON = 16  # copies beyond which a repeated row is a common value and not one observation that was copied
NEW = -1  # number of a row that is not a training row, or is a common value among them
MOST_ROWS = 2048  # rows scored at once, so that distances stay in the processor's cache


class Limits(NamedTuple):
    """Memory in bytes and number of threads, which depend on the machine and not on the model."""

    memory: float
    threads: int


def blocks(n: int, row_bytes: float, limits: Limits, most: int = MOST_ROWS) -> list[slice]:
    """Split `n` rows into slices such that the scratch memory of all threads is within the memory limit."""
    size = max(1, min(most, int(limits.memory / limits.threads / row_bytes)))
    return [slice(i, i + size) for i in range(0, n, size)]


def discounted(copies: np.ndarray) -> np.ndarray:
    r"""Return the weight of a row that occurs `copies` times, :math:`\max(1, c^3/(c^2 + 16^2))`.

    A few copies are one observation written down again, and count once, so that repeating anomalies does not make
    them ordinary; very many are a value that is common, and count in full.
    """
    c = np.asarray(copies, dtype=np.float64)
    return np.maximum(1.0, c**3 / (c**2 + COMMON**2))


def spread_of(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column after clipping the most extreme hundredth of the rows at either end.

    Otherwise one extreme cell would make all other differences in its column negligible. A column that is constant after
    clipping has its plain standard deviation.
    """
    share = weights / weights.sum()

    def deviation(table: np.ndarray) -> np.ndarray:
        return np.sqrt(share @ (table - share @ table) ** 2)

    ends = min(-(-len(rows) // 100), (len(rows) - 1) // 2)
    ordered = np.sort(rows, axis=0)
    drawn_in = deviation(np.clip(rows, ordered[ends], ordered[-1 - ends]))
    # With weights a column may have no deviation although its distinct rows differ.
    spare = np.where(deviation(rows) > 0.0, deviation(rows), rows.std(axis=0))
    return np.where(drawn_in > 0.0, drawn_in, spare)


@dataclass(frozen=True)
class RowIndex:
    """Numbers of training rows by the keys of their contents, which rise; common values are left out."""

    keys: np.ndarray
    numbers: np.ndarray

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of the training row that each row equals, or NEW."""
        found = np.full(len(rows), NEW)
        if len(self.keys):
            keys = row_keys(rows)
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            equal = self.keys[place] == keys
            found[equal] = self.numbers[place[equal]]
        return found


@dataclass(frozen=True)
class TrainingTable:
    """Distinct training rows.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        Distinct rows, in lexical order.
    copies : ndarray of shape (m,)
        Number of times each row occurs.
    place : ndarray of shape (n,), int
        Index among the distinct rows of each original row.
    weights : ndarray of shape (m,)
        :func:`discounted` copies.
    spread : ndarray of shape (d,)
        :func:`spread_of` the columns.
    """

    rows: np.ndarray
    copies: np.ndarray
    place: np.ndarray
    weights: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Self:
        """Merge equal rows."""
        distinct, copies, place = merge_rows(rows, np.ones(len(rows)))
        weights = discounted(copies)
        return cls(distinct, copies, place, weights, spread_of(distinct, weights))

    @property
    def known(self) -> np.ndarray:
        """Number of each distinct row; NEW for common values, which are judged with their copies included."""
        return np.where(self.copies <= COMMON, np.arange(len(self.rows)), NEW)

    @property
    def index(self) -> RowIndex:
        """Index that recognises training rows."""
        few = np.flatnonzero(self.copies <= COMMON)
        keys = row_keys(self.rows[few])
        order = np.argsort(keys, kind="stable")
        return RowIndex(keys[order], few[order])

    def typical(self, count: int) -> np.ndarray:
        """Return the numbers of at most `count` distinct rows that represent all rows, with copies counted."""
        some = np.linspace(0, len(self.place) - 1, min(len(self.place), count)).astype(int)
        return np.sort(self.place)[some]
