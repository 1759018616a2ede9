"""Mistakes by a factor of ten: which are certain, and which another cause explains as well, such as another unit.

A number in another unit is some factor too large, and divided by 10, 100 or 1,000 it is somewhere in the decade of the right
ones. So a factor of ten is certain only where what is usual is a small part of this decade, and holds the number without it.
"""

from __future__ import annotations

import numpy as np

from isopleth.tasks.cellwise.margins import flagged_cells
from isopleth.tasks.cellwise.mistakes import FoundMistakes, Mistake, is_factor
from isopleth.tasks.cellwise.model import CellModel, JudgedTable

# Largest ratio of the ends of what is usual, a third of a decade, and how far beyond an end a number may be, which is a hundredth
# of a decade: the ends of a narrow law are rough.
_WIDEST, _NEARLY = 10.0 ** (1.0 / 3.0), 10.0**0.01
# Numbers are beside each other up to this ratio, and at least this share of those beside each other have the same factor.
_BESIDE, _SHARE = 10.0**0.5, 0.75


def doubtful_factors(model: CellModel, rows: JudgedTable, mistakes: FoundMistakes) -> frozenset[int]:
    """Return the rows whose mistake is a factor of ten that is not certain."""
    groups: dict[tuple[int, str], list[int]] = {}
    for i, each in mistakes.found.items():
        k = each.columns[0]
        if len(each.columns) == 1 and is_factor(float(rows.table.rows[i, k]), each.values[0]):
            groups.setdefault((k, each.said), []).append(i)
    if not groups:
        return frozenset()
    kept = _keep_equations(model, rows, mistakes.found)
    flagged = flagged_cells(
        rows.scores, model.evidence.excess(rows.table, rows.judged.excess), model.bounds_at(rows.table)
    )
    out: set[int] = set()
    for (k, _), members in groups.items():
        at, j = np.array(members), int(rows.table.order[k])
        numbers = rows.table.rows[:, k]
        first = mistakes.found[members[0]].values[0] / numbers[members[0]]
        by_equation = np.isin(at, list(kept))
        sure = by_equation | _are_usual(model, rows, at, j, numbers[at] * first)
        beside = np.setdiff1d(np.flatnonzero(flagged[:, j] & _beside(numbers[at], numbers)), at)
        like = int(_are_usual(model, rows, beside, j, numbers[beside] * first).sum())
        if sure.sum() + like < _SHARE * (len(at) + len(beside)):
            sure = by_equation
        out.update(at[~sure].tolist())
    return frozenset(out)


def _are_usual(model: CellModel, rows: JudgedTable, at: np.ndarray, j: int, values: np.ndarray) -> np.ndarray:
    """Return which numbers are within what is usual in column j of some rows, where this is narrow and of one sign."""
    low, _, high = model.quantiles(rows.table, rows.judged, at, np.full(len(at), j))
    near, far = np.minimum(abs(low), abs(high)), np.maximum(abs(low), abs(high))
    inside = (abs(values) * _NEARLY >= near) & (abs(values) <= far * _NEARLY) & (values * low > 0.0)
    return np.asarray((low * high > 0.0) & (far <= _WIDEST * near) & inside)


def _beside(members: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return a mask of the numbers that are about as large as those of mistakes, with their sign."""
    size, with_sign = np.abs(members), numbers * np.sign(members[0])
    return np.asarray((with_sign >= size.min() / _BESIDE) & (with_sign <= size.max() * _BESIDE))


def _keep_equations(model: CellModel, rows: JudgedTable, found: dict[int, Mistake]) -> set[int]:
    """Return the rows whose mistake is undone to what an equation says that the row breaks."""
    evidence, out = model.evidence, set[int]()
    cells = evidence.columns(rows.table)
    for rule in evidence.equations:
        broken = set(np.flatnonzero(rule.breaks(cells)).tolist())
        for name in rule.columns:
            k, said = evidence.place(rows.table, name), evidence.solved_for(rule, name, cells)
            out |= {
                i
                for i, each in found.items()
                if i in broken and each.columns == (k,) and np.isclose(said[i], each.values[0], rtol=1e-3, atol=0.0)
            }
    return out
