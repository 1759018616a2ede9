"""Fit to a sample of the rows of a large table: the distinct rows with the smallest keys; all rows are scored in blocks.

Keys are hashes of the cells of a row, each on a grid of its column, so that the sample depends neither on the order of the rows
nor on the blocks or partitions in which they come, and rounding errors hardly ever change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.parts import Add, Parts, RowSample, S
from isopleth.core.progress import Progress
from isopleth.core.rows import mixed, row_keys, symmetric_keys
from isopleth.tasks.anomaly.training_table import weights_of

# Cells of a grid for a number of the usual size of its column: a change by 1e-12 moves one cell in a million to another.
_CELLS = 2.0**20
# No sum of powers of two, so that no usual number lies on the border of a cell, and none of them at the end of an octave.
_BORDER, _OCTAVE = 0.381966, 1.2345678
_LARGEST = 1e308  # numbers beyond it count with it, since a multiple of them is infinite
_LEAST, _OCTAVES = -1074, 2100  # exponent of the smallest number, and how many there are
_GAP = -1e300  # stands for a missing cell
_AMPLE, _MARGIN = 4, 1.25
BLOCK = 2**17  # cells of the rows that are looked at together, at most: they stay in the processor's cache


def _hashed(rows: np.ndarray) -> np.ndarray:
    """Return a hash of each row, in which missing cells are equal."""
    return row_keys(np.where(np.isnan(rows), _GAP, rows))


class CommonKeys:
    """Keys among which are all that more than one in `most` rows has, by the summaries of Misra and Gries [1]_.

    References
    ----------
    .. [1] J. Misra, D. Gries, "Finding Repeated Elements", Science of Computer Programming 2, 1982.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.keys, self.counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)

    def add(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """Add distinct keys with their counts; where there are too many, all counts fall until the smallest are gone."""
        every, place = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        total = np.bincount(place, np.concatenate([self.counts, counts])).astype(np.int64)
        if len(every) > self.most:
            total -= np.partition(total, len(every) - 1 - self.most)[len(every) - 1 - self.most]
        self.keys, self.counts = every[total > 0], total[total > 0]


class FirstLook:
    """Findings of a first pass over all rows: their number, the gaps, ranges and usual sizes of columns, whatever the order."""

    def __init__(self, columns: int, common: int = 0) -> None:
        self.n_rows, self.common = 0, CommonKeys(common)
        self.gaps = np.zeros(columns, dtype=np.int64)
        self.low, self.high = np.full(columns, np.inf), np.full(columns, -np.inf)
        self._exponents = np.zeros((columns, _OCTAVES), dtype=np.int64)

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Look at rows, whose missing cells are NaN."""
        self.n_rows += len(rows)
        missing = np.isnan(rows)
        if self.common.most:
            self.common.add(*np.unique(_hashed(rows), return_counts=True))
        self.gaps += missing.sum(axis=0)
        self.low = np.fmin(self.low, np.fmin.reduce(rows, initial=np.inf))
        self.high = np.fmax(self.high, np.fmax.reduce(rows, initial=-np.inf))
        # Steps of a grid are of use only where rows are drawn.
        for counts, column, gaps in zip(self._exponents, rows.T, missing.T, strict=True) if self.common.most else ():
            some = np.clip(column[(column != 0.0) & ~gaps], -_LARGEST, _LARGEST)
            exponents = np.frexp(some * _OCTAVE)[1]
            if len(exponents):
                first = int(exponents.min())
                counted = np.bincount(exponents - first)
                counts[first - _LEAST : first - _LEAST + len(counted)] += counted
        return self

    def merge(self, other: FirstLook) -> Self:
        """Add what `other` has found, and return this one."""
        self.n_rows += other.n_rows
        self.common.add(other.common.keys, other.common.counts)
        self.gaps += other.gaps
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self._exponents += other._exponents
        return self

    @property
    def steps(self) -> np.ndarray:
        """Width of a cell of the grid of each column: a share of the median size of its numbers."""
        total = self._exponents.cumsum(axis=1)
        middle = (2 * total < total[:, -1:]).sum(axis=1)
        return np.where(total[:, -1] > 0, np.ldexp(1.0 / _CELLS, np.clip(middle + _LEAST, -1000, 1000)), 1.0)


class FitSample(RowSample):
    """Common rows and those with the smallest keys, with their copies; missing cells are equal to each other.

    There are up to :data:`_AMPLE` times as many as the rule is fitted to, which are drawn from them by their weights.
    """

    def __init__(self, size: int, seed: int, look: FirstLook, every: bool = False) -> None:
        super().__init__(_AMPLE * size, seed)
        # Rows beyond this key are in no sample where hardly any repeat: parts of a large table then keep and send few.
        share = 1.0 if every else min(1.0, _MARGIN * self.size / look.n_rows)
        self._last = np.uint64(2**64 - 1) if share == 1.0 else np.uint64(share * 2.0**64)
        self.fitted, self._steps, self._n_rows = size, look.steps, look.n_rows
        self._common, self._most_common = look.common.keys, look.common.most

    def _cells(self, rows: np.ndarray) -> np.ndarray:
        """Return the cell of the grid of each number."""
        with np.errstate(over="ignore"):
            cells = np.floor(rows / self._steps + _BORDER)
        return np.where(np.isnan(cells), _GAP, cells)

    def _own_keys(self, rows: np.ndarray) -> np.ndarray:
        return mixed(symmetric_keys(self._cells(rows)), self.seed)

    def _maybe_common(self, hashes: np.ndarray) -> np.ndarray:
        """Return which rows, by their hashes, may be common ones."""
        place = np.minimum(np.searchsorted(self._common, hashes), max(len(self._common) - 1, 0))
        return self._common[place] == hashes if len(self._common) else np.zeros(len(hashes), dtype=bool)

    def keys(self, rows: np.ndarray) -> np.ndarray:
        """Return the key of each row, 0 for those that may be common: they are kept."""
        return np.where(self._maybe_common(_hashed(rows)), np.uint64(0), self._own_keys(rows))

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows."""
        if self._last < 2**64 - 1:
            near = self.keys(rows) <= self._last
            self.complete &= bool(near.all())
            rows = rows[near]
        return super().add(rows, weights) if len(rows) else self

    @property
    def lacks_rows(self) -> bool:
        """Tell whether rows beyond the last key would be in the sample, since many rows repeat."""
        return not self.complete and len(self._rows) < self.size

    def _merge(self, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows that differ in their cells, their summed weights, and the place of each row.

        Without this, a cloud of rows that differ by rounding only would have one key, and fill the sample.
        """
        hashes, cells = _hashed(rows), row_keys(self._cells(rows))
        order = np.lexsort([hashes, ~self._maybe_common(hashes), cells])
        starts = np.flatnonzero(np.append(True, np.diff(cells[order]) != 0))
        place = np.empty(len(rows), dtype=np.intp)
        place[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        return rows[order[starts]], np.bincount(place, weights, len(starts)), place

    @property
    def drawn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Rows to fit to, how often each occurs, and what it weighs there.

        A row of weight w, its discounted copies, is drawn with a probability of about :math:`\min(w/\tau, 1)`, and then weighs
        :math:`\max(w/\tau, 1)`, by priority sampling [1]_: sums have the right expectation. Common rows are never left out.

        References
        ----------
        .. [1] N. Duffield, C. Lund, M. Thorup, "Priority Sampling for Estimation of Arbitrary Subset Sums", Journal of the ACM
           54, 2007.
        """
        rows, copies, keys = self._rows, self._weights, self._own_keys(self._rows)
        weights = weights_of(copies, np.asarray(np.isnan(rows).any(axis=1)))
        if self.complete and len(rows) <= self.fitted:
            return rows, copies, weights
        common = (copies * self._most_common > self._n_rows) & self._maybe_common(_hashed(rows))
        # Up to the last key all rows are here. Which were kept since they might be common depends on blocks.
        last = np.uint64(2**64 - 1)
        if not self.complete:
            last = np.sort(keys[~common])[: self.size - self._most_common][-1]
        share = (float(last) + 1.0) / 2.0**64
        others = np.flatnonzero(~common & (keys <= last))
        priority = np.log(weights[others]) + np.log(share) - np.log((keys[others].astype(np.float64) + 1.0) / 2.0**64)
        order = np.argsort(-priority, kind="stable")
        count = max(self.fitted - int(common.sum()), 1)
        limit = float(np.exp(priority[order[count]])) if len(order) > count else 1.0
        kept = np.sort(np.append(np.flatnonzero(common), others[order[:count]]))
        scale = np.where(common, share, 1.0)[kept]
        return rows[kept], copies[kept], np.maximum(weights[kept] * scale / limit, 1.0)


def distinct_places(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of one of each distinct rows, and which of them each row is, by hashes of the rows."""
    _, first, place = np.unique(_hashed(rows), return_index=True, return_inverse=True)
    return first, place


class AllScores:
    """Scores of all rows, part by part in their order, and what their table is known by again."""

    def __init__(self) -> None:
        self.scores: list[np.ndarray] = []
        self.alone: list[np.ndarray] = []  # the same without values that several unlikely rows share
        self._hashed: Any = digest_of(np.empty((0, 0)))

    def add(self, scores: np.ndarray, alone: np.ndarray, rows: np.ndarray) -> Self:
        """Add the scores of rows in the frame of a model, with and without shared values."""
        self.scores.append(scores)
        self.alone.append(alone)
        digest_of(rows, self._hashed)
        return self

    def merge(self, other: AllScores) -> Self:
        """Add the scores of the rows that follow, and return this one; the fingerprint is only that of one part."""
        self._hashed = None if self.scores else other._hashed
        self.scores += other.scores
        self.alone += other.alone
        return self

    @property
    def all(self) -> np.ndarray:
        """Scores of all rows."""
        return np.concatenate(self.scores)

    @property
    def all_alone(self) -> np.ndarray:
        """Scores of all rows without shared values."""
        return np.concatenate(self.alone)

    @property
    def digest(self) -> str:
        """Fingerprint of the rows; none of rows in several parts, which are not in memory."""
        return "" if self._hashed is None else str(self._hashed.hexdigest())

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent from a worker: a hash that is not finished cannot be."""
        return {"scores": self.scores, "alone": self.alone, "_hashed": None}


class AllRows:
    """All rows, part by part in their order."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []

    def add(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Add rows."""
        self.rows.append(rows)
        return self

    def merge(self, other: AllRows) -> Self:
        """Add the rows of the parts that follow, and return this one."""
        self.rows += other.rows
        return self

    @property
    def all(self) -> np.ndarray:
        """Rows of all parts."""
        return np.concatenate(self.rows)


class CodedRows(Parts):
    """Checked rows in memory, numbers before codes and NaN where a cell is missing, in blocks."""

    names = None

    def __init__(self, rows: np.ndarray, budget: Budget = DEFAULT_BUDGET) -> None:
        self.rows, self.budget = rows, budget
        self.n_features = rows.shape[1]

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return sums over all rows; see :meth:`isopleth.core.parts.Parts.sums`."""
        total = start()
        size = max(1, 8 * BLOCK // self.n_features)
        parts = [slice(first, first + size) for first in range(0, len(self.rows), size)]
        with Progress(f"pass over {len(self.rows):,} rows", len(parts), self.budget.verbose) as tick:
            for part in parts:
                total = add(total, self.rows[part], None)
                tick()
        return total


def digest_of(rows: np.ndarray, hashed: Any = None) -> Any:
    """Return a hash to which rows are added, by which the table of the fit is known again."""
    hashed = hashed or hashlib.blake2b(digest_size=16)
    hashed.update(np.ascontiguousarray(rows + 0.0).ravel())
    return hashed
