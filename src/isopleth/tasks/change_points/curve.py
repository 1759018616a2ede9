"""The score curve of sliding windows: squared L2 distances by LSDD, with centres fixed for the whole series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial.distance import pdist

from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum
from isopleth.operators.threads import ONE_BLAS_THREAD

# Over the volume of the kernel; the same for every order of the rows, so that shuffled ones can be compared.
RIDGE = 0.1


def subsequences(values: np.ndarray, length: int) -> np.ndarray:
    """Rows (y(t), ..., y(t + length - 1)), of shape (T - length + 1, length d)."""
    windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=0)
    return np.ascontiguousarray(windows.transpose(0, 2, 1)).reshape(len(windows), -1)


@dataclass(frozen=True, eq=False)
class SlidingLSDD:
    r"""LSDD between neighbouring windows of rows, at centres, length scale and ridge that stay the same.

    With :math:`M = 2G - GHG` the dual estimate between windows with means :math:`m, m'` of the functions is
    :math:`(m - m')^\top M (m - m')`, a squared distance of means of :math:`M^{1/2} \psi`. Cumulative sums give all of them.
    Subtracted is what independent rows would add to it by their variance, :math:`\operatorname{tr} M (V/r + V'/r)`.

    Parameters
    ----------
    system : GaussianSystem
        The functions, for rows over the length scale.
    spectrum : PenalizedSpectrum
        Of their inner products.
    length_scale : float
        In the units of the rows.
    """

    system: GaussianSystem
    spectrum: PenalizedSpectrum
    length_scale: float

    @classmethod
    def at(cls, centers: np.ndarray, memory_limit: float, length_scale: float | None = None) -> Self:
        """At a length scale; the median distance between centres without."""
        scale = float(np.median(pdist(centers))) if length_scale is None else length_scale
        log_volume = centers.shape[1] * (0.5 * float(np.log(np.pi)) + float(np.log(scale)))
        system = GaussianSystem(centers / scale, log_volume, memory_limit)
        return cls(system, PenalizedSpectrum.of(system.gram()), scale)

    def scores(self, rows: np.ndarray, window: int) -> np.ndarray:
        """Corrected squared distances, over the volume, of the windows that begin at t and t + window, for every such t."""
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
    """Squared distances of the means over neighbouring windows, less their expectation for independent rows of one law."""
    features = features - features.mean(axis=0)  # sums of numbers around 0 keep more digits
    sums = np.concatenate([np.zeros((1, features.shape[1])), np.cumsum(features, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(np.einsum("ij,ij->i", features, features))])
    means = (sums[window:] - sums[:-window]) / window
    mean_squares = (squares[window:] - squares[:-window]) / window
    variances = (mean_squares - np.einsum("ij,ij->i", means, means)) / max(window - 1, 1)
    distances = np.sum((means[window:] - means[:-window]) ** 2, axis=1)
    return np.asarray(distances - variances[window:] - variances[:-window])


def drawn_centers(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """At most `count` distinct rows, drawn at random; two at least where there are two."""
    drawn = rows[rng.permutation(len(rows))]
    for some in (drawn[: 4 * count], drawn):  # sorting all of a long series takes long, and is seldom needed
        # In the order drawn, not sorted: a series upside down has the same centres, upside down.
        first = np.sort(np.unique(some, axis=0, return_index=True)[1])
        if len(first) > 1:
            break
    return np.asarray(some[first[: max(count, 2)]])


def along_series(scores: np.ndarray, length: int, subsequence: int, window: int) -> np.ndarray:
    """The scores at the first steps of what would be new, NaN where a window would leave the series.

    The subsequences that straddle a change belong to neither side; the middle of these is where it is.
    """
    out = np.full(length, np.nan)
    start = window + subsequence // 2
    out[start : start + len(scores)] = scores
    return out


def score_curve(
    values: np.ndarray, subsequence: int, window: int, centers: int, memory_limit: float, rng: np.random.Generator
) -> tuple[np.ndarray, SlidingLSDD]:
    """The curve of a series with no constant column, in standard deviations, and the LSDD that gave it."""
    rows = subsequences((values - values.mean(axis=0)) / values.std(axis=0), subsequence)
    sliding = SlidingLSDD.at(drawn_centers(rows, centers, rng), memory_limit)
    return along_series(sliding.scores(rows, window), len(values), subsequence, window), sliding
