"""Original rule of the Stein estimator for new rows: add the row to the samples, fit again and read its own score."""

from __future__ import annotations

from isopleth.backend import Array, namespace
from isopleth.score.spaces import Diagonal
from isopleth.solvers.direct import Shifted


class AugmentedStein:
    r"""Scores of new rows, each by a fit to the samples and that row.

    With :math:`N` samples, :math:`\eta = N\alpha` and :math:`r = N\zeta`, the refit solves :math:`(K + \eta I)\, s = -r` for
    N + 1 rows. All refits share one factorisation; extending it by the row q gives

    .. math:: s_q = -\frac{r_q - k_q^\top (K + \eta I)^{-1} (r + t_q)}{k(q, q) + \eta - k_q^\top (K + \eta I)^{-1} k_q},

    where :math:`t_q` is the change of r at the samples by the new row.

    Parameters
    ----------
    space : Diagonal
        The space.
    z : array of shape (n, d)
        Distinct samples in frame coordinates.
    weights : array of shape (n,)
        Repetitions of each; N is their sum, but at least n.
    alpha : float
        The ridge.
    """

    def __init__(self, space: Diagonal, z: Array, weights: Array, alpha: float) -> None:
        self.space, self.z = space, z
        xp = namespace(z)
        total = float(xp.sum(weights))
        share = weights / total
        self.count = max(total, float(z.shape[0]))
        self.share, self.ridge = share, self.count * alpha
        self.root = xp.sqrt(self.count * share)
        self.factor = Shifted(self.root[:, None] * space.gram(z) * self.root, self.ridge)
        self.data = self.count * space.zeta(z, z, share)

    def value(self, x: Array) -> Array:
        """Return the score at each of the rows `x`, in frame coordinates."""
        bytes_a_row = 6 * 8 * self.z.shape[0]
        step = max(1, int(self.space.memory_limit // bytes_a_row))
        count = x.shape[0]
        blocks = [self._block(x[start : min(start + step, count), :]) for start in range(0, count, step)]
        return namespace(x).concat(blocks)

    def _block(self, x: Array) -> Array:
        xp = namespace(x)
        k = self.space.gram(x, self.z) * self.root
        solved = self.factor.solve(k.T).T
        own = self.count * self.space.zeta(x, self.z, self.share)
        # The row changes the data at sample m by -2 phi' (z_m - x).
        pairs = solved * self.root * self.space.slopes(x, self.z)
        added = pairs @ self.z - xp.sum(pairs, axis=1, keepdims=True) * x
        schur = float(self.space.kernel(0.0)) + self.ridge - xp.sum(k * solved, axis=1)
        return -(own - (solved * self.root) @ self.data - added) / schur[:, None]
