"""Weights of a mixture by maximum likelihood."""

from __future__ import annotations

import numpy as np

from isopleth.backend import Array, Backend, namespace


def mixture_weights(functions: Array, tol: float, max_iter: int) -> tuple[Array, int, float]:
    r"""Weights on the simplex that maximise the mean log of a mixture.

    Each step multiplies the weights by the gradient, which never lowers the mean log. The gradient also bounds what is left:
    the objective is concave, so that no weights are better by more than its largest entry less 1.

    Parameters
    ----------
    functions : array of any library, of shape (n, b)
        Values of the functions at the rows; each row has a positive one.
    tol : float
        Bound on what is left at which to stop, in nats.
    max_iter : int
        Most steps.

    Returns
    -------
    weights : array of shape (b,), of the library and on the device of `functions`
    n_iter : int
        Steps made.
    residual : float
        The bound on what is left.
    """
    n, b = functions.shape
    xp = namespace(functions)
    functions = functions / xp.max(functions, axis=1, keepdims=True)  # changes no weights, and nothing overflows
    weights = Backend.of(functions).array(np.full(b, 1.0 / b))
    step = 0
    while True:
        gradient = (1.0 / (functions @ weights)) @ functions / n
        residual = float(xp.max(gradient) - 1.0)
        if residual <= tol or step == max_iter:
            return weights, step, residual
        weights *= gradient
        step += 1
