"""The price of every segment of a column in constant time: exact Gaussian likelihoods from cumulative sums."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.segmentation.noise import Noise

_LOG_TWO_PI = float(np.log(2.0 * np.pi))
_LEAST_SPREAD = 1e-4
_RELATIVE_FLOOR = 1e-8
"""Variance of a column, over its whole one, that is taken for rounding: constant stretches would be priceless without it."""


def rounding_variance(column: np.ndarray) -> float:
    """Variance that rounding to the steps in which the values come leaves, and a floor where they come in none."""
    steps = np.diff(np.unique(column))
    return (float(steps.min()) ** 2 / 12.0 if len(steps) else 0.0) + _RELATIVE_FLOOR * float(column.var())


class ColumnCosts:
    r"""Prices of the segments of one column under a line (or a constant) plus autoregressive noise.

    The generalised least squares of a segment need three (six) sums of products of the whitened column, constant and time. Beyond
    the first `order` steps of a segment whitening is one filter for all, so that differences of cumulative sums serve; what
    the first steps add depends on the start alone. With coefficients that are a priori uniform, the value at the middle of the
    segment over the range R of the column and the rise along it over R as well, minus twice the logarithm of the marginal
    likelihood is, up to what all segmentations share,

    .. math:: \frac{\mathrm{RSS}}{\sigma^2} + \log\det\Omega + \log\det\frac{X^\top \Omega^{-1} X}{2 \pi \sigma^2} + 2 \log V .

    Parameters
    ----------
    column : array of shape (n,)
        Values, not all equal.
    noise : Noise
        Correlation of the noise.
    degree : {0, 1}
        Of the polynomial: constants or lines.
    precision : array of shape (n,)
        One over the relative standard deviation of the innovations at each step.
    extent : float, optional
        R; the range of the column.
    """

    def __init__(
        self, column: np.ndarray, noise: Noise, degree: int, precision: np.ndarray, extent: float | None = None
    ) -> None:
        n = len(column)
        self.n, self.noise, self.degree = n, noise, degree
        self.coefficients = degree + 1
        self.log_det = noise.log_det
        self.floor = rounding_variance(column)
        self._log_range = float(np.log(np.ptp(column) if extent is None else extent))
        time = (np.arange(n) - 0.5 * (n - 1)) / n
        self._terms = [np.ones(n), time, column] if degree else [np.ones(n), column]
        self._until_end = self._later_steps(precision)
        after = np.minimum(np.arange(n + 1) + noise.order, n)
        self._from_start = self._first_steps(precision) - self._until_end[:, after]

    def _pairs(self, rows: list[np.ndarray]) -> np.ndarray:
        """Products in the order 11, 1t, 1y, tt, ty, yy."""
        return np.array([rows[i] * rows[j] for i in range(len(rows)) for j in range(i, len(rows))])

    def _first_steps(self, precision: np.ndarray) -> np.ndarray:
        """What the steps without a full past add, by the start of the segment."""
        size = len(self._terms)
        out = np.zeros((size * (size + 1) // 2, self.n + 1))
        for i in range(self.noise.order):
            rows = []
            for term in self._terms:
                left = np.zeros(self.n + 1)
                for lag, factor in enumerate(self.noise.predictors[i]):
                    left[: self.n - i] += factor * term[i - lag : self.n - lag]
                left[: self.n - i] *= precision[i:] / np.sqrt(self.noise.variances[i])
                rows.append(left)
            out += self._pairs(rows)
        return out

    def _later_steps(self, precision: np.ndarray) -> np.ndarray:
        """Cumulative sums over the steps with a full past."""
        rows = [precision * np.convolve(term, self.noise.predictors[-1])[: self.n] for term in self._terms]
        products = self._pairs(rows)
        products[:, : self.noise.order] = 0.0
        return np.concatenate([np.zeros((len(products), 1)), np.cumsum(products, axis=1)], axis=1)

    def _moments(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return self._from_start[:, start] + self._until_end[:, end]

    def fit(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Level at time 0 and slope, residual sum of squares, and log det of the normal equations, of segments."""
        moments = self._moments(start, end)
        if not self.degree:
            one, first, square = moments
            level = first / one
            return np.array([level, np.zeros_like(level)]), square - first * level, np.log(one)
        one, by_time, first, time, slope_part, square = moments
        middle = by_time / one
        # Differences of long sums lose digits in short segments: a share of what a filtered line has at least is the floor.
        spread = np.maximum(time - by_time * middle, _LEAST_SPREAD * one * ((end - start) / self.n) ** 2)
        co_moment = slope_part - first * middle
        slope, level = co_moment / spread, first / one
        rss = square - first * level - slope * co_moment
        return np.array([level - slope * middle, slope]), rss, np.log(one) + np.log(spread)

    def parts(self, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residual sums of squares, rounding counted in, and all of the price that does not depend on the variance."""
        _, rss, log_information = self.fit(start, end)
        length = end - start
        volume = self._log_range + (self.degree * (self._log_range + np.log(self.n / length)))
        price = log_information + 2.0 * volume - self.coefficients * _LOG_TWO_PI + self.log_det
        return np.maximum(rss, 0.0) + self.floor * length, price

    def residuals(self, bounds: np.ndarray) -> np.ndarray:
        """The column less its lines between `bounds`."""
        (level, slope), _, _ = self.fit(bounds[:-1], bounds[1:])
        lengths = np.diff(bounds)
        time = self._terms[1] if self.degree else 0.0
        return np.asarray(self._terms[-1] - np.repeat(level, lengths) - np.repeat(slope, lengths) * time)
