"""Fitted score as a sum of terms, in frame coordinates."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from isopleth.backend import Array, Backend, namespace, to_numpy
from isopleth.errors import InputError
from isopleth.score.spaces import Space


class Term(Protocol):
    """Term of a score: a vector field."""

    def value(self, x: Array) -> Array:
        """Return the vectors at rows `x`, of shape (n, d)."""

    def divergence(self, x: Array) -> Array:
        """Return the divergence at rows `x`, of shape (n,)."""

    def energy(self, x: Array) -> Array:
        """Return a function whose gradient the vectors are, of shape (n,), or raise InputError if there is none."""


@dataclass(frozen=True)
class KernelTerm:
    r"""Sum of kernels, :math:`\sum_j K(x, c_j)\, a_j`.

    Parameters
    ----------
    space : Space
        The space of K.
    centers, coefficients : arrays of shape (m, d)
        Centres and the coefficient vector of each.
    """

    space: Space
    centers: Array
    coefficients: Array

    def value(self, x: Array) -> Array:
        """Return the vectors at rows `x`, by one product."""
        return self.space.operator(x, self.centers).matvec(self.coefficients)

    def divergence(self, x: Array) -> Array:
        """Return the divergence at rows `x`, in closed form."""
        return self.space.divergence(x, self.centers, self.coefficients)

    def energy(self, x: Array) -> Array:
        """Return the function whose gradient the sum is, in closed form."""
        return self.space.energy(x, self.centers, self.coefficients)


@dataclass(frozen=True)
class ZetaTerm:
    r"""The term :math:`a\,\zeta` of full forms.

    Parameters
    ----------
    space : Space
        The space of zeta.
    samples : array of shape (m, d)
        The samples that zeta averages over.
    weights : array of shape (m,)
        Weights with sum 1.
    factor : float
        The factor a.
    """

    space: Space
    samples: Array
    weights: Array
    factor: float

    def value(self, x: Array) -> Array:
        """Return the vectors at rows `x`, by one product."""
        return self.factor * self.space.zeta(x, self.samples, self.weights)

    def divergence(self, x: Array) -> Array:
        """Return the divergence at rows `x`, in closed form."""
        return self.factor * self.space.zeta_divergence(x, self.samples, self.weights)

    def energy(self, x: Array) -> Array:
        """Return the function whose gradient the term is, in closed form."""
        return self.factor * self.space.zeta_energy(x, self.samples, self.weights)


@dataclass(frozen=True)
class ScoreField:
    """Score as a sum of terms.

    Parameters
    ----------
    terms : tuple of Term
        Instances of KernelTerm, ZetaTerm or GaussianBase.
    """

    terms: tuple[Term, ...]

    def value(self, x: Array) -> Array:
        """Return the score at rows `x`, of shape (n, d)."""
        return sum(term.value(x) for term in self.terms)

    def divergence(self, x: Array) -> Array:
        """Return its divergence at rows `x`, of shape (n,)."""
        return sum(term.divergence(x) for term in self.terms)

    def energy(self, x: Array) -> Array:
        """Return the log density at rows `x` up to a constant, of shape (n,)."""
        return sum(term.energy(x) for term in self.terms)

    def hyvarinen_terms(self, x: Array) -> Array:
        r"""Return :math:`\operatorname{div} s + |s|^2/2` at rows `x`."""
        value = self.value(x)
        return self.divergence(x) + 0.5 * namespace(value).sum(value * value, axis=1)


@dataclass(frozen=True)
class GaussianBase:
    r"""Gaussian base measure with a shrunk covariance, :math:`\Sigma = (1 - \rho) S + \rho\, \tfrac{\operatorname{tr} S}{d} I`.

    Parameters
    ----------
    mean : array of shape (d,)
        Mean of the base measure.
    axes : array of shape (d, d)
        Eigenvectors of the covariance, as columns.
    variances : array of shape (d,)
        Its eigenvalues, all positive.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.score.field import GaussianBase
    >>> base = GaussianBase(np.zeros(2), np.eye(2), np.array([1.0, 4.0]))
    >>> base.value(np.array([[1.0, 2.0]]))
    array([[-1. , -0.5]])
    """

    mean: Array
    axes: Array
    variances: Array

    @classmethod
    def fit(cls, z: np.ndarray, weights: np.ndarray) -> Self:
        r"""Fit to rows with weights that count repetitions.

        :math:`\rho` is that of Ledoit and Wolf [1]_, but at least one over the number of rows, which keeps the covariance
        invertible if there are fewer rows than columns and is negligible otherwise.

        References
        ----------
        .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", J. Multivariate
               Analysis 88, 2004.
        """
        share = weights / weights.sum()
        count = max(float(weights.sum()), float(len(z)))
        mean = share @ z
        rows = z - mean
        # Rescale so that fourth powers do not overflow; scaling by a power of two is exact.
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

    def at(self, backend: Backend) -> GaussianBase:
        """Return the same measure with arrays on another backend."""
        return GaussianBase(backend.array(self.mean), backend.array(self.axes), backend.array(self.variances))

    def value(self, x: Array) -> Array:
        """Return its score, the gradient of its log density, at rows `x`."""
        return -(((x - self.mean) @ self.axes) / self.variances) @ self.axes.T

    def divergence(self, x: Array) -> Array:
        """Return the divergence of its score, a constant."""
        xp = namespace(x)
        return xp.full_like(x[:, 0], -float(xp.sum(1.0 / self.variances)))

    @cached_property
    def _log_peak(self) -> float:
        return -0.5 * (self.mean.shape[0] * math.log(2.0 * math.pi) + math.fsum(np.log(to_numpy(self.variances))))

    def energy(self, x: Array) -> Array:
        """Return its normalised log density."""
        z = (x - self.mean) @ self.axes
        return self._log_peak - 0.5 * namespace(x).sum(z * z / self.variances, axis=1)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent rows, of shape (n, d); only for NumPy arrays."""
        return self.mean + (rng.standard_normal((n, self.mean.shape[0])) * np.sqrt(self.variances)) @ self.axes.T


@dataclass(frozen=True)
class Normalizer:
    """Estimate of the integral of an unnormalised density, by importance sampling.

    Parameters
    ----------
    log_value : float
        Logarithm of the integral; subtract it from log densities to normalise them.
    effective_sample_size : float
        Number of draws of equal weight with the same variance; if it is small, `log_value` is unreliable.
    n_samples : int
        Number of draws.
    """

    log_value: float
    effective_sample_size: float
    n_samples: int

    @classmethod
    def of(cls, field: ScoreField, base: GaussianBase, n_samples: Any, random_state: Any, backend: Backend) -> Self:
        """Estimate the integral of exp(energy) of a field on `backend`, by draws from its base measure.

        Raises
        ------
        InputError
            If `n_samples` is not a positive whole number, or the field has no energy.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of draws, at least 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = base.sample(int(n_samples), rng)
        log_ratio = to_numpy(field.energy(backend.array(z))) - base.energy(z)
        total = float(logsumexp(log_ratio))
        effective = float(np.exp(2.0 * total - logsumexp(2.0 * log_ratio)))
        return cls(total - math.log(n_samples), effective, int(n_samples))
