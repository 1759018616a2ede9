"""Explanations of rows by the rule and the laws of a fitted detector: the cells and the evidence that make them unlikely."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.results.result import keeps_warnings
from isopleth.tables.checks import used_names
from isopleth.tasks.anomaly.explanation import COLUMNS_A_ROW, Explanation
from isopleth.tasks.anomaly.training_table import WithConstants

if TYPE_CHECKING:
    from isopleth.tasks.anomaly.detector import AnomalyDetector


@keeps_warnings
def explanation(detector: AnomalyDetector, X: Any) -> Explanation:
    """Return what :meth:`AnomalyDetector.explain` answers."""
    table, rows = detector._enter(X, warn=False)
    known, names = detector._index.find(rows), used_names(detector, table.columns)
    cells = detector._coded(table.rows)
    surprises = detector._rule.surprises(rows, known, detector._budget)
    judged = detector._reasons.judge(cells, known, detector._seed, detector._budget)
    others = np.zeros(cells.shape)  # what other values than that of a constant column say
    if isinstance(detector._rule, WithConstants):
        others[:, detector._frame.keep] = detector._rule.step * detector._rule.others(rows)

    def shown(rows: np.ndarray) -> np.ndarray:
        """Return coded rows as cells of the table: the code of a gap is none of its words."""
        words = rows[:, table.n_numeric :]
        words[words == detector._gap_codes] = np.nan
        return rows if table.columns is None else table.columns.shown(rows)

    back = np.argsort(table.order)
    found = Explanation(
        names,
        shown(table.rows.copy()),
        excess=(judged.excess + others)[:, back],
        rarity=(judged.rarity + others)[:, back],
        usual=shown(judged.usual),
        low=shown(judged.low),
        high=shown(judged.high),
        scores=-surprises.sum(axis=1),
        evidence=dict(zip(detector._rule.kinds, surprises.T, strict=True)),
    )
    return replace(found, telling=_telling(detector, found, cells, table.order)).like(X)


def excess_of_cells(detector: AnomalyDetector, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the excess of the cells of rows, (n, d), and that of numbers of rows of the fit, (m, p), as `explain` has it."""
    table, rows = detector._enter(X, warn=False)
    cells, known = detector._coded(table.rows), detector._index.find(rows)
    judged = detector._reasons.judge(cells, known, detector._seed, detector._budget)
    own = detector._reasons.judge(detector._reasons.drawn, detector._reasons.numbers, detector._seed, detector._budget)
    return judged.excess[:, np.argsort(table.order)], own.excess[:, : detector._n_numeric]


def _telling(detector: AnomalyDetector, found: Explanation, cells: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the column that tells most of each cell that an explanation names; -1 elsewhere."""
    out, column = np.full(cells.shape, -1), np.argsort(order)
    named = [(i, j) for i in range(len(found)) for j in found.leading(i, COLUMNS_A_ROW)]
    for j in sorted({j for _, j in named}):
        rows = np.array([i for i, k in named if k == j])
        told = detector._reasons.telling(cells[rows], int(column[j]))
        out[rows, j] = np.where(told >= 0, order[told], -1)
    return out
