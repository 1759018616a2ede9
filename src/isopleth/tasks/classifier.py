"""Scores that separate classes: the relative density difference of each class and the mixture of all, by folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular

from isopleth.core.budget import Budget
from isopleth.core.errors import refuse_too_large
from isopleth.core.progress import unheard
from isopleth.core.rows import mixed, row_draws
from isopleth.core.threads import interruptible, map_threads, slices
from isopleth.operators.features import LaplaceFeatures

FOLDS = 10
# Length scale of the kernel, in mean absolute differences of standardised columns.
LENGTH = 2.0
_NUGGET = 1e-10
# Matrices of the size of one fold that are held in addition to those of all folds.
_MATRICES = 6
# Most rows of a block; with more, their coordinates leave the cache.
_BLOCK = 4096

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class SpanFeatures:
    r"""Coordinates in the space of :math:`k(x, y) = \exp(-\tfrac{1}{2d} \sum_j |x_j - y_j|)` spanned by the centres."""

    functions: LaplaceFeatures
    factor: np.ndarray  # (b, b): lower Cholesky factor of the centres' kernel matrix
    budget: Budget  # its memory is for the blocks of rows of all threads

    @classmethod
    def of(cls, centers: np.ndarray, budget: Budget) -> Self:
        """Compute the coordinates for these centres."""
        needed = 8 * (FOLDS + _MATRICES) * len(centers) ** 2
        refuse_too_large(f"{len(centers)} centers", needed, budget.memory, "use fewer centers")
        functions = LaplaceFeatures(centers, LENGTH * centers.shape[1])
        gram = functions(centers)
        gram[np.diag_indices_from(gram)] += _NUGGET
        return cls(functions, np.asarray(cholesky(gram, lower=True)), budget)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Return the coordinates of the rows `z`, of shape (n, b)."""
        operations = float(len(self)) ** 2 * len(z)
        half = interruptible(operations, solve_triangular, self.factor, self.functions(z).T, lower=True)
        return np.asarray(half).T

    def __len__(self) -> int:
        return len(self.functions.centers)

    def blocks(self, n: int) -> list[slice]:
        """Split `n` rows into slices. They do not depend on the number of threads, so that sums over them do not either."""
        return slices(n, min(_BLOCK, self.budget.memory / (48 * FOLDS * len(self))))

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return `work` of each item, computed by at most as many threads as there are folds."""
        return map_threads(work, items, min(FOLDS, self.budget.threads))


@dataclass(frozen=True)
class FoldMoments:
    """Second moments of the features by fold, and their sums by fold and class."""

    # (folds, b, b): sums of the products of features over the rows of a fold, each class with weight 1/K in all
    second: np.ndarray
    first: np.ndarray  # (folds, K, b): sums of the features over the rows of a fold and class
    counts: np.ndarray  # (folds, K): rows of each fold and class

    @classmethod
    def of(
        cls,
        features: SpanFeatures,
        z: np.ndarray,
        labels: np.ndarray,
        folds: np.ndarray,
        tick: Callable[[int], None] = unheard,
    ) -> Self:
        """Compute the sums over labelled rows; `tick` is called with the number of rows that were added."""
        n_folds, classes, b = int(folds.max()) + 1, int(labels.max()) + 1, len(features)
        counts = np.zeros((n_folds, classes))
        np.add.at(counts, (folds, labels), 1.0)
        weight = 1.0 / (classes * counts.sum(axis=0))[labels]
        second, first = np.zeros((n_folds, b, b)), np.zeros((n_folds, classes, b))

        def add(fold: int) -> None:
            mine = np.flatnonzero(folds == fold)
            for part in features.blocks(len(mine)):
                rows = mine[part]
                phi = features(z[rows])
                second[fold] += (phi * weight[rows, None]).T @ phi
                first[fold] += (labels[rows] == np.arange(classes)[:, None]).astype(float) @ phi
                tick(len(rows))

        features.map(add, range(n_folds))
        return cls(second, first, counts)

    def without(self, fold: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        r"""Return coefficients of shape (b, K + 1) and offsets of shape (K + 1,) of the scores fitted to the other folds.

        :math:`(C + \alpha\,\mathrm{tr}(C)\,I)\,\theta_k = \mu_k - \mu`, with C the covariance of the features over the
        mixture in which every class has the same share, and :math:`\mu_k, \mu` their means over a class and over it.
        """
        means = (self.first.sum(axis=0) - self.first[fold]) / (self.counts.sum(axis=0) - self.counts[fold])[:, None]
        middle = means.mean(axis=0)
        share = 1.0 - float((self.counts[fold] / self.counts.sum(axis=0)).mean())
        system = (self.second.sum(axis=0) - self.second[fold]) / share - np.outer(middle, middle)
        ridge = alpha * max(float(np.trace(system)), np.finfo(np.float64).eps)
        system[np.diag_indices_from(system)] += ridge
        coefficients = np.asarray(solve(system, (means - middle).T, assume_a="sym"))
        return np.column_stack([coefficients, middle]), np.append(-middle @ coefficients, 0.0)


def stratified_folds(labels: np.ndarray, seed: int) -> np.ndarray:
    """Draw the fold of each row such that every fold has rows of every class, so that all fits have about as many."""
    rng = np.random.default_rng(seed)
    folds = min(FOLDS, int(np.bincount(labels).min()))
    out = np.empty(len(labels), dtype=np.intp)
    for label in range(int(labels.max()) + 1):
        mine = rng.permutation(np.flatnonzero(labels == label))
        out[mine] = np.arange(len(mine)) % folds
    return out


def balanced_subsample(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw the indices of at most `count` rows, evenly from the classes as far as they have rows."""
    rng = np.random.default_rng(seed)
    rank = np.empty(len(labels), dtype=np.intp)
    for label in range(int(labels.max()) + 1):
        mine = np.flatnonzero(labels == label)
        rank[mine] = rng.permutation(len(mine))
    return np.sort(np.argsort(rank, kind="stable")[:count])


def in_random_order(z: np.ndarray, seed: int) -> np.ndarray:
    """Return the indices of centred rows in a random order that goes by what they hold, not by order, units or signs."""
    ordered = np.lexsort(z.T)  # rows that differ in signs only, which draws do not tell apart
    return np.asarray(ordered[np.argsort(mixed(row_draws(np.abs(z[ordered])), seed), kind="stable")])


@dataclass(frozen=True)
class Fits:
    """Scores fitted without each fold; the last column, the mean kernel value, tells how typical a row is."""

    features: SpanFeatures  # coordinates in which the scores are linear
    coefficients: np.ndarray  # (b, folds, K + 1): coefficients
    offsets: np.ndarray  # (folds, K + 1): offsets

    @classmethod
    def of(cls, features: SpanFeatures, sums: FoldMoments, alpha: float) -> Self:
        """Fit without every fold."""
        coefficients, offsets = zip(*(sums.without(fold, alpha) for fold in range(len(sums.counts))), strict=True)
        return cls(features, np.stack(coefficients, axis=1), np.stack(offsets))

    def held_out(self, z: np.ndarray, folds: np.ndarray, tick: Callable[[int], None] = unheard) -> np.ndarray:
        """Return scores of labelled rows, each by the fit without its fold, of shape (n, K + 1); `tick` counts rows."""
        out = np.empty((len(z), self.offsets.shape[1]))

        def score(fold: int) -> None:
            mine = np.flatnonzero(folds == fold)
            for part in self.features.blocks(len(mine)):
                rows = mine[part]
                out[rows] = self.features(z[rows]) @ self.coefficients[:, fold] + self.offsets[fold]
                tick(len(rows))

        self.features.map(score, range(len(self.offsets)))
        return out

    def one_each(self, z: np.ndarray, folds: np.ndarray, tick: Callable[[int], None] = unheard) -> np.ndarray:
        """Return scores of rows, each by the fit without the fold given for it, of shape (n, K + 1); `tick` counts rows.

        The coefficients are taken to the functions around the centres once, which spares a triangular system for each row: ten
        times as fast, with rounding errors some hundred times as large.
        """
        flat = self.coefficients.reshape(len(self.coefficients), -1)
        directions = solve_triangular(self.features.factor, flat, lower=True, trans="T")
        out = np.empty((len(z), self.offsets.shape[1]))

        def score(part: slice) -> None:
            every = (self.features.functions(z[part]) @ directions).reshape(-1, *self.offsets.shape) + self.offsets
            out[part] = every[np.arange(len(every)), folds[part]]
            tick(len(every))

        self.features.map(score, self.features.blocks(len(z)))
        return out

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Return scores of new rows by all fits, (n, folds, K + 1), not averaged, because scores are bounded afterwards."""
        flat = self.coefficients.reshape(len(self.coefficients), -1)
        scores: np.ndarray = np.vstack(
            self.features.map(lambda part: self.features(z[part]) @ flat, self.features.blocks(len(z)))
        )
        return scores.reshape(len(z), *self.offsets.shape) + self.offsets
