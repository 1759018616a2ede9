r"""Fits of densities of product kernels to rows with missing cells.

Over coefficients :math:`\alpha \ge 0` the fit minimises

.. math:: -\sum_i w_i \log \alpha^\top M_i \alpha + \sum_i w_i (1 - \varphi_i) \log \alpha^\top S \alpha
    + \alpha^\top K \alpha, \qquad M_i = (k_o k_o^\top) \circ G_i,

with k_o the kernel of the observed cells of row i with the centres, :math:`G_i` the overlaps of the centres over its missing
columns, S those over all columns, and :math:`\varphi_i` the share of the cells of row i that are observed. The first term is the
marginal likelihood of the observed cells under f^2, which is not normalised. The second term normalises it for rows with gaps;
otherwise these rows would favour a large integral of f^2. After minimisation over the scale of f, the third term is
:math:`\log |f|_H^2`, the penalty for roughness. A row with gaps contributes the part :math:`\varphi_i` of it. So a complete row
counts as in the scaling equations, where :math:`M_i = k_i k_i^\top`, and an empty row, where :math:`M_i = S`, has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from isopleth.density.column_density import LOG_VALUE, ColumnDensity, Pattern, _one_a_row, patterns_of
from isopleth.errors import InputError
from isopleth.kernels.product import ColumnKernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD
from isopleth.rows import merge_rows
from isopleth.solvers import SCALING_SOLVERS

_FIRST_STEPS = 30  # multiplicative steps before Newton's method, which converges only near the solution
_FLAT = 20  # passes after which it is asked whether they have lowered the objective
_LONGEST = 2.0  # largest change of the logarithm of a coefficient in a step of Newton's method
_ROUNDING = 1e-14
# Shares of the mean curvature that are added to a Hessian that is not positive definite. Centres that lie close together have
# directions in which the objective is nearly flat; a larger share than needed would stop these.
_DAMPINGS = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-2, 0.1, 1.0, 10.0)
_FILL_CELLS = 2**21  # pairs of rows that are compared at once when gaps are filled
_FASTEST = 3.0  # largest exponent of a multiplicative step
_SMALLEST = -690.0  # logarithm below which a coefficient is 0
_FEWEST = 100  # complete rows below which a kernel density estimate fills rows with gaps
MOST_CENTERS = (
    2000  # of a fit with gaps: each pattern of missing cells has a matrix of overlaps of all pairs of centres
)
_PAIR_BYTES = (
    64  # bytes for each pair of centres in a fit with gaps: second derivatives and the matrices they come from
)
_FEW = 512  # number of centres up to which one BLAS thread is faster than several


@dataclass(frozen=True)
class ColumnFit:
    r"""A fitted density and the residual of its equations.

    Parameters
    ----------
    density : ColumnDensity
        The density.
    residual : float
        For complete rows :math:`\max_i |\alpha_i (K\alpha)_i/w_i - 1|`. With gaps, where coefficients may be 0, it is the
        residual of the optimality (KKT) conditions, the larger one of :math:`\max_i N_i/D_i - 1` and
        :math:`m \max_i |\alpha_i (D_i - N_i)|`. N and D are the two sides of :math:`\alpha_i (D_i - N_i) = 0`, where
        :math:`\sum_i \alpha_i N_i = 1` and, at the solution, :math:`\sum_i \alpha_i D_i = 1`.
    n_iter : int
        Number of products with the matrices, or of passes over the rows.
    objective : list of float
        Objective after each pass, for rows with gaps.
    """

    density: ColumnDensity
    residual: float
    n_iter: int
    objective: list[float]


@dataclass(eq=False)
class GapProblem:
    """Sums over rows that give the objective and its derivatives.

    Parameters
    ----------
    kernel : ColumnKernel
        Kernel bound to the columns.
    centers : array of shape (m, d)
        Centres without missing cells.
    Z : array of shape (n, d)
        Rows, NaN for missing cells; each has an observed cell.
    weights : array of shape (n,)
        Weights of the rows, of sum 1.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`. Matrices that do not fit are computed again in each pass.
    """

    kernel: ColumnKernel
    centers: np.ndarray
    Z: np.ndarray
    weights: np.ndarray
    memory_limit: float
    n_jobs: int | None
    K: Operator = field(init=False)
    S: Operator = field(init=False)
    gap_weight: float = field(init=False)
    chunks: list[Pattern] = field(init=False)
    kept: dict[int, tuple[np.ndarray, np.ndarray | None]] = field(init=False)

    def __post_init__(self) -> None:
        m = len(self.centers)
        budget = 0.5 * self.memory_limit
        kernel, overlap = (self._operator(k, self.centers, self.centers) for k in (self.kernel, self.kernel.overlap))
        self.K = kernel.store()
        self.S = overlap.store()
        budget -= 8.0 * m * m * (kernel.stored + overlap.stored)
        chunks, kept = [], {}
        step = max(1, int(self.memory_limit / (128 * m)))
        for pattern in patterns_of(self.Z):
            for start in range(0, len(pattern.rows), step):
                chunks.append(replace(pattern, rows=pattern.rows[start : start + step]))
        for number, chunk in enumerate(chunks):
            size = 8.0 * m * (len(chunk.rows) + (m if len(chunk.missing) else 0))
            if size > budget:
                break
            budget -= size
            kept[number] = self._make(chunk)
        self.chunks = chunks
        self.kept = kept
        self.gap_weight = float(self.weights @ np.isnan(self.Z).mean(axis=1))

    def _operator(self, kernel: ColumnKernel, x: np.ndarray, y: np.ndarray, **options: Any) -> Operator:
        budget = self.memory_limit / 4
        return Operator(kernel, x, None if y is x else y, memory_limit=budget, n_jobs=self.n_jobs, **options)

    def _make(self, chunk: Pattern) -> tuple[np.ndarray, np.ndarray | None]:
        """Compute k_o of rows of one pattern, divided by its largest value in a row, and G; None if no cell is missing."""
        seen, missing = chunk.observed, chunk.missing
        x, y = self.Z[np.ix_(chunk.rows, seen)], np.ascontiguousarray(self.centers[:, seen])
        logs = self._operator(self.kernel.take(seen), x, y, block=LOG_VALUE).dense()
        logs -= logs.max(axis=1, keepdims=True)
        terms = np.exp(logs, out=logs)
        if not len(missing):
            return terms, None
        centers = np.ascontiguousarray(self.centers[:, missing])
        return terms, self._operator(self.kernel.take(missing).overlap, centers, centers).dense()

    def _parts(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield weights, k_o and G of the rows of each pattern."""
        for number, chunk in enumerate(self.chunks):
            kept = self.kept.get(number)
            terms, overlaps = self._make(chunk) if kept is None else kept
            yield self.weights[chunk.rows], terms, overlaps

    def sides(self, alpha: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        r"""Compute the objective, up to a constant, and the sides N and D of the optimality conditions.

        Half of the gradient is D - N, with :math:`N = \sum_i w_i M_i\alpha/(\alpha^\top M_i \alpha)` and
        :math:`D = K\alpha + \sum_i w_i (1 - \varphi_i) S\alpha/(\alpha^\top S\alpha)`.
        """
        value, N = 0.0, np.zeros(len(alpha))
        for w, terms, overlaps in self._parts():
            if overlaps is None:
                f = terms @ alpha
                value -= 2.0 * float(w @ np.log(f))
                N += (w / f) @ terms
                continue
            scaled = terms * alpha
            image = scaled @ overlaps
            q = np.einsum("ij,ij->i", scaled, image)
            value -= float(w @ np.log(q))
            image *= terms
            N += (w / q) @ image
        D = self.K.matvec(alpha)
        value += float(alpha @ D)
        if self.gap_weight > 0.0:
            image = self.S.matvec(alpha)
            total = float(alpha @ image)
            value += self.gap_weight * math.log(total)
            D = D + self.gap_weight / total * image
        return value, N, D

    def hessian(self, alpha: np.ndarray) -> np.ndarray:
        """Compute half of the matrix of second derivatives of the objective by alpha."""
        H = self.K.dense().copy()
        if self.gap_weight > 0.0:
            S = self.S.dense()
            image = S @ alpha
            total = float(alpha @ image)
            H += self.gap_weight / total * S
            H -= np.outer(image, (2.0 * self.gap_weight / total**2) * image)
        for w, terms, overlaps in self._parts():
            if overlaps is None:
                root = terms * (np.sqrt(w) / (terms @ alpha))[:, None]
                H += root.T @ root
                continue
            scaled = terms * alpha
            image = scaled @ overlaps
            q = np.einsum("ij,ij->i", scaled, image)
            image *= terms
            image *= (np.sqrt(2.0 * w) / q)[:, None]
            H += image.T @ image
            root = terms * np.sqrt(w / q)[:, None]
            H -= (root.T @ root) * overlaps
        return np.asarray(H)


def kkt_residual(alpha: np.ndarray, N: np.ndarray, D: np.ndarray) -> float:
    """Return the residual of the optimality conditions; see :class:`ColumnFit`."""
    return max(float(np.max(N / D)) - 1.0, len(alpha) * float(np.max(alpha * np.abs(D - N))))


def multiplicative_step(alpha: np.ndarray, N: np.ndarray, D: np.ndarray, stretch: float = 1.0) -> np.ndarray:
    r"""Compute :math:`\alpha (N/D)^{s/2}` with s = `stretch`; with s = 1 the objective does not increase."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.maximum(np.log(alpha) + 0.5 * stretch * np.log(N / D), _SMALLEST)))


Sides = tuple[float, np.ndarray, np.ndarray]


def _newton_step(problem: GapProblem, alpha: np.ndarray, at: Sides) -> tuple[np.ndarray, Sides] | None:
    """Take a step of Newton's method in log alpha that lowers the objective; return it with its sides, or None."""
    _, N, D = at
    gradient = alpha * (D - N)
    H = problem.hessian(alpha)
    H *= alpha[:, None]
    H *= alpha
    scale = max(float(np.mean(np.abs(np.diagonal(H)))), 1e-300)
    diagonal = np.diagonal(H) + gradient
    for damping in _DAMPINGS:
        H.flat[:: len(H) + 1] = diagonal + scale * (damping + 1e-14)
        try:
            step = -cho_solve(cho_factor(H, check_finite=False), gradient, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        step = np.clip(step, -_LONGEST, _LONGEST)
        for part in (1.0, 0.25):
            found = np.exp(np.maximum(np.log(alpha) + part * step, _SMALLEST))
            after = problem.sides(found)
            if _better(alpha, at, found, after):
                return found, after
    return None


def _better(alpha: np.ndarray, at: Sides, found: np.ndarray, after: Sides) -> bool:
    """Tell whether the objective is lower, or equal up to rounding with a smaller residual."""
    if after[0] < at[0] - _ROUNDING * (1.0 + abs(at[0])):
        return True
    same = after[0] <= at[0] + _ROUNDING * (1.0 + abs(at[0]))
    return same and kkt_residual(found, *after[1:]) < kkt_residual(alpha, *at[1:])


def solve_gaps(
    problem: GapProblem, alpha: np.ndarray, tol: float = 1e-6, max_iter: int = 1000
) -> tuple[np.ndarray, float, list[float]]:
    """Solve the optimality conditions up to `tol`; return coefficients, residual, and the objective after each pass.

    Near centres that lie close together the objective is so flat that the last digits of the residual take hundreds of passes
    that change nothing else. So the passes end too when :func:`is_flat` says so.

    Multiplicative steps are followed by Newton's method in log alpha and, if it fails, by multiplicative steps again. The
    objective never increases. It has several local minima; this finds one of them.
    """
    with ONE_BLAS_THREAD if len(alpha) <= _FEW else nullcontext():
        return _descend(problem, alpha, tol, max_iter)


def is_flat(path: list[float], tol: float) -> bool:
    """Tell whether the last 20 passes have lowered the objective, in nats a row, by less than a thousandth of `tol`."""
    return len(path) > _FIRST_STEPS + _FLAT and path[-1 - _FLAT] - path[-1] < 1e-3 * tol


def _descend(
    problem: GapProblem, alpha: np.ndarray, tol: float, max_iter: int
) -> tuple[np.ndarray, float, list[float]]:
    at = problem.sides(alpha)
    path, stretch = [at[0]], 1.0
    newton = True
    while kkt_residual(alpha, *at[1:]) > tol and not is_flat(path, tol) and len(path) <= max_iter:
        step = _newton_step(problem, alpha, at) if newton and len(path) > _FIRST_STEPS else None
        if step is None:
            newton = newton and len(path) <= _FIRST_STEPS
            found = multiplicative_step(alpha, *at[1:], stretch)
            step = found, problem.sides(found)
        if not _better(alpha, at, *step):
            if stretch == 1.0:  # a plain step lowers the objective, so the rest is rounding error
                break
            stretch = 1.0
            continue
        stretch = min(_FASTEST, 1.1 * stretch)
        alpha, at = step
        path.append(at[0])
    return alpha, kkt_residual(alpha, *at[1:]), path


def _merged(Z: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct rows with an observed cell and a positive weight, and their weights of sum 1; gaps equal gaps."""
    mask = np.isnan(Z)
    counted = np.where(mask.all(axis=1), 0.0, weights)
    if not (counted > 0.0).any():
        raise InputError("no row has an observed cell and a positive weight; expected at least two.")
    rows, merged, _ = merge_rows(np.column_stack([np.where(mask, 0.0, Z), mask]), counted)
    out, gaps = rows[:, : Z.shape[1]].copy(), rows[:, Z.shape[1] :] > 0.0
    out[gaps] = np.nan
    return out, merged / merged.sum()


def fit_root(
    kernel: ColumnKernel,
    Z: np.ndarray,
    weights: np.ndarray,
    *,
    solver: str = "auto",
    tol: float = 1e-8,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
    max_centers: int = MOST_CENTERS,
    rng: np.random.Generator | None = None,
) -> ColumnFit:
    """Fit the density f^2/Z to rows that may have missing cells.

    Parameters
    ----------
    kernel : ColumnKernel
        Kernel bound to the columns.
    Z : array of shape (n, d)
        Rows in units of the length scale, NaN for missing cells. Empty rows are left out.
    weights : array of shape (n,)
        Nonnegative weights.
    solver : str, default="auto"
        Solver of the scaling equations, for complete rows.
    tol : float, default=1e-8
        Residual to reach; with gaps, 100 times as much.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    max_centers : int, default=2000
        Largest number of centres if there are gaps; fewer if the matrices of all pairs of centres would exceed `memory_limit`.
    rng : Generator, optional
        Random generator for the cells that are filled to make centres of rows with gaps.

    Returns
    -------
    ColumnFit

    Raises
    ------
    InputError
        If no row with a positive weight has an observed cell.
    """
    rows, w = _merged(Z, weights)
    complete = ~np.isnan(rows).any(axis=1)
    budget: dict[str, Any] = {"memory_limit": memory_limit, "n_jobs": n_jobs}
    if complete.all():
        solution = SCALING_SOLVERS[solver](Operator(kernel, rows, **budget).store(), w, tol)
        density = ColumnDensity(kernel, rows, solution.coefficients, True, **budget)
        return ColumnFit(density, solution.residual, solution.n_iter, [])
    rng = np.random.default_rng(0) if rng is None else rng
    most = max(2, min(max_centers, math.isqrt(int(memory_limit / _PAIR_BYTES))))
    centers, filled = completed(kernel, rows, w, complete, most, rng)
    start = np.full(len(centers), 1.0 / len(centers))
    start /= math.sqrt(float(start @ Operator(kernel, centers, **budget).matvec(start)))
    problem = GapProblem(kernel, centers, rows, w, **budget)
    alpha, residual, path = solve_gaps(problem, start, 100.0 * tol)
    kept = alpha > math.exp(0.5 * _SMALLEST)
    own = np.ascontiguousarray(centers[kept])
    return ColumnFit(
        ColumnDensity(kernel, own, alpha[kept], True, filled=filled[kept], **budget), residual, len(path), path
    )


def completed(
    kernel: ColumnKernel, rows: np.ndarray, w: np.ndarray, complete: np.ndarray, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `most` centres, complete rows and rows with gaps that are filled, and a mask of the filled cells."""
    chosen = np.flatnonzero(complete)
    others = np.flatnonzero(~complete)
    if len(rows) > most:
        chosen = np.sort(rng.permutation(chosen)[:most])
        others = np.sort(rng.permutation(others)[: most - len(chosen)])
    filled = fill_from_neighbours(kernel, rows[others], rows, w, rng)
    centers, _, place = merge_rows(np.concatenate([rows[chosen], filled]), np.ones(len(chosen) + len(others)))
    return centers, _filled_cells(np.concatenate([rows[chosen], rows[others]]), place, len(centers))


def _filled_cells(rows: np.ndarray, place: np.ndarray, n_centers: int) -> np.ndarray:
    """Return a mask of the cells of centres that are missing in all rows that the centre was made of."""
    filled = np.ones((n_centers, rows.shape[1]), dtype=bool)
    fewest = np.argsort(
        -np.isnan(rows).sum(axis=1), kind="stable"
    )  # of several rows, the one with the fewest gaps counts
    filled[place[fewest]] = np.isnan(rows[fewest])
    return filled


def fit_mixture(
    kernel: ColumnKernel,
    Z: np.ndarray,
    weights: np.ndarray,
    *,
    tol: float = 1e-8,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
    max_iter: int = 500,
    rng: np.random.Generator | None = None,
) -> ColumnFit:
    r"""Fit a kernel density estimate to rows that may have missing cells.

    A complete row has its weight as its coefficient. The weight of a row with gaps is divided among the complete rows in
    proportion to their kernels at its observed cells:
    :math:`\alpha_j = w_j + \sum_i w_i \alpha_j k_o(z_i, c_j)/ \sum_l \alpha_l k_o(z_i, c_l)`. This is solved by fixed-point
    iteration (an EM algorithm for :math:`\sum_j w_j \log\alpha_j + \sum_i w_i \log\sum_j \alpha_j k_o(z_i, c_j)`, which is
    concave). If fewer than 100 rows are complete, rows with gaps are filled from their neighbours and used as complete rows.

    Parameters
    ----------
    kernel, Z, weights, memory_limit, n_jobs
        As for :func:`fit_root`.
    tol : float, default=1e-8
        Largest relative change of a coefficient at which the iteration ends.
    max_iter : int, default=500
        Largest number of iterations.
    rng : Generator, optional
        Random generator for the cells that are filled.

    Returns
    -------
    ColumnFit
        Its residual is the largest relative change in the last iteration.

    Raises
    ------
    InputError
        If no row with a positive weight has an observed cell, or a column has none.
    """
    rows, w = _merged(Z, weights)
    complete = ~np.isnan(rows).any(axis=1)
    budget: dict[str, Any] = {"memory_limit": memory_limit, "n_jobs": n_jobs}
    if complete.sum() < min(_FEWEST, len(rows)):
        rng = np.random.default_rng(0) if rng is None else rng
        centers, mass, place = merge_rows(
            np.concatenate([rows[complete], fill_from_neighbours(kernel, rows[~complete], rows, w, rng)]),
            np.concatenate([w[complete], w[~complete]]),
        )
        filled = _filled_cells(np.concatenate([rows[complete], rows[~complete]]), place, len(centers))
        return ColumnFit(ColumnDensity(kernel, centers, mass, False, filled=filled, **budget), 0.0, 0, [])
    centers, own = rows[complete], w[complete]
    alpha = own / own.sum()
    path: list[float] = []
    residual = 0.0
    if not complete.all():
        others, v = rows[~complete], w[~complete]
        parts = [
            (v[pattern.rows], _relative(kernel, others[pattern.rows], centers, pattern.observed, budget))
            for pattern in patterns_of(others)
        ]
        residual = math.inf
        while residual > tol and len(path) < max_iter:
            found, value = own.copy(), float(own @ np.log(alpha))
            for mass, terms in parts:
                f = terms @ alpha
                value += float(mass @ np.log(f))
                found += alpha * ((mass / f) @ terms)
            residual = float(np.max(np.abs(found / alpha - 1.0)))
            alpha = found
            path.append(-value)
    return ColumnFit(ColumnDensity(kernel, centers, alpha, False, **budget), residual, len(path), path)


def _relative(
    kernel: ColumnKernel, z: np.ndarray, centers: np.ndarray, observed: np.ndarray, budget: dict[str, Any]
) -> np.ndarray:
    """Compute the kernel of the observed cells with the centres, divided by its largest value in a row."""
    x, y = np.ascontiguousarray(z[:, observed]), np.ascontiguousarray(centers[:, observed])
    logs = Operator(kernel.take(observed), x, y, block=LOG_VALUE, **budget).dense()
    logs -= logs.max(axis=1, keepdims=True)
    return np.asarray(np.exp(logs, out=logs))


def fill_from_neighbours(
    kernel: ColumnKernel, Z: np.ndarray, donors: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Fill missing cells with those of donors, which are drawn with the kernel of the cells that both have as weight.

    Parameters
    ----------
    kernel : ColumnKernel
        Kernel bound to the columns.
    Z : array of shape (n, d)
        Rows to fill.
    donors : array of shape (m, d)
        Rows whose cells are used; they may have gaps too.
    weights : array of shape (m,)
        Weights of the donors.
    rng : Generator
        Random generator of the draws.

    Returns
    -------
    array of shape (n, d)

    Raises
    ------
    InputError
        If a column is missing in all donors.
    """
    chosen = neighbours_of_gaps(kernel, Z, donors, weights, rng)
    cells = np.take_along_axis(donors, np.maximum(chosen, 0), axis=0)
    return np.asarray(np.where(chosen < 0, Z, cells))


def neighbours_of_gaps(
    kernel: ColumnKernel, Z: np.ndarray, donors: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw the donor of each missing cell as :func:`fill_from_neighbours` does; return numbers of rows, -1 for known cells."""
    have = ~np.isnan(donors)
    if not have.any(axis=0).all():
        raise InputError(f"column {int(np.argmin(have.any(axis=0)))} has no observed cell; leave it out.")
    cells = np.where(have, donors, 0.0)
    step = max(1, _FILL_CELLS // len(donors))
    parts = [
        _neighbours(kernel, Z[start : start + step], cells, have, weights, rng) for start in range(0, len(Z), step)
    ]
    return np.concatenate(parts) if parts else np.empty(Z.shape, dtype=np.intp)


def _neighbours(
    kernel: ColumnKernel,
    Z: np.ndarray,
    cells: np.ndarray,
    have: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Do for a few rows what :func:`neighbours_of_gaps` does; cells that donors do not `have` are 0 in `cells`."""
    out, seen = np.full(Z.shape, -1, dtype=np.intp), ~np.isnan(Z)
    logs, shared = np.zeros((len(Z), len(cells))), seen.astype(float) @ have.T.astype(float)
    for j in range(Z.shape[1]):
        x = np.where(seen[:, [j]], Z[:, [j]], 0.0)
        one = Operator(kernel.take(np.array([j])), x, np.ascontiguousarray(cells[:, [j]]), block=LOG_VALUE).dense()
        logs += np.where(seen[:, [j]] & have[:, j], one, 0.0)
    # Sums over few shared cells are small, so the mean over the shared cells is compared.
    most = np.maximum(shared.max(axis=1, keepdims=True), 1.0)
    logs = np.where(shared > 0.0, logs / np.maximum(shared, 1.0) * most, -1e3)
    for j in range(Z.shape[1]):
        gaps = np.flatnonzero(~seen[:, j])
        mass = np.where(have[:, j], logs[gaps], -np.inf)
        mass -= mass.max(axis=1, keepdims=True)
        out[gaps, j] = _one_a_row(weights * np.exp(mass), rng)
    return out
