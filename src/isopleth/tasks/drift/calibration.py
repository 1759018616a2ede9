"""The threshold that has the mean run length asked for, over references and streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

SIMULATED_ROWS = 1e6
# Simulated monitors: as many as the rows allow. The mean run length of 300 is known to about 6 %.
FEWEST, MOST = 300, 1000

# So many directions, or those with this share of the variance, are simulated; the others stay at their mean.
DIRECTIONS, SHARE = 24, 0.98

# Directions whose covariances with each other are followed from reference to reference; of the others, variances.
TURNED = 12

# A simulation ends after so many mean run lengths.
HORIZON = 50

# Simulations go on until a threshold is crossed that has this many times the mean run length asked for, by a first
# guess: the one that is looked for then lies below.
AHEAD = 1.7

# A reference of a few equal rows would set a threshold of 0.
LEAST = 1e-6

# Monitors simulated side by side, so that their rows stay in the processor's cache.
_TOGETHER = 64


@dataclass(frozen=True, eq=False)
class Reference:
    """What is known of the reference when it stands for what it was drawn from.

    Parameters
    ----------
    values : array of shape (n, r)
        Values of the features at its rows in the leading directions, mean 0.
    rest : array of shape (s,)
        Variances in the other directions.
    """

    values: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Reference:
        """Of the values in all directions, those of the largest variance first."""
        variances = np.mean(values**2, axis=0)
        total = float(variances.sum())
        enough = int(np.searchsorted(np.cumsum(variances), SHARE * total)) + 1
        kept = max(1, min(enough, DIRECTIONS, len(variances)))
        return cls(values[:, :kept].astype(np.float32), variances[kept:])

    def drawn_again(self, count: int, level: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Means of `count` references drawn from this one, and how much larger a threshold each would set.

        The threshold of a reference is a quantile of a quadratic form in a normal vector whose covariance it knows only
        through its own rows; the quantile follows three traces of that covariance.
        """
        n, width = self.values.shape
        turned = min(width, TURNED)
        i, j = np.triu_indices(turned)
        products = np.hstack([self.values[:, i] * self.values[:, j], self.values[:, turned:] ** 2])
        means, moments = np.empty((count, width), dtype=np.float32), np.empty((count, len(products[0])))
        for start in range(0, count, _TOGETHER):
            part = slice(start, min(start + _TOGETHER, count))
            share = rng.multinomial(n, np.full(n, 1.0 / n), size=part.stop - start).astype(np.float32) / n
            means[part], moments[part] = share @ self.values, share @ products
        covariance = np.empty((count, turned, turned))
        covariance[:, i, j] = covariance[:, j, i] = moments[:, : len(i)] - means[:, i] * means[:, j]
        others = np.hstack([moments[:, len(i) :] - means[:, turned:] ** 2, np.tile(self.rest, (count, 1))])
        own = np.hstack([np.mean(self.values[:, turned:] ** 2.0, axis=0), self.rest])
        here = np.cov(self.values[:, :turned].astype(np.float64), rowvar=False, bias=True).reshape(1, turned, turned)
        scale = _quantile(covariance, others, level) / _quantile(here, own[None], level)
        return means, np.maximum(scale, LEAST)


def _quantile(covariance: np.ndarray, others: np.ndarray, level: float) -> np.ndarray:
    """Upper quantiles of quadratic forms by a chi-squared law with the same three first cumulants."""
    square = covariance @ covariance
    first = np.trace(covariance, axis1=1, axis2=2) + others.sum(axis=1)
    second = np.trace(square, axis1=1, axis2=2) + (others**2).sum(axis=1)
    third = (square * covariance).sum(axis=(1, 2)) + (others**3).sum(axis=1)
    # Never below 1, but for a reference of which all rows were the same one: there all is 0.
    freedom = np.maximum(second**3 / np.maximum(third**2, np.finfo(np.float64).tiny), 1.0)
    return first + np.sqrt(second / freedom) * (chi2.isf(level, freedom) - freedom)


class _Walks:
    """Statistics of some monitors, each with a reference and a stream of its own, over blocks of a window."""

    def __init__(self, reference: Reference, window: int, means: np.ndarray, scale: np.ndarray, first: int) -> None:
        self._pool, self._window = reference.values, window
        self._means, self._scale = means, scale
        self._names = first + np.arange(len(means))
        self._rest = float(reference.rest.sum()) * (1.0 / window + 1.0 / len(reference.values))
        self._suffix: np.ndarray | None = None
        self.peaks = np.full(len(means), -np.inf)
        self.records: list[np.ndarray] = []
        self.rows = 0

    def __len__(self) -> int:
        return len(self._names)

    def advance(self, rng: np.random.Generator) -> None:
        """One block more; statistics that are larger than all before them are recorded."""
        drawn = rng.integers(len(self._pool), size=(self._window, len(self)))
        values = self._pool[drawn]
        means = np.add.accumulate(values, axis=0)
        if self._suffix is None:
            means = means[-1:]
        else:
            means[:-1] += self._suffix[1:]
        means /= self._window
        means -= self._means
        statistics = (np.einsum("tkr,tkr->tk", means, means) + self._rest) / self._scale
        self._record(statistics)
        self._suffix = np.add.accumulate(values[::-1], axis=0)[::-1]
        self.rows += self._window

    def _record(self, statistics: np.ndarray) -> None:
        highest = np.maximum.accumulate(np.vstack([self.peaks[None], statistics]), axis=0)
        time, who = np.nonzero(highest[1:] > highest[:-1])
        row = self.rows + self._window - len(statistics) + 1 + time
        self.records.append(np.column_stack([self._names[who], row, statistics[time, who]]))
        self.peaks = highest[-1]

    def drop(self, threshold: float) -> None:
        """Go on only with those that are not above a threshold yet."""
        kept = self.peaks <= threshold
        self._names, self.peaks = self._names[kept], self.peaks[kept]
        self._means, self._scale = self._means[kept], self._scale[kept]
        if self._suffix is not None:
            self._suffix = self._suffix[:, kept]


def calibrate(values: np.ndarray, window: int, run_length: float, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """The threshold, and the run lengths it had in simulation.

    Monitors are simulated in the world of the reference: each draws a reference of the same size from it, sets the threshold
    which that one would have set, and runs on rows drawn from it. The threshold of the monitor is the number which, with the
    same changes, has the mean run length asked for there.

    Parameters
    ----------
    values : array of shape (n, r)
        Features of the reference, mean 0, the directions of the largest variance first.
    window : int
        Rows of a window.
    run_length : float
        The mean, in rows, those of the first window counted.
    rng : numpy.random.Generator
        Of the simulations.

    Returns
    -------
    threshold : float
        For the squared norm of a window's mean.
    run_lengths : array of shape (simulations,)
        Simulated ones, ended at 50 times their mean.
    """
    size = float(np.mean(values**2, axis=0).sum())
    reference = Reference.of(values / np.sqrt(size))  # single precision holds it, whatever the ridge
    count = int(np.clip(SIMULATED_ROWS / run_length, FEWEST, MOST))
    # An excursion above the threshold lasts a few rows, and there is one in a run length.
    means, scale = reference.drawn_again(count, min(0.1, 3.0 / run_length), rng)
    parts = [slice(start, start + _TOGETHER) for start in range(0, count, _TOGETHER)]
    walks = [_Walks(reference, window, means[part], scale[part], part.start) for part in parts]
    blocks = max(1, round((window + 0.5 * (run_length - window)) / window))
    for walk in walks:
        for _ in range(blocks):
            walk.advance(rng)
    elapsed = (blocks - 1.0) * window / (run_length - window)
    beyond = np.exp(-max(elapsed, 1.0 / count) / AHEAD)
    ceiling = float(np.quantile(np.concatenate([walk.peaks for walk in walks]), min(beyond, 1.0 - 2.0 / count)))
    for walk in walks:
        walk.drop(ceiling)
        while len(walk) and walk.rows < HORIZON * run_length:
            walk.advance(rng)
            walk.drop(ceiling)
    records = np.concatenate([r for walk in walks for r in walk.records])
    threshold, run_lengths = _solve(records, count, run_length, ceiling)
    return size * threshold, run_lengths


def _solve(records: np.ndarray, count: int, run_length: float, ceiling: float) -> tuple[float, np.ndarray]:
    """The threshold at most `ceiling` whose mean run length is the one asked for."""
    records = records[np.lexsort([-records[:, 1], records[:, 0]])]  # a later record is overwritten by an earlier one
    who = records[:, 0].astype(np.intp)

    def run_lengths(threshold: float) -> np.ndarray:
        out = np.full(count, HORIZON * run_length)
        above = records[:, 2] > threshold
        out[who[above]] = records[above, 1]
        return out

    candidates = np.sort(records[:, 2])
    candidates = candidates[: np.searchsorted(candidates, ceiling, side="right")]
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if run_lengths(float(candidates[middle])).mean() < run_length:
            low = middle + 1
        else:
            high = middle
    threshold = float(candidates[low])
    return threshold, run_lengths(threshold)
