r"""Sums over samples x of K(z, x) K(x, z') for pairs of landmarks z, z' of a Nystrom form.

A curl-free block is :math:`K(z, x) = a\,I + b\,u u^\top` with :math:`u = z - x`, :math:`a = -2\varphi'`,
:math:`b = -4\varphi''`. As matrices of all (landmark, coordinate) against all (sample, coordinate), the product costs
:math:`m^2 d^3` a sample. But with :math:`\delta = z' - z`, :math:`u' = u + \delta` and
:math:`u\cdot u' = (s + s' - |\delta|^2)/2` a product of two blocks is

.. math:: (p\,b' + b\,p' - \tfrac12|\delta|^2\,b\,b')\,u u^\top + (p\,b' + b\,r' - \tfrac12|\delta|^2\,b\,b')\,u \delta^\top
          + a\,b'\,(\delta u^\top + \delta\delta^\top) + a\,a' I,\qquad r = b s/2,\quad p = a + r,

in which every term is a function of (z, x) times a function of (z', x). So the sums are products of matrices of landmarks
against samples, half of which follow by symmetry. The cost is :math:`\tfrac34 m^2 d^2` for each sample. All terms are of the
size of the kernel itself, so there is no cancellation wherever the data lie.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.arrays import Array, host_view, namespace
from isopleth.core.budget import Budget
from isopleth.core.threads import check_stopped, map_threads, slices
from isopleth.kernels import Kernel, Workspace
from isopleth.score.spaces import CurlFree, Space

# Samples in one block, and landmarks in one block on the left side of products: enough for their full speed.
CHUNK, LANDMARKS = 4096, 16

# Matrices of all landmarks against one block of samples that are held at once, including the scratch of a kernel.
PROFILES = 12


def _components(space: Space, columns: int) -> int:
    return columns if isinstance(space, CurlFree) else 1


def empty_squares(space: Space, z: Array) -> Array:
    """Return zeros of shape (c, c, m, m) for m landmarks; c is 1 in the diagonal space and the number of columns otherwise."""
    (m, d), xp = z.shape, namespace(z)
    components = _components(space, d)
    return xp.zeros((components, components, m, m), dtype=xp.float64, device=z.device)


def bytes_of_squares(space: Space, rows: int, columns: int) -> int:
    """Return the bytes of the sums for this number of landmarks and columns."""
    return 8 * (rows * _components(space, columns)) ** 2


def add_squares(space: Space, z: Array, x: Array, w: Array, out: Array, budget: Budget) -> None:
    """Add the sums over samples `x` with weights `w` to `out`, at least for pairs in which z' is not before z."""
    z, x, w, out = (host_view(a) for a in (z, x, w, out))
    if isinstance(space, CurlFree) and isinstance(z, np.ndarray):
        _add_by_profiles(space, z, x, w, out, budget)
    else:
        _add_by_matrices(space, z, x, w, out, budget)


def _add_by_matrices(space: Space, z: Array, x: Array, w: Array, out: Array, budget: Budget) -> None:
    """Add by products of whole blocks: more operations than necessary if blocks are matrices, but few calls."""
    (m, d), xp = z.shape, namespace(z)
    components = _components(space, d)
    itemsize = 8 if z.dtype == xp.float64 else 4
    for rows in slices(x.shape[0], min(CHUNK, budget.memory / (4 * itemsize * m * components**2))):
        k = space.gram(z, x[rows, :])
        k *= xp.tile(xp.sqrt(w[rows]), (components,))
        squares = xp.reshape(k @ k.T, (components, m, components, m))
        out += xp.permute_dims(squares, (0, 2, 1, 3))


def _add_by_profiles(
    space: Space, z: np.ndarray, x: np.ndarray, w: np.ndarray, out: np.ndarray, budget: Budget
) -> None:
    """Add by the formula in the module docstring."""
    m, d = z.shape
    workers = min(budget.threads, -(-m // LANDMARKS))
    terms = d * (d + 3) // 2
    numbers = budget.memory / z.itemsize - workers * 3 * terms * LANDMARKS * m
    for rows in slices(len(x), min(CHUNK, numbers / (PROFILES * m + workers * LANDMARKS * (terms + d)))):
        with np.errstate(all="ignore"):  # limits at 0 and underflow far away are correct
            _add_chunk(_Profiles.of(space.kernel, z, x[rows], w[rows]), out, workers)


def stacked(squares: Array) -> Array:
    """Return the whole symmetric matrix, in the order in which a space stacks coefficients."""
    xp, (components, _, m, _) = namespace(squares), squares.shape
    matrix = xp.empty((components, m, components, m), dtype=squares.dtype, device=squares.device)
    matrix[...] = xp.permute_dims(squares, (0, 2, 1, 3))
    if isinstance(host_view(squares), np.ndarray):
        _mirror(host_view(squares), host_view(matrix))
    return xp.reshape(matrix, (components * m, components * m))


def _mirror(squares: np.ndarray, matrix: np.ndarray) -> None:
    """Fill in the pairs that :func:`_add_by_profiles` leaves out, by symmetry."""
    components, _, m, _ = squares.shape
    upper = np.triu(np.ones((m, m), dtype=bool), 1)
    for i in range(components):
        for j in range(components):
            matrix[j, :, i, :].T[upper] = squares[i, j][upper]


@dataclass(frozen=True)
class _Profiles:
    """Functions of the distances between landmarks and samples from which blocks are made, also times the weights."""

    z: np.ndarray
    x: np.ndarray
    a: np.ndarray
    b: np.ndarray
    r: np.ndarray
    p: np.ndarray
    weighted_a: np.ndarray
    weighted_b: np.ndarray
    weighted_p: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, z: np.ndarray, x: np.ndarray, w: np.ndarray) -> Self:
        """Compute the functions; distances by differences, which are exact and a small part of the cost."""
        work = Workspace()
        s = np.zeros((len(z), len(x)), dtype=z.dtype)
        for j in range(z.shape[1]):
            step = np.subtract.outer(z[:, j], x[:, j])
            step *= step
            s += step
        r = -2.0 * kernel._product(work.copy("argument", s), 2, work)
        a = -2.0 * kernel._product(work.copy("argument", s), 1, work)
        b = np.divide(2.0 * r, s, out=np.zeros_like(s), where=s > 0.0)  # at s = 0 it is multiplied by u = 0
        p = a + r
        return cls(z, x, a, b, r, p, w * a, w * b, w * p)


def _add_chunk(profiles: _Profiles, out: np.ndarray, workers: int) -> None:
    """Add the sums of some rows to those of all landmarks, in tiles that threads take one after another."""
    m = len(profiles.z)
    tiles = deque(slices(m, LANDMARKS))

    def work(_: int) -> None:
        scratch = Workspace()
        while True:
            try:
                rows = tiles.popleft()  # the longest first; each tile adds to different rows
            except IndexError:
                return
            check_stopped()
            _add_tile(profiles, rows, out[:, :, rows, rows.start :], scratch)

    map_threads(work, range(workers), workers)


def _add_tile(f: _Profiles, rows: slice, out: np.ndarray, work: Workspace) -> None:
    """Add the formula of the module for the landmarks `rows` against themselves and all later ones."""
    d, n = f.z.shape[1], len(f.x)
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    squares = len(pairs)
    count = rows.stop - rows.start
    right = slice(rows.start, None)
    u = work.empty("differences of landmarks", (d, count, n), f.z.dtype)
    np.subtract(f.z[rows].T[:, :, None], f.x.T[:, None, :], out=u)
    left = work.empty("left", (squares + d, count, n), f.z.dtype)

    def moments(weighted: np.ndarray) -> None:
        """Fill `left` with a profile times u_i u_j, then times u_i."""
        for i in range(d):
            np.multiply(weighted[rows], u[i], out=left[squares + i])
        for k, (i, j) in enumerate(pairs):
            np.multiply(left[squares + i], u[j], out=left[k])

    def against(part: slice, profile: np.ndarray) -> np.ndarray:
        terms = left[part]
        return (terms.reshape(-1, n) @ profile[right].T).reshape(len(terms), count, -1)

    everything, second, first = slice(None), slice(0, squares), slice(squares, None)
    moments(f.weighted_b)
    sums = against(everything, f.b)
    delta = f.z[right].T[:, None, :] - f.z[rows].T[:, :, None]
    # in float64, since |delta|^2 may overflow in float32 where the sum is 0
    sums *= -0.5 * np.sum(np.square(delta, dtype=np.float64), axis=0)
    sums[second] += against(second, f.p)
    sums[first] += against(first, f.r)
    moments(f.weighted_p)
    sums += against(everything, f.b)
    moments_of_a = _first_moments(f.weighted_a[rows], u, f.b[right])
    _assemble(out, sums, moments_of_a, delta, pairs)
    same = f.weighted_a[rows] @ f.a[right].T
    for i in range(d):
        out[i, i] += same


def _first_moments(weighted: np.ndarray, u: np.ndarray, profile: np.ndarray) -> np.ndarray:
    """Return sums of a profile times u_i, then times 1, against another profile."""
    return np.stack([*((weighted * step) @ profile.T for step in u), weighted @ profile.T])


def _assemble(
    out: np.ndarray, sums: np.ndarray, first: np.ndarray, delta: np.ndarray, pairs: list[tuple[int, int]]
) -> None:
    """Add the terms in u u^T, u delta^T, delta u^T and delta delta^T."""
    d = len(delta)
    for k, (i, j) in enumerate(pairs):
        out[i, j] += sums[k]
        if i != j:
            out[j, i] += sums[k]
    for i in range(d):
        for j in range(d):
            out[i, j] += sums[len(pairs) + i] * delta[j] + delta[i] * (first[j] + first[d] * delta[j])
