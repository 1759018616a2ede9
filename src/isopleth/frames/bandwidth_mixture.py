"""Density of one column: a mixture of kernel densities of several bandwidths and a wide normal tail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isopleth.frames.quantiles import END_MEAN, ENDS, QUARTILE_MEAN, QUARTILES, means_between

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

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Values:
    """Distinct values of a column, in increasing order."""

    x: np.ndarray  # (u,): values, from which a central value is subtracted and which are divided by a typical deviation
    share: np.ndarray  # (u,): shares of the weight
    # shift, unit: central value and the typical deviation, in the units of the column
    shift: float
    unit: float

    @classmethod
    def of(cls, column: np.ndarray, weights: np.ndarray) -> Values:
        """Merge equal values."""
        order = np.argsort(column, kind="stable")
        share = weights[order] / weights.sum()
        shift = float(column[order[len(column) // 2]])
        with np.errstate(over="ignore"):
            y = np.clip(column[order] - shift, -1e300, 1e300)
        total = np.cumsum(share)
        low, _, high = means_between(y, total / total[-1], ENDS)
        gap = max(_EQUAL * (high - low) / (2 * END_MEAN), _EQUAL_OF_ALL * deviation(y, share), 0.0)
        places = np.cumsum(np.diff(y, prepend=y[0]) > gap)
        merged = np.bincount(places, share)
        y = np.bincount(places, share * y) / merged
        unit = min(_quartile_range(y), deviation(y, merged)) or 1.0
        return cls(y / unit, merged, shift, unit)


def deviation(x: np.ndarray, share: np.ndarray) -> float:
    """Return the standard deviation of values, for numbers of any size."""
    largest = float(np.abs(x).max()) or 1.0
    y = x / largest
    return largest * math.sqrt(share @ (y - share @ y) ** 2)


def _quartile_range(x: np.ndarray) -> float:
    """Return the distance between the quartiles of sorted values, relative to a standard normal variable.

    Each distinct value counts once, so that it is 0 for a single value only.
    """
    low, _, high = means_between(x, np.arange(1, len(x) + 1) / len(x), QUARTILES)
    return float(high - low) / (2 * QUARTILE_MEAN)


@dataclass(frozen=True)
class BandwidthMixture:
    """Density (1 - tau) sum_k pi_k sum_b m_b N(c_b, h_k^2 + v_b) + tau N(mean, deviation^2)."""

    # centers, variances, masses: (b,): means, variances and weights of bins of values
    centers: np.ndarray
    variances: np.ndarray
    masses: np.ndarray
    # bandwidths, shares: (k,): h and (1 - tau) pi
    bandwidths: np.ndarray
    shares: np.ndarray
    tail: tuple[float, float, float]  # tau, mean, deviation

    @classmethod
    def of(cls, values: Values) -> BandwidthMixture:
        """Fit the weights of the bandwidths and of the tail, by EM on densities that leave out the value itself."""
        x, share = values.x, values.share
        u = len(x)
        bandwidths = FACTORS * 1.06 * u**-0.2
        bins = _Bins.of(x, share)
        mean, wide = float(share @ x), _TAIL_WIDTH * max(deviation(x, share), 1.0)
        chosen = np.arange(u) if u <= _TEST_VALUES else (np.arange(_TEST_VALUES) * u + u // 2) // _TEST_VALUES
        densities = np.stack([bins.without(chosen, h) for h in bandwidths], axis=1)
        tail = np.exp(-0.5 * ((x[chosen] - mean) / wide) ** 2) / (wide * _ROOT_TWO_PI)
        shares, tau = _fit_shares(densities, tail, share[chosen], 1.0 / (u + 1))
        return cls(bins.centers, bins.variances, bins.masses, bandwidths, shares, (tau, mean, wide))

    def log_density(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithm of the density and its derivative."""
        total, slope = np.zeros(len(x)), np.zeros(len(x))
        for h, share in zip(self.bandwidths, self.shares, strict=True):
            deviations = np.sqrt(h * h + self.variances)
            z = (x[:, None] - self.centers) / deviations
            with np.errstate(over="ignore"):
                part = np.exp(-0.5 * z * z)
            total += part @ (share * self.masses / deviations)
            slope -= np.einsum("nb,nb,b->n", part, z, share * self.masses / deviations**2)
        tau, mean, wide = self.tail
        r = (x - mean) / wide
        log_tail = math.log(tau / wide) - 0.5 * r * r
        with np.errstate(divide="ignore", invalid="ignore"):
            log_total = np.logaddexp(np.log(total), log_tail)
            kernels = np.where(total > 0.0, slope / total, 0.0)
        tail_share = np.exp(log_tail - log_total)
        return log_total - math.log(_ROOT_TWO_PI), (1.0 - tail_share) * kernels - tail_share * r / wide


@dataclass(frozen=True)
class _Bins:
    """Bins of equal numbers of distinct values; a value across an edge is split between both sides."""

    # centers, variances, masses: (b,): means, variances and weights of the bins
    centers: np.ndarray
    variances: np.ndarray
    masses: np.ndarray
    # x, share: (u,): distinct values and their weights
    x: np.ndarray
    share: np.ndarray
    # value, place, mass: (p,): overlaps of values with bins: indices of both, and the weight of the value in the bin
    value: np.ndarray
    place: np.ndarray
    mass: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, share: np.ndarray) -> _Bins:
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
        return cls(centers, variances, masses, x, share, value, place, mass)

    def without(self, chosen: np.ndarray, h: float) -> np.ndarray:
        """Return the density of bandwidth `h` at some of the values, from all values but the value itself."""
        x = self.x[chosen]
        deviations = np.sqrt(h * h + self.variances)
        with np.errstate(over="ignore"):
            kernels = np.exp(-0.5 * ((x[:, None] - self.centers) / deviations) ** 2) * (self.masses / deviations)
        row = np.full(len(self.x), -1)
        row[chosen] = np.arange(len(chosen))
        used = row[self.value] >= 0
        value, place, mass = self.value[used], self.place[used], self.mass[used]
        kernels[row[value], place] = self._own_bins(value, place, mass, h)
        return kernels.sum(axis=1) / (_ROOT_TWO_PI * np.maximum(1.0 - self.share[chosen], 1e-300))

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


def _fit_shares(densities: np.ndarray, tail: np.ndarray, weights: np.ndarray, least: float) -> tuple[np.ndarray, float]:
    """Return the weights of the components and of the tail; the weight of the tail is at least `least`."""
    weights = weights / weights.sum()
    largest = np.maximum(densities.max(axis=1), np.maximum(tail, 1e-300))[:, None]
    components = np.concatenate([densities, tail[:, None]], axis=1) / largest
    components = np.maximum(components, 1e-100)  # no value may be impossible
    shares = np.full(components.shape[1], 1.0 / components.shape[1])
    for _ in range(_EM_STEPS):
        shares = shares * (components.T @ (weights / (components @ shares)))
        tau = min(max(shares[-1], least), _TAIL_SHARE)
        shares[:-1] *= (1.0 - tau) / shares[:-1].sum()
        shares[-1] = tau
    return shares[:-1], float(shares[-1])
