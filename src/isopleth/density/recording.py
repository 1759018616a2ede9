"""Format of the values of a table, so that drawn rows and filled cells can look like those of the table.

A density of numbers is smooth, and a table is not: its numbers have some decimals, some values occur again and again, there is
nothing beyond its edges, and cells are missing in patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopleth.core.steps import TIME_STEPS, USUAL_STEPS, recorded_step
from isopleth.core.threads import slices
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import Operator
from isopleth.operators.blocks import LOG_VALUE
from isopleth.tables.cell_types import in_types, types_of
from isopleth.tables.schema import Schema

_FEW = 20  # distinct values up to which a column has these values only, if each of them occurs often
_OFTEN = 5  # rows that have a value which counts as one of the values of a column
_SHARE = 0.02  # share of the rows that have a repeated value
_SPIKE = 4.0  # times as often as its neighbours a repeated value occurs
_ROWS = 20_000  # rows that are looked at
_QUANTILES = 2001  # values that are kept of the distribution of a column
_BALANCED = 1000  # draws by which the weights of the rows that gaps are taken from are found
_BALANCING_STEPS = 10
_LARGEST = 2.0  # change of the logarithm of such a weight in a step
_EQUAL = 1e-9  # numbers nearer than this, relative to their range and size, are the same
_PAIR_BYTES = 32  # that one pair of a drawn row and a training row takes


@dataclass(frozen=True)
class NumberFormat:
    """Format of a column of numbers."""

    quantiles: np.ndarray  # its values in ascending order, or quantiles at equal distances
    step: float = 0.0  # numbers are multiples of it; 0 for none
    few: bool = False  # whether the column has few values, and no others are to be made
    # values that occur much more often than those near them, as 0 does in a column of payments
    repeated: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, values: np.ndarray, weights: np.ndarray | None = None, steps: Sequence[float] = USUAL_STEPS
    ) -> NumberFormat:
        """Return the format of the known cells of a column; weights count repetitions."""
        finite = np.isfinite(values)
        order = np.argsort(values[finite], kind="stable")
        known = values[finite][order]
        if weights is not None and len(known) and np.ptp(weights[finite]) > 0.0:
            ends = np.cumsum(weights[finite][order])
            known = known[np.searchsorted(ends, (np.arange(_ROWS) + 0.5) * ends[-1] / _ROWS)]
        elif len(known) > _ROWS:
            known = known[np.linspace(0, len(known) - 1, _ROWS).astype(int)]
        if not len(known):
            return cls(np.zeros(1), few=True)
        distinct, counts = np.unique(known, return_counts=True)
        step = recorded_step(distinct, steps)
        kept = known[np.linspace(0, len(known) - 1, min(len(known), _QUANTILES)).round().astype(int)]
        if len(distinct) == 1 or (len(distinct) <= _FEW and len(known) >= _OFTEN * len(distinct)):
            return cls(kept, step, True)
        # How often a value would occur if the rows within a window beside it were spread evenly.
        low, high = known[len(known) // 20] / 3.0, known[-1 - len(known) // 20] / 3.0
        window = float(high - low if high > low else known[-1] / 3.0 - known[0] / 3.0) * len(known) ** -0.2
        total, place = np.concatenate([[0], np.cumsum(counts)]), np.arange(len(distinct))
        left = total[place] - total[np.searchsorted(distinct, distinct - window)]
        right = total[np.searchsorted(distinct, distinct + window, side="right")] - total[place + 1]
        expected = np.maximum(left, right) * step / window
        repeated = (counts >= max(_OFTEN, _SHARE * len(known))) & (counts > _SPIKE * expected)
        return cls(kept, step, False, tuple(distinct[repeated].tolist()))

    def at(self, share: np.ndarray) -> np.ndarray:
        """Return the quantiles at shares between 0 and 1, with the decimals of the column."""
        place = share * (len(self.quantiles) - 1)
        if self.few:
            return np.asarray(self.quantiles[np.rint(place).astype(np.intp)])
        found = np.interp(place, np.arange(len(self.quantiles)), self.quantiles)
        return np.round(np.rint(found / self.step) * self.step, 9) + 0.0 if self.step else found

    def spiked(self, drawn: np.ndarray, source: np.ndarray) -> np.ndarray:
        """Return drawn numbers, with repeated values where they were drawn about one."""
        known = self.exact(source)
        return np.where(np.isin(known, self.repeated), known, drawn)

    def exact(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers of the table, which maps have returned with rounding errors, as they are in the table."""
        values = self.quantiles
        nearest = values[np.searchsorted(0.5 * (values[1:] + values[:-1]), numbers)]
        reach = _EQUAL * (values[-1] - values[0] + np.abs(numbers))
        if self.step:
            numbers = np.round(np.rint(numbers / self.step) * self.step, 9) + 0.0
        return np.where(np.abs(nearest - numbers) <= reach, nearest, numbers)


def _shares(drawn: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the share of `others` below each number, at random between its ends where some are equal."""
    ordered = np.sort(others)
    low = np.searchsorted(ordered, drawn)
    high = np.searchsorted(ordered, drawn, side="right")
    # Beyond or between all others a number has a share of its own, as if it were one of them.
    u = rng.uniform(size=len(drawn))
    return np.asarray((low + u * np.maximum(high - low, 1)) / (len(ordered) + 1.0))


@dataclass(frozen=True)
class Recording:
    """Formats of the columns of a table, and its gaps."""

    formats: tuple[NumberFormat, ...]  # one for each encoded numeric column
    origins: np.ndarray  # (n_numeric,): zero of each of them: the first time of a column of times, 0 for numbers
    words: tuple[np.ndarray, ...]  # shares of the words of each encoded categorical column
    types: dict[str, str]  # types of the columns of a frame; empty for arrays
    # (m, d): rows of the fit in frame coordinates, their gaps filled; None where nothing was missing
    points: np.ndarray | None = None
    gaps: np.ndarray | None = None  # (m, number of encoded columns): their missing cells
    weights: np.ndarray | None = None  # (m,): their weights

    @classmethod
    def of(cls, X: Any, columns: Schema, rows: np.ndarray, weights: np.ndarray) -> Recording:
        """Return how the rows of a fit are recorded."""
        rows, weights = rows[weights > 0.0], weights[weights > 0.0]
        kinds = [column for column in columns.columns if column.kind != "categorical"]
        origins = np.array([column.origin for column in kinds])
        formats = [
            NumberFormat.of(rows[:, j] + origins[j], weights, TIME_STEPS if kind.kind == "time" else USUAL_STEPS)
            for j, kind in enumerate(kinds)
        ]
        words = []
        for j, size in enumerate(columns.sizes):
            codes = rows[:, len(kinds) + j]
            known = ~np.isnan(codes)
            counts = np.bincount(codes[known].astype(np.intp), weights[known], minlength=size)
            words.append(counts / counts.sum() if counts.any() else np.full(size, 1.0 / size))
        return cls(tuple(formats), origins, tuple(words), types_of(X))

    @classmethod
    def of_numbers(cls, X: Any, rows: np.ndarray, weights: np.ndarray) -> Recording:
        """Return how the rows of a fit to a table of numbers are recorded."""
        rows, weights = rows[weights > 0.0], weights[weights > 0.0]
        formats = tuple(NumberFormat.of(column, weights) for column in rows.T)
        return cls(formats, np.zeros(len(formats)), (), types_of(X))

    def with_gaps(self, points: np.ndarray, gaps: np.ndarray, weights: np.ndarray) -> Recording:
        """Return the recording with the gaps of the rows of the fit."""
        return replace(self, points=points, gaps=gaps, weights=weights)

    def take(self, encoded: np.ndarray, visible: np.ndarray) -> Recording:
        """Return the recording of some columns."""
        p = len(self.formats)
        numeric, words = encoded[encoded < p], encoded[encoded >= p] - p
        return replace(
            self,
            formats=tuple(self.formats[j] for j in numeric),
            origins=self.origins[numeric],
            words=tuple(self.words[k] for k in words),
            points=None if self.points is None else self.points[:, visible],
            gaps=None if self.gaps is None else self.gaps[:, encoded],
        )

    def exact(self, rows: np.ndarray) -> np.ndarray:
        """Return encoded rows of the table without the rounding errors of maps."""
        out = rows.copy()
        for j, (form, origin) in enumerate(zip(self.formats, self.origins, strict=True)):
            out[:, j] = form.exact(rows[:, j] + origin) - origin
        return out

    def record(self, drawn: Drawn, others: Drawn, rng: np.random.Generator) -> np.ndarray:
        """Return drawn rows as the table records them: every column with its own distribution."""
        out, p = drawn.rows.copy(), len(self.formats)
        for j, (form, origin) in enumerate(zip(self.formats, self.origins, strict=True)):
            numbers, reference = (
                form.spiked(some.rows[:, j] + origin, some.first[:, j] + origin) for some in (drawn, others)
            )
            out[:, j] = form.at(_shares(numbers, reference, rng)) - origin
        for k, shares in enumerate(self.words):
            cells = out[:, p + k]
            # The kernel takes other words alike; a table has some of them more often.
            other = np.flatnonzero((cells != drawn.first[:, p + k]) & (cells != drawn.second[:, p + k]))
            out[other, p + k] = rng.choice(len(shares), size=len(other), p=shares)
        return out

    def missing(
        self,
        kernel: ColumnKernel,
        points: np.ndarray,
        others: np.ndarray,
        rng: np.random.Generator,
        memory_limit: float,
        n_jobs: int | None,
    ) -> np.ndarray:
        """Draw which encoded cells are missing: those of a row of the fit, drawn by the kernel at each drawn row."""
        if self.points is None or self.gaps is None or self.weights is None:
            raise ValueError("the recording has no gaps")
        pairs = {"block": LOG_VALUE, "memory_limit": memory_limit, "n_jobs": n_jobs}
        some = np.ascontiguousarray(others[:_BALANCED])
        log_weights = _balanced(Operator(kernel, some, self.points, **pairs).dense(), self.weights)  # type: ignore[arg-type]
        donors = np.empty(len(points), dtype=np.intp)
        for part in slices(len(points), memory_limit / (_PAIR_BYTES * len(self.points))):
            logs = Operator(kernel, np.ascontiguousarray(points[part]), self.points, **pairs).dense()  # type: ignore[arg-type]
            # The largest sum of a logarithm and a Gumbel draw is a draw by the exponentials.
            logs += log_weights
            logs += rng.gumbel(size=logs.shape)
            donors[part] = logs.argmax(axis=1)
        return np.asarray(self.gaps[donors])

    def typed(self, frame: Any) -> Any:
        """Return a frame of drawn rows with the types of the table; arrays are returned as they are."""
        return frame if isinstance(frame, np.ndarray) else in_types(frame, self.types)


def _balanced(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return logarithms of weights with which every column is drawn in its share, over all rows of exponentials of `logs`."""
    share = weights / weights.sum()
    found = np.log(share)
    for _ in range(_BALANCING_STEPS):
        chance = logs + found
        chance -= chance.max(axis=1, keepdims=True)
        np.exp(chance, out=chance)
        chance /= chance.sum(axis=1, keepdims=True)
        # Limited, because no weight makes a row of the fit likely that is far from all draws.
        found += np.clip(np.log(share / np.maximum(chance.mean(axis=0), 1e-300)), -_LARGEST, _LARGEST)
    return np.asarray(found)


@dataclass(frozen=True)
class Drawn:
    """Encoded rows that were drawn, with the two centres that each of them was drawn about."""

    # rows, first, second: (n, number of encoded columns): drawn rows and centres, in the units of the table
    rows: np.ndarray
    first: np.ndarray
    second: np.ndarray
    center: np.ndarray  # (n,): number of the first centre

    def take(self, columns: np.ndarray) -> Drawn:
        """Return some of the columns."""
        return Drawn(self.rows[:, columns], self.first[:, columns], self.second[:, columns], self.center)
