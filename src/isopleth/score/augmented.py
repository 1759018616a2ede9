"""Stein's rule for new rows: add the row to the samples, fit again, and read its own score."""

from __future__ import annotations

import numpy as np

from isopleth.score.spaces import Diagonal
from isopleth.solvers.direct import Shifted


class AugmentedStein:
    r"""Scores of rows, each fitted with the row added to the samples.

    With :math:`N` samples, :math:`\eta = N\alpha` and :math:`r = N\zeta`, the refit solves :math:`(K + \eta I)\, s = -r` of N + 1
    rows. All refits share one factor: bordering it with the row q gives

    .. math:: s_q = -\frac{r_q - k_q^\top (K + \eta I)^{-1} (r + t_q)}{k(q, q) + \eta - k_q^\top (K + \eta I)^{-1} k_q},

    where :math:`t_q` is what the new row adds to r at the samples.

    Parameters
    ----------
    space : Diagonal
        The space.
    z : ndarray of shape (n, d)
        Distinct samples in frame coordinates.
    weights : ndarray of shape (n,)
        Repetitions of each; N is their sum, but at least n.
    alpha : float
        The ridge.
    """

    def __init__(self, space: Diagonal, z: np.ndarray, weights: np.ndarray, alpha: float) -> None:
        self.space, self.z = space, z
        share = weights / weights.sum()
        self.count = max(float(weights.sum()), float(len(z)))
        self.share, self.ridge = share, self.count * alpha
        self.root = np.sqrt(self.count * share)
        self.factor = Shifted(self.root[:, None] * space.gram(z) * self.root, self.ridge)
        self.data = self.count * space.zeta(z, z, share)

    def value(self, x: np.ndarray) -> np.ndarray:
        """The score at each of the rows `x`, in frame coordinates."""
        bytes_a_row = 6 * 8 * len(self.z)
        step = max(1, int(self.space.memory_limit // bytes_a_row))
        return np.concatenate([self._some(x[start : start + step]) for start in range(0, len(x), step)])

    def _some(self, x: np.ndarray) -> np.ndarray:
        kernel = self.space.kernel
        k = self.space.gram(x, self.z) * self.root
        solved = self.factor.solve(k.T).T
        own = self.count * self.space.zeta(x, self.z, self.share)
        # What the row adds to the data at sample m is -2 phi' (z_m - x).
        pairs = solved * self.root * self.space.slopes(x, self.z)
        added = pairs @ self.z - pairs.sum(axis=1, keepdims=True) * x
        schur = float(kernel(0.0)) + self.ridge - np.sum(k * solved, axis=1)
        return -(own - (solved * self.root) @ self.data - added) / schur[:, None]
