"""Costs of segments under autoregressive noise: exact Gaussian likelihoods, each in constant time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

# Largest absolute reflection coefficient: closer to 1, rounding errors exceed the variance of the innovations.
STABLE = 0.999
_LOG_TWO_PI = float(np.log(2.0 * np.pi))
# Smallest variance of time in a segment, in units of its squared length; smaller ones are rounding errors of cumulative sums.
_LEAST_SPREAD = 1e-4
# Variance that counts as rounding, as a share of the variance of the column. Without it, the likelihood of a constant stretch
# would be infinite.
_RELATIVE_FLOOR = 1e-8
# Difference as a share of the range below which two values count as equal: their rounding errors may differ.
_TINY = 1e-9


@dataclass(frozen=True)
class Noise:
    r"""Stationary autoregressive process :math:`x_t = \sum_i a_i x_{t-i} + \varepsilon_t`, given by reflection coefficients."""

    reflections: tuple[float, ...] = ()  # partial autocorrelations at lags 1, 2, ..., each between -1 and 1

    @property
    def order(self) -> int:
        return len(self.reflections)

    @cached_property
    def predictors(self) -> list[np.ndarray]:
        """Filters (1, -a_1, ..., -a_i) that give the error of a prediction from the last i values, for i = 0 to the order."""
        filters = [np.ones(1)]
        for reflection in self.reflections:
            longer = np.append(filters[-1], 0.0)
            filters.append(longer - reflection * longer[::-1])
        return filters

    @cached_property
    def variances(self) -> np.ndarray:
        """Variances of predictions from i = 0 to `order` values, divided by that of the innovations."""
        remaining = np.cumprod([1.0, *(1.0 - reflection**2 for reflection in self.reflections)])
        return np.asarray(remaining / remaining[-1])

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of the covariance of a segment, in units of the innovations' variance."""
        return float(np.log(self.variances[:-1]).sum())

    def innovations(self, residuals: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Return the prediction errors within each segment, scaled to equal variance."""
        out = np.empty(len(residuals))
        for start, end in pairwise(bounds):
            own = residuals[start:end]
            left = filtered(self.predictors[-1], [1.0], own)
            for i in range(min(self.order, len(own))):
                left[i] = self.predictors[i] @ own[i::-1] / np.sqrt(self.variances[i])
            out[start:end] = left
        return out

    def series(self, innovations: np.ndarray) -> np.ndarray:
        """Return a stationary series with these innovations."""
        out = filtered([1.0], self.predictors[-1], innovations)
        if self.order:  # the first values have no past: they follow the stationary distribution
            for i in range(min(self.order, len(out))):
                past = self.predictors[i][1:] @ out[i - 1 :: -1][:i] if i else 0.0
                out[i] = innovations[i] * np.sqrt(self.variances[i]) - past
            state = [
                -self.predictors[-1][j + 1 :] @ out[self.order - 1 :: -1][: self.order - j] for j in range(self.order)
            ]
            out[self.order :] = filtered([1.0], self.predictors[-1], innovations[self.order :], state)
        return out


def fitted_noise(residuals: np.ndarray, bounds: np.ndarray, most: int) -> Noise:
    """Estimate the noise by Burg's method from pairs within segments; the order, at most `most`, minimises the BIC."""
    n = len(residuals)
    position = np.arange(n) - np.repeat(bounds[:-1], np.diff(bounds))
    forward, backward = residuals.copy(), residuals.copy()
    found: list[float] = []
    criterion, best, order = 0.0, 0.0, 0
    for lag in range(1, most + 1):
        here = np.flatnonzero(position >= lag)
        ahead, behind = forward[here], backward[here - 1]
        power = ahead @ ahead + behind @ behind
        if len(here) < 4 or power <= 0.0:
            break
        reflection = float(np.clip(2.0 * (ahead @ behind) / power, -STABLE, STABLE))
        forward[here], backward[here] = ahead - reflection * behind, behind - reflection * ahead
        found.append(reflection)
        criterion += n * np.log1p(-(reflection**2)) + np.log(n)
        if criterion < best:
            best, order = criterion, lag
    return Noise(tuple(found[:order]))


def rounding_variance(columns: np.ndarray) -> np.ndarray:
    """Return the variance of rounding to the smallest difference, plus a small share of the column's, along the last axis."""
    ordered = np.sort(columns, axis=-1)
    steps = np.diff(ordered, axis=-1)
    tiny = _TINY * (ordered[..., -1:] - ordered[..., :1])
    least = steps.min(axis=-1, initial=np.inf, where=steps > tiny)
    return np.where(np.isfinite(least), least, 0.0) ** 2 / 12.0 + _RELATIVE_FLOOR * columns.var(axis=-1)


def filtered(b: Any, a: Any, x: np.ndarray, state: Any = None) -> np.ndarray:
    """Return scipy.signal.lfilter of a series; that module is imported with the first series, because it takes a while."""
    from scipy.signal import lfilter

    return np.asarray(lfilter(b, a, x) if state is None else lfilter(b, a, x, zi=state)[0])


class SegmentCosts:
    r"""Costs of segments, each a constant or a line plus autoregressive noise, for all columns at once.

    Beyond the first `order` steps one filter whitens all segments, so differences of cumulative sums give what least squares
    need. With uniform priors over the range R of level and rise, minus twice the log marginal likelihood is

    .. math:: \frac{\mathrm{RSS}}{\sigma^2} + \log\det\Omega + \log\det\frac{X^\top \Omega^{-1} X}{2 \pi \sigma^2} + 2 \log V .
    """

    def __init__(
        self,
        values: np.ndarray,
        noises: tuple[Noise, ...],
        degree: int,
        precision: np.ndarray,
        extents: np.ndarray | None = None,
    ) -> None:
        columns = np.ascontiguousarray(values.T)
        n = columns.shape[1]
        self.n, self.noises, self.degree = n, noises, degree
        self.coefficients = degree + 1
        self._log_dets = np.array([[noise.log_det] for noise in noises])
        self._log_ranges = np.log(np.ptp(columns, axis=1) if extents is None else extents)[:, None]
        time = (np.arange(n) - 0.5 * (n - 1)) / n
        self._terms = [np.ones((1, n)), time[None], columns] if degree else [np.ones((1, n)), columns]
        orders = [noise.order for noise in noises]
        self._of_order = {
            order: np.array([c for c in range(len(orders)) if orders[c] == order]) for order in set(orders)
        }
        self._until_end = self._later_steps(precision)
        self._from_start = self._first_steps(precision)
        for order, chosen in self._of_order.items():
            after = np.minimum(np.arange(n + 1) + order, n)
            self._from_start[:, chosen] -= self._until_end[:, chosen[:, None], after]

    @cached_property
    def floors(self) -> np.ndarray:
        """Variance of the rounding errors of each column, of shape (d,)."""
        return rounding_variance(self._terms[-1])

    def _pairs(self, rows: list[np.ndarray]) -> np.ndarray:
        """Return products in the order 11, 1t, 1y, tt, ty, yy."""
        return np.array([rows[i] * rows[j] for i in range(len(rows)) for j in range(i, len(rows))])

    def _filtered(self, filters: np.ndarray, chosen: np.ndarray, first: int) -> list[np.ndarray]:
        """Apply to the terms of each chosen column its row of `filters`, from step `first` on, where all lags exist."""
        out = []
        for term in self._terms:
            own = term[chosen] if len(term) > 1 else term
            left = np.zeros((len(chosen), self.n - first))
            for lag in range(filters.shape[1] - 1, -1, -1):  # the oldest first
                left += filters[:, lag, None] * own[:, first - lag : self.n - lag]
            out.append(left)
        return out

    def _first_steps(self, precision: np.ndarray) -> np.ndarray:
        """Return the sums over the first steps of a segment, which lack some lags, by the start of the segment."""
        size = len(self._terms)
        out = np.zeros((size * (size + 1) // 2, len(self.noises), self.n + 1))
        for i in range(max(self._of_order)):
            chosen = np.concatenate([some for order, some in self._of_order.items() if order > i])
            filters = np.array([self.noises[c].predictors[i] for c in chosen])
            spreads = np.sqrt([self.noises[c].variances[i] for c in chosen])
            weights = precision[i:] / spreads[:, None]
            rows = [left * weights for left in self._filtered(filters, chosen, i)]
            out[:, chosen, : self.n - i] += self._pairs(rows)
        return out

    def _later_steps(self, precision: np.ndarray) -> np.ndarray:
        """Return cumulative sums over the steps for which all lags exist."""
        size = len(self._terms)
        out = np.zeros((size * (size + 1) // 2, len(self.noises), self.n + 1))
        for order, chosen in self._of_order.items():
            filters = np.array([self.noises[c].predictors[-1] for c in chosen])
            rows = [precision[order:] * left for left in self._filtered(filters, chosen, order)]
            out[:, chosen, order + 1 :] = np.cumsum(self._pairs(rows), axis=2)
        return out

    def _moments(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return self._from_start.take(start, axis=2) + self._until_end.take(end, axis=2)

    def fit(self, start: np.ndarray, end: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """Fit segments; return level at 0, slope, residuals squared and log det of the equations, each of shape (d, m)."""
        moments = self._moments(start, end)
        if not self.degree:
            one, first, square = moments
            level = first / one
            return (level, np.zeros_like(level)), square - first * level, np.log(one)
        one, by_time, first, time, slope_part, square = moments
        middle = by_time / one
        # In short segments, differences of long sums lose digits.
        spread = np.maximum(time - by_time * middle, _LEAST_SPREAD * one * ((end - start) / self.n) ** 2)
        co_moment = slope_part - first * middle
        slope, level = co_moment / spread, first / one
        rss = square - first * level - slope * co_moment
        return (level - slope * middle, slope), rss, np.log(one) + np.log(spread)

    def parts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residual sums of squares, with rounding errors added, and the part of the cost without the variance."""
        _, rss, log_information = self.fit(start, end)
        length = end - start
        volume = self._log_ranges + (self.degree * (self._log_ranges + np.log(self.n / length)))
        cost = log_information + 2.0 * volume - self.coefficients * _LOG_TWO_PI + self._log_dets
        return np.maximum(rss, 0.0) + self.floors[:, None] * length, cost

    def residuals(self, bounds: np.ndarray) -> np.ndarray:
        """Subtract the fitted lines of segments from the columns; shape (d, n)."""
        (level, slope), _, _ = self.fit(bounds[:-1], bounds[1:])
        lengths = np.diff(bounds)
        time = self._terms[1] if self.degree else 0.0
        return np.asarray(
            self._terms[-1] - np.repeat(level, lengths, axis=1) - np.repeat(slope, lengths, axis=1) * time
        )
