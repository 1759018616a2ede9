"""Shares of classes from means of bounded scores: what the labelled rows say of each class, and the mixture that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import nnls
from scipy.special import log_ndtr, softmax, stdtrit

_POOLED_ROWS = 2.0
"""The covariance of a class counts the covariance within all classes as so many rows of its own."""
_SHRINKAGE = 1e-3
"""Share of its mean variance that is added to every covariance: a few rows of many classes leave it singular."""
_ROUNDS = 4
_AWAY = 0.02
"""Scores are made for shares drawn by so much to equal ones: at a share of zero they would be unbounded."""
_GRID = 1001


def sum_zero_basis(classes: int) -> np.ndarray:
    """Orthonormal columns of shape (K, K - 1) whose entries have sum zero: scores of classes are compared, not added."""
    return np.linalg.qr(np.eye(classes)[:, :-1] - 1.0 / classes)[0]


@dataclass(frozen=True)
class ClassMoments:
    """Means of scores over each class, and how uncertain they are.

    Parameters
    ----------
    means : array of shape (K, K - 1)
        One row a class, in the coordinates of :func:`sum_zero_basis`.
    covariances : array of shape (K, K - 1, K - 1)
        Covariance of the scores within each class.
    within : array of shape (K - 1, K - 1)
        Their mean.
    counts : array of shape (K,)
        Labelled rows.
    """

    means: np.ndarray
    covariances: np.ndarray
    within: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, labels: np.ndarray) -> Self:
        """From held-out scores of shape (n, K - 1)."""
        counts = np.bincount(labels).astype(float)
        groups = [values[labels == k] for k in range(len(counts))]
        own = np.array([np.atleast_2d(np.cov(group.T)) for group in groups])
        tiny = np.finfo(np.float64).tiny + 1e-16 * float(np.square(values).mean())
        within = own.mean(axis=0)
        within = within + (_SHRINKAGE * np.trace(within) / len(within) + tiny) * np.eye(len(within))
        own_rows = (counts - 1.0)[:, None, None]
        covariances = (own_rows * own + _POOLED_ROWS * within) / (own_rows + _POOLED_ROWS)
        return cls(np.array([group.mean(axis=0) for group in groups]), covariances, within, counts)

    @property
    def positive_means(self) -> np.ndarray:
        r"""Means as they are expected to be, given that scores of a class are higher in this class.

        With :math:`B = Q^\top A` for means A and the sum-zero basis Q, :math:`E B` is symmetric and positive definite. Each
        eigenvalue of its symmetric part becomes that of a normal variable given that it is positive: where classes can hardly
        be told apart, an estimate by chance of the wrong sign would turn the shares round.
        """
        basis = sum_zero_basis(len(self.counts))
        inner = basis.T @ self.means
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        spread = np.einsum("ij,kil,lj->kj", vectors, self.covariances, vectors) / self.counts[:, None]
        error = np.sqrt(np.einsum("kj,kj->j", np.square(basis @ vectors), spread))
        ratio = values / error
        hazard = np.exp(-0.5 * ratio**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(ratio))
        return self.means.mean(axis=0) + basis @ (vectors * (values + error * hazard)) @ vectors.T

    def noise(self, priors: np.ndarray, rows: int, *, drawn: bool) -> np.ndarray:
        """Covariance of the mean over `rows` unlabelled rows less the mixture of the class means.

        With `drawn`, the classes of these rows vary too, as they do when rows are drawn from the mixture.
        """
        out = np.einsum("k,kij->ij", priors**2 / self.counts + priors / rows, self.covariances)
        if drawn:
            centred = self.means - priors @ self.means
            out += (centred * priors[:, None]).T @ centred / rows
        return out


@dataclass(frozen=True)
class Squash:
    """Scores become probabilities of the classes: those of normal scores with one covariance, every class as frequent.

    Unbounded scores of rows far from all classes would add noise to the means and nothing else.

    Parameters
    ----------
    slopes : array of shape (K, K)
        Linear part of the logarithms of the odds.
    offsets : array of shape (K,)
        Constant part.
    """

    slopes: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, labels: np.ndarray) -> Self:
        """From held-out scores of shape (n, K)."""
        basis = sum_zero_basis(scores.shape[1])
        moments = ClassMoments.of(scores @ basis, labels)
        means = moments.positive_means
        middle = means.mean(axis=0)
        slopes = np.linalg.solve(moments.within, (means - middle).T)
        return cls(basis @ slopes, -0.5 * np.einsum("kj,jk->k", means + middle, slopes))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of shape (n, K)."""
        return np.asarray(softmax(scores @ self.slopes + self.offsets, axis=1))


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
    """

    priors: np.ndarray
    moments: ClassMoments
    target: np.ndarray
    rows: int

    @classmethod
    def of(cls, held_out: np.ndarray, labels: np.ndarray, new: np.ndarray) -> Self:
        """From the probabilities of labelled rows and of unlabelled ones, first by scores for equal shares, then for theirs."""
        classes = held_out.shape[1]
        solve = two_shares if classes == 2 else mixture
        priors = np.full(classes, 1.0 / classes)
        for _ in range(_ROUNDS):
            near = (1.0 - _AWAY) * priors + _AWAY / classes
            moments = ClassMoments.of(_relative(held_out, near), labels)
            target = _relative(new, near).mean(axis=0)
            priors = solve(moments.positive_means, target, moments.noise(near, len(new), drawn=False))
        return cls(priors, moments, target, len(new))

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of unconstrained shares of sum 1 by the delta method, of shape (K, K)."""
        basis = sum_zero_basis(len(self.priors))
        gap = basis.T @ self.moments.positive_means
        # One row more of each class: none among few rows does not mean none at all.
        near = (self.priors * self.rows + 1.0) / (self.rows + len(self.priors))
        half = np.linalg.solve(gap.T, np.linalg.cholesky(self.moments.noise(near, self.rows, drawn=True)))
        return np.asarray(basis @ half @ half.T @ basis.T)

    def intervals(self, level: float) -> np.ndarray:
        """Ends of an interval for each share, of shape (K, 2), within [0, 1]."""
        degrees = float(self.moments.counts.sum() - len(self.moments.counts))
        width = float(stdtrit(degrees, 0.5 + 0.5 * level))
        if len(self.priors) == 2:
            low, high = self._not_rejected(width)
            ends = np.array([[1.0 - high, 1.0 - low], [low, high]])
        else:
            noise = self.moments.noise(self.priors, self.rows, drawn=False)
            middle = mixture(self.moments.positive_means, self.target, noise, shrink=False)
            half = width * np.sqrt(np.diag(self.covariance))
            ends = np.clip(np.stack([middle - half, middle + half], axis=1), 0.0, 1.0)
        return np.stack([np.minimum(ends[:, 0], self.priors), np.maximum(ends[:, 1], self.priors)], axis=1)

    def _not_rejected(self, width: float) -> tuple[float, float]:
        """Ends of the shares of the second of two classes that a test of each one does not reject.

        The tested share enters the noise: where classes are hard to tell apart this interval is wide, while a ratio and its
        standard error would both be wild.
        """
        first, second = self.moments.means[:, 0]
        grid = np.linspace(0.0, 1.0, _GRID)
        # The noise is a polynomial of degree 2 in the share, so three values give all of it.
        known = [self.moments.noise(np.array([1.0 - g, g]), self.rows, drawn=True)[0, 0] for g in (0.0, 0.5, 1.0)]
        noise = np.polyval(np.polyfit([0.0, 0.5, 1.0], known, 2), grid)
        distance = np.abs(self.target[0] - first - grid * (second - first)) / np.sqrt(noise)
        kept = grid[distance <= max(width, float(distance.min()))]
        return float(kept.min()), float(kept.max())


def strangeness(held_out: np.ndarray, labels: np.ndarray, new: np.ndarray, priors: np.ndarray) -> float:
    """How far the mean of one number over unlabelled rows is from that over the mixture, in standard deviations."""
    groups = [held_out[labels == k] for k in range(len(priors))]
    means = np.array([group.mean() for group in groups])
    counts = np.array([len(group) for group in groups])
    own = np.array([group.var(ddof=1) for group in groups])
    own = ((counts - 1.0) * own + _POOLED_ROWS * own.mean()) / (counts - 1.0 + _POOLED_ROWS)
    expected = priors @ means
    variance = (priors**2 / counts + priors / len(new)) @ own + priors @ (means - expected) ** 2 / len(new)
    return float(abs(new.mean() - expected) / np.sqrt(variance + np.finfo(np.float64).eps * expected**2))


def _relative(probabilities: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Densities of the classes over that of the mixture with these shares: the scores of least variance there."""
    return probabilities / (probabilities @ priors)[:, None] @ sum_zero_basis(len(priors))


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
