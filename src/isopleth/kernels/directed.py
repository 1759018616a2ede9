"""Sums of first and second derivatives of a kernel along directions, over pairs of rows and points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isopleth.core.threads import slices
from isopleth.kernels.base import Kernel

# Arrays over pairs that exist at once.
_ARRAYS = 12


@dataclass(frozen=True)
class DirectedPairs:
    """Pairs of rows x and points y with u = x - y, and directions v_k at each row."""

    # x, y: (n, d) and (m, d): rows and points
    x: np.ndarray
    y: np.ndarray
    directions: np.ndarray  # (k, n, d) or (k, 1, d): directions at each row, or the same at all rows
    kernel: Kernel  # kernel, of which derivatives in s = |u|^2 are taken

    @cached_property
    def s(self) -> np.ndarray:
        """Squared distances, of shape (n, m)."""
        squares = np.sum(self.x**2, axis=1)[:, None] + np.sum(self.y**2, axis=1) - 2.0 * (self.x @ self.y.T)
        return np.maximum(squares, 0.0)

    def _along(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield u . v_k of all pairs, and v_k."""
        for v in self.directions:
            yield np.sum(self.x * v, axis=1)[:, None] - v @ self.y.T, v

    @cached_property
    def squares(self) -> np.ndarray:
        """The sums over k of (u . v_k)^2 over s, of shape (n, m); 0 where s is 0."""
        total = sum(along**2 for along, _ in self._along())
        return np.divide(total, self.s, out=np.zeros_like(self.s), where=self.s > 0.0)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The sums over k of |v_k|^2, of shape (n, 1) or (1, 1)."""
        return np.sum(self.directions**2, axis=(0, 2))[:, None]

    def mixed(self, c: np.ndarray) -> np.ndarray:
        """Return the sums over k of (u . v_k)(c . v_k) for a vector c at each point, of shape (n, m)."""
        return np.asarray(sum(along * (v @ c.T) for along, v in self._along()))

    def inner(self, c: np.ndarray) -> np.ndarray:
        """Return u . c for a vector c at each point."""
        return np.asarray(self.x @ c.T - np.sum(self.y * c, axis=1))

    @cached_property
    def first(self) -> np.ndarray:
        """The first derivative of the kernel."""
        return self.derivative(1)

    def derivative(self, order: int) -> np.ndarray:
        """Return a derivative of the kernel, times a power of s as :meth:`Kernel.derivative` has it."""
        return np.asarray(self.kernel.derivative(self.s, order))

    def second(self) -> np.ndarray:
        """Return the sums over k of second derivatives of the kernel along v_k."""
        return 2.0 * self.first * self.sizes + 4.0 * self.derivative(2) * self.squares

    @cached_property
    def bend(self) -> np.ndarray:
        """The second derivative of the kernel itself; its limit where s is 0, or 0 if this is infinite."""
        limit = self.kernel.second_at_zero()
        at_zero = np.full_like(self.s, limit if np.isfinite(limit) else 0.0)
        return np.divide(self.derivative(2), self.s, out=at_zero, where=self.s > 0.0)


def summed(
    pairs: DirectedPairs, weights: np.ndarray | None, function: Callable[[DirectedPairs], np.ndarray], limit: float
) -> np.ndarray:
    """Return the sums over points of a function of the pairs, times weights of the points, by as many rows as memory holds."""
    out = np.empty(len(pairs.x))
    for rows in slices(len(out), limit // (8 * _ARRAYS * max(1, len(pairs.y)))):
        directions = pairs.directions if pairs.directions.shape[1] == 1 else pairs.directions[:, rows]
        terms = function(DirectedPairs(pairs.x[rows], pairs.y, directions, pairs.kernel))
        out[rows] = terms.sum(axis=1) if weights is None else terms @ weights
    return out
