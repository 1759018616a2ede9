r"""Fits of densities to tables with words or missing cells: from encoded rows to a density in frame coordinates.

One factor for all columns cannot say that a column is irrelevant to the others, or that it is known to many digits. So each
column has a length scale of its own, by the log likelihood of every row under the kernel density estimate of all other rows,

.. math:: L = \sum_i w_i \log \sum_{j \ne i} w_j \prod_k \kappa_k(z_{ik}, c_{jk}),

with kernels :math:`\kappa_k` of integral (or sum) 1 over the known cells of row i, which has its gradient in all scales from one
pass over pairs of rows. Gaps of centres are filled from their neighbours. The most extreme hundredth of the numbers at either end
of a column is drawn in for this choice: one mistyped number would widen the scale of its column until it reaches the other rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize

from isopleth.core.budget import Budget
from isopleth.core.errors import InputError
from isopleth.core.parameters import given_numbers
from isopleth.core.rows import merge_with_gaps, without_rounding
from isopleth.core.scales import RULES, RULES_WITH_GAPS, bounded, resolve_length_scale
from isopleth.core.threads import ONE_BLAS_THREAD, check_stopped
from isopleth.density.choices import Choices
from isopleth.density.hot_deck import MOST_CENTERS, donors_of_gaps, filled_rows, some_rows
from isopleth.density.search import Search, run_search
from isopleth.frames import BoundedMap, BoundedMarginalMap, MarginalMap
from isopleth.kernels import Kernel
from isopleth.kernels.product import ColumnKernel, Factor
from isopleth.tables.checks import warn_of_constants
from isopleth.tables.schema import Schema

# Rows by which scales are chosen: their pairs are visited some fifty times.
MOST_ROWS = 500

# Factors of the length scales of the rule that the search begins with. Values that many rows share would take a scale to 0.
_LEAST, _MOST = 0.1, 30.0
_LEAST_FITTED_RHO, _MOST_FITTED_RHO = 1e-4, 0.95
_STEPS = 100
# Deviation of some numbers of a column, over that of all, up to which they count as constant.
_LEAST_SHOWN = 1e-6
# Relative change of the likelihood at which the search ends: where it stops earlier, the last bits of the data decide when.
_FLAT = 1e-13


@dataclass(eq=False)
class LeaveOneOut:
    """The mean leave-one-out log likelihood as a function of the logarithms of the scales."""

    kernel: ColumnKernel  # bound to the columns
    Z: np.ndarray  # (n, d): rows in units of the length scales, NaN where a cell is missing
    centers: np.ndarray  # (n, d): same rows with their gaps filled
    weights: np.ndarray  # (n,): their weights
    # (n, n): centres that are left out for each row besides its own: those whose gaps were filled with its cells
    left_out: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._seen = ~np.isnan(self.Z)
        p = self.kernel.n_numeric
        # Twice the logarithm of the factor times t(u): u^2/2 scales with the square, |u| with the factor.
        self._power = 2.0 if math.isinf(self.kernel.smoothness) else 1.0
        self._terms = [self._term(j) for j in range(self.Z.shape[1])]
        self._log_shares = np.log(self.weights / self.weights.sum())
        self._share = (self.weights / self.weights.sum()) @ self._seen
        self._others = np.array(self.kernel.sizes, dtype=float) - 1.0
        self._constant = self._seen[:, :p].sum(axis=1) * self.kernel.factor.log_integral

    def _term(self, j: int) -> np.ndarray:
        """-log of the kernel of a column at unit scale, or 1 for unlike categories; 0 in gaps."""
        seen = self._seen[:, j]
        distance = np.abs(np.subtract.outer(np.where(seen, self.Z[:, j], 0.0), self.centers[:, j]))
        if j >= self.kernel.n_numeric:
            distance = (distance > 0.0).astype(np.float64)
        elif self._power == 2.0:
            distance *= 0.5 * distance
        distance[~seen] = 0.0
        return distance

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative likelihood and its gradient at log factors, then logits of rho."""
        check_stopped()
        p = self.kernel.n_numeric
        rate = np.exp(-self._power * theta[:p])
        rho = 1.0 / (1.0 + np.exp(-theta[p:]))
        logs = np.tile(self._log_shares, (len(self.Z), 1))
        for factor, term in zip([*-rate, *np.log(rho)], self._terms, strict=True):
            logs += factor * term
        np.fill_diagonal(logs, -np.inf)
        if self.left_out is not None:
            logs[self.left_out] = -np.inf
        top = logs.max(axis=1)
        logs -= top[:, None]
        np.exp(logs, out=logs)
        total = logs.sum(axis=1)
        share = np.exp(self._log_shares)
        norm = self._seen[:, :p] @ theta[:p] + self._seen[:, p:] @ np.log1p(self._others * rho) + self._constant
        value = float(share @ (top + np.log(total) - norm))
        logs *= (share / total)[:, None]
        pulled = np.array([np.vdot(logs, term) for term in self._terms])
        slope = np.empty(len(theta))
        slope[:p] = self._power * rate * pulled[:p] - self._share[:p]
        slope[p:] = (1.0 - rho) * (pulled[p:] - self._share[p:] * self._others * rho / (1.0 + self._others * rho))
        return -value, -slope


def leave_one_out_scales(
    kernel: ColumnKernel, Z: np.ndarray, weights: np.ndarray, *, fixed_rho: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Choose factors of length scales, and values of unlike categories, by the likelihood of a kernel density estimate.

    Of many rows 500 are used, whose scales become those of all rows by the rate :math:`n^{-1/(4 + d)}`. Extreme numbers are drawn
    in. A column whose variation these rows do not show, such as a rare flag, keeps the scale that it has.
    """
    n, d = Z.shape
    chosen = some_rows(kernel, Z, weights, MOST_ROWS)
    known = _shown(kernel, Z, chosen)
    if not len(known):
        return np.ones(kernel.n_numeric), np.array(kernel.rho)
    Z, weights = Z[chosen], weights[chosen]
    taken = kernel.take(known)
    p = taken.n_numeric
    numbers, codes = np.ascontiguousarray(Z[:, known[:p]]), Z[:, known[p:]]
    Z = np.column_stack([*map(_winsorized_deviations, numbers.T), codes])
    begin = np.log(np.nanstd(Z[:, :p], axis=0) / np.nanstd(numbers, axis=0))
    problem = _filled_problem(taken, Z, weights)
    start = np.array(taken.rho)
    limits = [(at + math.log(_LEAST), at + math.log(_MOST)) for at in begin]
    least, most = (float(_logit(end)) for end in (_LEAST_FITTED_RHO, _MOST_FITTED_RHO))
    limits += [(value, value) if fixed_rho else (least, most) for value in _logit(start).tolist()]
    with ONE_BLAS_THREAD:  # several threads cost more than they gain for products of 500 x 500 numbers
        found = minimize(
            problem,
            np.concatenate([begin, _logit(start)]),
            jac=True,
            method="L-BFGS-B",
            bounds=limits,
            options={"maxiter": _STEPS, "ftol": _FLAT, "gtol": 0.0},
        )
    fewer = (len(Z) / n) ** (1.0 / (4 + d))
    factors, rho = np.ones(kernel.n_numeric), np.array(kernel.rho)
    factors[known[:p]] = fewer * np.exp(found.x[:p])
    if not fixed_rho:
        rho[known[p:] - kernel.n_numeric] = np.clip(
            fewer**2 / (1.0 + np.exp(-found.x[p:])), _LEAST_FITTED_RHO, _MOST_FITTED_RHO
        )
    return factors, rho


def _shown(kernel: ColumnKernel, Z: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the columns about which the rows `chosen` say something: known words, and numbers that vary beyond rounding."""
    rows, p = Z[chosen], kernel.n_numeric
    shown = ~np.isnan(rows).all(axis=0)
    numbers = np.flatnonzero(shown[:p])
    shown[numbers] = np.nanstd(rows[:, numbers], axis=0) > _LEAST_SHOWN * np.nanstd(Z[:, numbers], axis=0)
    return np.flatnonzero(shown)


def _winsorized_deviations(column: np.ndarray) -> np.ndarray:
    """Compress the extreme hundredth at either end, in its order: clipped numbers would be equal, and make a scale narrow."""
    ordered = np.sort(column[~np.isnan(column)])
    ends = round(len(ordered) / 100)
    low, high = ordered[ends], ordered[-1 - ends]
    span = float(high - low)
    if span <= _LEAST_SHOWN * float(np.nanstd(column)):  # nearly all are one value: the others are not drawn in to it
        return column
    over, under = np.fmax(column - high, 0.0), np.fmax(low - column, 0.0)
    return np.asarray(np.clip(column, low, high) + span * (np.arctan(over / span) - np.arctan(under / span)))


def _filled_problem(kernel: ColumnKernel, Z: np.ndarray, weights: np.ndarray) -> LeaveOneOut:
    """Return the likelihood of rows under the others, whose gaps are filled with cells of neighbours."""
    if not np.isnan(Z).any():
        return LeaveOneOut(kernel, Z, Z, weights)
    chosen = donors_of_gaps(kernel, Z, Z, weights)
    centers = np.where(chosen < 0, Z, np.take_along_axis(Z, np.maximum(chosen, 0), axis=0))
    left_out = np.zeros((len(Z), len(Z)), dtype=bool)
    center, column = np.nonzero(chosen >= 0)
    left_out[chosen[center, column], center] = True
    np.fill_diagonal(left_out, True)
    left_out[left_out.all(axis=1)] = False  # a row whose cells are everywhere
    return LeaveOneOut(kernel, Z, centers, weights, left_out)


def _logit(share: float | np.ndarray) -> np.ndarray:
    return np.asarray(np.log(share) - np.log1p(-np.asarray(share)))


def frequency_rho(
    codes: np.ndarray, weights: np.ndarray, sizes: tuple[int, ...], n_columns: int, squared: bool
) -> np.ndarray:
    r"""Compute :math:`\rho`, the heat kernel of two different categories, for each column from the frequencies.

    Shrunken frequencies :math:`(1 - \tau) f_c + \tau/m` have the least expected squared error at :math:`\tau = V/(V + B)`,
    :math:`V = (1 - \sum_c f_c^2)\, v`, :math:`B = \sum_c f_c^2 - 1/m`, where v is 1/n for a single column [1]_. A density of
    several columns has fewer rows near each point, and larger v are better: on eight tables of the UCI repository,
    :math:`n^{-1/2}` for sums of kernels and :math:`n^{-4/(4 + d)}` with d columns in all for their squares had held-out log
    densities near the best of a grid. The kernel shrinks frequencies by :math:`1 - \tau = (1 - \rho)/(1 + (m - 1)\rho)`, which
    gives :math:`\rho = \tau/(m - (m - 1)\tau)`.

    References
    ----------
    .. [1] J. Aitchison, C. G. G. Aitken, "Multivariate binary discrimination by the kernel method", Biometrika 63, 1976.
    """
    out = np.empty(len(sizes))
    n = max(float(weights.sum()), len(weights))
    spread = n ** (-4.0 / (4.0 + n_columns)) if squared else n**-0.5
    for k, size in enumerate(sizes):
        known = codes[:, k] >= 0
        mass = np.bincount(codes[known, k].astype(np.intp), weights[known], minlength=size)
        share = mass / max(mass.sum(), 1e-300)
        concentration = float(share @ share)
        variance, bias = (1.0 - concentration) * spread, max(concentration - 1.0 / size, 0.0)
        tau = variance / (variance + bias) if variance + bias > 0.0 else 1.0
        out[k] = tau / (size - (size - 1) * tau)
    return np.clip(out, _LEAST_FITTED_RHO, _MOST_FITTED_RHO)


# Rule of length scales that chooses one for each column.
LEAVE_ONE_OUT = "leave_one_out"

_LEAST_RHO, _MOST_RHO = 1e-12, 1.0 - 1e-9


def product_factor(kernel: Kernel, what: str) -> Factor:
    """Return the factor of a numeric column of a kernel that is a product over columns."""
    factor = kernel.column_factor
    if factor is None:
        raise InputError(
            f"{kernel!r} is no product over columns, which {what} needs; fit with kernel='gaussian' or ProductLaplacian()."
        )
    return factor


def heat_rho(rho: np.ndarray, sizes: np.ndarray, factor: float) -> np.ndarray:
    r"""Return the values of unlike categories after the time of the heat kernels was multiplied by the square of a factor.

    The Gaussian kernel is a heat kernel too, and its time is proportional to the square of its length scale: so one factor moves
    numbers and categories together. :math:`e^{-mt} = (1 - \rho)/(1 + (m - 1)\rho)`.
    """
    rate = (np.log1p(-rho) - np.log1p((sizes - 1) * rho)) * factor**2
    decay = np.exp(rate)
    found = -np.expm1(rate) / (1.0 + (sizes - 1) * decay)
    return np.clip(found, _LEAST_RHO, _MOST_RHO)


@dataclass(frozen=True)
class TableRows:
    """Distinct rows of a table as a fit uses them: the columns of numbers that vary, about their medians, and codes."""

    columns: Schema
    map: BoundedMap  # map of the columns of numbers
    labels: list[str]  # their names in messages
    keep: np.ndarray  # (n_numeric,): mask of those that vary
    shift: np.ndarray  # their medians
    constants: np.ndarray  # (n_numeric,): values of the others
    centred: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, columns: Schema, bounds: BoundedMap, marginal: bool) -> Self:
        """Prepare encoded rows, of which cells may be NaN; with `marginal` the columns of numbers are made normal."""
        p = len(columns.numeric_names)
        labels = [repr(name) if columns.named else f"column {name}" for name in columns.numeric_names]
        bounds.check(rows[:, :p], weights > 0.0, labels)
        rows, weights = rows[weights > 0.0] + 0.0, weights[weights > 0.0]
        numbers = bounds.forward(rows[:, :p])
        keep = np.asarray(np.fmin.reduce(numbers) < np.fmax.reduce(numbers))
        warn_of_constants(labels, keep)
        if not keep.any() and not columns.sizes:
            raise InputError("no column of X varies; expected at least two rows that differ in one of them.")
        constants = np.where(keep, np.nan, np.fmax.reduce(rows[:, :p]))
        numbers, codes, weights = _merged(numbers, rows[:, p:], weights)
        if marginal and p:
            normal = MarginalMap.of_cells(numbers, weights)
            numbers, bounds = normal.forward(numbers), BoundedMarginalMap(bounds.low, bounds.high, normal)
        shift = np.array([np.median(column[~np.isnan(column)]) for column in numbers[:, keep].T])
        return cls(columns, bounds, labels, keep, shift, constants, numbers[:, keep] - shift, codes, weights)

    @property
    def dim(self) -> int:
        """Number of columns of a fit."""
        return int(self.keep.sum()) + len(self.columns.sizes)


@dataclass(frozen=True)
class TableScales:
    """Length scales of the numbers of a table and values of unlike categories, and their multiples."""

    rows: TableRows
    factor: Factor
    scale: np.ndarray
    rho: np.ndarray

    @classmethod
    def of(cls, rows: TableRows, factor: Factor, asked: Any, what: str, category_scale: Any, squared: bool) -> Self:
        """Choose the scales that a user `asked` for in the parameter `what`; `squared` if the density is the square of a sum."""
        rules = RULES_WITH_GAPS if np.isnan(rows.centred).any() else RULES
        normal = isinstance(rows.map, BoundedMarginalMap)
        by_columns = isinstance(asked, str) and asked in (LEAVE_ONE_OUT, *(("auto",) if normal else ()))
        scale = np.empty(0)
        if rows.keep.any():
            rule = "scott" if by_columns else asked
            scale = resolve_length_scale(rule, rows.centred, rows.weights, rows.labels, rows.keep, what, rules)
            if isinstance(asked, Real) and normal:
                scale = scale * rules["scott"](rows.centred, rows.weights)
        rho = category_rho(category_scale, rows.codes, rows.weights, rows.columns, rows.dim, squared)
        found = cls(rows, factor, scale, rho)
        if not by_columns:
            return found
        kernel, z, _ = found.at(1.0)
        fixed_rho = not isinstance(category_scale, str)
        factors, rho = _column_scales(kernel, z, rows.weights, squared=squared, fixed_rho=fixed_rho)
        return cls(rows, factor, scale * factors, rho)

    def at(self, times: float) -> tuple[ColumnKernel, np.ndarray, np.ndarray]:
        """Return kernel, rows and log volume of the known numbers of each at a multiple of the scales."""
        sizes = self.rows.columns.sizes
        rho = self.rho if times == 1.0 else heat_rho(self.rho, np.array(sizes, dtype=int), times)
        with np.errstate(over="ignore"):
            z = bounded(self.rows.centred / (times * self.scale))
        kernel = ColumnKernel(self.rows.dim, self.factor, tuple(rho.tolist()), sizes)
        return kernel, np.column_stack([z, self.rows.codes]), ~np.isnan(z) @ np.log(times * self.scale)

    def search(self, search: Search, fit: Callable[..., Any], budget: Budget) -> Choices:
        """Choose a multiple of the scales by the held-out log density of the known cells."""
        rows, criterion = self.rows, search.criterion_for_gaps()
        held_out: Any = lambda *held_in: fit(*held_in)[0]  # noqa: E731 - a line
        return run_search(search, criterion, self.scale, rows.weights, self.at, held_out, replace(budget, n_jobs=1))


def donors_of(
    kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray, keep: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return at most 2,000 rows with filled gaps, which of their encoded cells were missing, and their weights."""
    chosen = some_rows(kernel, z, weights, MOST_CENTERS)
    encoded = np.concatenate([keep, np.ones(z.shape[1] - int(keep.sum()), dtype=bool)])
    gaps = np.zeros((len(chosen), len(encoded)), dtype=bool)
    gaps[:, encoded] = np.isnan(z[chosen])
    return filled_rows(kernel, z[chosen], z, weights), gaps, weights[chosen]


def _merged(numbers: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct rows and their summed weights; equal gaps are equal, and numbers that differ by rounding."""
    p = numbers.shape[1]
    rows, merged, _ = merge_with_gaps(np.column_stack([without_rounding(numbers), codes]), weights)
    return rows[:, :p], rows[:, p:], merged


def _column_scales(
    kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray, *, squared: bool, fixed_rho: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return :func:`leave_one_out_scales`, for squares of sums those of a kernel whose square has them."""
    factors, rho = leave_one_out_scales(kernel, z, weights, fixed_rho=fixed_rho)
    if not squared:
        return factors, rho
    wider = 2.0 ** (0.5 if math.isinf(kernel.smoothness) else 1.0)
    return wider * factors, rho if fixed_rho else np.sqrt(rho)


def leave_one_out(factor: Factor, squared: bool, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the length scales of :func:`leave_one_out_scales` for complete rows of numbers."""
    scale = RULES["scott"](rows, weights)
    scale = np.where(scale > 0.0, scale, 1.0)  # of a column that is constant in a part of the rows
    kernel = ColumnKernel(rows.shape[1], factor)
    return np.asarray(scale * _column_scales(kernel, rows / scale, weights, squared=squared, fixed_rho=False)[0])


def weights_of(centers: np.ndarray, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weights of the rows `z` in the order of the centres, which are the same rows."""
    return np.asarray(weights[np.lexsort(z.T)][np.argsort(np.lexsort(centers.T))])


def category_rho(
    category_scale: Any, codes: np.ndarray, weights: np.ndarray, columns: Schema, n_columns: int, squared: bool
) -> np.ndarray:
    """Return the value of unlike categories of each categorical column."""
    expected = "'frequency', a number between 0 and 1 (both excluded), or one for each categorical column"
    q = len(columns.sizes)
    if isinstance(category_scale, str):
        if category_scale != "frequency":
            raise InputError(f"category_scale = {category_scale!r}: expected {expected}.")
        known = np.where(np.isnan(codes), -1.0, codes)
        return frequency_rho(known, weights, columns.sizes, n_columns, squared)
    given = given_numbers("category_scale", category_scale, expected)
    if given.ndim > 1 or (given.ndim == 1 and given.shape != (q,)) or not ((given > 0.0) & (given < 1.0)).all():
        raise InputError(f"category_scale = {category_scale!r}: expected {expected}; there are {q}.")
    return np.broadcast_to(given, (q,)).copy()
