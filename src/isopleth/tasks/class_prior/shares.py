"""Shares of classes from means of scores: the mixture of the classes that fits the unlabelled rows best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.optimize import nnls
from scipy.special import erfcx, softmax, stdtrit

from isopleth.core.budget import Budget
from isopleth.core.errors import refuse_too_large

_ROUNDS = 4
# Scores are adapted to shares shrunk by this much towards equal shares: at a share of 0 they would be unbounded.
_AWAY = 0.02
_GRID = 1001


@dataclass(frozen=True)
class Shares:
    """Shares of classes, and the means of scores from which they follow."""

    priors: np.ndarray  # (K,): shares
    moments: ClassMoments  # moments of the scores adapted to these shares
    target: np.ndarray  # (K - 1,): mean of the scores over the unlabelled rows
    rows: int  # number of unlabelled rows
    # (K - 1, K - 1): covariance of a score over samples of labelled rows, a jackknife estimate from the fits without
    # one fold
    unstable: np.ndarray

    @classmethod
    def of(cls, held_out: np.ndarray, labels: np.ndarray, new: np.ndarray, several: np.ndarray | None = None) -> Self:
        """Estimate shares from probabilities of labelled (n, K) and other rows (rows, fits, K), first for equal shares.

        If `new` has one fit only, `several` are probabilities of some rows by all fits, which say what other fits would change.
        """
        classes = held_out.shape[1]
        solve = two_shares if classes == 2 else mixture
        priors = np.full(classes, 1.0 / classes)
        for _ in range(_ROUNDS):
            near = (1.0 - _AWAY) * priors + _AWAY / classes
            known = _relative(held_out, near)
            moments = ClassMoments.of(known, labels)
            scores = _relative(new, near)
            target = scores.mean(axis=(0, 1))
            means, steady = moments.positive_means, moments
            if classes == 2:  # of more classes, one factor of calibration is not right for every pair of them
                means, steady = moments.with_modelled(_modelled_means(known, held_out, labels))
            priors = solve(means, target, steady.noise(near, len(new), drawn=False))
        if several is not None:
            scores = _relative(several, near)
        return cls(priors, moments, target, len(new), _jackknife(scores))

    def covariance(self, *, population: bool) -> np.ndarray:
        """Return the covariance of unconstrained shares of sum 1, by the delta method, of shape (K, K)."""
        directions = self._directions
        return np.asarray(directions @ self._noise(self._near, population=population) @ directions.T)

    def _noise(self, priors: np.ndarray, *, population: bool) -> np.ndarray:
        r"""Return :meth:`ClassMoments.noise`, plus the noise of fits to labelled rows that score one another.

        What row i adds by chance to row j, j adds to i. With :math:`w_k = \pi_k / n_k` that is
        :math:`|w - \bar w|^2 / ((1 - \tfrac1K) \sum_k n_k^{-1})` times the variance of a score: nothing if all w are equal.
        """
        counts = self.moments.counts
        weights = priors / counts
        spread = np.square(weights - weights.mean(axis=-1, keepdims=True)).sum(axis=-1)
        shared = spread / ((1.0 - 1.0 / len(counts)) * (1.0 / counts).sum())
        noise = self._cautious.noise(priors, self.rows, drawn=population)
        return np.asarray(noise + np.einsum("...,ij->...ij", shared, self.unstable))

    @cached_property
    def _cautious(self) -> ClassMoments:
        """Moments with the covariances that intervals use."""
        return self.moments.with_unseen_rows()

    @property
    def _near(self) -> np.ndarray:
        """Shares with one more row of each class, because a class without a row in a small sample need not be absent."""
        return (self.priors * self.rows + 1.0) / (self.rows + len(self.priors))

    @property
    def _directions(self) -> np.ndarray:
        """Derivative of unconstrained shares with respect to the mean of the scores, of shape (K, K - 1)."""
        basis = sum_zero_basis(len(self.priors))
        return np.asarray(np.linalg.solve(basis.T @ self.moments.positive_means, basis.T).T)

    def intervals(self, level: float, *, population: bool) -> np.ndarray:
        """Return limits (K, 2) in [0, 1] of the shares of the unlabelled rows, or of their population."""
        if len(self.priors) == 2:
            low, high = self._not_rejected(level, population=population)
            ends = np.array([[1.0 - high, 1.0 - low], [low, high]])
        else:
            noise = self.moments.noise(self.priors, self.rows, drawn=False)
            middle = mixture(self.moments.positive_means, self.target, noise, shrink=False)
            degrees = self._cautious.degrees(self._near, self.rows, self._directions)
            half = stdtrit(degrees, 0.5 + 0.5 * level) * np.sqrt(np.diag(self.covariance(population=population)))
            ends = np.clip(np.stack([middle - half, middle + half], axis=1), 0.0, 1.0)
        return np.stack([np.minimum(ends[:, 0], self.priors), np.maximum(ends[:, 1], self.priors)], axis=1)

    def _not_rejected(self, level: float, *, population: bool) -> tuple[float, float]:
        """Return the extreme shares of the second of two classes that a test does not reject; wide if classes are similar."""
        means = self.moments.means
        if (sum_zero_basis(2).T @ means)[0, 0] <= 0.0:
            return 0.0, 1.0
        grid = np.linspace(0.0, 1.0, _GRID)
        shares = np.stack([1.0 - grid, grid], axis=1)
        noise = self._noise(shares, population=population)[:, 0, 0]
        distance = np.abs(self.target - shares @ means)[:, 0] / np.sqrt(noise)
        width = stdtrit(self._cautious.degrees(shares, self.rows, np.ones(1)), 0.5 + 0.5 * level)
        kept = grid[distance <= np.maximum(width, distance.min())]
        return float(kept.min()), float(kept.max())


def _relative(probabilities: np.ndarray, priors: np.ndarray) -> np.ndarray:
    """Return densities of the classes over that of the mixture with these shares, the scores of least variance there."""
    return probabilities / (probabilities @ priors)[..., None] @ sum_zero_basis(len(priors))


def _modelled_means(scores: np.ndarray, probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return mean scores of the classes if calibrated probabilities were right, without the doubt that calibration adds."""
    counts = np.bincount(labels)
    doubt = float((_UNSURE_ROWS / (counts + _UNSURE_ROWS)).mean())
    sure = np.maximum(probabilities - doubt / len(counts), 0.0)
    weight = sure / (sure.sum(axis=1) * counts[labels])[:, None]
    return np.asarray(weight.T @ scores / weight.sum(axis=0)[:, None])


def _jackknife(scores: np.ndarray) -> np.ndarray:
    """Return the covariance of scores of shape (rows, fits, m) over samples of labelled rows, averaged over the rows."""
    rows, fits, _ = scores.shape
    away = scores - scores.mean(axis=1, keepdims=True)
    return np.asarray(np.einsum("nfi,nfj->ij", away, away, optimize=True) * (fits - 1.0) / (fits * rows))


def mixture(means: np.ndarray, target: np.ndarray, noise: np.ndarray, *, shrink: bool = True) -> np.ndarray:
    r"""Return the shares on the simplex whose mixture of `means` is nearest to `target`, in units of the `noise`.

    With `shrink`, the precision :math:`K(K+1) |\pi - 1/K|^2` of a uniform distribution is added. Shares have sum 1, so the least
    :math:`|D\pi|^2` is at that of :math:`|Du|^2 + (1^\top u - 1)^2` over :math:`u \ge 0`, divided by its sum.
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
    r"""Return two shares, :math:`\pi_1 = (g b + 6 v) / (g^2 + 12 v)` in [0, 1], :math:`b = m - a_0`, :math:`g = a_1 - a_0`."""
    gap, reached, variance = (means[1] - means[0])[0], (target - means[0])[0], noise[0, 0]
    second = np.clip((gap * reached + 6.0 * variance) / (gap**2 + 12.0 * variance), 0.0, 1.0)
    return np.array([1.0 - second, second])


# Number of rows as which the pooled covariance counts in the covariance of a class.
_POOLED_ROWS = 2.0
# Rows as which the modelled mean scores count in the mean scores of a class. With ten labels a class one row on the wrong side
# moves a mean by a tenth of the distance of the classes; the model uses all rows, but is only about right.
_MODELLED_ROWS = 5.0
# Share of its mean variance that is added to every covariance: a few rows of many classes leave it singular.
_SHRINKAGE = 1e-3
# Arrays of one covariance for each class that are held at once.
_ARRAYS = 4
# Rows of unknown class that are added to every class where its labelled rows cannot show rare mistakes: to the covariances of
# intervals, and to the labels to which probabilities are fitted.
_UNSEEN_ROWS, _UNSURE_ROWS = 0.5, 1.0
# Smallest factor by which calibration may flatten log odds. Held-out scores that separate nothing would make all probabilities
# equal.
_LEAST_FACTOR = 1e-3
_NEWTON_STEPS = 50
# Decrease of the loss, in natural units of information a row, below which calibration stops.
_CONVERGED = 1e-14
_FAR = -1e4
_LEAST_PROBABILITY = 1e-12


def check_class_count(classes: int, budget: Budget) -> None:
    """Check that the covariances of all classes fit in memory."""
    what = f"y has {classes} classes, whose covariances"
    refuse_too_large(what, 8 * _ARRAYS * classes**3, budget.memory, "merge classes")


def sum_zero_basis(classes: int) -> np.ndarray:
    """Return orthonormal columns of shape (K, K - 1) whose entries have sum 0, because only differences of scores matter."""
    return np.linalg.qr(np.eye(classes)[:, :-1] - 1.0 / classes)[0]


@dataclass(frozen=True)
class ClassMoments:
    """Means of scores over each class, and their covariances."""

    means: np.ndarray  # (K, K - 1): means by class, in the coordinates of `sum_zero_basis`
    covariances: np.ndarray  # (K, K - 1, K - 1): covariance of the scores within each class
    within: np.ndarray  # (K - 1, K - 1): mean of these covariances
    counts: np.ndarray  # (K,): number of labelled rows of each class

    @classmethod
    def of(cls, values: np.ndarray, labels: np.ndarray) -> Self:
        """Compute the moments of held-out scores of shape (n, K - 1)."""
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

        Eigenvalues of the symmetric part of :math:`Q^\top A`, Q the sum-zero basis, become means of normals given that they are
        positive: a negative one would reverse the shares. The antisymmetric part stays, because averaging would carry the noise
        of a rare class over to the others.
        """
        basis = sum_zero_basis(len(self.counts))
        inner = basis.T @ self.means
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        spread = np.einsum("ij,kil,lj->kj", vectors, self.covariances, vectors, optimize=True) / self.counts[:, None]
        error = np.sqrt(np.einsum("kj,kj->j", np.square(basis @ vectors), spread))
        added = error * _mean_if_positive(values / error) - values
        return np.asarray(self.means + basis @ (vectors * added) @ vectors.T)

    def with_modelled(self, modelled: np.ndarray) -> tuple[np.ndarray, Self]:
        """Return means in which modelled ones count some rows, and moments whose noise is that of these means."""
        share = self.counts / (self.counts + _MODELLED_ROWS)
        means = modelled + share[:, None] * (self.positive_means - modelled)
        return means, replace(self, counts=self.counts / share**2)

    def with_unseen_rows(self) -> Self:
        """Return moments with half a row more of any class in each: few rows may show none of the others' scores."""
        weight = _UNSEEN_ROWS / (self.counts + _UNSEEN_ROWS)
        middle = self.means.mean(axis=0)
        spread = np.einsum("ki,kj->ij", self.means - middle, self.means - middle) / len(self.means)
        away = self.means - middle
        added = spread + np.einsum("ki,kj->kij", away, away)
        return replace(self, covariances=self.covariances + weight[:, None, None] * added)

    def noise(self, priors: np.ndarray, rows: int, *, drawn: bool) -> np.ndarray:
        """Return the covariance of a mean over `rows` less the mixture of class means; with `drawn`, class counts vary too."""
        out = np.einsum("...k,kij->...ij", self._amounts(priors, rows), self.covariances)
        if drawn:
            centred = self.means - (priors @ self.means)[..., None, :]
            out += np.einsum("...k,...ki,...kj->...ij", priors, centred, centred) / rows
        return np.asarray(out)

    def degrees(self, priors: np.ndarray, rows: int, directions: np.ndarray) -> np.ndarray:
        """Return the degrees of freedom of the noise in directions (..., K - 1), by Welch and Satterthwaite."""
        spread = np.einsum("...i,kij,...j->...k", directions, self.covariances, directions, optimize=True)
        parts = self._amounts(priors, rows) * spread
        return np.asarray(1.0 / np.sum((parts / parts.sum(axis=-1, keepdims=True)) ** 2 / (self.counts - 1.0), axis=-1))

    def _amounts(self, priors: np.ndarray, rows: int) -> np.ndarray:
        """Return the factor of the covariance of each class in the noise, of labelled and unlabelled rows."""
        return np.asarray(priors**2 / self.counts + priors / rows)


def _mean_if_positive(mean: np.ndarray) -> np.ndarray:
    """Return the mean of a normal variable of standard deviation 1, given that it is positive."""
    # For large negative means the sum would cancel, and the first term of its series is as accurate.
    far = -1.0 / np.minimum(mean, _FAR)
    return np.where(mean < _FAR, far, mean + np.sqrt(2.0 / np.pi) / erfcx(-np.maximum(mean, _FAR) / np.sqrt(2.0)))


@dataclass(frozen=True)
class Calibrator:
    """Map from scores to class probabilities at equal shares; scores of rows far from all classes would only add noise."""

    slopes: np.ndarray  # (K, K): linear part of the log odds
    offsets: np.ndarray  # (K,): constant part of the log odds

    @classmethod
    def of(cls, scores: np.ndarray, labels: np.ndarray) -> Self:
        """Fit to held-out scores of shape (n, K)."""
        normal = cls.of_normal(scores, labels)
        factor, added = calibration(scores @ normal.slopes + normal.offsets, labels)
        return cls(factor * normal.slopes, factor * normal.offsets + added)

    @classmethod
    def of_normal(cls, scores: np.ndarray, labels: np.ndarray) -> Self:
        """Return the map for normal scores with the means and the common covariance of the held-out ones."""
        basis = sum_zero_basis(scores.shape[1])
        moments = ClassMoments.of(scores @ basis, labels)
        means = moments.positive_means
        middle = means.mean(axis=0)
        slopes = np.linalg.solve(moments.within, (means - middle).T)
        return cls(basis @ slopes, -0.5 * np.einsum("kj,jk->k", means + middle, slopes))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities of the shape of the scores, (..., K)."""
        return np.asarray(softmax(scores @ self.slopes + self.offsets, axis=-1))


def calibration(odds: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """Return t >= .001 and b for which softmax(t odds + b) has the least logarithmic loss, classes of equal weight.

    Labels count as :math:`(n_k + 1/K) / (n_k + 1)`, the rest as other classes, so that t is bounded if no row is misclassified.
    """
    classes = odds.shape[1]
    counts = np.bincount(labels, minlength=classes)
    unsure = (_UNSURE_ROWS / (counts + _UNSURE_ROWS))[labels][:, None]
    target = (1.0 - unsure) * np.eye(classes)[labels] + unsure / classes
    weight = (1.0 / (classes * counts))[labels]
    # A constant in each row changes no probability, but large numbers cancel in the second derivatives.
    odds = odds - odds.mean(axis=1, keepdims=True)
    # Newton's method starts where no probability is near 0 or 1, because there the second derivatives vanish.
    values = np.append(1.0 / max(1.0, float(np.abs(odds).max())), np.zeros(classes))
    least = min(_LEAST_FACTOR, float(values[0]))  # classes of equal rows have log odds beyond all measure
    loss = _loss(values, odds, target, weight)
    for _ in range(_NEWTON_STEPS):
        gradient, curvature = _derivatives(values, odds, target, weight)
        fixed = values[0] <= least and gradient[0] > 0.0
        if fixed:
            gradient[0] = curvature[0, 1:] = curvature[1:, 0] = 0.0
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < _CONVERGED:
            break
        for length in 0.5 ** np.arange(30.0):
            tried = values - length * step
            tried[0] = max(tried[0], least)
            new = _loss(tried, odds, target, weight)
            if new <= loss:
                values, loss = tried, new
                break
        else:
            break
    return float(values[0]), values[1:] - values[1:].mean()


def _loss(values: np.ndarray, odds: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted logarithmic loss at the factor and the constants."""
    logits = values[0] * odds + values[1:]
    largest = logits.max(axis=1, keepdims=True)
    total = np.log(np.exp(logits - largest).sum(axis=1)) + largest[:, 0]
    return float(weight @ (total - (target * logits).sum(axis=1)))


def _derivatives(
    values: np.ndarray, odds: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient and the second derivatives of :func:`_loss`, the latter made definite along equal constants."""
    found = softmax(values[0] * odds + values[1:], axis=1)
    away, weighted = weight[:, None] * (found - target), weight[:, None] * found
    mean = (found * odds).sum(axis=1)
    centred = odds - mean[:, None]
    curvature = np.empty((len(values), len(values)))
    curvature[0, 0] = (weighted * centred**2).sum()
    curvature[0, 1:] = curvature[1:, 0] = (weighted * centred).sum(axis=0)
    # The first term is for the constants' sum, which changes no probability; the second for classes that no row is likely in.
    curvature[1:, 1:] = np.diag(weighted.sum(axis=0)) - weighted.T @ found + 1.0 / len(target.T)
    curvature[np.diag_indices_from(curvature)] += 1e-12
    return np.append((away * odds).sum(), away.sum(axis=0)), curvature


def held_out_losses(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the logarithmic loss of each labelled row, weighted so that all classes contribute equally to the mean."""
    losses = -np.log(np.maximum(probabilities[np.arange(len(labels)), labels], _LEAST_PROBABILITY))
    counts = np.bincount(labels)
    return np.asarray(losses * (len(labels) / (len(counts) * counts))[labels])


def clearly_less(one: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether the mean of `one` is below that of `other` by more than the standard error of the paired differences."""
    gain = other - one
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


def strangeness(held_out: np.ndarray, labels: np.ndarray, new: np.ndarray, priors: np.ndarray) -> float:
    """Return the distance of the mean over unlabelled rows from the mean over the mixture, in standard deviations."""
    groups = [held_out[labels == k] for k in range(len(priors))]
    means = np.array([group.mean() for group in groups])
    counts = np.array([len(group) for group in groups])
    own = np.array([group.var(ddof=1) for group in groups])
    own = ((counts - 1.0) * own + _POOLED_ROWS * own.mean()) / (counts - 1.0 + _POOLED_ROWS)
    expected = priors @ means
    variance = (priors**2 / counts + priors / len(new)) @ own + priors @ (means - expected) ** 2 / len(new)
    return float(abs(new.mean() - expected) / np.sqrt(variance + np.finfo(np.float64).eps * expected**2))
