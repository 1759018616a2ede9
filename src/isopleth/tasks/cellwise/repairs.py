"""Repairs of flagged cells: what should stand there, and for which of them this is clear enough to write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from isopleth.core.rows import mask_of_cells
from isopleth.tasks.cellwise.mistakes import Mistake
from isopleth.tasks.cellwise.usual_cells import UsualCells

# Most rows of a word that is replaced by the likeliest one, and probability from which this is far the likeliest.
RARE, SURE = 5, 0.5
# How far beyond the range of a column, as a share of the range, a number is certain to be wrong.
_FAR = 0.5
# Stands for the usual cell in a reason.
USUAL = "{usual}"
# Nats beyond its bound of the cell of a mistake that no cell alone gives away.
_BEYOND = 1.0


@dataclass(frozen=True)
class CellRepairs:
    """Scores and repairs of the cells of a table, (n, d), encoded, in the order of the table."""

    scores: np.ndarray
    excess: np.ndarray
    usual: UsualCells
    mistakes: dict[int, Mistake]
    repairs: dict[tuple[int, int], str] = field(default_factory=dict)  # why a cell is replaced, by row and column
    unclear: dict[tuple[int, int], str] = field(default_factory=dict)  # why one is wrong whose right value is not known
    doubted: frozenset[int] = frozenset()  # rows whose mistake is only likely

    @property
    def replaced(self) -> np.ndarray:
        """Mask of the cells that are replaced by what is usual there."""
        return mask_of_cells(self.repairs, self.scores.shape)

    def with_usual(self, flagged: np.ndarray) -> np.ndarray:
        """Return a mask of the flagged cells of which something is usual."""
        out, (rows, columns) = flagged.copy(), np.nonzero(flagged)
        out[rows, columns] = ~np.isnan(self.usual.at(rows, columns)[1])
        return out

    def with_absent(self, absent: np.ndarray) -> Self:
        """Return it with the zeros that stand for missing cells: each is flagged by itself."""
        return replace(self, excess=np.where(absent, self.scores, self.excess)) if absent.any() else self

    def with_mistakes(self, order: np.ndarray, undone: dict[int, np.ndarray], bounds: np.ndarray) -> Self:
        """Return it with the blame where the mistakes are: their cells hold what they held, and the others are as usual then.

        `undone` are the scores of the rows without their mistakes, encoded as `order` has the columns. What the cells of a
        doubted mistake held is not known.
        """
        if not self.mistakes:
            return self
        scores, excess, usual = self.scores.copy(), self.excess.copy(), self.usual.copy()
        cells, values = [], []
        for i, mistake in self.mistakes.items():
            margin = float(np.nanmax(self.scores[i] - bounds[i]))
            scores[i, order] = excess[i, order] = undone[i]
            columns = order[list(mistake.columns)]
            scores[i, columns] = excess[i, columns] = bounds[i, columns] + max(margin, _BEYOND)
            if i not in self.doubted:
                cells += [(i, int(j)) for j in columns]
                values += list(mistake.values)
        rows, places = np.array(cells, dtype=np.intp).reshape(-1, 2).T
        usual.put(rows, places, np.array(values))
        return replace(self, scores=scores, excess=excess, usual=usual)


class RepairReasons:
    """Reasons why flagged cells are wrong, of which the first one of a cell counts: those that say what is right, and others."""

    def __init__(self, cells: CellRepairs, flagged: np.ndarray) -> None:
        self._cells, self.found, self.unclear = cells, dict[tuple[int, int], str](), dict[tuple[int, int], str]()
        self.open = flagged.copy()  # cells that nothing explains so far
        self.open[list(cells.mistakes)] = False

    def add(self, where: np.ndarray, reason: str, j: int | None = None, *, certain: bool = True) -> None:
        """Give a reason for cells: a mask of all, or rows or a mask of the rows of column j.

        One that is `certain` replaces them.
        """
        found = self.found if certain else self.unclear
        cells = np.zeros(self.open.shape, dtype=bool)
        if j is None:
            cells |= where
        else:
            cells[where, j] = True
        for i, column in np.argwhere(cells & self.open).tolist():
            found[i, column] = reason
            self.open[i, column] = False

    def of_mistakes(self, order: np.ndarray, said: Callable[[Mistake], str]) -> None:
        """Give the reasons of the cells of mistakes."""
        for i, mistake in self._cells.mistakes.items():
            found = self.unclear if i in self._cells.doubted else self.found
            found |= {(i, int(order[k])): said(mistake) for k in mistake.columns}

    def of_far_numbers(
        self, j: int, numbers: np.ndarray, flagged: np.ndarray, bounds: np.ndarray, left: np.ndarray
    ) -> None:
        """Give the reason of numbers far beyond all those of rows without a flag, which their law alone condemns.

        They are wrong, and may still mean something, as a number in another unit does: none is replaced. Some are `left`: those
        that may stand in the place of another cell of their row, and those that keep an equation with it.
        """
        others = numbers[~flagged.any(axis=1) & ~np.isnan(numbers)]
        if len(others):
            alone = np.nan_to_num(self._cells.excess[:, j]) > bounds[:, j]
            low, high = others.min(), others.max()
            beyond = np.maximum(numbers - high, low - numbers)
            self.add(
                (beyond > _FAR * (high - low)) & alone & ~left, "far beyond all others of its column", j, certain=False
            )
