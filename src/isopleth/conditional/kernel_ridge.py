r"""Kernel ridge regression on landmarks, with leave-one-out residuals in closed form.

:math:`m(x) = b + \sum_k \gamma_k \exp(-|x - c_k|^2 / (2 \ell^2))` with some rows of the fit as landmarks c and columns at
deviation 1. Where a target is smooth in the columns, forests need many rows for what this function has at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isopleth.core.rows import sample_places
from isopleth.core.scales import centre_and_scale
from isopleth.core.threads import check_stopped
from isopleth.operators.features import GaussianFeatures

# Squared lengths over twice the number of columns, and penalties in numbers of rows, that are compared.
_LENGTHS, _PENALTIES = (0.1, 0.5, 2.5), np.geomspace(1e-10, 10.0, 22)
# Penalties that are compared where groups of rows are left out: with less of it, a function that goes through few groups may
# swing far between two of them.
_PENALTIES_OF_GROUPS = np.geomspace(1e-4, 10.0, 9)
# Fewest landmarks, rows for each further one, and most; most rows that the function is fitted to.
_FEWEST, _FURTHER, _MOST, _ROWS = 150, 10, 800, 8000
# Farthest coordinate, in deviations.
_FARTHEST = 4.0
# Eigenvalues below this share of the largest are left out; least share of a residual that no row takes up itself.
_RANK, _LEAST_DENOMINATOR = 1e-11, 1e-6


@dataclass(frozen=True)
class KernelRidge:
    """Fitted function."""

    center: np.ndarray  # (p,): mean of each column
    scale: np.ndarray  # (p,): its deviation
    functions: GaussianFeatures  # around landmarks in deviations
    shift: np.ndarray  # (M,): means of the kernels
    slopes: np.ndarray  # (M,)
    intercept: float

    @classmethod
    def fit(
        cls,
        A: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
        copies: np.ndarray,
        smoothness: tuple[float, float] | None = None,
    ) -> tuple[KernelRidge, np.ndarray]:
        """Return the function of least squared leave-one-out residuals, and these; of `copies` equal rows one is left out.

        Of many rows some are fitted; the function does not know the others, whose residuals are plain ones. `smoothness`, a
        squared length and a penalty, has been chosen elsewhere.
        """
        rows = sample_places(len(A), _ROWS)
        model, residuals = cls._fit(A[rows], y[rows], weights[rows], copies[rows], smoothness)
        if len(rows) == len(A):
            return model, residuals
        out = y - model.predict(A)
        out[rows] = residuals
        return model, out

    @classmethod
    def _fit(
        cls,
        A: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
        copies: np.ndarray,
        smoothness: tuple[float, float] | None,
    ) -> tuple[KernelRidge, np.ndarray]:
        """Compare lengths and penalties by leave-one-out residuals."""
        share, one = weights / weights.sum(), 1.0 / np.maximum(copies, 1.0)
        best, found = np.inf, None
        lengths, penalties = (_LENGTHS, _PENALTIES) if smoothness is None else ((smoothness[0],), [smoothness[1]])
        for part in _decomposed(A, y, share, lengths):
            leverage = part.U**2
            for penalty in penalties:
                shrunk = part.squares / (part.squares + penalty)
                left = 1.0 - one * (leverage @ shrunk + share)
                if left.min() < _LEAST_DENOMINATOR and penalty < penalties[-1]:
                    continue  # it goes through a row: what is left of that is rounding
                residuals = (part.target - part.U @ (shrunk * part.projected)) / part.root
                residuals = residuals / np.maximum(left, _LEAST_DENOMINATOR)
                if (loss := float(share @ residuals**2)) < best:
                    best, found = loss, (part.function(penalty), residuals)
        assert found is not None
        return found

    def predict(self, A: np.ndarray) -> np.ndarray:
        """Return the function at rows."""
        Z = np.clip((A - self.center) / self.scale, -_FARTHEST, _FARTHEST)
        return np.asarray(self.intercept + (self.functions(Z) - self.shift) @ self.slopes)


@dataclass(frozen=True)
class _Decomposed:
    """Singular value decomposition of the kernels of one length at the rows of a fit."""

    center: np.ndarray
    scale: np.ndarray
    functions: GaussianFeatures
    shift: np.ndarray
    mean: float
    root: np.ndarray  # (n,): roots of the shares of the rows
    target: np.ndarray  # (n,)
    squares: np.ndarray  # (r,): squared singular values
    V: np.ndarray  # (M, r)
    U: np.ndarray  # (n, r)
    projected: np.ndarray  # (r,)

    def function(self, penalty: float) -> KernelRidge:
        """Return the function of a penalty."""
        slopes = self.V @ (np.sqrt(self.squares) / (self.squares + penalty) * self.projected)
        return KernelRidge(self.center, self.scale, self.functions, self.shift, slopes, self.mean)


def _decomposed(A: np.ndarray, y: np.ndarray, share: np.ndarray, lengths: Sequence[float]) -> Iterator[_Decomposed]:
    """Yield the decompositions of some lengths."""
    center, scale = centre_and_scale(A, share)
    Z = np.clip((A - center) / scale, -_FARTHEST, _FARTHEST)
    count = min(_FEWEST + len(Z) // _FURTHER, _MOST)
    landmarks, mean = Z[sample_places(len(Z), count)], float(share @ y)
    root = np.sqrt(share)
    target = root * (y - mean)
    distances = GaussianFeatures(landmarks, 1.0).distances(Z)
    for factor in lengths:
        check_stopped()
        functions = GaussianFeatures(landmarks, np.sqrt(factor * max(A.shape[1], 1)))
        features = functions.at(distances)
        shift = share @ features
        B = root[:, None] * (features - shift)
        squares, V = np.linalg.eigh(B.T @ B)
        kept = squares > _RANK * max(squares[-1], 1e-300)
        squares, V = squares[kept], V[:, kept]
        U = B @ (V / np.sqrt(squares))
        yield _Decomposed(center, scale, functions, shift, mean, root, target, squares, V, U, U.T @ target)


def smoothness_of_groups(
    A: np.ndarray, y: np.ndarray, weights: np.ndarray, fold: np.ndarray
) -> list[tuple[float, float]]:
    """Return squared lengths and penalties of least squared residuals of folds, each by the rows outside it.

    The first is that of all folds, the next ones those of all but one: what is chosen among many by few folds looks better at
    these than it is.
    """
    loss = np.zeros((int(fold.max()) + 1, len(_LENGTHS), len(_PENALTIES_OF_GROUPS)))
    for k in range(len(loss)):
        out, rest = fold == k, fold != k
        share = weights[rest] / weights[rest].sum()
        for i, part in enumerate(_decomposed(A[rest], y[rest], share, _LENGTHS)):
            for j, penalty in enumerate(_PENALTIES_OF_GROUPS):
                loss[k, i, j] = weights[out] @ (y[out] - part.function(penalty).predict(A[out])) ** 2
    total = loss.sum(axis=0)
    chosen = [np.unravel_index((total - part).argmin(), total.shape) for part in (np.zeros_like(total), *loss)]
    return [(_LENGTHS[int(i)], float(_PENALTIES_OF_GROUPS[int(j)])) for i, j in chosen]
