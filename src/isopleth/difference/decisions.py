"""What a density difference settles by some rows before all of them are summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.backend import NUMPY, Backend
from isopleth.difference.gaussian_system import GaussianSystem, system_of
from isopleth.difference.search import CrossFitted
from isopleth.difference.statistics import DifferenceStatistics
from isopleth.frame import Frame


@dataclass(frozen=True, eq=False)
class Decisions:
    """Where the functions lie, and what is left to choose.

    Parameters
    ----------
    frame : Frame
        At unit scale.
    centers : array of shape (b, n_features)
        In the units of the data.
    drawn : bool
        Whether the centres are rows.
    scales : array of shape (k, d)
        Candidates for the length scale.
    alphas : array of shape (a,)
        Candidates for the ridge.
    spread : array of shape (d,)
        Standard deviations within the samples: an interval takes no larger length scale.
    searched : bool
        Whether there is more than one candidate.
    seed : int
        Of the folds.
    penalty : {"l2", "rkhs"}
        What the ridge multiplies.
    """

    frame: Frame
    centers: np.ndarray
    drawn: bool
    scales: np.ndarray
    alphas: np.ndarray
    spread: np.ndarray
    searched: bool
    seed: int
    penalty: str

    def scale(self, found: CrossFitted | None) -> np.ndarray:
        """The length scale of the fit."""
        return self.scales[0] if found is None else found.path.best_length_scale

    def near(self, found: CrossFitted | None) -> np.ndarray:
        """The length scale of intervals.

        A search that finds no difference may end at one that would resolve none, or at a tiny one by luck.
        """
        return np.fmin(self.scales[0] if found is None else found.path.steady_length_scale, self.spread)

    def system(
        self, scale: np.ndarray, memory_limit: float, n_jobs: int | None, backend: Backend = NUMPY
    ) -> GaussianSystem:
        """The functions at a length scale."""
        return system_of(self.frame, scale, self.centers, memory_limit, n_jobs, backend)

    def statistics(
        self,
        folds: int,
        memory_limit: float,
        n_jobs: int | None,
        scales: np.ndarray | None = None,
        moments: bool = True,
    ) -> DifferenceStatistics:
        """Sums over no rows, at all length scales that a fit may want where none are named."""
        if scales is None:
            scales = np.unique(np.concatenate([self.scales, np.fmin(self.scales, self.spread)]), axis=0)
        return DifferenceStatistics.empty(
            self.frame,
            self.centers,
            scales,
            folds=folds,
            seed=self.seed,
            drawn=self.drawn,
            moments=moments,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
        )
