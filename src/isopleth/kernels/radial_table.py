"""Tables of piecewise cubics for radial functions that are expensive to compute: a few nanoseconds for each value."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import array_api_compat
import numpy as np

from isopleth.core.arrays import Array, namespace
from isopleth.kernels.base import Workspace

# Values per pass. With shorter passes threads wait for each other's use of the interpreter's lock; with longer ones the scratch,
# 1.5 MiB, does not fit in the cache of a core.
_CHUNK = 32768
_LONG_CHUNK = 2**22  # values per pass on another device: a dozen such arrays take less memory than two large tiles
_MANTISSA_BITS = 52
_EXPONENT_BIAS = 1023


@dataclass(frozen=True, eq=False)
class RadialTable:
    """Piecewise cubic in s > 0 with equally many cells in every octave, found by a shift of the bits of s.

    Below the first octave the function is constant, from the end of the last octave on it is 0.
    """

    # (n, 4): coefficients of 1, y, y^2, y^3 for y from 0 to 1 across the cell. The first row is the constant below the
    # first octave, the last row the zero beyond the last one
    cells: np.ndarray
    lowest: int  # first octave begins at `2**lowest`
    bits: int  # octave has `2**bits` cells
    at_zero: float  # limit at 0. If it is infinite, only `s == 0` has this value

    @property
    def highest(self) -> int:
        """The last octave ends at ``2**highest``."""
        return self.lowest + ((len(self.cells) - 2) >> self.bits)

    @cached_property
    def _rows(self) -> np.ndarray:
        """The cubics as polynomials in s itself, which saves a pass over the data; few digits cancel."""
        cell = np.arange(len(self.cells) - 2)
        per_octave = 1 << self.bits
        b = (per_octave + cell % per_octave).astype(np.float64)
        w = np.ldexp(1.0, self.lowest - self.bits + cell // per_octave)
        c0, c1, c2, c3 = self.cells[1:-1].T
        rows = self.cells.copy()
        rows[1:-1, 0] = c0 - b * (c1 - b * (c2 - b * c3))
        rows[1:-1, 1] = (c1 - b * (2 * c2 - 3 * b * c3)) / w
        rows[1:-1, 2] = (c2 - 3 * b * c3) / w**2
        rows[1:-1, 3] = c3 / w**3
        return rows

    def __call__(self, s: Array, work: Workspace) -> Array:
        """Compute values at squared scaled distances `s`, an array of one dimension or more; it may overwrite `s`."""
        if not isinstance(s, np.ndarray):
            return self._standard(s)
        flat = s.reshape(-1)
        size = min(flat.size, _CHUNK)
        inside = work.empty("table: argument", (size,), np.float64)
        index = work.empty("table: cell", (size,), np.int64)
        rows = work.empty("table: cubic", (size, 4), np.float64)
        for start in range(0, flat.size, _CHUNK):
            chunk = flat[start : start + _CHUNK]
            n = chunk.size
            self._overwrite(chunk, inside[:n], index[:n], rows[:n])
        return flat.reshape(s.shape)

    def _overwrite(self, s: np.ndarray, inside: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
        """Replace `s` by the values; the other three arrays are scratch."""
        np.minimum(s, math.ldexp(1.0, self.highest), out=inside)  # 0 * inf would be NaN
        np.right_shift(inside.view(np.int64), _MANTISSA_BITS - self.bits, out=index)
        index -= ((self.lowest + _EXPONENT_BIAS) << self.bits) - 1
        np.take(self._rows, index, axis=0, out=rows, mode="clip")
        value = index.view(np.float64)  # in the memory of the index, which is not needed any more
        np.multiply(rows[:, 3], inside, out=value)
        value += rows[:, 2]
        value *= inside
        value += rows[:, 1]
        value *= inside
        np.add(value, rows[:, 0], out=s, casting="same_kind")
        if math.isinf(self.at_zero):
            s[inside == 0.0] = self.at_zero

    def _standard(self, s: Array) -> Array:
        """Compute the same with functions of the array-API standard, in the precision of `s`."""
        xp = namespace(s)
        flat = xp.reshape(s, (-1,))
        if flat.shape[0] > _LONG_CHUNK:
            for start in range(0, flat.shape[0], _LONG_CHUNK):
                chunk = slice(start, start + _LONG_CHUNK)
                flat[chunk] = self._standard(flat[chunk])
            return xp.reshape(flat, s.shape)
        first, end, per_octave = math.ldexp(1.0, self.lowest), math.ldexp(1.0, self.highest), 1 << self.bits
        inside = xp.where(flat > first, flat, xp.full_like(flat, first))  # in this form NaN is replaced too
        inside = xp.where(inside < end, inside, xp.full_like(flat, end))
        octave = xp.floor(xp.log2(inside))
        y = (inside * 2.0 ** (-octave) - 1.0) * per_octave
        column = xp.clip(xp.floor(y), 0.0, per_octave - 1.0)  # rounding of the logarithm may give the next octave
        y = y - column
        cell = xp.astype((octave - self.lowest) * per_octave + column + 1.0, xp.int64)
        cell = xp.where(flat < first, xp.zeros_like(cell), cell)
        rows = xp.take(_cells_as(self, xp, s.dtype, array_api_compat.device(s)), cell, axis=0)
        value = ((rows[:, 3] * y + rows[:, 2]) * y + rows[:, 1]) * y + rows[:, 0]
        value = xp.where(xp.isnan(flat), flat, value)
        if math.isinf(self.at_zero):
            value = xp.where(flat == 0.0, xp.full_like(flat, self.at_zero), value)
        return xp.reshape(value, s.shape)


def rescaled(table: RadialTable, factor: float, s: Array, work: Workspace) -> Array:
    """Compute table(factor s), overwriting `s`."""
    s *= factor
    return table(s, work)


@lru_cache(maxsize=64)
def _cells_as(table: RadialTable, xp: Any, dtype: Any, device: Any) -> Array:
    """Return the cells of `table` as an array of another library. The cache avoids a transfer with every tile."""
    return xp.asarray(table.cells, dtype=dtype, device=device, copy=True)


# Vectorised function of s > 0.
RadialFunction = Callable[[np.ndarray], np.ndarray]

# sqrt(s) is 1e-12 there; below it even a kernel with a kink has the value at 0.
LOWEST_OCTAVE = -80

_NODES = 24
_MIN_BITS, _MAX_BITS = 7, 13
_MAX_DEPTH = 10
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class _Pieces:
    """Chebyshev series on pieces of octaves: piece `position` of ``2**depth`` of the octave from ``2**octave``."""

    depth: int
    octave: np.ndarray
    position: np.ndarray
    coefficients: np.ndarray

    def keep(self, mask: np.ndarray) -> _Pieces:
        return _Pieces(self.depth, self.octave[mask], self.position[mask], self.coefficients[mask])


def tabulate(function: RadialFunction, at_zero: float, highest: int, scale: float) -> RadialTable:
    """Return a table of `function` on ``0 <= s < 2**highest``, evaluated at the nodes of few Chebyshev series only."""
    lowest = _first_octave(function, at_zero, highest, scale)
    pieces = list(_resolve(function, np.arange(lowest, highest), scale))
    bits = min(_MAX_BITS, max(_MIN_BITS, max(p.depth for p in pieces)))
    # halving the cells divides the error of a cubic by 16
    bits += max(0, math.ceil(math.log2(max(_error(p, bits, scale) for p in pieces) / _TOLERANCE) / 4))
    bits = min(bits, _MAX_BITS)
    per_octave = 1 << bits
    cells = np.zeros(((highest - lowest) * per_octave + 2, 4))
    for p in pieces:
        cubics = _cubics(p, bits)
        width = cubics.shape[1]
        start = 1 + (p.octave - lowest) * per_octave + p.position * width
        cells[start[:, None] + np.arange(width)] = cubics
    cells[0, 0] = at_zero if math.isfinite(at_zero) else cells[1, 0]
    cells.flags.writeable = False
    return RadialTable(cells, lowest, bits, at_zero)


def _first_octave(function: RadialFunction, at_zero: float, highest: int, scale: float) -> int:
    """Return the first octave in which the function differs from its limit at 0; near 0 the difference increases with s."""
    if math.isinf(at_zero):
        return LOWEST_OCTAVE
    octaves = range(LOWEST_OCTAVE, min(0, highest - 1))
    allowed = 0.1 * _TOLERANCE * scale
    first = bisect_left(octaves, True, key=lambda octave: abs(function(np.array([2.0**octave]))[0] - at_zero) > allowed)
    return max(LOWEST_OCTAVE, octaves[min(first, len(octaves) - 1)] - (first < len(octaves)))


def _chebyshev(degrees: int, z: np.ndarray) -> np.ndarray:
    return np.cos(np.arange(degrees) * np.arccos(np.clip(z, -1.0, 1.0))[..., None])


def _resolve(function: RadialFunction, octaves: np.ndarray, scale: float) -> Iterator[_Pieces]:
    """Yield pieces, halved until the Chebyshev series of each has converged."""
    z = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    to_series = _chebyshev(_NODES, z) * (2.0 / _NODES)
    to_series[:, 0] *= 0.5
    octave, position = octaves, np.zeros_like(octaves)
    for depth in range(_MAX_DEPTH + 1):
        across = (position[:, None] + 0.5 * (1.0 + z)) * 2.0**-depth
        values = function(np.ldexp(1.0 + across, octave[:, None]).ravel()).reshape(across.shape)
        pieces = _Pieces(depth, octave, position, values @ to_series)
        tail = np.abs(pieces.coefficients[:, -_NODES // 4 :]).max(axis=1)
        done = tail <= 0.1 * _TOLERANCE * (scale + np.abs(values).max(axis=1))
        if depth == _MAX_DEPTH:
            done[:] = True
        if done.any():
            yield pieces.keep(done)
        octave = np.repeat(octave[~done], 2)
        position = np.repeat(2 * position[~done], 2)
        position[1::2] += 1
        if not octave.size:
            return


def _points(depth: int, bits: int, y: np.ndarray) -> np.ndarray:
    """Return the positions `y` (from 0 to 1) within every cell of a piece, in the coordinate of the piece from -1 to 1."""
    count = 1 << (bits - depth)
    return 2.0 * (np.arange(count)[:, None] + y) / count - 1.0


def _cubics(pieces: _Pieces, bits: int) -> np.ndarray:
    """Return cubics through four Chebyshev nodes of every cell, of shape (pieces, cells in a piece, 4)."""
    y = 0.5 - 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)
    values = np.tensordot(pieces.coefficients, _chebyshev(_NODES, _points(pieces.depth, bits, y)), axes=(1, 2))
    return values @ np.linalg.inv(np.vander(y, increasing=True)).T


def _error(pieces: _Pieces, bits: int, scale: float) -> float:
    """Return the largest error of the cubics between their nodes, relative to ``scale + |f|``."""
    y = np.linspace(0.0, 1.0, 5)
    values = np.tensordot(pieces.coefficients, _chebyshev(_NODES, _points(pieces.depth, bits, y)), axes=(1, 2))
    cubic = _cubics(pieces, bits) @ np.vander(y, 4, increasing=True).T
    return float(np.max(np.abs(cubic - values) / (scale + np.abs(values))))
