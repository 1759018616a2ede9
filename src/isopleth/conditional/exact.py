"""Cells that follow from others by a sum or product of columns which holds in all known rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.steps import recorded_step
from isopleth.tables.relations import Relation, equations_of


@dataclass(frozen=True)
class ExactCells:
    """Sums and products of columns of numbers, as results, parts and signs."""

    equations: tuple[tuple[int, int, int, str], ...]  # result, first, second, and "+" or "x"
    steps: tuple[float, ...]  # in which each column is recorded

    @classmethod
    def of(cls, numbers: np.ndarray) -> Self:
        """Find what holds in all rows of numbers, NaN where a cell is missing."""
        equations = [_numbered(found) for found in equations_of({str(j): each for j, each in enumerate(numbers.T)})]
        steps = [recorded_step(np.unique(column[~np.isnan(column)])) for column in numbers.T]
        return cls(tuple(equations), tuple(steps))

    def complete(self, known: np.ndarray, filled: np.ndarray) -> None:
        """Put into `filled` what follows from its other cells: the only gap of `known`, or the result if it is one of several."""
        for result, first, second, sign in self.equations:
            gaps = np.isnan(known[:, [result, first, second]])
            self._write(filled, result, gaps[:, 0], _forward(filled[:, first], filled[:, second], sign))
            for part, other in ((first, second), (second, first)):
                alone = np.isnan(known[:, part]) & (gaps.sum(axis=1) == 1)
                self._write(filled, part, alone, _backward(filled[:, result], filled[:, other], sign))

    def _write(self, filled: np.ndarray, column: int, where: np.ndarray, values: np.ndarray) -> None:
        """Write values that are finite, as multiples of the step of the column."""
        where, step = where & np.isfinite(values), self.steps[column]
        found = values[where]
        filled[where, column] = np.round(np.rint(found / step) * step, 9) if step else found


def _numbered(relation: Relation) -> tuple[int, int, int, str]:
    return int(relation.result), int(relation.first), int(str(relation.second)), relation.sign


def _forward(first: np.ndarray, second: np.ndarray, sign: str) -> np.ndarray:
    return np.asarray(first + second if sign == "+" else first * second)


def _backward(result: np.ndarray, part: np.ndarray, sign: str) -> np.ndarray:
    """Return the other part of a sum or product; NaN where it does not follow."""
    if sign == "+":
        return np.asarray(result - part)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(part == 0.0, np.nan, result / part))
