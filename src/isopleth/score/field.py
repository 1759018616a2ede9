"""A fitted score as a sum of terms, in frame coordinates."""

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
    """What a score is a sum of."""

    def value(self, x: Array) -> Array:
        """The vectors at rows `x`, of shape (n, d)."""

    def divergence(self, x: Array) -> Array:
        """Their divergence, of shape (n,)."""

    def energy(self, x: Array) -> Array:
        """A function whose gradient they are, of shape (n,); InputError where there is none."""


@dataclass(frozen=True)
class KernelTerm:
    r""":math:`\sum_j K(x, c_j)\, a_j`.

    Parameters
    ----------
    space : Space
        The space of K.
    centers, coefficients : arrays of shape (m, d)
        Centres and the vector of each.
    """

    space: Space
    centers: Array
    coefficients: Array

    def value(self, x: Array) -> Array:
        """One product."""
        return self.space.operator(x, self.centers).matvec(self.coefficients)

    def divergence(self, x: Array) -> Array:
        """In closed form."""
        return self.space.divergence(x, self.centers, self.coefficients)

    def energy(self, x: Array) -> Array:
        """In closed form."""
        return self.space.energy(x, self.centers, self.coefficients)


@dataclass(frozen=True)
class ZetaTerm:
    r""":math:`a\,\zeta`, the term of full forms.

    Parameters
    ----------
    space : Space
        The space of zeta.
    samples : array of shape (m, d)
        What it averages over.
    weights : array of shape (m,)
        Of sum 1.
    factor : float
        a.
    """

    space: Space
    samples: Array
    weights: Array
    factor: float

    def value(self, x: Array) -> Array:
        """One product."""
        return self.factor * self.space.zeta(x, self.samples, self.weights)

    def divergence(self, x: Array) -> Array:
        """In closed form."""
        return self.factor * self.space.zeta_divergence(x, self.samples, self.weights)

    def energy(self, x: Array) -> Array:
        """In closed form."""
        return self.factor * self.space.zeta_energy(x, self.samples, self.weights)


@dataclass(frozen=True)
class ScoreField:
    """A sum of terms.

    Parameters
    ----------
    terms : tuple of Term
        KernelTerm, ZetaTerm, GaussianBase.
    """

    terms: tuple[Term, ...]

    def value(self, x: Array) -> Array:
        """The score at rows `x`, of shape (n, d)."""
        return sum(term.value(x) for term in self.terms)

    def divergence(self, x: Array) -> Array:
        """Its divergence, of shape (n,)."""
        return sum(term.divergence(x) for term in self.terms)

    def energy(self, x: Array) -> Array:
        """The log density up to a constant, of shape (n,)."""
        return sum(term.energy(x) for term in self.terms)

    def hyvarinen_terms(self, x: Array) -> Array:
        r""":math:`\operatorname{div} s + |s|^2/2` at rows `x`."""
        value = self.value(x)
        return self.divergence(x) + 0.5 * namespace(value).sum(value * value, axis=1)


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

    def at(self, backend: Backend) -> GaussianBase:
        """The same, for rows that live elsewhere."""
        return GaussianBase(backend.array(self.mean), backend.array(self.axes), backend.array(self.variances))

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


@dataclass(frozen=True)
class Normalizer:
    """The integral of a density known up to a constant, by importance sampling.

    Parameters
    ----------
    log_value : float
        Its logarithm: what to subtract from log densities.
    effective_sample_size : float
        How many draws of equal weight those taken are worth; of few, `log_value` says little.
    n_samples : int
        Draws taken.
    """

    log_value: float
    effective_sample_size: float
    n_samples: int

    @classmethod
    def of(cls, field: ScoreField, base: GaussianBase, n_samples: Any, random_state: Any, backend: Backend) -> Self:
        """Of the energy of a field that lives at `backend`, by draws from its base measure.

        Raises
        ------
        InputError
            If `n_samples` is no number of draws, or the field has no energy.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise InputError(f"n_samples = {n_samples!r}: expected a whole number of draws, at least 1.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = base.sample(int(n_samples), rng)
        log_ratio = to_numpy(field.energy(backend.array(z))) - base.energy(z)
        total = float(logsumexp(log_ratio))
        effective = float(np.exp(2.0 * total - logsumexp(2.0 * log_ratio)))
        return cls(total - math.log(n_samples), effective, int(n_samples))
