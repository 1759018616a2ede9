r"""Symmetric scaling of a kernel matrix: :math:`\alpha_i (K\alpha)_i = w_i` with :math:`K\alpha > 0`.

These are the optimality conditions of SOSREP, :math:`\min_f -\sum_i w_i \log f(x_i)^2 + |f|^2`, for :math:`f = \sum_i
\alpha_i k(x_i, \cdot)` and weights of sum 1. On the branch f > 0 the problem is convex and its solution unique. This file
holds what its solvers share; each has a file of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from isopleth._namespace import Array, namespace
from isopleth.operators import Operator
from isopleth.solvers.conjugate_gradients import conjugate_gradients


@dataclass(frozen=True)
class ScalingSolution:
    r"""What a scaling solver found: `coefficients` alpha, `values` K alpha, :math:`\max_i |\alpha_i (K\alpha)_i / w_i - 1|`.

    Off the branch K alpha > 0 the residual is infinite. `n_iter` counts products with the matrix.
    """

    coefficients: Array
    values: Array
    residual: float
    n_iter: int

    def converged(self, tol: float) -> bool:
        """Whether the residual is within `tol`."""
        return self.residual <= tol


def measure(alpha: Array, values: Array, w: Array, n_iter: int) -> ScalingSolution:
    """Coefficients with their residual."""
    xp = namespace(w)
    residual = float(xp.max(xp.abs(alpha * values / w - 1.0))) if bool(xp.all(values > 0.0)) else math.inf
    return ScalingSolution(alpha, values, residual, n_iter)


def objective(alpha: Array, values: Array, w: Array) -> float:
    """Half of what SOSREP minimises, on the branch K alpha > 0."""
    xp = namespace(w)
    return float(0.5 * xp.sum(alpha * values) - xp.sum(w * xp.log(values)))


def normalised(alpha: Array, values: Array) -> tuple[Array, Array]:
    """Rescaled to the norm that the optimum has, alpha . K alpha = 1."""
    norm = math.sqrt(float(namespace(alpha).sum(alpha * values)))
    return alpha / norm, values / norm


def equal_start(op: Operator, w: Array) -> ScalingSolution:
    """Equal coefficients, the kernel density estimate: on the branch for every kernel without negative values."""
    ones = namespace(w).ones_like(w)
    return measure(*normalised(ones, op.matvec(ones)), w, 1)


def positive_start(op: Operator, w: Array) -> ScalingSolution:
    """Coefficients with K alpha > 0 everywhere for every kernel: equal ones where they do, else K alpha = 1 solved roughly."""
    start = equal_start(op, w)
    if math.isfinite(start.residual):
        return start
    xp = namespace(w)
    alpha, n_iter = conjugate_gradients(
        op.matvec, xp.ones_like(w), tol=1e-10, max_iter=10 * w.shape[0], enough=lambda r: float(xp.max(r)) < 0.9
    )
    return measure(*normalised(alpha, op.matvec(alpha)), w, start.n_iter + n_iter + 1)
