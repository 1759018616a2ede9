"""Formats in which a table records its values, so that drawn rows can look like its rows.

A density of numbers is smooth, and a table is not: its numbers have some decimals, some values occur again and again, there is
nothing beyond its edges, and cells are missing in patterns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.core.budget import Budget
from isopleth.core.steps import TIME_STEPS, USUAL_STEPS
from isopleth.core.threads import slices
from isopleth.density.fitted import FitRows
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import Operator
from isopleth.operators.blocks import LOG_VALUE
from isopleth.tables.number_formats import NumberFormat
from isopleth.tables.schema import Schema
from isopleth.tables.typed_cells import in_types, is_length_of_time

_BALANCED = 1000  # draws by which the weights of the rows that gaps are taken from are found
_BALANCING_STEPS = 10
_LARGEST = 2.0  # change of the logarithm of such a weight in a step
_PAIR_BYTES = 32  # that one pair of a drawn row and a training row takes
_MOST_REPEATED = 10**6  # rows that are counted one by one


def _shares(drawn: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the share of `others` below each number, at random between its ends where some are equal."""
    ordered = np.sort(others)
    low = np.searchsorted(ordered, drawn)
    high = np.searchsorted(ordered, drawn, side="right")
    # Beyond or between all others a number has a share of its own, as if it were one of them.
    u = rng.uniform(size=len(drawn))
    return np.asarray((low + u * np.maximum(high - low, 1)) / (len(ordered) + 1.0))


def _repeated(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as often as their weights say, if these are whole numbers."""
    times = np.rint(weights)
    if not np.array_equal(times, weights) or times.sum() > _MOST_REPEATED:
        return rows, weights
    return np.repeat(rows, times.astype(np.intp), axis=0), np.ones(int(times.sum()))


@dataclass(frozen=True)
class Recording:
    """Formats of the columns of a table, and its gaps."""

    formats: tuple[NumberFormat, ...]  # one for each encoded numeric column
    origins: np.ndarray  # (n_numeric,): zero of each of them: the first time of a column of times, 0 for numbers
    words: tuple[np.ndarray, ...]  # shares of the words of each encoded categorical column
    types: Mapping[str, str]  # types of the columns of a frame; empty for arrays
    # (m, d): rows of the fit in frame coordinates, their gaps filled; None where nothing was missing
    points: np.ndarray | None = None
    gaps: np.ndarray | None = None  # (m, number of encoded columns): their missing cells
    weights: np.ndarray | None = None  # (m,): their weights

    @classmethod
    def of(cls, fit_rows: FitRows, columns: Schema, types: Mapping[str, str]) -> Recording:
        """Return how the rows of a fit are recorded."""
        rows, weights = _repeated(fit_rows.rows, fit_rows.weights)
        kinds = columns.measured
        origins = np.array([column.origin for column in kinds])
        in_time = [each.kind == "time" or is_length_of_time(types.get(str(each.name), "")) for each in kinds]
        formats = [
            NumberFormat.of(rows[:, j] + origins[j], weights, TIME_STEPS if in_time[j] else USUAL_STEPS)
            for j in range(len(kinds))
        ]
        words = []
        for j, size in enumerate(columns.sizes):
            codes = rows[:, len(kinds) + j]
            known = ~np.isnan(codes)
            counts = np.bincount(codes[known].astype(np.intp), weights[known], minlength=size)
            words.append(counts / counts.sum() if counts.any() else np.full(size, 1.0 / size))
        return cls(tuple(formats), origins, tuple(words), types, *(fit_rows.filled or ()))

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
        budget: Budget,
    ) -> np.ndarray:
        """Draw which encoded cells are missing: those of a row of the fit, drawn by the kernel at each drawn row."""
        if self.points is None or self.gaps is None or self.weights is None:
            raise ValueError("the recording has no gaps")
        some = np.ascontiguousarray(others[:_BALANCED])
        log_weights = _balanced(
            Operator(kernel, some, self.points, block=LOG_VALUE, budget=budget).dense(), self.weights
        )
        donors = np.empty(len(points), dtype=np.intp)
        for part in slices(len(points), budget.memory / (_PAIR_BYTES * len(self.points))):
            here = np.ascontiguousarray(points[part])
            logs = Operator(kernel, here, self.points, block=LOG_VALUE, budget=budget).dense()
            # The largest sum of a logarithm and a Gumbel draw is a draw by the exponentials.
            logs += log_weights
            logs += rng.gumbel(size=logs.shape)
            donors[part] = logs.argmax(axis=1)
        return np.asarray(self.gaps[donors])

    def typed(self, frame: Any) -> Any:
        """Return a frame of drawn rows with the types of the table; arrays are returned as they are."""
        return frame if isinstance(frame, np.ndarray) else in_types(frame, dict(self.types))


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
