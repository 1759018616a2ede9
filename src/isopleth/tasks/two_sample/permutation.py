"""Permutations of the labels of two samples, and the statistics of every permutation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from scipy.special import gammaln

from isopleth.core.budget import Budget
from isopleth.core.errors import refuse_too_large
from isopleth.core.laws import normal_scores
from isopleth.core.scales import bounded
from isopleth.core.threads import map_threads, slices
from isopleth.difference.gaussian_system import PenalizedSpectrum
from isopleth.operators.features import CenterFeatures, GaussianFeatures
from isopleth.tasks.two_sample.groups import strata_of_groups

# Smallest number of groups; from twice as many rows in both samples, groups are permuted instead of rows.
_GROUPS = 4000
# Smallest number of groups in the smaller sample: with fewer there would be too few different permutations.
_LEAST_GROUPS = 200
_MOST_AGAINST_ONE = 100
_ENOUGH = 20_000
# If a sample is this many times smaller than both together, sums are over its own rows only.
_SPARSE = 16


@dataclass(frozen=True)
class Units:
    """Units of permutation: single rows, groups of `group` rows of one sample each, or blocks of rows that belong together."""

    # (sum(lengths),): positions of the rows in the samples, X above Y; unit by unit, those of the first sample first
    rows: np.ndarray
    sizes: tuple[int, int]  # number of units in each sample
    group: int  # number of rows in a unit; 0 for blocks
    lengths: np.ndarray | None = None  # (sum(sizes),): number of rows in each block
    strata: np.ndarray | None = None  # (sum(sizes),): units are permuted within strata; None if all are permuted

    @classmethod
    def of(cls, n: int, m: int, rng: np.random.Generator) -> Self:
        """Form units of `n` and `m` rows at random, without regard to values: they are exchangeable if rows are."""
        smaller = min(n, m)
        # The variance goes with 1/n + 1/m: beyond a hundred to one, more rows do not change it by one percent.
        most = max(_ENOUGH, _MOST_AGAINST_ONE * smaller)
        kept = min(n, most), min(m, most)
        group = max(1, min(sum(kept) // _GROUPS, smaller // _LEAST_GROUPS))
        sizes = (kept[0] // group, kept[1] // group)
        if (sizes[0] * group, sizes[1] * group) == (n, m) and group == 1:
            return cls(np.arange(n + m), sizes, 1)
        parts = [rng.permutation(n)[: sizes[0] * group], n + rng.permutation(m)[: sizes[1] * group]]
        return cls(np.concatenate(parts), sizes, group)

    @classmethod
    def within(cls, strata: np.ndarray, n: int, rng: np.random.Generator) -> Self:
        """Form units within strata of rows, given for the `n` rows of the first sample and then for those of the second."""
        m = len(strata) - n
        group = max(1, min((n + m) // _GROUPS, min(n, m) // _LEAST_GROUPS))
        if group == 1:
            return cls(np.arange(n + m), (n, m), 1, strata=strata)
        rows, names, sizes = [], [], []
        for start, stop in ((0, n), (n, n + m)):
            shuffled = start + rng.permutation(stop - start)
            shuffled = shuffled[np.argsort(strata[shuffled], kind="stable")]
            place = _places_within(strata[shuffled])
            length = np.bincount(strata[shuffled], minlength=int(strata.max()) + 1)[strata[shuffled]]
            kept = shuffled[place < length - length % group]
            rows.append(kept)
            names.append(strata[kept[::group]])
            sizes.append(len(kept) // group)
        return cls(np.concatenate(rows), (sizes[0], sizes[1]), group, strata=np.concatenate(names))

    @classmethod
    def of_groups(cls, first: np.ndarray, second: np.ndarray, keys: np.ndarray, rng: np.random.Generator) -> Self:
        """Form one unit of a group in each sample, of rows drawn by their `keys` (n + m,), within :func:`strata_of_groups`."""
        rows, lengths, names, start = [], [], [], 0
        for labels, used, strata in zip((first, second), *strata_of_groups(first, second), strict=True):
            order = np.lexsort([keys[start : start + len(labels)], labels])
            order = order[np.lexsort([rng.random(len(labels)), labels[order]])]
            group = np.unique(labels, return_inverse=True)[1].ravel()[order]
            rows.append(start + np.sort(order[_places_within(group) < used[group]]))
            rows[-1] = rows[-1][np.argsort(labels[rows[-1] - start], kind="stable")]
            lengths.append(used[used > 0])
            names.append(strata[used > 0])
            start += len(labels)
        found = np.unique(np.concatenate(names), return_inverse=True)[1].ravel()
        sizes = len(lengths[0]), len(lengths[1])
        return cls(np.concatenate(rows), sizes, 0, np.concatenate(lengths), found if found.any() else None)

    @property
    def assignments(self) -> float:
        """Number of ways to assign the units to the samples, at most 1e9."""
        own = np.arange(sum(self.sizes)) < self.sizes[0]
        strata = np.zeros(len(own), dtype=np.intp) if self.strata is None else self.strata
        total, first = np.bincount(strata), np.bincount(strata, own)
        logs = gammaln(total + 1.0) - gammaln(first + 1.0) - gammaln(total - first + 1.0)
        return float(np.rint(np.exp(min(float(logs.sum()), np.log(1e9)))))

    @property
    def least_pvalue(self) -> float:
        """Least possible p-value: the share of assignments with the largest statistic, two if the samples can change places."""
        own = np.arange(sum(self.sizes)) < self.sizes[0]
        strata = np.zeros(len(own), dtype=np.intp) if self.strata is None else self.strata
        equal = np.array_equal(2 * np.bincount(strata, own), np.bincount(strata))
        return min((2.0 if equal else 1.0) / self.assignments, 1.0)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return means over each unit of `values` of shape (sum(lengths), k), whose rows are in the order of the units."""
        if self.lengths is not None:
            starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
            return np.asarray(np.add.reduceat(values, starts, axis=0) / self.lengths[:, None])
        return values if self.group == 1 else values.reshape(-1, self.group, values.shape[1]).mean(axis=1)

    def over_rows(self, values: np.ndarray) -> np.ndarray:
        """Return values of units as values of their rows."""
        return np.repeat(values, self.group if self.lengths is None else self.lengths, axis=0)


def _places_within(names: np.ndarray) -> np.ndarray:
    """Return the place of each entry among the equal entries of a sorted array."""
    starts = np.concatenate([[True], names[1:] != names[:-1]])
    return np.arange(len(names)) - np.flatnonzero(starts)[np.cumsum(starts) - 1]


def is_sparse(sizes: tuple[int, int]) -> bool:
    """Tell whether label vectors of samples of these sizes are mostly zeros."""
    return sum(sizes) > _SPARSE * min(sizes)


@dataclass(frozen=True, eq=False)
class Labels:
    """Label vectors, observed and permuted: how many units of each distinct kind are in the smaller sample."""

    members: Any  # (1 + B, m): counts; the first line is the observed one
    counts: np.ndarray  # (m,): number of equal units in both samples together
    sizes: tuple[int, int]  # units in the smaller and in the larger sample
    weights: np.ndarray | None = None  # (m,): number of rows in each unit; None if all units have the same number
    # (m,): numbers of the strata within which units are permuted, from 0 on; None if all are permuted
    strata: np.ndarray | None = None

    @classmethod
    def draw(
        cls,
        place: np.ndarray,
        sizes: tuple[int, int],
        permutations: int,
        rng: np.random.Generator,
        weights: np.ndarray | None = None,
        strata: np.ndarray | None = None,
    ) -> Self:
        """Draw permutations of units by distinct `place` and count only, so that no order of rows or samples matters."""
        total, smaller = sum(sizes), min(sizes)
        own = place[: sizes[0]] if sizes[0] <= sizes[1] else place[sizes[0] :]
        if strata is None:
            sorted_place = np.sort(place)
            drawn = (rng.choice(total, smaller, replace=False, shuffle=False) for _ in range(permutations))
        else:
            sorted_place = place[np.lexsort([place, strata[place]])]
            quota = np.bincount(strata[own], minlength=int(strata.max()) + 1)
            drawn = (_within_strata(strata[sorted_place], quota, rng) for _ in range(permutations))
        lines = chain([own], (sorted_place[chosen] for chosen in drawn))
        counts = np.bincount(place).astype(np.float64)
        shape = permutations + 1, len(counts)
        if is_sparse(sizes):
            columns = np.concatenate(list(lines))
            members: Any = csr_array(
                (np.ones(len(columns)), columns, smaller * np.arange(permutations + 2)), shape=shape
            )
        else:
            members = np.empty(shape)
            for member, line in zip(members, lines, strict=True):
                member[:] = np.bincount(line, minlength=len(counts))
        return cls(members, counts, (smaller, total - smaller), weights, strata)

    def __len__(self) -> int:
        return int(self.members.shape[0])

    @staticmethod
    def floats(sizes: tuple[int, int]) -> int:
        """Return how many numbers of eight bytes a label vector takes, scratch included."""
        return 5 * min(sizes) if is_sparse(sizes) else sum(sizes)

    @property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the smaller sample and of the other one under each label vector, of shape (1 + B, 1)."""
        if self.weights is None:
            return np.full((1, 1), float(self.sizes[0])), np.full((1, 1), float(self.sizes[1]))
        inside = np.asarray(self.members @ self.weights)[:, None]
        return inside, float(self.counts @ self.weights) - inside

    @property
    def rows(self) -> np.ndarray:
        """Number of rows of both samples in the units of each kind, of shape (m,)."""
        return self.counts if self.weights is None else self.counts * self.weights

    def mean(self, features: np.ndarray) -> np.ndarray:
        """Return the mean of `features` (m, k) by stratum, whose differences would only add noise to quadratic forms."""
        share = self.rows
        if self.strata is None:
            return np.asarray(share @ features / share.sum())
        sums = csr_array((share, (self.strata, np.arange(len(share))))) @ features
        return np.asarray(sums / np.bincount(self.strata, share)[:, None])[self.strata]

    def contrasts(self, features: np.ndarray) -> np.ndarray:
        """Return the mean over the smaller sample less the other, (1 + B, k), of unit means `features` of mean 0."""
        inside, outside = self._rows
        sums = self.members @ (features if self.weights is None else features * self.weights[:, None])
        return np.asarray(sums) * (1.0 / inside + 1.0 / outside)

    def own_products(self, squares: np.ndarray) -> np.ndarray:
        """Return what products of units with themselves add to quadratic forms, up to a constant; 0 for equal sizes."""
        if self.weights is None and self.sizes[0] == self.sizes[1]:
            return np.zeros((1, squares.shape[1]))
        inside, outside = self._rows
        if self.weights is None:
            return np.asarray(self.members @ squares) * (inside**-2.0 - outside**-2.0)
        squares = squares * self.weights[:, None] ** 2
        own = np.asarray(self.members @ squares)
        return np.asarray(own * inside**-2.0 + (self.counts @ squares - own) * outside**-2.0)


def _within_strata(strata: np.ndarray, quota: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw `quota` of the entries of each stratum; `strata` is sorted."""
    order = np.lexsort([rng.random(len(strata)), strata])
    return order[_places_within(strata) < quota[strata]]


# Ridge over the volume of the kernel: nearly all directions that the centres resolve have the same weight.
ALPHA = 0.1
# Small scales have twice as many centres in few columns, and a larger ridge, because more of their directions are only noise.
_NARROW, _NARROW_ALPHA, _NARROW_CENTERS = (0, 1), 0.3, 2
# At one scale the directions are weighted by their variance too, which detects a change of spread in all columns at once.
_LARGE_ALPHA, _AT_STEP = 1000.0, 4
# Eigenvalues of H below this are left out; they are negligible beside the ridge.
_LOST = 1e-6
# Statistics leave out eigenvalues below this share of the ridge: most of the time is spent on these, to no effect.
_NEGLIGIBLE = 0.01
_ROWS_OF_DISTANCES = 400
_SMALLEST, _LARGEST = 0.05, 0.95
# Largest ratio of the 95th percentile to the smallest scale: nearly equal rows must not spread the scales too far.
_WIDEST = 200.0
_STEPS = 12
# Wide scales detect nearly the same differences, and each additional statistic makes the test of the others stricter.
_USED = (0, 1, 2, 4, 6, 9)
# Median absolute deviations: 13 standard deviations of a normal distribution, which its values do not reach.
_FARTHEST = 20.0
_LEAST_SKEW = 0.02
_NO_SPREAD = 1e-9
# Statistics of label vectors that differ by permutations of equal rows differ by rounding only.
_DIGITS = 8
# If less than this share of the variance of its square is not explained by the column, the square is left out.
_LEAST_OWN = 1e-6
# Values at which distribution functions are compared.
_CUTS = 100
# Small enough that scores by moments never change the order of different ranks.
_TIE_BREAK = 1e-6


@dataclass(frozen=True, eq=False)
class RobustScaling:
    """Units of the columns: centre, standard deviation, and the bound beyond which values are compressed."""

    # middle, spread, far, deviation: (d,): median; mean absolute deviation with values beyond the bound set to it; the
    # bound over the spread; and the standard deviation of the compressed values over the spread, larger where most are equal
    middle: np.ndarray
    spread: np.ndarray
    far: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, scaled: np.ndarray) -> Self:
        """Measure columns that vary, over the rows of both samples; columns of the mask `scaled` have the unit 1."""
        if scaled.any():
            out = cls(*(np.full(len(scaled), value) for value in (0.0, 1.0, np.inf, 1.0)))
            if not scaled.all():
                own = cls.of(rows[:, ~scaled], scaled[~scaled])
                out.middle[~scaled], out.spread[~scaled] = own.middle, own.spread
                out.far[~scaled], out.deviation[~scaled] = own.far, own.deviation
            return out
        middle = np.median(rows, axis=0)
        deviation = np.abs(rows - middle)
        # Over the rows that deviate: if most rows are equal, the median of all deviations is 0.
        far = _FARTHEST * np.array([np.median(column[column > 0.0]) for column in deviation.T])
        spread = np.minimum(deviation, far).mean(axis=0)
        plain = cls(middle, spread, far / spread, np.ones(len(middle)))
        # A column of which nearly all cells are equal, such as the edge of images, has the unit of the cells that differ:
        # in units of its standard deviation these few would be far from all others.
        differ = np.minimum(2.0 * (deviation > 0.0).mean(axis=0), 1.0)
        return cls(middle, spread, plain.far, plain(rows).std(axis=0) / np.sqrt(differ))

    @property
    def scale(self) -> np.ndarray:
        """Unit of each column, in the units of the data."""
        return self.spread * self.deviation

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in these units; values beyond `far`, such as codes, are compressed in their order."""
        z = bounded((rows - self.middle) / self.spread)
        size = np.abs(z)
        # A single logarithm of 1e140 is 320, which would still determine the standard deviation.
        drawn = np.minimum(size, self.far + np.log1p(np.log1p(np.maximum(size - self.far, 0.0))))
        return np.asarray(np.copysign(drawn, z) / self.deviation)


def sampled_rows(rows: np.ndarray) -> np.ndarray:
    """Return at most 400 of sorted rows, at equal distances."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS_OF_DISTANCES)).astype(int))]


def length_scales(rows: np.ndarray) -> np.ndarray:
    """Return six of twelve scales, from half the 5th percentile of the distances between distinct `rows` to twice the 95th."""
    low, high = np.quantile(pdist(sampled_rows(rows)), [_SMALLEST, _LARGEST])
    return np.geomspace(max(low / 2.0, high / _WIDEST), high * 2.0, _STEPS)[list(_USED)]


def city_block_scale(rows: np.ndarray) -> float:
    """Return half the median city-block distance between distinct `rows`."""
    return 0.5 * float(np.median(pdist(sampled_rows(rows), "cityblock")))


@dataclass(frozen=True, eq=False)
class Basis:
    """Functions around centres in the coordinates where their inner products H are diagonal."""

    functions: CenterFeatures  # in units of the columns
    values: np.ndarray  # (r,): eigenvalues of H
    vectors: np.ndarray  # (b, r): eigenvectors
    alphas: tuple[float, ...] = (ALPHA,)  # ridges over the volume of the kernel
    start: int = 0  # first of the directions that statistics use, in ascending order of the eigenvalues

    @classmethod
    def of(cls, functions: CenterFeatures, alphas: tuple[float, ...] = (ALPHA,), most: int | None = None) -> Self:
        """Diagonalise the inner products of the functions, over the volume; statistics use at most `most` directions."""
        spectrum = PenalizedSpectrum.of(functions.inner_products())
        kept = spectrum.values > _LOST
        values, vectors = spectrum.values[kept], spectrum.vectors[:, kept]
        start = int(np.searchsorted(values, _NEGLIGIBLE * min(alphas)))
        if most is not None:
            start = max(start, len(values) - most)
        return cls(functions, values, vectors, alphas, start)

    def __len__(self) -> int:
        return len(self.functions.centers)

    @property
    def weights(self) -> np.ndarray:
        """Eigenvalues of M for every ridge and direction that statistics use, of shape (k, r)."""
        alphas, values = np.array(self.alphas)[:, None], self.values[self.start :]
        return np.asarray((values + 2.0 * alphas) / (values + alphas) ** 2)


def choose_centers(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the centres of the smallest length scales from `rows`; the first `count` are those of the others."""
    drawn = rng.permutation(len(rows))
    return rows[np.concatenate([np.sort(drawn[:count]), np.sort(drawn[count : _NARROW_CENTERS * count])])]


def gaussian_bases(centers: np.ndarray, count: int, scales: np.ndarray, budget: Budget) -> list[Basis]:
    """Return a basis of Gaussians for each of :func:`length_scales`, of the first `count` centres.

    Where these are nearly dependent, as in few columns, all centres serve in `count` directions, which resolves fine detail.
    """

    def basis(pair: tuple[int, float]) -> Basis:
        step, scale = pair
        few = GaussianFeatures(centers[:count], scale)
        out = Basis.of(few, (ALPHA, _LARGE_ALPHA) if step == _AT_STEP else (ALPHA,))
        if step not in _NARROW or len(out.weights[0]) == len(out):
            return out
        return Basis.of(GaussianFeatures(centers, scale), (_NARROW_ALPHA,), count)

    return map_threads(basis, list(zip(_USED, scales.tolist(), strict=True)), min(budget.threads, len(_USED)))


def tiles(units: int, group: int, width: int, budget: Budget) -> list[slice]:
    """Split the units so that the distances of their rows from `width` centres fit in a share of the memory limit."""
    # Smaller tiles stay in the cache and balance better among threads.
    return slices(units, min(budget.memory / (64.0 * budget.threads * group * width), 20_000 / group))


def unit_features(
    found: list[Basis],
    rows: np.ndarray,
    units: Units,
    budget: Budget,
) -> list[np.ndarray]:
    """Return unit means of the functions, (units, b), one array a basis, whose centres are the first of the longest list.

    Distances serve all scales: one :class:`~isopleth.operators.Operator` a scale takes 1 to 1.6 times as long, and there is none
    for city-block distances.
    """
    most, lengths = max(map(len, found)), units.lengths
    group = units.group if lengths is None else int(lengths.max())
    ends = group * np.arange(1 + len(rows) // group) if lengths is None else np.concatenate([[0], np.cumsum(lengths)])
    count = len(ends) - 1
    needed = 8 * count * (sum(map(len, found)) + 4 * most)
    what = f"{count} units at {most} centers and {len(found)} length scales"
    refuse_too_large(what, needed, budget.memory, "use fewer centers")
    out = [np.empty((count, len(basis))) for basis in found]
    longest = {basis.functions.metric: basis.functions for basis in sorted(found, key=len)}

    def fill(part: slice) -> None:
        some = rows[ends[part.start] : ends[part.stop]]
        unit = units if lengths is None else replace(units, lengths=lengths[part])
        distances = {metric: functions.distances(some) for metric, functions in longest.items()}
        for basis, features in zip(found, out, strict=True):
            features[part] = unit.means(basis.functions.at(distances[basis.functions.metric][:, : len(basis)]))

    parts = tiles(count, group, most, budget)
    budget.map("kernels of the rows", fill, parts)
    return out


def quadratic_forms(basis: Basis, features: np.ndarray, labels: Labels) -> np.ndarray:
    """Return h'Mh for every ridge and label vector, (k, 1 + B), without products of units with themselves, which add noise."""
    coordinates = (features - labels.mean(features)) @ basis.vectors[:, basis.start :]
    own = labels.own_products(coordinates**2 @ basis.weights.T)
    return np.asarray((labels.contrasts(coordinates) ** 2 @ basis.weights.T - own).T)


def shares_of_rows(units: Units, labels: Labels) -> np.ndarray:
    """Return the share of each row among the rows of both samples; equal rows may be merged in one."""
    each = labels.counts if units.lengths is not None else labels.counts / units.group
    total = each @ units.lengths if units.lengths is not None else each.sum() * units.group
    return units.over_rows(each / total)


def _about_means(values: np.ndarray, share: np.ndarray, units: Units, labels: Labels) -> np.ndarray:
    """Return values less their mean over all rows, or over the rows of a stratum."""
    if labels.strata is None:
        return np.asarray(values - share @ values)
    return np.asarray(values - units.over_rows(labels.mean(units.means(values))))


def standard_contrasts(values: np.ndarray, units: Units, labels: Labels) -> np.ndarray:
    """Return contrasts of features of the rows in units of their standard deviations, 0 for those that do not vary."""
    share = shares_of_rows(units, labels)
    centred = _about_means(values, share, units, labels)
    deviation = np.sqrt(share @ centred**2)
    moved = deviation > _NO_SPREAD * np.abs(values).max(axis=0, initial=0.0)
    return labels.contrasts(units.means(np.where(moved, centred / np.where(moved, deviation, 1.0), 0.0)))


def column_contrasts(rows: np.ndarray, units: Units, labels: Labels) -> np.ndarray:
    """Return how much mean and spread of each column differ, (1 + B, d).

    With contrasts of column and square, of correlation r, :math:`(C_1^2 - 2 r C_1 C_2 + C_2^2) / (1 - r^2)` is about chi-squared.
    """
    share = shares_of_rows(units, labels)
    square = rows**2
    first, second = (_about_means(part, share, units, labels) for part in (rows, square))
    deviations = [np.sqrt(share @ part**2) for part in (first, second)]
    # The square of a column with two values symmetric about its mean is constant.
    tiny = np.finfo(np.float64).tiny
    moved = deviations[1] > _NO_SPREAD * np.maximum(share @ square, tiny)
    first = first / np.maximum(deviations[0], tiny)
    second = np.where(moved, second / np.where(moved, deviations[1], 1.0), 0.0)
    r = share @ (first * second)
    own = 1.0 - r**2
    moved &= own > _LEAST_OWN
    one = labels.contrasts(units.means(first))
    two = labels.contrasts(units.means(second))
    # The part of the square that is not explained by the column.
    rest = np.where(moved, (two - r * one) ** 2 / np.where(moved, own, 1.0), 0.0)
    return np.asarray(one**2 + rest)


def column_steps(rows: np.ndarray, distinct: np.ndarray, units: Units, labels: Labels) -> np.ndarray:
    """Return the largest squared difference of the distribution functions of each column, (1 + B, d).

    Differences are taken at no more than 100 of the distinct values, at equal steps.
    """
    out = np.zeros((len(labels), rows.shape[1]))
    share = shares_of_rows(units, labels)
    for j, column in enumerate(rows.T):
        values = np.unique(distinct[:, j])[:-1]
        cuts = values[np.unique(np.linspace(0, len(values) - 1, min(len(values), _CUTS)).astype(int))]
        if len(cuts):
            below = _about_means((column[:, None] <= cuts).astype(np.float64), share, units, labels)
            out[:, j] = (labels.contrasts(units.means(below)) ** 2).max(axis=1)
    return out


def _standardised(forms: np.ndarray) -> np.ndarray:
    """Bring each line to mean 0 and standard deviation 1; lines that vary by rounding only become 0."""
    mean, spread = forms.mean(axis=1, keepdims=True), forms.std(axis=1, keepdims=True)
    moved = spread > _NO_SPREAD * np.abs(forms).max(axis=1, keepdims=True)
    return np.asarray(np.where(moved, forms - mean, 0.0) / np.where(moved, spread, 1.0))


def of_length_one(columns: np.ndarray) -> np.ndarray:
    """Return columns divided by their lengths; columns of zeros stay."""
    return np.asarray(columns / np.maximum(np.sqrt((columns**2).sum(axis=0)), np.finfo(np.float64).tiny))


def moment_scores(forms: np.ndarray) -> np.ndarray:
    """Bring each line of `forms` to a standard normal scale by a gamma law of its three moments (Wilson, Hilferty).

    Null distributions go from one chi-squared variable to nearly normal, so tails are compared and not deviations.
    """
    z = _standardised(forms)
    root = 2.0 / np.maximum((z**3).mean(axis=1, keepdims=True), _LEAST_SKEW)  # of the gamma law's shape
    ratio = np.maximum(1.0 + z / root, 0.0)
    scores = 3.0 * root * (np.cbrt(ratio) - 1.0 + 1.0 / (9.0 * root**2))
    return np.where(z.any(axis=1, keepdims=True), scores, 0.0)


def rank_scores(forms: np.ndarray) -> np.ndarray:
    """Replace each line of `forms` by normal scores of ranks, which compare any null laws; ties by :func:`moment_scores`."""
    return normal_scores(np.round(_standardised(forms), _DIGITS)) + _TIE_BREAK * moment_scores(forms)
