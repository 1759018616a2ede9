r"""Laws of the cells of all columns at once, on bins, sturdy against wrong cells among the rows of the fit.

:class:`NumberLaw` and :class:`WordLaw` spend two forests and fifty-four kernels on one column. Where every column has to be
judged, this is the cheaper form of the same rule: a forest, a line and frequencies, each without the row that is judged, pooled
by EM. The coordinates and the line are chosen so that a few giants or wrong cells of the table do not set the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from isopleth.conditional.forest import Forest, Growth
from isopleth.conditional.inputs import Inputs
from isopleth.conditional.pools import pool_weights
from isopleth.conditional.ridge import Ridge
from isopleth.conditional.word_means import codes_of_target
from isopleth.core.laws import logarithmic_beyond_one, mean_ranks, normal_scores_of_counts
from isopleth.core.rows import differ
from isopleth.core.threads import check_stopped, slices

# Most bins of a column of numbers, and ranks from each end of which every one has a bin.
_BINS, _END_RANKS = 96, (0, 1, 2, 4, 8, 16)
# Quantile of each tail from which on scores are straight, and then logarithmic.
_TAIL = 1.0 / 32.0
# Share of the lower one of these quantiles from which on logarithms are taken, and share of the variance about a straight line
# that they have to leave at most, of that which values leave.
_LEAST_SHARE, _CLEARLY = 0.01, 0.75
# How the trees of a column are grown, and words that they tell apart.
OF_BINS, _MOST_WORDS = Growth(60, leaf=3, columns=1.0 / 3.0), 30
# Share of the frequencies that is added to the shares of leaves, and rows that all bins together have beforehand. The pool has
# the frequencies as a part of its own; a larger share here would bound how unlikely the value of another group can be.
_PRIOR, _BEFOREHAND = 0.001, 0.02
# Widths, in scores, of the kernels that smooth masses: two normal ones and a Cauchy kernel.
_NORMAL_WIDTHS, _CAUCHY_WIDTH = (0.1, 0.3), 0.5
# Widths of the kernels of residuals, in robust deviations: two normal ones and a Cauchy kernel. The pool gives the last one as
# much weight as the residuals have heavy tails, and at least this: more would bound how unlikely a wrong cell can be, and with
# less a row with gaps, of which the line knows less, would be judged as one without.
_RESIDUAL_WIDTHS, _RESIDUAL_CAUCHY, _LEAST_CAUCHY = (0.2, 0.6), 1.8, 0.01
# Residuals are far beyond so many robust deviations if at most this share of the rows is, on their side, and at least so many
# times those that are nearly as far: tails of ordinary rows fall off without a gap. A cell is unlike its leaves up to this
# density of their smoothed shares, which are this part of the pool.
_FAR, _FEW, _NEAR, _APART, _UNLIKE, _LEAVES = 4.0, 0.02, 3.0, 2.0, 0.05, 4
# The same for the cells themselves, in scores: where no column tells theirs, of three numbers that are ten times too large the
# few ordinary rows beyond three deviations say nothing.
_FAR_SCORE, _NEAR_SCORE = 5.0, 3.5
# Steps of EM, and share of the weight that is spread evenly.
_STEPS, _FLOOR = 80, 0.002
# Coordinates of lines count as at most so many scores.
_FARTHEST = 6.0
# Rows whose laws are held at once.
_BATCH = 1024
# Most rows of a fit whose masses under each part are kept until the rows are judged.
_MOST_KEPT = 4096
# Rows from which on a table of all leaves takes less time than their sums over rows of the fit.
_MANY = 4096
# Cells of a table of kernels that is computed at once, places of a grid in it, and widths beyond which a normal kernel is 0: it
# is a billionth of the least sum there, 1e-9, for a thousand rows.
_CELLS, _PLACES, _REACH = 2**15, 32, 10.0


@dataclass(frozen=True)
class ScoreMap:
    """Normal scores between two quantiles, straight for one score beyond them, then logarithmic.

    Straight means in the values, or in their logarithms where these follow normal scores better, as amounts do.
    """

    values: np.ndarray  # or their logarithms
    scores: np.ndarray
    unit: float  # of values in a score
    least: float = 0.0  # value below which logarithms go on as a straight line; 0 for values as they are

    @classmethod
    def of(cls, values: np.ndarray, counts: np.ndarray) -> Self:
        """Choose the map by distinct values in ascending order and how often they occur."""
        share, scores = mean_ranks(counts), normal_scores_of_counts(counts)
        low, high = int(np.searchsorted(share, _TAIL)), int(np.searchsorted(share, 1.0 - _TAIL, side="right")) - 1
        if high <= low:
            low, high = 0, len(values) - 1
        middle = slice(low, high + 1)
        amounts = _multiplicative(values[middle], scores[middle], counts[middle])
        least = _LEAST_SHARE * float(values[low]) if amounts else 0.0
        values = _logarithms(values, least)
        unit = float((values[high] - values[low]) / max(scores[high] - scores[low], 1e-3)) or 1.0
        values, scores = values[low : high + 1], scores[low : high + 1]
        # Ranks have no empty stretches: between groups of values the distance is that beyond the last value.
        steps = np.maximum(np.diff(scores), logarithmic_beyond_one(np.diff(values) / unit))
        scores = scores[0] + np.concatenate([[0.0], np.cumsum(steps)])
        return cls(values, scores - np.interp(0.5, share[low : high + 1], scores), unit, least)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return the scores of values; NaN stays NaN."""
        y = _logarithms(y, self.least)
        inside = np.interp(y, self.values, self.scores)
        with np.errstate(over="ignore"):  # a distance beyond all numbers counts as the largest
            above, below = (y - self.values[-1]) / self.unit, (self.values[0] - y) / self.unit
        return np.asarray(inside + logarithmic_beyond_one(above) - logarithmic_beyond_one(below))


def _multiplicative(values: np.ndarray, scores: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether the logarithms of ascending values follow normal scores clearly better than the values do."""
    if values[0] <= 0.0 or len(values) < 3:
        return False

    def left(y: np.ndarray) -> float:
        covariance = np.cov(y, scores, fweights=counts)
        return 1.0 - float(covariance[0, 1] ** 2 / np.prod(np.diag(covariance)))

    return left(np.log(values)) < _CLEARLY * left(values)


def _logarithms(y: np.ndarray, least: float) -> np.ndarray:
    """Return the logarithms of values from `least` on, and below it the tangent, as zeros and wrong signs have none."""
    if not least:
        return y
    return np.where(y < least, np.log(least) + (y - least) / least, np.log(np.maximum(y, least)))


@dataclass(frozen=True)
class NumberBins:
    """Values of a column that stand for all others, in scores."""

    values: np.ndarray  # (B,)
    centers: np.ndarray  # (B,): their scores
    widths: np.ndarray  # (B,): in scores

    @classmethod
    def of(cls, known: np.ndarray, scores: ScoreMap) -> Self:
        """Choose distinct values: all of them, or those at some ranks."""
        ordered = np.sort(known)
        values = _distinct(ordered)[0]
        if len(values) > _BINS:
            n = len(ordered)
            ends = np.array(_END_RANKS)
            inner = np.linspace(_END_RANKS[-1], n - 1 - _END_RANKS[-1], _BINS - 2 * len(ends))
            ranks = np.clip(np.rint(np.concatenate([ends, inner, n - 1 - ends])), 0, n - 1).astype(np.intp)
            values = _distinct(np.sort(ordered[ranks]))[0]
        centers = scores(values)
        apart = np.concatenate([[True], np.diff(centers) > 1e-6])
        values, centers = values[apart], centers[apart]
        if len(centers) == 1:
            return cls(values, centers, np.ones(1))
        edges = np.concatenate([[1.5 * centers[0] - 0.5 * centers[1]], 0.5 * (centers[1:] + centers[:-1])])
        edges = np.append(edges, 1.5 * centers[-1] - 0.5 * centers[-2])
        return cls(values, centers, np.maximum(np.diff(edges), 1e-3))

    def __len__(self) -> int:
        return len(self.values)

    def shares(self, z: np.ndarray) -> csr_array:
        """Return how scores are shared between the two bins beside them, (n, B): answers are continuous in the cells."""
        place = np.interp(z, self.centers, np.arange(len(self), dtype=np.float64))
        near = np.rint(place)
        place = np.where(np.abs(place - near) < 1e-6, near, place)
        first = np.minimum(place.astype(np.intp), max(len(self) - 2, 0))
        part = place - first
        second = np.minimum(first + 1, len(self) - 1)
        columns, data = np.stack([first, second], axis=1).ravel(), np.stack([1.0 - part, part], axis=1).ravel()
        out = csr_array((data, columns, 2 * np.arange(len(z) + 1)), shape=(len(z), len(self)))
        out.sum_duplicates()
        return out

    def far(self, z: np.ndarray) -> np.ndarray:
        """Return by which factor the density of scores beyond all bins is less than that of the last bin."""
        out = np.maximum(np.maximum(z - self.centers[-1], self.centers[0] - z), 0.0)
        return np.asarray(1.0 / (1.0 + (out / _CAUCHY_WIDTH) ** 2))


@dataclass(frozen=True)
class WordBins:
    """Words of a column; each is a bin, and a word that no row of the fit has is in none."""

    size: int

    @property
    def widths(self) -> np.ndarray:
        """Ones: words have masses and no densities."""
        return np.ones(self.size)

    def __len__(self) -> int:
        return self.size

    def shares(self, codes: np.ndarray) -> csr_array:
        """Return the words as rows of 0 and 1."""
        known = codes < self.size
        return csr_array(
            (known[known] * 1.0, codes[known].astype(np.intp), np.concatenate([[0], np.cumsum(known)])),
            shape=(len(codes), self.size),
        )

    def far(self, codes: np.ndarray) -> np.ndarray:
        """Return ones: words have no distance."""
        return np.ones(len(codes))


def _distinct(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of an ascending array that differ beyond rounding, and how often each occurs."""
    first = np.concatenate([[0], np.flatnonzero(differ(ordered)) + 1]) if len(ordered) > 1 else np.zeros(1, dtype=int)
    return ordered[first], np.diff(np.append(first, len(ordered)))


def score_maps(rows: np.ndarray, n_numeric: int) -> list[ScoreMap | None]:
    """Return the map of each column of numbers to scores; None for one without a known cell."""
    found: list[ScoreMap | None] = []
    for cells in rows[:, :n_numeric].T:
        known = np.sort(cells[~np.isnan(cells)])
        found.append(ScoreMap.of(*_distinct(known)) if len(known) else None)
    return found


def in_scores(rows: np.ndarray, maps: list[ScoreMap | None]) -> np.ndarray:
    """Return rows with numbers as scores, which are the coordinates of trees and lines."""
    out = rows.copy()
    for j, scores in enumerate(maps):
        if scores is not None:
            out[:, j] = scores(rows[:, j])
    return out


@dataclass(frozen=True)
class ResidualDensity:
    """Density of residuals of a line, tabulated, for each of three kernels: two normal ones and a Cauchy kernel."""

    residuals: np.ndarray  # (n,): of the rows of the fit, from lines without them
    counted: np.ndarray  # (n,): mask of those that have normal kernels
    widths: np.ndarray  # (3,)
    grid: np.ndarray
    table: np.ndarray  # (3, G): sums of kernels

    @classmethod
    def of(cls, residuals: np.ndarray, counted: np.ndarray | None = None) -> Self:
        """Sum kernels about the residuals, in robust deviations; normal ones about those that are counted only."""
        counted = np.ones(len(residuals), dtype=bool) if counted is None else counted
        deviation = 1.4826 * float(np.median(np.abs(residuals - np.median(residuals))))
        widths = np.array((*_RESIDUAL_WIDTHS, _RESIDUAL_CAUCHY)) * max(deviation, 0.02, 0.1 * float(residuals.std()))
        grid = np.linspace(residuals.min() - 12.0 * widths[1], residuals.max() + 12.0 * widths[1], 1024)
        near = np.sort(residuals[counted])
        sums = [_sums(*each, grid) for each in zip(_KERNELS, widths, (near, near, residuals), strict=True)]
        return cls(residuals, counted, widths, grid, np.stack(sums))

    @property
    def far(self) -> np.ndarray:
        """Mask of the residuals far from the others, where these are few on their side and no tail that falls off slowly."""
        away = (self.residuals - np.median(self.residuals)) * (_RESIDUAL_WIDTHS[0] / self.widths[0])
        return _beyond_a_gap(away, _FAR, _NEAR)

    def knots(self, bins: NumberBins) -> tuple[float, float, int]:
        """Return the first trend between which masses are interpolated, the step, and their number.

        The steps are those of the grid; beyond the first and the last trend all bins are beyond the grid.
        """
        step = float(self.grid[1] - self.grid[0])
        first = float(bins.centers[0] - self.grid[-1]) - step
        return first, step, int(np.ceil((bins.centers[-1] - self.grid[0] - first) / step)) + 2

    def between(self, trend: np.ndarray, bins: NumberBins) -> tuple[np.ndarray, np.ndarray]:
        """Return the knot below each trend, and the share of the way to the next one."""
        first, step, count = self.knots(bins)
        at = np.clip((trend - first) / step, 0.0, count - 1.0)
        below = np.minimum(at.astype(np.intp), count - 2)
        return below, at - below

    def masses_at(self, knots: np.ndarray, bins: NumberBins) -> np.ndarray:
        """Return the masses of bins about trends at knots, (3, n, B)."""
        first, step, _ = self.knots(bins)
        return self.masses(first + step * knots, bins, None)

    def masses(self, trend: np.ndarray, bins: NumberBins, own: np.ndarray | None) -> np.ndarray:
        """Return the masses of bins about trends, (3, n, B), each line of sum 1, without the row's own residual."""
        u = bins.centers - trend[:, None]
        out = np.empty((len(self.widths), *u.shape))
        for k, (kernel, h, found) in enumerate(zip(_KERNELS, self.widths, self._at(u), strict=True)):
            if own is not None:
                one = kernel(u - self.residuals[own, None], h)
                found = found - (one * self.counted[own, None] if kernel is _normal else one)
            found = bins.widths * np.maximum(found, 1e-9)
            out[k] = found / found.sum(axis=1, keepdims=True)
        return out

    def _at(self, u: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the sums of each kernel at places between those of the grid, which are found once for all kernels."""
        last = len(self.grid) - 1
        place = (u - self.grid[0]) * (last / (self.grid[-1] - self.grid[0]))
        inside = np.clip(place, 0.0, float(last))
        below = np.minimum(inside.astype(np.int32), last - 1)
        part, low, high = inside - below, place < 0.0, place > last
        for kernel, sums in zip(_KERNELS, self.table, strict=True):
            found = np.diff(sums).take(below)
            found *= part
            found += sums.take(below)
            beyond = 1.0 if kernel is _cauchy else 0.3  # of the value at the end of the grid
            found[low], found[high] = beyond * sums[0], beyond * sums[-1]
            yield found


def _beyond_a_gap(away: np.ndarray, end: float, start: float) -> np.ndarray:
    """Return a mask of the few distances beyond one end, on their side, with hardly any between a start and this end."""
    out = np.zeros(len(away), dtype=bool)
    for beyond in (away, -away):
        far, near = beyond > end, (beyond > start) & (beyond <= end)
        if _APART * near.sum() <= far.sum() <= _FEW * len(far):
            out |= far
    return out


def _normal(t: np.ndarray, width: float) -> np.ndarray:
    """Return a normal kernel of height 1."""
    out = t / width
    out *= out
    out *= -0.5
    return np.asarray(np.exp(out, out=out))


def _cauchy(t: np.ndarray, width: float) -> np.ndarray:
    """Return a Cauchy kernel of height 1."""
    out = t / width
    out *= out
    out += 1.0
    return np.asarray(np.divide(1.0, out, out=out))


_KERNELS = (_normal, _normal, _cauchy)


def _sums(
    kernel: Callable[[np.ndarray, float], np.ndarray], width: float, about: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """Return the sums of kernels about ascending places, or any for the Cauchy kernel, at each place of a grid.

    Some places of the grid at a time, as the table of all by all does not fit into a cache; a normal kernel only about what is
    near them, as all others add nothing.
    """
    out = np.zeros(len(grid))
    reach = np.inf if kernel is _cauchy else _REACH * width
    for part in slices(len(grid), _PLACES):
        first, last = np.searchsorted(about, (grid[part][0] - reach, grid[part][-1] + reach))
        for some in slices(last - first, _CELLS / _PLACES):
            here = about[first:last][some]
            out[part] += kernel(grid[part, None] - here, width).sum(axis=1)
    return out


@dataclass(frozen=True)
class BinnedLaw:
    """Law of one column given the others, as masses of bins."""

    bins: NumberBins | WordBins
    inputs: Inputs
    forest: Forest
    # data, indices, indptr of the cells of the rows of the fit as shares of bins, a sparse matrix (n, B)
    shared: tuple[np.ndarray, np.ndarray, np.ndarray]
    line: Ridge | None
    trends: np.ndarray | None  # (n,): of lines without the row
    residuals: ResidualDensity | None
    weights: np.ndarray  # of the pool

    @classmethod
    def fit(
        cls,
        bins: NumberBins | WordBins,
        scored: np.ndarray,
        j: int,
        n_numeric: int,
        order: np.ndarray,
        growth: Growth = OF_BINS,
    ) -> Self:
        """Fit the law of column j to rows whose numbers are scores and whose cell of the column is known.

        `order` has the columns in an order that does not depend on that of the table; the rows likewise.
        """
        return cls.fit_judging(bins, scored, j, n_numeric, order, growth)[0]

    @classmethod
    def fit_judging(
        cls,
        bins: NumberBins | WordBins,
        scored: np.ndarray,
        j: int,
        n_numeric: int,
        order: np.ndarray,
        growth: Growth,
    ) -> tuple[Self, Iterator[tuple[np.ndarray, np.ndarray]], Callable[[np.ndarray], np.ndarray]]:
        """Fit as `fit` does, and return what judges all rows of the fit and many others, which is not kept.

        The second value yields the places of :meth:`batches` with their masses, as :meth:`of_fit` returns them; the third is
        `leaves` of the forest by compiled trees.
        """
        cells, w = scored[:, j], np.ones(len(scored))
        shares, line, trends, residuals = bins.shares(cells), None, None, None
        if isinstance(bins, NumberBins):
            target = cells
            inputs, X, A = Inputs.fit(scored, w, n_numeric, order[order != j], cells[:, None], w, shrunk_by=1.0)
            line, left = Ridge.fit(np.clip(A, -_FARTHEST, _FARTHEST), cells, w, by_median=True)
            trends, residuals = cells - left, ResidualDensity.of(left)
        else:
            counts = np.asarray(shares.sum(axis=0)).ravel()
            target = shares @ _codes_of_words(counts)
            told = shares @ codes_of_target(counts)
            inputs, X, A = Inputs.fit(scored, w, n_numeric, order[order != j], told, w, shrunk_by=1.0)
        forest, leaves = Forest.fit_placing(X, target, w, growth)
        law = cls(
            bins, inputs, forest, (shares.data, shares.indices, shares.indptr), line, trends, residuals, np.ones(1)
        )
        law, kept = law._without_doubted(shares)
        parts = kept or map(law._parts, law.batches())
        own = [law._own(part, shares[places]) for places, part in zip(law.batches(), parts, strict=True)]
        counted = w if law.residuals is None else law.residuals.counted * 1.0
        weights = pool_weights(np.concatenate(own), counted, _STEPS, _FLOOR)
        if law.residuals is not None:
            weights *= 1.0 - _LEAST_CAUCHY
            weights[-1] += _LEAST_CAUCHY
        law = replace(law, weights=weights)
        of_fit = zip(law.batches(), map(law._pooled, kept or map(law._parts, law.batches())), strict=True)
        return law, of_fit, leaves

    def _without_doubted(self, shares: csr_array) -> tuple[Self, list[list[np.ndarray]] | None]:
        """Return the law by which few cells that are far from the line, and unlike their leaves, do not vouch for each other.

        Such cells, as of numbers that are ten times too large, count for the Cauchy kernel of the residuals alone. The second
        value is the masses under each part at the rows of the fit, None if these are too many to be held.
        """
        kept = [self._parts(places) for places in self.batches()] if len(shares.indptr) <= _MOST_KEPT else None
        if self.residuals is None or not isinstance(self.bins, NumberBins):
            return self, kept
        far = self.residuals.far | _beyond_a_gap(shares @ self.bins.centers, _FAR_SCORE, _NEAR_SCORE)
        if not far.any():
            return self, kept
        doubted = np.zeros(len(far), dtype=bool)
        for k, places in enumerate(self.batches()):
            if far[places].any():
                part = kept[k] if kept is not None else self._parts(places)
                doubted[places] = far[places] & (self._density(part[_LEAVES], shares[places]) < _UNLIKE)
        if not doubted.any():
            return self, kept
        data = np.where(np.repeat(doubted, np.diff(shares.indptr)), 0.0, shares.data)
        law = replace(
            self,
            shared=(data, shares.indices, shares.indptr),
            residuals=ResidualDensity.of(self.residuals.residuals, ~doubted),
        )
        return law, None if kept is None else [law._parts(places) for places in law.batches()]

    def of_new_rows(self) -> Self:
        """Return the law without what its forest knows of the rows of the fit, which takes half of its memory."""
        return replace(self, forest=self.forest.of_new_rows())

    def copy(self) -> Self:
        """Return a law that keeps what it computes for itself."""
        return replace(self, forest=replace(self.forest))

    @property
    def cells(self) -> csr_array:
        """Cells of the rows of the fit as shares of bins, (n, B)."""
        return csr_array(self.shared, shape=(len(self.shared[2]) - 1, len(self.bins)))

    def batches(self) -> list[np.ndarray]:
        """Return the places of the rows of the fit in parts."""
        return np.split(np.arange(len(self.shared[2]) - 1), np.arange(_BATCH, len(self.shared[2]) - 1, _BATCH))

    def _own(self, parts: list[np.ndarray], cells: csr_array) -> np.ndarray:
        """Return the density of the cell of each row under each part, (n, parts); cells are shared between bins."""
        return np.stack([self._density(part, cells) for part in parts], axis=1)

    def densities(self, masses: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return the densities, in scores, of known cells, or the probability of words; unknown ones have the least."""
        found = self._density(masses, self.bins.shares(cells)) * self.bins.far(cells)
        if isinstance(self.bins, WordBins):
            found = np.where(cells < len(self.bins), found, self.weights[-1] / max(len(self.bins), 2))
        return found

    def _density(self, masses: np.ndarray, cells: csr_array) -> np.ndarray:
        """Return the densities of cells that are shared between bins."""
        row = np.repeat(np.arange(len(masses)), np.diff(cells.indptr))
        values = cells.data * masses[row, cells.indices] / self.bins.widths[cells.indices]
        return np.bincount(row, values, len(masses))

    def _parts(self, places: np.ndarray) -> list[np.ndarray]:
        """Return the masses under each part of the pool at rows of the fit that it does not know."""
        total = np.asarray(self.cells.sum(axis=0)).ravel()
        others = total - self.cells[places].toarray() + _BEFOREHAND / len(self.bins)
        others /= others.sum(axis=1, keepdims=True)
        leaves = np.asarray((self.forest.out_of_bag(places) @ self.cells).todense())
        return self._joined(others, leaves, total, None if self.trends is None else self.trends[places], places)

    def _joined(
        self,
        others: np.ndarray,
        leaves: np.ndarray,
        total: np.ndarray,
        trend: np.ndarray | None,
        own: np.ndarray | None,
    ) -> list[np.ndarray]:
        """Return the parts: frequencies, shares of leaves, both smoothed, and residuals; of words without the smoothing."""
        leaves = (leaves + _PRIOR * total / total.sum()) / (1.0 + _PRIOR)
        if trend is None or self.residuals is None or not isinstance(self.bins, NumberBins):
            return [others, leaves, np.full(leaves.shape, 1.0 / max(len(self.bins), 2))]
        smooth = _smoothers(self.bins)
        return [
            others,
            others @ smooth[1],
            leaves,
            *(leaves @ kernel for kernel in smooth),
            *self.residuals.masses(trend, self.bins, own),
        ]

    def of_fit(self, places: np.ndarray) -> np.ndarray:
        """Return the masses of the bins, (n, B), at rows of the fit, by laws that do not know them."""
        return self._pooled(self._parts(places))

    def _pooled(self, parts: list[np.ndarray]) -> np.ndarray:
        """Return the masses of the pool of parts."""
        check_stopped()
        found = sum(weight * part for weight, part in zip(self.weights, parts, strict=True))
        return np.asarray(found / np.sum(found, axis=1, keepdims=True))

    def at(self, scored: np.ndarray) -> np.ndarray:
        """Return the masses of the bins at rows whose numbers are scores."""
        return self.judging(len(scored))(scored)

    def judging(
        self, count: int, leaves: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return what gives the masses at some of `count` rows, of many ones by a table, which is not kept.

        `leaves` gives those of the forest, which does it itself by default.
        """
        placed = leaves or self.forest.leaves
        if count < _MANY or len(self.bins) > _BINS:
            return lambda scored: self._at(scored, placed(self.inputs.of_trees(scored)))
        table = self._table()
        return lambda scored: self._by_table(table, scored, placed(self.inputs.of_trees(scored)))

    def _table(self) -> np.ndarray:
        """Return the pooled law of each leaf, by one tree, and of each knot of the trend, (leaves + knots, B).

        Single precision is far more accurate than the pool needs to be, and takes half the time.
        """
        table = (self._of_leaves @ (self._of_shares / self.forest.n_trees)).astype(np.float32)
        if self.residuals is None or not isinstance(self.bins, NumberBins):
            return table
        knots = np.arange(self.residuals.knots(self.bins)[2])
        return np.concatenate([table, self._of_line(knots).astype(np.float32)])

    def _by_table(self, table: np.ndarray, scored: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return what `_at` does, as sums of lines of the table."""
        check_stopped()
        shares, lines = [np.ones(leaves.shape, dtype=np.float32)], [leaves]
        if (place := self._between(scored)) is not None:
            below, part = place
            first = len(self.forest.indptr) - 1  # of the knots: after those of the leaves
            shares.append(np.stack([1.0 - part, part], axis=1).astype(np.float32))
            lines.append((first + np.stack([below, below + 1], axis=1)).astype(leaves.dtype))
        data, at = np.concatenate(shares, axis=1), np.concatenate(lines, axis=1)
        starts = np.arange(len(at) + 1, dtype=at.dtype) * at.shape[1]
        found = csr_array((data.ravel(), at.ravel(), starts), shape=(len(at), len(table))) @ table
        found += self._of_frequencies.astype(np.float32)
        found /= found.sum(axis=1, keepdims=True)
        return np.asarray(found)

    def _at(self, scored: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return the masses at rows in given leaves: the pool of the parts of `_joined`, whose sums over bins are done once."""
        check_stopped()
        found = (self.forest.in_leaves(leaves) @ self._of_leaves).toarray() @ self._of_shares + self._of_frequencies
        if (place := self._between(scored)) is not None:
            below, part = place
            found += (1.0 - part)[:, None] * self._of_line(below) + part[:, None] * self._of_line(below + 1)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _between(self, scored: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the knots of the trends of rows and the shares of the next ones; None for words."""
        if self.line is None or self.residuals is None or not isinstance(self.bins, NumberBins):
            return None
        trend = self.line.predict(np.clip(self.inputs.of_lines(scored), -_FARTHEST, _FARTHEST))
        return self.residuals.between(trend, self.bins)

    def _of_line(self, knots: np.ndarray) -> np.ndarray:
        """Return the part of the pool that is about a line, at knots of the trend, (n, B)."""
        assert self.residuals is not None
        assert isinstance(self.bins, NumberBins)
        wide = self.residuals.masses_at(knots, self.bins)
        return np.einsum("k,kij->ij", self.weights[-len(wide) :], wide)

    @cached_property
    def _of_leaves(self) -> csr_array:
        """Shares of the bins in each leaf, (leaves, B)."""
        return self.forest.of_leaves(self.cells)

    @cached_property
    def _of_shares(self) -> np.ndarray:
        """Return the laws that the pool makes of shares of leaves, (B, B): themselves, and smoothed."""
        if not isinstance(self.bins, NumberBins):
            return np.asarray(self.weights[1] / (1.0 + _PRIOR) * np.eye(len(self.bins)))
        kernels = [np.eye(len(self.bins)), *_smoothers(self.bins)]
        pooled = sum(weight * kernel for weight, kernel in zip(self.weights[2:6], kernels, strict=True))
        return np.asarray(pooled / (1.0 + _PRIOR))

    @cached_property
    def _of_frequencies(self) -> np.ndarray:
        """Return the part of the pool that is the same for all rows, (B,): frequencies, and the uniform law of words."""
        total = np.asarray(self.cells.sum(axis=0)).ravel()
        others = (total + _BEFOREHAND / len(total)) / (total.sum() + _BEFOREHAND)
        shares = _PRIOR * total / total.sum() @ self._of_shares
        if not isinstance(self.bins, NumberBins):
            return np.asarray(self.weights[0] * others + self.weights[2] / max(len(self.bins), 2) + shares)
        return np.asarray(self.weights[0] * others + self.weights[1] * (others @ _smoothers(self.bins)[1]) + shares)


def _codes_of_words(counts: np.ndarray) -> np.ndarray:
    """Return targets of trees, (B, k), for words: a column each, or one for each frequent word and random signs for the others.

    The sums of squares within nodes of the random columns are those of a column for each word, in expectation; trees that were
    given the frequent words only would not tell the others apart.
    """
    if len(counts) <= _MOST_WORDS:
        return np.eye(len(counts))
    half = _MOST_WORDS // 2
    order = np.argsort(-counts, kind="stable")
    out = np.zeros((len(counts), _MOST_WORDS))
    out[order[:half], np.arange(half)] = 1.0
    signs = np.random.default_rng(0).integers(0, 2, (len(counts) - half, half)) * 2.0 - 1.0
    out[order[half:], half:] = signs / np.sqrt(half)
    return out


def _smoothers(bins: NumberBins) -> list[np.ndarray]:
    """Return matrices that spread the mass of each bin over the others by kernels in scores."""
    t = bins.centers[:, None] - bins.centers
    kernels = [np.exp(-0.5 * (t / h) ** 2) for h in _NORMAL_WIDTHS] + [1.0 / (1.0 + (t / _CAUCHY_WIDTH) ** 2)]
    spread = [kernel * bins.widths for kernel in kernels]
    return [kernel / kernel.sum(axis=1, keepdims=True) for kernel in spread]
