"""p-values from permutations, ranks and counts, their adjustment, false discovery rates, quantiles, anomaly probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import fdtri, gammaincinv, ndtri
from scipy.stats import binom

from isopleth.core.errors import probability
from isopleth.core.rows import rounding_of

# p-value up to which sentences and titles say that something differs.
LEVEL = 0.05

# Statistics that differ by less than this share of themselves, or of 1, differ by rounding.
_ROUNDING = 1e-8

# Normal scores of equal ranks are separated by a millionth of other scores, and equal ones differ by less than this.
_ROUNDING_OF_SCORES = 1e-12
# Probabilities that differ by less than this share are equal, as in scipy.stats.binomtest.
_EQUAL_CHANCES = 1e-7
# Confidence of the limits of the number of p-values below a point.
_SURE = 0.95


def normal_quantile(confidence_level: Any) -> float:
    """Return z such that a standard normal variable is within -z and z with this probability."""
    return float(ndtri(0.5 + 0.5 * probability("confidence_level", confidence_level)))


def at_least(statistics: np.ndarray, bar: Any) -> np.ndarray:
    """Tell whether statistics are at least `bar`, up to rounding."""
    return np.asarray(statistics >= bar - _ROUNDING * np.maximum(1.0, np.abs(bar)))


def permutation_pvalue(scores: np.ndarray) -> float:
    """Return the share of the scores that are no smaller than the first, the observed one; it counts itself."""
    return float((scores >= scores[0] - _ROUNDING_OF_SCORES).mean())


def simulated_pvalue(value: float, simulated: np.ndarray, fewest: int = 0, tail: float = 1.0) -> float:
    """Return the share of values, of those that were simulated and of `value` itself, that are no smaller than it.

    If fewer than `fewest` simulated ones are as large, the share is that of a fitted `tail`, at most `fewest` over their number.
    """
    beyond, n = int(np.sum(simulated >= value)), 1 + len(simulated)
    return (1 + beyond) / n if beyond >= fewest else min(tail, fewest / n)


def adjusted_p_values(statistics: np.ndarray) -> np.ndarray:
    """Return p-values of several statistics, (1 + B, k), by Westfall and Young's step-down maxima (familywise level)."""
    order = np.argsort(-statistics[0], kind="stable")
    # The maxima over the columns from each one on, in falling order of what was observed.
    maxima = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    raw = at_least(maxima, statistics[0, order]).mean(axis=0)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate(raw)
    return out


def binomial_p_values(counts: np.ndarray, trials: int, chances: np.ndarray) -> np.ndarray:
    """Return two-sided p-values of counts, as scipy.stats.binomtest does for one: the chance of counts that are no likelier."""
    each = binom.pmf(np.arange(trials + 1.0), trials, chances[:, None])
    seen = each[np.arange(len(counts)), counts.astype(np.intp)]
    return np.minimum(np.where(each <= seen[:, None] * (1.0 + _EQUAL_CHANCES), each, 0.0).sum(axis=1), 1.0)


def conformal_p_values(training: np.ndarray, new: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    r"""Return conformal p-values (1 + C)/(n + 1) of new rows, where C of n training rows are at least as unlikely.

    Training rows are judged without themselves, or without their group. With `groups`, numbers from 0 on, each group counts
    as one row: :math:`(1 + \sum_g s_g)/(G + 1)`, where s_g is the share of the rows of group g that are at least as unlikely.
    Ties, also those up to rounding, count as at least as unlikely, which keeps the level.
    """
    order = np.argsort(training, kind="stable")
    place = np.searchsorted(training[order], new - rounding_of(training[order]), side="left")
    if groups is None:
        return (1.0 + len(training) - place) / (1.0 + len(training))
    share = 1.0 / np.bincount(groups)[groups[order]]
    beyond = np.append(np.cumsum(share[::-1])[::-1], 0.0)
    return (1.0 + beyond[place]) / (2.0 + groups.max())


def benjamini_hochberg(p_values: np.ndarray, rate: float, true_nulls: float | None = None) -> float:
    """Return the largest p-value rejected at the false discovery rate `rate`, 0 if none; `true_nulls` defaults to all."""
    ordered = np.sort(p_values)
    allowed = rate / (len(ordered) if true_nulls is None else true_nulls)
    passed = np.flatnonzero(ordered <= allowed * np.arange(1, len(ordered) + 1))
    return float(ordered[passed[-1]]) if len(passed) else 0.0


def storey_number(p_values: np.ndarray) -> float:
    """Return the number of true null hypotheses, estimated by p-values above 1/2 (Storey, Taylor and Siegmund 2004)."""
    return 2.0 * (1.0 + float((p_values > 0.5).sum()))


def falling_density(ends: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps of the slope of the least concave majorant (Grenander 1956): their right ends and heights."""
    widths = np.diff(ends, prepend=0.0)
    found = isotonic_regression(np.diff(shares, prepend=0.0) / widths, weights=widths, increasing=False)
    last = found.blocks[1:] - 1
    return ends[last], found.x[last]


def anomaly_probabilities(among: np.ndarray, p_values: np.ndarray, references: float = np.inf) -> np.ndarray:
    r"""Return :math:`\max(0, 1 - 1/g(p))`, g a cautious estimate of the density of p-values, which is 1 for ordinary rows.

    Grenander's estimate is not consistent near 0, so the number k of rows up to p is replaced by its lower 95 % limit
    :math:`k F_{0.05}(2k, 2j)`, j the p-value times one more than the number of reference rows.
    """
    values, counts = np.unique(among, return_counts=True)
    counts = np.cumsum(counts)
    if np.isinf(references):
        limits = gammaincinv(counts, 1.0 - _SURE)
    else:
        limits = counts * fdtri(2.0 * counts, 2.0 * values * (references + 1.0), 1.0 - _SURE)
    ends, heights = falling_density(values, np.maximum.accumulate(limits) / len(among))
    g = np.append(heights, 1.0)[np.searchsorted(ends, p_values, side="left")]
    return 1.0 - 1.0 / np.maximum(g, 1.0)
