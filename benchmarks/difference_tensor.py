"""Curl-free products as in public code: an array of all differences of rows, of shape (n, m, d), with the IMQ kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

# Rows of a chunk: the fastest of 1 to 128 at n = 2048, d = 128.
CHUNK = 8


def tensors(n: int, m: int, d: int, count: int) -> float:
    """Return the bytes of this number of float64 arrays of all differences."""
    return 8.0 * count * n * m * d


@dataclass(frozen=True)
class Differences:
    """All differences of rows, and minus 2 phi', minus 4 phi'' of each pair.

    The curl-free kernel is minus 2 phi' I - 4 phi'' u u^T, for differences u.
    """

    u: np.ndarray
    slope: np.ndarray
    bend: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Self:
        """Compute them at unit length scale."""
        u = x[:, None, :] - y[None, :, :]
        q = 1.0 / (1.0 + np.sum(u * u, axis=2))
        return cls(u, q**1.5, -3.0 * q**2.5)

    def product(self, v: np.ndarray) -> np.ndarray:
        """Multiply term by term: an array of every pair's vector, then its sum."""
        weights = self.bend * np.sum(self.u * v, axis=2)
        return np.asarray(np.sum(weights[:, :, None] * self.u + self.slope[:, :, None] * v, axis=1))

    def contracted(self, v: np.ndarray) -> np.ndarray:
        """Multiply by contractions that need no further array of that shape."""
        weights = self.bend * np.einsum("ijk,jk->ij", self.u, v)
        return np.asarray(np.einsum("ij,ijk->ik", weights, self.u) + self.slope @ v)


def whole(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the product, with all differences at once."""
    return Differences.of(x, x).product(v)


def in_chunks(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the product, computed in chunks of rows."""
    parts = [Differences.of(x[i : i + CHUNK], x).product(v) for i in range(0, len(x), CHUNK)]
    return np.concatenate(parts)


def row_by_row(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the product, computed one row at a time by contractions."""
    out = np.empty_like(x)
    for i in range(len(x)):
        u = x[i] - x
        q = 1.0 / (1.0 + np.einsum("jk,jk->j", u, u))
        weights = -3.0 * q**2.5 * np.einsum("jk,jk->j", u, v)
        out[i] = weights @ u + q**1.5 @ v
    return out


def zeta(x: np.ndarray) -> np.ndarray:
    """Return the right-hand side of a score: mean of 4 ((d + 2) phi'' + 2 s phi''') u over the rows."""
    out = np.empty_like(x)
    for i in range(len(x)):
        u = x[i] - x
        s = np.sum(u * u, axis=1)
        q = 1.0 / (1.0 + s)
        out[i] = (3.0 * q**2.5 * (x.shape[1] + 2.0 - 5.0 * s * q)) @ u / len(x)
    return out


def conjugate_gradients(x: np.ndarray, alpha: float, tol: float) -> np.ndarray:
    """Return the Tikhonov score at its samples, (K/n + alpha) s = -zeta, without a preconditioner."""
    differences, b = Differences.of(x, x), -zeta(x)
    s, residual = np.zeros_like(b), b.copy()
    direction, square = residual.copy(), float(np.sum(b * b))
    goal = tol**2 * square
    while square > goal:
        image = differences.contracted(direction) / len(x) + alpha * direction
        step = square / float(np.sum(direction * image))
        s += step * direction
        residual -= step * image
        square, last = float(np.sum(residual * residual)), square
        direction = residual + square / last * direction
    return s
