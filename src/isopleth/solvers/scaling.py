r"""Symmetric scaling of a kernel matrix: :math:`\alpha_i (K\alpha)_i = w_i` with :math:`K\alpha > 0`.

These are the optimality conditions of SOSREP, :math:`\min_f -\sum_i w_i \log f(x_i)^2 + |f|^2`, for :math:`f = \sum_i
\alpha_i k(x_i, \cdot)` and weights of sum 1. On the branch f > 0 the problem is convex and its solution unique.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from isopleth._namespace import Array, namespace
from isopleth.operators import Operator
from isopleth.solvers.conjugate_gradients import conjugate_gradients


@dataclass(frozen=True)
class ScalingSolution:
    """What a scaling solver found: `coefficients` alpha, `values` K alpha, and max |alpha_i (K alpha)_i / w_i - 1|."""

    coefficients: Array
    values: Array
    residual: float
    n_iter: int

    def converged(self, tol: float) -> bool:
        """Whether the residual is within `tol`."""
        return self.residual <= tol


def _measure(alpha: Array, values: Array, w: Array, n_iter: int) -> ScalingSolution:
    xp = namespace(w)
    residual = float(xp.max(xp.abs(alpha * values / w - 1.0))) if bool(xp.all(values > 0.0)) else math.inf
    return ScalingSolution(alpha, values, residual, n_iter)


def _normalised(alpha: Array, values: Array) -> tuple[Array, Array]:
    """Rescaled to the norm that the optimum has, alpha . K alpha = 1."""
    norm = math.sqrt(float(namespace(alpha).sum(alpha * values)))
    return alpha / norm, values / norm


# The map log alpha -> (log w + log alpha - log K alpha)/2 has a Jacobian with eigenvalues in [0, 1/2] at the
# solution, for any positive semi-definite K without negative entries. Chebyshev's optimal damping and momentum for
# that interval take the rate from 1/2 to 0.172.
_RATE = 3.0 - 2.0 * math.sqrt(2.0)
_MOMENTUM = _RATE**2
_DAMPING = (1.0 + _MOMENTUM) / 0.75


def fixed_point(op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 500) -> ScalingSolution:
    r"""Damped fixed point of :math:`\alpha \leftarrow \sqrt{w\alpha / K\alpha}`, for kernels without negative values.

    Parameters
    ----------
    op : Operator
        The kernel matrix K of the points with themselves.
    w : array of shape (n,)
        Positive weights of sum 1.
    tol : float
        Largest relative error of a row sum to accept.
    max_iter : int
        Products to take at most.

    Returns
    -------
    ScalingSolution
        The best iterate. Where a product has an entry that is not positive the iteration cannot go on, and the
        iterate before it is the answer.
    """
    xp = namespace(w)
    ones = xp.ones_like(w)
    alpha, values = _normalised(ones, op.matvec(ones))
    best = _measure(alpha, values, w, 1)
    if not math.isfinite(best.residual):
        return best
    log_alpha = xp.log(alpha)
    momentum = xp.zeros_like(log_alpha)
    accelerate = True
    while best.residual > tol and best.n_iter < max_iter:
        step = 0.5 * (xp.log(w) - log_alpha - xp.log(best.values))
        momentum = _DAMPING * step + _MOMENTUM * momentum if accelerate else step
        alpha = xp.exp(log_alpha + momentum)
        found = _measure(alpha, op.matvec(alpha), w, best.n_iter + 1)
        if math.isinf(found.residual):
            return replace(best, n_iter=found.n_iter)
        if found.residual > best.residual:
            if not accelerate:  # the plain map contracts: what grows now is rounding
                return replace(best, n_iter=found.n_iter)
            accelerate = False
            best = replace(best, n_iter=found.n_iter)
            continue
        accelerate = True
        log_alpha, best = log_alpha + momentum, found
    return best


def _feasible_start(op: Operator, w: Array) -> ScalingSolution:
    """Coefficients with K alpha > 0 everywhere: the fixed point while it stays positive, else K alpha = 1 solved roughly."""
    xp = namespace(w)
    start = fixed_point(op, w, tol=0.1, max_iter=10)
    if math.isfinite(start.residual):
        return start
    ones = xp.ones_like(w)
    alpha, n_iter = conjugate_gradients(
        op.matvec, ones, tol=1e-10, max_iter=10 * w.shape[0], enough=lambda r: float(xp.max(r)) < 0.9
    )
    alpha, values = _normalised(alpha, op.matvec(alpha))
    return _measure(alpha, values, w, start.n_iter + n_iter + 1)


def _newton_direction(op: Operator, w: Array, at: ScalingSolution) -> tuple[Array, int]:
    """Newton's direction, preconditioned so that its matrix I + DKD has eigenvalues between 1 and about 2 near the solution."""
    xp = namespace(w)
    d = xp.sqrt(w) / at.values
    gradient = at.coefficients - w / at.values
    y, n_iter = conjugate_gradients(
        lambda v: v + d * op.matvec(d * v), -gradient / d, tol=min(1e-2, at.residual), max_iter=200
    )
    return d * y, n_iter


def _objective(alpha: Array, values: Array, w: Array) -> float:
    xp = namespace(w)
    return float(0.5 * xp.sum(alpha * values) - xp.sum(w * xp.log(values)))


def _line_search(at: ScalingSolution, delta: Array, image: Array, w: Array) -> float:
    """Step of sufficient decrease that keeps K alpha positive; the full one where the relative change is already small."""
    xp = namespace(w)
    change = image / at.values
    if float(xp.max(xp.abs(change))) <= 0.25:
        return 1.0
    lowest = float(xp.min(change))
    step = min(1.0, -0.95 / lowest) if lowest < 0.0 else 1.0
    slope = float(xp.sum((at.coefficients - w / at.values) * image))
    start = _objective(at.coefficients, at.values, w)
    while step > 1e-12:
        if _objective(at.coefficients + step * delta, at.values + step * image, w) <= start + 1e-4 * step * slope:
            return step
        step *= 0.5
    return 0.0


def newton(
    op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 100, start: ScalingSolution | None = None
) -> ScalingSolution:
    """Newton's method with conjugate gradients, for every positive definite kernel, negative values or not.

    Parameters
    ----------
    op, w, tol
        As for :func:`fixed_point`.
    max_iter : int
        Newton steps to take at most.
    start : ScalingSolution, optional
        Where to begin; its values must be positive.

    Returns
    -------
    ScalingSolution
        The best iterate; `n_iter` counts products with the matrix.
    """
    at = start if start is not None and math.isfinite(start.residual) else _feasible_start(op, w)
    best = at
    for _ in range(max_iter):
        if at.residual <= tol or not math.isfinite(at.residual):
            break
        delta, n_iter = _newton_direction(op, w, at)
        image = op.matvec(delta)
        step = _line_search(at, delta, image, w)
        alpha = at.coefficients + step * delta
        at = _measure(alpha, op.matvec(alpha), w, at.n_iter + n_iter + 2)
        if step == 0.0 or (at.residual >= best.residual and at.residual < 1e-6):  # rounding is all that is left
            break
        best = min(best, at, key=lambda solution: solution.residual)
    best = min(best, at, key=lambda solution: solution.residual)
    return replace(best, n_iter=at.n_iter)


def auto(op: Operator, w: Array, tol: float = 1e-8) -> ScalingSolution:
    """The fixed point where the kernel has no negative values, Newton's method for the others and for what it leaves."""
    start = fixed_point(op, w, tol) if op.kernel.nonnegative else None
    if start is not None and start.converged(tol):
        return start
    return newton(op, w, tol, start=start)


SCALING_SOLVERS: dict[str, Callable[[Operator, Array, float], ScalingSolution]] = {
    "auto": auto,
    "fixed_point": fixed_point,
    "newton": newton,
}
"""Names that `solver=` accepts, and the list that the tests go through."""
