"""The damped fixed point of the scaling equations: the fastest solver for kernels without negative values."""

from __future__ import annotations

import math
from dataclasses import replace

from isopleth._namespace import Array, namespace
from isopleth.operators import Operator
from isopleth.solvers.scaling import ScalingSolution, equal_start, measure

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

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Laplacian
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
            if not accelerate:  # the plain map contracts: what grows now is rounding
                return replace(best, n_iter=found.n_iter)
            accelerate = False
            best = replace(best, n_iter=found.n_iter)
            continue
        accelerate = True
        log_alpha, best = log_alpha + momentum, found
    return best
