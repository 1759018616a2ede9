r"""Weights of a pool of laws, and its calibration by a beta distribution.

A linear pool :math:`F = \sum_k \pi_k F_k` of calibrated laws is too wide; :math:`B(F; a, b)` with the distribution function of a
beta distribution corrects that (Ranjan and Gneiting, JRSS B 72, 2010; Gneiting and Ranjan, Electronic Journal of Statistics 7,
2013).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import betainc, betaln

LEAST = 1e-12  # least probability of a cell
# Strength of the prior of log a and log b at 0, in nats.
_PRIOR = 2.0
_BETA_BOUND = 1.0


def pool_weights(P: np.ndarray, weights: np.ndarray, steps: int = 50, floor: float = 0.0) -> np.ndarray:
    """Return the weights of laws in a pool that EM finds from equal ones in a fixed number of steps.

    `P`, (n, k), holds the probability or density of each known cell under each law without its own row, `weights` those of the
    rows; `floor` of the weight is spread evenly over the laws. A fixed number of steps is continuous in P.
    """
    share = weights / weights.sum()
    P = np.maximum(P, LEAST)
    found = np.full(P.shape[1], 1.0 / P.shape[1])
    for _ in range(steps):
        found = found * (P.T @ (share / (P @ found)))
    found = (1.0 - floor) * found + floor / len(found)
    return np.asarray(found / found.sum())


def beta_transform(low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return a and b of the beta distribution that makes cells between values `low` and `high` of the pool likeliest."""
    share = weights / weights.sum() * len(weights)

    def loss(theta: np.ndarray) -> float:
        a, b = np.exp(theta)
        mass = betainc(a, b, high) - betainc(a, b, low)
        return float(-(share @ np.log(np.maximum(mass, LEAST))) + _PRIOR * theta @ theta)

    start = np.array([[0.0, 0.0], [0.15, 0.0], [0.0, 0.15]])
    found = minimize(
        loss,
        start[0],
        method="Nelder-Mead",
        bounds=[(-_BETA_BOUND, _BETA_BOUND)] * 2,
        options={"initial_simplex": start, "xatol": 1e-9, "fatol": 1e-9, "maxfev": 150},
    )
    a, b = np.exp(found.x)
    return float(a), float(b)


def log_beta_density(F: np.ndarray, a: float, b: float) -> np.ndarray:
    """Return the logarithm of the density of a beta distribution; F at 0 and 1 counts as the next number inside."""
    F = np.clip(F, 1e-300, 1.0 - 1e-16)
    return np.asarray((a - 1.0) * np.log(F) + (b - 1.0) * np.log1p(-F) - betaln(a, b))
