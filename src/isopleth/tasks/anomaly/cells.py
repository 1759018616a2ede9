"""Cells of a table with categories and gaps, as the detector uses them and as explanations show them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.errors import DataWarning, InputError, listed
from isopleth.tables.checks import Table
from isopleth.tables.schema import Schema, decode_cells

UNSEEN = "a new word"  # how explanations show a word that was not among the training rows


@dataclass(frozen=True)
class TableCells:
    """Numbers and codes of a table; a missing word is a code of its own.

    Parameters
    ----------
    n_numeric : int
        Number of columns of numbers, which come first.
    missing : ndarray of shape (q,)
        Code of a missing cell of each categorical column: one behind that of unseen words or, if no training row had a gap there,
        that of the most frequent word.
    columns : Schema, optional
        Kinds of the columns; None for arrays and frames of numbers.
    """

    n_numeric: int
    missing: np.ndarray
    columns: Schema | None

    @classmethod
    def of(cls, table: Table) -> Self:
        """Look at the table of a fit."""
        gaps = table.missing[:, table.n_numeric :].any(axis=0)
        sizes = np.array([] if table.columns is None else table.columns.sizes, dtype=np.float64)
        return cls(table.n_numeric, np.where(gaps, sizes, 0.0), table.columns)

    def known(self, rows: np.ndarray) -> np.ndarray:
        """Return checked rows with codes for missing words; missing numbers are NaN, always with the same bits."""
        codes = rows[:, self.n_numeric :]
        gaps = np.isnan(rows)
        if not gaps.any():
            return rows
        words = np.where(np.isnan(codes), self.missing, codes)
        return np.column_stack([np.where(gaps, np.nan, rows)[:, : self.n_numeric], words])

    def varying(self, X: np.ndarray) -> np.ndarray:
        """Return a mask of the columns that vary, and warn of the others.

        Raises
        ------
        InputError
            If no column varies.
        """
        known = ~np.isnan(X)
        low, high = np.where(known, X, np.inf).min(axis=0), np.where(known, X, -np.inf).max(axis=0)
        keep = low < high
        if not keep.any():
            raise InputError(
                f"no column of X has two values that differ in its {len(X)} rows; expected at least two rows that differ in one "
                f"of {len(keep)} columns."
            )
        if not keep.all():
            names = self._encoded_names([f"column {j}" for j in range(len(keep))])
            constant = listed([names[j] for j in np.flatnonzero(~keep)])
            warnings.warn(f"constant columns are dropped: {constant}.", DataWarning, stacklevel=4)
        return keep

    def _encoded_names(self, otherwise: list[str]) -> list[str]:
        if self.columns is None:
            return otherwise
        return [*self.columns.numeric_names, *self.columns.categorical_names]

    @property
    def order(self) -> np.ndarray | slice:
        """Place among the encoded columns of each used column, in the order of the table."""
        return slice(None) if self.columns is None else np.argsort(self.columns.order)

    def names(self, plain: list[str]) -> list[str]:
        """Return the names of the used columns in the order of the table, of which `plain` are all names."""
        if self.columns is None:
            return plain
        return [str(name) if self.columns.named else f"column {name}" for name in self.columns.names]

    def shown(self, rows: np.ndarray) -> np.ndarray:
        """Return encoded rows as cells: numbers, words and times; None for missing cells.

        Returns
        -------
        ndarray of shape (n, d)
            Numbers where the table has nothing else.
        """
        if self.columns is None or all(column.kind == "numeric" for column in self.columns.columns):
            return rows
        out = np.empty(rows.shape, dtype=object)
        for j, i in enumerate(self.columns.order):
            column, cells = self.columns.columns[i], rows[:, j]
            out[:, j] = [None if np.isnan(cell) else cell for cell in cells]
            if column.kind == "time":
                some = ~np.isnan(cells)
                out[some, j] = decode_cells(column, cells[some])
            elif column.kind == "categorical":
                words: list[Any] = [*column.levels, UNSEEN, None]
                out[:, j] = [None if np.isnan(code) else words[int(code)] for code in cells]
        return out
