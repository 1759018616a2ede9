"""Lower limits on the number of anomalies in lists of new rows that hold for all lists at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.special import betaln, gammaln

from isopleth.core.budget import Budget
from isopleth.tasks.anomaly.reference_rule import ReferenceRule
from isopleth.tasks.anomaly.training_table import NEW, TrainingTable, WithConstants, fit_with_constants

CONFIDENCE = 0.95
FEWEST_ROWS = 20  # training rows, or groups of them, below which no certificate is tried
MOST_ROWS = 2_500  # rows in each half of the split: more hardly change the bounds
DRAWS = 40_000  # simulated orders of ordinary rows: the standard error of the level is then 0.001
LEVELS = 32  # calibration rows, counted from the least likely one, at which new rows are counted
# Share of the calibration rows that are counted at. Counts at more of them would widen the bounds for short lists, which are
# looked at first; they would raise limits only where many new rows are anomalies and hardly less likely than ordinary ones.
DEEPEST = 1 / 10
NEVER = 1e-9  # tail shares that no bound depends on, and that are not kept: there are as many as new rows


@dataclass(frozen=True)
class Certificate:
    r"""Lower limits on the number of anomalies in sets of new rows, simultaneous over all sets.

    Scores fitted without the n calibration rows and the new rows are exchangeable, so the number :math:`V_i` of ordinary new rows
    less likely than the i-th least likely calibration row has a known law. Bounds :math:`b_i` that all :math:`V_i` keep with the
    confidence give any set S at least :math:`\max_i (|\{x \in S : x \text{ less likely than } c_i\}| - b_i)` anomalies.

    Bounds for m ordinary new rows are computed again for the m - a that the last ones leave, until they show no more. They rise
    with the number of ordinary rows, so they fail only where those of the true number do.
    """

    place: np.ndarray  # (m,): first of the bounds that counts each new row; one more than the last for none
    bounds: np.ndarray  # (k,): bounds b, rising

    @classmethod
    def of(cls, calibration: np.ndarray, new: np.ndarray, confidence: float = 0.95) -> Self:
        """Compute bounds from the surprise of calibration rows and of new rows, by scores that were fitted without both."""
        ordered = -np.sort(-calibration)
        n, m = len(ordered), len(new)
        levels = levels_of(n)
        # Ties count as ordinary: a new row must be less likely than a calibration row.
        place = np.searchsorted(-ordered[levels - 1], -new, side="right")
        counted = np.cumsum(np.bincount(place, minlength=len(levels) + 1))[:-1]
        ordinary = m
        while True:
            bounds = simultaneous_bounds(n, ordinary, confidence)
            anomalies = max(0, int((counted - bounds).max()))
            if ordinary + anomalies <= m:
                return cls(place, bounds)
            ordinary = m - anomalies

    def at_least(self, order: np.ndarray) -> np.ndarray:
        """Return for each k the least number of anomalies among the first k rows of an order."""
        found = np.zeros(len(order))
        for i in range(len(self.bounds)):
            found = np.maximum(found, np.cumsum(self.place[order] <= i) - self.bounds[i])
        return found.astype(np.int64)


def levels_of(n: int) -> np.ndarray:
    """Return the ranks among n calibration rows, from the least likely one, at which new rows are counted."""
    last = math.ceil(DEEPEST * n)
    return np.unique(np.geomspace(1, last, min(last, LEVELS)).round().astype(int))


@lru_cache(maxsize=64)  # tables of the same size come again, for instance day by day
def simultaneous_bounds(n: int, ordinary: int, confidence: float) -> np.ndarray:
    """Return bounds that the numbers of ordinary new rows beyond calibration rows keep together with a confidence."""
    levels = levels_of(n)
    if not ordinary:
        return np.zeros(len(levels), dtype=np.int64)
    upper = [tail[tail > NEVER] for tail in (_upper_tail(n, i, ordinary) for i in levels)]
    counts = _simulated_counts(n, levels, ordinary)
    least = np.min([tail[np.minimum(c, len(tail) - 1)] for tail, c in zip(upper, counts.T, strict=True)], axis=0)
    # Three standard errors of the simulation below the level, which then holds, whatever numbers were drawn.
    fails = 1.0 - confidence
    rank = int(DRAWS * fails - 3.0 * math.sqrt(DRAWS * fails * confidence))
    level = np.sort(least)[rank - 1]
    # Bounds must allow the count at which the level is reached: only counts with a smaller tail are excluded.
    return np.maximum.accumulate([np.count_nonzero(tail >= level) - 1 for tail in upper])


def _upper_tail(n: int, i: int, m: int) -> np.ndarray:
    """Return P(V >= v) for v = 0, ..., m, where V of m rows are beyond the i-th of n others."""
    v = np.arange(m + 1.0)
    log = gammaln(m + 1) - gammaln(v + 1) - gammaln(m - v + 1) + betaln(v + i, m - v + n + 1 - i) - betaln(i, n + 1 - i)
    return np.cumsum(np.exp(log)[::-1])[::-1]


def _simulated_counts(n: int, levels: np.ndarray, m: int) -> np.ndarray:
    """Draw numbers of m rows beyond each of some of n exchangeable ones, of shape (DRAWS, k)."""
    rng = np.random.default_rng(0)  # so that the same rows have the same limits each time
    steps = np.diff(levels, prepend=0).astype(float)
    spacings = rng.gamma(np.append(steps, n + 1.0 - levels[-1]), size=(DRAWS, len(levels) + 1))
    left = np.cumsum(spacings[:, ::-1], axis=1)[:, ::-1]
    counts = np.zeros((DRAWS, len(levels)), dtype=np.int64)
    total = np.zeros(DRAWS, dtype=np.int64)
    for k in range(len(levels)):
        total = total + rng.binomial(m - total, spacings[:, k] / left[:, k])
        counts[:, k] = total
    return counts


@dataclass(frozen=True)
class SplitScores:
    """Scores fitted to one half of the training rows, and those of the other half, for certificates.

    Training rows judged without themselves are not quite exchangeable with new rows, which a limit on all lists at once needs.
    """

    rule: ReferenceRule | WithConstants  # rule fitted to one half
    calibration: np.ndarray  # (n,): surprise of the rows of the other half

    @classmethod
    def fit(
        cls, rows: np.ndarray, n_numeric: int, seed: int, budget: Budget, groups: np.ndarray | None = None
    ) -> Self | None:
        """Split rows, or whole groups, at random, and calibrate by one row of each; None if they are too few."""
        group = np.arange(len(rows)) if groups is None else groups
        count = int(group.max()) + 1
        if count < FEWEST_ROWS:
            return None
        rng = np.random.default_rng(seed)
        order = rng.permutation(count)[: 2 * MOST_ROWS]
        shuffled = rng.permutation(len(rows))
        one = shuffled[np.unique(group[shuffled], return_index=True)[1]]  # a row of each group
        inside, held_out = np.isin(group, order[::2]), rows[one[order[1::2]]]
        fitted = rows[inside]
        if not (np.fmin.reduce(fitted) < np.fmax.reduce(fitted)).any():
            return None
        groups = None if groups is None else np.unique(groups[inside], return_inverse=True)[1]
        table = TrainingTable.of(fitted, n_numeric, groups)
        rule, _ = fit_with_constants(lambda t: ReferenceRule.fit(t, seed, True, budget), table)
        return cls(rule, cls(rule, np.empty(0)).surprise(held_out, budget))

    def surprise(self, rows: np.ndarray, budget: Budget) -> np.ndarray:
        """Return the surprise of rows outside of the fitted half."""
        return self.rule.surprises(rows, np.full(len(rows), NEW), budget).sum(axis=1)

    def certificate(self, rows: np.ndarray, budget: Budget) -> Certificate:
        """Return limits for sets of new rows."""
        return Certificate.of(self.calibration, self.surprise(rows, budget), CONFIDENCE)
