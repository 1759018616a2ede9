"""Coordinates in which densities are fitted, and what these make of log densities and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isopleth.core.scales import ScaledColumns
from isopleth.frames import BoundedMap


@dataclass(frozen=True)
class ColumnCoordinates:
    """Map of encoded rows: numbers between bounds to the real line, shifted and scaled; codes of words stay as they are.

    Cells may be missing. Rows on or beyond a bound have the log density minus infinity and no gradient.
    """

    bounds: BoundedMap
    frame: ScaledColumns
    constants: np.ndarray  # (n_numeric,): values of the columns of numbers that the frame does not keep

    @property
    def n_numeric(self) -> int:
        """Number of columns of numbers, which come first."""
        return len(self.frame.keep)

    def take(self, numeric: np.ndarray) -> ColumnCoordinates:
        """Return the coordinates of some of the columns of numbers, and of any words."""
        return ColumnCoordinates(self.bounds.take(numeric), self.frame.take(numeric), self.constants[numeric])

    def inside(self, rows: np.ndarray) -> np.ndarray:
        """Return a mask of the rows inside the bounds."""
        return np.asarray(self.bounds.inside(rows[:, : self.n_numeric]).all(axis=1))

    def enter(self, rows: np.ndarray) -> np.ndarray:
        """Return rows inside the bounds as points in the coordinates."""
        numbers = self.frame.enter(self.bounds.forward(rows[:, : self.n_numeric]))
        words = rows[:, self.n_numeric :]
        return np.concatenate([numbers, words], axis=1) if words.shape[1] else numbers

    def leave(self, points: np.ndarray) -> np.ndarray:
        """Return the rows of points, with the values of constant columns."""
        numbers = self.bounds.inverse(self.frame.leave(points[:, : self.frame.dim], np.zeros(self.n_numeric)))
        numbers[:, ~self.frame.keep] = self.constants[~self.frame.keep]
        return np.concatenate([numbers, points[:, self.frame.dim :]], axis=1)

    def log_slopes(self, rows: np.ndarray) -> np.ndarray:
        """Return the logarithm of the derivative of the map at rows inside the bounds, summed over the known numbers."""
        numbers = rows[:, : self.n_numeric]
        slopes = self.bounds.log_slopes(numbers)[:, self.frame.keep] - np.log(self.frame.scale)
        return np.where(np.isnan(numbers[:, self.frame.keep]), 0.0, slopes).sum(axis=1)

    def log_density(self, rows: np.ndarray, log_p: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the log density of rows, from that of points."""
        out, inside = np.full(len(rows), -np.inf), self.inside(rows)
        if inside.any():
            some = rows[inside]
            out[inside] = log_p(self.enter(some)) + self.log_slopes(some)
        return out

    def gradient(self, rows: np.ndarray, slope: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the gradient of the log density of rows, from that of points; NaN for words and missing cells."""
        out, inside = np.full(rows.shape, np.nan), self.inside(rows)
        if inside.any():
            numbers = rows[inside][:, : self.n_numeric]
            found = np.zeros(numbers.shape)
            found[:, self.frame.keep] = slope(self.enter(rows[inside]))[:, : self.frame.dim] / self.frame.scale
            found = self.bounds.pullback(numbers, found) + self.bounds.grad_log_volume(numbers)
            found[:, ~self.frame.keep] = 0.0
            out[inside, : self.n_numeric] = np.where(np.isnan(numbers), np.nan, found)
        return out
