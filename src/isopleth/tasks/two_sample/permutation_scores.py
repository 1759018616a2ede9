r"""Regularised distances of means under permuted labels, over scales and ridges, and their largest score.

At centres c, length scale and ridge, the paper's dual estimate of the squared L2 distance is the quadratic form
:math:`h^\top M h` of the difference of means h, :math:`M = V \operatorname{diag}((D + 2\alpha)/(D + \alpha)^2) V^\top` for
:math:`H = V \operatorname{diag}(D) V^\top`. In the coordinates :math:`V^\top h` every ridge is a row of weights for the same
squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist, pdist

from isopleth.difference.spectrum import PenalizedSpectrum
from isopleth.errors import InputError
from isopleth.operators.threads import map_threads
from isopleth.tasks.two_sample.permutation import Labels

# Ridges over the volume of the kernel: from nearly flat over all directions to the largest ones alone.
ALPHAS = np.array([0.1, 10.0, 1000.0])
# Eigenvalues of H so small, beside a ridge of 0.1, are left out.
_LOST = 1e-6
_ROWS_OF_DISTANCES = 400
_SMALLEST, _LARGEST = 0.05, 0.95
# Between the 95th percentile and the smallest scale: rows that all but agree must not pull the scales apart.
_WIDEST = 200.0
# Median absolute deviations; of a normal law that is 13 standard deviations, where nothing is.
_FARTHEST = 20.0
_LEAST_SKEW = 0.02
_NO_SPREAD = 1e-9


def frame_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of columns that vary: median, mean absolute deviation with far values at the bound, and in that unit the bound itself."""
    middle = np.median(rows, axis=0)
    deviation = np.abs(rows - middle)
    # Of the rows that deviate: where most rows are equal the median of all deviations is 0.
    far = _FARTHEST * np.array([np.median(column[column > 0.0]) for column in deviation.T])
    spread = np.minimum(deviation, far).mean(axis=0)
    return middle, spread, far / spread


def drawn_in(z: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Coordinates beyond `far` brought nearer, in their order: codes like -999999 must not set the scales for all others."""
    size = np.abs(z)
    return np.asarray(np.copysign(np.minimum(size, far + np.log1p(np.maximum(size - far, 0.0))), z))


def length_scales(rows: np.ndarray, count: int) -> np.ndarray:
    """From half the 5th percentile of the distances between distinct `rows` to twice the 95th, in equal ratios."""
    some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_OF_DISTANCES)).astype(int))
    low, high = np.quantile(pdist(rows[some]), [_SMALLEST, _LARGEST])
    return np.geomspace(max(low / 2.0, high / _WIDEST), high * 2.0, count)


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions around centres at one length scale, in the coordinates where their inner products are diagonal.

    Parameters
    ----------
    centers : array of shape (b, d)
        The centres, in the frame.
    length_scale : float
        Of the kernel, in the frame.
    values : array of shape (r,)
        Eigenvalues of H.
    vectors : array of shape (b, r)
        Eigenvectors.
    """

    centers: np.ndarray
    length_scale: float
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, centers: np.ndarray, distances: np.ndarray, length_scale: float) -> Basis:
        """From the squared distances between the centres."""
        spectrum = PenalizedSpectrum.of(np.exp(distances / (-4.0 * length_scale**2)))
        kept = spectrum.values > _LOST
        return cls(centers, length_scale, spectrum.values[kept], spectrum.vectors[:, kept])

    @property
    def weights(self) -> np.ndarray:
        """Eigenvalues of M for every ridge, of shape (k, r)."""
        alphas = ALPHAS[:, None]
        return np.asarray((self.values + 2.0 * alphas) / (self.values + alphas) ** 2)

    def kernel(self, distances: np.ndarray) -> np.ndarray:
        """Of squared distances."""
        return np.asarray(np.exp(distances * (-0.5 / self.length_scale**2)))


def bases(centers: np.ndarray, scales: np.ndarray, n_jobs: int) -> list[Basis]:
    """One a length scale."""
    distances = cdist(centers, centers, "sqeuclidean")
    return map_threads(lambda scale: Basis.of(centers, distances, float(scale)), scales, min(n_jobs, len(scales)))


def tiles(units: int, group: int, width: int, memory_limit: float, n_jobs: int) -> Iterator[slice]:
    """Parts of the units whose rows' distances from so many centres fit in a share of the memory limit."""
    step = max(1, int(memory_limit / (64.0 * n_jobs * group * width)))
    step = min(step, max(1, 20_000 // group))  # smaller ones stay in the cache and part better among threads
    return (slice(start, min(start + step, units)) for start in range(0, units, step))


def unit_features(
    found: list[Basis], rows: np.ndarray, group: int, memory_limit: float, n_jobs: int
) -> list[np.ndarray]:
    """Means of the functions over each unit of `group` consecutive rows, of shape (units, b), one array a basis."""
    units, centers = len(rows) // group, found[0].centers
    needed = 8 * (len(found) + 4) * units * len(centers)
    if needed > memory_limit:
        raise InputError(
            f"{units} units at {len(centers)} centers and {len(found)} length scales need {needed / 1e9:.2g} GB, more than "
            "memory_limit; use fewer centers or raise memory_limit."
        )
    out = [np.empty((units, len(centers))) for _ in found]

    def fill(part: slice) -> None:
        distances = cdist(rows[part.start * group : part.stop * group], centers, "sqeuclidean")
        for basis, features in zip(found, out, strict=True):
            values = basis.kernel(distances)
            features[part] = values.reshape(-1, group, len(centers)).mean(axis=1) if group > 1 else values

    map_threads(fill, tiles(units, group, len(centers), memory_limit, n_jobs), n_jobs)
    return out


def quadratic_forms(basis: Basis, features: np.ndarray, labels: Labels) -> np.ndarray:
    """h'Mh for every ridge and label vector, without the products of units with themselves, of shape (k, 1 + B).

    Such products are the same under all permutations of samples of one size only; in others they are noise.
    """
    mean = labels.counts @ features / labels.counts.sum()
    coordinates = (features - mean) @ basis.vectors
    squares = labels.contrasts(coordinates) ** 2
    own = labels.own_products(coordinates**2 @ basis.weights.T)
    return np.asarray((squares @ basis.weights.T - own).T)


def normal_scores(forms: np.ndarray) -> np.ndarray:
    """Each line of `forms` brought to the scale of a standard normal one, by a gamma law of the same first three moments.

    Null laws of quadratic forms range from one chi-squared variable to nearly normal: their tails, and not their deviations,
    are to be compared. The moments are over all label vectors, the observed one included; Wilson and Hilferty's cube root
    takes a gamma law to a normal one.
    """
    mean, spread = forms.mean(axis=1, keepdims=True), forms.std(axis=1, keepdims=True)
    moved = spread > _NO_SPREAD * np.abs(forms).max(axis=1, keepdims=True)
    z = np.where(moved, forms - mean, 0.0) / np.where(moved, spread, 1.0)
    root = 2.0 / np.maximum((z**3).mean(axis=1, keepdims=True), _LEAST_SKEW)  # of the gamma law's shape
    ratio = np.maximum(1.0 + z / root, 0.0)
    scores = 3.0 * root * (np.cbrt(ratio) - 1.0 + 1.0 / (9.0 * root**2))
    return np.where(moved, scores, 0.0)


def score_table(
    found: list[Basis], rows: np.ndarray, group: int, labels: Labels, memory_limit: float, n_jobs: int
) -> np.ndarray:
    """Normal scores for every length scale, ridge and label vector, of shape (s, k, 1 + B)."""
    features = unit_features(found, rows, group, memory_limit, n_jobs)
    pairs = list(zip(found, features, strict=True))
    return np.array(map_threads(lambda p: normal_scores(quadratic_forms(*p, labels)), pairs, min(n_jobs, len(pairs))))
