"""From an accurate but slow radial function to a `RadialTable`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from isopleth.kernels.radial_table import RadialTable

RadialFunction = Callable[[np.ndarray], np.ndarray]
"""A vectorised function of s > 0."""

LOWEST_OCTAVE = -80
"""Where sqrt(s) is 1e-12: below it even a kernel with a kink is at its limit."""

_NODES = 24
_MIN_BITS, _MAX_BITS = 7, 13
_MAX_DEPTH = 10
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class _Pieces:
    """Chebyshev series on dyadic parts of octaves: part `position` of ``2**depth`` of the octave from ``2**octave``."""

    depth: int
    octave: np.ndarray
    position: np.ndarray
    coefficients: np.ndarray

    def keep(self, mask: np.ndarray) -> _Pieces:
        return _Pieces(self.depth, self.octave[mask], self.position[mask], self.coefficients[mask])


def tabulate(function: RadialFunction, at_zero: float, highest: int, scale: float) -> RadialTable:
    """Table of `function` on ``0 <= s < 2**highest``.

    The function is evaluated on few Chebyshev pieces only; the many cubics of the table are filled from these.

    Parameters
    ----------
    function : callable
        Vectorised, for s > 0.
    at_zero : float
        Its limit at 0, which may be infinite.
    highest : int
        Beyond ``2**highest`` the function is as good as 0.
    scale : float
        Size of the function: errors are measured against ``scale + |f|``.
    """
    lowest = _first_octave(function, at_zero, highest, scale)
    pieces = list(_resolve(function, np.arange(lowest, highest), scale))
    bits = min(_MAX_BITS, max(_MIN_BITS, max(p.depth for p in pieces)))
    # a cubic's error falls by 16 with every halving of the cells
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
    """The first octave in which the function has left its limit at 0."""
    if math.isinf(at_zero):
        return LOWEST_OCTAVE
    octaves = np.arange(LOWEST_OCTAVE, min(0, highest - 1))
    departed = np.abs(function(np.ldexp(1.0, octaves)) - at_zero) > 0.1 * _TOLERANCE * scale
    return max(LOWEST_OCTAVE, int(octaves[np.argmax(departed)]) - 1) if departed.any() else int(octaves[-1])


def _chebyshev(degrees: int, z: np.ndarray) -> np.ndarray:
    return np.cos(np.arange(degrees) * np.arccos(np.clip(z, -1.0, 1.0))[..., None])


def _resolve(function: RadialFunction, octaves: np.ndarray, scale: float) -> Iterator[_Pieces]:
    """Halve pieces until the Chebyshev series of each has converged."""
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
    """Places `y` (from 0 to 1) of every cell in a piece, in the piece's own coordinate from -1 to 1."""
    count = 1 << (bits - depth)
    return 2.0 * (np.arange(count)[:, None] + y) / count - 1.0


def _cubics(pieces: _Pieces, bits: int) -> np.ndarray:
    """Cubics through four Chebyshev nodes of every cell, of shape (pieces, cells in a piece, 4)."""
    y = 0.5 - 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)
    values = np.tensordot(pieces.coefficients, _chebyshev(_NODES, _points(pieces.depth, bits, y)), axes=(1, 2))
    return values @ np.linalg.inv(np.vander(y, increasing=True)).T


def _error(pieces: _Pieces, bits: int, scale: float) -> float:
    """Largest error of the cubics between their nodes, relative to ``scale + |f|``."""
    y = np.linspace(0.0, 1.0, 5)
    values = np.tensordot(pieces.coefficients, _chebyshev(_NODES, _points(pieces.depth, bits, y)), axes=(1, 2))
    cubic = _cubics(pieces, bits) @ np.vander(y, 4, increasing=True).T
    return float(np.max(np.abs(cubic - values) / (scale + np.abs(values))))
