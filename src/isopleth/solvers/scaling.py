r"""Symmetric scaling of a kernel matrix: :math:`\alpha_i (K\alpha)_i = w_i` with :math:`K\alpha > 0`.

These are the optimality conditions of SOSREP, :math:`\min_f -\sum_i w_i \log f(x_i)^2 + |f|^2`, for :math:`f = \sum_i
\alpha_i k(x_i, \cdot)` and weights of sum 1. On the branch f > 0 the problem is convex and its solution unique.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from isopleth.core.arrays import Array, Backend, namespace, to_numpy
from isopleth.core.threads import slices
from isopleth.operators import Operator
from isopleth.solvers.krylov import conjugate_gradients


@dataclass(frozen=True)
class ScalingSolution:
    r"""Result of a scaling solver: `coefficients` alpha and `values` K alpha.

    `residual` is :math:`\max_i |\alpha_i (K\alpha)_i / w_i - 1|`, and infinite unless K alpha > 0. `n_iter` is the number
    of products with the matrix.
    """

    coefficients: Array
    values: Array
    residual: float
    n_iter: int

    def converged(self, tol: float) -> bool:
        """Tell whether the residual is at most `tol`."""
        return self.residual <= tol


def measure(alpha: Array, values: Array, w: Array, n_iter: int) -> ScalingSolution:
    """Return coefficients with their residual."""
    xp = namespace(w)
    residual = float(xp.max(xp.abs(alpha * values / w - 1.0))) if bool(xp.all(values > 0.0)) else math.inf
    return ScalingSolution(alpha, values, residual, n_iter)


def objective(alpha: Array, values: Array, w: Array) -> float:
    """Return half of the objective of SOSREP, on the branch K alpha > 0."""
    xp = namespace(w)
    return float(0.5 * xp.sum(alpha * values) - xp.sum(w * xp.log(values)))


def normalised(alpha: Array, values: Array) -> tuple[Array, Array]:
    """Return both, rescaled to the norm of the optimum, alpha . K alpha = 1."""
    norm = math.sqrt(float(namespace(alpha).sum(alpha * values)))
    return alpha / norm, values / norm


def equal_start(op: Operator, w: Array) -> ScalingSolution:
    """Return equal coefficients, which are on the branch for every kernel without negative values."""
    ones = namespace(w).ones_like(w)
    return measure(*normalised(ones, op.matvec(ones)), w, 1)


def positive_start(op: Operator, w: Array) -> ScalingSolution:
    """Return coefficients with K alpha > 0: equal ones if possible, else a rough solution of K alpha = 1."""
    start = equal_start(op, w)
    if math.isfinite(start.residual):
        return start
    xp = namespace(w)
    alpha, n_iter = conjugate_gradients(
        op.matvec, xp.ones_like(w), tol=1e-10, max_iter=10 * w.shape[0], enough=lambda r: float(xp.max(r)) < 0.9
    )
    return measure(*normalised(alpha, op.matvec(alpha)), w, start.n_iter + n_iter + 1)


# The map log alpha -> (log w + log alpha - log K alpha)/2 has a Jacobian with eigenvalues in [0, 1/2] at the
# solution, for any positive semi-definite K without negative entries. Chebyshev's optimal damping and momentum for
# that interval take the rate from 1/2 to 0.172.
_RATE = 3.0 - 2.0 * math.sqrt(2.0)
_MOMENTUM = _RATE**2
_DAMPING = (1.0 + _MOMENTUM) / 0.75


def products_of_fixed_point(tol: float) -> int:
    """Return about how many products :func:`fixed_point` takes: by its rate, and a few to begin with."""
    return 4 + max(0, math.ceil(math.log(tol) / math.log(_RATE)))


def fixed_point(op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 500) -> ScalingSolution:
    r"""Damped fixed point of :math:`\alpha \leftarrow \sqrt{w\alpha / K\alpha}`, for kernels without negative values.

    Parameters
    ----------
    op : Operator
        The kernel matrix K of the points with themselves.
    w : array of shape (n,)
        Positive weights of sum 1.
    tol : float
        Largest relative error of a row sum.
    max_iter : int
        Largest number of products.

    Returns
    -------
    ScalingSolution
        The best iterate. If a product has an entry that is not positive, the iteration stops with the iterate before.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import Laplacian
    >>> from isopleth.operators import Operator
    >>> from isopleth.solvers import fixed_point
    >>> w = np.array([0.25, 0.75])
    >>> solution = fixed_point(Operator(Laplacian(), np.array([[0.0], [1.0]])), w)
    >>> (solution.coefficients * solution.values).round(6)
    array([0.25, 0.75])
    """
    xp = namespace(w)
    best = equal_start(op, w)
    if not math.isfinite(best.residual):
        return best
    log_alpha = xp.log(best.coefficients)
    momentum = xp.zeros_like(log_alpha)
    accelerate = True
    while best.residual > tol and best.n_iter < max_iter:
        step = 0.5 * (xp.log(w) - log_alpha - xp.log(best.values))
        momentum = _DAMPING * step + _MOMENTUM * momentum if accelerate else step
        alpha = xp.exp(log_alpha + momentum)
        found = measure(alpha, op.matvec(alpha), w, best.n_iter + 1)
        if math.isinf(found.residual):
            return replace(best, n_iter=found.n_iter)
        if found.residual > best.residual:
            if not accelerate:  # the plain map is a contraction, so a growing error is rounding
                return replace(best, n_iter=found.n_iter)
            accelerate = False
            best = replace(best, n_iter=found.n_iter)
            continue
        accelerate = True
        log_alpha, best = log_alpha + momentum, found
    return best


def _start(op: Operator, w: Array) -> ScalingSolution:
    """Return coefficients with K alpha > 0, near the solution if the fixed-point iteration stays positive."""
    start = fixed_point(op, w, tol=0.1, max_iter=10)
    return start if math.isfinite(start.residual) else positive_start(op, w)


def _direction(op: Operator, w: Array, at: ScalingSolution) -> tuple[Array, int]:
    """Compute Newton's direction, scaled so that its matrix I + DKD has eigenvalues from 1 to about 2 near the solution."""
    xp = namespace(w)
    d = xp.sqrt(w) / at.values
    gradient = at.coefficients - w / at.values
    y, n_iter = conjugate_gradients(
        lambda v: v + d * op.matvec(d * v), -gradient / d, tol=min(1e-2, at.residual), max_iter=200
    )
    return d * y, n_iter


def _line_search(at: ScalingSolution, delta: Array, image: Array, w: Array) -> float:
    """Return a step of sufficient decrease that keeps K alpha positive; the full step if the relative change is small."""
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
        Largest number of Newton steps.
    start : ScalingSolution, optional
        First iterate; its values must be positive.

    Returns
    -------
    ScalingSolution
        The best iterate; `n_iter` counts products with the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import Laplacian
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
        if step == 0.0 or (at.residual >= best.residual and at.residual < 1e-6):  # only rounding is left
            break
        best = min(best, at, key=lambda solution: solution.residual)
    best = min(best, at, key=lambda solution: solution.residual)
    return replace(best, n_iter=at.n_iter)


# Rows of a block whose square part of the matrix is kept: enough for threads, few for the loop over single rows.
_BLOCK = 512


def coordinate_descent(op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 500) -> ScalingSolution:
    r"""Set one coefficient after another to its own optimum.

    The scaling equations are the conditions of :math:`\min_{\alpha>0} \tfrac12 \alpha^T K \alpha - \sum_i w_i \log\alpha_i`,
    which is convex. With the others fixed, the best :math:`\alpha_i` is the positive root of :math:`K_{ii}\alpha_i^2 + c_i
    \alpha_i - w_i = 0`, :math:`c_i = \sum_{j\ne i} K_{ij}\alpha_j`. Every sweep therefore lowers the objective, for every
    positive definite kernel. The matrix is used in blocks of rows, which are computed if they are not stored.

    Parameters
    ----------
    op, w, tol
        As for :func:`fixed_point`.
    max_iter : int
        Largest number of sweeps.

    Returns
    -------
    ScalingSolution
        The last iterate, which is the lowest; a sweep counts as one product.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import Laplacian
    >>> from isopleth.operators import Operator
    >>> from isopleth.solvers import coordinate_descent
    >>> w = np.array([0.25, 0.75])
    >>> solution = coordinate_descent(Operator(Laplacian(), np.array([[0.0], [1.0]])), w)
    >>> (solution.coefficients * solution.values).round(6)
    array([0.25, 0.75])
    """
    start = equal_start(op, w)
    # A loop over single numbers runs on the CPU, wherever the matrix is.
    alpha, n_iter, before = np.array(to_numpy(start.coefficients)), start.n_iter, math.inf
    for _ in range(max_iter):
        violation = _sweep(op, w, alpha)
        n_iter += 1
        # Changes after a row was set alter its residual by about half the largest violation, so the tolerance is met when the
        # sweep ends. Close to the solution, a violation that does not decrease is rounding.
        if violation <= tol or before <= violation < 1e-6:
            break
        before = violation
    found = Backend.of(w).array(alpha)
    return measure(found, op.matvec(found), w, n_iter + 1)


def _sweep(op: Operator, w: Array, alpha: np.ndarray) -> float:
    """Set every coefficient once, in place, and return the largest residual of a row before it was set."""
    backend, weights = Backend.of(w), to_numpy(w)
    n = w.shape[0]
    half = op.budget.within(0.5 * op.budget.memory)  # one half for the square, one for the product
    itemsize = namespace(w).finfo(w.dtype).bits // 8
    worst = 0.0
    for rows in slices(n, min(_BLOCK, math.sqrt(half.memory / itemsize))):
        values = to_numpy(op.part(rows, slice(0, n), half).matvec(backend.array(alpha)))
        # The square has no name here, so that its memory is free before the next one is computed.
        worst = max(
            worst, _sweep_block(to_numpy(op.part(rows, rows, half).dense()), values, alpha, weights, rows.start)
        )
    return worst


def _sweep_block(square: np.ndarray, values: np.ndarray, alpha: np.ndarray, w: np.ndarray, start: int) -> float:
    """Sweep over the rows of one block, whose `values` are K alpha and are updated."""
    worst = 0.0
    for i in range(square.shape[0]):
        k, old, weight = float(square[i, i]), float(alpha[start + i]), float(w[start + i])
        value = float(values[i])
        new = _positive_root(k, value - k * old, weight)
        worst = max(worst, abs(old * value / weight - 1.0))
        alpha[start + i] = new
        values += (new - old) * square[i, :]
    return worst


def _positive_root(k: float, c: float, weight: float) -> float:
    """Return the positive root of k a^2 + c a - weight = 0, in the form without cancellation."""
    root = math.sqrt(c * c + 4.0 * k * weight)
    return 2.0 * weight / (c + root) if c > 0.0 else (root - c) / (2.0 * k)


def auto(op: Operator, w: Array, tol: float = 1e-8) -> ScalingSolution:
    """Solve by the fixed point if the kernel has no negative values, and otherwise, or if that fails, by Newton's method."""
    start = fixed_point(op, w, tol) if op.kernel.nonnegative else None
    if start is not None and start.converged(tol):
        return start
    return newton(op, w, tol, start=start)


# Step of the natural gradient, with which an iterate is the mean of alpha and w / K alpha. Below 1/2, alpha stays positive.
_NATURAL_STEP = 0.25


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
    >>> from isopleth.kernels import Laplacian
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
        alpha = at.coefficients - 2.0 * _NATURAL_STEP * (at.coefficients - w / at.values)
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
    >>> from isopleth.kernels import Laplacian
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
