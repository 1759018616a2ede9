"""Laws of one variable from weighted observations: tail weights, quantiles, means between quantiles, normal scores of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from isopleth.core.rows import differ, rounding_of
from isopleth.core.threads import slices

MOST_STEPS = 8192  # largest number of steps of a law
MOST_EXTREME = 1024  # steps at either end that are always kept

# Values that differ by rounding only have one rank.
_DIGITS = 9


@dataclass(frozen=True)
class EmpiricalLaw:
    """Weighted empirical law of one variable."""

    values: np.ndarray  # (k,): distinct values, rising
    up_to: np.ndarray  # (k + 1,): weight of all observations up to each value; the first is 0

    @classmethod
    def of(cls, observed: np.ndarray, weights: np.ndarray) -> Self:
        """Compute the law of `observed` values."""
        if (weights == 1.0).all():  # a sort of values alone is several times faster than that of their places
            return cls._of_ordered(np.sort(observed))[0]
        return cls.of_ranked(observed, weights)[0]

    @classmethod
    def of_ranked(cls, observed: np.ndarray, weights: np.ndarray) -> tuple[Self, np.ndarray]:
        """Compute the law, and the `place` of each observed value for :meth:`tails`: many searches take longer than the sort."""
        same = bool((weights == 1.0).all())
        order = np.argsort(observed, kind=None if same else "stable")
        ordered = observed[order]
        law, last = cls._of_ordered(ordered, None if same else np.cumsum(weights[order]))
        step, near = np.repeat(np.arange(len(last)), np.diff(last, prepend=-1)), float(rounding_of(law.values))
        if ((step > 0) & (law.values[step - 1] >= ordered - near)).any():  # a search finds an earlier step
            step = law._places(ordered, near)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = step
        return law, place

    @classmethod
    def _of_ordered(cls, ordered: np.ndarray, total: np.ndarray | None = None) -> tuple[Self, np.ndarray]:
        """Compute the law of ascending values with their cumulative weights; return it and the positions of its steps.

        Without weights, each value has weight 1.
        """
        apart = differ(ordered)
        if total is None and apart.all():
            last, up_to = _distinct_steps(len(ordered))
            return cls(ordered[last], up_to), last
        last = _most_steps(np.flatnonzero(np.append(apart, True)))
        up_to = last + 1.0 if total is None else total[last]
        return cls(ordered[last], np.append(0.0, up_to)), last

    @property
    def weight(self) -> float:
        """Weight of all observations."""
        return float(self.up_to[-1])

    def _places(self, x: np.ndarray, near: float) -> np.ndarray:
        """Return the first step that is not below `x` beyond rounding."""
        return np.searchsorted(self.values, x - near, side="left")

    def tails(self, x: np.ndarray, place: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of observations that are at most `x`, and at least `x`, at their `place` if it is known."""
        near = float(rounding_of(self.values))
        if place is None:
            place = self._places(x, near)
        equal = np.abs(self.values[np.minimum(place, len(self.values) - 1)] - x) <= near
        return self.up_to[place + equal], self.weight - self.up_to[place]

    @property
    def scores(self) -> np.ndarray:
        r"""Normal score of each value, :math:`\Phi^{-1}(\frac12 P(X < x) + \frac12 P(X \le x))`."""
        return np.asarray(ndtri(0.5 * (self.up_to[:-1] + self.up_to[1:]) / self.weight))

    def at_least(self, x: np.ndarray) -> np.ndarray:
        """Return the weight of observations that are at least `x`."""
        return self.tails(x)[1]

    def upper(self, share: float) -> float:
        """Return the smallest value such that at most `share` of the weight is above it."""
        place = np.searchsorted(self.up_to[1:], (1.0 - share) * self.weight * (1.0 - 1e-12))
        return float(self.values[min(int(place), len(self.values) - 1)])


def _most_steps(last: np.ndarray) -> np.ndarray:
    """Return those of the positions of steps that a law keeps."""
    if len(last) <= MOST_STEPS:
        return last
    inner = np.linspace(MOST_EXTREME, len(last) - 1 - MOST_EXTREME, MOST_STEPS - 2 * MOST_EXTREME)
    last = np.r_[last[:MOST_EXTREME], last[inner.round().astype(int)], last[-MOST_EXTREME:]]
    return last[np.append(True, last[1:] > last[:-1])]


@lru_cache(maxsize=4)
def _distinct_steps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of the steps of `n` distinct values of weight 1, and the weight up to each.

    Most columns of numbers have no equal values, so the laws of a table share these.
    """
    last = _most_steps(np.arange(n))
    up_to = np.append(0.0, last + 1.0)
    last.flags.writeable = up_to.flags.writeable = False
    return last, up_to


def normal_scores(values: np.ndarray, axis: int | None = 1, offset: float = 0.5) -> np.ndarray:
    r"""Return normal scores :math:`\Phi^{-1}((r - a)/(n + 1 - 2a))` of mean ranks r along an axis, or of all values together.

    Statistics of different laws can be compared by them. The offset a is 1/2, or 3/8 in Blom's scores.
    """
    n = values.size if axis is None else values.shape[axis]
    ranks = rankdata(values, axis=axis).reshape(values.shape)
    return np.asarray(ndtri((ranks - offset) / (n + 1.0 - 2.0 * offset)))


def mean_ranks(counts: np.ndarray) -> np.ndarray:
    """Return the mean rank of each of distinct values in ascending order as a share of all, from how often each occurs."""
    up_to = np.cumsum(counts)
    return np.asarray((up_to - 0.5 * counts) / up_to[-1])


def normal_scores_of_counts(counts: np.ndarray) -> np.ndarray:
    """Return the normal score of each of distinct values in ascending order, from how often each occurs."""
    return np.asarray(ndtri(mean_ranks(counts)))


def normal_scores_of_ranks(rows: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return normal scores of the mean ranks in each column, where each row counts with its share of all rows."""
    return np.stack([RankScores.of(column, share)(column) for column in rows.T], axis=1) if rows.size else rows.copy()


@dataclass(frozen=True, eq=False)
class RankScores:
    """Normal scores of the mean ranks of a column; of new values, those of the nearest places among the known ones."""

    values: np.ndarray  # (m,): distinct values, ascending
    scores: np.ndarray  # (2 m + 1,): scores below, at, between and above the distinct values

    @classmethod
    def of(cls, column: np.ndarray, share: np.ndarray) -> Self:
        """Rank the values of a column, each of which counts with its share."""
        values, place = np.unique(np.round(column, _DIGITS), return_inverse=True)
        shares = np.bincount(place.ravel(), share, len(values))
        total = np.concatenate([[0.0], np.cumsum(shares)])
        # A new value below or above all others has the rank of half of the outermost one.
        between = np.clip(total, 0.5 * total[1], 1.0 - 0.5 * shares[-1])
        chances = np.empty(2 * len(values) + 1)
        chances[0::2], chances[1::2] = between, total[:-1] + 0.5 * shares
        return cls(values, ndtri(chances))

    def __call__(self, column: np.ndarray) -> np.ndarray:
        """Return the scores of values."""
        rounded = np.round(column, _DIGITS)
        below = np.searchsorted(self.values, rounded)
        equal = self.values[np.minimum(below, len(self.values) - 1)] == rounded
        return np.asarray(self.scores[2 * below + equal])


def weighted_quantile(values: np.ndarray, weights: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the smallest value whose cumulative share of the weight exceeds `q`."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    place = np.searchsorted(cumulative, q * (1 + 1e-12), side="right")
    return values[order][np.minimum(place, len(values) - 1)]


# Numbers of a block of columns, which stay in the cache of a core.
_BLOCK = 2**15


def quantile_means(rows: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return column means between successive quantiles. Rows across a level are split: means are continuous in the weights."""
    out = np.empty((len(levels) - 1, rows.shape[1]))
    for place in slices(rows.shape[1], _BLOCK // len(rows)):
        order = np.argsort(rows[:, place], axis=0, kind="stable")
        share = np.cumsum(weights[order], axis=0)
        out[:, place] = means_between(np.take_along_axis(rows[:, place], order, axis=0), share / share[-1], levels)
    return out


def means_between(x: np.ndarray, share: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return means between levels of sorted values `x` with cumulative shares `share`, for each column of both."""
    columns = np.arange(x.shape[1])
    centre = x[(share < 0.5).sum(axis=0), columns]
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(np.abs(x[0] - centre), np.abs(x[-1] - centre))
    unit = np.where((largest > 0.0) & (largest < np.inf), largest, 1.0)
    y = (x - centre) / unit  # sums of the numbers themselves could overflow or lose digits
    total, above = np.zeros((len(x) + 1, len(columns))), np.zeros((len(x) + 1, len(columns)))
    above[1:] = share
    np.cumsum(y * np.diff(above, axis=0), axis=0, out=total[1:])
    place = np.minimum((share[:, None] <= levels[:, None]).sum(axis=0), len(x) - 1)
    inside = np.minimum(levels[:, None], share[-1]) - above[place, columns]
    return (
        centre + unit * np.diff(total[place, columns] + y[place, columns] * inside, axis=0) / np.diff(levels)[:, None]
    )


def logarithmic_beyond_one(t: np.ndarray) -> np.ndarray:
    """Return distances as they are up to 1, and beyond as 1 plus their logarithm; negative ones and NaN are 0."""
    t = np.fmin(np.fmax(t, 0.0), np.finfo(float).max)
    return np.where(t <= 1.0, t, 1.0 + np.log(np.maximum(t, 1.0)))


def interpolated(at: np.ndarray, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return for each row the values at `at`, linear between increasing x in [0, 1]; one call for all rows.

    Numbers of 40 bits keep all of them beside the number of the row, and the ends of a row have one value each, so that the
    answer for a row does not depend on those beside it.
    """
    rows, line = 2.0 * np.arange(len(x))[:, None], np.arange(len(x))
    at, x = (np.rint(part * 2.0**40) * 2.0**-40 for part in (at, np.maximum.accumulate(x, axis=1)))
    found = np.interp((at + rows).ravel(), (x + rows).ravel(), values.ravel()).reshape(at.shape)
    first, last = (x > x[:, :1]).argmax(axis=1) - 1, (x == x[:, -1:]).argmax(axis=1)
    lowest, highest = values[line, np.maximum(first, 0)][:, None], values[line, last][:, None]
    return np.where(at >= x[:, -1:], highest, np.where(at <= x[:, :1], lowest, found))
