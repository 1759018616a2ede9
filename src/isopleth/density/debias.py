r"""Points of a kernel density estimate moved against its bias, by an estimated score.

The expectation of a kernel density estimate is the density smoothed by the kernel. For a Gaussian kernel of length scale
:math:`\ell` that is :math:`p + \tfrac{\ell^2}{2} \Delta p + O(\ell^4)`. If the points move by :math:`\delta`, their
density becomes :math:`p - \operatorname{div}(p\,\delta)` to first order. With
:math:`\delta = \tfrac{\ell^2}{2} \nabla\log p` this is :math:`p - \tfrac{\ell^2}{2} \Delta p`, and the terms of order
:math:`\ell^2` cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.errors import InputError
from isopleth.core.scales import Rule, bounded, deviations
from isopleth.density.fitted import Fitted
from isopleth.density.frame_density import FrameDensity
from isopleth.density.search import Mover
from isopleth.density.solver import MixtureSolver
from isopleth.kernels import Gaussian, Kernel


@dataclass(frozen=True)
class SharpenedSolver(MixtureSolver):
    """Gaussian kernels at rows that are moved by half the squared length scale times an estimated score."""

    score: Any = None  # estimator of the score of rows over their deviations; fitted once it has seen rows

    needs_scale: ClassVar[str | None] = "debias moves rows by a score"

    def begun(self, kernel: Kernel) -> Self:
        if not isinstance(kernel, Gaussian):
            raise InputError(f"debias moves rows by the bias of the Gaussian kernel; take that in place of {kernel!r}.")
        return super().begun(kernel)

    def rules(self, kernel: Kernel) -> Mapping[str, Rule]:
        return {**super().rules(kernel), "auto": scott_of_fourth_order}

    def informed(self, rows: np.ndarray, weights: np.ndarray) -> Self:
        """Estimate the score of centred rows, with whatever search the estimator makes."""
        return replace(self, score=clone(self.score).fit(rows / deviations(rows, weights), sample_weight=weights))

    def score_of(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the score at rows, fitted to them with the parameters that were chosen for all rows."""
        score, unit = clone(self.score).set_params(**self.score.chosen(), verbose=False), deviations(rows, weights)
        return np.asarray(score.fit(rows / unit, sample_weight=weights).grad_log_density_ / unit)

    def mover(self, rows: np.ndarray, weights: np.ndarray) -> Mover | None:
        def of_fold(kept: np.ndarray) -> Any:
            score = self.score_of(rows[kept], weights[kept])  # the same at all length scales
            return lambda z, scale: bounded(moved(z, score, scale))

        return of_fold

    def fit(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        backend, rows = Backend.of(z), to_numpy(z)
        sharp = moved(rows, self.score_of(rows, to_numpy(weights)), np.ones(rows.shape[1]))
        found, _ = super().fit(kernel, backend.array(sharp), weights)
        return found, {"score": self.score}

    def fit_numpy(self, backend: Backend, kernel: Kernel, z: np.ndarray, weights: np.ndarray) -> FrameDensity:
        """Fit rows that a search has moved already."""
        return super().fit(kernel, backend.array(z), backend.array(weights))[0]


def with_moved_centers(fitted: Fitted) -> Fitted:
    """Return a fitted value whose centres are the moved rows, and which knows the others."""
    centers = fitted.leave(to_numpy(fitted.density.expansion.centers))
    return replace(fitted, centers=centers, facts={**fitted.facts, "unmoved": fitted.rows})


def moved(z: np.ndarray, score: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return rows `z` in units of the length scale, moved by half the squared length scale times the score of the data."""
    return z + 0.5 * scale * score


def scott_of_fourth_order(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sigma_j n^{-1/(d+8)}`: the rate at which a bias of order :math:`\ell^4` balances the variance."""
    count = max(float(weights.sum()), float(len(rows)))
    return np.asarray(deviations(rows, weights) * count ** (-1.0 / (rows.shape[1] + 8)))
