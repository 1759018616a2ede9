r"""Kernel ridge regression on landmarks, with leave-one-out residuals in closed form.

:math:`m(x) = b + \sum_k \gamma_k \exp(-|x - c_k|^2 / (2 \ell^2))` with some rows of the fit as landmarks c and columns at
deviation 1. Where a target is smooth in the columns, forests need many rows for what this function has at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.rows import sample_places
from isopleth.core.scales import centre_and_scale
from isopleth.core.threads import check_stopped
from isopleth.operators.features import GaussianFeatures

# Squared lengths over twice the number of columns, and penalties in numbers of rows, that are compared.
_LENGTHS, _PENALTIES = (0.1, 0.5, 2.5), np.geomspace(1e-10, 10.0, 22)
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
    def fit(cls, A: np.ndarray, y: np.ndarray, weights: np.ndarray, copies: np.ndarray) -> tuple[Self, np.ndarray]:
        """Return the function of least squared leave-one-out residuals, and these; of `copies` equal rows one is left out.

        Of many rows some are fitted; the function does not know the others, whose residuals are plain ones.
        """
        rows = sample_places(len(A), _ROWS)
        model, residuals = cls._fit(A[rows], y[rows], weights[rows], copies[rows])
        if len(rows) == len(A):
            return model, residuals
        out = y - model.predict(A)
        out[rows] = residuals
        return model, out

    @classmethod
    def _fit(cls, A: np.ndarray, y: np.ndarray, weights: np.ndarray, copies: np.ndarray) -> tuple[Self, np.ndarray]:
        """Compare lengths and penalties by leave-one-out residuals."""
        share = weights / weights.sum()
        center, scale = centre_and_scale(A, share)
        Z = np.clip((A - center) / scale, -_FARTHEST, _FARTHEST)
        count = min(_FEWEST + len(Z) // _FURTHER, _MOST)
        landmarks, mean = Z[sample_places(len(Z), count)], float(share @ y)
        root, one = np.sqrt(share), 1.0 / np.maximum(copies, 1.0)
        target, best, found = root * (y - mean), np.inf, None
        distances = GaussianFeatures(landmarks, 1.0).distances(Z)
        for factor in _LENGTHS:
            check_stopped()
            functions = GaussianFeatures(landmarks, np.sqrt(factor * max(A.shape[1], 1)))
            features = functions.at(distances)
            shift = share @ features
            B = root[:, None] * (features - shift)
            squares, V = np.linalg.eigh(B.T @ B)
            kept = squares > _RANK * max(squares[-1], 1e-300)
            squares, V = squares[kept], V[:, kept]
            U = B @ (V / np.sqrt(squares))
            projected, leverage = U.T @ target, U**2
            for penalty in _PENALTIES:
                shrunk = squares / (squares + penalty)
                left = 1.0 - one * (leverage @ shrunk + share)
                if left.min() < _LEAST_DENOMINATOR and penalty < _PENALTIES[-1]:
                    continue  # it goes through a row: what is left of that is rounding
                residuals = (target - U @ (shrunk * projected)) / root / np.maximum(left, _LEAST_DENOMINATOR)
                if (loss := float(share @ residuals**2)) < best:
                    slopes = V @ (np.sqrt(squares) / (squares + penalty) * projected)
                    best, found = loss, (cls(center, scale, functions, shift, slopes, mean), residuals)
        assert found is not None
        return found

    def predict(self, A: np.ndarray) -> np.ndarray:
        """Return the function at rows."""
        Z = np.clip((A - self.center) / self.scale, -_FARTHEST, _FARTHEST)
        return np.asarray(self.intercept + (self.functions(Z) - self.shift) @ self.slopes)
