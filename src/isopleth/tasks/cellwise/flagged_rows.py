"""Reasons in the cells of flagged rows: a wrong cell, or a rare kind of row whose cells fit each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.core.errors import listed
from isopleth.core.rows import sample_places
from isopleth.results.text import cell_text, counted
from isopleth.tasks.cellwise.detector import CellwiseDetector
from isopleth.tasks.cellwise.result import CellFindings

# Rows and trees of this judgement, which stands beside another answer; most flagged rows that are judged, and that are named.
_ROWS, _TREES, _MOST_FLAGGED, _MOST_NAMED = 1000, 20, 200, 8
# A word names a kind of rare rows if at least this share of them have it, and at most this share of all rows.
_OF_RARE, _OF_ALL = 0.6, 0.1


def cells_of_flagged(table: Any, flagged: np.ndarray, places: np.ndarray, name: str) -> list[str]:
    """Return sentences about the cells of flagged rows.

    Parameters
    ----------
    table : FileTable
        The table.
    flagged : ndarray of int
        Its flagged rows, the least likely first.
    places : ndarray of shape (n,)
        Where the rows stand.
    name : str
        What that is: "line" or "row".
    """
    rows = flagged[:_MOST_FLAGGED]
    if len(rows) == 0 or len(table) < 2:
        return []
    chosen = np.union1d(rows, sample_places(len(table), _ROWS))
    found = (
        CellwiseDetector(n_estimators=_TREES, max_samples=_ROWS, random_state=0).fit(table.take(chosen).frame).cells()
    )
    wrong = np.asarray(found.flagged.any(axis=1))
    judged = np.searchsorted(chosen, rows)
    bad, rare = judged[wrong[judged]], judged[~wrong[judged]]
    said = []
    if len(bad):
        where = listed([str(place) for place in places[np.sort(chosen[bad])]], _MOST_NAMED)
        lines = f"{name}s {where}" if len(bad) > 1 else f"{name} {where}"
        said.append(
            f"In {lines} a cell does not fit the others of its row: isopleth cells names it, and what would be usual."
        )
    if kind := _kind(found, rare):
        said.append(
            f"{counted(len(rare), 'flagged row')} are rare kinds of rows ({kind}): no cell is unusual given the others."
        )
    return said


def _kind(found: CellFindings, rare: np.ndarray) -> str:
    """Return the word that most rare rows have and hardly any others; nothing without one."""
    best, told = _OF_RARE, ""
    for j, name in enumerate(found.names):
        words = [value for value in found.values[rare, j] if isinstance(value, str)]
        if len(rare) < 3 or not words:
            continue
        levels, counts = np.unique(np.array(words, dtype=object), return_counts=True)
        word = levels[counts.argmax()]
        share = counts.max() / len(rare)
        if share > best and (found.values[:, j] == word).mean() <= max(_OF_ALL, 1.2 * len(rare) / len(found)):
            best, told = share, f"{name} = {cell_text(word)} in {counts.max():,}"
    return told
