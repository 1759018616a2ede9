"""What the samples say of the functions around the centres, at one length scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.backend import Array
from isopleth.difference.cross_validation import FoldSystems
from isopleth.difference.spectrum import PenalizedSpectrum
from isopleth.difference.sums import SampleSums


@dataclass(frozen=True)
class DifferenceSystem:
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
        In each sample, divided by its size; where the centres are.
    counts : array of shape (2,)
        The sizes.
    systems : FoldSystems or None
        Of the fits without some folds, where there are folds.
    """

    log_volume: float
    spectrum: PenalizedSpectrum
    means: np.ndarray
    covariances: list[Array]
    counts: np.ndarray
    systems: FoldSystems | None

    @classmethod
    def of(cls, sums: SampleSums, penalty: str) -> Self:
        """From sums with moments; of one fold there are no fits without it."""
        log_volume, systems = sums.systems(penalty)
        moments = sums.moments or []
        return cls(
            log_volume,
            PenalizedSpectrum.of(systems.gram, systems.norm),
            np.column_stack([each.mean for each in moments]),
            [each.scatter / each.count for each in moments],
            np.array([each.count for each in moments]),
            systems if sums.folds.folds > 1 else None,
        )

    @property
    def h(self) -> np.ndarray:
        """Mean over the first sample less that over the second."""
        return np.asarray(self.means[:, 0] - self.means[:, 1])

    @property
    def noise(self) -> Array:
        """Covariance of h, without bias; there is none where a sample has one row only."""
        return sum(v / (float(n) - 1.0) for v, n in zip(self.covariances, self.counts, strict=True))
