"""Covariances of few rows, shrunk towards a sphere: how far, by the rules of Ledoit and Wolf and of Chen and others.

``ledoit_wolf`` is for rows, also for residuals and conditional laws that regress columns on each other. The others need only S.
"""

from __future__ import annotations

import numpy as np


def row_space(rows: np.ndarray) -> np.ndarray | None:
    """Return an orthonormal basis, in columns, of a space that contains fewer rows than columns; None for more rows.

    Covariances of such rows are problems in as many columns as there are rows: an orthogonal change of the columns is exact.
    """
    return np.linalg.qr(rows.T)[0] if len(rows) < rows.shape[1] else None


def ledoit_wolf(
    z: np.ndarray, share: np.ndarray, count: float | None = None, columns: int | None = None
) -> tuple[np.ndarray, float]:
    r"""Return :math:`(1 - \delta) S + \delta m I` nearest to the covariance in expectation, and :math:`\delta` [1]_.

    S is the covariance of the rows `z`, of mean 0, with shares that sum to 1; m is the mean variance. Each row is an
    observation, or with `count` all rows together stand for so many. With `columns`, `z` are coordinates in a subspace of so many
    columns that contains all rows: S is 0 and the result :math:`\delta m I` beside it.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of Multivariate
       Analysis 88, 2004.
    """
    S = (z * share[:, None]).T @ z
    beside = 0 if columns is None else columns - len(S)
    level, norm, sizes = float(np.trace(S)) / (len(S) + beside), float((S * S).sum()), (z * z).sum(axis=1) ** 2
    if count is None:
        noise = float(share**2 @ (sizes - 2.0 * ((z @ S) * z).sum(axis=1) + norm))
    else:
        noise = (float(share @ sizes) - norm) / count
    diagonal = np.diag_indices(len(S))
    apart = S.copy()
    apart[diagonal] -= level
    distance = float((apart * apart).sum()) + beside * level**2
    delta = noise / distance if noise < distance else 1.0
    S *= 1.0 - delta
    S[diagonal] += delta * level
    return S, delta


def oracle_shrinkage(S: np.ndarray, n: float, terms: float = 0.0) -> float:
    r"""Return the share of the scaled identity in the oracle approximating shrinkage of the covariance S of n rows [1]_.

    `terms` is the share of its terms in :math:`2/p` that counts: with 1 it is the rule of the paper. scikit-learn omits them,
    so that the rule holds for one column too.

    References
    ----------
    .. [1] Y. Chen, A. Wiesel, Y. C. Eldar, A. O. Hero, "Shrinkage Algorithms for MMSE Covariance Estimation", IEEE Transactions
       on Signal Processing 58, 2010.
    """
    p, total, squares = len(S), float(np.trace(S)), float((S * S).sum())
    distance = (n + 1.0 - 2.0 * terms / p) * (squares - total**2 / p)
    return 1.0 if distance <= 0.0 else min(1.0, ((1.0 - 2.0 * terms / p) * squares + total**2) / distance)
