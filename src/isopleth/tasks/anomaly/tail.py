"""Tail shares of evidence: the ranks of the rows and, beyond the most extreme eighth, a fitted tail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

# Tail share beyond which the tail is fitted; the rows between it and the median are assumed to be ordinary.
ORDINARY = 0.125
HEAVIEST = 50.0  # shapes beyond it would overflow and say no more
# Asymptotic variance of Pickands' estimate at shape 0, times n: 3 / (4 log(2)^4) for each of the n/8 rows in the last
# quantile.
SHAPE_VARIANCE = 3.0 / (4.0 * math.log(2.0) ** 4) / ORDINARY


@dataclass(frozen=True)
class Tail:
    r"""Law of one kind of evidence among the training rows, higher values being the less likely.

    Up to the most extreme eighth of the rows the tail share of a value is the share of rows at least as extreme.
    Beyond, it is the smaller of that share and that of a generalised Pareto tail through the quantiles at 1/2, 1/4
    and 1/8 (Pickands 1975), with a shape of at least 0: the log density of a Gaussian and of a power law both have
    exponential tails, which is the shape 0. So the rows among the most extreme eighth have no influence on the law
    that judges them, and values beyond all rows still differ.

    Parameters
    ----------
    law : EmpiricalLaw
        Law of the training rows.
    start : float
        Begin of the fitted tail: the quantile at 1/8 from above.
    share : float
        The tail share there.
    width : float
        Scale of the fitted tail; 0 if all values are equal and there is no tail to fit.
    shape : float
        Shape parameter of the tail.
    """

    law: EmpiricalLaw
    start: float
    share: float
    width: float
    shape: float

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray, errors: float = 0.0) -> Self:
        """Fit to the `values` of training rows; `errors` standard errors are added to the shape."""
        law = EmpiricalLaw.of(values, weights)
        half, quarter, eighth = (law.upper(share) for share in (4 * ORDINARY, 2 * ORDINARY, ORDINARY))
        near, far = quarter - half, eighth - quarter
        if near <= 0.0 or far <= 0.0:
            return cls._beyond_ties(law)
        shape = math.log2(far / near) + errors * math.sqrt(SHAPE_VARIANCE / law.weight)
        if shape <= 0.0:
            # The mean slope over both octaves: their ratio says that the tail is no heavier than exponential.
            return cls(law, eighth, ORDINARY, (near + far) / (2.0 * math.log(2.0)), 0.0)
        shape = min(shape, HEAVIEST)
        return cls(law, eighth, ORDINARY, shape * 2.0**shape * far / (2.0**shape - 1.0), shape)

    @classmethod
    def _beyond_ties(cls, law: EmpiricalLaw) -> Self:
        """Fit a tail to a law with too many ties: beyond the last value it continues with the mean slope before it."""
        last = float(law.values[-1])
        share = float(law.at_least(law.values[-1:])[0]) / law.weight
        for before in (ORDINARY, 2 * ORDINARY, 4 * ORDINARY, 1.0):
            gap = last - (law.upper(before) if before < 1.0 else float(law.values[0]))
            if gap > 0.0:
                return cls(law, last, share, gap / max(1.0, math.log(before / share)), 0.0)
        return cls(law, last, share, 0.0, 0.0)

    def surprise(self, x: np.ndarray, new: float = 1.0) -> np.ndarray:
        """Return minus the log tail share of each value, interpolated between the values of the training rows.

        Parameters
        ----------
        x : ndarray
            Evidence.
        new : float, default=1
            Weight by which the row that is judged is counted itself; 0 for training rows, which are in the law.
        """
        weight = self.law.weight
        ranked = np.interp(x, self.law.values, -np.log((weight - self.law.up_to[:-1] + new) / (weight + new)))
        if self.width == 0.0:
            return ranked
        excess = np.maximum(x - self.start, 0.0) / self.width
        tail = np.log1p(self.shape * excess) / self.shape if self.shape > 0.0 else excess
        return np.where(excess > 0.0, np.maximum(ranked, tail - math.log(self.share)), ranked)

    def threshold(self, share: float) -> float:
        """Return the value beyond all training rows at which the fitted tail is `share`.

        It is used if no training row has such a small tail share.
        """
        excess = math.log(self.share / share)
        if self.width == 0.0 or excess <= 0.0:
            return float(self.law.values[-1])
        fitted = math.expm1(self.shape * excess) / self.shape if self.shape > 0.0 else excess
        return max(self.start + self.width * fitted, float(self.law.values[-1]))


MOST_STEPS = 8192  # largest number of steps of a law
MOST_EXTREME = 1024  # steps at either end that are always kept


@dataclass(frozen=True)
class EmpiricalLaw:
    """Weighted empirical law of one variable.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Distinct values, rising.
    up_to : ndarray of shape (k + 1,)
        Weight of all observations up to each value; the first is 0.
    """

    values: np.ndarray
    up_to: np.ndarray

    @classmethod
    def of(cls, observed: np.ndarray, weights: np.ndarray) -> Self:
        """Compute the law of `observed` values."""
        order = np.argsort(observed, kind="stable")
        ordered, total = observed[order], np.cumsum(weights[order])
        last = np.flatnonzero(np.append(ordered[1:] > ordered[:-1], True))
        if len(last) > MOST_STEPS:
            inner = np.linspace(MOST_EXTREME, len(last) - 1 - MOST_EXTREME, MOST_STEPS - 2 * MOST_EXTREME)
            last = np.r_[last[:MOST_EXTREME], last[inner.round().astype(int)], last[-MOST_EXTREME:]]
            last = np.unique(last)
        return cls(ordered[last], np.append(0.0, total[last]))

    @property
    def weight(self) -> float:
        """Weight of all observations."""
        return float(self.up_to[-1])

    def tails(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of observations that are at most `x`, and at least `x`."""
        place = np.searchsorted(self.values, x, side="left")
        equal = self.values[np.minimum(place, len(self.values) - 1)] == x  # values are distinct
        return self.up_to[place + equal], self.weight - self.up_to[place]

    def at_least(self, x: np.ndarray) -> np.ndarray:
        """Return the weight of observations that are at least `x`."""
        return self.tails(x)[1]

    def upper(self, share: float) -> float:
        """Return the smallest value such that at most `share` of the weight is above it."""
        place = np.searchsorted(self.up_to[1:], (1.0 - share) * self.weight * (1.0 - 1e-12))
        return float(self.values[min(int(place), len(self.values) - 1)])
