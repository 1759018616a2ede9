"""Intervals of missing numbers, calibrated by known cells that other rows predict.

The residuals of the rows of a fit are too small where rows are few and columns many, and too large where gaps of these rows were
filled. So known cells are predicted from the other cells of their rows, by the rows of other folds. The share u of the predicted
distribution that is below the cell is uniform if the distribution is right. An interval of confidence c goes from the share
1/2 - t to 1/2 + t, where t is the quantile of |u - 1/2| over n known cells of the column at c (n + 1)/n: distributional conformal
prediction (Chernozhukov, Wuethrich and Zhu, PNAS 118, 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isopleth.density.hot_deck import log_kernels
from isopleth.density.linear_trend import LinearTrend, shares_of, smooth_law
from isopleth.operators.threads import check_stopped
from isopleth.rows import distinct_rows, folds_of, sample_places

if TYPE_CHECKING:
    from isopleth.density.column_density import ColumnDensity

# Most rows whose cells are predicted, and most centres that predict them.
_MOST_ROWS, _MOST_CENTERS = 200, 2000

# Shares nearer to 0 and 1 have no quantiles.
_LEAST = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Distances |u - 1/2| of held-out cells of each column, in ascending order, and the weights of their rows."""

    cells: dict[int, tuple[np.ndarray, np.ndarray]]  # by visible column

    def ends(self, column: int, confidence_level: float) -> tuple[float, float]:
        """Return the shares of the predicted distribution between which a cell is with a probability."""
        half = 0.5 * confidence_level
        distances, weights = self.cells[column]
        if len(distances):  # the cell that is asked for counts as one more
            level = confidence_level * (1.0 + 1.0 / len(distances))
            half = float(np.interp(level, np.cumsum(weights) / weights.sum(), distances))
        half = min(half, 0.5 - _LEAST)
        return 0.5 - half, 0.5 + half

    @classmethod
    def of(cls, density: ColumnDensity, share: np.ndarray) -> Calibration:
        """Predict known cells; `share` has the weights of the centres."""
        centers, d = density.centers[:, density.columns], density.dim
        gone = np.zeros(centers.shape, dtype=bool) if density.filled is None else density.filled[:, density.columns]
        # Centres that were made of one row by filling its gaps leave together.
        merged, mass, place = distinct_rows(
            np.column_stack([np.where(gone, 0.0, centers), gone]), density.row_weights()
        )
        rows = np.where(merged[:, d:] > 0.0, np.nan, merged[:, :d])
        fold, judged = folds_of(len(rows), seed=0), sample_places(len(rows), _MOST_ROWS)
        found: dict[int, list[tuple[float, float]]] = {int(j): [] for j in np.flatnonzero(density.numeric)}
        for k in range(fold.max() + 1):
            others = np.flatnonzero((place >= 0) & (fold[place] != k))
            own = judged[fold[judged] == k]
            if len(own) and len(others) > 1:
                others = others[sample_places(len(others), _MOST_CENTERS)]
                _predict(density, rows[own], mass[own], others, share[others], found)
        return cls({j: _sorted(pairs) for j, pairs in found.items()})


def _sorted(pairs: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    distances, weights = np.array(pairs).reshape(-1, 2).T
    order = np.argsort(distances)
    return distances[order], weights[order]


def _predict(
    density: ColumnDensity,
    rows: np.ndarray,
    mass: np.ndarray,
    others: np.ndarray,
    share: np.ndarray,
    found: dict[int, list[tuple[float, float]]],
) -> None:
    """Add |u - 1/2| of each known number of rows, with the weights of the rows, as the centres `others` predict it."""
    centers = density.centers[np.ix_(others, density.columns)]
    trend = LinearTrend.of(centers, tuple(density.size(j) for j in range(density.dim)), share)
    logs = np.stack(list(log_kernels(density.kernel.take(density.columns), rows, centers)))
    with np.errstate(divide="ignore"):
        total = logs.sum(axis=0) + np.log(density.coefficients[others])
    for i, row in enumerate(rows):
        check_stopped()
        known = np.flatnonzero(~np.isnan(row))
        for j in known[density.numeric[known]]:
            line, residuals = trend.lines(row[None], known[known != j], np.array([j]))
            terms = total[i] - logs[j, i]
            law = smooth_law(residuals[:, 0], shares_of(np.exp(terms - terms.max())[None])[0])
            found[int(j)].append((abs(law(float(row[j] - line[0, 0])) - 0.5), float(mass[i])))
