"""Fits of densities: from checked rows to candidates, and to the value that is fitted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import Backend
from isopleth.core.errors import InputError
from isopleth.core.parameters import on_host
from isopleth.core.rows import distinct_rows, merge_with_gaps, sample_places
from isopleth.core.scales import ScaledColumns, bounded, deviations, loss_units, resolve_length_scale
from isopleth.core.threads import interruptible
from isopleth.density.candidates import FrameCandidates, Recipe
from isopleth.density.column_density import ColumnDensity
from isopleth.density.column_scales import TableRows, TableScales, donors_of, product_factor, weights_of
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.density.fitted import FitRows, Fitted, cells_of
from isopleth.density.frame_and_scale import Asked
from isopleth.density.landmarks import mass_near
from isopleth.density.search import Search, run_search
from isopleth.density.solver import MOST_KERNELS, RowSolver, Solver
from isopleth.frames import BoundedMap
from isopleth.kernels import Kernel, get_kernel
from isopleth.kernels.product import ColumnKernel
from isopleth.tables.checks import CheckedRows, column_names, given_names, varying_columns, warn_few_rows
from isopleth.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class RealRows:
    """Distinct rows of numbers, mapped to the real line where columns are bounded."""

    bounds: BoundedMap
    frame: ScaledColumns  # columns that vary, about their medians
    given: np.ndarray  # (m, n_features): rows in the units of the table
    real: np.ndarray  # (m, n_features): the same on the real line
    centred: np.ndarray  # (m, d): columns of these that vary, less their medians
    weights: np.ndarray  # (m,)
    backend: Backend

    @classmethod
    def of(cls, model: Any, table: CheckedRows) -> Self:
        """Prepare the checked rows of an estimator."""
        X, weights = table.rows, table.weights
        bounds = BoundedMap.of(model.bounds, column_names(model), given_names(model))
        bounds.check(X, weights > 0, column_names(model))
        inside = X.copy()
        inside[weights > 0] = bounds.forward(X[weights > 0])
        rows, weights, place = interruptible(100.0 * X.size, distinct_rows, inside, weights)
        keep = varying_columns(model, rows)
        frame = interruptible(100.0 * X.size, ScaledColumns.centred, rows, keep)
        given = np.empty(rows.shape)
        given[place[place >= 0]] = X[place >= 0] + 0.0  # -0.0 is 0.0
        return cls(bounds, frame, given, rows, frame.centre(rows), weights, table.backend)

    def fitted(self, frame: ScaledColumns, given: np.ndarray, weights: np.ndarray, **found: Any) -> Fitted:
        """Return a fitted value with kernels at the rows `given`, in the coordinates of a frame of the columns."""
        coordinates = ColumnCoordinates(self.bounds, frame, given[0])
        return Fitted(
            coordinates=coordinates,
            points=coordinates.enter(given),
            fit_rows=FitRows(given, weights),
            places=np.arange(given.shape[1]),
            rows=given,
            weights=weights,
            centers=given,
            **found,
        )


def fit_numbers(model: Any, asked: Asked, solver: Solver, table: CheckedRows) -> Fitted:
    """Fit a density to checked rows of numbers without gaps."""
    rows = RealRows.of(model, table)
    kernel = get_kernel(model.kernel).bind(rows.frame.dim)
    solver = solver.begun(kernel)
    warn_few_rows(len(rows.real), rows.frame.dim)
    frames = asked.frames(kernel, solver)
    if frames is None:
        return _in_scale(rows, kernel, solver, model)
    frame = rows.frame.scaled(deviations(rows.centred, rows.weights))
    y = frame.enter(rows.real)
    candidates = FrameCandidates.of(model.length_scale, frames, kernel, solver, y, rows.weights)
    recipe, path = candidates.chosen(y, rows.weights, frame.log_volume, rows.backend)
    chosen, mass = _kernel_rows(y, rows.weights, solver)
    density, facts = recipe.fit(y, rows.weights, rows.backend, (chosen, mass))
    return rows.fitted(
        frame,
        rows.given[chosen],
        mass,
        density=density,
        recipe=recipe,
        coefficients=density.coefficients,
        log_normalizer=frame.log_volume,
        unit=frame.by_column(frame.scale),
        facts=path | facts,
    )


def _in_scale(rows: RealRows, kernel: Kernel, solver: Solver, model: Any) -> Fitted:
    """Fit one component in columns that are divided by their length scales."""
    solver = solver.informed(rows.centred, rows.weights)
    scale, unit, path = _scale(rows, kernel, solver, model)
    frame = rows.frame.scaled(scale)
    recipe = Recipe.of_scaled(kernel, solver)
    density, facts = recipe.fit(frame.enter(rows.real), rows.weights, rows.backend)
    found = rows.fitted(
        frame,
        rows.given,
        rows.weights,
        density=density,
        recipe=recipe,
        coefficients=density.coefficients,
        log_normalizer=density.log_normalizer + frame.log_volume,
        length_scale=frame.by_column(frame.scale),
        unit=frame.by_column(unit),
        times_loss=float((unit[0] / scale[0]) ** 2),
        facts=path | facts,
    )
    if kernel.by_columns:  # sums of such kernels have no gradients
        found = replace(found, density=cells_of(density, found.points))
    return found


def _scale(rows: RealRows, kernel: Kernel, solver: Solver, model: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return the length scale and the unit of each column that varies, and the path of a search by name."""
    centred, weights = rows.centred, rows.weights
    search = model.length_scale if isinstance(model.length_scale, Search) else None
    asked, what = (search.base, "base of the Search") if search else (model.length_scale, "length_scale")
    names, keep = column_names(model), rows.frame.keep
    scale = resolve_length_scale(asked, centred, weights, names, keep, what, solver.rules(kernel))
    unit = loss_units(scale, centred, weights)
    if search is None:
        return scale, unit, {}

    def at(factor: float) -> tuple[Kernel, np.ndarray, float]:
        with np.errstate(over="ignore"):
            return kernel, bounded(centred / (factor * scale)), math.fsum(np.log(factor * scale))

    one, workers = solver.for_folds(rows.backend, len(centred), kernel.bound_dim)
    fit: Callable[..., Any] = lambda *held_in: one.fit_numpy(rows.backend, *held_in)  # noqa: E731 - a line
    mover = solver.mover(centred, weights)
    criterion, budget = search.criterion_for(kernel), replace(solver.budget, n_jobs=workers)
    path = run_search(search, criterion, scale, weights, at, fit, budget, unit, mover)
    return path.best_factor * scale, unit, {"search_path": path}


def _kernel_rows(y: np.ndarray, weights: np.ndarray, solver: Solver) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have kernels, and their weights: those of the rows that they are nearest to."""
    chosen = sample_places(len(y), solver.most_kernels)
    if len(chosen) == len(y):
        return chosen, weights
    mass = mass_near(y[chosen], y, weights, solver.budget)
    return chosen, mass * (len(chosen) / mass.sum())


@dataclass(frozen=True)
class CellRecipe:
    """Recipe by which a product kernel is fitted to points of which cells may be missing."""

    kernel: ColumnKernel
    solver: RowSolver

    def refit(self, rows: np.ndarray, weights: np.ndarray, backend: Backend) -> ColumnDensity:
        """Fit other points."""
        return self.solver.fit_cells(self.kernel, rows, weights)[0]


def fit_cells(model: Any, asked: Asked, solver: RowSolver, table: CheckedRows, columns: Schema) -> Fitted:
    """Fit a density to encoded rows with words or missing cells."""
    asked.check_frame_of_cells()
    n_features = model.n_features_in_
    places = encoded_places(model, columns)
    numeric = places[: table.n_numeric]
    bounds, length_scale = _of_numbers(model, numeric)
    kernel = get_kernel(model.kernel)
    factor = product_factor(kernel, "a fit with categories or missing cells")
    rows = TableRows.of(table.rows, table.weights, columns, bounds, asked.marginal)
    if kernel.dim is not None:
        kernel.bind(int(rows.keep.sum()))
    search = length_scale if isinstance(length_scale, Search) else None
    named, what = (search.base, "base of the Search") if search else (length_scale, "length_scale")
    scales = TableScales.of(rows, factor, named, what, model.category_scale, solver.squared)
    times, path = 1.0, {}
    if search is not None:
        path["search_path"] = scales.search(search, solver.fit_cells, solver.budget)
        times = path["search_path"].best_factor
    product, z, _ = scales.at(times)
    density, facts = solver.fit_cells(product, z, rows.weights)
    frame = ScaledColumns(rows.keep, rows.shift, times * scales.scale)
    coordinates = ColumnCoordinates(rows.map, frame, rows.constants)
    found = coordinates.leave(density.centers)
    centers = np.full((len(found), n_features), np.nan)
    centers[:, places] = found
    of_numbers, of_words = np.full((2, n_features), np.nan)
    of_numbers[numeric], of_words[places[table.n_numeric :]] = frame.by_column(frame.scale), product.rho
    complete = not np.isnan(z).any()
    donors = None if complete else donors_of(product, z, rows.weights, rows.keep)
    return Fitted(
        coordinates=coordinates,
        density=density,
        recipe=CellRecipe(product, solver),
        coefficients=table.backend.array(density.coefficients),
        log_normalizer=density.log_normalizer + frame.log_volume,
        places=places,
        rows=found,
        points=density.centers,
        weights=weights_of(density.centers, z, rows.weights) if complete else None,
        centers=centers,
        length_scale=of_numbers,
        category_scale=of_words,
        facts=path | facts,
        fit_rows=_fit_rows(table, donors),
    )


def _fit_rows(table: CheckedRows, donors: tuple[np.ndarray, np.ndarray, np.ndarray] | None) -> FitRows:
    """Return distinct rows of a table in its units, of many a part that does not depend on their order."""
    counted = table.weights > 0.0
    rows, weights, _ = merge_with_gaps(table.rows[counted] + 0.0, table.weights[counted])
    chosen = sample_places(len(rows), MOST_KERNELS)
    return FitRows(rows[chosen], weights[chosen], donors)


def _of_numbers(model: Any, numeric: np.ndarray) -> tuple[BoundedMap, Any]:
    """Return the bounds and the length scale of the columns of numbers of a table."""
    n_features = model.n_features_in_
    bounds = BoundedMap.of(model.bounds, column_names(model), given_names(model))
    words = np.setdiff1d(np.arange(n_features), numeric)
    if np.isfinite(bounds.low[words]).any() or np.isfinite(bounds.high[words]).any():
        raise InputError("bounds names a column that is no number; name numeric columns only.")
    length_scale = on_host(model.length_scale, "length_scale")
    if not isinstance(length_scale, (str, Real, Search)) and np.shape(length_scale) == (n_features,):
        length_scale = np.asarray(length_scale, dtype=np.float64)[numeric]
    return bounds.take(numeric), length_scale


def encoded_places(model: Any, columns: Schema) -> np.ndarray:
    """Return where the encoded columns stand in the table of the fit."""
    if columns.named:
        labels = column_names(model)
        used = [labels.index(repr(str(name))) for name in columns.names]
    else:
        used = [int(name) for name in columns.names]
    return np.array(used, dtype=np.intp)[columns.order]
