"""Features of rows: random ones, whose inner products are a kernel, and functions around centres."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.spatial.distance import cdist, pdist

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.threads import interruptible, map_threads, slices
from isopleth.kernels import Kernel

# Largest number of arrays of random features of a block of rows that a thread holds at once.
_COPIES = 4

# Largest number of rows of a block; more do not make products faster.
_LONGEST = 4096


@dataclass(frozen=True)
class RandomFeatures:
    r"""Paired features, a cosine and a sine of each of T/2 wave vectors drawn from the spectrum of a kernel [1]_:

    .. math:: \phi(x) = \sqrt{2/T}\, (\cos \omega_1 x, \ldots, \cos \omega_{T/2} x, \sin \omega_1 x, \ldots, \sin\omega_{T/2} x),
        \qquad \mathbb{E}\, \phi(x) \cdot \phi(y) = k(x, y), \quad |\phi(x)| = 1.

    Functions :math:`f = w \cdot \phi` are a reproducing kernel Hilbert space with the norm \|w\|. Because sines and cosines come
    in pairs, it does not depend on the origin.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
    """

    frequencies: Array  # (T/2, d): wave vectors, in radians per unit of length
    budget: Budget = DEFAULT_BUDGET  # its memory is for the features of blocks of rows, in all threads together

    @classmethod
    def draw(
        cls,
        kernel: Kernel,
        n_frequencies: int,
        rng: np.random.Generator,
        budget: Budget = DEFAULT_BUDGET,
    ) -> Self:
        """Draw `n_frequencies` wave vectors of a kernel that is bound to its dimension."""
        return cls(kernel.sample_frequencies(n_frequencies, rng), budget)

    @property
    def size(self) -> int:
        """Number of features T."""
        return 2 * int(self.frequencies.shape[0])

    @property
    def noise(self) -> float:
        r"""Root mean square :math:`1/\sqrt T` of a function of norm 1 far from all rows, where phases are uniform."""
        return 1.0 / math.sqrt(self.size)

    def __call__(self, x: Array) -> Array:
        """Return features of rows `x` of shape (n, d) as an array of shape (n, T)."""
        xp = namespace(x)
        half = self.size // 2
        phases = x @ self.frequencies.T
        out = xp.empty((x.shape[0], self.size), dtype=x.dtype, device=x.device)
        out[:, :half] = xp.cos(phases)
        out[:, half:] = overwrite(xp.sin, phases)
        out *= math.sqrt(2.0) * self.noise
        return out

    def value(self, x: Array, w: Array) -> Array:
        r"""Return :math:`w\cdot\phi` at rows `x` of shape (n, d), an array of shape (n,)."""
        return self._by_blocks(x, lambda rows: self(rows) @ w)

    def gradient(self, x: Array, w: Array) -> Array:
        r"""Return :math:`\nabla (w\cdot\phi)`, an array of shape (n, d)."""
        half = self.size // 2

        def of(rows: Array) -> Array:
            phi = self(rows)
            slopes = phi[:, :half] * w[half:] - phi[:, half:] * w[:half]
            return slopes @ self.frequencies

        return self._by_blocks(x, of)

    def laplacian(self, x: Array, w: Array) -> Array:
        r"""Return :math:`\Delta (w\cdot\phi)`, an array of shape (n,)."""
        xp = namespace(x)
        squares = xp.sum(self.frequencies**2, axis=1)
        return self.value(x, -w * xp.concat([squares, squares]))

    def blocks(self, n: int, memory: float) -> list[slice]:
        """Return slices of n rows, so that the features of one slice for each thread fit in `memory` bytes; at least 16 rows."""
        each = _COPIES * 8 * self.size * self.budget.threads
        return slices(n, min(max(memory / each, 16), _LONGEST))

    def _by_blocks(self, x: Array, of: Callable[[Array], Array]) -> Array:
        """Return a function of rows, computed in blocks by threads."""
        blocks = self.blocks(x.shape[0], self.budget.memory)
        if not blocks:
            return of(x)
        workers = min(self.budget.threads, len(blocks))
        return namespace(x).concat(map_threads(lambda block: of(x[block, :]), blocks, workers))


# Factors of a product that cannot overflow, each below 1e19.
_FACTORS, _MOST = 16, 1e18


@dataclass(frozen=True, eq=False)
class CenterFeatures(ABC):
    """Functions of rows around centres, which fall with the distance from these.

    Distances are computed pair by pair: values of a row do not depend on the rows beside it, nor lose digits far from the
    origin. Where many functions share them, or there is a cheaper way, :meth:`at` takes the distances.
    """

    centers: np.ndarray  # (b, d): centres
    length_scale: float  # length scale, in the units of the centres

    metric: ClassVar[Literal["sqeuclidean", "cityblock"]]
    name: ClassVar[str]  # in sentences

    @abstractmethod
    def at(self, distances: np.ndarray) -> np.ndarray:
        """Return the functions at these distances (of :attr:`metric`) from the centres."""

    @abstractmethod
    def inner_products(self) -> np.ndarray:
        """Return the integrals of products of the functions over that of the square of one, of shape (b, b)."""

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """Return the distances of rows from the centres, of shape (n, b)."""
        operations = 10.0 * len(rows) * self.centers.size  # an estimate: one distance is computed at a time
        return np.asarray(interruptible(operations, cdist, rows, self.centers, self.metric))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the functions at rows, of shape (n, b)."""
        return self.at(self.distances(rows))


class GaussianFeatures(CenterFeatures):
    r"""Gaussians, :math:`\psi_l(x) = e^{-|x - c_l|^2 / (2 \sigma^2)}`."""

    metric, name = "sqeuclidean", "Gaussian"

    def at(self, distances: np.ndarray) -> np.ndarray:
        """Return the functions at these squared distances from the centres."""
        return np.asarray(np.exp(distances * (-0.5 / self.length_scale**2)))

    def inner_products(self) -> np.ndarray:
        r"""Return :math:`e^{-|c - c'|^2 / (4 \sigma^2)}`."""
        return np.asarray(np.exp(self.distances(self.centers) / (-4.0 * self.length_scale**2)))


class LaplaceFeatures(CenterFeatures):
    r"""Products of Laplace functions of each column, :math:`\psi_l(x) = e^{-|x - c_l|_1 / \sigma}`."""

    metric, name = "cityblock", "Laplace"

    def at(self, distances: np.ndarray) -> np.ndarray:
        """Return the functions at these city-block distances from the centres."""
        return np.asarray(np.exp(distances * (-1.0 / self.length_scale)))

    def inner_products(self) -> np.ndarray:
        r"""Return :math:`\prod_j (1 + e_j) e^{-e_j}`, :math:`e_j = |c_j - c'_j| / \sigma`."""
        centers = self.centers
        log = pdist(centers, self.metric) / -self.length_scale
        one, other = np.triu_indices(len(centers), 1)
        # A logarithm takes longer than a product; products of so few factors, each below 1e19, do not overflow.
        for start in range(0, centers.shape[1], _FACTORS):
            product = np.ones(len(log))
            for column in centers.T[start : start + _FACTORS] / self.length_scale:
                product *= 1.0 + np.minimum(np.abs(column[one] - column[other]), _MOST)
            log += np.log(product)
        out = np.eye(len(centers))
        out[one, other] = out[other, one] = np.exp(log)
        return out
