"""Densities of product kernels: rows with missing cells, marginals, conditionals, imputation and draws, all exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from isopleth.errors import InputError
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.blocks import Matrix
from isopleth.operators.threads import DEFAULT_N_JOBS, effective_n_jobs, map_threads

LOG_VALUE = Matrix("log value", lambda kernel: kernel._log)

# A coefficient so small beside the largest one of a row adds nothing to a sum over all pairs of centres but rounding.
_NEGLIGIBLE = 1e-15
# Mass of the centres that quantiles leave out.
_QUANTILE_MASS = 1e-7
_SECANT_STEPS = 60

T = TypeVar("T")


@dataclass(frozen=True)
class Pattern:
    """Rows that have the same cells missing."""

    rows: np.ndarray
    observed: np.ndarray
    missing: np.ndarray


def patterns_of(Z: np.ndarray) -> list[Pattern]:
    """The rows of `Z` by the pattern of their missing cells, NaN; `observed` and `missing` are numbers of columns."""
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
    r"""A density of a product kernel over numeric and categorical columns.

    With :math:`f = \sum_i \alpha_i k(c_i, \cdot)` it is :math:`f^2/\int f^2` if `squared` and :math:`f/\int f` otherwise, with
    respect to Lebesgue measure of the numeric columns times counting of the categories. Rows hold NaN where a cell is missing.
    Their density is that of the observed cells, the others being integrated and summed out: with
    :math:`a_i = \alpha_i k_o(c_i, z)` over the observed columns and G the overlaps of the kernel over the others,
    :math:`p(z_o) = a^\top G a/Z`; without the square :math:`p(z_o) = \sum_i a_i \int k_m/Z`.

    Parameters
    ----------
    kernel : ColumnKernel
        The kernel of all columns, numeric ones first, at unit length scale.
    centers : array of shape (m, d)
        Centres, complete; codes of categories as whole numbers.
    coefficients : array of shape (m,)
        Coefficients alpha, not negative.
    squared : bool
        Whether the density is the square of f.
    visible : array of int, optional
        The columns that this is a density of; the others are integrated out. All of them if left out.
    filled : array of the shape of the centres, bool, optional
        Cells of the centres that were missing in the row which the centre was made of.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.density.column_density import ColumnDensity
    >>> from isopleth.kernels.product import ColumnKernel
    >>> centers = np.array([[-1.0, 0], [2.0, 1]])  # a number, and one of three words
    >>> p = ColumnDensity(ColumnKernel(2, rho=(0.1,), sizes=(3,)), centers, np.array([0.5, 0.5]), squared=False)
    >>> p.impute(np.array([[2.0, np.nan], [np.nan, 0.0]])).round(2)
    array([[ 2.  ,  1.  ],
           [-0.73,  0.  ]])
    """

    kernel: ColumnKernel
    centers: np.ndarray
    coefficients: np.ndarray
    squared: bool
    visible: np.ndarray | None = None
    filled: np.ndarray | None = None
    memory_limit: float = DEFAULT_MEMORY_LIMIT
    n_jobs: int | None = DEFAULT_N_JOBS

    # ---- columns ----------------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> np.ndarray:
        """The columns among those of the centres that this is a density of."""
        return np.arange(self.centers.shape[1]) if self.visible is None else np.asarray(self.visible)

    @cached_property
    def hidden(self) -> np.ndarray:
        """The columns that are always integrated out."""
        return np.setdiff1d(np.arange(self.centers.shape[1]), self.columns)

    @property
    def dim(self) -> int:
        """Number of columns that this is a density of."""
        return len(self.columns)

    def size(self, column: int) -> int:
        """Number of categories of a visible column, 0 for a numeric one."""
        code = int(self.columns[column]) - self.kernel.n_numeric
        return 0 if code < 0 else self.kernel.sizes[code]

    def _rho(self, column: int) -> float:
        return self.kernel.rho[int(self.columns[column]) - self.kernel.n_numeric]

    @cached_property
    def numeric(self) -> np.ndarray:
        """Which visible columns are numeric."""
        return self.columns < self.kernel.n_numeric

    # ---- sums over centres ------------------------------------------------------------------------------------------

    @cached_property
    def log_normalizer(self) -> float:
        r"""log Z, the integral of f^2 or of f over all columns."""
        if not self.squared:
            return math.log(float(np.sum(self.coefficients))) + self.kernel.log_integral()
        op = Operator(self.kernel.overlap, self.centers, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
        return self.kernel.log_overlap + math.log(float(self.coefficients @ op.matvec(self.coefficients)))

    def _log_integral(self, columns: np.ndarray) -> float:
        """What the kernel leaves of columns that are integrated out, up to the relative overlaps of pairs of centres."""
        if not len(columns):
            return 0.0
        kernel = self.kernel.take(columns)
        return kernel.log_overlap if self.squared else kernel.log_integral()

    def _terms(
        self, z: np.ndarray, observed: np.ndarray, n_jobs: int | None, skip: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""log of the largest :math:`a_i = \alpha_i k_o(c_i, z)` of each row, and all of them over it, of shape (rows, m)."""
        with np.errstate(divide="ignore"):
            log_alpha = np.log(self.coefficients)
        if not len(observed):
            logs = np.tile(log_alpha, (len(z), 1))
        else:
            place = self.columns[observed]
            kernel, budget = self.kernel.take(place), self.memory_limit
            points = np.ascontiguousarray(z[:, observed])
            centers = np.ascontiguousarray(self.centers[:, place])
            op = Operator(kernel, points, centers, block=LOG_VALUE, memory_limit=budget, n_jobs=n_jobs)
            logs = op.dense()
            logs += log_alpha
        if skip is not None:
            rows = np.flatnonzero(skip >= 0)
            logs[rows, skip[rows]] = -np.inf
        top = logs.max(axis=1)
        if not np.isfinite(top).all():
            raise InputError("a row is so far from every centre that its density has no logarithm; rescale or drop it.")
        logs -= top[:, None]
        return top, np.exp(logs, out=logs)

    def _overlaps(self, rows: np.ndarray, columns: np.ndarray, over: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Relative overlaps of the centres `rows` with the centres `columns` over the columns `over`, 1 where there are none."""
        if not len(over):
            return np.ones((len(rows), len(columns)))
        kernel = self.kernel.take(over).overlap
        x, y = (np.ascontiguousarray(self.centers[np.ix_(part, over)]) for part in (rows, columns))
        return Operator(kernel, x, y, memory_limit=self.memory_limit, n_jobs=n_jobs).dense()

    def _each(self, Z: np.ndarray, visit: Callable[[Pattern, float, int | None], T]) -> list[T]:
        """`visit` of every chunk of rows of one pattern that memory allows, by threads where there are several."""
        m = len(self.centers)
        groups = patterns_of(Z)
        workers = min(effective_n_jobs(self.n_jobs), len(groups)) if len(groups) > 1 else 1
        memory = self.memory_limit / workers
        step = max(1, int(memory / (64 * m)))
        chunks = [
            replace(group, rows=group.rows[start : start + step])
            for group in groups
            for start in range(0, len(group.rows), step)
        ]
        inside = 1 if workers > 1 else self.n_jobs
        return map_threads(lambda chunk: visit(chunk, memory / 2, inside), chunks, workers)

    def _look(
        self, z: np.ndarray, pattern: Pattern, memory: float, n_jobs: int | None, skip: np.ndarray | None = None
    ) -> _Look:
        """What rows of one pattern see of the centres, except that of number `skip` where it is not negative."""
        integrated = self._integrated(pattern)
        top, a = self._terms(z, pattern.observed, n_jobs, None if skip is None else skip[pattern.rows])
        if not self.squared:
            total = a.sum(axis=1)
            return _Look(top + np.log(total) + self._log_integral(integrated), a, a / total[:, None], None)
        # Centres that matter to a sum over all pairs, in double precision, at one of the rows at least.
        kept = np.flatnonzero(a.max(axis=0) > _NEGLIGIBLE / a.shape[1])
        pairs = Pairs(self, np.ascontiguousarray(a[:, kept]), kept, integrated, memory, n_jobs)
        shares = np.zeros_like(a)
        shares[:, kept] = pairs.terms * pairs.times_overlaps()
        total = shares.sum(axis=1)
        shares /= total[:, None]
        return _Look(2.0 * top + np.log(total) + self._log_integral(integrated), a, shares, pairs)

    @cached_property
    def _filled_centers(self) -> dict[bytes, int]:
        """Centres with filled cells, by the known cells of the row that they were made of."""
        if self.filled is None:
            return {}
        filled = self.filled[:, self.columns]
        rows = np.flatnonzero(filled.any(axis=1))
        known = np.where(filled[rows], np.nan, self.centers[np.ix_(rows, self.columns)]) + 0.0
        return {row.tobytes(): int(i) for row, i in zip(known, rows, strict=True)}

    def own_centers(self, Z: np.ndarray) -> np.ndarray | None:
        """For each row the centre that was made of it by filling its gaps, -1 where none was; None if none was anywhere.

        Its filled cells are no knowledge about the gaps of the row: :meth:`impute` and others take it as `skip`.
        """
        if not self._filled_centers or len(self.centers) < 2:
            return None
        whole = np.where(np.isnan(Z), np.nan, Z) + 0.0  # one NaN and one zero
        return np.array([self._filled_centers.get(row.tobytes(), -1) for row in whole], dtype=np.intp)

    # ---- answers at rows --------------------------------------------------------------------------------------------

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Log density of the observed cells of each row.

        Parameters
        ----------
        Z : array of shape (n, d)
            Rows, NaN where a cell is missing.

        Returns
        -------
        ndarray of shape (n,)
            0 for a row of which every cell is missing.
        """
        out = np.zeros(len(Z))

        def visit(pattern: Pattern, memory: float, n_jobs: int | None) -> None:
            if len(pattern.observed):
                out[pattern.rows] = self._look(Z[pattern.rows], pattern, memory, n_jobs).log_p - log_z

        log_z = self.log_normalizer
        self._each(Z, visit)
        return out

    def grad_log_density(self, Z: np.ndarray) -> np.ndarray:
        """Gradient of the log density of the observed cells in the observed numeric columns; NaN in all others."""
        out = np.full(Z.shape, np.nan)
        factor, times = self.kernel.factor, 2.0 if self.squared else 1.0

        def visit(pattern: Pattern, memory: float, n_jobs: int | None) -> None:
            numeric = pattern.observed[self.numeric[pattern.observed]]
            if not len(numeric):
                return
            z = Z[pattern.rows]
            shares = self._look(z, pattern, memory, n_jobs).shares
            for j in numeric:
                out[pattern.rows, j] = times * factor.slope(z[:, j], self.centers[:, self.columns[j]], shares)

        self._each(Z, visit)
        return out

    def category_probabilities(self, Z: np.ndarray, column: int, skip: np.ndarray | None = None) -> np.ndarray:
        """Probability of each category of a column given the observed cells of the other columns.

        Parameters
        ----------
        Z : array of shape (n, d)
            Rows; what they hold in `column` is not looked at.
        column : int
            A categorical column.
        skip : array of int of shape (n,), optional
            As for :meth:`impute`.

        Returns
        -------
        ndarray of shape (n, size)
            Rows of sum 1.
        """
        out = np.empty((len(Z), self.size(column)))
        asked = Z.copy()
        asked[:, column] = np.nan

        def visit(pattern: Pattern, memory: float, n_jobs: int | None) -> None:
            look = self._look(asked[pattern.rows], pattern, memory, n_jobs, skip)
            out[pattern.rows] = self._probabilities(column, look)

        self._each(asked, visit)
        return out

    def _probabilities(self, column: int, look: _Look) -> np.ndarray:
        r"""Probabilities of the categories of a column that the rows lack.

        The kernel of category c with a centre is :math:`\rho + (1 - \rho)\, 1[c_i = c]`. So the quadratic form of the terms
        times it takes three sums, without the overlap of this column: over all pairs, over those with one centre of c, and
        over those with two. The overlap is 1 for pairs of one category and r for others, which the sums with it are divided by.
        """
        size, rho = self.size(column), self._rho(column)
        codes = self.centers[:, self.columns[column]].astype(np.intp)
        member = np.zeros((len(codes), size))
        member[np.arange(len(codes)), codes] = 1.0
        with_one = look.shares @ member
        if look.pairs is None:
            return np.asarray(((1.0 - rho) * with_one + rho) / (1.0 + (size - 1) * rho))
        r = (2.0 * rho + (size - 2) * rho * rho) / (1.0 + (size - 1) * rho * rho)
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
    ) -> np.ndarray:
        """Rows with their missing cells filled from the conditional density given the observed ones.

        Parameters
        ----------
        Z : array of shape (n, d)
            Rows, NaN where a cell is missing.
        strategy : {"mean", "draw"}, default="mean"
            The conditional mean of numeric columns and the likeliest category, or a joint draw of all missing cells of a row.
        rng : Generator, optional
            Where draws come from.
        skip : array of int of shape (n,), optional
            A centre that is left out for each row; -1 where none is. A centre that was filled in from the row itself would
            answer with the cells that it was filled with.

        Returns
        -------
        ndarray of shape (n, d)
            Without NaN; observed cells as they are.

        Raises
        ------
        InputError
            For a strategy that is none of these.
        """
        if strategy not in ("mean", "draw"):
            raise InputError(f"strategy = {strategy!r}: expected 'mean' or 'draw'.")
        if strategy == "draw":
            return self._impute_draws(Z, rng or np.random.default_rng(), skip)
        return self._impute_means(Z, skip)

    def _impute_means(self, Z: np.ndarray, skip: np.ndarray | None) -> np.ndarray:
        out = Z.copy()

        def visit(pattern: Pattern, memory: float, n_jobs: int | None) -> None:
            if not len(pattern.missing):
                return
            look = self._look(Z[pattern.rows], pattern, memory, n_jobs, skip)
            for j in pattern.missing:
                if self.numeric[j]:  # the mean of a pair of centres is their midpoint
                    out[pattern.rows, j] = look.shares @ self.centers[:, self.columns[j]]
                else:
                    out[pattern.rows, j] = self._probabilities(int(j), look).argmax(axis=1)

        self._each(Z, visit)
        return out

    def _impute_draws(self, Z: np.ndarray, rng: np.random.Generator, skip: np.ndarray | None) -> np.ndarray:
        out = Z.copy()

        def visit(pattern: Pattern, memory: float, n_jobs: int | None) -> None:
            if not len(pattern.missing):
                return
            look = self._look(Z[pattern.rows], pattern, memory, n_jobs, skip)
            i = _one_a_row(look.shares, rng)
            j = self._partners(look.terms, i, self._integrated(pattern), rng, n_jobs) if self.squared else i
            for column in pattern.missing:
                out[pattern.rows, column] = self._draw(int(column), i, j, rng)

        replace(self, n_jobs=1)._each(Z, visit)  # one thread: draws come in an order that does not depend on timing
        return out

    def _integrated(self, pattern: Pattern) -> np.ndarray:
        return np.sort(np.concatenate([self.columns[pattern.missing], self.hidden]))

    def _partners(
        self, a: np.ndarray, i: np.ndarray, integrated: np.ndarray, rng: np.random.Generator, n_jobs: int | None
    ) -> np.ndarray:
        """The other centre of a pair for each row: j with probability proportional to :math:`a_j G_{ij}`."""
        chosen, place = np.unique(i, return_inverse=True)
        weights = self._overlaps(chosen, np.arange(a.shape[1]), integrated, n_jobs)[place]
        weights *= a
        return _one_a_row(weights, rng)

    def _draw(self, column: int, i: np.ndarray, j: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Cells of one column, drawn from the kernels about the centres `i`, or from their products with those about `j`."""
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
        return _one_a_row(weights, rng).astype(np.float64)

    def impute_interval(
        self, Z: np.ndarray, level: float = 0.9, skip: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Central intervals of missing numeric cells given the observed ones.

        Parameters
        ----------
        Z : array of shape (n, d)
            Rows, NaN where a cell is missing.
        level : float, default=0.9
            Probability of the interval, between 0 and 1.
        skip : array of int of shape (n,), optional
            As for :meth:`impute`.

        Returns
        -------
        lower, upper : ndarrays of shape (n, d)
            Quantiles of (1 - level)/2 and (1 + level)/2, exact up to 5e-7 in probability; both the cell itself where it is
            observed, and NaN for missing categories.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"level = {level!r}: expected a number between 0 and 1, both left out.")
        lower, upper = Z.copy(), Z.copy()
        ends = 0.5 * (1.0 - level), 0.5 * (1.0 + level)

        def visit(pattern: Pattern, memory: float, n_jobs: int | None) -> None:
            gaps = pattern.missing[self.numeric[pattern.missing]]
            if not len(gaps):
                return
            look = self._look(Z[pattern.rows], pattern, memory, n_jobs, skip)
            for row, terms, share in zip(pattern.rows, look.terms, look.shares, strict=True):
                laws = self._laws(gaps, terms, share, self._integrated(pattern), memory, n_jobs)
                for column, (law, ends_of_law) in zip(gaps, laws, strict=True):
                    lower[row, column], upper[row, column] = (_quantile(law, end, *ends_of_law) for end in ends)

        self._each(Z, visit)
        return lower, upper

    def _laws(
        self,
        gaps: np.ndarray,
        terms: np.ndarray,
        share: np.ndarray,
        integrated: np.ndarray,
        memory: float,
        n_jobs: int | None,
    ) -> list[tuple[Callable[[float], float], tuple[float, float]]]:
        """Distribution functions of missing numeric cells of one row, each with the range of the centres that matter."""
        kept = np.flatnonzero(share > _QUANTILE_MASS / len(share))
        columns = [self.centers[kept, self.columns[j]] for j in gaps]
        ranges = [(float(values.min()), float(values.max())) for values in columns]
        if not self.squared:
            mass = share[kept] / share[kept].sum()
            cumulative = self.kernel.factor.cumulative
            laws = [lambda t, values=values: float(mass @ cumulative(np.asarray(t), values)) for values in columns]
            return list(zip(laws, ranges, strict=True))
        mixtures = [self.kernel.factor.pair_mixture(values) for values in columns]
        step = max(1, int(memory / (128 * len(kept))))
        total = 0.0
        for start in range(0, len(kept), step):
            rows = slice(start, start + step)
            weights = self._overlaps(kept[rows], kept, integrated, n_jobs)
            weights *= terms[kept[rows], None]
            weights *= terms[kept]
            total += float(weights.sum())
            for mixture in mixtures:
                mixture.add(rows, weights)
        laws = [lambda t, mixture=mixture: mixture.cumulative(t) / total for mixture in mixtures]
        return list(zip(laws, ranges, strict=True))

    # ---- other densities --------------------------------------------------------------------------------------------

    def marginal(self, columns: Sequence[int]) -> ColumnDensity:
        """The density of some of the columns, in the order given; the others are integrated out.

        Parameters
        ----------
        columns : sequence of int
            Numeric columns before categorical ones, each once.
        """
        chosen = _checked_columns(columns, self.dim)
        if (np.diff(self.numeric[chosen].astype(int)) > 0).any():
            raise InputError("columns has a numeric column behind a categorical one; name numeric columns first.")
        return replace(self, visible=self.columns[chosen])

    def conditional(self, given: Mapping[int, float]) -> ColumnDensity:
        """The density of the other columns where some have the values `given`, by column.

        Raises
        ------
        InputError
            If nothing or everything is given, a value is NaN, or a column does not exist.
        """
        known = _checked_columns(list(given), self.dim)
        values = np.array([[float(given[int(j)]) for j in known]])
        if len(known) == self.dim:
            raise InputError("given has a value for every column; leave at least one out.")
        if not np.isfinite(values).all():
            raise InputError("given has a value that is not a finite number; leave the column out instead.")
        z = np.full((1, self.dim), np.nan)
        z[:, known] = values
        _, a = self._terms(z, np.sort(known), self.n_jobs)
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

    def draw(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Independent draws, of shape (n_samples, d), codes as whole numbers; and the number of a centre of each of them."""
        m, everything = len(self.centers), np.arange(self.centers.shape[1])
        alpha = self.coefficients / self.coefficients.max()
        first = alpha
        if self.squared:
            op = Operator(self.kernel.overlap, self.centers, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
            first = alpha * op.matvec(alpha)
        i = np.sort(rng.choice(m, size=n_samples, p=first / first.sum()))
        j = i.copy()
        step = max(1, int(self.memory_limit / (64 * m)))
        for start in range(0, n_samples if self.squared else 0, step):
            part = slice(start, start + step)
            terms = np.broadcast_to(alpha, (len(i[part]), m))
            j[part] = self._partners(terms, i[part], everything, rng, self.n_jobs)
        out = np.column_stack([self._draw(column, i, j, rng) for column in range(self.dim)])
        order = rng.permutation(n_samples)
        return out[order], i[order]

    def sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Independent draws, of shape (n_samples, d); codes as whole numbers."""
        return self.draw(n_samples, rng)[0]


@dataclass(frozen=True)
class _Look:
    """What rows of one pattern see of the centres.

    Parameters
    ----------
    log_p : array of shape (n,)
        log p of the observed cells, up to the normaliser.
    terms : array of shape (n, m)
        The terms a of each centre over the largest one of the row.
    shares : array of shape (n, m)
        Each centre's share of the density at the row, of sum 1.
    pairs : Pairs or None
        The sums over pairs of centres, for squared densities.
    """

    log_p: np.ndarray
    terms: np.ndarray
    shares: np.ndarray
    pairs: Pairs | None


@dataclass(frozen=True)
class Pairs:
    """Quadratic forms of `terms` of shape (n, k) with the overlaps G of the centres `kept` over the `integrated` columns."""

    density: ColumnDensity
    terms: np.ndarray
    kept: np.ndarray
    integrated: np.ndarray
    memory: float
    n_jobs: int | None

    @cached_property
    def _matrix(self) -> np.ndarray | None:
        """G, if it fits in half of the memory."""
        if 16 * len(self.kept) ** 2 > self.memory or not len(self.integrated):
            return None
        return self.density._overlaps(self.kept, self.kept, self.integrated, self.n_jobs)

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self._matrix is not None:
            return self._matrix[np.ix_(rows, columns)]
        return self.density._overlaps(self.kept[rows], self.kept[columns], self.integrated, self.n_jobs)

    @cached_property
    def _product(self) -> np.ndarray:
        if not len(self.integrated):
            return np.repeat(self.terms.sum(axis=1)[:, None], len(self.kept), axis=1)
        if self._matrix is not None:
            return self.terms @ self._matrix
        everything, out = np.arange(len(self.kept)), np.empty_like(self.terms)
        step = max(1, int(self.memory / (16 * len(self.kept))))
        for start in range(0, len(self.kept), step):
            part = everything[start : start + step]
            out[:, part] = self.terms @ self._block(everything, part)
        return out

    def times_overlaps(self) -> np.ndarray:
        """The product of the terms with G, of shape (n, k)."""
        return self._product

    def total(self) -> np.ndarray:
        """The sum over all pairs, of shape (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.terms, self._product))

    def within(self, codes: np.ndarray, size: int) -> np.ndarray:
        """The sums over pairs of which both centres have the same one of `codes`, of shape (n, size)."""
        own = codes[self.kept]
        out = np.zeros((len(self.terms), size))
        if len(self.terms) == 1 and self._matrix is not None:  # one product for all categories
            mine = np.zeros((len(own), size))
            mine[np.arange(len(own)), own] = self.terms[0]
            out[0] = np.einsum("ij,ij->j", mine, self._matrix @ mine)
            return out
        step = max(1, int(self.memory / (16 * len(self.kept))))
        for code in np.unique(own):
            members = np.flatnonzero(own == code)
            inside = self.terms[:, members]
            for start in range(0, len(members), step):
                part = members[start : start + step]
                block = self._block(members, part)
                out[:, code] += np.einsum("ij,ij->i", inside @ block, inside[:, start : start + step])
        return out


def _one_a_row(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A column for each row with probability proportional to its weights, of which one at least is positive."""
    cumulative = np.cumsum(weights, axis=1)
    u = rng.uniform(size=len(weights)) * cumulative[:, -1]
    return np.asarray((cumulative > u[:, None]).argmax(axis=1))


def _quantile(cumulative: Callable[[float], float], level: float, low: float, high: float) -> float:
    """Find where a continuous distribution function passes `level`, by the Illinois form of the secant rule."""
    width = max(1.0, high - low)
    while cumulative(low) > level:
        low -= width
    while cumulative(high) < level:
        high += width
    below, above = cumulative(low) - level, cumulative(high) - level
    side = 0
    for _ in range(_SECANT_STEPS):
        if high - low <= 1e-12 * (1.0 + abs(low)) or below == above:
            break
        t = high - above * (high - low) / (above - below)
        if not low < t < high:
            t = 0.5 * (low + high)
        value = cumulative(t) - level
        if abs(value) < 1e-12:
            return t
        if value > 0.0:
            high, above = t, value
            below *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            low, below = t, value
            above *= 0.5 if side == -1 else 1.0
            side = -1
    return 0.5 * (low + high)


def _checked_columns(columns: Sequence[int], dim: int) -> np.ndarray:
    """Numbers of distinct columns that exist, at least one."""
    chosen = np.asarray(list(columns), dtype=np.intp)
    if chosen.ndim != 1 or not len(chosen):
        raise InputError("no column was named; expected at least one.")
    wrong = [int(j) for j in chosen if not 0 <= j < dim]
    if wrong:
        raise InputError(f"column {wrong[0]} does not exist; expected numbers from 0 to {dim - 1}.")
    if len(np.unique(chosen)) < len(chosen):
        raise InputError("a column was named twice; name each once.")
    return chosen
