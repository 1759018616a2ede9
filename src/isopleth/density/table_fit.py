"""Fits of densities to tables with words or missing cells: from encoded rows to a density in frame coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from isopleth.density.column_fit import MOST_CENTERS, ColumnFit
from isopleth.density.column_scales import ColumnScales, frequency_rho, leave_one_out_scales, of_squares
from isopleth.density.hot_deck import filled_rows, some_rows
from isopleth.density.search import Search, SearchPath, run_search
from isopleth.errors import DataWarning, InputError, caller_level
from isopleth.frames import BoundedMap
from isopleth.kernels import Kernel
from isopleth.kernels.product import ColumnKernel, Factor
from isopleth.length_scales import RULES, RULES_WITH_GAPS, resolve_length_scale
from isopleth.rows import merge_rows
from isopleth.scaled_columns import bounded
from isopleth.tables.checks import on_host, warn_of_constants
from isopleth.tables.schema import Schema

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
    labels: list[str]  # names of the columns of numbers in messages
    keep: np.ndarray  # (n_numeric,): mask of those that vary
    shift: np.ndarray  # their medians
    constants: np.ndarray  # (n_numeric,): values of the others
    centred: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, columns: Schema, bounds: BoundedMap) -> Self:
        """Prepare encoded rows, of which some cells may be NaN."""
        p = len(columns.numeric_names)
        labels = [repr(name) if columns.named else f"column {name}" for name in columns.numeric_names]
        bounds.check(rows[:, :p], weights > 0.0, labels)
        rows, weights = _without_empty(rows[weights > 0.0] + 0.0, weights[weights > 0.0])
        numbers = bounds.forward(rows[:, :p])
        keep = np.asarray(np.fmin.reduce(numbers) < np.fmax.reduce(numbers))
        warn_of_constants(labels, keep)
        if not keep.any() and not columns.sizes:
            raise InputError("no column of X varies; expected at least two rows that differ in one of them.")
        constants = np.where(keep, np.nan, np.fmax.reduce(rows[:, :p]))
        numbers, codes, weights = _merged(numbers, rows[:, p:], weights)
        shift = np.array([np.median(column[~np.isnan(column)]) for column in numbers[:, keep].T])
        return cls(columns, labels, keep, shift, constants, numbers[:, keep] - shift, codes, weights)

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
        by_columns = isinstance(asked, str) and asked == LEAVE_ONE_OUT
        scale = np.empty(0)
        if rows.keep.any():
            rule = "scott" if by_columns else asked
            scale = resolve_length_scale(rule, rows.centred, rows.weights, rows.labels, rows.keep, what, rules)
        rho = category_rho(category_scale, rows.codes, rows.weights, rows.columns, rows.dim, squared)
        found = cls(rows, factor, scale, rho)
        if not by_columns:
            return found
        kernel, z, _ = found.at(1.0)
        fixed_rho = not isinstance(category_scale, str)
        best = _column_scales(kernel, z, rows.weights, squared=squared, fixed_rho=fixed_rho)
        return cls(rows, factor, scale * best.factors, best.rho)

    def at(self, times: float) -> tuple[ColumnKernel, np.ndarray, np.ndarray]:
        """Return kernel, rows and log volume of the known numbers of each at a multiple of the scales."""
        sizes = self.rows.columns.sizes
        rho = self.rho if times == 1.0 else heat_rho(self.rho, np.array(sizes, dtype=int), times)
        with np.errstate(over="ignore"):
            z = bounded(self.rows.centred / (times * self.scale))
        kernel = ColumnKernel(self.rows.dim, self.factor, tuple(rho.tolist()), sizes)
        return kernel, np.column_stack([z, self.rows.codes]), ~np.isnan(z) @ np.log(times * self.scale)

    def search(self, search: Search, fit: Callable[..., ColumnFit], verbose: bool | int) -> SearchPath:
        """Choose a multiple of the scales by the held-out log density of the known cells."""
        rows, criterion = self.rows, search.criterion_for_gaps()
        held_out: Any = lambda *held_in: fit(*held_in).density  # noqa: E731 - a line
        return run_search(search, criterion, self.scale, rows.weights, self.at, held_out, verbose=verbose)


def donors_of(
    kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray, keep: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return at most 2,000 rows with filled gaps, which of their encoded cells were missing, and their weights."""
    chosen = some_rows(kernel, z, weights, MOST_CENTERS)
    encoded = np.concatenate([keep, np.ones(z.shape[1] - int(keep.sum()), dtype=bool)])
    gaps = np.zeros((len(chosen), len(encoded)), dtype=bool)
    gaps[:, encoded] = np.isnan(z[chosen])
    return filled_rows(kernel, z[chosen], z, weights), gaps, weights[chosen]


def _without_empty(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    empty = np.isnan(rows).all(axis=1)
    if empty.all():
        raise InputError("no row of X with a positive weight has a known cell; expected at least two.")
    if empty.any():
        warnings.warn(
            f"rows without a known cell are left out: {int(empty.sum())}.", DataWarning, stacklevel=caller_level()
        )
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


def weights_of(centers: np.ndarray, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
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
