"""Score curve of a series: squared L2 distances between sliding windows by LSDD, with the same centres for all windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial.distance import pdist

from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum
from isopleth.operators.threads import ONE_BLAS_THREAD

# Ridge in units of the volume of the kernel. It does not depend on the rows, so that scores can be compared.
RIDGE = 0.1


def subsequences(values: np.ndarray, length: int) -> np.ndarray:
    """Return rows (y(t), ..., y(t + length - 1)), of shape (T - length + 1, length d)."""
    windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(windows.transpose(0, 2, 1)).reshape(len(windows), -1)


@dataclass(frozen=True, eq=False)
class SlidingLSDD:
    r"""LSDD between neighbouring windows of rows, with the same centres, length scale and ridge for all.

    With :math:`M = 2G - GHG` the dual estimate between windows with means :math:`m, m'` of the functions is
    :math:`(m - m')^\top M (m - m')`, a squared distance of means of :math:`M^{1/2} \psi`, which cumulative sums give for all
    windows. Its expectation for independent rows of one distribution, :math:`\operatorname{tr} M (V/r + V'/r)`, is subtracted.

    Parameters
    ----------
    system : GaussianSystem
        The Gaussian functions, for rows divided by the length scale.
    spectrum : PenalizedSpectrum
        Spectrum of their inner products.
    length_scale : float
        Length scale in the units of the rows.
    """

    system: GaussianSystem
    spectrum: PenalizedSpectrum
    length_scale: float

    @classmethod
    def at(cls, centers: np.ndarray, memory_limit: float, length_scale: float | None = None) -> Self:
        """Make an LSDD at a length scale, by default the median distance between centres over the root of 2."""
        scale = float(np.median(pdist(centers)) / np.sqrt(2.0)) if length_scale is None else length_scale
        log_volume = centers.shape[1] * (0.5 * float(np.log(np.pi)) + float(np.log(scale)))
        system = GaussianSystem(centers / scale, log_volume, memory_limit)
        return cls(system, PenalizedSpectrum.of(system.gram()), scale)

    def scores(self, rows: np.ndarray, window: int) -> np.ndarray:
        """Compute corrected squared distances, over the volume, between the windows that begin at t and t + window, for all t."""
        count = len(rows) - 2 * window + 1
        root = self.spectrum.vectors * np.sqrt(self.spectrum.dual_weights(RIDGE))
        out = np.empty(count)
        with ONE_BLAS_THREAD:
            for part in self._parts(count):
                features = self.system.matrix(rows[part.start : part.stop + 2 * window - 1] / self.length_scale) @ root
                out[part] = _contrasts(features, window)
        return out

    def _parts(self, count: int) -> Iterator[slice]:
        step = max(1, int(self.system.memory_limit / (64 * len(self.system.centers))))
        return (slice(start, min(start + step, count)) for start in range(0, count, step))


def _contrasts(features: np.ndarray, window: int) -> np.ndarray:
    """Compute squared distances between means of neighbouring windows, less their expectation without a change."""
    features = features - features.mean(axis=0)  # sums of numbers around 0 keep more digits
    sums = np.concatenate([np.zeros((1, features.shape[1])), np.cumsum(features, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(np.einsum("ij,ij->i", features, features))])
    means = (sums[window:] - sums[:-window]) / window
    mean_squares = (squares[window:] - squares[:-window]) / window
    variances = (mean_squares - np.einsum("ij,ij->i", means, means)) / max(window - 1, 1)
    distances = np.sum((means[window:] - means[:-window]) ** 2, axis=1)
    return np.asarray(distances - variances[window:] - variances[:-window])


def drawn_centers(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw at most `count` distinct rows, but at least two if there are two."""
    drawn = rows[rng.permutation(len(rows))]
    for some in (drawn[: 4 * count], drawn):  # sorting all rows of a long series takes long and is rarely needed
        # In the order drawn, not sorted: a series upside down has the same centres, upside down.
        first = np.sort(np.unique(some, axis=0, return_index=True)[1])
        if len(first) > 1:
            break
    return np.asarray(some[first[: max(count, 2)]])


def along_series(scores: np.ndarray, length: int, subsequence: int, window: int) -> np.ndarray:
    """Return the scores by the first step after a possible change, NaN where a window would leave the series.

    Subsequences that contain steps before and after a change belong to neither side; the change is at the middle of these.
    """
    out = np.full(length, np.nan)
    start = window + subsequence // 2
    out[start : start + len(scores)] = scores
    return out


def score_curve(
    values: np.ndarray, subsequence: int, window: int, centers: int, memory_limit: float, rng: np.random.Generator
) -> tuple[np.ndarray, SlidingLSDD]:
    """Compute the score curve of a series without constant columns, in standard deviations; return it with the LSDD."""
    rows = subsequences((values - values.mean(axis=0)) / values.std(axis=0), subsequence)
    sliding = SlidingLSDD.at(drawn_centers(rows, centers, rng), memory_limit)
    return along_series(sliding.scores(rows, window), len(values), subsequence, window), sliding
