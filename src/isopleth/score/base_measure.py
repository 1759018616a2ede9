"""The Gaussian that a score may be fitted on top of, so that its density has tails."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from isopleth._namespace import Array, Home, namespace, to_numpy


@dataclass(frozen=True)
class GaussianBase:
    r"""A Gaussian with a shrunk covariance, :math:`\Sigma = (1 - \rho) S + \rho\, \tfrac{\operatorname{tr} S}{d} I`.

    Parameters
    ----------
    mean : array of shape (d,)
        Its mean.
    axes : array of shape (d, d)
        Eigenvectors of the covariance, as columns.
    variances : array of shape (d,)
        Its eigenvalues, all positive.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score.base_measure import GaussianBase
    >>> base = GaussianBase(np.zeros(2), np.eye(2), np.array([1.0, 4.0]))
    >>> base.value(np.array([[1.0, 2.0]]))
    array([[-1. , -0.5]])
    """

    mean: Array
    axes: Array
    variances: Array

    @classmethod
    def fit(cls, z: np.ndarray, weights: np.ndarray) -> Self:
        r"""Of rows with weights, which count repetitions.

        :math:`\rho` is that of Ledoit and Wolf [1]_, at least one over the number of rows: for rows in general position that is
        nothing, and with fewer rows than columns it keeps the covariance invertible.

        References
        ----------
        .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", J. Multivariate
               Analysis 88, 2004.
        """
        share = weights / weights.sum()
        count = max(float(weights.sum()), float(len(z)))
        mean = share @ z
        rows = z - mean
        # In a unit in which fourth powers do not overflow; a power of two changes no digit.
        unit = 2.0 ** math.floor(math.log2(max(float(np.abs(rows).max()), sys.float_info.min)))
        rows /= unit
        variances, axes = np.linalg.eigh((rows * share[:, None]).T @ rows)
        size = float(variances.mean())
        spread = float(np.sum((variances - size) ** 2))
        noise = (float(share @ np.sum(rows * rows, axis=1) ** 2) - float(np.sum(variances**2))) / count
        shrinkage = min(1.0, noise / spread) if spread > 0.0 else 1.0
        shrinkage = max(shrinkage, 1.0 / count)
        shrunk = (1.0 - shrinkage) * np.clip(variances, 0.0, None) + shrinkage * size
        return cls(mean, axes, unit * (unit * shrunk))

    def at(self, home: Home) -> GaussianBase:
        """The same, for rows that live elsewhere."""
        return GaussianBase(home.send(self.mean), home.send(self.axes), home.send(self.variances))

    def value(self, x: Array) -> Array:
        """Its score, the gradient of its log density, at rows `x`."""
        return -(((x - self.mean) @ self.axes) / self.variances) @ self.axes.T

    def divergence(self, x: Array) -> Array:
        """Of its score: a constant."""
        xp = namespace(x)
        return xp.full_like(x[:, 0], -float(xp.sum(1.0 / self.variances)))

    @cached_property
    def _log_peak(self) -> float:
        return -0.5 * (self.mean.shape[0] * math.log(2.0 * math.pi) + math.fsum(np.log(to_numpy(self.variances))))

    def energy(self, x: Array) -> Array:
        """Its log density, normalised."""
        z = (x - self.mean) @ self.axes
        return self._log_peak - 0.5 * namespace(x).sum(z * z / self.variances, axis=1)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent rows of it, of shape (n, d), for arrays of NumPy."""
        return self.mean + (rng.standard_normal((n, self.mean.shape[0])) * np.sqrt(self.variances)) @ self.axes.T
