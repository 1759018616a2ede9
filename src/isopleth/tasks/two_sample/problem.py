"""Two samples prepared for a permutation test: units, labels, functions around centres of both, and products of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from isopleth.context.forest_residuals import forest_residuals
from isopleth.context.residuals import RankRegression
from isopleth.core.budget import Budget
from isopleth.core.errors import refuse_too_large
from isopleth.core.laws import normal_scores_of_ranks
from isopleth.core.progress import Progress
from isopleth.core.rows import merge_without_rounding
from isopleth.core.scales import LEAST_SIZE, refuse_sizes
from isopleth.core.threads import slices
from isopleth.difference.samples import TwoSamples
from isopleth.operators.features import LaplaceFeatures
from isopleth.tables.checks import CheckedRows
from isopleth.tables.row_encoding import NumberEncoding, RowEncoding
from isopleth.tasks.two_sample.drawn_rows import WholeSamples
from isopleth.tasks.two_sample.given_others import contrasts, fitted_residuals
from isopleth.tasks.two_sample.permutation import (
    Basis,
    Labels,
    RobustScaling,
    Units,
    choose_centers,
    city_block_scale,
    column_contrasts,
    column_steps,
    gaussian_bases,
    length_scales,
    moment_scores,
    of_length_one,
    quadratic_forms,
    rank_scores,
    sampled_rows,
    shares_of_rows,
    standard_contrasts,
    unit_features,
)

# Most pairs of coordinates: all up to 32 coordinates. Each further one makes the test of the others stricter.
_MOST_PAIRS = 500
# Most correlations that are held at once while the pairs are chosen.
_AT_ONCE = 1_000_000
# Most products that are held at once for all rows: more of them only take memory.
_PRODUCTS_AT_ONCE = 32
# Correlations that differ by rounding only are equal.
_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Products:
    """Columns in normal scores of ranks, which no far value decides, of which pairs are multiplied and some cubed."""

    values: np.ndarray  # (n, d): normal scores of the ranks of each coordinate, over the rows of both samples
    pairs: np.ndarray  # (k, 2): coordinates of different columns that are multiplied
    cubed: np.ndarray  # (c,): coordinates that are cubed

    @classmethod
    def of(
        cls, rows: np.ndarray, share: np.ndarray, pooled: np.ndarray, columns: np.ndarray, numbers: np.ndarray
    ) -> Self:
        """Prepare rows of shares: most correlated pairs, chosen from `pooled` rows of both samples, and cubes of `numbers`.

        `columns` are the numbers of the columns that coordinates belong to.
        """
        some = normal_scores_of_ranks(pooled, np.full(len(pooled), 1.0 / len(pooled)))
        return cls(normal_scores_of_ranks(rows, share), _strongest_pairs(some, columns), np.flatnonzero(numbers))

    def squares(self, units: Units, labels: Labels, budget: Budget) -> np.ndarray:
        """Return squared contrasts (1 + B, k + c) of pairs and of cubes: Hermite's, uncorrelated with a normal column."""
        total, out = len(self.pairs) + len(self.cubed), [np.zeros((len(labels), 0))]
        parts = slices(total, min(_PRODUCTS_AT_ONCE, budget.memory / (32.0 * len(self.values))))
        with Progress("products of columns", len(parts), budget.verbose) as tick:
            for part in parts:
                chosen = np.arange(total)[part]
                one, two = self.pairs[chosen[chosen < len(self.pairs)]].T
                single = self.values[:, self.cubed[chosen[chosen >= len(self.pairs)] - len(self.pairs)]]
                features = np.hstack([self.values[:, one] * self.values[:, two], single**3 - 3.0 * single])
                out.append(standard_contrasts(features, units, labels) ** 2)
                tick()
        return np.hstack(out)


def _strongest_pairs(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pairs of coordinates of different columns with the largest absolute correlations, of shape (k, 2)."""
    d = len(columns)
    centred = of_length_one(values - values.mean(axis=0))
    pairs, sizes = np.empty((0, 2), dtype=np.intp), np.empty(0)
    step = max(1, _AT_ONCE // d)
    for start in range(0, d, step):
        here = np.arange(start, min(start + step, d))
        wanted = (here[:, None] < np.arange(d)) & (columns[here, None] != columns)
        found = np.argwhere(wanted) + [start, 0]
        size = np.round(np.abs(centred[:, here].T @ centred)[wanted], _DIGITS)
        pairs, sizes = np.vstack([pairs, found]), np.append(sizes, size)
        kept = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_PAIRS])
        pairs, sizes = pairs[kept], sizes[kept]
    return pairs


_CENTERS_OF_COLUMNS = 40
_SPREAD_OF_WORDS = 0.3
# The score of products counts less by this: at 0 the power for fine bumps and narrow clusters fell by .04, at .2 by .02.
_BEHIND = 0.2


def gap_strata(missing: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide rows into strata of alike gaps; return strata (n,) and missing cells (n, d).

    A tree takes the columns that leave most cells; where one row lacks a column, its whole stratum does. Strata depend on gaps
    and samples only, so that values within one can be exchanged. Even strata of two rows, of which half the information goes into
    their mean, tell more together than fewer ones in which more cells are blanked. Rows that lack a column in one sample alone
    are a stratum in which nothing is exchanged, if their cells are fewer than those of the column in the other rows.
    """
    strata, blanked = np.zeros(len(missing), dtype=np.intp), missing.copy()
    todo, done = [np.arange(len(missing))], 0
    while todo:
        rows = todo.pop()
        parts = _divided(missing[rows], first[rows])
        if parts is not None:
            todo += [rows[part] for part in parts]
            continue
        strata[rows] = done
        blanked[rows] = missing[rows].any(axis=0)
        done += 1
    return strata, blanked


def _divided(missing: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return masks of the rows with and without a cell in the column that leaves most cells to compare; None if none does."""
    best, most = None, int(len(missing) * (~missing.any(axis=0)).sum())
    for lacks in missing.T:
        both = [side for side in (lacks, ~lacks) if (side & first).any() and (side & ~first).any()]
        kept = sum(int(side.sum()) * int((~missing[side].any(axis=0)).sum()) for side in both)
        if kept > most:
            best, most = lacks, kept
    return None if best is None else (~best, best)


@dataclass(frozen=True, eq=False)
class TwoSampleProblem:
    """Two samples, with all that the test computes from their rows together; only the first labels tell them apart."""

    samples: TwoSamples  # encoded rows
    encoding: RowEncoding  # made from the rows of both samples together
    # rows of `tables.checks.CheckedRows` before they were encoded: numbers, then codes, NaN where a cell is missing
    tables: tuple[np.ndarray, np.ndarray]
    # (n + n',): strata of rows with alike gaps, within which rows are permuted, if gaps are not compared
    strata: np.ndarray | None
    # permutations, centers: numbers of permutations and of centres
    permutations: int
    centers: int
    seed: int  # seed of the units, the permutations and the centres
    budget: Budget
    # number of the group of each row of each sample; groups are permuted as blocks
    groups: tuple[np.ndarray, np.ndarray] | None = None
    every: WholeSamples | None = None  # all rows, where those of the problem were drawn from them

    @classmethod
    def of(cls, x: CheckedRows, y: CheckedRows, names: list[str], *, compared: bool, **options: Any) -> Self:
        """Encode the rows of both samples; without `compared`, blank cells so that gaps are alike within strata."""
        both = rows = np.vstack([x.rows, y.rows])
        strata = None
        if not compared and np.isnan(both).any():
            strata, missing = gap_strata(np.isnan(both), np.arange(len(both)) < len(x.rows))
            rows = np.where(missing, np.nan, both)
        # Of the cells that are left: which others are known depends on the gaps, which are not exchanged.
        encoding = RowEncoding.of(rows, names, x.columns, compared=compared)
        first, second = np.split(encoding(rows), [len(x.rows)])
        samples = TwoSamples.of(replace(x, rows=first), replace(y, rows=second))
        return cls(samples, encoding, (x.rows, y.rows), strata, **options)

    @property
    def is_of_numbers(self) -> bool:
        """Tell whether the samples were complete rows of numbers."""
        return self.encoding.columns is None and not any(np.isnan(rows).any() for rows in self.all_tables)

    @property
    def all_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Cells of all rows of both samples, also of those that the test does not use."""
        return self.tables if self.every is None else self.every.tables

    @property
    def all_weights(self) -> np.ndarray:
        """Count of each distinct row in each sample, over all rows, of shape (m, 2)."""
        return self.samples.weights if self.every is None else self.every.weights

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows of each sample that the test uses."""
        return self.samples.split, len(self.samples.place) - self.samples.split

    @property
    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples in their original order."""
        rows = self.samples.rows[self.samples.place]
        return rows[: self.samples.split], rows[self.samples.split :]

    @property
    def shown(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples in their order for pictures, one number a column; codes of words are spread, to hide no row."""
        encoding, rng = self.encoding, np.random.default_rng(0)
        both = encoding.in_order(np.vstack(self.tables))
        for column, cell, j in zip(both.T, encoding.cells, range(both.shape[1]), strict=True):
            missing = np.isnan(column)
            column[missing] = cell.center if isinstance(cell, NumberEncoding) else len(encoding.kinds[j].levels) + 1
            if cell.kind == "categorical":
                column += rng.uniform(-_SPREAD_OF_WORDS, _SPREAD_OF_WORDS, len(column))
        return both[: self.sizes[0]], both[self.sizes[0] :]

    @property
    def complete(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples in their original order, complete: gaps that are not compared are filled alike in both."""
        if self.strata is None:
            return self.given
        second = np.arange(len(self.samples.place)) >= self.samples.split
        order = np.lexsort([second != self.samples.order[0], self.samples.place])
        rows = np.vstack(self.tables)
        rows[order] = self.encoding.filled(rows[order], self.seed)
        first, other = np.split(self.encoding(rows), [self.samples.split])
        return first, other

    def drawn(self, sample: int, most: int, seed: int) -> np.ndarray:
        """Draw the positions of at most `most` rows of a sample, by what the rows hold and not by their positions."""
        split = self.samples.split
        keys = [self.samples.place[:split], self.samples.place[split:]][sample]
        order = np.lexsort([keys] if self.groups is None else [self.groups[sample], keys])
        return np.asarray(order[np.sort(np.random.default_rng([self.seed, seed]).permutation(len(order))[:most])])

    @property
    def blocks(self) -> list[slice]:
        """Coordinates of each column of the table."""
        return self.encoding.blocks

    @property
    def scaled(self) -> np.ndarray:
        """Mask of the coordinates whose unit is 1."""
        return self.encoding.scaled

    @cached_property
    def units(self) -> Units:
        """Units of permutation."""
        rng, n = np.random.default_rng(self.seed), self.sizes[0]
        if self.groups is not None:
            return Units.of_groups(*self.groups, self.samples.place, rng)
        # Rows are drawn from their order by what they hold, so that the order in which they are given has no effect.
        second, strata = np.arange(len(self.samples.place)) >= n, self.strata
        order = np.lexsort([self.samples.place if strata is None else strata, self.samples.place, second])
        found = Units.of(*self.sizes, rng) if strata is None else Units.within(strata[order], n, rng)
        return replace(found, rows=order[found.rows])

    @cached_property
    def varying(self) -> np.ndarray:
        """Mask of the columns that vary."""
        rows = self.samples.rows[self._copies > 0]
        return np.asarray(rows.min(axis=0) < rows.max(axis=0))

    @cached_property
    def _copies(self) -> np.ndarray:
        """Count of each distinct row; without rows that groups leave out, which resemble those of their sample."""
        place = self.samples.place if self.groups is None else self.samples.place[self.units.rows]
        return np.bincount(place, minlength=len(self.samples.rows))

    @cached_property
    def column_units(self) -> RobustScaling:
        """Units of the columns that vary; repeated rows count, since merging would depend on other columns."""
        keep = self.varying
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # Of sorted rows: rounding depends on the order of a sum, and the order of the rows must not matter.
            rows = np.repeat(self.samples.rows[:, keep], self._copies, axis=0)
            found = RobustScaling.of(rows, self.scaled[keep])
        refuse_sizes(found.scale, keep, self.encoding.name_at, LEAST_SIZE)
        return found

    @cached_property
    def rows(self) -> np.ndarray:
        """Distinct rows in units of the columns, in an order that does not depend on the one given."""
        return self.enter(self.samples.rows)

    @cached_property
    def pooled(self) -> np.ndarray:
        """The distinct rows that choose centres and length scales."""
        return np.asarray(self.rows[self._copies > 0])

    def enter(self, X: np.ndarray) -> np.ndarray:
        """Return rows in units of the columns."""
        with np.errstate(over="ignore"):
            return self.column_units(X[:, self.varying])

    @cached_property
    def _distinct_units(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Indices of the distinct rows among units of single rows, of each unit among them, and their strata."""
        found, strata = self.samples.place[self.units.rows], self.units.strata
        if strata is not None:  # equal rows of several strata are permuted apart
            found = found + len(self.samples.rows) * strata
        used, place = np.unique(found, return_inverse=True)
        if strata is None:
            return used, place.ravel(), None
        return used % len(self.samples.rows), place.ravel(), used // len(self.samples.rows)

    @property
    def _bytes_of_labels(self) -> float:
        """Bytes of all label vectors, and of their differences of means at the length scales computed at a time."""
        scratch = 2 * max(min(self.centers, len(self.rows)) * self.budget.threads, self.rows.shape[1])
        return 8.0 * (1 + self.permutations) * (Labels.floats(self.units.sizes) + scratch)

    @cached_property
    def labels(self) -> Labels:
        """Label vectors, observed and permuted: the units in the smaller sample."""
        rng = np.random.default_rng([self.seed, 1])
        units = self.units
        what = f"n_resamples = {self.permutations}: the label vectors of these samples"
        refuse_too_large(what, self._bytes_of_labels, self.budget.memory, "use fewer")
        if units.group == 1:
            _, place, strata = self._distinct_units
            return Labels.draw(place, units.sizes, self.permutations, rng, strata=strata)
        place, weights = np.arange(sum(units.sizes)), units.lengths
        weights = None if weights is None else weights.astype(np.float64)
        return Labels.draw(place, units.sizes, self.permutations, rng, weights, units.strata)

    @cached_property
    def unit_rows(self) -> np.ndarray:
        """Scaled rows of the units: the rows of each group one after another, single distinct rows once."""
        if self.units.group != 1:
            return np.asarray(self.rows[self.samples.place[self.units.rows]])
        return np.asarray(self.rows[self._distinct_units[0]])

    @property
    def _beside_labels(self) -> Budget:
        """Budget without the memory of the label vectors."""
        return self.budget.within(self.budget.memory - self._bytes_of_labels)

    @cached_property
    def bases(self) -> list[Basis]:
        """Functions of all columns: Gaussians of six length scales, and products of Laplace functions."""
        rng = np.random.default_rng([self.seed, 2])
        centers = choose_centers(self.pooled, self.centers, rng)
        found = gaussian_bases(centers, self.centers, length_scales(self.pooled), self.budget)
        return [*found, Basis.of(LaplaceFeatures(centers[: self.centers], city_block_scale(self.pooled)))]

    def _forms(self, found: list[Basis], rows: np.ndarray) -> np.ndarray:
        """Return quadratic forms and column contrasts by statistic and label vector, of shape (k + d, 1 + B)."""
        labels, units = self.labels, self.units
        features = unit_features(found, rows, units, self._beside_labels)
        pairs = list(zip(found, features, strict=True))

        forms = self.budget.map("permutations", lambda pair: quadratic_forms(*pair, labels), pairs)
        return np.vstack([*forms, column_contrasts(rows, units, labels).T])

    @property
    def places_of_units(self) -> np.ndarray:
        """Place of each unit of one row among the distinct ones of :attr:`unit_rows`."""
        return self._distinct_units[1]

    @cached_property
    def columns_of_coordinates(self) -> np.ndarray:
        """Number of the column of the table that each coordinate that varies belongs to."""
        lengths = [block.stop - block.start for block in self.blocks]
        return np.repeat(np.arange(len(lengths)), lengths)[self.varying]

    @cached_property
    def of_two_values(self) -> np.ndarray:
        """Mask of the coordinates that vary and have two values only: gaps, words, and columns such as 0 and 1."""
        rows = self.unit_rows
        return np.asarray(((rows == rows.min(axis=0)) | (rows == rows.max(axis=0))).all(axis=0))

    @cached_property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of coordinates, and squared contrasts of their products and of cubes, of shape (1 + B, k + c)."""
        units, labels = self.units, self.labels
        share, numbers = shares_of_rows(units, labels), ~self.scaled[self.varying]
        found = Products.of(self.unit_rows, share, sampled_rows(self.pooled), self.columns_of_coordinates, numbers)
        return found.pairs, found.squares(units, labels, self._beside_labels)

    def pair_contrasts(self) -> tuple[list[tuple[int, int]], np.ndarray]:
        """Return pairs of columns, and the largest squared contrast of their products, of shape (1 + B, k)."""
        pairs, squares = self._products
        found, place = np.unique(self.columns_of_coordinates[pairs], axis=0, return_inverse=True)
        out = np.zeros((len(found), len(squares)))
        np.maximum.at(out, place.ravel(), squares[:, : len(pairs)].T)
        return [(int(i), int(j)) for i, j in found], out.T

    @cached_property
    def scores(self) -> np.ndarray:
        """Normal scores of all columns together, of shape (11, 1 + B): those of :attr:`score_names`."""
        k = len(self.kernels)
        with Progress("statistics of all permutations", 10, self.budget.verbose) as tick:
            with tick.part(3):
                forms = self._forms(self.bases, self.unit_rows)
            with tick.part(4):
                products = self._products[1].max(axis=1, initial=0.0)
            with tick.part(3):
                in_context = self._in_context()
        found = rank_scores(np.vstack([forms[:k], forms[k:].max(axis=0), in_context, products]))
        found[-1] -= _BEHIND
        return found

    @cached_property
    def residuals(self) -> RankRegression:
        """Regressions of the columns on each other."""
        return fitted_residuals(self)

    @cached_property
    def bent_residuals(self) -> np.ndarray | None:
        """Residuals of the units by forests, where relations bend and the table is small enough; None elsewhere."""
        found = self.residuals
        return forest_residuals(found.scores(self.unit_rows), found(self.unit_rows), self.columns_of_coordinates)

    def _in_context(self) -> np.ndarray:
        """Return the largest contrast of a column given the others, (1 + B,); of a single column, its distribution functions."""
        if self._is_of_one_column:
            return column_steps(self.unit_rows, self.pooled, self.units, self.labels).max(axis=1)
        found = contrasts(self, self.residuals(self.unit_rows)).max(axis=1)
        bent = self.bent_residuals
        return found if bent is None else np.maximum(found, contrasts(self, bent).max(axis=1))

    @property
    def _is_of_one_column(self) -> bool:
        return len(np.unique(self.columns_of_coordinates)) == 1

    @property
    def kernels(self) -> list[tuple[Basis, float]]:
        """Functions and ridge of each LSDD behind :attr:`scores`, in their order."""
        return [(basis, alpha) for basis in self.bases for alpha in basis.alphas]

    @property
    def score_names(self) -> list[str]:
        """Names of the statistics behind :attr:`scores`."""
        found = [(basis.functions, alpha) for basis, alpha in self.kernels]
        kernels = [f"{one.name}, length scale {one.length_scale:.3g}, ridge {alpha:g}" for one, alpha in found]
        context = "distribution function of the column" if self._is_of_one_column else "column given the others"
        return [*kernels, "mean and spread of a column", context, "product of two columns, or cube of one"]

    def column_scores(self) -> np.ndarray:
        """Return the largest score of each column, (1 + B, n_features), by the joint labels; -inf if constant."""
        out = np.full((1 + self.permutations, len(self.blocks)), -np.inf)
        varying = [j for j, block in enumerate(self.blocks) if self.varying[block].any()]
        if len(varying) == 1:  # the joint test is the test of this column
            out[:, varying[0]] = self.scores.max(axis=0)
            return out
        place = np.cumsum(self.varying) - 1
        with Progress("permutations by column", len(varying), self.budget.verbose) as tick:
            for j in varying:
                where = place[self.blocks[j]][self.varying[self.blocks[j]]]
                values = merge_without_rounding(self.pooled[:, where], np.ones(len(self.pooled)))[0]
                some = np.unique(np.linspace(0, len(values) - 1, min(len(values), _CENTERS_OF_COLUMNS)).astype(int))
                found = gaussian_bases(values[some], len(some), length_scales(values), self.budget)
                forms = [self._forms(found, self.unit_rows[:, where])]
                # Differences finer than any kernel, such as readings that are all higher by their last digit.
                forms.append(column_steps(self.unit_rows[:, where], values, self.units, self.labels).T)
                out[:, j] = moment_scores(np.vstack(forms)).max(axis=0)
                tick()
        return out
