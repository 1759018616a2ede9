"""Mistakes in the rows of a table by the model of its cells, the ways to keep an equation among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isopleth.core.threads import slices
from isopleth.tables.checks import CheckedRows
from isopleth.tasks.cellwise.evidence import CellEvidence, in_encoded_order
from isopleth.tasks.cellwise.margins import worst_cells
from isopleth.tasks.cellwise.mistakes import FoundMistakes, Mistake, found_mistakes
from isopleth.tasks.cellwise.model import CellModel, JudgedTable

# Cells of changed rows that are held at once, about.
_CELLS = 2**21


def mistakes_in(model: CellModel, rows: JudgedTable, known: np.ndarray) -> FoundMistakes:
    """Return the mistakes that explain rows; `known` is a mask of those that the laws are fitted to."""
    table = rows.table
    kinds = None if table.columns is None else [table.columns.columns[place].kind for place in table.order]
    numbers = [
        k for k in range(table.n_numeric) if k not in table.limits.columns and (kinds is None or kinds[k] == "numeric")
    ]
    schema = [] if table.columns is None else [table.columns.columns[place] for place in table.order]
    # Where a time has a zone its digits are not those of the seconds.
    dates = {
        k: column.origin
        for k, column in enumerate(schema)
        if column.kind == "time" and column.zone is None and not column.clock
    }
    judge = _Judge(model, table)
    # What broken equations add to bring a cell beyond its bound is no evidence for one mistake more than for another.
    found = in_encoded_order(table, model.evidence.scores(table, rows.judged.excess, rows.unread))

    def standing(at: np.ndarray, asked: np.ndarray) -> np.ndarray:
        out, own = np.where(np.isnan(table.rows[at]), np.nan, found[at]), known[at]
        if own.any():  # the scores of all other rows are by the same laws
            known_rows, (row, column) = table.rows[at[own]], np.nonzero(asked[own])
            out[np.flatnonzero(own)[row], column] = judge(lambda places: known_rows[places], at[own], row, column)[0]
        return out

    bounds, solved = in_encoded_order(table, model.bounds_at(table)), _solved(model.evidence, table)
    condemned = worst_cells(in_encoded_order(table, rows.scores), bounds)[1] > 0.0
    reads = _reads(model, table)
    return found_mistakes(table.rows, found, bounds, numbers, judge, standing, reads, solved, dates, condemned)


def _reads(model: CellModel, table: CheckedRows) -> np.ndarray:
    """Return a mask of the encoded cells, in the second column, whose scores go by those in the first one: by laws and rules."""
    out = model.laws.reads()
    for found in model.evidence.rules:
        places = [model.evidence.place(table, name) for name in found.rule.columns]
        out[np.ix_(places, places)] = True
    return out


@dataclass(frozen=True)
class _Judge:
    """Scores and bounds of changed rows of a table, by laws that know them, encoded."""

    model: CellModel
    table: CheckedRows

    def __call__(
        self, rows: Callable[[np.ndarray], np.ndarray], at: np.ndarray, row: np.ndarray, column: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        model, table = self.model, self.table
        excess = model.laws.excess(
            lambda places: model.evidence.without_absent(table, rows(places)), table.limits, at, row, column
        )
        scores, bounds = np.empty(len(row)), np.empty(len(row))
        order = np.argsort(row, kind="stable")
        for part in slices(len(at), _CELLS / table.rows.shape[1]):
            first, last = np.searchsorted(row[order], (part.start, part.stop))
            here = order[first:last]
            places, cells = np.arange(part.start, part.stop), (row[here] - part.start, column[here])
            some = replace(table, rows=rows(places), weights=np.ones(len(places)), limits=table.limits.take(at[part]))
            asked = np.full(some.rows.shape, np.nan)
            asked[cells] = excess[here]
            scores[here] = in_encoded_order(table, model.evidence.scores(some, asked, {}))[cells]
            bounds[here] = in_encoded_order(table, model.bounds_at(some))[cells]
        return scores, bounds


def _solved(evidence: CellEvidence, table: CheckedRows) -> list[Mistake]:
    """Return for each broken equation the ways to keep it: one cell is what the others say."""
    cells, found = evidence.columns(table), []
    for rule in evidence.equations:
        broken = np.flatnonzero(rule.breaks(cells))
        for name in rule.columns:
            k, said = evidence.place(table, name), evidence.solved_for(rule, name, cells)
            known = broken[np.isfinite(said[broken])]
            found += [Mistake(int(i), (k,), (float(said[i]),), f"not {rule}", computed=True) for i in known]
    return found
