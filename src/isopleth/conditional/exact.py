"""Cells that follow from others by a sum or product of columns which holds in all or nearly all known rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.steps import recorded_step
from isopleth.tables.relations import Relation, equations_of


@dataclass(frozen=True)
class ExactCells:
    """Sums and products of columns of numbers, whose names are their places."""

    equations: tuple[Relation, ...]
    steps: tuple[float, ...]  # in which each column is recorded

    @classmethod
    def of(cls, numbers: np.ndarray) -> Self:
        """Find what holds in all or nearly all rows of numbers, NaN where a cell is missing."""
        equations = equations_of({str(j): each for j, each in enumerate(numbers.T)})
        steps = [recorded_step(np.unique(column[~np.isnan(column)])) for column in numbers.T]
        return cls(tuple(equations), tuple(steps))

    def complete(self, known: np.ndarray, filled: np.ndarray) -> None:
        """Put into `filled` what follows from its other cells: the only gap of `known`, or the result if it is one of several."""
        numbers = {str(j): column for j, column in enumerate(filled.T)}  # views
        for equation in self.equations:
            gaps = {name: np.isnan(known[:, int(name)]) for name in equation.columns}
            alone = np.sum(list(gaps.values()), axis=0) == 1
            for name, gap in gaps.items():
                follows = gap if name == equation.result else gap & alone
                if follows.any():
                    self._write(filled, int(name), follows, equation.solved_for(name, numbers))

    def _write(self, filled: np.ndarray, column: int, where: np.ndarray, values: np.ndarray) -> None:
        """Write values that are finite, as multiples of the step of the column."""
        where, step = where & np.isfinite(values), self.steps[column]
        found = values[where]
        filled[where, column] = np.round(np.rint(found / step) * step, 9) if step else found
