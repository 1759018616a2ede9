"""Marginal frame: each column is mapped to a standard normal one by a mixture of kernel densities of several bandwidths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

from isopleth.core.arrays import Array, to_numpy
from isopleth.core.laws import means_between
from isopleth.core.scales import deviations
from isopleth.core.threads import check_stopped, slices
from isopleth.frames.base import (
    END_MEAN,
    ENDS,
    QUARTILE_MEAN,
    QUARTILES,
    ColumnMap,
    Frame,
    MapAt,
    by_numpy,
    check_nonnegative,
    like,
    limited,
)

# Bandwidths as factors of Silverman's rule. The narrowest serves spikes, the widest resembles a normal distribution.
FACTORS = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.2, 2.0])

# Most centres of the kernels; more values are binned.
N_CENTRES = 64

# Most values at which the weights of the bandwidths are fitted. Of more, evenly spaced ones are taken.
_TEST_VALUES = 2048

# The fit of the weights takes a fixed number of steps, so that it is continuous in the rows.
_EM_STEPS = 100

# Values nearer than this count as equal: in units of most values, and of all.
_EQUAL, _EQUAL_OF_ALL = 1e-9, 2e-11

# Deviation of the tail, in deviations of the column, and its largest weight.
_TAIL_WIDTH, _TAIL_SHARE = 8.0, 0.5

# Numbers of columns that are computed at once: they stay in the cache of a core.
_BLOCK = 2**15

# Columns that are fitted before the next look whether to stop.
_COLUMNS = 128

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Values:
    """Distinct values of a column in increasing order, and bins of equal numbers of them; one at an edge is in both, in parts."""

    x: np.ndarray  # (u,): values, from which a central value is subtracted and which are divided by a typical deviation
    share: np.ndarray  # (u,): shares of the weight
    # shift, unit: central value and the typical deviation, in the units of the column
    shift: float
    unit: float
    # centers, variances, masses: (b,): means, variances and weights of the bins
    centers: np.ndarray
    variances: np.ndarray
    masses: np.ndarray
    # value, place, mass: (p,): overlaps of values with bins: indices of both, and the weight of the value in the bin
    value: np.ndarray
    place: np.ndarray
    mass: np.ndarray

    @classmethod
    def of_columns(cls, rows: np.ndarray, weights: np.ndarray) -> list[Values]:
        """Merge equal values of each column."""
        order = np.argsort(rows, axis=0, kind="stable")
        ordered, shares = np.take_along_axis(rows, order, axis=0), weights[order] / weights.sum()
        shifts = ordered[len(rows) // 2]
        with np.errstate(over="ignore"):
            y = np.clip(ordered - shifts, -1e300, 1e300)
        total = np.cumsum(shares, axis=0)
        low, _, high = means_between(y, total / total[-1], ENDS)
        ranges, quartiles = (high - low) / (2 * END_MEAN), _quartile_ranges(y)
        return [
            cls._merged(column, share, float(shift), float(near), float(quartile))
            for column, share, shift, near, quartile in zip(y.T, shares.T, shifts, ranges, quartiles, strict=True)
        ]

    @classmethod
    def _merged(cls, y: np.ndarray, share: np.ndarray, shift: float, spread: float, quartiles: float) -> Values:
        """Merge equal ones of sorted values about `shift`, of which most have this deviation, and all these quartiles."""
        whole = _deviation(y, share)
        apart = np.diff(y, prepend=y[0]) > max(_EQUAL * spread, _EQUAL_OF_ALL * whole, 0.0)
        if not apart[1:].all():
            places = np.cumsum(apart)
            merged = np.bincount(places, share)
            y, share = np.bincount(places, share * y) / merged, merged
            quartiles, whole = float(_quartile_ranges(y[:, None])[0]), _deviation(y, share)
        unit = min(quartiles, whole) or 1.0
        return cls._binned(y / unit, share, shift, unit)

    @classmethod
    def _binned(cls, x: np.ndarray, share: np.ndarray, shift: float, unit: float) -> Values:
        """Divide distinct values into bins."""
        u, size = len(x), min(N_CENTRES, len(x))
        start, end = np.arange(u) * size, (np.arange(u) + 1) * size  # in u-ths of a bin, so that edges are exact
        first, last = start // u, (end - 1) // u
        split = last > first
        value = np.concatenate([np.arange(u), np.flatnonzero(split)])
        place = np.concatenate([first, last[split]])
        part = np.concatenate([np.where(split, last * u - start, size), (end - last * u)[split]]) / size
        mass = part * share[value]
        masses = np.bincount(place, mass, size)
        centers = np.bincount(place, mass * x[value], size) / masses
        variances = np.bincount(place, mass * (x[value] - centers[place]) ** 2, size) / masses
        return cls(x, share, shift, unit, centers, variances, masses, value, place, mass)

    def densities_without(self, chosen: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
        """Return the densities of bandwidths at some of the values, from all values but the value itself, (n, k)."""
        row = np.full(len(self.x), -1)
        row[chosen] = np.arange(len(chosen))
        used = row[self.value] >= 0
        value, place, mass = self.value[used], self.place[used], self.mass[used]
        with np.errstate(over="ignore"):
            squares = (self.x[chosen, None] - self.centers) ** 2
        squares[row[value], place] = np.inf
        out = np.empty((len(chosen), len(bandwidths)))
        for k, h, variances, part in self._kernels(squares, bandwidths):
            out[:, k] = part @ (self.masses / np.sqrt(variances))
            if len(self.centers) < len(self.x):  # else nothing is left of a bin without its value
                out[:, k] += np.bincount(row[value], self._own_bins(value, place, mass, h), len(chosen))
        return out / (_ROOT_TWO_PI * np.maximum(1.0 - self.share[chosen], 1e-300))[:, None]

    def _kernels(
        self, squares: np.ndarray, bandwidths: np.ndarray
    ) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
        """Yield for each bandwidth h, the widest first, its number, h, h^2 + v of the bins, and exp(-squares/(2 (h^2 + v))).

        The last is written anew each time. Where each value is a bin, v is 0, and the kernel of half the bandwidth is the fourth
        power of the one before: most of the time of a column goes into exponentials.
        """
        part, single, last = np.empty_like(squares), len(self.centers) == len(self.x), math.inf
        for k in range(len(bandwidths) - 1, -1, -1):
            h = float(bandwidths[k])
            variances = h * h + self.variances
            if single and abs(last - 2.0 * h) <= 1e-12 * h:
                part *= part
                part *= part
            else:
                np.exp(np.multiply(squares, -0.5 / variances, out=part), out=part)
            last = h
            yield k, h, variances, part

    def _own_bins(self, value: np.ndarray, place: np.ndarray, mass: np.ndarray, h: float) -> np.ndarray:
        """Return the contributions of bins to the density at values in them, without these values."""
        left = self.masses[place] - mass
        some = left > 1e-9 * self.masses[place]
        left = np.where(some, left, 1.0)
        step = self.x[value] - self.centers[place]
        moved = -mass * step / left
        variance = np.maximum((self.masses[place] * self.variances[place] - mass * step**2) / left - moved**2, 0.0)
        squares = h * h + variance
        return np.where(some, left * np.exp(-0.5 * (step - moved) ** 2 / squares) / np.sqrt(squares), 0.0)


def _deviation(x: np.ndarray, share: np.ndarray) -> float:
    """Return the standard deviation of values."""
    return float(deviations(x[:, None], share)[0])


def _quartile_ranges(x: np.ndarray) -> np.ndarray:
    """Return the distance between the quartiles of distinct sorted values of columns, relative to a standard normal variable."""
    share = np.broadcast_to(np.arange(1, len(x) + 1)[:, None] / len(x), x.shape)
    low, _, high = means_between(x, share, QUARTILES)
    return np.asarray(high - low) / (2 * QUARTILE_MEAN)


@dataclass(frozen=True)
class BandwidthMixture:
    """Density (1 - tau) sum_k pi_k sum_b m_b N(c_b, h_k^2 + v_b) + tau N(mean, deviation^2) of bins of values."""

    values: Values  # with the bins b
    # bandwidths, shares: (k,): h and (1 - tau) pi
    bandwidths: np.ndarray
    shares: np.ndarray
    tail: tuple[float, float, float]  # tau, mean, deviation

    @classmethod
    def of_columns(cls, columns: Sequence[Values]) -> list[BandwidthMixture]:
        """Fit the weights of the bandwidths and of the tail, by EM on densities that leave out the value itself."""
        prepared = [_densities(values) for values in columns]
        found = _fit_shares(
            [(densities, weights) for _, densities, weights, _, _ in prepared], [len(v.x) for v in columns]
        )
        return [
            cls(values, bandwidths, shares[:-1], (float(shares[-1]), mean, wide))
            for values, (bandwidths, _, _, mean, wide), shares in zip(columns, prepared, found, strict=True)
        ]

    def log_density(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithm of the density and its derivative."""
        total, slope = np.zeros(len(x)), np.zeros(len(x))
        steps = x[:, None] - self.values.centers
        with np.errstate(over="ignore"):
            squares, moments = steps * steps, np.empty_like(steps)
        for k, _, variances, part in self.values._kernels(squares, self.bandwidths):
            weights = self.shares[k] * self.values.masses / np.sqrt(variances)
            total += part @ weights
            slope -= np.multiply(part, steps, out=moments) @ (weights / variances)
        tau, mean, wide = self.tail
        r = (x - mean) / wide
        log_tail = math.log(tau / wide) - 0.5 * r * r
        with np.errstate(divide="ignore", invalid="ignore"):
            log_total = np.logaddexp(np.log(total), log_tail)
            kernels = np.where(total > 0.0, slope / total, 0.0)
        tail_share = np.exp(log_tail - log_total)
        return log_total - math.log(_ROOT_TWO_PI), (1.0 - tail_share) * kernels - tail_share * r / wide


def _densities(values: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """Return bandwidths, densities of these and of the tail at values, (n, k), weights of these values, and the tail."""
    x, share, u = values.x, values.share, len(values.x)
    bandwidths = FACTORS * 1.06 * u**-0.2
    mean, wide = float(share @ x), _TAIL_WIDTH * max(_deviation(x, share), 1.0)
    chosen = np.arange(u) if u <= _TEST_VALUES else (np.arange(_TEST_VALUES) * u + u // 2) // _TEST_VALUES
    tail = np.exp(-0.5 * ((x[chosen] - mean) / wide) ** 2) / (wide * _ROOT_TWO_PI)
    densities = np.concatenate([values.densities_without(chosen, bandwidths), tail[:, None]], axis=1)
    return bandwidths, densities, share[chosen] / share[chosen].sum(), mean, wide


def _fit_shares(densities: Sequence[tuple[np.ndarray, np.ndarray]], counts: Sequence[int]) -> list[np.ndarray]:
    """Return the weights of the components of columns, from densities and weights at values; that of the tail is the last.

    Columns of as many values are fitted at once. `counts` are the numbers of distinct values, which bound the weight of the tail.
    """
    out = [np.empty(0)] * len(counts)
    lengths = np.array([len(weights) for _, weights in densities])
    for length in np.unique(lengths):
        same = np.flatnonzero(lengths == length)
        for part in slices(len(same), _BLOCK // (length * (len(FACTORS) + 1))):
            places = same[part]
            components, weights = (np.stack(each) for each in zip(*(densities[k] for k in places), strict=True))
            components /= np.maximum(components.max(axis=2, keepdims=True), 1e-300)
            components = np.maximum(components, 1e-100)  # no value may be impossible
            found = _em(components, weights, np.array([1.0 / (counts[k] + 1) for k in places]))
            for k, shares in zip(places, found, strict=True):
                out[k] = shares
    return out


def _em(components: np.ndarray, weights: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return the likeliest weights of components (c, n, k); those of the last are at least `least` and at most a half."""
    shares = np.full((len(components), components.shape[2]), 1.0 / components.shape[2])
    transposed = components.transpose(0, 2, 1)
    for _ in range(_EM_STEPS):
        ratios = weights / (components @ shares[:, :, None])[:, :, 0]
        shares = shares * (transposed @ ratios[:, :, None])[:, :, 0]
        tau = np.clip(shares[:, -1], least, _TAIL_SHARE)
        shares[:, :-1] *= ((1.0 - tau) / shares[:, :-1].sum(axis=1))[:, None]
        shares[:, -1] = tau
    return shares


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


def _by_column(function: Callable[[int, np.ndarray], np.ndarray], Y: np.ndarray) -> np.ndarray:
    """Return `function` of each column, of which there may be none: a marginal of words has a map of no columns."""
    out = np.empty(Y.shape)
    for j in range(Y.shape[1]):
        out[:, j] = function(j, Y[:, j])
    return out


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
        t, log_slopes, gradients = self._values(np.asarray(to_numpy(X), dtype=np.float64))
        return MapAt.of_columns(*(like(part, X) for part in (t, log_slopes, gradients)))

    @by_numpy
    def forward(self, X: np.ndarray) -> np.ndarray:
        return self._values(X)[0]

    @by_numpy
    def log_slopes(self, X: np.ndarray) -> np.ndarray:
        return self._values(X)[1]

    @by_numpy
    def log_slope_gradients(self, X: np.ndarray) -> np.ndarray:
        return self._values(X)[2]

    def _values(self, X: np.ndarray) -> np.ndarray:
        """Return t, log t' and the derivative of log t' of each cell, (3, n, d)."""
        with np.errstate(over="ignore"):
            Y = limited((X - self.shift) / self.unit)
        out = np.empty((3, *Y.shape))
        for part in slices(self.dim, _BLOCK // max(1, len(Y))):
            columns = np.arange(self.dim)[part]
            found = self._value(np.repeat(columns, len(Y)), np.ascontiguousarray(Y[:, part].T).ravel())
            out[:, :, part] = found.reshape(3, len(columns), len(Y)).transpose(0, 2, 1)
        out[1] -= np.log(self.unit)
        out[2] /= self.unit
        return out

    def _value(self, j: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return t, log t' and the derivative of log t' in y of values of columns `j`, which are sorted by these."""
        out = np.empty((3, len(y)))
        far = ~((y >= self.knots[j, 0]) & (y <= self.knots[j, -1]))  # also NaN
        out[:, far] = self._tail(j[far], y[far])
        j, near = j[~far], y[~far]
        place = np.empty(len(near), dtype=np.intp)
        ends = np.searchsorted(j, np.arange(self.dim + 1))
        for column in np.unique(j):
            own = slice(ends[column], ends[column + 1])
            place[own] = np.searchsorted(self.knots[column], near[own], side="right") - 1
        place = np.clip(place, 0, self.knots.shape[1] - 2)
        start = self.knots[j, place]
        out[:, ~far] = self._between(j, place, (near - start) / (self.knots[j, place + 1] - start))
        return out

    def _tail(self, j: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return value, log slope and its derivative beyond the knots, where the column has normal tails."""
        r = (y - self.tail_mean[j]) / self.tail_deviation[j]
        sign = np.sign(r)
        u = -ndtri_exp(self.log_tail[j] + log_ndtr(-np.abs(r)))  # |t|
        # By the hazard of the normal distribution, because the logarithms of the densities would cancel.
        log_slope = _log_hazard(np.abs(r)) - _log_hazard(u) - np.log(self.tail_deviation[j])
        return sign * u, log_slope, sign * (u * np.exp(log_slope) - np.abs(r) / self.tail_deviation[j])

    def _between(self, j: Any, place: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return t, log t' and its derivative at the fraction `s` of the intervals that begin at knots `place` of columns `j`."""
        after, width = place + 1, self.knots[j, place + 1] - self.knots[j, place]
        values, slopes = self.log_density, self.slopes
        cubic = _cubic(values[j, place], values[j, after], slopes[j, place], slopes[j, after], width)
        low = self.below[j, place] < self.above[j, place]
        start, length = np.where(low, 0.0, s), np.where(low, s, 1.0 - s)
        inside = _log_integral(cubic, start, length) + np.log(width)
        outer = np.where(low, self.below[j, place], self.above[j, place + 1])
        t = ndtri_exp(np.minimum(np.logaddexp(outer, inside), -1e-300))
        t = np.where(low, t, -t)
        a, b, c, d = cubic
        log_density, slope = a + s * (b + s * (c + s * d)), b + s * (2.0 * c + 3.0 * s * d)
        log_slope = log_density + 0.5 * t * t + _LOG_ROOT_TWO_PI
        return t, log_slope, slope / width + t * np.exp(log_slope)

    @by_numpy
    def inverse(self, Z: np.ndarray) -> np.ndarray:
        return _by_column(self._inverse, Z) * self.unit + self.shift

    def _inverse(self, j: int, t: np.ndarray) -> np.ndarray:
        """Return the values of a column that map to t."""
        knots = self.knots[j]
        at_knots = np.where(self.below[j] < self.above[j], ndtri_exp(self.below[j]), -ndtri_exp(self.above[j]))
        out = np.empty(len(t))
        far = ~((t >= at_knots[0]) & (t <= at_knots[-1]))  # also NaN
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

    @classmethod
    def of_cells(cls, rows: np.ndarray, weights: np.ndarray) -> MarginalMap:
        """Return the map of columns with gaps (NaN), each by its known cells; one that does not vary is mapped like any other."""
        maps = []
        for column in rows.T:
            known = ~np.isnan(column)
            cells, mass = column[known], weights[known]
            if not known.any() or cells.min() == cells.max():
                cells, mass = _NORMAL, np.ones(len(_NORMAL))
            maps.append(Marginal().fit(cells[:, None], mass))
        return cls(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in maps), strict=True)))


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
        parts: list[tuple[np.ndarray, ...]] = []
        for place in slices(rows.shape[1], min(_BLOCK // len(rows), _COLUMNS)):
            check_stopped()
            values = Values.of_columns(rows[:, place], weights)
            for j in np.flatnonzero(narrow[place]):
                normal = (np.median(rows[:, place][:, j]) + _NORMAL)[:, None]
                (values[j],) = Values.of_columns(normal, np.ones(len(_NORMAL)))
            parts.append(_tabulate(BandwidthMixture.of_columns(values)))
        return MarginalMap(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _tabulate(mixtures: Sequence[BandwidthMixture]) -> tuple[np.ndarray, ...]:
    """Return the parameters of the map of some columns."""
    knots = _knots(mixtures)
    found = [mixture.log_density(own) for mixture, own in zip(mixtures, knots, strict=True)]
    log_density, slopes = np.stack(found, axis=1)
    width = np.diff(knots)
    cubic = _cubic(log_density[:, :-1], log_density[:, 1:], slopes[:, :-1], slopes[:, 1:], width)
    inside = _log_integral(cubic, np.zeros(width.shape), np.ones(width.shape)) + np.log(width)
    tau, mean, deviation = np.array([mixture.tail for mixture in mixtures]).T[:, :, None]
    ends = np.log(tau) + log_ndtr(np.concatenate([knots[:, :1] - mean, mean - knots[:, -1:]], axis=1) / deviation)
    below = np.logaddexp.accumulate(np.concatenate([ends[:, :1], inside], axis=1), axis=1)
    above = np.logaddexp.accumulate(np.concatenate([ends[:, 1:], inside[:, ::-1]], axis=1), axis=1)[:, ::-1]
    total = np.logaddexp(below[:, -1:], ends[:, 1:])
    tail = (mean[:, 0], deviation[:, 0], (np.log(tau) - total)[:, 0])
    place = (np.array([mixture.values.shift for mixture in mixtures]), np.array([m.values.unit for m in mixtures]))
    return *place, knots, log_density - total, slopes, below - total, above - total, *tail


def _knots(mixtures: Sequence[BandwidthMixture]) -> np.ndarray:
    """Return the knots of columns, (c, N_KNOTS); columns of as many centres are computed at once."""
    out, sizes = np.empty((len(mixtures), N_KNOTS)), np.array([len(mixture.values.centers) for mixture in mixtures])
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        some = [mixtures[int(k)] for k in same]
        bandwidths = np.stack([mixture.bandwidths for mixture in some])
        centers, variances = (
            np.stack(each) for each in zip(*((m.values.centers, m.values.variances) for m in some), strict=True)
        )
        narrow, wide = (np.sqrt(h[:, None] ** 2 + variances) for h in (bandwidths[:, 0], bandwidths[:, -1]))
        out[same] = _spaced(centers, narrow, _REACH * wide)
    return out


def _spaced(centers: np.ndarray, narrow: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return knots whose spacing is proportional to the distance to the nearest centre plus the width of its kernel."""
    first, last = centers[:, :1], centers[:, -1:]
    before = first - (centers - reach).min(axis=1, keepdims=True)
    after = (centers + reach).max(axis=1, keepdims=True) - last
    gaps = np.diff(centers)
    # Where the spacings that two neighbours ask for are equal.
    right = np.concatenate([np.clip(0.5 * (gaps + np.diff(narrow)), 0.0, gaps), after], axis=1)
    left = np.concatenate([before, gaps - right[:, :-1]], axis=1)
    right_count, left_count = np.log1p(right / narrow), np.log1p(left / narrow)
    start = np.zeros((len(centers), centers.shape[1] + 1))
    np.cumsum(left_count + right_count, axis=1, out=start[:, 1:])
    count = np.linspace(0.0, start[:, -1], N_KNOTS, axis=1)
    found = [np.searchsorted(ends, at, side="right") for ends, at in zip(start, count, strict=True)]
    place = np.clip(np.stack(found) - 1, 0, centers.shape[1] - 1)
    center, width, start, half = (np.take_along_axis(of, place, axis=1) for of in (centers, narrow, start, left_count))
    offset = count - start - half
    return np.asarray(center + np.sign(offset) * width * np.expm1(np.abs(offset)))


def _cubic(left: np.ndarray, right: np.ndarray, slope: np.ndarray, last: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return the coefficients of 1, s, s^2 and s^3, (4, n), of cubics with these values and slopes at the ends of intervals."""
    b, b1, rise = slope * width, last * width, right - left
    return np.stack([left, b, 3.0 * rise - 2.0 * b - b1, b + b1 - 2.0 * rise])


def _log_integral(cubic: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the logarithm of the integral of exp(cubic) from `start` over `length`, parts of [0, 1]."""
    a, b, c, d = cubic
    total = np.zeros(start.shape)
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        s = start + length * node
        total += weight * np.exp(s * (b + s * (c + s * d)))
    with np.errstate(divide="ignore"):
        return np.asarray(a + np.log(total) + np.log(length))


def _log_hazard(a: np.ndarray) -> np.ndarray:
    """Return log(phi(a)/Phi(-a)) of the standard normal distribution."""
    return 0.5 * math.log(2.0 / math.pi) - np.log(erfcx(a / math.sqrt(2.0)))
