"""Shares of classes from means of scores: the mixture of the classes that fits the unlabelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import nnls
from scipy.special import stdtrit

from isopleth.tasks.class_prior.moments import ClassMoments, sum_zero_basis

_ROUNDS = 4
# Scores are made for shares drawn by so much to equal ones: at a share of zero they would be unbounded.
_AWAY = 0.02
_GRID = 1001


@dataclass(frozen=True)
class Shares:
    """Shares of classes, and the means of scores from which they came.

    Parameters
    ----------
    priors : array of shape (K,)
        The shares.
    moments : ClassMoments
        Of the scores made for these shares.
    target : array of shape (K - 1,)
        Mean of the scores over the unlabelled rows.
    rows : int
        How many these are.
    unstable : array of shape (K - 1, K - 1)
        Covariance of a score by the choice of the labelled rows, which the fits without one fold each tell.
    """

    priors: np.ndarray
    moments: ClassMoments
    target: np.ndarray
    rows: int
    unstable: np.ndarray

    @classmethod
    def of(cls, held_out: np.ndarray, labels: np.ndarray, new: np.ndarray) -> Self:
        """From the probabilities of labelled rows and of unlabelled ones, first by scores for equal shares, then for theirs.

        Those of labelled rows have shape (n, K), those of unlabelled ones (rows, fits, K).
        """
        classes = held_out.shape[1]
        solve = two_shares if classes == 2 else mixture
        priors = np.full(classes, 1.0 / classes)
        for _ in range(_ROUNDS):
            near = (1.0 - _AWAY) * priors + _AWAY / classes
            moments = ClassMoments.of(_relative(held_out, near), labels)
            scores = _relative(new, near)
            target = scores.mean(axis=(0, 1))
            priors = solve(moments.positive_means, target, moments.noise(near, len(new), drawn=False))
        return cls(priors, moments, target, len(new), _jackknife(scores))

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of unconstrained shares of sum 1 by the delta method, of shape (K, K)."""
        directions = self._directions
        return np.asarray(directions @ self._noise(self._near) @ directions.T)

    def _noise(self, priors: np.ndarray) -> np.ndarray:
        """What :meth:`ClassMoments.noise` says of drawn rows, and that the labelled rows are judged by fits to one another.

        Of two rows of one class, what one adds to the score of the other is what the other adds to its own: it counts twice.
        """
        twice = np.einsum("...k,ij->...ij", priors**2 / self.moments.counts, self.unstable)
        return np.asarray(self.moments.noise(priors, self.rows, drawn=True) + twice)

    @property
    def _near(self) -> np.ndarray:
        """Shares with one row more of each class: none among few rows does not mean none at all."""
        return (self.priors * self.rows + 1.0) / (self.rows + len(self.priors))

    @property
    def _directions(self) -> np.ndarray:
        """How unconstrained shares move with the mean of the scores, of shape (K, K - 1)."""
        basis = sum_zero_basis(len(self.priors))
        return np.asarray(np.linalg.solve(basis.T @ self.moments.positive_means, basis.T).T)

    def intervals(self, level: float) -> np.ndarray:
        """Ends of an interval for each share, of shape (K, 2), within [0, 1]."""
        if len(self.priors) == 2:
            low, high = self._not_rejected(level)
            ends = np.array([[1.0 - high, 1.0 - low], [low, high]])
        else:
            noise = self.moments.noise(self.priors, self.rows, drawn=False)
            middle = mixture(self.moments.positive_means, self.target, noise, shrink=False)
            degrees = self.moments.degrees(self._near, self.rows, self._directions)
            half = stdtrit(degrees, 0.5 + 0.5 * level) * np.sqrt(np.diag(self.covariance))
            ends = np.clip(np.stack([middle - half, middle + half], axis=1), 0.0, 1.0)
        return np.stack([np.minimum(ends[:, 0], self.priors), np.maximum(ends[:, 1], self.priors)], axis=1)

    def _not_rejected(self, level: float) -> tuple[float, float]:
        """Ends of the shares of the second of two classes that a test of each one does not reject.

        The tested share enters the noise: where classes are hard to tell apart this interval is wide, while a ratio and its
        standard error would both be wild. Held-out scores that are higher in the other class tell nothing of the shares.
        """
        means = self.moments.means
        if (sum_zero_basis(2).T @ means)[0, 0] <= 0.0:
            return 0.0, 1.0
        grid = np.linspace(0.0, 1.0, _GRID)
        shares = np.stack([1.0 - grid, grid], axis=1)
        noise = self._noise(shares)[:, 0, 0]
        distance = np.abs(self.target - shares @ means)[:, 0] / np.sqrt(noise)
        width = stdtrit(self.moments.degrees(shares, self.rows, np.ones(1)), 0.5 + 0.5 * level)
        kept = grid[distance <= np.maximum(width, distance.min())]
        return float(kept.min()), float(kept.max())


def _relative(probabilities: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Densities of the classes over that of the mixture with these shares: the scores of least variance there."""
    return probabilities / (probabilities @ priors)[..., None] @ sum_zero_basis(len(priors))


def _jackknife(scores: np.ndarray) -> np.ndarray:
    """Covariance of scores of shape (rows, fits, m) over samples of labelled rows, in the mean over the rows."""
    rows, fits, _ = scores.shape
    away = scores - scores.mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("nfi,nfj->ij", away, away, optimize=True) * (fits - 1.0) / (fits * rows))


def mixture(means: np.ndarray, target: np.ndarray, noise: np.ndarray, *, shrink: bool = True) -> np.ndarray:
    r"""Shares on the simplex whose mixture of `means` is nearest to `target`, in units of the `noise`.

    With `shrink`, :math:`K(K+1) |\pi - 1/K|^2` is added: the precision of shares that are uniform on the simplex.

    Because the shares have sum 1, the residual is linear in them, :math:`D\pi`, and the least :math:`|D\pi|^2` on the
    simplex is at that of :math:`|Du|^2 + (1^\top u - 1)^2` over :math:`u \ge 0`, divided by its sum.
    """
    classes = len(means)
    rows = [np.linalg.solve(np.linalg.cholesky(noise), (means - target).T)]
    if shrink:
        rows.append(np.sqrt(classes * (classes + 1.0)) * (np.eye(classes) - 1.0 / classes))
    matrix = np.vstack(rows)
    matrix = matrix / max(np.abs(matrix).max(), np.finfo(np.float64).tiny)
    shares, _ = nnls(np.vstack([matrix, np.ones(classes)]), np.r_[np.zeros(len(matrix)), 1.0])
    return np.asarray(shares / shares.sum())


def two_shares(means: np.ndarray, target: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Of two classes in closed form: with :math:`b = m - a_0`, :math:`g = a_1 - a_0` and the variance v of the noise,

    :math:`\pi_1 = (g b + 6 v) / (g^2 + 12 v)`, clipped to [0, 1].
    """
    gap, reached, variance = (means[1] - means[0])[0], (target - means[0])[0], noise[0, 0]
    second = np.clip((gap * reached + 6.0 * variance) / (gap**2 + 12.0 * variance), 0.0, 1.0)
    return np.array([1.0 - second, second])
