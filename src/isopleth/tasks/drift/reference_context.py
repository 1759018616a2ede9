"""Residuals given the other columns, beside the columns that a monitor compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.context.residuals import RankRegression, left_out_residuals
from isopleth.core.p_values import normal_quantile
from isopleth.tables.row_encoding import RowEncoding


def n_compared(columns: int) -> int:
    """Return how many columns are compared, with residuals beside them; a single column has none."""
    return 2 * columns if columns > 1 else columns


@dataclass(frozen=True, eq=False)
class ReferenceResiduals:
    """Regressions of the columns of a reference on each other."""

    keep: np.ndarray  # (p,): mask of the coordinates of columns that vary
    columns: np.ndarray  # (k,): column of each of these
    words: np.ndarray  # (k,): mask of those of words
    residuals: RankRegression | None  # None of a single column

    @classmethod
    def of(cls, encoding: RowEncoding, rows: np.ndarray, keep: np.ndarray) -> Self:
        """Regress the kept coordinates of encoded rows."""
        widths = [block.stop - block.start for block in encoding.blocks]
        columns = np.repeat(np.arange(len(widths)), widths)[keep]
        several = len(np.unique(columns)) > 1
        residuals = RankRegression.of(rows[:, keep], columns) if several else None
        return cls(keep, columns, encoding.of_words[keep], residuals)

    def scales(self, wider: np.ndarray) -> np.ndarray:
        """Return the length scales of the residuals, in their units, for columns whose scales are `wider` than by default (k,).

        Those of the words of a column count as one together.
        """
        if self.residuals is None:
            return np.empty(0)
        count = np.bincount(self.columns)
        together = np.where(self.words, count[self.columns], 1)
        return np.asarray(wider * np.sqrt(n_compared(int(np.count_nonzero(count))) * together))

    def beside(self, rows: np.ndarray, *, left_out: bool = False) -> np.ndarray:
        """Return encoded rows and their residuals; those of the reference by regressions on other rows, if `left_out`."""
        if self.residuals is None:
            return rows
        kept = rows[:, self.keep]
        found = left_out_residuals(kept, self.columns) if left_out else self.residuals(kept, one_by_one=True)
        return np.hstack([rows, found])

    def of_numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the residuals of the columns of numbers, without those of their gaps, at encoded rows."""
        if self.residuals is None:
            return np.empty((len(rows), 0))
        first = np.diff(self.columns, prepend=-1) > 0
        return self.residuals(rows[:, self.keep], one_by_one=True)[:, first & ~self.words]

    def moves(self, rows: np.ndarray, reference_rows: int, level: float) -> dict[int, float]:
        """Return the columns of numbers that moved in a window given the others, and by how much, the clearest first.

        A column that moved is no regressor of the others any more; `level` is the chance to name one where nothing has changed.
        """
        found: dict[int, float] = {}
        if self.residuals is None:
            return found
        left, kept = np.unique(self.columns), rows[:, self.keep]
        error = np.sqrt(1.0 / len(rows) + 1.0 / reference_rows)
        bar = normal_quantile(1.0 - level / len(left))
        while len(left) > 1:
            chosen = np.isin(self.columns, left)
            means = self.residuals.among(left)(kept[:, chosen]).mean(axis=0)
            first = np.flatnonzero(
                np.diff(self.columns[chosen], prepend=-1)
            )  # the number of a column, without its gaps
            means = np.where(self.words[chosen][first], 0.0, means[first])
            j = int(np.argmax(np.abs(means)))
            if abs(means[j]) <= bar * error:
                break
            found[int(left[j])] = float(means[j])
            left = np.delete(left, j)
        return found
