"""Fits of densities of product kernels to rows; missing cells are filled from similar rows first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.density.column_density import ColumnDensity
from isopleth.density.hot_deck import filled_rows, some_rows
from isopleth.errors import InputError
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.threads import DEFAULT_N_JOBS
from isopleth.rows import merge_rows
from isopleth.solvers import SCALING_SOLVERS

# Most centres of a fit with gaps: each pattern of missing cells has sums over all pairs of centres.
MOST_CENTERS = 2000
# A row with gaps is filled several times in small tables, so that no centre rests on one fill: so many times, as far as there are
# no more than so many filled rows.
_FILLS, _FILLED = 6, 800


@dataclass(frozen=True)
class ColumnFit:
    r"""A fitted density, the residual of its equations, :math:`\max_i |\alpha_i (K\alpha)_i/w_i - 1|`, and products taken."""

    density: ColumnDensity
    residual: float
    n_iter: int


def fit_root(
    kernel: ColumnKernel,
    Z: np.ndarray,
    weights: np.ndarray,
    *,
    solver: str = "auto",
    tol: float = 1e-8,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> ColumnFit:
    """Fit the density f^2/Z to rows that may have missing cells.

    Empty rows are left out. Of more than 2,000 rows with gaps among them, 2,000 are centres.
    """
    budget: dict[str, Any] = {"memory_limit": memory_limit, "n_jobs": n_jobs}
    centers, mass, filled = completed(kernel, Z, weights, MOST_CENTERS)
    solution = SCALING_SOLVERS[solver](Operator(kernel, centers, **budget).store(), mass, tol)
    density = ColumnDensity(kernel, centers, solution.coefficients, True, filled=filled, **budget)
    return ColumnFit(density, solution.residual, solution.n_iter)


def fit_mixture(
    kernel: ColumnKernel,
    Z: np.ndarray,
    weights: np.ndarray,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> ColumnFit:
    """Fit a kernel density estimate to rows that may have missing cells; parameters as for :func:`fit_root`."""
    centers, mass, filled = completed(kernel, Z, weights, len(Z))
    return ColumnFit(ColumnDensity(kernel, centers, mass, False, None, filled, memory_limit, n_jobs), 0.0, 0)


def completed(
    kernel: ColumnKernel, Z: np.ndarray, weights: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return distinct rows without gaps, their weights of sum 1, and a mask of filled cells; None if none was missing.

    At most `most` of the rows are taken if there are gaps.
    """
    gaps = np.isnan(Z)
    counted = np.where(gaps.all(axis=1), 0.0, weights)
    if not (counted > 0.0).any():
        raise InputError("no row has an observed cell and a positive weight; expected at least two.")
    merged, mass, _ = merge_rows(np.column_stack([np.where(gaps, 0.0, Z), gaps]), counted)
    rows, mass = merged[:, : Z.shape[1]].copy(), mass / mass.sum()
    gaps = merged[:, Z.shape[1] :] > 0.0
    if not gaps.any():
        return rows, mass, None
    rows[gaps] = np.nan
    chosen = some_rows(kernel, rows, mass, most)
    rows_with_gaps = gaps[chosen].any(axis=1)
    times = int(np.clip(_FILLED // rows_with_gaps.sum(), 1, _FILLS)) if rows_with_gaps.any() else 1
    chosen = np.concatenate([chosen[~rows_with_gaps], *[chosen[rows_with_gaps]] * times])
    complete = len(chosen) - times * int(rows_with_gaps.sum())
    filled = rows[chosen]
    for turn, part in enumerate(np.split(np.arange(complete, len(chosen)), times)):
        filled[part] = filled_rows(kernel, filled[part], rows, mass, turn / times)
    share = np.where(np.arange(len(chosen)) < complete, 1.0, 1.0 / times)
    centers, own, place = merge_rows(filled, share * mass[chosen])
    return centers, own / own.sum(), _filled_cells(gaps[chosen], place, len(centers))


def _filled_cells(gaps: np.ndarray, place: np.ndarray, n_centers: int) -> np.ndarray:
    """Return a mask of the cells of centres that are missing in the row with the fewest gaps that the centre was made of."""
    filled = np.ones((n_centers, gaps.shape[1]), dtype=bool)
    fewest = np.argsort(-gaps.sum(axis=1), kind="stable")
    filled[place[fewest]] = gaps[fewest]
    return filled
