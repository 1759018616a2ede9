"""Sums of Gaussian kernels at the points of a regular grid, by a fast Fourier transform."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

from isopleth.core.arrays import Array, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.threads import slices
from isopleth.density.fitted import Fitted
from isopleth.density.frame_density import ExpansionDensity
from isopleth.kernels import Gaussian

# Nodes per length scale, at least, and length scales beyond which a Gaussian is below 2e-16 of its peak.
_NODES, _REACH = 8, 8.5
_ROWS = 2**15  # rows at once, so that their weights stay in the processor's cache
_POINTS, _MARGIN = (1024, 128), 4.0  # points along each of one or two columns, and length scales beyond the rows
_NODE_BYTES = 48  # a node is two numbers, and those of three transforms
# Largest error of a cubic through four nodes, over the fourth derivative times the fourth power of the step; the largest fourth
# derivative of a Gaussian; and the factor by which the cubics of one axis increase the error of the other.
_CUBIC, _FOURTH, _LEBESGUE = 9.0 / 16.0 / 24.0, 3.0, 1.25


class GridDensity(NamedTuple):
    """A density on a regular grid.

    Parameters
    ----------
    axes : tuple of ndarray
        The coordinates along each column, in the units of the data.
    density : ndarray of shape (len(axes[0]),) or (len(axes[0]), len(axes[1]))
        The density at the nodes, per product of units, at least 0.
    error : float
        Bound on the absolute error at every node.
    """

    axes: tuple[Array, ...]
    density: Array
    error: float


class _Axis:
    """One axis: the points asked for and the nodes between and beyond them, on a circle long enough that its ends do not meet."""

    def __init__(self, points: np.ndarray, length_scale: float) -> None:
        step = (points[-1] - points[0]) / (len(points) - 1)
        self.between = max(1, math.ceil(step * _NODES / length_scale))  # nodes from one point to the next
        self.step = step / self.between
        self.beyond = math.ceil(_REACH * length_scale / self.step) + 3
        self.inner = (len(points) - 1) * self.between + 1
        self.low, self.length_scale = points[0], length_scale
        self.size = fft.next_fast_len(self.inner + 2 * self.beyond + 1, real=True)

    def spread(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the node before each row, the weights (4, n) of the nodes around it, and which rows are near enough to count."""
        place = np.clip((x - self.low) / self.step + self.beyond, 0.0, self.size - 1.0)
        base = np.floor(place)
        u = place - base
        ahead, behind, last = u + 1.0, u - 1.0, u - 2.0
        cubic = [
            -u * behind * last / 6.0,
            ahead * behind * last / 2.0,
            -ahead * u * last / 2.0,
            ahead * u * behind / 6.0,
        ]
        near = (base >= 1) & (base < self.inner + 2 * self.beyond - 3)
        return base.astype(np.intp), np.stack(cubic), near

    def transformed(self) -> np.ndarray:
        """Return the transform of the kernel, which is even and therefore real."""
        away = np.minimum(np.arange(self.size), self.size - np.arange(self.size)) * self.step / self.length_scale
        return np.asarray(fft.fft(np.exp(-0.5 * away**2)).real)

    @property
    def error(self) -> float:
        """Largest error of a kernel between nodes, over its peak."""
        return _CUBIC * _FOURTH * (self.step / self.length_scale) ** 4


def grid_points(rows: np.ndarray, scale: np.ndarray, shift: np.ndarray, n_points: Any, limits: Any) -> list[np.ndarray]:
    """Return the points along each column, from what the caller asks for and the centred rows, or raise InputError."""
    dim = len(scale)
    count = np.asarray(_POINTS[dim - 1] if n_points is None else n_points)
    if count.dtype.kind not in "iu" or count.shape not in ((), (dim,)) or (count < 2).any():
        raise InputError(f"n_points = {n_points!r}: expected a number of points of at least 2, or one for each column.")
    if limits is None:
        ends = (
            np.stack([rows.min(axis=0) - _MARGIN * scale, rows.max(axis=0) + _MARGIN * scale], axis=1) + shift[:, None]
        )
    else:
        ends = np.asarray(limits, dtype=np.float64)
    if ends.shape != (dim, 2) or not np.isfinite(ends).all() or (ends[:, 0] >= ends[:, 1]).any():
        raise InputError(
            f"limits = {limits!r}: expected a pair (low, high), low < high, for each of the {dim} columns."
        )
    return [
        np.linspace(low, high, number)
        for (low, high), number in zip(ends, np.broadcast_to(count, dim).tolist(), strict=True)
    ]


def gaussian_sum_on_grid(
    rows: np.ndarray, shares: np.ndarray, length_scales: np.ndarray, points: list[np.ndarray], budget: Budget
) -> tuple[np.ndarray, float]:
    """Return the sum of normal densities about weighted rows at the points of a regular grid, and a bound on its error."""
    axes = [_Axis(*pair) for pair in zip(points, length_scales, strict=True)]
    shape = [axis.size for axis in axes]
    what = f"{' x '.join(f'{size:,}' for size in shape)} nodes of the grid, {_NODES} a length scale,"
    refuse_too_large(what, _NODE_BYTES * math.prod(shape), budget.memory, "give narrower limits")
    binned = np.zeros(math.prod(shape))
    strides = [math.prod(shape[1:]), 1][-len(shape) :]
    for part in slices(len(rows), _ROWS):
        places, weights = np.zeros((1, 1), dtype=np.intp), shares[part][None]
        kept = np.ones(weights.shape[1], dtype=bool)
        for axis, stride, x in zip(axes, strides, rows[part].T, strict=True):
            base, cubic, near = axis.spread(x)
            kept &= near
            places = (places[:, None] + (base + np.arange(-1, 3)[:, None]) * stride).reshape(-1, len(x))
            weights = (weights[:, None] * cubic).reshape(-1, len(x))
        binned += np.bincount(places[:, kept].ravel(), weights[:, kept].ravel(), minlength=len(binned))
    half = axes[-1].size // 2 + 1
    kernel = axes[-1].transformed()[:half]
    if len(axes) > 1:
        kernel = axes[0].transformed()[:, None] * kernel
    total = fft.irfftn(fft.rfftn(binned.reshape(shape)) * kernel, shape)
    inner = tuple(slice(axis.beyond, axis.beyond + axis.inner, axis.between) for axis in axes)
    peak = 1.0 / float(np.prod(math.sqrt(2.0 * math.pi) * length_scales))
    error = sum(_LEBESGUE**j * axis.error for j, axis in enumerate(axes)) + 1e-13
    return np.maximum(total[inner], 0.0) * peak, float(error * peak * shares.sum())


def density_on_grid(fitted: Fitted, n_points: Any, limits: Any, budget: Budget) -> GridDensity:
    """Return a mixture of Gaussian kernels in one or two scaled columns at the points of a grid, and a bound on its error."""
    density, frame, bounds = fitted.density, fitted.coordinates.frame, fitted.coordinates.bounds
    gaussians = (
        isinstance(density, ExpansionDensity) and not density.squared and isinstance(density.expansion.kernel, Gaussian)
    )
    bounded = np.isfinite([bounds.low, bounds.high]).any()
    if not gaussians or bounded or not frame.keep.all() or frame.dim > 2 or fitted.centers is None:
        raise InputError(
            "evaluate_on_grid needs a sum of Gaussian kernels in one or two columns of numbers that vary: "
            "KDE(frame='scale', kernel='gaussian') without bounds. Take score_samples at the points of the grid."
        )
    rows = fitted.centers - frame.shift
    points = grid_points(rows, frame.scale, frame.shift, n_points, limits)
    centred = [axis - middle for axis, middle in zip(points, frame.shift, strict=True)]
    found, error = gaussian_sum_on_grid(rows, to_numpy(density.coefficients), frame.scale, centred, budget)
    return GridDensity(tuple(map(fitted.backend.array, points)), fitted.backend.array(found), error)
