"""Random Fourier features: a kernel as an inner product of T features, so that sums over n rows cost n T operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.threads import map_threads, slices
from isopleth.kernels import Kernel

# Largest number of arrays of the features of a block of rows that a thread holds at once.
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
