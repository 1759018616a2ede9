"""Fitted score as a sum of terms, in frame coordinates, its normaliser, and the target of chains that draw from it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils import check_random_state

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import whole_number
from isopleth.frames import Frame, FrameMap
from isopleth.kernels.directed import DirectedPairs, summed
from isopleth.sampling.target import Evaluation, Target
from isopleth.score.spaces import Space

if TYPE_CHECKING:
    from isopleth.score.base import ScoreEstimator


@dataclass(frozen=True)
class KernelTerm:
    r"""Sum of kernels, :math:`\sum_j K(x, c_j)\, a_j`."""

    space: Space  # space of K
    # centers, coefficients: (m, d): centres and the coefficient vector of each
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

    def trace(self, x: np.ndarray, directions: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sums of second derivatives along directions, in closed form."""
        centers, c = to_numpy(self.centers), to_numpy(self.coefficients)
        pairs = DirectedPairs(x, centers, directions, self.space.kernel)
        return summed(pairs, None, lambda part: self.space.trace(part, c), budget.memory)


@dataclass(frozen=True)
class ZetaTerm:
    r"""The term :math:`a\,\zeta` of full forms."""

    space: Space  # space of zeta
    samples: Array  # (m, d): samples that zeta averages over
    weights: Array  # (m,): weights with sum 1
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

    def trace(self, x: np.ndarray, directions: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sums of second derivatives along directions, in closed form."""
        pairs = DirectedPairs(x, to_numpy(self.samples), directions, self.space.kernel)
        return self.factor * summed(pairs, to_numpy(self.weights), self.space.zeta_trace, budget.memory)


@dataclass(frozen=True)
class ScoreField:
    """Score as a sum of terms."""

    terms: tuple[Any, ...]  # instances of Term

    @property
    def backend(self) -> Backend:
        """The backend of the terms."""
        first = self.terms[0]
        return Backend.of(first.mean if isinstance(first, GaussianBase) else first.centers)  # the first is no zeta

    def value(self, x: Array) -> Array:
        """Return the score at rows `x`, of shape (n, d)."""
        return sum(term.value(x) for term in self.terms)

    def divergence(self, x: Array) -> Array:
        """Return its divergence at rows `x`, of shape (n,)."""
        return sum(term.divergence(x) for term in self.terms)

    def energy(self, x: Array) -> Array:
        """Return the log density at rows `x` up to a constant, of shape (n,)."""
        return sum(term.energy(x) for term in self.terms)

    def trace(self, x: np.ndarray, directions: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sums over k of v_k . s'(x) v_k for directions v_k at rows `x`, of shape (k, n, d) or (k, 1, d)."""
        return np.asarray(sum(term.trace(x, directions, budget) for term in self.terms))

    def hyvarinen_terms(self, x: Array) -> Array:
        r"""Return :math:`\operatorname{div} s + |s|^2/2` at rows `x`."""
        value = self.value(x)
        return self.divergence(x) + 0.5 * namespace(value).sum(value * value, axis=1)


@dataclass(frozen=True)
class GaussianBase:
    r"""Gaussian base measure, :math:`\Sigma = v\, ((1 - \rho) S + \rho\, \tfrac{\operatorname{tr} S}{d} I)`, S the covariance.

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

        :math:`\rho` and :math:`v \ge 1` minimise the Hyvarinen loss of each row under the fit to the others. So the shrinkage
        vanishes where the rows determine small eigenvalues, which one chosen by the squared error of the covariance buries; and v
        makes up for the inverse of S, which is too large on average, the more so the fewer rows there are for each column.
        """
        share = weights / weights.sum()
        mean = share @ z
        rows = z - mean
        # Rescale so that fourth powers do not overflow; scaling by a power of two is exact.
        unit = 2.0 ** math.floor(math.log2(max(float(np.abs(rows).max()), sys.float_info.min)))
        rows /= unit
        variances, axes = np.linalg.eigh((rows * share[:, None]).T @ rows)
        variances = np.clip(variances, 0.0, None)
        size = float(variances.mean())
        some = slice(None, None, -(-len(rows) // _SHRUNK_BY))
        rho, wider = _shrinkage(np.square(rows[some] @ axes), variances, size, share[some])
        return cls(mean, axes, unit * (unit * wider * ((1.0 - rho) * variances + rho * size)))

    def over(self, factor: float) -> GaussianBase:
        """Return the measure of the rows divided by `factor`."""
        return GaussianBase(self.mean / factor, self.axes, self.variances / factor / factor)

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

    def trace(self, x: np.ndarray, directions: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the sums of second derivatives along directions."""
        squares = np.sum((directions @ to_numpy(self.axes)) ** 2 / to_numpy(self.variances), axis=(0, 2))
        return np.broadcast_to(-squares, len(x)).copy()

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent rows, of shape (n, d); only for NumPy arrays."""
        return self.mean + (rng.standard_normal((n, self.mean.shape[0])) * np.sqrt(self.variances)) @ self.axes.T


# Most rows that are left out in turn to choose the shrinkage of a covariance.
_SHRUNK_BY = 4096

# Powers of ten of the shrinkages that are compared.
_SMALLEST, _GRID = -8.0, 17


def _shrinkage(squares: np.ndarray, variances: np.ndarray, size: float, share: np.ndarray) -> tuple[float, float]:
    """Return rho and then v of least leave-one-out Hyvarinen loss, from squared coordinates on the principal axes."""
    p = share[:, None] if np.ptp(share) > 0.0 else share[:1, None]
    rest = 1.0 - p
    if size == 0.0 or not (rest > 0.0).all():
        return 1.0, 1.0

    def parts(exponent: complex) -> tuple[complex, complex]:
        """Return the means of the squared score and of minus its divergence, for v = 1."""
        rho = 10.0**exponent
        inverse = 1.0 / ((1.0 - rho) / rest * variances + rho * size)
        change = (1.0 - rho) * p[:, 0] / rest[:, 0] ** 2
        left = 1.0 - change * np.sum(squares * inverse, axis=1)
        length = np.sum(squares * inverse**2, axis=1) / left
        trace = np.sum(inverse, axis=1) + change * length
        return complex(share @ (length / left / rest[:, 0] ** 2)), complex(share @ trace)

    def loss(exponent: complex) -> complex:
        square, trace = parts(exponent)
        return 0.5 * square - trace

    grid = np.linspace(_SMALLEST, 0.0, _GRID)

    def slope(exponent: float) -> float:
        return loss(exponent + 1e-30j).imag  # a derivative by a complex step has no rounding errors of differences

    with np.errstate(all="ignore"):
        losses = [loss(exponent).real for exponent in grid]
        best = int(np.nanargmin(losses)) if np.isfinite(losses).any() else _GRID - 1
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
        inside = slope(low) < 0.0 < slope(high)
        exponent = brentq(slope, low, high, xtol=1e-13) if inside else grid[best]
        square, trace = parts(exponent)
        return float(10.0**exponent), max(1.0, square.real / trace.real)


Term = KernelTerm | ZetaTerm | GaussianBase


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
        n_samples = whole_number("n_samples", n_samples)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        z = base.sample(int(n_samples), rng)
        log_ratio = to_numpy(field.energy(backend.array(z))) - base.energy(z)
        total = float(logsumexp(log_ratio))
        effective = float(np.exp(2.0 * total - logsumexp(2.0 * log_ratio)))
        return cls(total - math.log(n_samples), effective, int(n_samples))


@dataclass(frozen=True)
class Confinement:
    """Factor :math:`e^{-(r - R)_+^2/2}` of a density without tails, r the Mahalanobis distance and R that of the farthest row."""

    centre: np.ndarray  # (d,): mean of the rows
    precision: np.ndarray  # (d, d): inverse of their covariance
    radius: float  # distance R

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray) -> Self:
        """Return the confinement to the ellipsoid that contains `rows`."""
        share = weights / weights.sum()
        centre = share @ rows
        deviations = rows - centre
        covariance = (deviations * share[:, None]).T @ deviations
        covariance += np.diag(np.diag(covariance)) * 1e-6  # for fewer rows than columns
        precision = np.linalg.inv(covariance)
        return cls(centre, precision, float(np.sqrt(np.einsum("ij,jk,ik->i", deviations, precision, deviations).max())))

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithm of the factor and its gradient at rows `z`."""
        pull = (z - self.centre) @ self.precision
        distance = np.sqrt(np.einsum("ij,ij->i", pull, z - self.centre))
        excess = np.maximum(0.0, distance - self.radius)
        return -0.5 * excess**2, -(excess / np.maximum(distance, self.radius))[:, None] * pull


@dataclass(frozen=True)
class _Fitted(Frame):
    """Frame that is fitted already, so that a score with wider kernels has the coordinates of another."""

    map: FrameMap

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> FrameMap:
        return self.map


def score_target(model: ScoreEstimator) -> Target:
    """Return the target of a fitted score; the chains move in its frame coordinates."""
    centers = to_numpy(model._centers)
    weights = to_numpy(getattr(model, "weights_", np.empty(0)))
    if len(weights) != len(centers):  # landmarks, which count alike
        weights = np.ones(len(centers))
    confinement = Confinement.of(centers, weights) if model.base_ is None else None

    def wider(factor: float) -> Target:
        return _target(_widened(model, factor, weights), factor, centers, weights, confinement)

    found = _target(model, 1.0, centers, weights, confinement)
    return Target(found.evaluate, centers, weights, wider, model._frame.inverse)


def _target(
    model: ScoreEstimator, factor: float, centers: np.ndarray, weights: np.ndarray, confinement: Confinement | None
) -> Target:
    """Return the target of a score in the coordinates of the frame over its length scales divided by `factor`."""
    has_energy = model.space == "curl_free"
    backend = model._backend

    def evaluate(z: np.ndarray) -> Evaluation:
        own: Array = backend.array(z / factor)
        gradient = to_numpy(model._value(own)) / factor
        energy = to_numpy(model._field().energy(own)) if has_energy else None
        if confinement is not None:
            log_factor, pull = confinement.evaluate(z)
            gradient = gradient + pull
            energy = None if energy is None else energy + log_factor
        return energy, gradient

    return Target(evaluate, centers, weights)


def _widened(model: ScoreEstimator, factor: float, weights: np.ndarray) -> ScoreEstimator:
    """Return a score fitted to the same rows with wider kernels and otherwise as `model` was fitted."""
    chosen = {**model.chosen(), "length_scale": factor * to_numpy(model.length_scale_), "frame": _Fitted(model._map)}
    return clone(model).set_params(**chosen).fit(to_numpy(model.centers_), sample_weight=weights)
