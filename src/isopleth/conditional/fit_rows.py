"""Rows that the laws of columns are fitted to: of a large table some of those whose cell is known.

A law of sixty trees and five thousand rows takes three seconds, of twenty thousand twelve. All cells are answered by it.
"""

from __future__ import annotations

import numpy as np

from isopleth.core.rows import row_draws

# Most rows that the law of a column is fitted to, by default.
MOST_ROWS = 5000


def drawn_for_columns(rows: np.ndarray, known: np.ndarray, most: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return rows to keep, and for each column the places among these of at most `most` whose cell is `known`, (n, d).

    Of more rows those with the smallest draws (:func:`~isopleth.core.rows.row_draws`) are kept, so that columns without gaps
    share theirs.
    """
    if len(rows) <= most:
        return np.arange(len(rows)), [np.flatnonzero(column) for column in known.T]
    order = np.argsort(row_draws(rows), kind="stable")
    chosen = [np.sort(order[_first(column[order], most)]) for column in known.T]
    kept = np.unique(np.concatenate(chosen))
    return kept, [np.searchsorted(kept, places) for places in chosen]


def _first(mask: np.ndarray, most: int) -> np.ndarray:
    """Return the first places of a mask that hold."""
    return np.flatnonzero(mask)[:most]
