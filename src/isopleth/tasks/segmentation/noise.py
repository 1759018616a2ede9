"""Autoregressive noise: prediction from the past within a segment, its coefficients, and what it leaves unpredicted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.signal import lfilter

# Largest reflection: nearer to 1 the variance of the noise has no digits left.
_STABLE = 0.999


@dataclass(frozen=True)
class Noise:
    r"""An autoregressive process :math:`x_t = \sum_i a_i x_{t-i} + \varepsilon_t`, given by its reflection coefficients.

    Parameters
    ----------
    reflections : tuple of float
        Partial correlations, each between -1 and 1, which makes the process stationary.
    """

    reflections: tuple[float, ...] = ()

    @property
    def order(self) -> int:
        return len(self.reflections)

    @cached_property
    def predictors(self) -> list[np.ndarray]:
        """Filters (1, -a_1, ..., -a_i) of what the last i values leave unpredicted, for i = 0 to the order."""
        filters = [np.ones(1)]
        for reflection in self.reflections:
            longer = np.append(filters[-1], 0.0)
            filters.append(longer - reflection * longer[::-1])
        return filters

    @cached_property
    def variances(self) -> np.ndarray:
        """Variances of what i values leave unpredicted, over that of the innovations."""
        remaining = np.cumprod([1.0, *(1.0 - reflection**2 for reflection in self.reflections)])
        return np.asarray(remaining / remaining[-1])

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of the covariance of a segment, in units of the innovations' variance."""
        return float(np.log(self.variances[:-1]).sum())

    def innovations(self, residuals: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """What the past within each segment leaves unpredicted, all of one variance."""
        out = np.empty(len(residuals))
        for start, end in pairwise(bounds):
            own = residuals[start:end]
            left = lfilter(self.predictors[-1], [1.0], own)
            for i in range(min(self.order, len(own))):
                left[i] = self.predictors[i] @ own[i::-1] / np.sqrt(self.variances[i])
            out[start:end] = left
        return out

    def series(self, innovations: np.ndarray) -> np.ndarray:
        """A stationary series with these innovations."""
        out = np.asarray(lfilter([1.0], self.predictors[-1], innovations))
        if self.order:  # the first values have no past: they come from the stationary law, by exact conditioning
            for i in range(min(self.order, len(out))):
                past = self.predictors[i][1:] @ out[i - 1 :: -1][:i] if i else 0.0
                out[i] = innovations[i] * np.sqrt(self.variances[i]) - past
            state = [
                -self.predictors[-1][j + 1 :] @ out[self.order - 1 :: -1][: self.order - j] for j in range(self.order)
            ]
            out[self.order :] = lfilter([1.0], self.predictors[-1], innovations[self.order :], zi=state)[0]
        return out


def fitted_noise(residuals: np.ndarray, bounds: np.ndarray, most: int) -> Noise:
    """Burg's estimate from pairs within segments, of the order up to `most` with the smallest Bayesian criterion."""
    n = len(residuals)
    position = np.arange(n) - np.repeat(bounds[:-1], np.diff(bounds))
    forward, backward = residuals.copy(), residuals.copy()
    found: list[float] = []
    criterion, best, order = 0.0, 0.0, 0
    for lag in range(1, most + 1):
        here = np.flatnonzero(position >= lag)
        ahead, behind = forward[here], backward[here - 1]
        power = ahead @ ahead + behind @ behind
        if len(here) < 4 or power <= 0.0:
            break
        reflection = float(np.clip(2.0 * (ahead @ behind) / power, -_STABLE, _STABLE))
        forward[here], backward[here] = ahead - reflection * behind, behind - reflection * ahead
        found.append(reflection)
        criterion += n * np.log1p(-(reflection**2)) + np.log(n)
        if criterion < best:
            best, order = criterion, lag
    return Noise(tuple(found[:order]))
