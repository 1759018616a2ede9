"""Calibration of the threshold of a drift monitor: simulated run lengths over references and streams."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.stats import chi2

from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.dependence import DIRECTIONS
from isopleth.core.progress import Progress, unheard
from isopleth.core.scales import ScaledColumns
from isopleth.core.threads import interruptible
from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum
from isopleth.operators.features import GaussianFeatures

SIMULATED_ROWS = 1e6
# Simulated monitors: as many as the rows allow. The standard error of the mean run length of 300 is about 6 %.
FEWEST, MOST = 300, 1000

# At most DIRECTIONS, or the directions with this share of the variance, are simulated; the others stay at their mean.
SHARE = 0.98

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
class RowBlocks:
    """Rows of a reference that simulations draw together, in their order: whole groups, or stretches from any row on."""

    names: np.ndarray  # (n,): number of the group or stretch of each row, from 0 on, in ascending order
    length: int = 0  # number of rows that are drawn together, fewer at the end of a stretch; 0 for whole groups
    # (n,): place of each row in a season. A stretch is followed by one that begins at the next phase
    phases: np.ndarray | None = None
    period: int = 1  # number of phases
    lost: float = 1.0  # variance of the mean of a window over that of windows of such rows, which cross ends

    @classmethod
    def of_groups(cls, groups: np.ndarray) -> Self:
        """Draw whole groups of rows."""
        return cls(groups)

    @classmethod
    def of_stretches(cls, places: np.ndarray, length: int, period: int, lost: float) -> Self:
        """Draw stretches of rows, which are at these places of the reference."""
        names = np.cumsum(np.diff(places, prepend=places[0]) > 1)
        return cls(names, length, places % max(period, 1), max(period, 1), lost)

    @property
    def order(self) -> np.ndarray:
        """Positions of the rows, group by group."""
        return np.argsort(self.names, kind="stable")

    def sorted(self) -> Self:
        """Return the blocks of the rows in :attr:`order`."""
        return replace(self, names=np.unique(self.names[self.order], return_inverse=True)[1].ravel())

    @property
    def together(self) -> np.ndarray:
        """Number of the block of each row, where blocks do not overlap."""
        return np.arange(len(self.names)) // self.length if self.length else self.names

    @cached_property
    def starts(self) -> np.ndarray:
        """First row of each group or stretch."""
        return np.flatnonzero(np.diff(self.names, prepend=-1))

    @cached_property
    def ends(self) -> np.ndarray:
        """Row behind the last one of each group or stretch."""
        return np.append(self.starts[1:], len(self.names))

    @cached_property
    def _by_phase(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows in the order of their phases, and the ends of the phases among these."""
        assert self.phases is not None
        return np.argsort(self.phases, kind="stable"), np.cumsum(np.bincount(self.phases, minlength=self.period))

    def begin(self, after: np.ndarray | None, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw first rows and ends of the blocks that follow some rows; a stream begins (`after` None) anywhere in a block."""
        n = len(self.names)
        if self.length:
            start = rng.integers(n, size=count)
            length: Any = rng.integers(1, self.length + 1, size=count) if after is None else self.length
            if after is not None and self.phases is not None and self.period > 1:
                rows, ends = self._by_phase
                phase = (self.phases[after] + 1) % self.period
                first = np.where(phase > 0, ends[phase - 1], 0)
                start = rows[first + (rng.random(count) * (ends[phase] - first)).astype(np.intp)]
            return start, np.minimum(start + length, self.ends[self.names[start]])
        if after is None:
            row = rng.integers(n, size=count)
            return row, self.ends[self.names[row]]
        chosen = rng.integers(len(self.starts), size=count)
        return self.starts[chosen], self.ends[chosen]

    def shares(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw references of whole blocks, as shares of their rows, of shape (count, n)."""
        n = len(self.names)
        if not self.length:
            k = len(self.starts)
            share = rng.multinomial(k, np.full(k, 1.0 / k), size=count)[:, self.names]
            return np.asarray(share / share.sum(axis=1, keepdims=True))
        length = min(self.length, n)
        blocks = -(-n // length)
        starts = rng.multinomial(blocks, np.full(n, 1.0 / n), size=count)
        sums = np.cumsum(np.hstack([np.zeros((count, 1)), starts[:, n - length + 1 :], starts]), axis=1)  # in a circle
        return np.asarray((sums[:, length:] - sums[:, :-length]) / (blocks * length))


@dataclass(frozen=True, eq=False)
class Reference:
    """Features of the reference, from which simulated references and streams are drawn."""

    values: np.ndarray  # (n, r): values of the features at its rows in the leading directions, mean 0
    # (s,): variances in the other directions; those of blocks divided by their rows if there are blocks
    rest: np.ndarray
    blocks: RowBlocks | None = None  # rows that depend on each other

    @classmethod
    def of(cls, values: np.ndarray, blocks: RowBlocks | None = None) -> Reference:
        """Keep the leading of all directions, which are sorted by falling variance."""
        if blocks is not None:
            values, blocks = values[blocks.order], blocks.sorted()
        variances = np.mean(values**2, axis=0)
        total = float(variances.sum())
        enough = int(np.searchsorted(np.cumsum(variances), SHARE * total)) + 1
        kept = max(1, min(enough, DIRECTIONS, len(variances)))
        rest = variances[kept:]
        if blocks is not None:
            sums = np.add.reduceat(values[:, kept:], np.flatnonzero(np.diff(blocks.together, prepend=-1)), axis=0)
            rest = np.maximum(rest, (sums**2).sum(axis=0) / len(values))
        return cls(values[:, :kept].astype(np.float32), rest, blocks)

    def drawn_again(
        self, count: int, level: float, rng: np.random.Generator, tick: Callable[[int], None] = unheard
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `count` references; return their means, and their thresholds, by three traces, relative to this one's."""
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
        """Draw `count` references from this one, by rows or blocks, as shares of their rows."""
        if self.blocks is not None:
            return self.blocks.shares(count, rng).astype(np.float32)
        n = len(self.values)
        return rng.multinomial(n, np.full(n, 1.0 / n), size=count).astype(np.float32) / n


class _Rows:
    """Rows of simulated streams: independent rows, or blocks whose rows keep their order."""

    def __init__(self, reference: Reference, streams: int) -> None:
        self._n, self._blocks = len(reference.values), reference.blocks
        self._next, self._stop = np.zeros((2, streams), dtype=np.intp)

    def draw(self, count: int, streams: int, rng: np.random.Generator) -> np.ndarray:
        """Return the next `count` rows of each stream, of shape (count, streams)."""
        if self._blocks is None:
            return rng.integers(self._n, size=(count, streams))
        if not self._stop.any():
            self._next, self._stop = self._blocks.begin(None, streams, rng)
        out, time, done = (
            np.empty((count, streams), dtype=np.intp),
            np.arange(count)[:, None],
            np.zeros(streams, dtype=np.intp),
        )
        while done.min(initial=count) < count:  # one block of each stream at a time
            end = np.minimum(done + self._stop - self._next, count)
            np.copyto(out, self._next + time - done, where=(time >= done) & (time < end))
            self._next, done = self._next + end - done, end
            over = np.flatnonzero(self._next >= self._stop)
            if len(over):
                self._next[over], self._stop[over] = self._blocks.begin(self._next[over] - 1, len(over), rng)
        return out

    def keep(self, kept: np.ndarray) -> None:
        """Drop the other streams."""
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
        """Keep each new maximum of a statistic, with its row."""
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
    blocks: RowBlocks | None = None,
    budget: Budget = DEFAULT_BUDGET,
) -> tuple[float, np.ndarray]:
    """Return the threshold with the requested mean run length of simulated monitors, and the run lengths.

    Each draws a reference, and rows from the given one, in `blocks` if any; lengths, first window included, end at 50 times the
    mean. `values` (n, r) have mean 0, the directions of largest variance first.
    """
    size = float(np.mean(values**2, axis=0).sum())
    reference = Reference.of(values / np.sqrt(size), blocks)  # within single precision for any ridge
    count = int(np.clip(SIMULATED_ROWS / run_length, FEWEST, MOST))
    # The statistic exceeds the threshold for a few rows at a time, once in a run length.
    with Progress("simulation of references", count, budget.verbose) as tick:
        means, scale = reference.drawn_again(count, min(0.1, 3.0 / run_length), rng, tick)
    parts = [slice(start, start + _TOGETHER) for start in range(0, count, _TOGETHER)]
    walks = [_Walks(reference, window, means[part], scale[part], part.start) for part in parts]
    steps = max(1, round((window + 0.5 * (run_length - window)) / window))
    with Progress("simulation of streams", len(walks) * steps, budget.verbose) as tick:
        for walk in walks:
            for _ in range(steps):
                walk.advance(rng)
                tick()
    elapsed = (steps - 1.0) * window / (run_length - window)
    beyond = np.exp(-max(elapsed, 1.0 / count) / AHEAD)
    ceiling = float(np.quantile(np.concatenate([walk.peaks for walk in walks]), min(beyond, 1.0 - 2.0 / count)))
    longest = max(1, int(run_length / (4 * window)))
    with Progress("simulation of false alarms", count, budget.verbose) as tick:
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
    return size * threshold * (1.0 if blocks is None else blocks.lost), run_lengths


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
    candidates = candidates[: np.searchsorted(candidates, ceiling, side="right")].tolist()
    place = bisect_left(range(len(candidates) - 1), run_length, key=lambda i: run_lengths(candidates[i]).mean())
    threshold = candidates[place]
    return threshold, run_lengths(threshold)


_STRETCHES = 10


def in_stretches(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the positions of `count` of `n` rows in ten stretches of consecutive rows at equal distances."""
    sizes = np.full(_STRETCHES, count // _STRETCHES) + (np.arange(_STRETCHES) < count % _STRETCHES)
    starts = np.arange(_STRETCHES) * n // _STRETCHES + rng.integers(n // _STRETCHES - sizes.max() + 1, size=_STRETCHES)
    return np.concatenate([start + np.arange(size) for start, size in zip(starts, sizes, strict=True)])


def of_some_groups(groups: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw the positions of `count` rows, of at most a quarter of the groups, and return those of the rows of the other groups.

    Groups without some of their rows would be shorter than those of streams, so that windows of them vary less.
    """
    names = rng.permutation(int(groups.max()) + 1)
    aside = np.isin(groups, names[: min(count, len(names) // 4)])
    return np.sort(rng.permutation(np.flatnonzero(aside))[:count]), np.flatnonzero(~aside)


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
    return np.where((robust > 1e-9 * plain) & (robust < plain), robust, plain)  # quartiles may differ by rounding only


@dataclass(frozen=True, eq=False)
class DriftFeatures:
    r"""The map :math:`x \mapsto M^{1/2} \psi(x)` less its mean over the reference, in rotated coordinates.

    Products are computed row by row, so that other rows of a call change no bit: BLAS sums depend on their number.
    """

    frame: ScaledColumns  # frame in which the length scale is 1
    functions: GaussianFeatures  # around centres in the frame
    projection: np.ndarray  # (b, r): `M^{1/2}` times a rotation
    mean: np.ndarray  # (r,): mean over the reference

    @classmethod
    def of(
        cls, centers: np.ndarray, others: np.ndarray, frame: ScaledColumns, alpha: float, budget: Budget
    ) -> tuple[Self, np.ndarray]:
        """Return the map of the other rows of a reference around some, and its values there; a centre is nearest to itself."""
        system = GaussianSystem(frame.enter(centers), 0.0, budget)
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
        return cls(
            frame, GaussianFeatures(system.centers, 1.0), projection, psi.mean(axis=0) @ projection
        ), values @ turn

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the values at rows of shape (n, n_features), of shape (n, r)."""
        psi = self.functions(self.frame.enter(X))
        # Not one product of matrices, whose last digits depend on how many rows are given at once.
        return np.matmul(psi[:, None, :], self.projection)[:, 0] - self.mean
