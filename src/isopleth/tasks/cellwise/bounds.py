"""Bounds of cells: nats from which on one is flagged, for numbers by the tails of a table, for words by their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.tables.checks import CheckedRows
from isopleth.tables.rules import Words, doubtful_words
from isopleth.tables.schema import in_table_order
from isopleth.tasks.cellwise.evidence import CellEvidence, in_encoded_order
from isopleth.tasks.cellwise.judged_rows import MANY_ROWS
from isopleth.tasks.cellwise.margins import row_scores

# Bound of numbers: so many distances between upper quartile and tenth of the rows' worst excess beyond the quartile, and so many
# nats more, which about 2 of 1,000 ordinary rows exceed; least bound. Quantiles that a tenth of wrong rows hardly moves.
_DISTANCES, _NATS_MORE, _LEAST_BOUND = 3.0, 2.0, 4.5
# Nats beyond which a doubtful word of one row is flagged; how much more for each factor e of its rows; most of a frequent word,
# and of a rare one that is not doubtful.
_WORD_BOUND, _REPEATED_WORD, _MOST_WORD_BOUND, _RARE_WORD_BOUND = 3.5, 1.5, 6.0, 7.0


@dataclass(frozen=True)
class CellBounds:
    """Bounds of the cells of a table, and the words that they follow from."""

    given: float | None  # bound of all cells that the user gave
    number: float  # of numbers and times
    counts: list[np.ndarray]  # rows of each word of the columns of words, in the order of the encoded rows
    words: list[np.ndarray]  # bound of each word

    @classmethod
    def of(
        cls,
        given: float | None,
        table: CheckedRows,
        evidence: CellEvidence,
        rows: np.ndarray,
        excess: np.ndarray,
    ) -> Self:
        """Set bounds by the words of distinct encoded rows of a table, and by the excess of the numbers of such rows."""
        sizes = () if table.columns is None else tuple(len(levels) for levels in table.columns.levels)
        codes = rows[:, table.n_numeric :].T
        counts = [np.bincount(c[~np.isnan(c)].astype(np.intp), minlength=k) for c, k in zip(codes, sizes, strict=True)]
        return cls(given, number_bound(excess), counts, _bounds_of_words(table, evidence, counts))

    def at(self, table: CheckedRows, evidence: CellEvidence) -> np.ndarray:
        """Return the bound of each cell, (n, d), in the order of the table."""
        kind = precision(len(table.rows))
        if self.given is not None:
            return np.full(table.rows.shape, self.given, dtype=kind)
        out: np.ndarray = np.full(table.rows.shape, self.number, dtype=kind)
        out[in_encoded_order(table, evidence.absent(table))] = _LEAST_BOUND
        for j in range(table.n_numeric, table.rows.shape[1]):
            bounds = np.append(self.words[j - table.n_numeric], _WORD_BOUND)  # the last: no row of the fit has it
            out[:, j] = bounds[np.nan_to_num(table.rows[:, j], nan=-1.0).astype(np.intp)]
        return in_table_order(out, table.order)


def _bounds_of_words(table: CheckedRows, evidence: CellEvidence, counts: list[np.ndarray]) -> list[np.ndarray]:
    """Return the bound of each word of the columns of words, in the order of the encoded rows."""
    found, cells = [], evidence.columns(table)
    for j, rows in enumerate(counts, table.n_numeric):
        rising = _WORD_BOUND + _REPEATED_WORD * np.log(np.maximum(rows, 1.0))
        name = evidence.names[table.order[j]]
        rare = (rising < _MOST_WORD_BOUND) & (rows > 0)
        if isinstance(cells.get(name), Words):
            rare &= ~doubtful_words(name, cells)[: len(rows)]
        found.append(np.where(rare, _RARE_WORD_BOUND, np.minimum(rising, _MOST_WORD_BOUND)))
    return found


def number_bound(excess: np.ndarray) -> float:
    """Return the bound of numbers by the excess of those of distinct rows: it follows how heavy the tails of a table are."""
    worst = row_scores(excess)
    worst = worst[worst > -1e300]
    if not len(worst):
        return _LEAST_BOUND
    quartile, tenth = np.quantile(worst, [0.75, 0.9])
    return max(float(quartile + _DISTANCES * (tenth - quartile) + _NATS_MORE), _LEAST_BOUND)


def precision(n: int) -> type:
    """Return the type of scores and bounds of n rows: of many they would take half of the memory."""
    return np.float32 if n > MANY_ROWS else np.float64
