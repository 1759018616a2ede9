"""Choice of the samples that serve as landmarks of a Nystrom form."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state

from isopleth.errors import InputError
from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT, Operator
from isopleth.operators.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD, interruptible
from isopleth.rows import merge_rows

METHODS = ("uniform", "kmeans++", "leverage")

# Number of samples from which leverage scores are estimated, over the number of landmarks.
PILOTS = 2

# Samples in one block; larger blocks are not faster.
ROWS = 4096


def choose_landmarks(
    z: np.ndarray,
    n_landmarks: int,
    method: str = "uniform",
    *,
    kernel: Kernel,
    weights: np.ndarray | None = None,
    random_state: Any = None,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> np.ndarray:
    r"""Choose distinct samples as landmarks and return their row numbers.

    - "uniform": at random without replacement, as the theory of the Nystrom form assumes [1]_.
    - "kmeans++": each far from the previous ones, like the initial centres of k-means.
    - "leverage": at random without replacement, in proportion to ridge leverage scores of the scalar kernel,
      :math:`w_i\,\langle k_{x_i}, (C + \alpha)^{-1} k_{x_i}\rangle` with :math:`C = \sum_i w_i\, k_{x_i} \otimes k_{x_i}` [2]_.
      C is estimated from twice as many samples as landmarks, drawn by weight with replacement, and :math:`\alpha` makes the
      effective dimension of that estimate half the number of landmarks.

    A weight counts repetitions: copies of a row are one candidate with their summed weight. Drawing the copies one by one and
    skipping rows that were drawn before has the same distribution.

    Parameters
    ----------
    z : ndarray of shape (n, d)
        Samples in frame coordinates.
    n_landmarks : int
        Number of landmarks; all distinct samples if there are no more.
    method : {"uniform", "kmeans++", "leverage"}, default="uniform"
        Method of the choice.
    kernel : Kernel
        The kernel; only "leverage" uses it.
    weights : ndarray of shape (n,), optional
        Nonnegative weights; samples of weight 0 are never landmarks.
    random_state : int, RandomState or None
        Seed.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.

    Returns
    -------
    ndarray of shape (min(n_landmarks, distinct samples),), int
        Row numbers, ascending; for copies the first one.

    Raises
    ------
    InputError
        If `n_landmarks` is not a positive whole number or `method` is none of the three.

    References
    ----------
    .. [1] Y. Zhou, J. Shi, J. Zhu, "Nonparametric score estimators", ICML 2020, appendix C.1.
    .. [2] A. Rudi, D. Calandriello, L. Carratino, L. Rosasco, "On fast leverage score sampling and optimal learning",
       NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import IMQ
    >>> from isopleth.score.landmarks import choose_landmarks
    >>> z = np.repeat(np.arange(5.0), 3)[:, None]
    >>> choose_landmarks(z, 100, kernel=IMQ())
    array([ 0,  3,  6,  9, 12])
    >>> len(choose_landmarks(z, 2, "kmeans++", kernel=IMQ(), random_state=0))
    2
    """
    if isinstance(n_landmarks, bool) or not isinstance(n_landmarks, Integral) or n_landmarks < 1:
        raise InputError(f"n_landmarks = {n_landmarks!r}: expected a whole number of samples, at least 1.")
    if method not in METHODS:
        raise InputError(f"landmark_method = {method!r}: expected one of {', '.join(map(repr, METHODS))}.")
    first, w = _distinct(z, np.ones(len(z)) if weights is None else weights)
    if n_landmarks >= len(first):
        return first
    random = check_random_state(random_state)
    points = z[first]
    if method == "kmeans++":
        # scikit-learn computes distances by products, which lose digits far from the origin
        chosen = kmeans_plusplus(points - points.mean(axis=0), int(n_landmarks), sample_weight=w, random_state=random)[
            1
        ]
    elif method == "leverage":
        with ONE_BLAS_THREAD:
            scores = _leverage(kernel, points, w, int(n_landmarks), random, memory_limit, n_jobs)
        chosen = _draw(scores, int(n_landmarks), random)
    else:
        chosen = _draw(w, int(n_landmarks), random)
    return first[np.sort(chosen)]


def _distinct(z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row number of each distinct sample of positive weight, and the summed weights.

    Samples are in order of appearance: an order by coordinates would make the draw depend on a rotation of the samples.
    """
    _, weights, place = merge_rows(z, w)
    first = np.full(len(weights), len(z))
    rows = np.flatnonzero(place >= 0)
    np.minimum.at(first, place[rows], rows)
    order = np.argsort(first)
    return first[order], weights[order]


def _draw(p: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
    """Draw `count` indices without replacement in proportion to `p`: the smallest of exponential times with rates `p`."""
    log_times = np.log(random.standard_exponential(len(p))) - np.log(p)  # in logarithms, since quotients may overflow
    return np.argsort(log_times, kind="stable")[:count]


def _leverage(
    kernel: Kernel,
    points: np.ndarray,
    w: np.ndarray,
    n_landmarks: int,
    random: np.random.RandomState,
    memory_limit: float,
    n_jobs: int | None,
) -> np.ndarray:
    r"""Return ridge leverage scores times :math:`\alpha`: :math:`w_i (k_{ii} - k_{iJ} (K_{JJ} + q\alpha)^{-1} k_{Ji})`.

    J are q pilot samples from which C is estimated.
    """
    q = PILOTS * n_landmarks
    pilots = points[random.choice(len(points), q, p=w / w.sum())]
    gram = Operator(kernel, pilots, memory_limit=memory_limit, n_jobs=n_jobs).dense()
    ridge = q * _ridge(interruptible(2.0 * q**3, np.linalg.eigvalsh, gram) / q, n_landmarks / 2)
    root = interruptible(q**3 / 3, np.linalg.cholesky, gram + ridge * np.eye(q, dtype=gram.dtype))
    scores = np.empty(len(points))
    step = max(1, min(ROWS, int(memory_limit / (4 * points.itemsize * q))))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        cross = Operator(kernel, pilots, points[rows], memory_limit=memory_limit / 4, n_jobs=n_jobs).dense()
        half = interruptible(float(q) ** 2 * cross.shape[1], solve_triangular, root, cross, lower=True)
        scores[rows] = 1.0 - np.einsum("ij,ij->j", half, half)
    # for a sample that equals a pilot, rounding may lead to less than the smallest possible value
    return w * np.clip(scores, ridge / (q + ridge), 1.0)


def _ridge(eigenvalues: np.ndarray, dimension: float) -> float:
    """Return the ridge at which the effective dimension, the sum of sigma/(sigma + alpha), is `dimension`."""
    sigma = np.maximum(eigenvalues, 0.0)
    floor = float(np.finfo(sigma.dtype).eps) * float(sigma[-1])

    def excess(log_alpha: float) -> float:
        return float(np.sum(sigma / (sigma + math.exp(log_alpha)))) - dimension

    low, high = math.log(floor), math.log(float(sigma.sum()) / dimension) + 1.0
    return floor if excess(low) <= 0.0 else math.exp(brentq(excess, low, high))
