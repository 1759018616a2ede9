"""Sums over pairs of centres, weighted by the overlaps of their kernels over the columns that are integrated out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from isopleth.core.budget import Budget
from isopleth.core.threads import slices
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import Operator

# Doubles of a block of overlaps that stays in the cache of a processor.
_BLOCK = 2**17


@dataclass(frozen=True)
class Overlaps:
    """Overlaps of centres over columns, relative to those of equal centres; kept, since many patterns of gaps share columns."""

    kernel: ColumnKernel
    centers: np.ndarray  # (m, d)
    budget: Budget  # its memory is for blocks of them
    shared: frozenset[int] = frozenset()  # columns whose overlaps are kept
    _kept: dict[int, np.ndarray] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sharing(self, patterns: Sequence[np.ndarray], memory: float) -> Overlaps:
        """Return these for columns that are integrated out in several patterns, as many as fit in the memory."""
        counts = np.bincount(np.concatenate(patterns), minlength=self.centers.shape[1])
        often = np.argsort(-counts, kind="stable")[: int(memory / (8 * len(self.centers) ** 2))]
        return replace(self, shared=frozenset(often[counts[often] > 1].tolist()))

    def between(self, rows: np.ndarray, columns: np.ndarray, over: np.ndarray) -> np.ndarray:
        """Compute the overlaps of the centres `rows` and `columns` over the columns `over`; 1 if there are none."""
        if not len(over):
            return np.ones((len(rows), len(columns)))
        kernel = self.kernel.take(over).overlap
        x, y = (np.ascontiguousarray(self.centers[np.ix_(part, over)]) for part in (rows, columns))
        return Operator(kernel, x, y, budget=self.budget).dense()

    def product(self, rows: np.ndarray, over: np.ndarray) -> np.ndarray:
        """Return the overlaps of the centres `rows` and all over shared columns."""
        start, stop = int(rows[0]), int(rows[-1]) + 1
        place = slice(start, stop) if stop - start == len(rows) else rows  # consecutive rows need no copy
        first, *others = (self._table(int(j)) for j in over)
        out = np.array(first[place])
        for table in others:
            out *= table[place]
        return out

    def _table(self, column: int) -> np.ndarray:
        with self._lock:
            if column not in self._kept:
                everything = np.arange(len(self.centers))
                self._kept[column] = self.between(everything, everything, np.array([column]))
            return self._kept[column]


@dataclass(frozen=True)
class QuadraticForms:
    """Quadratic forms of `terms` of shape (n, k) with the overlaps G of the centres `kept` over the `integrated` columns."""

    overlaps: Overlaps
    terms: np.ndarray
    kept: np.ndarray
    integrated: np.ndarray
    categories: bool  # whether sums over categories are asked for too

    @cached_property
    def _shared(self) -> bool:
        """Tell whether blocks of G are products of overlaps that are kept; of few centres they are computed as fast."""
        m = len(self.overlaps.centers)
        return len(self.integrated) > 0 and self.overlaps.shared.issuperset(self.integrated) and 4 * len(self.kept) > m

    @cached_property
    def _matrix(self) -> np.ndarray | None:
        """G, if it fits in half of the memory and is needed more than once or computed at once."""
        k = len(self.kept)
        if (
            16 * k**2 > self.overlaps.budget.memory
            or not len(self.integrated)
            or (self._shared and not self.categories)
        ):
            return None
        if not self._shared:
            return self.overlaps.between(self.kept, self.kept, self.integrated)
        out = np.empty((k, k))
        for part in self._parts():
            out[part] = self._of_shared(part)
        return out

    def _parts(self) -> list[np.ndarray]:
        """Rows of G by blocks that stay in the cache of a processor, or fit in memory."""
        k = len(self.kept)
        step = _BLOCK // k if self._shared else self.overlaps.budget.memory / (16 * k)
        return [np.arange(k)[part] for part in slices(k, step)]

    def _of_shared(self, rows: np.ndarray) -> np.ndarray:
        block = self.overlaps.product(self.kept[rows], self.integrated)
        return block if len(self.kept) == block.shape[1] else block[:, self.kept]

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self._matrix is not None:
            return self._matrix[np.ix_(rows, columns)]
        return self.overlaps.between(self.kept[rows], self.kept[columns], self.integrated)

    @cached_property
    def times_overlaps(self) -> np.ndarray:
        """Product of the terms with G, of shape (n, k)."""
        if not len(self.integrated):
            return np.repeat(self.terms.sum(axis=1)[:, None], len(self.kept), axis=1)
        if self._matrix is not None:
            return self.terms @ self._matrix
        everything, out = np.arange(len(self.kept)), np.empty_like(self.terms)
        for part in self._parts():
            block = self._of_shared(part) if self._shared else self._block(part, everything)
            out[:, part] = self.terms @ block.T
        return out

    def total(self) -> np.ndarray:
        """Return the sum over all pairs, of shape (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.terms, self.times_overlaps))

    def within(self, codes: np.ndarray, size: int) -> np.ndarray:
        """Return for each code the sum over pairs of centres that both have it, of shape (n, size)."""
        own = codes[self.kept]
        out = np.zeros((len(self.terms), size))
        if len(self.terms) == 1 and self._matrix is not None:  # one product for all categories
            mine = np.zeros((len(own), size))
            mine[np.arange(len(own)), own] = self.terms[0]
            out[0] = np.einsum("ij,ij->j", mine, self._matrix @ mine)
            return out
        step = self.overlaps.budget.memory / (16 * len(self.kept))
        for code in np.unique(own):
            members = np.flatnonzero(own == code)
            inside = self.terms[:, members]
            for part in slices(len(members), step):
                block = self._block(members[part], members)
                out[:, code] += np.einsum("ij,ij->i", inside @ block.T, inside[:, part])
        return out
