"""Fit of a density to weighted rows: the coefficients of kernels at the rows, and what a fit needs to know to choose scales."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from isopleth.core.arrays import NUMPY, Array, Backend, namespace, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import warn_user
from isopleth.core.progress import Progress
from isopleth.core.scales import RULES, Rule
from isopleth.core.threads import ROWS_OF_ONE_THREAD, check_stopped
from isopleth.density.column_density import ColumnDensity
from isopleth.density.column_scales import LEAVE_ONE_OUT, leave_one_out
from isopleth.density.frame_density import ExpansionDensity, FrameDensity
from isopleth.density.hot_deck import MOST_CENTERS, completed
from isopleth.density.search import Mover
from isopleth.density.shared_distances import SharedDistances
from isopleth.expansion import KernelExpansion
from isopleth.kernels import Kernel, Workspace
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import Operator
from isopleth.operators.tiles import HOST_TILE, SCRATCH_TILES, scratch
from isopleth.solvers import SCALING_SOLVERS
from isopleth.solvers.scaling import products_of_fixed_point

# Most rows with kernels in other frames than that of scaled columns.
MOST_KERNELS = 4096

# Residual of the fits that are only compared.
ROUGH = 1e-3


@dataclass(frozen=True)
class Solver(ABC):
    """Fit of a density to rows in coordinates in which the length scale is 1. A fitted value keeps it to fit other rows.

    A subclass defines :meth:`begun` and :meth:`fit`; one with a kernel at each row is a :class:`RowSolver`, which needs less. All
    other methods have defaults, which are right for a solver that needs nothing but rows.
    """

    budget: Budget

    most_kernels: ClassVar[int] = MOST_KERNELS
    needs_scale: ClassVar[str | None] = None  # what needs frame='scale', if something does

    @abstractmethod
    def begun(self, kernel: Kernel) -> Self:
        """Return the solver with what all fits of a bound kernel share, such as random numbers.

        It raises InputError, before any computation, if the kernel is unsuitable or memory does not suffice.
        """

    @abstractmethod
    def fit(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        """Fit a density to distinct rows `z` on their backend; return it and facts of the fit by name."""

    def rules(self, kernel: Kernel) -> Mapping[str, Rule]:
        """Return the rules for length scales by name."""
        return RULES

    def rough(self) -> Self:
        """Return a solver for fits that are only compared."""
        return self

    def for_folds(self, backend: Backend, rows: int, columns: int) -> tuple[Self, int]:
        """Return a solver for folds of so many rows, and how many of its fits run at once in threads."""
        return self, 1

    def informed(self, rows: np.ndarray, weights: np.ndarray) -> Self:
        """Return the solver after a look at centred rows; most solvers need none."""
        return self

    def mover(self, rows: np.ndarray, weights: np.ndarray) -> Mover | None:
        """Return how the rows of a search are moved before each of its fits, if they are."""
        return None

    def log_densities(
        self, kernel: Kernel, z: Array, weights: Array, rows: Array, factors: Sequence[float], work: Workspace
    ) -> Iterator[np.ndarray]:
        """Yield log densities of `rows` by fits to rows `z` at multiples of the length scale; `work` is scratch."""
        for factor in factors:
            check_stopped()
            density = self.fit(kernel, z / factor, weights)[0]
            yield density.log_density(to_numpy(rows / factor)) - kernel.bound_dim * math.log(factor)

    def fit_numpy(self, backend: Backend, kernel: Kernel, z: np.ndarray, weights: np.ndarray) -> FrameDensity:
        """Fit NumPy rows and weights on a backend."""
        return self.fit(kernel, backend.array(z), backend.array(weights))[0]


@dataclass(frozen=True)
class RowSolver(Solver):
    """Fit of one kernel at each row. A subclass defines `squared` and :meth:`coefficients`."""

    squared: ClassVar[bool]  # whether the density is the square of the sum of kernels, or the sum itself

    def begun(self, kernel: Kernel) -> Self:
        """Refuse kernels of which the sum, or its square, has no integral."""
        if self.squared:
            kernel.self_convolution()
        else:
            kernel.log_integral()
        return self

    @abstractmethod
    def coefficients(
        self, kernel: Kernel, z: Array, shares: Array, matrix: Array = None
    ) -> tuple[Array, dict[str, Any]]:
        """Return the coefficients of kernels at rows of weights of sum 1, and facts of the fit by name.

        `matrix` has the values of the kernel of all pairs of rows, if these are known.
        """

    def rules(self, kernel: Kernel) -> Mapping[str, Rule]:
        factor = kernel.column_factor
        return RULES if factor is None else {**RULES, LEAVE_ONE_OUT: partial(leave_one_out, factor, self.squared)}

    def fit(self, kernel: Kernel, z: Array, weights: Array) -> tuple[FrameDensity, dict[str, Any]]:
        coefficients, facts = self.coefficients(kernel, z, weights / namespace(weights).sum(weights))
        sums = KernelExpansion(kernel, z, coefficients, budget=self.budget)
        return ExpansionDensity(sums, self.squared), facts

    def log_densities(
        self, kernel: Kernel, z: Array, weights: Array, rows: Array, factors: Sequence[float], work: Workspace
    ) -> Iterator[np.ndarray]:
        shared = SharedDistances.of(kernel, z, rows, self.budget, work)
        if shared is None:
            yield from super().log_densities(kernel, z, weights, rows, factors, work)
            return
        shares = weights / namespace(weights).sum(weights)
        for factor in factors:
            check_stopped()
            alpha, _ = self.coefficients(kernel, z / factor, shares, shared.values("own", factor))
            logs, log_volume = shared.log_sums(factor, alpha), kernel.bound_dim * math.log(factor)
            if self.squared:
                yield 2.0 * logs - shared.log_square_integral(factor, alpha) - log_volume
            else:
                yield logs - math.log(float(namespace(alpha).sum(alpha))) - kernel.log_integral() - log_volume

    def fit_cells(
        self, kernel: ColumnKernel, z: np.ndarray, weights: np.ndarray
    ) -> tuple[ColumnDensity, dict[str, Any]]:
        """Fit a product kernel to rows of frame coordinates and codes, of which cells may be NaN."""
        # The squares of sums with gaps are sums over all pairs of centres.
        most = MOST_CENTERS if self.squared else len(z)
        centers, shares, filled = completed(kernel, z, weights, most)
        coefficients, facts = self.coefficients(kernel, centers, shares)
        return self.of_columns(kernel, centers, coefficients, filled), facts

    def of_columns(
        self, kernel: ColumnKernel, points: np.ndarray, coefficients: Array, filled: np.ndarray | None = None
    ) -> ColumnDensity:
        """Return the density of columns with a product kernel at each point."""
        alpha = np.asarray(to_numpy(coefficients))
        return ColumnDensity(kernel, points, alpha, self.squared, None, filled, self.budget)

    def for_folds(self, backend: Backend, rows: int, columns: int) -> tuple[Self, int]:
        if backend != NUMPY:  # one fit keeps a device busy, and also a library with threads of its own
            return self, 1
        # Several fits in parallel use more processors than threads within one fit, whose matrices are small.
        need = 8 * (rows**2 + 2 * scratch(HOST_TILE, columns, SCRATCH_TILES))
        small = rows <= ROWS_OF_ONE_THREAD
        workers = 1 if small else max(1, min(self.budget.threads, int(self.budget.memory // need)))
        if workers > 1 or small:
            return replace(self, budget=self.budget.shared(workers)), workers
        return self, workers


@dataclass(frozen=True)
class MixtureSolver(RowSolver):
    """Kernels with the weights of the rows: a mixture, for which no equations are solved."""

    squared: ClassVar[bool] = False

    def coefficients(
        self, kernel: Kernel, z: Array, shares: Array, matrix: Array = None
    ) -> tuple[Array, dict[str, Any]]:
        return shares, {}


@dataclass(frozen=True)
class RootSolver(RowSolver):
    """Kernels whose coefficients solve the scaling equations: the root of a density."""

    method: str = "auto"  # name of a solver of the equations
    tol: float = 1e-8

    squared: ClassVar[bool] = True

    def rough(self) -> Self:
        return replace(self, tol=max(ROUGH, self.tol))

    def coefficients(
        self, kernel: Kernel, z: Array, shares: Array, matrix: Array = None
    ) -> tuple[Array, dict[str, Any]]:
        op = Operator(kernel, z, budget=self.budget)
        op = op.store() if matrix is None else op.keep(matrix)
        fast = kernel.nonnegative and self.method in ("auto", "fixed_point")
        most = products_of_fixed_point(self.tol) if fast else 500  # which other solvers seldom reach
        left = iter(range(most - 1))  # the last step is the end, after whatever number of products
        with Progress("equations of the coefficients", most, self.budget.verbose) as tick:
            op.after_product = lambda: tick(next(left, None) is not None)
            solution = SCALING_SOLVERS[self.method](op, shares, self.tol)
            tick(1 + len(list(left)))
        if not solution.converged(self.tol):
            warn_user(
                f"the residual {solution.residual:.1e} is above tol = {self.tol:g} after {solution.n_iter} products; a smaller "
                f"length_scale, a larger tol or weights of a smaller range may help.",
                ConvergenceWarning,
            )
        return solution.coefficients, {"residual": solution.residual, "n_iter": solution.n_iter}
