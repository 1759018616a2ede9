"""Gradient methods of the papers, for comparison: in the function space (natural) and in the coefficients (standard)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from isopleth.backend import Array, namespace
from isopleth.operators import Operator
from isopleth.solvers.scaling import ScalingSolution, measure, objective, positive_start

# Step of the natural gradient, with which an iterate is the mean of alpha and w / K alpha. Below 1/2, alpha stays positive.
_RATE = 0.25


def natural_gradient(op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 500) -> ScalingSolution:
    r"""Natural gradient steps, :math:`\alpha \leftarrow \alpha - 2\lambda(\alpha - w/K\alpha)` with :math:`\lambda = 1/4`.

    The gradient of SOSREP's objective in its function space [1]_, eq. 7. For kernels without negative values every step stays
    on the branch K alpha > 0, and halves the error near the solution. For other kernels it can circle around the solution until
    `max_iter`, or leave the branch and converge to a negative solution; then it stops. It returns the best iterate on the branch
    with its residual.

    Parameters
    ----------
    op, w, tol
        As for :func:`fixed_point`.
    max_iter : int
        Largest number of steps.

    Returns
    -------
    ScalingSolution
        The best iterate.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Laplacian
    >>> from isopleth.operators import Operator
    >>> from isopleth.solvers import natural_gradient
    >>> w = np.array([0.25, 0.75])
    >>> solution = natural_gradient(Operator(Laplacian(), np.array([[0.0], [1.0]])), w)
    >>> (solution.coefficients * solution.values).round(6)
    array([0.25, 0.75])
    """
    at = best = positive_start(op, w)
    for _ in range(max_iter):
        if best.residual <= tol or not math.isfinite(at.residual):
            break
        alpha = at.coefficients - 2.0 * _RATE * (at.coefficients - w / at.values)
        at = measure(alpha, op.matvec(alpha), w, at.n_iter + 1)
        if best.residual <= at.residual < 1e-6:  # the map is a contraction, so a growing error is rounding
            break
        best = min(best, at, key=lambda solution: solution.residual)
    return replace(best, n_iter=at.n_iter)


def standard_gradient(op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 1000) -> ScalingSolution:
    r"""Gradient descent in the coefficients, :math:`\alpha \leftarrow \alpha - 2\lambda K(\alpha - w/K\alpha)`.

    The other iteration of [1]_, eq. 7, which does not give the step length. Here a step first tries the best length of the
    previous step (Barzilai and Borwein), and halves it until K alpha is positive and the objective is sufficiently below the
    highest of the last ten (Grippo, Lampariello and Lucidi). It converges for every positive definite kernel, at a rate that
    depends on the condition of K: smooth kernels need many more than `max_iter` steps, which the residual shows.

    Parameters
    ----------
    op, w, tol
        As for :func:`fixed_point`.
    max_iter : int
        Largest number of steps, of two products each.

    Returns
    -------
    ScalingSolution
        The best iterate.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Sobolev Space Regularised Pre Density Models", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Laplacian
    >>> from isopleth.operators import Operator
    >>> from isopleth.solvers import standard_gradient
    >>> w = np.array([0.25, 0.75])
    >>> solution = standard_gradient(Operator(Laplacian(), np.array([[0.0], [1.0]])), w)
    >>> (solution.coefficients * solution.values).round(6)
    array([0.25, 0.75])
    """
    at = best = positive_start(op, w)
    recent: deque[float] = deque(maxlen=10)
    length = None
    for _ in range(max_iter):
        if best.residual <= tol or not math.isfinite(at.residual):
            break
        recent.append(objective(at.coefficients, at.values, w))
        gradient = op.matvec(at.coefficients - w / at.values)
        image = op.matvec(gradient)
        ideal = _best_length(at, gradient, image, w)
        step = _shortened(at, gradient, image, w, length or ideal, max(recent))
        if step == 0.0:
            break
        at = measure(at.coefficients - step * gradient, at.values - step * image, w, at.n_iter + 2)
        best = min(best, at, key=lambda solution: solution.residual)
        length = ideal
    # The values were updated step by step, so they are computed again by a product.
    return measure(best.coefficients, op.matvec(best.coefficients), w, at.n_iter + 1)


def _best_length(at: ScalingSolution, gradient: Array, image: Array, w: Array) -> float:
    """Return the step to the minimum of the second-order expansion of the objective; `image` is K gradient."""
    xp = namespace(w)
    curvature = float(xp.sum(gradient * image) + xp.sum(w * (image / at.values) ** 2))
    return float(xp.sum(gradient * gradient)) / curvature if curvature > 0.0 else 0.0


def _shortened(at: ScalingSolution, gradient: Array, image: Array, w: Array, length: float, bound: float) -> float:
    """Return `length`, halved until K alpha is positive and the objective below `bound`; 0 if that fails."""
    xp = namespace(w)
    slope = float(xp.sum(gradient * gradient))
    bound += 10.0 * float(xp.finfo(w.dtype).eps) * abs(bound)  # near the solution, steps gain less than rounding
    for _ in range(60):
        values = at.values - length * image
        if bool(xp.all(values > 0.0)):
            reached = objective(at.coefficients - length * gradient, values, w)
            if reached <= bound - 1e-4 * length * slope:
                return length
        length *= 0.5
    return 0.0
