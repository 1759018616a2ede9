"""Reasons in the cells of flagged rows: a wrong cell, or a rare kind of row whose cells fit each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isopleth.core.errors import listed
from isopleth.core.rows import sample_places
from isopleth.results.text import cell_text, counted
from isopleth.tasks.cellwise.detector import CellwiseDetector
from isopleth.tasks.cellwise.evidence import in_encoded_order
from isopleth.tasks.cellwise.margins import margins
from isopleth.tasks.cellwise.model import EnteredTable, unread_cells
from isopleth.tasks.cellwise.shown_table import cells_as_shown

# Rows by which rules are found; most flagged rows that are judged, and that are named.
_ROWS, _MOST_FLAGGED, _MOST_NAMED = 1000, 200, 8
# A word names a kind of rare rows if at least this share of them have it, and at most this share of all rows.
_OF_RARE, _OF_ALL = 0.6, 0.1


def cells_of_flagged(detector: Any, table: Any, flagged: np.ndarray, where: Mapping[str, Any]) -> list[str]:
    """Return sentences about the cells of flagged rows, by the laws of columns that explain rows too.

    Parameters
    ----------
    detector : AnomalyDetector
        The detector that was fitted to the table.
    table : FileTable
        The table.
    flagged : ndarray of int
        Its flagged rows, the least likely first.
    where : mapping of str to ndarray of shape (n,)
        Columns that say where the rows stand: "line" or "row", and "file" where there are several.
    """
    rows = flagged[:_MOST_FLAGGED]
    if len(rows) == 0 or len(table) < 2:
        return []
    chosen = np.union1d(rows, sample_places(len(table), _ROWS))
    judged = np.searchsorted(chosen, rows)
    excess, ordinary = detector._excess_of_cells(table.take(rows).frame)
    every = np.zeros((len(chosen), excess.shape[1]))
    every[judged] = excess
    names, worst, values = _worst_flagged(table.take(chosen).frame, every, ordinary)
    bad, rare = judged[worst[judged] >= 0], judged[worst[judged] < 0]
    of_judged = f", of the {len(rows):,} least likely flagged ones," if len(rows) < len(flagged) else ""
    said = []
    if len(bad):
        bad = bad[np.argsort(chosen[bad], kind="stable")]
        where_bad = _places(where, chosen[bad], [names[worst[i]] for i in bad])
        said.append(
            f"In {where_bad}{of_judged} a cell does not fit the others of its row; isopleth cells judges the cells of all rows."
        )
    if kind := _kind(names, values, rare):
        said.append(
            f"{counted(len(rare), 'flagged row')}{of_judged} are rare kinds of rows ({kind}): no cell is unusual given the "
            "others."
        )
    return said


def _places(where: Mapping[str, Any], rows: np.ndarray, columns: list[str]) -> str:
    """Return where rows stand, with a column of each, in words: rows of several files with their files."""
    place, numbers = list(where.items())[-1]
    cells = zip(rows.tolist(), columns, strict=True)
    if "file" in where:
        return listed(
            [f"{where['file'][row]}, {place} {numbers[row]} ({column})" for row, column in cells], _MOST_NAMED
        )
    named = listed([f"{numbers[row]} ({column})" for row, column in cells], _MOST_NAMED)
    return f"{place}s {named}" if len(rows) > 1 else f"{place} {named}"


def _worst_flagged(X: Any, excess: np.ndarray, ordinary: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the names of columns, the worst flagged cell of each row by laws that others have fitted, and the cells as shown.

    The column is -1 in a row without a flagged cell. `excess` is that of the cells of X under these laws, (n, d), and `ordinary`
    that of numbers of the rows of their fit.
    """
    entered = EnteredTable.of(CellwiseDetector(), X)
    table, evidence, given = entered.table, entered.evidence, entered.given
    bounds = entered.bounds("auto", given.of_laws.rows[given.counted], ordinary)
    scores = evidence.scores(table, in_encoded_order(table, excess), unread_cells(X, table))
    margin = margins(scores, bounds.at(table, evidence))
    worst = np.where(margin.max(axis=1) > 0.0, margin.argmax(axis=1), -1)
    return evidence.names, worst, np.asarray(cells_as_shown(table, table.rows))


def forget_reasons(detector: Any) -> None:
    """Drop the laws of columns, which would be most of a model file; they are fitted anew where rows are explained."""
    detector._reasons.laws.clear()


def _kind(names: list[str], values: np.ndarray, rare: np.ndarray) -> str:
    """Return the word that most rare rows have and hardly any others; nothing without one."""
    best, told = _OF_RARE, ""
    for j, name in enumerate(names):
        words = [value for value in values[rare, j] if isinstance(value, str)]
        if len(rare) < 3 or not words:
            continue
        levels, counts = np.unique(np.array(words, dtype=object), return_counts=True)
        word = levels[counts.argmax()]
        share = counts.max() / len(rare)
        if share > best and (values[:, j] == word).mean() <= max(_OF_ALL, 1.2 * len(rare) / len(values)):
            best, told = share, f"{name} = {cell_text(word)} in {counts.max():,}"
    return told
