"""Fitted laws, rules and bounds of a table, by which the cells of any rows are judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from isopleth.conditional.binned_law import OF_BINS
from isopleth.conditional.cell_judgement import CellJudgement
from isopleth.conditional.column_laws import ColumnLaws, steps_of_fit
from isopleth.core.budget import Budget
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.interval_laws import IntervalPoints
from isopleth.core.progress import Progress
from isopleth.tables.checks import CheckedRows, enter, used_names
from isopleth.tables.rules import Exact, Rule, is_certain
from isopleth.tables.schema import Attached
from isopleth.tables.unread import UnreadCells
from isopleth.tasks.cellwise.bounds import CellBounds, precision
from isopleth.tasks.cellwise.evidence import CellEvidence, in_encoded_order
from isopleth.tasks.cellwise.judged_rows import JudgedRows
from isopleth.tasks.cellwise.margins import worst_cells
from isopleth.tasks.cellwise.mistakes import USUAL_SURPRISE

# What checks, rules and distinct rows of a table take, in tenths of the time of all three.
_STEPS_OF_BEGIN = (1, 2, 7)
# Nats beyond its bound of a cell that a broken equation alone condemns.
_BEYOND = 0.1
# Rows from which on cells are shown when they are asked for: as objects they take five times the memory of their numbers.
_SHOWN_AT_ONCE = 20_000


@dataclass(frozen=True)
class EnteredTable:
    """Table of a fit with its rules, and the rows of its laws."""

    table: CheckedRows
    points: IntervalPoints  # that stand for cells that say a limit
    evidence: CellEvidence
    given: JudgedRows

    @classmethod
    def of(cls, estimator: Any, X: Any) -> EnteredTable:
        """Check the table X of a fit, and find rules, forms of words and distinct rows."""
        with Progress("rules and distinct rows", sum(_STEPS_OF_BEGIN), estimator.verbose) as tick:
            entered = enter(estimator, X, reset=True, min_samples=2, missing=True)
            points = IntervalPoints.of(entered.rows, entered.limits, entered.weights)
            table = replace(entered, rows=points(entered.rows, entered.limits))
            names = used_names(estimator, table.columns)
            tick(_STEPS_OF_BEGIN[0])
            evidence = CellEvidence.of(names, table)
            tick(_STEPS_OF_BEGIN[1])
            given = JudgedRows.of(table.rows, table.limits, estimator.max_samples)
            tick(_STEPS_OF_BEGIN[2])
        return cls(table, points, evidence, given)

    def bounds(self, threshold: float | str, rows: np.ndarray, excess: np.ndarray) -> CellBounds:
        """Return the bounds by some distinct encoded rows, and by the excess of the numbers of such rows."""
        given = None if threshold == "auto" else float(threshold)
        return CellBounds.of(given, self.table, self.evidence, rows, excess)


@dataclass(frozen=True)
class CellModel:
    """Model of the cells of a table: laws of its columns, rules, forms of words, and bounds."""

    laws: ColumnLaws
    evidence: CellEvidence
    bounds: CellBounds
    points: IntervalPoints
    limits: IntervalCells  # of the table of the fit

    def with_points(self, table: CheckedRows) -> CheckedRows:
        """Return a table with points in its intervals."""
        return replace(table, rows=self.points(table.rows, table.limits))

    def judged(self, table: CheckedRows) -> CellJudgement:
        """Judge rows that are not those of the fit."""
        rows = self.evidence.without_absent(table, table.rows)
        return self.laws.judge_to(empty_judgement(*rows.shape), rows, table.limits)

    def bounds_at(self, table: CheckedRows) -> np.ndarray:
        """Return the bound of each cell, (n, d), in the order of the table."""
        return self.bounds.at(table, self.evidence)

    def scores(self, table: CheckedRows, excess: np.ndarray, unread: dict[int, UnreadCells]) -> np.ndarray:
        """Return the scores of cells by the excess of encoded ones, beyond its bound for one cell of each broken equation.

        A row that breaks an equation is wrong, whatever laws and bounds that follow the tails of other columns say; and many
        rows that break it lower the evidence against each other. A bound that was given is kept.
        """
        scores, cells = self.evidence.scores(table, excess, unread), self.evidence.columns(table)
        certain = [found.rule for found in self.evidence.rules if is_certain(found.rule, cells)]
        if self.bounds.given is not None or not certain:
            return scores
        places = [np.array([self.evidence.names.index(name) for name in rule.columns]) for rule in certain]
        broken, times = [np.flatnonzero(rule.breaks(cells)) for rule in certain], np.zeros(scores.shape, dtype=np.int8)
        for rows, columns in zip(broken, places, strict=True):
            times[np.ix_(rows, columns)] += 1
        for rule, rows, columns in zip(certain, broken, places, strict=True):
            if len(rows):
                some = scores[np.ix_(rows, columns)]
                bounds = self.bounds_at(table.take(rows))[:, columns]
                surprise = self.evidence.excess(table.take(rows), excess[rows])[:, columns]
                worst, beyond = _blamed(rule, some - bounds, surprise, times[np.ix_(rows, columns)])
                scores[rows, columns[worst]] = bounds[np.arange(len(rows)), worst] + beyond
        return scores

    def quantiles(self, table: CheckedRows, judged: CellJudgement, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return what the laws say is usual in some cells, (3, k)."""
        encoded = np.argsort(table.order)[columns]  # places among the encoded columns
        if judged.columns is None:
            return np.asarray(judged.quantiles[:, rows, encoded])
        out, left = judged.quantiles[:, rows], judged.columns[rows] != encoded
        for j in np.unique(encoded[left]).tolist():
            at = np.flatnonzero(left & (encoded == j))
            out[:, at] = self.laws.quantiles(self.evidence.without_absent(table, table.rows[rows[at]]), j)
        return np.asarray(out)

    def against(self, table: CheckedRows, i: int, j: int) -> list[str]:
        """Return the names of the columns whose cells speak against a cell."""
        place, names = int(np.flatnonzero(table.order == j)[0]), self.evidence.names
        return [names[table.order[k]] for k in self.laws.against(table.rows[i], place)]


@dataclass(frozen=True)
class JudgedTable:
    """Rows, the judgement of their cells by laws, and their scores, in the order of the table."""

    table: CheckedRows
    judged: CellJudgement
    scores: np.ndarray
    unread: dict[int, UnreadCells]


def fitted_model(estimator: Any, entered: EnteredTable) -> tuple[CellModel, CellJudgement]:
    """Fit the laws of the columns, set the bounds, and return the answers for the cells of the table, too."""
    table, given, evidence = entered.table, entered.given, entered.evidence
    sizes = () if table.columns is None else tuple(len(levels) for levels in table.columns.levels)
    rows = evidence.without_absent(table, given.of_laws.rows)
    numbers = slice(0, table.n_numeric)
    judged = empty_judgement(*rows.shape)

    def choose(excess: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        # About: by the rows of the fit.
        bounds = entered.bounds(estimator.threshold, rows[given.counted], excess[:, numbers])
        return lambda places, found: _worst_of(table.take(places), found, evidence, bounds)

    steps = steps_of_fit(len(rows), rows.shape[1], estimator.max_samples, estimator.n_estimators)
    with Progress("laws of columns", steps, estimator.verbose) as tick:
        laws = ColumnLaws.fit(
            replace(given.of_laws, rows=rows),
            table.n_numeric,
            sizes,
            judged,
            growth=replace(
                OF_BINS,
                trees=estimator.n_estimators,
                seed=int(check_random_state(estimator.random_state).randint(2**31)),
                budget=Budget.of(estimator),
                tick=tick,
            ),
            computed=evidence.computed(table),
            choose=None if judged.columns is None else choose,
        )
    bounds = entered.bounds(estimator.threshold, rows[given.counted], judged.excess[given.counted, numbers])
    return CellModel(laws, evidence, bounds, entered.points, table.limits), judged.as_first(given.place)


def _blamed(rule: Rule, margin: np.ndarray, surprise: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for rows that break a rule which of its cells is blamed, and how far this one is to be beyond its bound.

    It is a cell that breaks most rules, `times`; of several the result if no cell surprises, and the worst one otherwise.
    """
    most = times == times.max(axis=1, keepdims=True)
    worst = np.where(most, margin, -np.inf).argmax(axis=1)
    if isinstance(rule, Exact) and rule.result is not None:
        result = rule.columns.index(rule.result)
        worst = np.where(most[:, result] & (surprise.max(axis=1) <= USUAL_SURPRISE), result, worst)
    own, largest = margin[np.arange(len(worst)), worst], margin.max(axis=1)
    return worst, np.where(own == largest, np.maximum(own, _BEYOND), np.maximum(largest, 0.0) + _BEYOND)


def _worst_of(table: CheckedRows, excess: np.ndarray, evidence: CellEvidence, bounds: CellBounds) -> np.ndarray:
    """Return the column of the encoded rows whose cell is the farthest beyond its bound, by the excess of cells."""
    scores = in_encoded_order(table, evidence.scores_of_read(table, excess))
    return worst_cells(scores, in_encoded_order(table, bounds.at(table, evidence)))[0]


def unread_cells(X: Any, table: CheckedRows) -> dict[int, UnreadCells]:
    """Return cells that are not of the kind of their column, by its place: they are wrong, whatever they hold.

    Words that repeat, such as "empty", stand for missing cells and are not among them.
    """
    if table.columns is None or not any(column.unread for column in table.columns.columns):
        return {}
    carried = Attached.of(X)
    odd = table.columns.encode(X).odd if carried is None else carried.odd
    places = {column.name: j for j, column in enumerate(table.columns.columns)}
    return {places[name]: cells.wrong for name, cells in odd.unread.items() if name in places}


def is_large(n: int) -> bool:
    """Return whether cells of n rows are shown when they are asked for."""
    return n > _SHOWN_AT_ONCE


def empty_judgement(n: int, d: int) -> CellJudgement:
    """Return answers that are to be written: of many rows in single precision, and what is usual for one cell of each."""
    return CellJudgement.of_many(n, d, precision(n)) if is_large(n) else CellJudgement.empty(n, d)


def digest(rows: np.ndarray) -> str:
    """Return a fingerprint of rows, by which the table of the fit is recognised."""
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
