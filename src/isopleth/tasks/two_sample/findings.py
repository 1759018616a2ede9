"""Sentences on the columns and the pairs of columns that a two-sample test shows to differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from isopleth.core.p_values import LEVEL
from isopleth.results.text import in_words
from isopleth.tasks.column_changes import as_read, in_order
from isopleth.tasks.two_sample.given_others import MISSING, OPEN

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.result import TwoSampleResult

# Columns given the others that have a sentence of their own, and columns and pairs that sentences name.
_MOST_GIVEN, _MOST_NAMED = 3, 12
# Share of the values that differ from which a column alone separates the samples.
_SEPARATES = 0.97
# Note below sentences on columns that moved given the others.
SUCH_ROWS = (
    "Such rows: rows of one sample that are alike in the other columns. --target says the same in units of a column."
)


def findings(found: TwoSampleResult) -> list[str]:
    """Return sentences on the columns and pairs that are shown to differ, those that hide the others first."""
    said = [_separating(found), _by_themselves(found), *_given_others(found), *_relations(found)]
    return [f"{sentence}." for sentence in said if sentence]


def is_said_given_others(found: TwoSampleResult) -> bool:
    """Tell whether a sentence says how far a column moved given the others."""
    return any(OPEN in sentence for sentence in _given_others(found))


def _separating(found: TwoSampleResult) -> str:
    """Return which columns tell nearly all rows of the samples apart, each alone; empty if none does or there are no others."""
    changes = found.column_changes
    telling = np.flatnonzero(changes["share"] > _SEPARATES)
    if not len(telling) or len(found.names) < 2:
        return ""
    named = in_words([found.names[j] for j in telling], _MOST_NAMED)
    how = "; ".join(as_read(in_order(changes, telling[:_MOST_GIVEN]))["change"])
    who = f"{named} alone separates" if len(telling) == 1 else f"Each of {named} alone separates"
    it = "it" if len(telling) == 1 else "them"
    return f"{who} the two samples ({how}); leave {it} out (--exclude) to see what else differs"


def _by_themselves(found: TwoSampleResult) -> str:
    """Return the columns that differ by themselves; empty if there are none."""
    named = found.witness.columns(LEVEL)
    verb = "differs by itself" if len(named) == 1 else "differ by themselves"
    return f"{len(named)} of {len(found.names)} columns {verb}: {in_words(named, _MOST_NAMED)}" if named else ""


def _given_others(found: TwoSampleResult) -> list[str]:
    """Return the columns that differ given the others and are not shown to differ by themselves, the clearest first."""
    alone, given = found.witness.columns(LEVEL), found.witness.given_others
    order = np.lexsort([-np.abs(np.nan_to_num(given.shifts)), given.p_values])
    named = [int(j) for j in order if given.texts[j] and found.names[j] not in alone]
    said = [
        f"{found.names[j]} is not shown to differ by itself, but among rows alike in {_others(found, j)} {_change(found, j)}"
        for j in named[:_MOST_GIVEN]
    ]
    rest = [found.names[j] for j in named[_MOST_GIVEN:]]
    verb = "differs" if len(rest) == 1 else "differ"
    return said + [f"{in_words(rest, _MOST_NAMED)} {verb} among rows alike in other columns, too"] * bool(rest)


def _others(found: TwoSampleResult, column: int) -> str:
    """Return which columns a column is compared given, in words: without those that moved clearer."""
    left_out = found.witness.given_others.left_out[column]
    if not left_out:
        return "the other columns"
    others = [name for j, name in enumerate(found.names) if j != column and j not in left_out]
    if len(others) <= _MOST_GIVEN:
        return in_words(others)
    return f"the other columns but {in_words([found.names[j] for j in left_out], _MOST_NAMED)}"


def _change(found: TwoSampleResult, column: int) -> str:
    """Return the change of a column given the others as the end of a sentence: a word has its own subject."""
    text = found.witness.given_others.texts[column]
    if text.startswith(MISSING):
        return f"{found.names[column]} is {text}"
    return text if found.problem.encoding.cells[column].kind == "categorical" else f"it is {text}"


def _relations(found: TwoSampleResult) -> list[str]:
    """Return the pairs whose relation differs, with the correlation in both samples where both columns are of numbers."""
    pairs = found.witness.relations(LEVEL)
    said = [
        f"The relation of {one} and {two} differs{_correlations(found, one, two)}" for one, two in pairs[:_MOST_NAMED]
    ]
    rest = len(pairs) - _MOST_NAMED
    return said + [f"{rest:,} more pairs of columns are related differently; --json names all"] * (rest > 0)


def _correlations(found: TwoSampleResult, one: str, two: str) -> str:
    """Return the rank correlation of two columns in X and in Y, in words; empty where a column holds words."""
    cells = [found.problem.encoding.cells[found.names.index(name)] for name in (one, two)]
    if any(cell.kind == "categorical" for cell in cells):
        return ""
    both = [_rank_correlation(*rows[:, [cell.place for cell in cells]].T) for rows in found.problem.tables]
    return f": rank correlation {both[0]:.2f} in {found.labels[0]}, {both[1]:.2f} in {found.labels[1]}"


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's correlation over the rows in which both cells are known; NaN if one of them does not vary."""
    known = ~(np.isnan(x) | np.isnan(y))
    ranks = [rankdata(column[known]) for column in (x, y)]
    centred = [column - column.mean() if len(column) else column for column in ranks]
    size = float(np.sqrt((centred[0] @ centred[0]) * (centred[1] @ centred[1])))
    return float(centred[0] @ centred[1]) / size if size else np.nan
