"""Ratio of two densities by the Kullback-Leibler importance estimation procedure, as a baseline for LSDD.

M. Sugiyama, T. Suzuki, S. Nakajima, H. Kashima, P. von Buenau, M. Kawanabe, "Direct importance estimation for covariate shift
adaptation", Annals of the Institute of Statistical Mathematics 60, 2008.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from isopleth.core.rows import folds_of
from isopleth.difference.grids import factors, spread_within

# Kernels with a smaller mean over the second sample are left out, because they would be divided by nearly 0.
_UNSEEN = 1e-200


def divergence(
    x: np.ndarray, y: np.ndarray, seed: int, *, centers: int = 100, cv: int = 3, tol: float = 0.02, max_iter: int = 2000
) -> float:
    r"""Estimate the Kullback-Leibler divergence of the density of x from that of y, in nats.

    The ratio :math:`w(x) = \sum_l a_l e^{-|x - c_l|^2/2}`, with :math:`a_l \ge 0` and centres drawn from x, maximises the mean of
    :math:`\log w(x_i)` subject to a mean :math:`w(y_j)` of 1; that maximum is the estimate. The length scale is the candidate of
    LSDD's grid with the largest held-out mean log ratio.
    """
    rng = np.random.default_rng(np.random.RandomState(seed).randint(2**31))
    chosen = x[np.sort(rng.permutation(len(x))[:centers])]
    fold = folds_of(len(x), int(rng.integers(2**31)), min(cv, len(x)))
    spread = spread_within(np.vstack([x, y]), np.repeat(np.eye(2), (len(x), len(y)), axis=0))
    candidates = [functions_of(chosen, x, y, factor * spread) for factor in factors(x.shape[1])]
    best = max(candidates, key=lambda functions: _held_out(functions, fold, tol, max_iter))
    return float(np.mean(np.log(best @ mixture_weights(best, tol, max_iter)[0])))


def functions_of(centers: np.ndarray, x: np.ndarray, y: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the kernels at the rows of x, scaled to mean 1 over y; 0 where y is too far from a centre."""
    at_x, at_y = (np.exp(-0.5 * cdist(rows / scale, centers / scale, "sqeuclidean")) for rows in (x, y))
    return over_means(at_x, at_y)


def over_means(at_x: np.ndarray, at_y: np.ndarray) -> np.ndarray:
    """Divide functions at the rows of x by their means over y."""
    means = at_y.mean(axis=0)
    return np.where(means > _UNSEEN, at_x / np.maximum(means, _UNSEEN), 0.0)


def _held_out(functions: np.ndarray, fold: np.ndarray, tol: float, max_iter: int) -> float:
    """Return the mean log ratio over the rows of x, each from the ratio fitted without its fold."""
    out = np.empty(len(fold))
    for k in range(int(fold.max()) + 1):
        inside = functions[fold != k]
        if not inside.max(axis=1).min() > 0:
            return -np.inf
        with np.errstate(divide="ignore"):
            out[fold == k] = np.log(functions[fold == k] @ mixture_weights(inside, tol, max_iter)[0])
    return float(out.mean())


def mixture_weights(functions: np.ndarray, tol: float, max_iter: int) -> tuple[np.ndarray, int, float]:
    """Compute the weights on the simplex that maximise the mean log of a mixture; return steps and a bound on the rest too.

    Each step multiplies the weights by the gradient, which never lowers the mean log. The objective is concave, so the
    largest entry of the gradient less 1 bounds the distance from the maximum.
    """
    functions = functions / functions.max(axis=1, keepdims=True)  # changes no weights, and nothing overflows
    weights = np.full(functions.shape[1], 1.0 / functions.shape[1])
    step = 0
    while True:
        gradient = (1.0 / (functions @ weights)) @ functions / len(functions)
        residual = float(gradient.max() - 1.0)
        if residual <= tol or step == max_iter:
            return weights, step, residual
        weights *= gradient
        step += 1
