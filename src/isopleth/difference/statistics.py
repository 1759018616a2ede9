"""What the samples say of the functions around the centres, at one length scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.difference.cross_validation import FoldSums, FoldSystems, Split
from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.difference.samples import TwoSamples
from isopleth.difference.spectrum import PenalizedSpectrum


@dataclass(frozen=True)
class SampleStatistics:
    """Means and covariances of the functions in both samples, and the systems they go into.

    Parameters
    ----------
    log_volume : float
        Of the length scale.
    spectrum : PenalizedSpectrum
        Of the inner products H.
    means : array of shape (b, 2)
        Over each sample.
    covariances : list of two arrays of shape (b, b)
        In each sample, divided by its size.
    counts : array of shape (2,)
        The sizes.
    systems : FoldSystems or None
        Of the fits without some folds, where there are folds.
    """

    log_volume: float
    spectrum: PenalizedSpectrum
    means: np.ndarray
    covariances: list[np.ndarray]
    counts: np.ndarray
    systems: FoldSystems | None

    @classmethod
    def of(cls, system: GaussianSystem, z: np.ndarray, samples: TwoSamples, split: Split | None, penalty: str) -> Self:
        """One pass over the rows for each of them."""
        gram, norm = system.gram(), system.norm(penalty)
        means = system.sums(z, samples.contrast)
        return cls(
            system.log_volume,
            PenalizedSpectrum.of(gram, norm),
            means,
            [system.covariance(z, samples.weights[:, s], means[:, s]) for s in range(2)],
            samples.counts,
            None if split is None else FoldSystems(FoldSums.of(system, z, split), gram, norm),
        )

    @property
    def h(self) -> np.ndarray:
        """Mean over the first sample less that over the second."""
        return np.asarray(self.means[:, 0] - self.means[:, 1])

    @property
    def noise(self) -> np.ndarray:
        """Covariance of h, without bias; there is none where a sample has one row only."""
        return np.asarray(sum(v / (n - 1.0) for v, n in zip(self.covariances, self.counts, strict=True)))
