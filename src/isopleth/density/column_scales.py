r"""A length scale for each column by the leave-one-out likelihood of a kernel density estimate.

One factor for all columns cannot say that a column is irrelevant to the others, or that it is known to many digits. The log
likelihood of every row under the estimate of all other rows,

.. math:: L = \sum_i w_i \log \sum_{j \ne i} w_j \prod_k \kappa_k(z_{ik}, c_{jk}),

with kernels :math:`\kappa_k` of integral (or sum) 1 over the known cells of row i, has its gradient in all scales from one pass
over pairs of rows. Rows with gaps are filled from their neighbours where they serve as centres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from isopleth.density.hot_deck import donors_of_gaps, some_rows
from isopleth.kernels.product import ColumnKernel
from isopleth.operators.threads import ONE_BLAS_THREAD, check_stopped

# Rows by which scales are chosen: their pairs are visited some fifty times.
MOST_ROWS = 500

# Factors of the length scales of the rule that the search begins with. Values that many rows share would take a scale to 0.
_LEAST, _MOST = 0.1, 30.0
_LEAST_RHO, _MOST_RHO = 1e-4, 0.95
_STEPS = 100
# Relative change of the likelihood at which the search ends: where it stops earlier, the last bits of the data decide when.
_FLAT = 1e-13


@dataclass(frozen=True)
class ColumnScales:
    """Scales of the columns of a table."""

    factors: np.ndarray  # (p,): factors of the length scales of numeric columns
    rho: np.ndarray  # (q,): values of unlike categories
    # mean leave-one-out log density of the known cells of a row, in units of the scales at the beginning
    log_likelihood: float


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
) -> ColumnScales:
    """Choose scales by the leave-one-out likelihood of a kernel density estimate.

    Of more than 500 rows 500 are taken, spread over the table; the scales found for these are then those of all rows by the rate
    :math:`n^{-1/(4 + d)}` at which length scales fall.
    `Z` is in units of the length scales that the search begins with, NaN where a cell is missing.
    """
    n, d = Z.shape
    chosen = some_rows(kernel, Z, weights, MOST_ROWS)
    Z, weights = Z[chosen], weights[chosen]
    known = np.flatnonzero(~np.isnan(Z).all(axis=0))  # the others stay as they are
    Z, taken = np.ascontiguousarray(Z[:, known]), kernel.take(known)
    p = taken.n_numeric
    problem = _filled_problem(taken, Z, weights)
    start = np.array(taken.rho)
    limits = [(math.log(_LEAST), math.log(_MOST))] * p
    least, most = (float(_logit(end)) for end in (_LEAST_RHO, _MOST_RHO))
    limits += [(value, value) if fixed_rho else (least, most) for value in _logit(start).tolist()]
    with ONE_BLAS_THREAD:  # several threads cost more than they gain for products of 500 x 500 numbers
        found = minimize(
            problem,
            np.concatenate([np.zeros(p), _logit(start)]),
            jac=True,
            method="L-BFGS-B",
            bounds=limits,
            options={"maxiter": _STEPS, "ftol": _FLAT, "gtol": 0.0},
        )
    fewer = (len(Z) / n) ** (1.0 / (4 + d))
    factors, rho = np.ones(kernel.n_numeric), np.array(kernel.rho)
    factors[known[:p]] = fewer * np.exp(found.x[:p])
    if not fixed_rho:
        rho[known[p:] - kernel.n_numeric] = np.clip(fewer**2 / (1.0 + np.exp(-found.x[p:])), _LEAST_RHO, _MOST_RHO)
    return ColumnScales(factors, rho, -float(found.fun))


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


def of_squares(scales: ColumnScales, kernel: ColumnKernel) -> ColumnScales:
    """Return the scales of a kernel whose square has the ones given: those for the square of a sum of kernels."""
    wider = 2.0 ** (0.5 if math.isinf(kernel.smoothness) else 1.0)
    return replace(scales, factors=wider * scales.factors, rho=np.sqrt(scales.rho))


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
    return np.clip(out, _LEAST_RHO, _MOST_RHO)
