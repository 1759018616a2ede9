r"""Points of a kernel density estimate moved against its bias, by an estimated score.

The expectation of a kernel density estimate is the density smoothed by the kernel. For a Gaussian kernel of length scale
:math:`\ell` that is :math:`p + \tfrac{\ell^2}{2} \Delta p + O(\ell^4)`. If the points move by :math:`\delta`, their
density becomes :math:`p - \operatorname{div}(p\,\delta)` to first order. With
:math:`\delta = \tfrac{\ell^2}{2} \nabla\log p` this is :math:`p - \tfrac{\ell^2}{2} \Delta p`, and the terms of order
:math:`\ell^2` cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from isopleth.core.scales import bounded, deviations


@dataclass(frozen=True)
class Drift:
    """Score of the density of rows, estimated in units of the standard deviations of the columns."""

    score: Any  # estimator of the score, fitted to the rows over `unit`
    unit: np.ndarray  # (d,): standard deviations of the columns
    at_rows: np.ndarray  # (n, d): score at the rows

    @classmethod
    def of(cls, score: Any, rows: np.ndarray, weights: np.ndarray) -> Self:
        """Estimate the score of centred rows by a clone of an estimator, such as :class:`~isopleth.KernelScore`."""
        unit = deviations(rows, weights)
        score = clone(score).fit(rows / unit, sample_weight=weights)
        return cls(score, unit, score.grad_log_density_ / unit)

    def refitted(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the score at other rows, fitted to them with the parameters chosen for all."""
        score = clone(self.score).set_params(**self.score.chosen(), verbose=False)
        return score.fit(rows / self.unit, sample_weight=weights).grad_log_density_ / self.unit

    def mover(
        self, rows: np.ndarray, weights: np.ndarray, kept: np.ndarray
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return a function that moves the rows of the mask `kept` by the score fitted to these."""
        score = self.refitted(rows[kept], weights[kept])
        return lambda z, scale: bounded(moved(z, score, scale))


def moved(z: np.ndarray, score: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return rows `z` in units of the length scale, moved by half the squared length scale times the score of the data."""
    return z + 0.5 * scale * score


def scott_of_fourth_order(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sigma_j n^{-1/(d+8)}`: the rate at which a bias of order :math:`\ell^4` balances the variance."""
    count = max(float(weights.sum()), float(len(rows)))
    return np.asarray(deviations(rows, weights) * count ** (-1.0 / (rows.shape[1] + 8)))
