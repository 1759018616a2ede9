"""Newton's method for the scaling equations: every positive definite kernel, in a handful of steps."""

from __future__ import annotations

import math
from dataclasses import replace

from isopleth._namespace import Array, namespace
from isopleth.operators import Operator
from isopleth.solvers.conjugate_gradients import conjugate_gradients
from isopleth.solvers.fixed_point import fixed_point
from isopleth.solvers.scaling import ScalingSolution, measure, objective, positive_start


def _start(op: Operator, w: Array) -> ScalingSolution:
    """Coefficients with K alpha > 0 everywhere: the fixed point while it stays positive, else any."""
    start = fixed_point(op, w, tol=0.1, max_iter=10)
    return start if math.isfinite(start.residual) else positive_start(op, w)


def _direction(op: Operator, w: Array, at: ScalingSolution) -> tuple[Array, int]:
    """Newton's direction, preconditioned so that its matrix I + DKD has eigenvalues between 1 and about 2 near the solution."""
    xp = namespace(w)
    d = xp.sqrt(w) / at.values
    gradient = at.coefficients - w / at.values
    y, n_iter = conjugate_gradients(
        lambda v: v + d * op.matvec(d * v), -gradient / d, tol=min(1e-2, at.residual), max_iter=200
    )
    return d * y, n_iter


def _line_search(at: ScalingSolution, delta: Array, image: Array, w: Array) -> float:
    """Step of sufficient decrease that keeps K alpha positive; the full one where the relative change is already small."""
    xp = namespace(w)
    change = image / at.values
    if float(xp.max(xp.abs(change))) <= 0.25:
        return 1.0
    lowest = float(xp.min(change))
    step = min(1.0, -0.95 / lowest) if lowest < 0.0 else 1.0
    slope = float(xp.sum((at.coefficients - w / at.values) * image))
    start = objective(at.coefficients, at.values, w)
    while step > 1e-12:
        if objective(at.coefficients + step * delta, at.values + step * image, w) <= start + 1e-4 * step * slope:
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

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Laplacian
    >>> from isopleth.operators import Operator
    >>> from isopleth.solvers import newton
    >>> w = np.array([0.25, 0.75])
    >>> solution = newton(Operator(Laplacian(), np.array([[0.0], [1.0]])), w)
    >>> (solution.coefficients * solution.values).round(6)
    array([0.25, 0.75])
    """
    at = start if start is not None and math.isfinite(start.residual) else _start(op, w)
    best = at
    for _ in range(max_iter):
        if at.residual <= tol or not math.isfinite(at.residual):
            break
        delta, n_iter = _direction(op, w, at)
        image = op.matvec(delta)
        step = _line_search(at, delta, image, w)
        alpha = at.coefficients + step * delta
        at = measure(alpha, op.matvec(alpha), w, at.n_iter + n_iter + 2)
        if step == 0.0 or (at.residual >= best.residual and at.residual < 1e-6):  # rounding is all that is left
            break
        best = min(best, at, key=lambda solution: solution.residual)
    best = min(best, at, key=lambda solution: solution.residual)
    return replace(best, n_iter=at.n_iter)
