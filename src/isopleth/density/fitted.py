"""The value that a fit returns: a density of rows, which answers questions and can be fitted again to other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch
from typing import Any, Protocol

import numpy as np

from isopleth.core.arrays import Array, Backend, to_numpy
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.core.errors import InputError
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.rows import folds_of
from isopleth.density.candidates import Recipe
from isopleth.density.column_density import ColumnDensity
from isopleth.density.column_scales import product_factor
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.density.frame_density import ExpansionDensity
from isopleth.density.interval_sums import IntervalSums
from isopleth.density.stack import Component, StackDensity
from isopleth.density.stack_columns import StackColumns
from isopleth.kernels import Kernel
from isopleth.kernels.product import ColumnKernel


class Refit(Protocol):
    """Recipe by which a density was fitted, so that it can be fitted to other points at the same length scales."""

    @property
    def kernel(self) -> Kernel:
        """The kernel, bound to the number of columns."""

    def refit(self, rows: np.ndarray, weights: np.ndarray, backend: Backend) -> Any:
        """Return the density of points."""


@singledispatch
def cells_of(density: Any, points: np.ndarray | None) -> ColumnDensity | StackColumns:
    """Return the density of some of the columns of points, or of points with missing cells."""
    raise InputError("random features are no sum of kernels at rows, so they have no densities of some of the columns.")


@cells_of.register
def _(density: ColumnDensity, points: np.ndarray | None) -> ColumnDensity:
    return density


@cells_of.register
def _(density: StackDensity, points: np.ndarray) -> StackColumns:
    return StackColumns.of(density, points)


@cells_of.register
def _(density: ExpansionDensity, points: np.ndarray | None) -> ColumnDensity:
    """Return the columns of an expansion, for kernels that are products over columns."""
    sums = density.expansion
    factor = product_factor(sums.kernel, "a question about some of the columns or about missing cells")
    centers, alpha = np.asarray(to_numpy(sums.centers)), np.asarray(to_numpy(sums.coefficients))
    kernel = ColumnKernel(centers.shape[1], factor)
    return ColumnDensity(kernel, centers, alpha, density.squared, budget=sums.budget)


@cells_of.register
def _(density: StackColumns, points: np.ndarray | None) -> StackColumns:
    return density


@dataclass(frozen=True, eq=False)
class FitRows:
    """Rows of a fit, from which new rows get their digits, their words and their gaps."""

    rows: np.ndarray  # (m, k): encoded rows in the units of the table, NaN where a cell is missing
    weights: np.ndarray  # (m,)
    # Of a table with missing cells at most 2,000 rows: their points with filled gaps, which encoded cells were missing, weights.
    filled: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def take(self, encoded: np.ndarray, visible: np.ndarray) -> FitRows:
        """Return some of the encoded columns, which are `visible` ones of points."""
        filled = self.filled
        if filled is not None:
            filled = filled[0][:, visible], filled[1][:, encoded], filled[2]
        return FitRows(self.rows[:, encoded], self.weights, filled)


@dataclass(frozen=True, eq=False)
class RowDensity:
    """A density of the encoded rows of a table, numbers first, then codes of words; rows are in the units of the table."""

    coordinates: ColumnCoordinates  # map of encoded rows to points
    density: Any  # density of points: FrameDensity, ColumnDensity or StackColumns
    points: np.ndarray | None = None  # (m, d): points with kernels
    fit_rows: FitRows | None = None  # rows of the fit

    @property
    def cells(self) -> ColumnDensity | StackColumns:
        """Density of points that may have missing cells, and of some of their columns."""
        return cells_of(self.density, self.points)

    def _at(self, rows: np.ndarray) -> Any:
        """Return the density that answers for these rows."""
        return self.cells if np.isnan(rows).any() else self.density

    def log_density(self, rows: np.ndarray, limits: IntervalCells | None = None) -> np.ndarray:
        """Return the log density of the known cells of rows, integrated over the intervals of others."""
        if limits is not None and len(limits):
            return self.sums.log_density(rows, self._bounded(limits), self.log_density)
        return self.coordinates.log_density(rows, self._at(rows).log_density)

    def gradient(self, rows: np.ndarray, limits: IntervalCells | None = None) -> np.ndarray:
        """Return the gradient of :meth:`log_density`, NaN in missing cells and for words."""
        if limits is not None and len(limits):
            return self.sums.gradient(rows, self._bounded(limits), self.log_density, self.gradient)
        return self.coordinates.gradient(rows, self._at(rows).grad_log_density)

    def within(self, rows: np.ndarray, limits: IntervalCells, draw: np.random.Generator | None) -> np.ndarray:
        """Return rows with their intervals filled by the means given the known cells, or by a joint draw."""
        assert self.fit_rows is not None
        bounded, least = self._bounded(limits), np.nanmin(self.fit_rows.rows[:, limits.columns], axis=0)
        # A column without a negative number has none below a limit either, though kernels reach there.
        lower = np.where((least >= 0.0) & (bounded.upper > 0.0), np.maximum(bounded.lower, 0.0), bounded.lower)
        return self.sums.filled(rows, IntervalCells(limits.columns, lower, bounded.upper), self.log_density, draw)

    @property
    def sums(self) -> IntervalSums:
        """Sums over intervals; columns without a density have none."""
        keep = self.coordinates.frame.keep
        assert self.fit_rows is not None
        unit = np.zeros(self.fit_rows.rows.shape[1])
        unit[: len(keep)] = np.where(keep, np.nanstd(self.fit_rows.rows[:, : len(keep)], axis=0), 0.0)
        return IntervalSums(unit)

    def _bounded(self, limits: IntervalCells) -> IntervalCells:
        """Return intervals that end at the bounds of their columns."""
        low, high = (end[limits.columns] for end in (self.coordinates.bounds.low, self.coordinates.bounds.high))
        return IntervalCells(limits.columns, np.maximum(limits.lower, low), np.minimum(limits.upper, high))

    def draw(self, n: int, rng: np.random.Generator, budget: Budget = DEFAULT_BUDGET) -> np.ndarray:
        """Draw points of independent rows without gaps."""
        drawn: np.ndarray = self.density.sample(n, rng, budget)
        return drawn

    def take(self, encoded: np.ndarray, numeric: np.ndarray, visible: np.ndarray) -> RowDensity:
        """Return the density of some of the encoded columns: `numeric` ones of the table, `visible` ones of points."""
        return self._part(self.cells.marginal(visible), encoded, numeric, visible)

    def given(
        self, known: Mapping[int, float], encoded: np.ndarray, numeric: np.ndarray, visible: np.ndarray
    ) -> RowDensity:
        """Return the density of the other columns, which are named as for :meth:`take`, where columns of points have values."""
        return self._part(self.cells.conditional(known), encoded, numeric, visible)

    def _part(self, density: Any, encoded: np.ndarray, numeric: np.ndarray, visible: np.ndarray) -> RowDensity:
        fit_rows = None if self.fit_rows is None else self.fit_rows.take(encoded, visible)
        return RowDensity(self.coordinates.take(numeric), density, None, fit_rows)

    def leave(self, z: np.ndarray) -> np.ndarray:
        """Return the rows of points."""
        return self.coordinates.leave(z)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(RowDensity):
    """Result of a fit: a density of rows that can be fitted again, and that Markov chains can draw from."""

    recipe: Refit
    coefficients: Array  # of the kernels or features, in the array library of the rows of the fit
    log_normalizer: float
    places: np.ndarray  # place in the table of each encoded column
    rows: np.ndarray | None = None  # (m, d): encoded rows with kernels; None if the density has none
    weights: np.ndarray | None = None  # (m,): their weights; None if rows with gaps were filled
    centers: np.ndarray | None = None  # (m, n_features): places of the kernels in the columns of the table
    # by column of the table; None where they have no meaning:
    length_scale: np.ndarray | None = None
    unit: np.ndarray | None = None
    category_scale: np.ndarray | None = None
    times_loss: float = 1.0  # Hyvarinen loss in units of `unit` over that in the coordinates of points
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else the fit found, by name

    @property
    def backend(self) -> Backend:
        """Array library and device of the rows of the fit."""
        return Backend.of(self.coefficients)

    @property
    def components(self) -> tuple[Component, ...] | None:
        """Components of a mixture over frames; None for a density in scaled columns."""
        found: tuple[Component, ...] | None = getattr(self.density, "components", None)
        return found

    def hyvarinen_loss(self, rows: np.ndarray) -> float:
        """Return the mean Hyvarinen loss of complete rows, in columns over `unit`."""
        at, kernel, inside = self.coordinates, self.recipe.kernel, self.coordinates.inside(rows)
        if kernel.bound_dim == 1 and kernel.smoothness <= 0.5 and not kernel.by_columns:
            raise InputError(
                f"the Hyvarinen loss of {kernel!r} in one column leaves out its kinks at the centres; "
                "fit with a smoother kernel, such as 'matern32', 'matern52' or 'gaussian'."
            )
        if not inside.all() or not self.density.positive(z := at.enter(rows)).all():
            return float("inf")
        terms = self.density.hyvarinen_terms(z)
        if kernel.smoothness <= 1.0:
            terms = terms[terms != -np.inf]
        if not len(terms):
            raise InputError(
                f"every row of X is one that {kernel!r} was fitted to, where its Hyvarinen loss is minus infinity; pass other "
                "rows, or fit with a smoother kernel, such as 'matern52' or 'gaussian'."
            )
        return self.times_loss * float(np.mean(terms))

    def refit(self, points: np.ndarray, weights: np.ndarray) -> Any:
        """Return the density of other points, fitted in the same way."""
        return self.recipe.refit(points, weights, self.backend)

    @cached_property
    def held_out(self) -> np.ndarray:
        """Log densities of the rows with kernels, (m,), by fits to the other folds; model files leave them out."""
        assert self.points is not None
        assert self.weights is not None
        assert self.rows is not None
        # The order of distinct rows, and so the folds, does not depend on the order of the rows and columns of the table.
        fold, found = folds_of(len(self.points), seed=0), np.empty(len(self.points))
        for k in range(fold.max() + 1):
            test = fold == k
            found[test] = self.refit(self.points[~test], self.weights[~test]).log_density(self.points[test])
        return found + self.coordinates.log_slopes(self.rows)

    @property
    def start(self) -> np.ndarray | None:
        """Points at which chains may start."""
        return self.points

    def evaluate(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log density of points, up to a constant, and its gradient."""
        found: tuple[np.ndarray, np.ndarray] = self.density.evaluate(z)
        return found

    def wider(self, factor: float) -> Fitted:
        """Return the density with all length scales multiplied by a factor, in the same coordinates."""
        assert self.points is not None
        assert self.weights is not None
        assert isinstance(self.recipe, Recipe)  # chains, which ask for wider scales, refuse densities of words and gaps
        density, _ = self.recipe.fit(self.points, self.weights, self.backend, wider=factor)
        return replace(self, density=density)
