"""Tails of empirical laws beyond their extreme values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isopleth.core.laws import EmpiricalLaw

# Tail share beyond which the tail is fitted; the rows between it and the median are assumed to be ordinary.
ORDINARY = 0.125
SMOOTH = (7 / 8, 3 / 4, 1 / 2, 1 / 4)  # tail shares before it of the quantiles of a smooth law
HEAVIEST = 50.0  # shapes beyond it would overflow and say no more
# Asymptotic variance of Pickands' estimate at shape 0, times n: 3 / (4 log(2)^4) for each of the n/8 rows in the last
# quantile.
SHAPE_VARIANCE = 3.0 / (4.0 * math.log(2.0) ** 4) / ORDINARY


@dataclass(frozen=True)
class Tail:
    """Law of one kind of evidence among the training rows, higher values being the less likely.

    Beyond the most extreme eighth it is at most a generalised Pareto tail through the quantiles 1/2, 1/4, 1/8 (Pickands 1975), of
    shape 0 or more: extreme rows do not influence the law that judges them, and values beyond all rows differ. Up to the next
    value after the quantile 1/8, which is the value of a row up to rounding, shares change from those of the rows to the tail's.
    """

    law: EmpiricalLaw  # law of the training rows
    start: float  # begin of the fitted tail: the quantile at 1/8 from above
    share: float  # tail share there
    width: float  # scale of the fitted tail; 0 if all values are equal and there is no tail to fit
    shape: float  # shape parameter of the tail
    ramp: float  # distance from the start to the next value, or the scale if there is none

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
            return cls._from(law, eighth, ORDINARY, (near + far) / (2.0 * math.log(2.0)))
        shape = min(shape, HEAVIEST)
        return cls._from(law, eighth, ORDINARY, shape * 2.0**shape * far / (2.0**shape - 1.0), shape)

    @classmethod
    def _from(cls, law: EmpiricalLaw, start: float, share: float, width: float, shape: float = 0.0) -> Self:
        after = law.values[np.searchsorted(law.values, start, side="right") :]
        return cls(law, start, share, width, shape, float(after[0]) - start if len(after) else width)

    @classmethod
    def _beyond_ties(cls, law: EmpiricalLaw) -> Self:
        """Fit a tail to a law with too many ties: beyond the last value it continues with the mean slope before it."""
        last = float(law.values[-1])
        share = float(law.at_least(law.values[-1:])[0]) / law.weight
        for before in (ORDINARY, 2 * ORDINARY, 4 * ORDINARY, 1.0):
            gap = last - (law.upper(before) if before < 1.0 else float(law.values[0]))
            if gap > 0.0:
                return cls._from(law, last, share, gap / max(1.0, math.log(before / share)))
        return cls._from(law, last, share, 0.0)

    def smooth(self) -> Tail:
        """Return the same law by six quantiles: the share of a value then hardly depends on whether its row is in the law."""
        law = self.law
        values = [law.values[0], *(law.upper(share) for share in SMOOTH), law.upper(ORDINARY), self.start]
        place = np.unique(np.searchsorted(law.values, values))
        return replace(self, law=EmpiricalLaw(law.values[place], np.append(law.up_to[place], law.weight)))

    def surprise(self, x: np.ndarray, new: float = 1.0) -> np.ndarray:
        """Return minus the log tail share of each value; `new` is the weight of the judged row, 0 for training rows."""
        weight = self.law.weight
        shares = -np.log((weight - self.law.up_to[:-1] + new) / (weight + new))
        ranked = np.interp(x, self.law.values, shares)
        if self.width == 0.0:
            return ranked
        beyond = np.maximum(x - self.start, 0.0)
        excess, fitted = beyond / self.width, np.minimum(beyond / self.ramp, 1.0)
        tail = np.log1p(self.shape * excess) / self.shape if self.shape > 0.0 else excess
        at_start = shares[np.searchsorted(self.law.values, self.start)]
        tail = fitted * (tail - math.log(self.share)) + (1.0 - fitted) * at_start
        return np.where(beyond > 0.0, np.maximum(ranked, tail), ranked)

    def threshold(self, share: float) -> float:
        """Return the value at which the fitted tail is `share`, for shares smaller than any training row's."""
        excess = math.log(self.share / share)
        if self.width == 0.0 or excess <= 0.0:
            return float(self.law.values[-1])
        fitted = math.expm1(self.shape * excess) / self.shape if self.shape > 0.0 else excess
        return max(self.start + self.width * fitted, float(self.law.values[-1]))
