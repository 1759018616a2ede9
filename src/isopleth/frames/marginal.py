"""Marginal frame: each column is mapped to a standard normal one by an estimate of its distribution function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

from isopleth.backend import Array, to_numpy
from isopleth.frames.bandwidth_mixture import BandwidthMixture, Values
from isopleth.frames.base import ColumnMap, Frame, MapAt, by_numpy, check_nonnegative, like, limited
from isopleth.scaled_columns import deviations

# Knots of the tabulated density of a column. With them its logarithm is within 1e-3 of the formula.
N_KNOTS = 512

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)

# Gauss-Legendre rule on [0, 1].
_NODES, _NODE_WEIGHTS = (0.5 * a for a in np.polynomial.legendre.leggauss(6))
_NODES = _NODES + 0.5

# Quantiles of the standard normal distribution.
_NORMAL = ndtri((np.arange(64) + 0.5) / 64)

# Beyond this many deviations from every centre, the density is that of the tail.
_REACH = 9.0

# Steps of the search for an inverse; bisection alone takes 52.
_STEPS = 60


@dataclass(frozen=True)
class MarginalMap(ColumnMap):
    r"""Map :math:`t_j = \Phi^{-1}(F_j(x_j))` of each column.

    The logarithm of the density of F is a cubic spline between knots; beyond them F is the tail of a normal distribution. So t
    increases everywhere, has a continuous second derivative, and is computed and inverted without loss of digits far out.

    Parameters
    ----------
    shift, unit : arrays of shape (d,)
        Knots and tails are in the coordinates (x - shift)/unit.
    knots, log_density, slopes : arrays of shape (d, k)
        Knots, and the logarithm of the density of F with its derivative there.
    below, above : arrays of shape (d, k)
        Logarithms of F and of 1 - F at the knots.
    tail_mean, tail_deviation, log_tail : arrays of shape (d,)
        Mean and deviation of the normal tails, and the logarithm of their weight.
    """

    shift: np.ndarray
    unit: np.ndarray
    knots: np.ndarray
    log_density: np.ndarray
    slopes: np.ndarray
    below: np.ndarray
    above: np.ndarray
    tail_mean: np.ndarray
    tail_deviation: np.ndarray
    log_tail: np.ndarray

    @property
    def dim(self) -> int:
        return len(self.shift)

    def at(self, X: Array) -> MapAt:
        with np.errstate(over="ignore"):
            Y = limited((np.asarray(to_numpy(X), dtype=np.float64) - self.shift) / self.unit)
        columns = [self._value(j, Y[:, j]) for j in range(self.dim)]
        t, log_slopes, gradients = (np.stack(parts, axis=1) for parts in zip(*columns, strict=True))
        parts = (t, log_slopes - np.log(self.unit), gradients / self.unit)
        return MapAt.of_columns(*(like(part, X) for part in parts))

    @by_numpy
    def forward(self, X: np.ndarray) -> np.ndarray:
        return self._columns(X, lambda j, y: self._value(j, y)[0])

    @by_numpy
    def log_slopes(self, X: np.ndarray) -> np.ndarray:
        return self._columns(X, lambda j, y: self._value(j, y)[1]) - np.log(self.unit)

    @by_numpy
    def log_slope_gradients(self, X: np.ndarray) -> np.ndarray:
        return self._columns(X, lambda j, y: self._value(j, y)[2]) / self.unit

    def _columns(self, X: np.ndarray, function: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
        with np.errstate(over="ignore"):
            Y = limited((X - self.shift) / self.unit)
        return np.stack([function(j, Y[:, j]) for j in range(self.dim)], axis=1)

    def _value(self, j: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return t, log t' and the derivative of log t' in y of one column."""
        knots = self.knots[j]
        t, log_slope, bend = np.empty(len(y)), np.empty(len(y)), np.empty(len(y))
        far = (y < knots[0]) | (y > knots[-1])
        t[far], log_slope[far], bend[far] = self._tail(j, y[far])
        near = y[~far]
        place = np.clip(np.searchsorted(knots, near, side="right") - 1, 0, len(knots) - 2)
        width = knots[place + 1] - knots[place]
        t[~far], log_slope[~far], bend[~far] = self._between(j, place, (near - knots[place]) / width)
        return t, log_slope, bend

    def _tail(self, j: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r = (y - self.tail_mean[j]) / self.tail_deviation[j]
        sign = np.sign(r)
        u = -ndtri_exp(self.log_tail[j] + log_ndtr(-np.abs(r)))  # |t|
        # By the hazard of the normal distribution, because the logarithms of the densities would cancel.
        log_slope = _log_hazard(np.abs(r)) - _log_hazard(u) - math.log(self.tail_deviation[j])
        return sign * u, log_slope, sign * (u * np.exp(log_slope) - np.abs(r) / self.tail_deviation[j])

    def _between(self, j: int, place: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return t, log t' and its derivative at the fraction `s` of the intervals that begin at knots `place`."""
        width = self.knots[j, place + 1] - self.knots[j, place]
        spline = _Cubic.of(self.log_density[j], self.slopes[j], place, width)
        low = self.below[j, place] < self.above[j, place]
        start, length = np.where(low, 0.0, s), np.where(low, s, 1.0 - s)
        inside = _log_integral(spline, start, length) + np.log(width)
        outer = np.where(low, self.below[j, place], self.above[j, place + 1])
        t = ndtri_exp(np.minimum(np.logaddexp(outer, inside), -1e-300))
        t = np.where(low, t, -t)
        log_density, slope = spline(s)
        log_slope = log_density + 0.5 * t * t + _LOG_ROOT_TWO_PI
        return t, log_slope, slope / width + t * np.exp(log_slope)

    @by_numpy
    def inverse(self, Z: np.ndarray) -> np.ndarray:
        out = np.stack([self._inverse(j, Z[:, j]) for j in range(self.dim)], axis=1)
        return out * self.unit + self.shift

    def _inverse(self, j: int, t: np.ndarray) -> np.ndarray:
        knots = self.knots[j]
        at_knots = np.where(self.below[j] < self.above[j], ndtri_exp(self.below[j]), -ndtri_exp(self.above[j]))
        out = np.empty(len(t))
        far = (t < at_knots[0]) | (t > at_knots[-1])
        size = -ndtri_exp(np.minimum(log_ndtr(-np.abs(t[far])) - self.log_tail[j], math.log(0.5)))
        out[far] = self.tail_mean[j] + np.sign(t[far]) * size * self.tail_deviation[j]
        near = t[~far]
        place = np.clip(np.searchsorted(at_knots, near, side="right") - 1, 0, len(knots) - 2)
        width = knots[place + 1] - knots[place]
        start = (near - at_knots[place]) / (at_knots[place + 1] - at_knots[place])
        out[~far] = knots[place] + width * self._solve(j, place, width, near, start)
        return out

    def _solve(self, j: int, place: np.ndarray, width: np.ndarray, t: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return the fractions of the intervals where the map is `t`, by Newton's method within brackets."""
        low, high = np.zeros(len(s)), np.ones(len(s))
        s, left = s.copy(), np.arange(len(s))
        for _ in range(_STEPS):
            value, log_slope, _ = self._between(j, place[left], s[left])
            excess = value - t[left]
            low[left] = np.where(excess <= 0.0, s[left], low[left])
            high[left] = np.where(excess >= 0.0, s[left], high[left])
            step = s[left] - excess / (np.exp(log_slope) * width[left])
            inside = (step > low[left]) & (step < high[left])
            step = np.where(inside, step, 0.5 * (low[left] + high[left]))
            moved = np.abs(step - s[left])
            s[left] = step
            left = left[moved > 1e-15]
            if not len(left):
                break
        return s

    def laplacian(self, X: Array) -> Array:
        raise self._refusal()

    def take(self, columns: np.ndarray) -> MarginalMap:
        return MarginalMap(*(value[columns] for value in vars(self).values()))


@dataclass(frozen=True)
class Marginal(Frame):
    r"""Frame in which each column is approximately standard normal.

    :math:`t_j = \Phi^{-1}(F_j(x_j))`, where the density of F is a mixture of kernel densities of seven bandwidths and a normal
    density of eight times the deviation of the column. The weights of the mixture maximise the likelihood of each value under
    the density without all values that equal it, so that repeated values do not make it collapse.

    Parameters
    ----------
    least_deviation : float, default=0.0
        Columns with a smaller standard deviation are mapped as if they were standard normal.

    Notes
    -----
    The map is smooth, but its second derivatives are wild: it serves densities, and scores must not be fitted in it. More than
    64 distinct values of a column are binned. Far out, t is the quantile of the normal tail, which increases without end.

    Raises
    ------
    InputError
        If `least_deviation` is negative or no number.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import Marginal
    >>> rows = np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    >>> t = Marginal().fit(rows, np.ones(200)).forward(rows)
    >>> bool(abs(t.mean()) < 0.05), bool(abs(t.std() - 1.0) < 0.1)
    (True, True)
    """

    least_deviation: float = 0.0

    def __post_init__(self) -> None:
        check_nonnegative("least_deviation", self.least_deviation)

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> MarginalMap:
        narrow = deviations(rows, weights) < self.least_deviation
        columns = [
            _tabulate(
                Values.of(np.median(column) + _NORMAL, np.ones(len(_NORMAL))) if flat else Values.of(column, weights)
            )
            for column, flat in zip(rows.T, narrow, strict=True)
        ]
        return MarginalMap(*(np.stack(parts) for parts in zip(*columns, strict=True)))


def _tabulate(values: Values) -> tuple[Any, ...]:
    """Return the parameters of the map of one column."""
    mixture = BandwidthMixture.of(values)
    knots = _knots(mixture)
    log_density, slopes = mixture.log_density(knots)
    width = np.diff(knots)
    spline = _Cubic.of(log_density, slopes, np.arange(len(width)), width)
    inside = _log_integral(spline, np.zeros(len(width)), np.ones(len(width))) + np.log(width)
    tau, mean, deviation = mixture.tail
    ends = math.log(tau) + log_ndtr([(knots[0] - mean) / deviation, (mean - knots[-1]) / deviation])
    below = np.logaddexp.accumulate(np.concatenate([ends[:1], inside]))
    above = np.logaddexp.accumulate(np.concatenate([ends[1:], inside[::-1]]))[::-1]
    total = np.logaddexp(below[-1], ends[1])
    tail = (mean, deviation, math.log(tau) - total)
    return values.shift, values.unit, knots, log_density - total, slopes, below - total, above - total, *tail


def _knots(mixture: BandwidthMixture) -> np.ndarray:
    """Return knots whose spacing is proportional to the distance to the nearest centre plus the width of its kernel."""
    narrow = np.sqrt(mixture.bandwidths[0] ** 2 + mixture.variances)
    reach = _REACH * np.sqrt(mixture.bandwidths[-1] ** 2 + mixture.variances)
    centers = mixture.centers
    before, after = centers[0] - (centers - reach).min(), (centers + reach).max() - centers[-1]
    gaps = np.diff(centers)
    # Where the spacings that two neighbours ask for are equal.
    right = np.concatenate([np.clip(0.5 * (gaps + np.diff(narrow)), 0.0, gaps), [after]])
    left = np.concatenate([[before], gaps - right[:-1]])
    right_count, left_count = np.log1p(right / narrow), np.log1p(left / narrow)
    start = np.concatenate([[0.0], np.cumsum(left_count + right_count)])
    count = np.linspace(0.0, start[-1], N_KNOTS)
    place = np.clip(np.searchsorted(start, count, side="right") - 1, 0, len(centers) - 1)
    offset = count - start[place] - left_count[place]
    return centers[place] + np.sign(offset) * narrow[place] * np.expm1(np.abs(offset))


@dataclass(frozen=True)
class _Cubic:
    """Cubic polynomials in s of [0, 1], as coefficients of 1, s, s^2 and s^3."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, slopes: np.ndarray, place: np.ndarray, width: np.ndarray) -> _Cubic:
        v, v1, b, b1 = values[place], values[place + 1], slopes[place] * width, slopes[place + 1] * width
        rise = v1 - v
        return cls(v, b, 3.0 * rise - 2.0 * b - b1, b + b1 - 2.0 * rise)

    def __call__(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values and derivatives in s."""
        value = self.a + s * (self.b + s * (self.c + s * self.d))
        return value, self.b + s * (2.0 * self.c + 3.0 * s * self.d)


def _log_integral(spline: _Cubic, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the logarithm of the integral of exp(spline) from `start` over `length`."""
    total = np.zeros(len(start))
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        s = start + length * node
        total += weight * np.exp(s * (spline.b + s * (spline.c + s * spline.d)))
    with np.errstate(divide="ignore"):
        return spline.a + np.log(total) + np.log(length)


def _log_hazard(a: np.ndarray) -> np.ndarray:
    """Return log(phi(a)/Phi(-a)) of the standard normal distribution."""
    return 0.5 * math.log(2.0 / math.pi) - np.log(erfcx(a / math.sqrt(2.0)))
