"""One eigendecomposition of H for every ridge, estimate and permutation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh

from isopleth.errors import InputError


@dataclass(frozen=True)
class PenalizedSpectrum:
    r"""Coordinates in which both the inner products H and the penalised norm P are diagonal.

    :math:`V^\top H V = \operatorname{diag}(D)` and :math:`V^\top P V = I`, so that
    :math:`G = (H + \alpha P)^{-1} = V (D + \alpha)^{-1} V^\top` for every :math:`\alpha`.

    Parameters
    ----------
    gram : array of shape (b, b)
        H.
    values : array of shape (b,)
        D, ascending, none negative.
    vectors : array of shape (b, b)
        V.
    """

    gram: np.ndarray
    values: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, gram: np.ndarray, norm: np.ndarray | None = None) -> Self:
        """Of inner products and a norm, the identity when left out."""
        # Divide and conquer: the default driver takes twice as long where eigenvalues lie close together.
        values, vectors = eigh(gram, norm, driver="evd" if norm is None else "gvd", check_finite=False)
        return cls(gram, np.maximum(values, 0.0), vectors)

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue, infinite where the smallest is lost in rounding."""
        smallest = self.values[0]
        return float(self.values[-1] / smallest) if smallest > self._rounding else float("inf")

    @property
    def _rounding(self) -> float:
        return len(self.values) * float(np.finfo(np.float64).eps) * float(self.values[-1])

    def check(self, alpha: float) -> None:
        """Refuse a ridge that leaves a system which double precision cannot solve; one without centres is solved."""
        if len(self.values) and self.values[0] + alpha <= self._rounding:
            raise InputError(
                f"alpha = {alpha:.3g} leaves a system that is singular to working precision; use alpha >= "
                f"{10 * self._rounding:.0e}, fewer centers or a smaller length_scale."
            )

    def solve(self, b: np.ndarray, alpha: float) -> np.ndarray:
        """G b for `b` of shape (b, k)."""
        return self.vectors @ ((self.vectors.T @ b) / (self.values + alpha)[:, None])

    def dual_weights(self, alpha: float) -> np.ndarray:
        """Eigenvalues of M = 2G - GHG, the form of the dual estimate h'Mh."""
        inverse = 1.0 / (self.values + alpha)
        return (1.0 + alpha * inverse) * inverse
