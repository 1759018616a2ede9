"""Fits of densities to tables with words or missing cells: from encoded rows to a density in frame coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isopleth.density.category_scales import frequency_rho
from isopleth.density.column_density import ColumnDensity
from isopleth.density.column_fit import MOST_CENTERS, ColumnFit
from isopleth.density.column_scales import ColumnScales, leave_one_out_scales, of_squares
from isopleth.density.filling import filled_rows, some_rows
from isopleth.density.search import Search, SearchPath, run_table_search
from isopleth.errors import DataWarning, InputError
from isopleth.frames import BoundedMap
from isopleth.kernels import Kernel
from isopleth.kernels.product import ColumnKernel, Factor
from isopleth.length_scales import RULES, RULES_WITH_GAPS, resolve_length_scale
from isopleth.rows import merge_rows
from isopleth.scaled_columns import ScaledColumns, bounded
from isopleth.tables.checks import on_host, warn_of_constants
from isopleth.tables.schema import Schema

# Rule of length scales that chooses one for each column.
LEAVE_ONE_OUT = "leave_one_out"

_LEAST_RHO, _MOST_RHO = 1e-12, 1.0 - 1e-9

# Fits rows in frame coordinates with weights.
ColumnFitter = Callable[[ColumnKernel, np.ndarray, np.ndarray], ColumnFit]


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
class TableFit:
    """Result of a fit to a table."""

    fit: ColumnFit  # density, of kept numeric columns before codes
    kernel: ColumnKernel
    # frame, bounds: bounds of the numeric columns
    frame: ScaledColumns
    bounds: BoundedMap
    constants: np.ndarray  # (n_numeric,): values of the numeric columns that are not kept
    weights: np.ndarray | None  # weights of the centres, where all rows are complete
    path: SearchPath | None  # result of a Search
    # rows in frame coordinates with their gaps filled, a mask of the cells that were missing, and their weights; None
    # if nothing was missing
    donors: tuple[np.ndarray, np.ndarray, np.ndarray] | None


def fit_table(
    rows: np.ndarray,
    weights: np.ndarray,
    columns: Schema,
    bounds: BoundedMap,
    kernel: Kernel,
    length_scale: Any,
    category_scale: Any,
    squared: bool,
    fitter: ColumnFitter,
    verbose: bool | int = False,
) -> TableFit:
    """Fit encoded rows, of which some cells may be NaN."""
    factor = product_factor(kernel, "a fit with categories or missing cells")
    p = len(columns.numeric_names)
    labels = [repr(name) if columns.named else f"column {name}" for name in columns.numeric_names]
    bounds.check(rows[:, :p], weights > 0.0, labels)
    rows, weights = rows[weights > 0.0] + 0.0, weights[weights > 0.0]
    rows, weights = _without_empty(rows, weights)
    numbers, codes = bounds.forward(rows[:, :p]), rows[:, p:]
    keep = np.asarray(np.fmin.reduce(numbers) < np.fmax.reduce(numbers))
    warn_of_constants(labels, keep, 5)
    if not keep.any() and not columns.sizes:
        raise InputError("no column of X varies; expected at least two rows that differ in one of them.")
    if kernel.dim is not None:
        kernel.bind(int(keep.sum()))
    numbers, codes, weights = _merged(numbers, codes, weights)
    centred = numbers[:, keep]
    shift = np.array([np.median(column[~np.isnan(column)]) for column in centred.T])
    centred = centred - shift
    search = length_scale if isinstance(length_scale, Search) else None
    asked, what = (search.base, "base of the Search") if search else (length_scale, "length_scale")
    rules = RULES_WITH_GAPS if np.isnan(centred).any() else RULES
    by_columns = isinstance(asked, str) and asked == LEAVE_ONE_OUT
    asked = "scott" if by_columns else asked
    scale = resolve_length_scale(asked, centred, weights, labels, keep, what, rules) if keep.any() else np.empty(0)
    sizes = np.array(columns.sizes, dtype=int)
    dim = int(keep.sum()) + len(sizes)
    rho = category_rho(category_scale, codes, weights, columns, dim, squared)
    if by_columns:
        found = _column_scales(
            ColumnKernel(dim, factor, tuple(rho.tolist()), columns.sizes),
            np.column_stack([centred / scale, codes]),
            weights,
            squared=squared,
            fixed_rho=not isinstance(category_scale, str),
        )
        scale, rho = scale * found.factors, found.rho

    def at(times: float) -> tuple[ColumnKernel, np.ndarray, np.ndarray]:
        values = rho if times == 1.0 else heat_rho(rho, sizes, times)
        bound = ColumnKernel(dim, factor, tuple(values.tolist()), columns.sizes)
        with np.errstate(over="ignore"):
            z = bounded(centred / (times * scale))
        known = ~np.isnan(z)
        return bound, np.column_stack([z, codes]), known @ np.log(times * scale)

    path = None
    times = 1.0
    if search is not None:

        def held_out(bound: ColumnKernel, z: np.ndarray, w: np.ndarray) -> _HeldOut:
            return _HeldOut(fitter(bound, z, w).density)

        path = run_table_search(search, weights, scale, at, held_out, verbose)  # type: ignore[arg-type]
        times = path.best_factor
    bound, z, _ = at(times)
    result = fitter(bound, z, weights)
    constants = np.full(p, np.nan)
    for j in np.flatnonzero(~keep):
        known = rows[~np.isnan(rows[:, j]), j]
        constants[j] = known[0] if len(known) else np.nan
    complete = not np.isnan(z).any()
    return TableFit(
        result,
        bound,
        ScaledColumns(keep, shift, times * scale),
        bounds,
        constants,
        _weights_of(result.density.centers, z, weights) if complete else None,
        path,
        None if complete else _donors(bound, z, weights, keep),
    )


def _donors(
    kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray, keep: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return at most 2,000 rows with filled gaps, which of their encoded cells were missing, and their weights."""
    chosen = some_rows(kernel, z, weights, MOST_CENTERS)
    encoded = np.concatenate([keep, np.ones(z.shape[1] - int(keep.sum()), dtype=bool)])
    gaps = np.zeros((len(chosen), len(encoded)), dtype=bool)
    gaps[:, encoded] = np.isnan(z[chosen])
    return filled_rows(kernel, z[chosen], z, weights), gaps, weights[chosen]


@dataclass(frozen=True)
class _HeldOut:
    """A fitted density as a search uses it."""

    density: ColumnDensity

    def log_density(self, z: np.ndarray) -> np.ndarray:
        return self.density.log_density(z)

    def positive(self, z: np.ndarray) -> np.ndarray:
        return np.ones(len(z), dtype=bool)

    def hyvarinen_terms(self, z: np.ndarray) -> np.ndarray:
        raise NotImplementedError


def _without_empty(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    empty = np.isnan(rows).all(axis=1)
    if empty.all():
        raise InputError("no row of X with a positive weight has a known cell; expected at least two.")
    if empty.any():
        warnings.warn(f"rows without a known cell are left out: {int(empty.sum())}.", DataWarning, stacklevel=5)
    return rows[~empty], weights[~empty]


def _merged(numbers: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct rows and their summed weights; equal gaps are equal."""
    rows = np.column_stack([numbers, codes])
    gaps = np.isnan(rows)
    d, p = rows.shape[1], numbers.shape[1]
    found, merged, _ = merge_rows(np.column_stack([np.where(gaps, 0.0, rows), gaps]), weights)
    out = np.where(found[:, d:] > 0.0, np.nan, found[:, :d])
    return out[:, :p], out[:, p:], merged


def _column_scales(
    kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray, *, squared: bool, fixed_rho: bool
) -> ColumnScales:
    """Return scales by :func:`leave_one_out_scales`; `kernel` has those that the search begins with."""
    found = leave_one_out_scales(kernel, z, weights, fixed_rho=fixed_rho)
    if not squared:
        return found
    squares = of_squares(found, kernel)
    return replace(squares, rho=found.rho) if fixed_rho else squares


def leave_one_out(factor: Factor, squared: bool, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the length scales of :func:`leave_one_out_scales` for complete rows of numbers."""
    scale = RULES["scott"](rows, weights)
    kernel = ColumnKernel(rows.shape[1], factor)
    found = _column_scales(kernel, rows / scale, weights, squared=squared, fixed_rho=False)
    return np.asarray(scale * found.factors)


def _weights_of(centers: np.ndarray, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weights of the rows `z` in the order of the centres, which are the same rows."""
    return np.asarray(weights[np.lexsort(z.T)][np.argsort(np.lexsort(centers.T))])


def category_rho(
    category_scale: Any, codes: np.ndarray, weights: np.ndarray, columns: Schema, n_columns: int, squared: bool
) -> np.ndarray:
    """Return the value of unlike categories of each categorical column."""
    expected = "expected 'frequency', a number between 0 and 1 (both excluded), or one for each categorical column"
    q = len(columns.sizes)
    if isinstance(category_scale, str):
        if category_scale != "frequency":
            raise InputError(f"category_scale = {category_scale!r}: {expected}.")
        known = np.where(np.isnan(codes), -1.0, codes)
        return frequency_rho(known, weights, columns.sizes, n_columns, squared)
    try:
        given = np.asarray(on_host(category_scale, "category_scale"), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"category_scale = {category_scale!r}: {expected}.") from error
    if given.ndim > 1 or (given.ndim == 1 and given.shape != (q,)) or not ((given > 0.0) & (given < 1.0)).all():
        raise InputError(f"category_scale = {category_scale!r}: {expected}; there are {q}.")
    return np.broadcast_to(given, (q,)).copy()
