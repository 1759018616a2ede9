r"""Law of numbers of which some are known as intervals, and points within the intervals.

A power of the number is taken as normal, :math:`(y^\lambda - 1)/\lambda \sim N(m(x), s^2)` with :math:`0 \le \lambda \le 1`
(the logarithm for 0; Box and Cox, JRSS B 26, 1964), or the number itself where a known one is negative. An interval has the
likelihood :math:`\Phi(b) - \Phi(a)` (Tobin, Econometrica 26, 1958). The far tail away from the limits also counts as an interval,
so that a few giants do not decide how the law goes on beyond the limit. Nothing but such a form can say what is beyond a
limit below which no number is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr, ndtri

from isopleth.core.interval_cells import IntervalCells

# Share of the known numbers, farthest from the limits, that count as intervals, and the fewest numbers of which one may.
_FAR_TAIL, _FEWEST_WITH_TAIL = 0.25, 20
# Distinct known numbers below which no law is fitted, and those that stand for more of them.
_FEWEST_NUMBERS, _MOST_NUMBERS = 3, 2000
# Levels, in the middle of parts of equal probability, at which cells are completed, and whose mean is that of an interval.
LEVELS, _FINE_LEVELS = (np.arange(4) + 0.5) / 4, (np.arange(64) + 0.5) / 64


def is_positive(low: np.ndarray, high: np.ndarray) -> bool:
    """Tell whether the numbers of a column can be taken to be 0 or more: no known one and no limit speaks against it."""
    limits, ends = high[low != high], np.concatenate([low, high])
    ends = ends[np.isfinite(ends)]
    return bool(len(ends)) and bool((ends >= 0.0).all() and (ends > 0.0).any() and (limits > 0.0).all())


def has_few_numbers(low: np.ndarray, high: np.ndarray) -> bool:
    """Tell whether too few distinct numbers are known for a law to be fitted to cells."""
    return len(np.unique(low[low == high])) < _FEWEST_NUMBERS


def log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the log probability of intervals under the standard normal law, without loss of digits far out."""
    flipped = low > 0.0
    a, b = np.where(flipped, -high, low), np.where(flipped, -low, high)
    below, above = log_ndtr(a), log_ndtr(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(above + np.log1p(-np.exp(np.minimum(below - above, 0.0))))


def truncated_normal_quantile(level: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return quantiles of standard normal laws that are cut off at intervals; always inside them."""
    flipped = low > 0.0
    a, b = np.where(flipped, -high, low), np.where(flipped, -low, high)
    u = np.where(flipped, 1.0 - level, level)
    found = ndtri(ndtr(a) + u * (ndtr(b) - ndtr(a)))
    with np.errstate(invalid="ignore", divide="ignore"):  # far out, the tail is exponential
        rate = np.maximum(-b, 1.0)
        far = b + np.log(np.maximum(u + (1.0 - u) * np.exp(-np.minimum(rate * (b - a), 700.0)), 1e-300)) / rate
    found = np.where(np.isfinite(found) & (b > -30.0), found, far)
    return np.where(flipped, -np.clip(found, a, b), np.clip(found, a, b))


def normal_moments(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of standard normal laws that are cut off at intervals."""
    mass = log_mass(low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        f, g = (np.exp(-0.5 * end * end - mass) / np.sqrt(2.0 * np.pi) for end in (low, high))
        mean = np.where(np.isfinite(mass), f - g, 0.0)
        ends = np.where(np.isfinite(low), low, 0.0) * f - np.where(np.isfinite(high), high, 0.0) * g
    mean, lost = np.clip(mean, low, high), ~np.isfinite(mean)
    mean[lost] = truncated_normal_quantile(np.full(int(lost.sum()), 0.5), low[lost], high[lost])
    square = np.where(np.isfinite(ends), 1.0 + ends - mean**2, 0.0)
    return mean, np.clip(square, 0.0, 1.0)


@dataclass(frozen=True)
class PowerNormal:
    """Normal law of a power of a number."""

    power: float
    unit: float  # the number is divided by it before
    positive: bool  # whether the number can only be 0 or more
    mean: float  # of the power
    deviation: float

    @classmethod
    def fit(cls, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> Self:
        """Fit by the likelihood of cells from `low` to `high`, which are equal for known numbers."""
        law = cls.unfitted(low, high)
        if has_few_numbers(low, high):
            return law
        return law._fitted(*_thinned(*law.judged(low, high, weights), weights))

    @classmethod
    def unfitted(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """Return the law of few numbers: about the limits, and as wide as they are large."""
        known = low == high
        ends = np.concatenate([low[known], low[~known], high[~known]])
        ends = ends[np.isfinite(ends)]
        positive = is_positive(low, high)
        unit = float(np.median(np.abs(ends[ends != 0.0]))) if (ends != 0.0).any() else 1.0
        law = cls(1.0, unit, positive, 0.0, 1.0)
        values = law.forward(ends) if len(ends) else np.zeros(1)
        width = float(np.ptp(values)) or float(np.abs(values).max()) or 1.0
        return replace(law, mean=float(np.median(values)), deviation=width)

    def judged(
        self, low: np.ndarray, high: np.ndarray, weights: np.ndarray, far: float = _FAR_TAIL
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells as the likelihood takes them: zeros of a positive number, and the far tail, are intervals."""
        low, high = low.copy(), high.copy()
        known = low == high
        if self.positive:
            some = np.concatenate([high[known], high[~known], low[~known]])
            high[known & (high <= 0.0)] = some[np.isfinite(some) & (some > 0.0)].min()
            low[low <= 0.0] = -np.inf
        above, below = ((~known & np.isinf(end)) @ weights for end in (high, low))
        values, order = low[known], np.argsort(low[known], kind="stable")
        share = np.cumsum(weights[known][order]) / max(float(weights[known].sum()), 1e-300)
        if len(values) >= _FEWEST_WITH_TAIL and above != below:
            level = 1.0 - far if below > above else far
            end = np.interp(level, share, values[order])
            if below > above:
                low[known & (low > end)], high[known & (high > end)] = end, np.inf
            else:
                high[known & (high < end)], low[known & (low < end)] = end, -np.inf
        return low, high

    def _fitted(self, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> Self:
        """Return the law of the largest likelihood."""
        known, share = low == high, weights / weights.sum()
        logs = np.log(low[known] / self.unit) if self.positive else np.zeros(int(known.sum()))
        slopes = share[known] @ logs

        def loss(theta: np.ndarray) -> float:
            law = self._with(theta)
            a, b = ((law.forward(end) - law.mean) / law.deviation for end in (low, high))
            found = share[known] @ (-0.5 * a[known] ** 2) - share[known].sum() * theta[1] + (law.power - 1.0) * slopes
            return float(-(found + share[~known] @ np.maximum(log_mass(a[~known], b[~known]), -1e6)))

        z = replace(self, power=0.5 if self.positive else 1.0).forward(low[known])
        start = np.array([z.mean(), np.log(z.std() or 1.0), 0.5])
        steps = np.exp(start[1]) * np.array([[0.3, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        steps[1, 1], steps[2, 2] = 0.3, 0.3
        found = minimize(
            loss,
            start,
            method="Nelder-Mead",
            bounds=[(None, None), (start[1] - 20.0, start[1] + 20.0), (0.0, 1.0)],
            options={
                "initial_simplex": np.vstack([start, start + steps]),
                "xatol": 1e-9,
                "fatol": 1e-12,
                "maxfev": 900,
            },
        )
        return self._with(found.x)

    def _with(self, theta: np.ndarray) -> Self:
        power = float(np.clip(theta[2], 0.0, 1.0)) if self.positive else 1.0
        return replace(self, power=power, mean=float(theta[0]), deviation=float(np.exp(theta[1])))

    def forward(self, y: np.ndarray) -> np.ndarray:
        """Return powers of numbers."""
        if not self.positive:
            return y / self.unit
        with np.errstate(divide="ignore", over="ignore"):
            logs = np.log(np.maximum(y, 0.0) / self.unit)
            if self.power < 1e-4:  # expm1 would lose no digits, but 0 has no power
                return logs
            return np.where(y == -np.inf, -np.inf, np.expm1(self.power * logs) / self.power)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Return numbers of powers."""
        if not self.positive:
            return z * self.unit
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            logs = z if self.power < 1e-4 else np.log1p(np.maximum(self.power * z, -1.0)) / self.power
            return np.asarray(self.unit * np.exp(np.minimum(logs, 700.0)))

    def between(
        self, low: np.ndarray, high: np.ndarray, levels: np.ndarray, mean: np.ndarray | None = None
    ) -> np.ndarray:
        """Return quantiles of the law within intervals, (n, k), at levels (k,) or (n, k); `mean` may be that of each row."""
        centre = np.full(len(low), self.mean) if mean is None else mean
        least = np.maximum(low, 0.0) if self.positive else low
        a, b = ((self.forward(end) - centre) / self.deviation for end in (least, high))
        levels = np.broadcast_to(levels, (len(low), levels.shape[-1]))
        ends = (np.repeat(end, levels.shape[1]) for end in (a, b))
        z = truncated_normal_quantile(levels.ravel(), *ends).reshape(levels.shape)
        found = self.inverse(centre[:, None] + self.deviation * z)
        return np.clip(found, least[:, None], high[:, None])

    def means(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the mean within intervals."""
        return self.between(low, high, _FINE_LEVELS).mean(axis=1)


def _thinned(low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cells in order with equal ones merged, and at most some thousand known ones, which stand for those beside them."""
    pairs, place = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    mass = np.bincount(place.ravel(), weights)
    known = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(known) <= _MOST_NUMBERS:
        return pairs[:, 0], pairs[:, 1], mass
    group = np.arange(len(known)) * _MOST_NUMBERS // len(known)
    total = np.bincount(group, mass[known])
    values = np.bincount(group, mass[known] * pairs[known, 0]) / total
    others = np.setdiff1d(np.arange(len(pairs)), known)
    ends = [np.concatenate([values, pairs[others, side]]) for side in (0, 1)]
    return ends[0], ends[1], np.concatenate([total, mass[others]])


@dataclass(frozen=True)
class IntervalPoints:
    """Points that stand for intervals as inputs: the mean within the interval, by the law of the column alone.

    A point is a function of the interval and no other cell, so that rows of the fit and new rows have the same.
    """

    laws: Mapping[str, PowerNormal]  # by the place of the column

    @classmethod
    def of(cls, rows: np.ndarray, limits: IntervalCells, weights: np.ndarray) -> Self:
        """Fit the laws of the columns that have intervals."""
        laws = {}
        for j in limits.columns.tolist():
            low, high = limits.ends(rows[:, j], j)
            some = ~np.isnan(high) & (weights > 0.0)
            if (low[some] != high[some]).any():
                laws[str(j)] = PowerNormal.fit(low[some], high[some], weights[some])
        return cls(laws)

    def __call__(self, rows: np.ndarray, limits: IntervalCells) -> np.ndarray:
        """Return rows with points in the place of intervals."""
        if not len(limits):
            return rows
        out = rows.copy()
        for j in limits.columns.tolist():
            where, low, high = limits.of(j)
            ends, place = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
            out[where, j] = self._means(j, ends[0], ends[1])[place.ravel()]
        return out

    def at(self, column: int, low: float, high: float) -> float:
        """Return the point of one interval."""
        return float(self._means(column, np.array([low]), np.array([high]))[0])

    def _means(self, column: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        if str(column) in self.laws:
            return self.laws[str(column)].means(low, high)
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, 0.5 * (low + high)))
        return np.asarray(middle)  # a column without limits at fit
