"""Fits to all but some folds, whose centres lie in the other folds, from one decomposition of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from isopleth.difference.gaussian_system import GaussianSystem
from isopleth.difference.spectrum import PenalizedSpectrum


@dataclass(frozen=True)
class Split:
    """Two samples in folds.

    Parameters
    ----------
    weights : array of shape (m, 2, T)
        Weights by row, sample and fold.
    units : array of shape (b, 2, T) or None
        The same for the rows that are centres, to know which centres the training folds have; None if all of them may
        always be used.
    """

    weights: np.ndarray
    units: np.ndarray | None

    @property
    def folds(self) -> int:
        """How many."""
        return int(self.weights.shape[2])

    @property
    def counts(self) -> np.ndarray:
        """Sizes by sample and fold."""
        return self.weights.sum(axis=0)

    def missing(self, out: Sequence[int]) -> np.ndarray:
        """Places of the centres that are not in the training folds."""
        if self.units is None:
            return np.empty(0, dtype=np.intp)
        kept = np.delete(self.units, list(out), axis=2).sum(axis=(1, 2))
        return np.flatnonzero(kept == 0)


@dataclass(frozen=True)
class FoldSums:
    """Sums of the functions over each sample and fold, of shape (b, 2, T), and what they are sums over."""

    split: Split
    sums: np.ndarray

    @classmethod
    def of(cls, system: GaussianSystem, z: np.ndarray, split: Split) -> Self:
        """One pass over the rows."""
        flat = split.weights.reshape(len(z), -1)
        return cls(split, system.sums(z, flat).reshape(-1, 2, split.folds))

    def held_out(self, fold: int) -> np.ndarray:
        """Mean over the first sample less mean over the second, in one fold."""
        means = self.sums[:, :, fold] / self.split.counts[:, fold]
        return means[:, 0] - means[:, 1]

    def _train(self, array: np.ndarray, out: Sequence[int]) -> np.ndarray:
        return np.delete(array, list(out), axis=-1).sum(axis=-1)

    def trained(self, out: Sequence[int]) -> np.ndarray:
        """The same over all folds but those `out`."""
        means = self._train(self.sums, out) / self._train(self.split.counts, out)
        return means[:, 0] - means[:, 1]

    def trained_without_self(self, out: Sequence[int]) -> np.ndarray:
        """The same where each centre leaves out the one draw that it is itself."""
        if self.split.units is None:
            return self.trained(out)
        own = self._train(self.split.units, out)
        own = own / np.maximum(np.ceil(own * (1.0 - 1e-12)), 1.0)
        total = self._train(self.split.counts, out)
        own[:, total - own.max(axis=0) <= 1e-9 * total] = 0.0  # a single draw cannot be left out
        means = (self._train(self.sums, out) - own) / (total - own)
        return means[:, 0] - means[:, 1]


@dataclass(frozen=True)
class FoldTables:
    """Scores of every ridge, over the volume of the system.

    Parameters
    ----------
    losses : array of shape (T, a)
        Cross-validation losses by held-out fold.
    cross : array of shape (T, a)
        Cross-fitted dual estimates of the squared L2 distance.
    paired : array of shape (T, T, a) or None
        Losses in the first fold of fits that saw neither it nor the second one.
    """

    losses: np.ndarray
    cross: np.ndarray
    paired: np.ndarray | None


def _restrict(columns: np.ndarray, missing: np.ndarray) -> np.ndarray:
    columns = columns.copy()
    columns[missing] = 0.0
    return columns


def _solve_without(inverse: np.ndarray, solved: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Solutions of the system without some centres, from `solved` = G b of all, b being 0 at those `missing`.

    The inverse of a block of H + alpha P is a Schur complement of its inverse G, so folds need no decomposition of their own.
    """
    if len(missing) == 0:
        return solved
    factor = cho_factor(inverse[np.ix_(missing, missing)], lower=True, check_finite=False)
    out = solved - inverse[:, missing] @ cho_solve(factor, solved[missing], check_finite=False)
    out[missing] = 0.0
    return out


class _Problem:
    """Right-hand sides of a fit to all but the folds `out`, and the places of their solutions."""

    def __init__(self, sums: FoldSums, out: Sequence[int], columns: list[np.ndarray]) -> None:
        self.out = out
        self.missing = sums.split.missing(out)
        self.columns = _restrict(np.column_stack(columns), self.missing)


def _solutions(spectrum: PenalizedSpectrum, alpha: float, problems: list[_Problem]) -> list[np.ndarray]:
    """Coefficients for every right-hand side of every problem."""
    solved = spectrum.solve(np.concatenate([problem.columns for problem in problems], axis=1), alpha)
    widths = np.cumsum([problem.columns.shape[1] for problem in problems])[:-1]
    inverse = spectrum.inverse(alpha) if any(len(problem.missing) for problem in problems) else solved
    parts = np.split(solved, widths, axis=1)
    return [_solve_without(inverse, part, p.missing) for p, part in zip(problems, parts, strict=True)]


def fold_coefficients(sums: FoldSums, spectrum: PenalizedSpectrum, alpha: float) -> np.ndarray:
    """Coefficients of the fits without each fold, of shape (b, T)."""
    problems = [_Problem(sums, (t,), [sums.trained((t,))]) for t in range(sums.split.folds)]
    return np.concatenate(_solutions(spectrum, alpha, problems), axis=1)


def fold_tables(sums: FoldSums, spectrum: PenalizedSpectrum, alphas: np.ndarray, nested: bool) -> FoldTables:
    """Scores by fold and ridge, and with `nested` those of fits that leave out two folds."""
    folds = range(sums.split.folds)
    tests = [sums.held_out(t) for t in folds]
    singles = [_Problem(sums, (t,), [sums.trained((t,)), sums.trained_without_self((t,)), tests[t]]) for t in folds]
    pairs = [_Problem(sums, p, [sums.trained(p)]) for p in combinations(folds, 2)] if nested else []
    losses, cross = np.empty((len(folds), len(alphas))), np.empty((len(folds), len(alphas)))
    paired = np.full((len(folds), len(folds), len(alphas)), np.nan) if nested else None
    for a, alpha in enumerate(alphas):
        solved = _solutions(spectrum, float(alpha), [*singles, *pairs])
        for t, theta in zip(folds, solved, strict=False):
            product = spectrum.gram @ theta
            losses[t, a] = theta[:, 0] @ product[:, 0] - 2.0 * tests[t] @ theta[:, 0]
            # 2 h'Gk - h'GHGk, h over the held-out fold and k over the others
            cross[t, a] = 2.0 * tests[t] @ theta[:, 1] - theta[:, 2] @ product[:, 1]
        if paired is not None:
            theta = np.concatenate(solved[len(folds) :], axis=1)
            squares = np.einsum("bk,bk->k", theta, spectrum.gram @ theta)
            for k, (s, t) in enumerate(combinations(folds, 2)):
                paired[s, t, a] = squares[k] - 2.0 * tests[s] @ theta[:, k]
                paired[t, s, a] = squares[k] - 2.0 * tests[t] @ theta[:, k]
    return FoldTables(losses, cross, paired)
