"""Missing numbers from the centres of a density, corrected by linear regression on the known cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

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
        return cls(sizes, mean, deviation, rows, _shrunk(S, 1.0 / float(share @ share)))

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


def _shrunk(S: np.ndarray, n: float) -> np.ndarray:
    """Return the oracle approximating shrinkage of a correlation matrix of so many rows."""
    p = len(S)
    squares = float((S * S).sum())
    excess = (n + 1.0 - 2.0 / p) * (squares - p)
    shrinkage = min(1.0, ((1.0 - 2.0 / p) * squares + p * p) / excess) if excess > 0.0 else 1.0
    return np.asarray((1.0 - shrinkage) * S + shrinkage * np.eye(p))
