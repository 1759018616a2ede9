"""Format of the numbers of a column: their steps, their range, and values that occur again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isopleth.core.steps import USUAL_STEPS, recorded_step

_FEW = 20  # distinct values up to which a column has these values only, if each of them occurs often
_OFTEN = 5  # rows that have a value which counts as one of the values of a column
_SHARE = 0.02  # share of the rows that have a repeated value
_SPIKE = 4.0  # times as often as its neighbours a repeated value occurs
_ROWS = 20_000  # rows that are looked at
_QUANTILES = 2001  # values that are kept of the distribution of a column
_EQUAL = 1e-9  # numbers nearer than this, relative to their range and size, are the same


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
