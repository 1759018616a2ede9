r"""Residuals of columns given the other columns: each cell in the context of its row.

A column that moves by little of its spread may move by much of what the columns it goes with leave open. Comparisons of single
columns, and distances in units of single columns, do not show it; the residuals of a regression on the other columns do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.covariance import ledoit_wolf
from isopleth.core.laws import RankScores

# Correlations are estimated from as many rows as this number of products allows, and at least from so many.
_PRODUCTS, _FEWEST = 2e9, 1000
# Coordinates that vary by less than this share of 1 do not vary.
_NO_SPREAD = 1e-9
# Parts of consecutive rows that are left out in turn.
_PARTS = 5
# What is added to variances: columns that follow from the others exactly have residuals of variance 0.
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class RankRegression:
    r"""Regression of each column on the other ones, in normal scores of the ranks.

    With G the scores, brought to variance 1, R their correlation shrunk by the rule of Ledoit and Wolf, and
    :math:`P = R^{-1}`, the residual of a column of one coordinate is :math:`(G P)_j / \sqrt{P_{jj}}`, which has variance 1. A
    column of several coordinates B, such as words, has the residuals :math:`(G P)_B P_{BB}^{-1}`: its coordinates are no
    regressors of each other.
    """

    ranks: tuple[RankScores, ...]  # of each coordinate
    centre: np.ndarray  # (p,): means of the scores
    spread: np.ndarray  # (p,): their standard deviations; 1 for coordinates that do not vary
    columns: np.ndarray  # (p,): column that each coordinate belongs to
    correlation: np.ndarray  # (p, p): shrunk correlation of the scores
    weights: np.ndarray  # (p, p): maps standardised scores to residuals

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        columns: np.ndarray | None = None,
        share: np.ndarray | None = None,
        count: float | None = None,
    ) -> Self:
        """Regress the coordinates of `rows` (n, p), which belong to these columns (p,), on those of the other columns.

        Rows may have shares that sum to 1, of `count` rows in all. Without `columns` each coordinate is a column.
        """
        columns = np.arange(rows.shape[1]) if columns is None else columns
        share = np.full(len(rows), 1.0 / len(rows)) if share is None else share
        ranks = tuple(RankScores.of(column, share) for column in rows.T)
        scores = _scores(ranks, rows)
        centre = share @ scores
        spread = np.sqrt(share @ (scores - centre) ** 2)
        spread = np.where(spread > _NO_SPREAD, spread, 1.0)
        scores = (scores - centre) / spread
        total, most = float(len(rows) if count is None else count), max(_FEWEST, int(_PRODUCTS / len(columns) ** 2))
        if len(rows) > most:  # at equal distances in their order
            chosen = np.unique(np.linspace(0, len(rows) - 1, most).astype(int))
            part = float(share[chosen].sum())
            scores, share, total = scores[chosen], share[chosen] / part, total * part
        correlation, _ = ledoit_wolf(scores, share, total)
        correlation[np.diag_indices(len(correlation))] += _LEAST
        return cls(ranks, centre, spread, columns, correlation, _regressions(correlation, columns))

    def among(self, columns: np.ndarray) -> Self:
        """Return the residuals of some columns given each other, without the columns that are not among them."""
        kept = np.flatnonzero(np.isin(self.columns, columns))
        ranks = tuple(self.ranks[j] for j in kept)
        correlation, names = self.correlation[np.ix_(kept, kept)], self.columns[kept]
        weights = _regressions(correlation, names)
        return type(self)(ranks, self.centre[kept], self.spread[kept], names, correlation, weights)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the standardised scores of rows, of shape (n, p), of which residuals are made."""
        return np.asarray((_scores(self.ranks, rows) - self.centre) / self.spread)

    def __call__(self, rows: np.ndarray, *, one_by_one: bool = False) -> np.ndarray:
        """Return the residuals of rows, of shape (n, p), in units of their standard deviations at the rows of the fit.

        Computed `one_by_one`, the residuals of a row have the same bits whatever rows come with it.
        """
        scores = self.scores(rows)
        return np.asarray(np.matmul(scores[:, None, :], self.weights)[:, 0] if one_by_one else scores @ self.weights)


def _scores(ranks: tuple[RankScores, ...], rows: np.ndarray) -> np.ndarray:
    return np.stack([rank(column) for rank, column in zip(ranks, rows.T, strict=True)], axis=1)


def _regressions(correlation: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the matrix that maps scores to residuals of variance 1, column by column."""
    precision = np.linalg.inv(correlation)
    weights = precision / np.sqrt(np.diag(precision))
    names, counts = np.unique(columns, return_counts=True)
    for column in names[counts > 1]:
        block = np.flatnonzero(columns == column)
        covariance = np.linalg.inv(precision[np.ix_(block, block)])  # of the residuals of these coordinates
        weights[:, block] = precision[:, block] @ covariance / np.sqrt(np.diag(covariance))
    return np.asarray(weights)


def left_out_residuals(rows: np.ndarray, columns: np.ndarray | None = None) -> np.ndarray:
    """Return the residuals of rows by regressions on other rows: a fifth of consecutive rows is left out at a time.

    New rows vary more about a regression than those it was fitted to; these residuals vary as those of new rows do.
    """
    if len(rows) < 2 * _PARTS:
        return RankRegression.of(rows, columns)(rows)
    parts = np.arange(len(rows)) * _PARTS // len(rows)
    found = [RankRegression.of(rows[parts != part], columns)(rows[parts == part]) for part in range(_PARTS)]
    return np.vstack(found)
