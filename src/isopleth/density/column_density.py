"""Densities of product kernels: rows with missing cells, marginals, conditionals, imputation and draws, all exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.optimize import brentq

from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError
from isopleth.core.progress import unheard
from isopleth.core.rows import systematic_sample
from isopleth.core.threads import ROWS_OF_ONE_THREAD, map_threads, slices
from isopleth.density.pair_sums import Overlaps, QuadraticForms
from isopleth.kernels.product import ColumnKernel, overlap_of_unlike
from isopleth.operators import Operator
from isopleth.operators.blocks import LOG_VALUE

# A coefficient smaller than this share of the largest one of a row changes sums over pairs of centres by rounding errors only.
_NEGLIGIBLE = 1e-15
# Total mass of the centres that are left out when quantiles are computed.
_QUANTILE_MASS = 1e-7
# Draws whose mean fills a gap of a column that is mapped by a curve, and a step of which multiples are spread evenly over [0, 1].
_DRAWS, _GOLDEN = 200, 0.6180339887498949
# Cells of rows and centres nearer than this, in length scales, are equal.
_SAME = 1e-8

T = TypeVar("T")


@dataclass(frozen=True)
class Pattern:
    """Rows that have the same cells missing."""

    rows: np.ndarray
    observed: np.ndarray
    missing: np.ndarray


def patterns_of(Z: np.ndarray) -> list[Pattern]:
    """Group the rows of `Z` by the pattern of their missing cells (NaN); `observed` and `missing` are column numbers."""
    mask = np.isnan(Z)
    packed = np.packbits(mask, axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(inverse.ravel()))[:-1])
    return [
        Pattern(rows, np.flatnonzero(~mask[i]), np.flatnonzero(mask[i])) for rows, i in zip(groups, first, strict=True)
    ]


@dataclass(frozen=True)
class ColumnDensity:
    r"""Density of a product kernel over numeric and categorical columns.

    With :math:`f = \sum_i \alpha_i k(c_i, \cdot)` it is :math:`f^2/\int f^2` if `squared` and :math:`f/\int f` otherwise, with
    respect to Lebesgue measure on numeric columns and counting measure on categories. Missing cells of rows are NaN. The density
    of such a row is that of its observed cells; the others are integrated or summed out. With
    :math:`a_i = \alpha_i k_o(c_i, z)` over the observed columns and G the overlaps of the kernel over the others,
    :math:`p(z_o) = a^\top G a/Z`; without the square :math:`p(z_o) = \sum_i a_i \int k_m/Z`.
    """

    kernel: ColumnKernel  # kernel of all columns, numeric ones first, at unit length scale
    centers: np.ndarray  # (m, d): centres without missing cells; categories as whole numbers
    coefficients: np.ndarray  # (m,): coefficients alpha, not negative
    squared: bool  # whether the density is the square of f
    visible: np.ndarray | None = None  # columns of the density; the others are integrated out. By default all
    # cells of the centres that were missing in the row which the centre was made of
    filled: np.ndarray | None = None
    budget: Budget = DEFAULT_BUDGET

    # ---- columns ----------------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns of the centres that belong to the density."""
        return np.arange(self.centers.shape[1]) if self.visible is None else np.asarray(self.visible)

    @cached_property
    def hidden(self) -> np.ndarray:
        """Columns that are always integrated out."""
        return np.setdiff1d(np.arange(self.centers.shape[1]), self.columns)

    @property
    def dim(self) -> int:
        """Number of columns of the density."""
        return len(self.columns)

    def size(self, column: int) -> int:
        """Return the number of categories of a visible column, 0 for a numeric one."""
        code = int(self.columns[column]) - self.kernel.n_numeric
        return 0 if code < 0 else self.kernel.sizes[code]

    def _rho(self, column: int) -> float:
        return self.kernel.rho[int(self.columns[column]) - self.kernel.n_numeric]

    @cached_property
    def numeric(self) -> np.ndarray:
        """Mask of the numeric ones among the visible columns."""
        return self.columns < self.kernel.n_numeric

    # ---- sums over centres ------------------------------------------------------------------------------------------

    @cached_property
    def log_normalizer(self) -> float:
        r"""Logarithm of Z, the integral of f^2 or of f over all columns."""
        if not self.squared:
            return math.log(float(np.sum(self.coefficients))) + self.kernel.log_integral()
        op = Operator(self.kernel.overlap, self.centers, budget=self.budget)
        return self.kernel.log_overlap + math.log(float(self.coefficients @ op.matvec(self.coefficients)))

    def _log_integral(self, columns: np.ndarray) -> float:
        """Return the log integral over columns, or the log overlap at equal centres for squared densities."""
        if not len(columns):
            return 0.0
        kernel = self.kernel.take(columns)
        return kernel.log_overlap if self.squared else kernel.log_integral()

    def _terms(
        self, z: np.ndarray, observed: np.ndarray, budget: Budget, skip: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return for each row the log of the largest :math:`a_i = \alpha_i k_o(c_i, z)`, and all of them divided by it."""
        with np.errstate(divide="ignore"):
            log_alpha = np.log(self.coefficients)
        if not len(observed):
            logs = np.tile(log_alpha, (len(z), 1))
        else:
            place = self.columns[observed]
            kernel = self.kernel.take(place)
            points = np.ascontiguousarray(z[:, observed])
            centers = np.ascontiguousarray(self.centers[:, place])
            op = Operator(kernel, points, centers, block=LOG_VALUE, budget=budget)
            logs = op.dense()
            logs += log_alpha
        for own in () if skip is None else skip.T:
            rows = np.flatnonzero(own >= 0)
            logs[rows, own[rows]] = -np.inf
        top = logs.max(axis=1)
        if not np.isfinite(top).all():
            raise InputError("a row is so far from every centre that its density has no logarithm; rescale or drop it.")
        logs -= top[:, None]
        return top, np.exp(logs, out=logs)

    def _each(self, Z: np.ndarray, visit: Callable[[Pattern, Overlaps], T]) -> list[T]:
        """Call `visit` for chunks of rows of one pattern that fit in memory; several patterns are divided among threads."""
        groups = patterns_of(Z)
        workers = 1 if len(Z) <= ROWS_OF_ONE_THREAD else min(self.budget.threads, len(groups))
        memory = self.budget.memory / workers  # a third each: rows, pairs of centres, overlaps that patterns share
        step = memory / (96 * len(self.centers))
        chunks = [replace(group, rows=group.rows[part]) for group in groups for part in slices(len(group.rows), step)]
        own = (self.budget.alone if len(groups) > 1 else self.budget).within(memory / 2)
        overlaps = Overlaps(self.kernel, self.centers, own)
        overlaps = overlaps.sharing([self._integrated(group) for group in groups], self.budget.memory / 3)
        return map_threads(lambda chunk: visit(chunk, overlaps), chunks, workers)

    def _look(self, z: np.ndarray, pattern: Pattern, overlaps: Overlaps, skip: np.ndarray | None = None) -> _Look:
        """Compute the terms of the centres at rows of one pattern, without the centres `skip` of a row that are not negative."""
        top, a = self._terms(z, pattern.observed, overlaps.budget, None if skip is None else skip[pattern.rows])
        return _Look(self, top, a, self._integrated(pattern), overlaps)

    @cached_property
    def _filled_centers(self) -> dict[bytes, list[int]]:
        """Centres with filled cells, by the known cells of the row that they were made of."""
        if self.filled is None:
            return {}
        filled = self.filled[:, self.columns]
        rows = np.flatnonzero(filled.any(axis=1))
        known = np.where(filled[rows], np.nan, self.centers[np.ix_(rows, self.columns)]) + 0.0
        out: dict[bytes, list[int]] = {}
        for row, i in zip(known, rows.tolist(), strict=True):
            out.setdefault(row.tobytes(), []).append(i)
        return out

    def own_centers(self, Z: np.ndarray) -> np.ndarray | None:
        """Find the centres made by filling the gaps of each row, (n, k), -1 for none; they know nothing about these gaps."""
        if not self._filled_centers:
            return None
        whole = np.where(np.isnan(Z), np.nan, Z) + 0.0  # one NaN and one zero
        for column, values in zip(whole.T, map(np.unique, self.centers[:, self.columns].T), strict=True):
            nearest = values[np.searchsorted(0.5 * (values[1:] + values[:-1]), column)] + 0.0
            column[:] = np.where(np.abs(nearest - column) < _SAME, nearest, column)
        found = [self._filled_centers.get(row.tobytes(), []) for row in whole]
        out = np.full((len(Z), max(map(len, found), default=0)), -1, dtype=np.intp)
        for i, own in enumerate(found):
            if len(own) < len(self.centers):  # otherwise there is no other centre to answer
                out[i, : len(own)] = own
        return out

    # ---- answers at rows --------------------------------------------------------------------------------------------

    def positive(self, Z: np.ndarray) -> np.ndarray:
        """Return a mask of the rows at which f > 0: all."""
        return np.ones(len(Z), dtype=bool)

    def hyvarinen_terms(self, Z: np.ndarray) -> np.ndarray:
        """Refuse: words have no derivatives, and kernels that are products have kinks."""
        raise InputError(
            f"{self.kernel!r} has no Hyvarinen loss here; fit complete rows of numbers with kernel='gaussian', or compare "
            "log densities with score."
        )

    def evaluate(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Refuse: chains would move in words."""
        raise InputError(
            "chains move in complete rows of numbers with kernels of distances; the sample method of this model draws "
            "exactly from it."
        )

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Compute the log density of the observed cells of each row. It is 0 for a row whose cells are all missing."""
        out = np.zeros(len(Z))

        def visit(pattern: Pattern, overlaps: Overlaps) -> None:
            if len(pattern.observed):
                out[pattern.rows] = self._look(Z[pattern.rows], pattern, overlaps).log_p - log_z

        log_z = self.log_normalizer
        self._each(Z, visit)
        return out

    def grad_log_density(self, Z: np.ndarray) -> np.ndarray:
        """Compute the gradient of the log density of observed cells by the observed numeric columns; NaN elsewhere."""
        out = np.full(Z.shape, np.nan)
        factor, times = self.kernel.factor, 2.0 if self.squared else 1.0

        def visit(pattern: Pattern, overlaps: Overlaps) -> None:
            numeric = pattern.observed[self.numeric[pattern.observed]]
            if not len(numeric):
                return
            z = Z[pattern.rows]
            shares = self._look(z, pattern, overlaps).shares
            for j in numeric:
                out[pattern.rows, j] = times * factor.slope(z[:, j], self.centers[:, self.columns[j]], shares)

        self._each(Z, visit)
        return out

    def category_probabilities(self, Z: np.ndarray, column: int, skip: np.ndarray | None = None) -> np.ndarray:
        """Compute the probability of each category of a column, (n, size), given the observed cells of the others."""
        out = np.empty((len(Z), self.size(column)))
        asked = Z.copy()
        asked[:, column] = np.nan

        def visit(pattern: Pattern, overlaps: Overlaps) -> None:
            look = self._look(asked[pattern.rows], pattern, overlaps, skip)
            out[pattern.rows] = self._probabilities(column, look)

        self._each(asked, visit)
        return out

    def _probabilities(self, column: int, look: _Look) -> np.ndarray:
        r"""Compute the probabilities of the categories of a column that is missing in the rows.

        The kernel of category c is :math:`\rho + (1 - \rho)\, 1[c_i = c]`, so the quadratic form is three sums, over all pairs,
        pairs with one and pairs with two centres of category c; the overlap of the column itself is divided out.
        """
        size, rho = self.size(column), self._rho(column)
        codes = self.centers[:, self.columns[column]].astype(np.intp)
        member = np.zeros((len(codes), size))
        member[np.arange(len(codes)), codes] = 1.0
        with_one = look.shares @ member
        if not self.squared:
            return np.asarray(((1.0 - rho) * with_one + rho) / (1.0 + (size - 1) * rho))
        r = overlap_of_unlike(rho, size)
        both = look.pairs.within(codes, size) / look.pairs.total()[:, None]
        one = both + np.maximum(with_one - both, 0.0) / r
        p = rho * rho * one.sum(axis=1)[:, None] + 2.0 * rho * (1.0 - rho) * one + (1.0 - rho) ** 2 * both
        return np.asarray(p / p.sum(axis=1)[:, None])

    def impute(
        self,
        Z: np.ndarray,
        strategy: str = "mean",
        rng: np.random.Generator | None = None,
        skip: np.ndarray | None = None,
        tick: Callable[[int], None] = unheard,
    ) -> np.ndarray:
        """Fill missing cells given the observed ones: by conditional means and modes, or by a joint draw.

        `skip`, (n, k), numbers centres that are left out for each row: one that was made from the row would return its own fill.
        """
        if strategy == "draw":
            return self._impute_draws(Z, rng or np.random.default_rng(), skip, tick)
        return self._impute_means(Z, skip, tick)

    def row_weights(self) -> np.ndarray:
        """Return the weights of the rows that the centres were made of; those of a square follow from its equations."""
        if not self.squared:
            return self.coefficients
        op = Operator(self.kernel, self.centers, budget=self.budget)
        return np.asarray(self.coefficients * op.matvec(self.coefficients))

    def _impute_means(self, Z: np.ndarray, skip: np.ndarray | None, tick: Callable[[int], None]) -> np.ndarray:
        """Return rows with their gaps filled by conditional means and likeliest words."""
        out = Z.copy()

        def visit(pattern: Pattern, overlaps: Overlaps) -> None:
            if not len(pattern.missing):
                return
            look = self._look(Z[pattern.rows], pattern, overlaps, skip)
            numeric = self.numeric[pattern.missing]
            for j in pattern.missing[~numeric]:
                out[pattern.rows, j] = self._probabilities(int(j), look).argmax(axis=1)
            gaps = pattern.missing[numeric]
            if len(gaps):
                # The mean of a pair of centres is their midpoint.
                found = look.shares @ self.centers[:, self.columns[gaps]]
                out[np.ix_(pattern.rows, gaps)] = found
            tick(len(pattern.rows))

        self._each(Z, visit)
        return out

    def _impute_draws(
        self, Z: np.ndarray, rng: np.random.Generator, skip: np.ndarray | None, tick: Callable[[int], None]
    ) -> np.ndarray:
        """Return rows with their gaps filled by draws from the conditional law."""
        out = Z.copy()

        def visit(pattern: Pattern, overlaps: Overlaps) -> None:
            if not len(pattern.missing):
                return
            look = self._look(Z[pattern.rows], pattern, overlaps, skip)
            i = _one_a_row(look.shares, rng.uniform(size=len(pattern.rows)))
            u = rng.uniform(size=len(i))
            j = self._partners(look.terms, i, look.integrated, u, overlaps) if self.squared else i
            for column in pattern.missing:
                out[pattern.rows, column] = self._draw(int(column), i, j, rng)
            tick(len(pattern.rows))

        # One thread, so that the order of draws does not depend on timing.
        replace(self, budget=self.budget.alone)._each(Z, visit)
        return out

    def means_of_draws(
        self, Z: np.ndarray, values: Callable[[np.ndarray], np.ndarray], skip: np.ndarray | None = None
    ) -> np.ndarray:
        """Compute the mean of `values` of draws of missing cells. All rows share random numbers, so none affects another."""
        place = np.arange(_DRAWS)

        def visit(pattern: Pattern, overlaps: Overlaps) -> list[tuple[int, np.ndarray]]:
            look, found = self._look(Z[pattern.rows], pattern, overlaps, skip), []
            for row, share, terms in zip(pattern.rows.tolist(), look.shares, look.terms, strict=True):
                rng = np.random.default_rng(0)
                i = _one_a_row(np.tile(share, (_DRAWS, 1)), (place + 0.5) / _DRAWS)
                a, u = np.broadcast_to(terms, (_DRAWS, len(terms))), _GOLDEN * place % 1.0
                j = self._partners(a, i, look.integrated, u, overlaps) if self.squared else i
                drawn = np.tile(Z[row], (_DRAWS, 1))
                for column in pattern.missing:
                    drawn[:, column] = self._draw(int(column), i, j, rng)
                found.append((row, values(drawn).mean(axis=0)))
            return found

        means = sorted((pair for part in self._each(Z, visit) for pair in part), key=lambda pair: pair[0])
        return np.array([mean for _, mean in means])

    def _integrated(self, pattern: Pattern) -> np.ndarray:
        return np.sort(np.concatenate([self.columns[pattern.missing], self.hidden]))

    def _partners(
        self, a: np.ndarray, i: np.ndarray, integrated: np.ndarray, u: np.ndarray, overlaps: Overlaps
    ) -> np.ndarray:
        """Draw the second centre of a pair for each row: j with probability proportional to :math:`a_j G_{ij}`, by shares u."""
        chosen, place = np.unique(i, return_inverse=True)
        weights = overlaps.between(chosen, np.arange(a.shape[1]), integrated)[place]
        weights *= a
        return _one_a_row(weights, u)

    def _draw(self, column: int, i: np.ndarray, j: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw cells of one column from the kernels about the centres `i`, or from their products with those about `j`."""
        values = self.centers[:, self.columns[column]]
        if self.numeric[column]:
            if self.squared:
                return self.kernel.factor.sample_pair(values[i], values[j], rng)
            return np.asarray(values[i] + self.kernel.factor.sample(len(i), rng))
        size, rho = self.size(column), self._rho(column)
        weights = np.full((len(i), size), rho * rho if self.squared else rho)
        rows = np.arange(len(i))
        for chosen in (i, j) if self.squared else (i,):
            weights[rows, values[chosen].astype(np.intp)] /= rho
        return _one_a_row(weights, rng.uniform(size=len(i))).astype(np.float64)

    def intervals(
        self,
        Z: np.ndarray,
        confidence_level: float = 0.9,
        skip: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute central intervals of missing numbers given the row."""
        lower, upper = Z.copy(), Z.copy()
        ends = 0.5 * (1.0 - confidence_level), 0.5 * (1.0 + confidence_level)

        def visit(pattern: Pattern, overlaps: Overlaps) -> None:
            gaps = pattern.missing[self.numeric[pattern.missing]]
            if not len(gaps):
                return
            look = self._look(Z[pattern.rows], pattern, overlaps, skip)
            for row, terms, share in zip(pattern.rows, look.terms, look.shares, strict=True):
                laws = self._laws(gaps, terms, share, look.integrated, overlaps)
                for column, (law, ends_of_law) in zip(gaps, laws, strict=True):
                    lower[row, column], upper[row, column] = (_quantile(law, end, *ends_of_law) for end in ends)

        self._each(Z, visit)
        return lower, upper

    def cumulative(self, column: int, place: float) -> float:
        """Return the probability that a numeric column is at most so large."""

        def visit(pattern: Pattern, overlaps: Overlaps) -> float:
            look = self._look(np.full((1, self.dim), np.nan), pattern, overlaps)
            gaps = np.array([column])
            ((law, _),) = self._laws(gaps, look.terms[0], look.shares[0], look.integrated, overlaps)
            return law(place)

        return self._each(np.full((1, self.dim), np.nan), visit)[0]

    def _laws(
        self,
        gaps: np.ndarray,
        terms: np.ndarray,
        share: np.ndarray,
        integrated: np.ndarray,
        overlaps: Overlaps,
    ) -> list[tuple[Callable[[float], float], tuple[float, float]]]:
        """Return distribution functions of the missing numeric cells of one row, each with the range of the relevant centres."""
        kept = np.flatnonzero(share > _QUANTILE_MASS / len(share))
        columns = [self.centers[kept, self.columns[j]] for j in gaps]
        ranges = [(float(values.min()), float(values.max())) for values in columns]
        if not self.squared:
            mass = share[kept] / share[kept].sum()
            cumulative = self.kernel.factor.cumulative
            laws = [lambda t, values=values: float(mass @ cumulative(np.asarray(t), values)) for values in columns]
            return list(zip(laws, ranges, strict=True))
        mixtures = [self.kernel.factor.pair_mixture(values) for values in columns]
        total = 0.0
        for rows in slices(len(kept), overlaps.budget.memory / (128 * len(kept))):
            weights = overlaps.between(kept[rows], kept, integrated)
            weights *= terms[kept[rows], None]
            weights *= terms[kept]
            total += float(weights.sum())
            for mixture in mixtures:
                mixture.add(rows, weights)
        laws = [lambda t, mixture=mixture: mixture.cumulative(t) / total for mixture in mixtures]
        return list(zip(laws, ranges, strict=True))

    # ---- other densities --------------------------------------------------------------------------------------------

    def marginal(self, columns: np.ndarray) -> ColumnDensity:
        """Return the density of some of the columns, numbers first; the others are integrated out."""
        return replace(self, visible=self.columns[columns])

    def conditional(self, given: Mapping[int, float]) -> ColumnDensity:
        """Return the density of the other columns given the values of some columns, not of all."""
        known = np.array(list(given))
        z = np.full((1, self.dim), np.nan)
        z[:, known] = list(given.values())
        _, a = self._terms(z, np.sort(known), self.budget)
        rest = np.setdiff1d(np.arange(self.centers.shape[1]), self.columns[known])
        heavy = a[0] > 0.0
        visible = np.setdiff1d(np.arange(self.dim), known)
        return replace(
            self,
            kernel=self.kernel.take(rest),
            centers=np.ascontiguousarray(self.centers[np.ix_(heavy, rest)]),
            coefficients=a[0][heavy],
            visible=np.searchsorted(rest, self.columns[visible]),
            filled=None if self.filled is None else self.filled[np.ix_(heavy, rest)],
        )

    def sample(self, n_samples: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET) -> np.ndarray:
        """Draw independent rows."""
        return self.draw(n_samples, rng)[0]

    def draw(
        self, n_samples: int, rng: np.random.Generator, *, evenly: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw rows, and return them with the two centres of each; these are equal without the square.

        Rows are independent, or the first centres are taken `evenly`, each about as often as is expected.
        """
        m, everything = len(self.centers), np.arange(self.centers.shape[1])
        alpha = self.coefficients / self.coefficients.max()
        first = alpha
        if self.squared:
            op = Operator(self.kernel.overlap, self.centers, budget=self.budget)
            first = alpha * op.matvec(alpha)
        i = (
            systematic_sample(first, n_samples, rng)
            if evenly
            else np.sort(rng.choice(m, size=n_samples, p=first / first.sum()))
        )
        j, overlaps = i.copy(), Overlaps(self.kernel, self.centers, self.budget)
        for part in slices(n_samples if self.squared else 0, self.budget.memory / (64 * m)):
            terms = np.broadcast_to(alpha, (len(i[part]), m))
            u = rng.uniform(size=len(terms))
            j[part] = self._partners(terms, i[part], everything, u, overlaps)
        out = np.column_stack([self._draw(column, i, j, rng) for column in range(self.dim)])
        order = rng.permutation(n_samples)
        return out[order], i[order], j[order]


@dataclass(frozen=True)
class _Look:
    """Sums over the centres at rows of one pattern; those over pairs of centres are computed when they are asked for."""

    density: ColumnDensity
    top: np.ndarray  # (n,): log of the largest term of the row
    terms: np.ndarray  # (n, m): terms a of the centres, divided by the largest one of the row
    integrated: np.ndarray  # columns of the centres that are integrated out
    overlaps: Overlaps

    @cached_property
    def pairs(self) -> QuadraticForms:
        """Sums over pairs of centres, for squared densities."""
        # Centres that change a sum over all pairs in double precision, for at least one of the rows.
        m = self.terms.shape[1]
        kept = np.flatnonzero(self.terms.max(axis=0) > _NEGLIGIBLE / m)
        if 2 * len(kept) > m:  # leaving the others out costs as much as it saves
            kept = np.arange(m)
        terms = np.ascontiguousarray(self.terms[:, kept])
        words = bool((self.integrated >= self.density.kernel.n_numeric).any())
        return QuadraticForms(self.overlaps, terms, kept, self.integrated, words)

    @cached_property
    def _parts(self) -> np.ndarray:
        """Part of each centre in the density at the row, (n, m), in units of the largest term or of its square."""
        if not self.density.squared:
            return self.terms
        parts = np.zeros_like(self.terms)
        parts[:, self.pairs.kept] = self.pairs.terms * self.pairs.times_overlaps
        return parts

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of each centre in the density at the row, (n, m); each row has sum 1."""
        return np.asarray(self._parts / self._parts.sum(axis=1)[:, None])

    @property
    def log_p(self) -> np.ndarray:
        """Log density of the observed cells, (n,), without the normaliser."""
        top = 2.0 * self.top if self.density.squared else self.top
        return np.asarray(top + np.log(self._parts.sum(axis=1)) + self.density._log_integral(self.integrated))


def _one_a_row(weights: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the column where the cumulative weights of each row pass a share `u`; at least one must be positive."""
    cumulative = np.cumsum(weights, axis=1)
    return np.asarray((cumulative > (u * cumulative[:, -1])[:, None]).argmax(axis=1))


def _quantile(cumulative: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Find where a continuous distribution function passes `level`; it does so near the range from `low` to `high`."""
    width = max(1.0, high - low)
    while cumulative(low) > level:
        low -= width
    while cumulative(high) < level:
        high += width
    return float(brentq(lambda t: cumulative(t) - level, low, high, xtol=1e-12))
