"""Cells as they would usually be: of large tables known for one cell a row, and asked of the laws for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

# Takes rows and columns, and returns the quantiles of their cells, (3, k).
Ask = Callable[[np.ndarray, np.ndarray], np.ndarray]


class UsualCells:
    """Low end, middle and high end of what is usual in each cell, encoded, with the columns in the order of the table."""

    def __init__(self, shape: tuple[int, int], ask: Ask) -> None:
        """Answer by `ask` but for the cells that are :meth:`put`."""
        self.shape, self._ask = shape, ask
        self._cells, self._values = np.empty(0, dtype=np.intp), np.empty((3, 0))

    def put(self, rows: np.ndarray, columns: np.ndarray | int, values: np.ndarray) -> None:
        """Say what is usual in some cells: the same value three times, or all three."""
        cells = np.asarray(rows, dtype=np.intp) * self.shape[1] + columns
        added = np.broadcast_to(values, (3, len(cells)))
        cells, values = np.append(cells, self._cells), np.concatenate([added, self._values], axis=1)
        self._cells, first = np.unique(cells, return_index=True)  # of equal cells the first, which is new
        self._values = values[:, first]

    def copy(self) -> Self:
        """Return one that can be changed."""
        out = type(self)(self.shape, self._ask)
        out._cells, out._values = self._cells, self._values
        return out

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return what is usual in some cells, (3, k)."""
        rows, columns = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        if not len(self._cells):
            return self._ask(rows, columns)
        cells = rows * self.shape[1] + columns
        place = np.minimum(np.searchsorted(self._cells, cells), len(self._cells) - 1)
        said = self._cells[place] == cells
        out = np.empty((3, len(rows)))
        out[:, said] = self._values[:, place[said]]
        out[:, ~said] = self._ask(rows[~said], columns[~said])
        return out

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return what is usual in all cells of some rows, (3, k, d)."""
        k, d = len(rows), self.shape[1]
        return self.at(np.repeat(rows, d), np.tile(np.arange(d), k)).reshape(3, k, d)
