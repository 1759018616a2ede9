"""What labelled rows say of the scores of each class: bounded scores, their means, and how uncertain these are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import erfcx, softmax

from isopleth.errors import InputError

# The covariance of a class counts the covariance within all classes as so many rows of its own.
_POOLED_ROWS = 2.0
# Share of its mean variance that is added to every covariance: a few rows of many classes leave it singular.
_SHRINKAGE = 1e-3
# Arrays with a covariance for each class that are held at once.
_ARRAYS = 3
_FAR = -1e4
_LEAST_PROBABILITY = 1e-12


def check_class_count(classes: int, memory_limit: float) -> None:
    """Refuse more classes than memory holds covariances of.

    Raises
    ------
    InputError
        If there are.
    """
    needed = 8 * _ARRAYS * classes**3
    if needed > memory_limit:
        raise InputError(
            f"y has {classes} classes, whose covariances need {needed / 1e9:.2g} GB, more than memory_limit; merge classes, or "
            "raise memory_limit."
        )


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
        r"""Means corrected for the fact that scores of a class are higher in this class.

        With :math:`B = Q^\top A` for means A and the sum-zero basis Q, :math:`E B` is symmetric and positive definite. To each
        eigenvalue of its symmetric part is added what takes it to the mean of a normal variable given that it is positive:
        where classes can hardly be told apart, an estimate by chance of the wrong sign would turn the shares round. The rest
        of B stays as it was measured. Its two halves are not averaged: the score of a rare class is large and noisy, and its mean
        over another class would disturb that of the other class's score over the rare one.
        """
        basis = sum_zero_basis(len(self.counts))
        inner = basis.T @ self.means
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        spread = np.einsum("ij,kil,lj->kj", vectors, self.covariances, vectors, optimize=True) / self.counts[:, None]
        error = np.sqrt(np.einsum("kj,kj->j", np.square(basis @ vectors), spread))
        added = error * _mean_if_positive(values / error) - values
        return np.asarray(self.means + basis @ (vectors * added) @ vectors.T)

    def noise(self, priors: np.ndarray, rows: int, *, drawn: bool) -> np.ndarray:
        """Covariance of the mean over `rows` unlabelled rows less the mixture of the class means, for shares of shape (..., K).

        With `drawn`, the classes of these rows vary too, as they do when rows are drawn from the mixture.
        """
        out = np.einsum("...k,kij->...ij", self._amounts(priors, rows), self.covariances)
        if drawn:
            centred = self.means - (priors @ self.means)[..., None, :]
            out += np.einsum("...k,...ki,...kj->...ij", priors, centred, centred) / rows
        return np.asarray(out)

    def degrees(self, priors: np.ndarray, rows: int, directions: np.ndarray) -> np.ndarray:
        """Degrees of freedom of the noise in `directions` of shape (..., K - 1), after Welch and Satterthwaite.

        Where most of the noise is that of a class of few rows, its variance is known from these only.
        """
        spread = np.einsum("...i,kij,...j->...k", directions, self.covariances, directions, optimize=True)
        parts = self._amounts(priors, rows) * spread
        return np.asarray(1.0 / np.sum((parts / parts.sum(axis=-1, keepdims=True)) ** 2 / (self.counts - 1.0), axis=-1))

    def _amounts(self, priors: np.ndarray, rows: int) -> np.ndarray:
        """How much of the covariance of each class is in the noise: of its labelled rows, and of its unlabelled ones."""
        return np.asarray(priors**2 / self.counts + priors / rows)


def _mean_if_positive(mean: np.ndarray) -> np.ndarray:
    """Mean of a normal variable of deviation 1 given that it is positive."""
    # Of large negative means the sum would cancel, and the first term of its series is as exact.
    far = -1.0 / np.minimum(mean, _FAR)
    return np.where(mean < _FAR, far, mean + np.sqrt(2.0 / np.pi) / erfcx(-np.maximum(mean, _FAR) / np.sqrt(2.0)))


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
        """Probabilities, of the shape of the scores, (..., K)."""
        return np.asarray(softmax(scores @ self.slopes + self.offsets, axis=-1))


def held_out_losses(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the logarithmic loss of each labelled row, weighted so that in the mean all classes weigh alike."""
    losses = -np.log(np.maximum(probabilities[np.arange(len(labels)), labels], _LEAST_PROBABILITY))
    counts = np.bincount(labels)
    return np.asarray(losses * (len(labels) / (len(counts) * counts))[labels])


def clearly_less(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the mean of `one` is below that of `other`, row by row, by more than a standard error."""
    gain = other - one
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


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
