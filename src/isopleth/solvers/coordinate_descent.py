"""Coordinate descent on the scaling equations: no step length, no start to look for, negative kernel values or not."""

from __future__ import annotations

import math

import numpy as np

from isopleth._namespace import Array, Home, namespace, to_numpy
from isopleth.operators import Operator
from isopleth.solvers.scaling import ScalingSolution, equal_start, measure

_BLOCK = 512
"""Rows whose square of the matrix is kept beside one product: enough for threads, few for the loop inside."""


def coordinate_descent(op: Operator, w: Array, tol: float = 1e-8, max_iter: int = 500) -> ScalingSolution:
    r"""One coefficient after another, each at its own optimum.

    The scaling equations are the conditions of :math:`\min_{\alpha>0} \tfrac12 \alpha^T K \alpha - \sum_i w_i \log\alpha_i`,
    which is convex. With the others fixed, the best :math:`\alpha_i` is the positive root of :math:`K_{ii}\alpha_i^2 + c_i
    \alpha_i - w_i = 0`, :math:`c_i = \sum_{j\ne i} K_{ij}\alpha_j`. So every sweep lowers the objective, for every positive
    definite kernel. The matrix is used in blocks of rows: read where it is stored, streamed where it is not.

    Parameters
    ----------
    op, w, tol
        As for :func:`fixed_point`.
    max_iter : int
        Sweeps to take at most.

    Returns
    -------
    ScalingSolution
        The last iterate, which is the lowest; a sweep counts as one product.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Laplacian
    >>> from isopleth.operators import Operator
    >>> from isopleth.solvers import coordinate_descent
    >>> w = np.array([0.25, 0.75])
    >>> solution = coordinate_descent(Operator(Laplacian(), np.array([[0.0], [1.0]])), w)
    >>> (solution.coefficients * solution.values).round(6)
    array([0.25, 0.75])
    """
    start = equal_start(op, w)
    # One number after another is work for the host, wherever the matrix is.
    alpha, n_iter, before = np.array(to_numpy(start.coefficients)), start.n_iter, math.inf
    for _ in range(max_iter):
        violation = _sweep(op, w, alpha)
        n_iter += 1
        # The moves that follow a row's turn change its residual by about half the largest violation, so the tolerance is met
        # when the sweep ends; what does not fall any more close to the solution is rounding.
        if violation <= tol or before <= violation < 1e-6:
            break
        before = violation
    found = Home.of(w).send(alpha)
    return measure(found, op.matvec(found), w, n_iter + 1)


def _sweep(op: Operator, w: Array, alpha: np.ndarray) -> float:
    """Set every coefficient once, in place; the largest residual of a row on its turn."""
    home, weights = Home.of(w), to_numpy(w)
    n = w.shape[0]
    half = 0.5 * op.memory_limit  # one half for the square, one for the product
    itemsize = namespace(w).finfo(w.dtype).bits // 8
    step = max(1, min(_BLOCK, math.isqrt(int(half / itemsize))))
    worst = 0.0
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        values = to_numpy(op.part(rows, slice(0, n), half).matvec(home.send(alpha)))
        # Passed on without a name: a square must be gone before the next one is made.
        worst = max(worst, _sweep_block(to_numpy(op.part(rows, rows, half).dense()), values, alpha, weights, start))
    return worst


def _sweep_block(square: np.ndarray, values: np.ndarray, alpha: np.ndarray, w: np.ndarray, start: int) -> float:
    """The sweep over the rows of one block, whose `values` are K alpha and are kept so."""
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
    """Of k a^2 + c a - weight = 0, in the form that does not cancel."""
    root = math.sqrt(c * c + 4.0 * k * weight)
    return 2.0 * weight / (c + root) if c > 0.0 else (root - c) / (2.0 * k)
