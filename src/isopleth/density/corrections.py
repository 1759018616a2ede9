"""Corrections of missing numbers: regression on known cells, and calibrated intervals.

The residuals of the rows of a fit are too small where rows are few and columns many, and too large where gaps of these rows were
filled. So known cells are predicted from the other cells of their rows, by the rows of other folds. The share u of the predicted
distribution that is below the cell is uniform if the distribution is right. An interval of confidence c goes from the share
1/2 - t to 1/2 + t, where t is the quantile of |u - 1/2| over n known cells of the column at c (n + 1)/n: distributional conformal
prediction (Chernozhukov, Wuethrich and Zhu, PNAS 118, 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from isopleth.core.covariance import oracle_shrunk_correlation
from isopleth.core.rows import distinct_rows, folds_of, sample_places
from isopleth.core.threads import check_stopped
from isopleth.density.hot_deck import log_kernels

# Power of the kernels: a mean needs wider ones than a density. Gaussian kernels become 3.2 times as wide.
_POWER = 0.1
# Width of steps of equal values, in units of the kernel.
_LEAST_WIDTH = 1e-9


@dataclass(frozen=True)
class LinearTrend:
    r"""Local linear regression with the same slopes everywhere: :math:`\bar c_j + (z_o - \bar c_o) S_{oo}^{-1} S_{oj}`.

    :math:`\bar c` is the mean of the centres, weighted by kernels of the known cells o; S is the correlation matrix of all
    centres, shrunk towards the identity (Chen, Wiesel, Eldar and Hero, IEEE Transactions on Signal Processing 58, 2010). Words
    are columns of 0 and 1.
    """

    sizes: tuple[int, ...]  # number of words of each column, 0 for numbers
    mean: np.ndarray  # (e,): of the encoded centres
    deviation: np.ndarray
    centers: np.ndarray  # (m, e): encoded, at mean 0 and deviation 1
    correlation: np.ndarray  # (e, e)

    @classmethod
    def of(cls, centers: np.ndarray, sizes: tuple[int, ...], weights: np.ndarray) -> Self:
        """Fit it to centres with nonnegative weights."""
        share = weights / weights.sum()
        rows = encoded(centers, sizes)
        mean = share @ rows
        rows -= mean
        deviation = np.sqrt(share @ rows**2)
        constant = deviation <= 1e-12 * np.abs(rows).max(axis=0, initial=0.0)
        deviation[constant] = 1.0
        rows /= deviation
        S = (rows * share[:, None]).T @ rows
        np.fill_diagonal(S, 1.0)
        return cls(sizes, mean, deviation, rows, oracle_shrunk_correlation(S, 1.0 / float(share @ share)))

    def lines(self, Z: np.ndarray, observed: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the missing numbers of rows on the regression line of the observed ones, (n, g), and residuals of centres."""
        ends = np.cumsum([max(size, 1) for size in self.sizes])
        gaps = ends[missing] - 1
        ahead, residuals = np.zeros((len(Z), len(gaps))), self.centers[:, gaps]
        if len(observed):
            known = np.concatenate([np.arange(ends[j] - max(self.sizes[j], 1), ends[j]) for j in observed])
            slopes = np.linalg.solve(self.correlation[np.ix_(known, known)], self.correlation[np.ix_(known, gaps)])
            z = encoded(Z[:, observed], tuple(self.sizes[j] for j in observed))
            ahead = (z - self.mean[known]) / self.deviation[known] @ slopes
            residuals = residuals - self.centers[:, known] @ slopes
        return ahead * self.deviation[gaps] + self.mean[gaps], residuals * self.deviation[gaps]


def shares_of(terms: np.ndarray) -> np.ndarray:
    """Return the weights of the centres in a mean from kernels of the known cells, of shape (n, m)."""
    shares = terms**_POWER
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def smooth_law(values: np.ndarray, shares: np.ndarray) -> Callable[[float], float]:
    """Return the distribution function of values with weights, smoothed by normal kernels (Azzalini, Biometrika 68, 1981)."""
    deviation = math.sqrt(float(shares @ (values - shares @ values) ** 2))
    width = max(1.3 * deviation * float(shares @ shares) ** (1.0 / 3.0), _LEAST_WIDTH)
    return lambda t: float(shares @ ndtr((t - values) / width))


def encoded(Z: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return numbers as they are, and words as columns of 0 and 1."""
    parts = [np.eye(size)[Z[:, j].astype(np.intp)] if size else Z[:, [j]] for j, size in enumerate(sizes)]
    return np.concatenate(parts, axis=1)


# Most rows whose cells are predicted, and most centres that predict them.
_MOST_ROWS, _MOST_CENTERS = 200, 2000

# Shares nearer to 0 and 1 have no quantiles.
_LEAST = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Distances |u - 1/2| of held-out cells of each column, in ascending order, and the weights of their rows."""

    cells: dict[int, tuple[np.ndarray, np.ndarray]]  # by visible column

    def ends(self, column: int, confidence_level: float) -> tuple[float, float]:
        """Return the levels of the predicted distribution between which a cell lies with this probability."""
        half = 0.5 * confidence_level
        distances, weights = self.cells[column]
        if len(distances):  # the cell that is asked for counts as one more
            level = confidence_level * (1.0 + 1.0 / len(distances))
            half = float(np.interp(level, np.cumsum(weights) / weights.sum(), distances))
        half = min(half, 0.5 - _LEAST)
        return 0.5 - half, 0.5 + half

    @classmethod
    def of(cls, density: Any, share: np.ndarray) -> Calibration:
        """Predict known cells of the centres of a ColumnDensity; `share` has the weights of the centres."""
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
    density: Any,
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
