"""A radial function as a table of cubics: a few nanoseconds a value, whatever the function cost to compute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import array_api_compat
import numpy as np

from isopleth._namespace import Array, namespace
from isopleth.kernels.workspace import Workspace

# Values per pass. The calls into NumPy each take the interpreter's lock: with shorter passes two threads wait for one
# another, with longer ones the scratch, 1.5 MiB, leaves the cache of a core.
_CHUNK = 32768
_LONG_CHUNK = 2**22  # values per pass on another device: a dozen arrays of them together are less than two large tiles
_MANTISSA_BITS = 52
_EXPONENT_BIAS = 1023


@dataclass(frozen=True, eq=False)
class RadialTable:
    """Piecewise cubic in s > 0 whose cells are the leading bits of the float s: as many in every octave.

    Finding a cell is then a shift of the bits, and a singularity at 0 is resolved at every scale. Below the first
    octave the function is held constant, from the end of the last octave on it is 0.

    Parameters
    ----------
    cells : ndarray of shape (n, 4)
        Coefficients of 1, y, y^2, y^3 for y from 0 to 1 across the cell. The first row is the constant below the first
        octave, the last row the zero beyond the last one.
    lowest : int
        The first octave begins at ``2**lowest``.
    bits : int
        An octave has ``2**bits`` cells.
    at_zero : float
        The limit at 0; where it is infinite, only ``s == 0`` has it.
    """

    cells: np.ndarray
    lowest: int
    bits: int
    at_zero: float

    @property
    def highest(self) -> int:
        """The last octave ends at ``2**highest``."""
        return self.lowest + ((len(self.cells) - 2) >> self.bits)

    @cached_property
    def _rows(self) -> np.ndarray:
        """The same cubics as polynomials in s itself, which spares a pass over the data.

        With y = s/w - b, b is a whole number below ``2**(bits + 1)`` and w a power of two, so that little is lost:
        terms are as large as s^k f^(k), and those are of the size of f on a scale of octaves.
        """
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
        """Values at squared scaled distances `s` of any shape but a scalar's; may overwrite `s`."""
        if not isinstance(s, np.ndarray):
            return self._standard(s)
        flat = s.reshape(-1)
        size = min(flat.size, _CHUNK)
        inside = work.empty("table: argument", (size,), np.float64)
        index = work.empty("table: cell", (size,), np.int64)
        rows = work.empty("table: cubic", (size, 4), np.float64)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            n = part.size
            self._overwrite(part, inside[:n], index[:n], rows[:n])
        return flat.reshape(s.shape)

    def _overwrite(self, s: np.ndarray, inside: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
        """The hot path: `s` becomes the values; the other three are scratch."""
        np.minimum(s, math.ldexp(1.0, self.highest), out=inside)  # 0 * inf is no 0
        np.right_shift(inside.view(np.int64), _MANTISSA_BITS - self.bits, out=index)
        index -= ((self.lowest + _EXPONENT_BIAS) << self.bits) - 1
        np.take(self._rows, index, axis=0, out=rows, mode="clip")
        value = index.view(np.float64)  # the index is spent; its memory is not
        np.multiply(rows[:, 3], inside, out=value)
        value += rows[:, 2]
        value *= inside
        value += rows[:, 1]
        value *= inside
        np.add(value, rows[:, 0], out=s, casting="same_kind")
        if math.isinf(self.at_zero):
            s[inside == 0.0] = self.at_zero

    def _standard(self, s: Array) -> Array:
        """The same cells with nothing but functions of the array-API standard, in the precision of `s`."""
        xp = namespace(s)
        flat = xp.reshape(s, (-1,))
        if flat.shape[0] > _LONG_CHUNK:
            for start in range(0, flat.shape[0], _LONG_CHUNK):
                part = slice(start, start + _LONG_CHUNK)
                flat[part] = self._standard(flat[part])
            return xp.reshape(flat, s.shape)
        first, end, per_octave = math.ldexp(1.0, self.lowest), math.ldexp(1.0, self.highest), 1 << self.bits
        inside = xp.where(flat > first, flat, xp.full_like(flat, first))  # in this form NaN goes inside too
        inside = xp.where(inside < end, inside, xp.full_like(flat, end))
        octave = xp.floor(xp.log2(inside))
        y = (inside * 2.0 ** (-octave) - 1.0) * per_octave
        column = xp.clip(xp.floor(y), 0.0, per_octave - 1.0)  # a rounded logarithm may be in the next octave
        y = y - column
        cell = xp.astype((octave - self.lowest) * per_octave + column + 1.0, xp.int64)
        cell = xp.where(flat < first, xp.zeros_like(cell), cell)
        rows = xp.take(_cells_as(self, xp, s.dtype, array_api_compat.device(s)), cell, axis=0)
        value = ((rows[:, 3] * y + rows[:, 2]) * y + rows[:, 1]) * y + rows[:, 0]
        value = xp.where(xp.isnan(flat), flat, value)
        if math.isinf(self.at_zero):
            value = xp.where(flat == 0.0, xp.full_like(flat, self.at_zero), value)
        return xp.reshape(value, s.shape)


@lru_cache(maxsize=64)
def _cells_as(table: RadialTable, xp: Any, dtype: Any, device: Any) -> Array:
    """Cells of `table` as an array of another library: moved to its device once, not with every tile."""
    return xp.asarray(table.cells, dtype=dtype, device=device, copy=True)
