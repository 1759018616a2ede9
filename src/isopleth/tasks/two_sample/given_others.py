"""Columns that differ given the other columns of their rows, whether or not they differ by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from isopleth.context.residuals import RankRegression
from isopleth.core.p_values import LEVEL, adjusted_p_values
from isopleth.tables.row_encoding import NumberEncoding
from isopleth.tasks.two_sample.permutation import (
    column_contrasts,
    moment_scores,
    shares_of_rows,
    standard_contrasts,
)

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.problem import TwoSampleProblem

# Least standard deviation of residuals in a sample.
_NO_SPREAD = 1e-9
# What a change of gaps is called.
MISSING = "missing"
# Unit of the size of a move.
OPEN = "standard deviations of such rows"


def fitted_residuals(problem: TwoSampleProblem) -> RankRegression:
    """Return the regressions of the coordinates that vary on those of other columns, over the rows of both samples."""
    units, labels = problem.units, problem.labels
    total = float(labels.rows.sum()) * max(units.group, 1)
    return RankRegression.of(problem.unit_rows, problem.columns_of_coordinates, shares_of_rows(units, labels), total)


def contrasts(problem: TwoSampleProblem, found: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
    """Return how much mean and spread of residuals of `chosen` coordinates differ under each label vector, (1 + B, k).

    Of a gap, a word, or other coordinates of two values the mean alone: such a value's square says nothing beyond it, so what
    the square of its residual says is of the regressors. A shift of a regressor would pass for a change of the gap.
    """
    out = column_contrasts(found, problem.units, problem.labels)
    two = problem.of_two_values if chosen is None else problem.of_two_values[chosen]
    if two.any():
        out[:, two] = standard_contrasts(found[:, two], problem.units, problem.labels) ** 2
    return out


@dataclass(frozen=True, eq=False)
class GivenOthers:
    """Columns given the others: p-values, and how much the columns moved of what the others leave open."""

    p_values: np.ndarray  # (n_features,): adjusted for the number of columns; 1 for columns that do not vary
    shifts: (
        np.ndarray
    )  # (n_features,): difference of means, Y less X, in standard deviations within samples; NaN for words
    texts: list[str]  # (n_features,): the change in words; empty where none is shown
    left_out: list[
        list[int]
    ]  # (n_features,): columns that are not among the others of a column, since they moved clearer

    @classmethod
    def of(cls, problem: TwoSampleProblem, least: float) -> Self:
        """Name columns one after another, the clearest first; `least` is the p-value of the whole comparison.

        A column that moved moves the residuals of the others, too. So a column that is named is no longer regressed on, and the
        others are compared without it.
        """
        columns, d = problem.columns_of_coordinates, len(problem.blocks)
        every = problem.residuals if least <= LEVEL else None
        out = cls(np.ones(d), np.full(d, np.nan), [""] * d, [[] for _ in range(d)])
        before: list[int] = []
        left, floor = np.unique(columns), least
        while every is not None and len(left) > 1 and floor <= LEVEL:
            chosen = np.flatnonzero(np.isin(columns, left))
            found = every.among(left)(problem.unit_rows[:, chosen])
            squares = contrasts(problem, found, chosen)
            if len(left) == len(np.unique(columns)) and problem.bent_residuals is not None:
                bent = contrasts(problem, problem.bent_residuals)
                clearer = bent[0] > squares[0]
                squares = np.maximum(squares, bent)
                found = np.where(clearer, problem.bent_residuals, found)
            blocks = [np.flatnonzero(columns[chosen] == column) for column in left]
            scores = moment_scores(np.stack([squares[:, block].max(axis=1) for block in blocks]))
            p_values = np.maximum(adjusted_p_values(scores.T), floor)
            first = int(np.argmax(scores[:, 0]))
            named = [first] if p_values[first] <= LEVEL else range(len(left))
            for j in named:
                place = blocks[j][int(np.argmax(squares[0, blocks[j]]))]
                out._describe(problem, int(left[j]), place - blocks[j][0], found[:, place], p_values[j])
                out.left_out[int(left[j])].extend(before)
            floor = float(p_values[first])
            before.append(int(left[first]))
            left = np.delete(left, named)
        return out

    def _describe(self, problem: TwoSampleProblem, column: int, place: int, values: np.ndarray, p_value: float) -> None:
        """Enter the change of a column by the residuals of that of its coordinates in which it is clearest."""
        self.p_values[column] = p_value
        moved, wider = _moves(problem, values)
        cell = problem.encoding.cells[column]
        if cell.kind != "categorical" and place == 0:
            self.shifts[column] = moved
        if p_value <= LEVEL:
            self.texts[column] = _in_words(self._what(problem, column, place), moved, wider)

    @staticmethod
    def _what(problem: TwoSampleProblem, column: int, place: int) -> str:
        """Return what a coordinate is about: a word, a gap, or nothing more than its column."""
        block, cell, kind = problem.blocks[column], problem.encoding.cells[column], problem.encoding.kinds[column]
        coordinate = int(np.flatnonzero(problem.varying[block])[place])
        if isinstance(cell, NumberEncoding):
            return "" if coordinate == 0 else MISSING
        if coordinate < len(cell.codes):
            return repr(kind.levels[cell.codes[coordinate]])
        return MISSING if problem.encoding.compared and coordinate == cell.width - 1 else "another word"


def _moves(problem: TwoSampleProblem, values: np.ndarray) -> tuple[float, float]:
    """Return the difference of means, Y less X, in standard deviations within samples, and the log ratio of these."""
    units = problem.units
    first = np.arange(sum(units.sizes)) < units.sizes[0]
    each = values if units.group != 1 else values[problem.places_of_units]
    inside = units.over_rows(first) if units.group != 1 else first
    x, y = each[inside], each[~inside]
    deviations = np.maximum([x.std(), y.std()], _NO_SPREAD)
    within = np.sqrt((len(x) * deviations[0] ** 2 + len(y) * deviations[1] ** 2) / len(each))
    return float((y.mean() - x.mean()) / within), float(np.log(deviations[1] / deviations[0]))


def _in_words(what: str, moved: float, wider: float) -> str:
    """Return a change in words: of the mean, or of the spread if that is clearer."""
    if what == MISSING:
        return f"{what} {'more' if moved > 0 else 'less'} often"
    if what:
        return f"{what} is more frequent" if moved > 0 else f"{what} is less frequent"
    # The log of a standard deviation has half the variance of a mean.
    if abs(moved) >= np.sqrt(2.0) * abs(wider):
        return f"{'higher' if moved > 0 else 'lower'} by {abs(moved):.2g} {OPEN}"
    return f"{'more' if wider > 0 else 'less'} spread, by a factor of {_factor_text(np.exp(wider))}"


def _factor_text(factor: float) -> str:
    """Return a factor with as many digits as tell it from 1."""
    return f"{factor:.2g}" if abs(factor - 1.0) >= 0.1 else f"{1.0 + float(f'{factor - 1.0:.1g}'):.6g}"
