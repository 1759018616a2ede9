"""Calibration of the threshold of a drift monitor: simulated run lengths over references and streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import chi2

from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum
from isopleth.frame import Frame
from isopleth.operators.threads import interruptible
from isopleth.progress import Progress, unheard

SIMULATED_ROWS = 1e6
# Simulated monitors: as many as the rows allow. The standard error of the mean run length of 300 is about 6 %.
FEWEST, MOST = 300, 1000

# At most this many directions, or those with this share of the variance, are simulated; the others stay at their mean.
DIRECTIONS, SHARE = 24, 0.98

# Directions whose covariances are recomputed for each simulated reference; for the others only variances are.
TURNED = 12

# A simulation ends after this number of mean run lengths.
HORIZON = 50

# Simulations continue until they cross a ceiling whose mean run length is, by a first estimate, this many times the
# requested one, so that the threshold is below it.
AHEAD = 1.7

# Least threshold of a simulated reference relative to the given one; a reference of a few equal rows would have 0.
LEAST = 1e-6

# Monitors simulated side by side, so that their rows stay in the processor's cache.
_TOGETHER = 64


@dataclass(frozen=True, eq=False)
class Reference:
    """Features of the reference, from which simulated references and streams are drawn.

    Parameters
    ----------
    values : array of shape (n, r)
        Values of the features at its rows in the leading directions, mean 0.
    rest : array of shape (s,)
        Variances in the other directions; those of groups divided by their rows if there are groups.
    groups : array of shape (n,), optional
        Number of the group of each row, from 0 on; the rows are sorted by it.
    """

    values: np.ndarray
    rest: np.ndarray
    groups: np.ndarray | None = None

    @classmethod
    def of(cls, values: np.ndarray, groups: np.ndarray | None = None) -> Reference:
        """Keep the leading of all directions, which are sorted by falling variance."""
        if groups is not None:
            order = np.argsort(groups, kind="stable")
            values, groups = values[order], np.unique(groups[order], return_inverse=True)[1].ravel()
        variances = np.mean(values**2, axis=0)
        total = float(variances.sum())
        enough = int(np.searchsorted(np.cumsum(variances), SHARE * total)) + 1
        kept = max(1, min(enough, DIRECTIONS, len(variances)))
        rest = variances[kept:]
        if groups is not None:
            sums = np.add.reduceat(values[:, kept:], np.flatnonzero(np.diff(groups, prepend=-1)), axis=0)
            rest = np.maximum(rest, (sums**2).sum(axis=0) / len(values))
        return cls(values[:, :kept].astype(np.float32), rest, groups)

    def drawn_again(
        self, count: int, level: float, rng: np.random.Generator, tick: Callable[[int], None] = unheard
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `count` references from this one, and return their means and the ratios of their thresholds to the own one.

        The threshold of a reference is a quantile of a quadratic form in a normal vector whose covariance is estimated from
        its rows. The quantile is approximated from three traces of that covariance. `tick` is called with the number drawn.
        """
        width = self.values.shape[1]
        turned = min(width, TURNED)
        i, j = np.triu_indices(turned)
        products = np.hstack([self.values[:, i] * self.values[:, j], self.values[:, turned:] ** 2])
        means, moments = np.empty((count, width), dtype=np.float32), np.empty((count, len(products[0])))
        for start in range(0, count, _TOGETHER):
            part = slice(start, min(start + _TOGETHER, count))
            share = self._shares_drawn(part.stop - start, rng)
            means[part], moments[part] = share @ self.values, share @ products
            tick(len(share))
        covariance = np.empty((count, turned, turned))
        covariance[:, i, j] = covariance[:, j, i] = moments[:, : len(i)] - means[:, i] * means[:, j]
        others = np.hstack([moments[:, len(i) :] - means[:, turned:] ** 2, np.tile(self.rest, (count, 1))])
        own = np.hstack([np.mean(self.values[:, turned:] ** 2.0, axis=0), self.rest])
        here = np.cov(self.values[:, :turned].astype(np.float64), rowvar=False, bias=True).reshape(1, turned, turned)
        scale = _quantile(covariance, others, level) / _quantile(here, own[None], level)
        return means, np.maximum(scale, LEAST)

    def _shares_drawn(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `count` references from this one, row by row or group by group, as shares of their rows."""
        if self.groups is None:
            n = len(self.values)
            return rng.multinomial(n, np.full(n, 1.0 / n), size=count).astype(np.float32) / n
        k = int(self.groups[-1]) + 1
        share = rng.multinomial(k, np.full(k, 1.0 / k), size=count)[:, self.groups]
        return np.asarray(share / share.sum(axis=1, keepdims=True), dtype=np.float32)


class _Rows:
    """Rows of simulated streams: independent rows, or whole groups whose rows keep their order."""

    def __init__(self, reference: Reference, streams: int) -> None:
        self._n, self._groups = len(reference.values), reference.groups
        if self._groups is not None:
            self._starts = np.flatnonzero(np.diff(self._groups, prepend=-1))
            self._ends = np.append(self._starts[1:], self._n)
            self._next, self._stop = np.zeros((2, streams), dtype=np.intp)

    def draw(self, count: int, streams: int, rng: np.random.Generator) -> np.ndarray:
        """Return the next `count` rows of each stream, of shape (count, streams)."""
        if self._groups is None:
            return rng.integers(self._n, size=(count, streams))
        if not self._stop.any():  # a stream begins anywhere in a group
            chosen = self._groups[rng.integers(self._n, size=streams)]
            self._stop = self._ends[chosen]
            self._next = rng.integers(self._starts[chosen], self._stop)
        out = np.empty((count, streams), dtype=np.intp)
        for line in out:
            line[:] = self._next
            self._next = self._next + 1
            over = np.flatnonzero(self._next >= self._stop)
            chosen = rng.integers(len(self._starts), size=len(over))
            self._next[over], self._stop[over] = self._starts[chosen], self._ends[chosen]
        return out

    def keep(self, kept: np.ndarray) -> None:
        """Drop the other streams."""
        if self._groups is not None:
            self._next, self._stop = self._next[kept], self._stop[kept]


def _quantile(covariance: np.ndarray, others: np.ndarray, level: float) -> np.ndarray:
    """Return upper quantiles of quadratic forms by a chi-squared law with the same first three cumulants."""
    square = covariance @ covariance
    first = np.trace(covariance, axis1=1, axis2=2) + others.sum(axis=1)
    second = np.trace(square, axis1=1, axis2=2) + (others**2).sum(axis=1)
    third = (square * covariance).sum(axis=(1, 2)) + (others**3).sum(axis=1)
    # Never below 1, except for a reference of equal rows, for which all cumulants are 0.
    freedom = np.maximum(second**3 / np.maximum(third**2, np.finfo(np.float64).tiny), 1.0)
    return first + np.sqrt(second / freedom) * (chi2.isf(level, freedom) - freedom)


class _Walks:
    """Statistics of simulated monitors, each with its own reference and stream, computed in blocks of one window."""

    def __init__(self, reference: Reference, window: int, means: np.ndarray, scale: np.ndarray, first: int) -> None:
        self._pool, self._window = reference.values, window
        self._means, self._scale = means, scale
        self._names = first + np.arange(len(means))
        self._rest = float(reference.rest.sum()) * (1.0 / window + 1.0 / len(reference.values))
        self._suffix: np.ndarray | None = None
        self._rows = _Rows(reference, len(means))
        self.peaks = np.full(len(means), -np.inf)
        self.records: list[np.ndarray] = []
        self.rows = 0

    def __len__(self) -> int:
        return len(self._names)

    def advance(self, rng: np.random.Generator, blocks: int = 1) -> None:
        """Simulate some more blocks, and record statistics that are larger than all before them."""
        window, streams = self._window, len(self)
        rows = self._rows.draw(blocks * window, streams, rng).reshape(blocks, window, streams)
        values = self._pool[rows.transpose(1, 0, 2)]
        # A window is the end of one block and the beginning of the next, so nothing is subtracted from long sums.
        means, suffix = values.copy(), values
        for i in range(1, window):  # six times as fast as np.add.accumulate
            means[i] += means[i - 1]
            suffix[-1 - i] += suffix[-i]
        means[:-1, 1:] += suffix[1:, :-1]
        if self._suffix is not None:
            means[:-1, 0] += self._suffix[1:]
        means /= window
        means -= self._means
        statistics = (np.einsum("tbkr,tbkr->btk", means, means) + self._rest) / self._scale
        statistics = statistics.reshape(blocks * window, streams)[0 if self._suffix is not None else window - 1 :]
        self._suffix = suffix[:, -1].copy()
        self.rows += blocks * window
        self._record(statistics)

    def _record(self, statistics: np.ndarray) -> None:
        highest = np.maximum.accumulate(np.vstack([self.peaks[None], statistics]), axis=0)
        time, who = np.nonzero(highest[1:] > highest[:-1])
        row = self.rows - len(statistics) + 1 + time
        self.records.append(np.column_stack([self._names[who], row, statistics[time, who]]))
        self.peaks = highest[-1]

    def drop(self, threshold: float) -> None:
        """Keep only the monitors that have not crossed `threshold`."""
        kept = self.peaks <= threshold
        self._names, self.peaks = self._names[kept], self.peaks[kept]
        self._means, self._scale = self._means[kept], self._scale[kept]
        self._rows.keep(kept)
        if self._suffix is not None:
            self._suffix = self._suffix[:, kept]


def calibrate(
    values: np.ndarray,
    window: int,
    run_length: float,
    rng: np.random.Generator,
    groups: np.ndarray | None = None,
    verbose: bool | int = False,
) -> tuple[float, np.ndarray]:
    """Return the threshold and its simulated run lengths.

    The rows of the reference serve as the distribution. Each simulated monitor draws a reference of the same size, scales the
    threshold as that reference would, and runs on rows drawn from the given reference. The threshold is the number for which
    the mean run length of the simulated monitors is the requested one.

    Parameters
    ----------
    values : array of shape (n, r)
        Features of the reference, mean 0, the directions of the largest variance first.
    window : int
        Rows of a window.
    run_length : float
        Mean run length in rows, including those of the first window.
    rng : numpy.random.Generator
        Generator of the simulations.
    groups : array of shape (n,), optional
        Group of each row of the reference. References and streams then consist of whole groups.
    verbose : bool or int, default=False
        Whether to show progress bars.

    Returns
    -------
    threshold : float
        Threshold for the squared norm of the mean of a window.
    run_lengths : array of shape (simulations,)
        Simulated run lengths, truncated at 50 times the requested mean.
    """
    size = float(np.mean(values**2, axis=0).sum())
    reference = Reference.of(values / np.sqrt(size), groups)  # within single precision for any ridge
    count = int(np.clip(SIMULATED_ROWS / run_length, FEWEST, MOST))
    # The statistic exceeds the threshold for a few rows at a time, once in a run length.
    with Progress("simulation of references", count, verbose) as tick:
        means, scale = reference.drawn_again(count, min(0.1, 3.0 / run_length), rng, tick)
    parts = [slice(start, start + _TOGETHER) for start in range(0, count, _TOGETHER)]
    walks = [_Walks(reference, window, means[part], scale[part], part.start) for part in parts]
    blocks = max(1, round((window + 0.5 * (run_length - window)) / window))
    with Progress("simulation of streams", len(walks) * blocks, verbose) as tick:
        for walk in walks:
            for _ in range(blocks):
                walk.advance(rng)
                tick()
    elapsed = (blocks - 1.0) * window / (run_length - window)
    beyond = np.exp(-max(elapsed, 1.0 / count) / AHEAD)
    ceiling = float(np.quantile(np.concatenate([walk.peaks for walk in walks]), min(beyond, 1.0 - 2.0 / count)))
    longest = max(1, int(run_length / (4 * window)))
    with Progress("simulation of false alarms", count, verbose) as tick:
        for walk in walks:
            running = len(walk)
            walk.drop(ceiling)
            while len(walk) and walk.rows < HORIZON * run_length:
                walk.advance(rng, min(_TOGETHER // len(walk), longest))  # the last monitors run alone for long
                walk.drop(ceiling)
                tick(running - len(walk))
                running = len(walk)
            tick(running)
    records = np.concatenate([r for walk in walks for r in walk.records])
    threshold, run_lengths = _solve(records, count, run_length, ceiling)
    return size * threshold, run_lengths


def _solve(records: np.ndarray, count: int, run_length: float, ceiling: float) -> tuple[float, np.ndarray]:
    """Return the threshold up to `ceiling` with the requested mean run length, and its run lengths."""
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


# Eigenvectors of H with an eigenvalue below this share of the largest are left out; they are nearly 0 everywhere.
LOST = 1e-8

# Distance of the quartiles of a normal distribution, in standard deviations.
_IN_DEVIATIONS = 1.349


def spread(X: np.ndarray) -> np.ndarray:
    """Return the smaller of the standard deviation and its estimate from the quartiles, so that far rows have no influence."""
    farthest = np.abs(X).max(axis=0)
    # Squares of giant numbers would overflow.
    plain = farthest * (X / np.where(farthest > 0.0, farthest, 1.0)).std(axis=0)
    low, high = np.quantile(X, (0.25, 0.75), axis=0)
    robust = high / _IN_DEVIATIONS - low / _IN_DEVIATIONS
    return np.where((robust > 0.0) & (robust < plain), robust, plain)


@dataclass(frozen=True, eq=False)
class DriftFeatures:
    r"""The map :math:`x \mapsto M^{1/2} \psi(x)` less its mean over the reference, in rotated coordinates.

    The squared norm of the mean over a window is :math:`h^\top M h` for :math:`h = \bar\psi_W - \bar\psi_R`. The value of a
    row has the same bits whatever other rows are in the call: products are computed row by row, because the order in which
    BLAS sums depends on the number of rows.

    Parameters
    ----------
    frame : Frame
        Frame in which the length scale is 1.
    centers : array of shape (b, d)
        Centres in the frame.
    projection : array of shape (b, r)
        :math:`M^{1/2}` times a rotation.
    mean : array of shape (r,)
        Mean over the reference.
    """

    frame: Frame
    centers: np.ndarray
    projection: np.ndarray
    mean: np.ndarray

    @classmethod
    def of(
        cls, centers: np.ndarray, others: np.ndarray, frame: Frame, alpha: float, **limits: Any
    ) -> tuple[Self, np.ndarray]:
        """Return the map of the other rows of a reference around some of its rows, and its values there, of mean 0.

        A centre is nearer to itself than any new row is, so centres are left out of the mean.
        """
        system = GaussianSystem(frame.enter(centers), 0.0, **limits)
        spectrum = PenalizedSpectrum.of(system.gram())
        spectrum.check(alpha)
        kept = spectrum.values > LOST * spectrum.values[-1]
        root = spectrum.vectors[:, kept] * np.sqrt(spectrum.dual_weights(alpha)[kept])
        psi = system.matrix(frame.enter(others))
        values = psi @ root
        values -= values.mean(axis=0)
        # The directions in which the reference varies most come first.
        inner = interruptible(2.0 * values.size * values.shape[1], np.matmul, values.T, values)
        turn = interruptible(9.0 * len(inner) ** 3, np.linalg.eigh, inner)[1][:, ::-1]
        projection = root @ turn
        return cls(frame, system.centers, projection, psi.mean(axis=0) @ projection), values @ turn

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the values at rows of shape (n, n_features), of shape (n, r)."""
        z = np.ascontiguousarray(self.frame.enter(X))
        cross = np.matmul(z[:, None, :], self.centers.T)[:, 0]
        squares = (z * z).sum(axis=1)[:, None] + (self.centers * self.centers).sum(axis=1) - 2.0 * cross
        psi = np.exp(-0.5 * np.maximum(squares, 0.0))
        return np.matmul(psi[:, None, :], self.projection)[:, 0] - self.mean
