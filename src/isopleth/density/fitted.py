"""Fitted densities in frame coordinates, in which the length scale is 1."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from isopleth.backend import Array, Backend, namespace, to_numpy
from isopleth.density.square_draws import sample_square
from isopleth.expansion import KernelExpansion
from isopleth.kernels import Gaussian
from isopleth.operators import Operator
from isopleth.operators.blocks import Matrix


class FrameDensity(ABC):
    """Density p in frame coordinates.

    Rows and results are NumPy arrays; the computation may run on another backend.
    """

    @property
    @abstractmethod
    def _backend(self) -> Backend:
        """The backend of the computation."""

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
    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        """Return the gradient of log p at rows `z`, of shape (n, d)."""

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the unnormalised log density at rows `z`, and its gradient."""
        return self.log_unnormalized(z), self.grad_log_density(z)

    @abstractmethod
    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\Delta \log p + |\nabla \log p|^2/2` at rows `z`; defined only where :meth:`positive` is true."""

    @abstractmethod
    def positive(self, z: np.ndarray) -> np.ndarray:
        """Return a mask of the rows `z` at which the density is positive beyond its numerical error."""


@dataclass(frozen=True)
class ExpansionDensity(FrameDensity):
    """Density p defined by an expansion f."""

    expansion: KernelExpansion  # function f, with positive coefficients

    @property
    def _backend(self) -> Backend:
        return Backend.of(self.expansion.centers)

    def _log_and_gradient(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log |f| and its gradient at rows."""
        logs, slopes = self.expansion.log_and_gradient(self._backend.array(z))
        return np.asarray(to_numpy(logs)), np.asarray(to_numpy(slopes))

    @abstractmethod
    def sample(self, n_samples: int, rng: np.random.Generator, verbose: bool | int = False) -> np.ndarray:
        """Draw independent rows from p, of shape (n_samples, d)."""

    def positive(self, z: np.ndarray) -> np.ndarray:
        """Return a mask of the rows `z` at which f > 0; a sum of kernels with negative values may be negative."""
        if self.expansion.kernel.nonnegative:
            return np.ones(len(z), dtype=bool)
        return np.asarray(self._evaluate(self.expansion.value, z) > 0.0)


@dataclass(frozen=True)
class RootDensity(ExpansionDensity):
    r"""Density :math:`p = f^2/Z`, :math:`Z = \int f^2`."""

    @cached_property
    def log_normalizer(self) -> float:
        """Logarithm of Z, in closed form."""
        return self.expansion.log_square_integral()

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log f^2."""
        return 2.0 * self._evaluate(self.expansion.log_abs, z)

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`2\,\nabla f/f`."""
        return 2.0 * self._evaluate(self.expansion.grad_log_abs, z)

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logs, slopes = self._log_and_gradient(z)
        return 2.0 * logs, 2.0 * slopes

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`2\,\Delta f/f`, since the squared gradients cancel."""
        return 2.0 * self._evaluate(self.expansion.laplacian_over_value, z)

    def sample(self, n_samples: int, rng: np.random.Generator, verbose: bool | int = False) -> np.ndarray:
        """Draw rows by pairs of centres for the Gaussian kernel, which needs no rejection, and by rejection for all others."""
        if isinstance(self.expansion.kernel, Gaussian):
            return sample_pairs(self.expansion, n_samples, rng)
        return sample_square(self.expansion, n_samples, rng, verbose)


@dataclass(frozen=True)
class MixtureDensity(ExpansionDensity):
    r"""Density :math:`p = f/\int f`, a mixture with one kernel for each centre."""

    @cached_property
    def log_normalizer(self) -> float:
        r""":math:`\log \int f = \log \sum_i \alpha_i + \log \int k`."""
        return math.log(float(np.sum(to_numpy(self.expansion.coefficients)))) + self.expansion.kernel.log_integral()

    def log_unnormalized(self, z: np.ndarray) -> np.ndarray:
        """Return log f."""
        return self._evaluate(self.expansion.log_abs, z)

    def grad_log_density(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\nabla f/f`."""
        return self._evaluate(self.expansion.grad_log_abs, z)

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._log_and_gradient(z)

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        r"""Return :math:`\Delta f/f - |\nabla f/f|^2/2`."""
        gradient = self._evaluate(self.expansion.grad_log_abs, z)
        return np.asarray(
            self._evaluate(self.expansion.laplacian_over_value, z) - 0.5 * np.sum(gradient * gradient, axis=1)
        )

    def sample(self, n_samples: int, rng: np.random.Generator, verbose: bool | int = False) -> np.ndarray:
        """Draw centres with probabilities proportional to their coefficients, then a row from the kernel at each."""
        alpha, centers = to_numpy(self.expansion.coefficients), to_numpy(self.expansion.centers)
        chosen = rng.choice(len(alpha), size=n_samples, p=alpha / alpha.sum())
        return np.asarray(centers[chosen] + self.expansion.kernel.sample(n_samples, rng))


def sample_pairs(expansion: KernelExpansion, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    r"""Draw rows from :math:`f^2/Z` for a Gaussian kernel at unit length scale.

    :math:`f^2` is a mixture over pairs of centres with weights :math:`\alpha_i \alpha_j e^{-|c_i - c_j|^2/4}`, the midpoints as
    means, and variance 1/2. So i is drawn from the weights summed over j, then j given i, then the Gaussian.
    """
    centers, alpha = expansion.centers, to_numpy(expansion.coefficients)
    convolution = expansion.kernel.self_convolution()
    block = Matrix("pair weights", lambda kernel: convolution.psi)
    budget: dict[str, Any] = {"memory_limit": expansion.memory_limit, "n_jobs": expansion.n_jobs}
    sums = Operator(expansion.kernel, centers, block=block, **budget).matvec(expansion.coefficients)
    first = alpha * to_numpy(sums)
    i = np.sort(rng.choice(len(alpha), size=n_samples, p=first / first.sum()))
    j = np.empty_like(i)
    chosen, start = np.unique(i, return_index=True)
    step = max(1, int(expansion.memory_limit / (32 * len(alpha))))
    for lo in range(0, len(chosen), step):
        part = chosen[lo : lo + step]
        some = namespace(centers).take(centers, Backend.of(centers).array(part), axis=0)
        weights = to_numpy(Operator(expansion.kernel, some, centers, block=block, **budget).dense())
        cumulative = np.cumsum(weights * alpha, axis=1)
        stops = np.append(start, n_samples)[lo : lo + len(part) + 1]
        for row, a, b in zip(cumulative, stops[:-1], stops[1:], strict=True):
            j[a:b] = np.searchsorted(row, rng.uniform(size=b - a) * row[-1])
    centers = to_numpy(centers)
    z = 0.5 * (centers[i] + centers[j]) + rng.normal(scale=np.sqrt(0.5), size=(n_samples, centers.shape[1]))
    return rng.permutation(z)
