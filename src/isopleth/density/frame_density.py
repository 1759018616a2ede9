"""Fitted densities in frame coordinates, in which the length scale is 1."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError
from isopleth.core.progress import Progress
from isopleth.core.threads import check_stopped
from isopleth.expansion import KernelExpansion
from isopleth.kernels import Gaussian, Kernel, Workspace
from isopleth.operators import Operator
from isopleth.operators.blocks import Matrix


class FrameDensity(ABC):
    """Density p in frame coordinates. Rows and results are NumPy arrays; the computation may run on another backend."""

    @property
    @abstractmethod
    def _backend(self) -> Backend:
        """The backend of the computation."""

    coefficients: Any  # of the kernels or features

    def _evaluate(self, function: Callable[[Array], Array], z: np.ndarray) -> np.ndarray:
        """Evaluate `function` at rows `z` on the backend."""
        return np.asarray(to_numpy(function(self._backend.array(z))))

    @cached_property
    @abstractmethod
    def log_normalizer(self) -> float:
        """Logarithm of the integral of the unnormalised density."""

    @abstractmethod
    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log p at rows `z` of shape (n, d), plus :attr:`log_normalizer`."""

    def log_density(self, z: np.ndarray) -> np.ndarray:
        """Return log p at rows `z` of shape (n, d)."""
        return self.log_unnormalized(z) - self.log_normalizer

    @abstractmethod
    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the unnormalised log density at rows `z`, and its gradient."""

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        """Return the gradient of log p at rows `z`, of shape (n, d)."""
        return self.evaluate(z)[1]

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\Delta \log p + |\nabla \log p|^2/2` at rows `z`; defined only where :meth:`positive` is true."""
        raise InputError(
            "mixtures over frames and random features in frames have no Hyvarinen loss; fit with frame='scale', 'whiten' or "
            "'smooth', or compare log densities with score.",
            parameter="frame",
        )

    def positive(self, z: np.ndarray) -> np.ndarray:
        """Return a mask of the rows `z` at which the density is positive beyond its numerical error."""
        return np.asarray(np.isfinite(self.log_unnormalized(z)))


@dataclass(frozen=True)
class ExpansionDensity(FrameDensity):
    r"""Density of a sum of kernels f: its square, :math:`p = f^2/\int f^2`, or itself, the mixture :math:`p = f/\int f`."""

    expansion: KernelExpansion  # function f, with positive coefficients
    squared: bool

    @property
    def power(self) -> float:
        """Power of f that the density is proportional to."""
        return 2.0 if self.squared else 1.0

    @property
    def coefficients(self) -> Array:
        """Coefficients of the kernels."""
        return self.expansion.coefficients

    @property
    def _backend(self) -> Backend:
        return Backend.of(self.expansion.centers)

    @cached_property
    def log_normalizer(self) -> float:
        """Logarithm of the integral of the power of f, in closed form."""
        if self.squared:
            return self.expansion.log_square_integral()
        return math.log(float(np.sum(to_numpy(self.expansion.coefficients)))) + self.expansion.kernel.log_integral()

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return the logarithm of the power of f."""
        return self.power * self._evaluate(self.expansion.log_abs, z)

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\nabla f/f` times the power."""
        return self.power * self._evaluate(self.expansion.grad_log_abs, z)

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithm of the power of f, and its gradient."""
        logs, slopes = self.expansion.log_and_gradient(self._backend.array(z))
        return self.power * np.asarray(to_numpy(logs)), self.power * np.asarray(to_numpy(slopes))

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\Delta f/f - |\nabla f/f|^2/2`, or :math:`2\,\Delta f/f` of a square: squared gradients cancel."""
        terms = self.power * self._evaluate(self.expansion.laplacian_over_value, z)
        if self.squared:
            return terms
        gradient = self._evaluate(self.expansion.grad_log_abs, z)
        return np.asarray(terms - 0.5 * np.sum(gradient * gradient, axis=1))

    def positive(self, z: np.ndarray) -> np.ndarray:
        """Return a mask of the rows `z` at which f > 0; a sum of kernels with negative values may be negative."""
        if self.expansion.kernel.nonnegative:
            return np.ones(len(z), dtype=bool)
        return np.asarray(self._evaluate(self.expansion.value, z) > 0.0)

    def sample(self, n_samples: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET) -> np.ndarray:
        """Draw independent rows from p, of shape (n_samples, d)."""
        if not self.squared:
            return sample_mixture(self.expansion, n_samples, rng)
        if isinstance(self.expansion.kernel, Gaussian):  # a mixture at pairs of centres, which needs no rejection
            return sample_pairs(self.expansion, n_samples, rng)
        return sample_square(self.expansion, n_samples, rng, budget)


def sample_mixture(expansion: KernelExpansion, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw centres with probabilities proportional to their coefficients, then a row from the kernel at each."""
    alpha, centers = to_numpy(expansion.coefficients), to_numpy(expansion.centers)
    chosen = rng.choice(len(alpha), size=n_samples, p=alpha / alpha.sum())
    return np.asarray(centers[chosen] + expansion.kernel.sample(n_samples, rng))


def sample_pairs(expansion: KernelExpansion, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw from :math:`f^2/Z` of a unit Gaussian kernel, a mixture of normals at the midpoints of centres: i, then j given i."""
    centers, alpha = expansion.centers, to_numpy(expansion.coefficients)
    convolution = expansion.kernel.self_convolution()
    block, budget = Matrix("pair weights", lambda kernel: convolution.psi), expansion.budget
    sums = Operator(expansion.kernel, centers, block=block, budget=budget).matvec(expansion.coefficients)
    first = alpha * to_numpy(sums)
    i = np.sort(rng.choice(len(alpha), size=n_samples, p=first / first.sum()))
    j = np.empty_like(i)
    chosen, start = np.unique(i, return_index=True)
    step = max(1, int(budget.memory / (32 * len(alpha))))
    for lo in range(0, len(chosen), step):
        part = chosen[lo : lo + step]
        some = namespace(centers).take(centers, Backend.of(centers).array(part), axis=0)
        weights = to_numpy(Operator(expansion.kernel, some, centers, block=block, budget=budget).dense())
        cumulative = np.cumsum(weights * alpha, axis=1)
        stops = np.append(start, n_samples)[lo : lo + len(part) + 1]
        for row, a, b in zip(cumulative, stops[:-1], stops[1:], strict=True):
            j[a:b] = np.searchsorted(row, rng.uniform(size=b - a) * row[-1])
    centers = to_numpy(centers)
    z = 0.5 * (centers[i] + centers[j]) + rng.normal(scale=np.sqrt(0.5), size=(n_samples, centers.shape[1]))
    return rng.permutation(z)


# Proposals made at once: their arrays fit in the cache of a core.
_PROPOSALS = 2**14

# Cells of the table from which radii are proposed, and the bound of the density over the proposal: 1 plus the error of
# linear interpolation in them.
_CELLS, _BOUND = 2**14, 1.01

# The table ends where the logarithm of the density of log r is this much below its largest value.
_DEPTH = 75.0


@dataclass(frozen=True)
class RadiusDraws:
    r"""Draws of the radius of the density :math:`\propto \varphi(r^2)^2` in d dimensions.

    :math:`t = \log r` has the density :math:`g(t) \propto e^{dt} \varphi(e^{2t})^2`. It is proposed from a linear interpolation
    of g in narrow cells and accepted with the ratio of the two, so the draws are exact up to rounding.
    """

    kernel: Kernel  # bound to d
    # t, density: (cells + 1,): ends of the cells, and g there, in units of its largest value
    t: np.ndarray
    density: np.ndarray
    log_peak: float  # logarithm of that value

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` radii."""
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (self.density[1:] + self.density[:-1]))])
        out = np.empty(0)
        while len(out) < n:
            asked = n - len(out)
            cell = np.searchsorted(cumulative, rng.uniform(size=asked) * cumulative[-1], side="right") - 1
            left, right = self.density[cell], self.density[cell + 1]
            # The density is linear in the cell: the larger of two uniform draws rises from 0, one alone is constant.
            rising = rng.uniform(size=asked) * (left + right) < np.abs(right - left)
            place = rng.uniform(size=asked)
            place = np.where(rising, np.maximum(place, rng.uniform(size=asked)), place)
            place = np.where(rising & (right < left), 1.0 - place, place)
            t = self.t[cell] + place * (self.t[1] - self.t[0])
            proposed = left + place * (right - left)
            with np.errstate(invalid="ignore"):
                wanted = np.exp(_log_radial(self.kernel, t) - self.log_peak)
            out = np.concatenate([out, np.exp(t[rng.uniform(size=asked) * proposed * _BOUND < wanted])])
        return out


def _log_radial(kernel: Kernel, t: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.asarray(kernel.bound_dim * t + 2.0 * np.log(np.abs(kernel(np.exp(2.0 * t)))))


@lru_cache(maxsize=16)
def radius_draws(kernel: Kernel) -> RadiusDraws:
    """Return the draws for a kernel, with the table of its radial density; those of the last few kernels are kept."""
    coarse = np.linspace(-60.0, 60.0, 24_001)
    values = _log_radial(kernel, coarse)
    inside = np.flatnonzero(values > values.max() - _DEPTH)
    t = np.linspace(coarse[max(0, inside[0] - 1)], coarse[min(len(coarse) - 1, inside[-1] + 1)], _CELLS + 1)
    values = _log_radial(kernel, t)
    return RadiusDraws(kernel, t, np.exp(values - values.max()), float(values.max()))


def sample_square(
    expansion: KernelExpansion, n_samples: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET
) -> np.ndarray:
    r"""Draw independent rows from the normalised square of an expansion by rejection, for every kernel whose square integrates.

    A proposal is a draw from :math:`k_i^2`, with i drawn in proportion to :math:`\alpha_i`. If no kernel is negative, it is
    accepted with probability :math:`2 k_i k_j/(k_i^2 + k_j^2)`, j being drawn like i, because
    :math:`f^2 = \sum_{ij} \alpha_i \alpha_j k_i k_j`. Otherwise the probability is
    :math:`f^2 / (\sum_i\alpha_i \sum_i \alpha_i k_i^2)`, at most 1 by Cauchy and Schwarz, which takes a sum over all centres. In
    both cases at least a share of one over the number of centres is accepted.
    """
    centers, alpha = to_numpy(expansion.centers), to_numpy(expansion.coefficients)
    share = np.cumsum(alpha) / alpha.sum()
    radii = radius_draws(expansion.kernel)
    draw = _by_pairs if expansion.kernel.nonnegative else _by_all
    found: list[np.ndarray] = []
    missing = n_samples
    accepted, proposed = 1.0, 1.0
    with Progress("samples", n_samples, budget.verbose) as tick:
        while missing > 0:
            check_stopped()
            count = min(_PROPOSALS, math.ceil(1.1 * missing * proposed / accepted) + 16)
            i = np.searchsorted(share, rng.uniform(size=count))
            direction = rng.standard_normal((count, centers.shape[1]))
            direction /= np.linalg.norm(direction, axis=1, keepdims=True)
            radius = radii.sample(count, rng)
            rows = centers[i] + radius[:, None] * direction
            j = np.searchsorted(share, rng.uniform(size=count))
            rows = rows[rng.uniform(size=count) < draw(expansion, centers, rows, radius, j)][:missing]
            found.append(rows)
            missing -= len(rows)
            accepted, proposed = accepted + len(rows), proposed + count
            tick(len(rows))
    return np.concatenate(found)


def _by_pairs(
    expansion: KernelExpansion, centers: np.ndarray, rows: np.ndarray, radius: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the probabilities of acceptance with a second centre `j`, from logarithms, which do not underflow."""
    log_first = expansion.kernel.log(radius**2)
    log_second = expansion.kernel.log(np.sum((rows - centers[j]) ** 2, axis=1))
    return np.asarray(1.0 / np.cosh(np.minimum(700.0, np.abs(log_first - log_second))))


_SQUARE = Matrix("square", lambda kernel: _Square(kernel))


@dataclass(frozen=True)
class _Square:
    """Square of a kernel as a function of squared distances, for sums over centres."""

    kernel: Kernel

    def __call__(self, s: np.ndarray, work: Workspace) -> np.ndarray:
        value = self.kernel._product(s, 0, work)
        value *= value
        return value


def _by_all(
    expansion: KernelExpansion, centers: np.ndarray, rows: np.ndarray, radius: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the probabilities of acceptance by the sums over all centres."""
    alpha = to_numpy(expansion.coefficients)
    own = KernelExpansion(expansion.kernel, centers, alpha, expansion.budget)
    squares = Operator(own.kernel, rows, centers, block=_SQUARE, budget=own.budget).matvec(alpha)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(own.value(rows) ** 2 / (alpha.sum() * squares))
