"""Ridge regression with leave-one-out residuals in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import svd

from isopleth.core.scales import centre_and_scale

# Penalties that are compared, in numbers of rows.
PENALTIES = np.geomspace(1e-6, 30.0, 28)
# Columns from which on a decomposition takes longer than Ctrl-C may wait.
_WIDE = 200
# New rows count as at most so many deviations from the mean of a column.
_FARTHEST = 8.0
# Least share of a residual that the row does not take up itself, for rounding errors.
_LEAST_DENOMINATOR = 1e-9


@dataclass(frozen=True)
class Ridge:
    """Linear function of the columns, and how well it is known."""

    center: np.ndarray  # (p,): mean of each column
    scale: np.ndarray  # (p,): its deviation
    slopes: np.ndarray  # (p,): in units of the deviations
    intercept: float

    @classmethod
    def fit(
        cls,
        A: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
        *,
        copies: np.ndarray | None = None,
        by_median: bool = False,
    ) -> tuple[Self, np.ndarray]:
        r"""Return the line of the best penalty, and the residual of each row from the line that is fitted without it.

        With the hat matrix H the residual without row i is :math:`e_i/(1 - H_{ii})`. The penalty has the least mean square of
        these, or the least median `by_median`, which a few wrong cells do not move. Of a row that stands for several equal
        ones, `copies` of them or as many as its weight is larger than the mean one, one is left out.
        """
        share = weights / weights.sum()
        center, scale = centre_and_scale(A, share)
        mean = float(share @ y)
        root, one = np.sqrt(share), 1.0 / np.maximum(len(y) * share if copies is None else copies, 1.0)
        U, s, Vt = _decomposed(root[:, None] * ((A - center) / scale))
        target = root * (y - mean)
        projected, squares = U.T @ target, U**2

        def residuals(penalty: float) -> tuple[np.ndarray, bool]:
            shrunk = s**2 / (s**2 + penalty)
            left = 1.0 - one * (squares @ shrunk + share)
            out = (target - U @ (shrunk * projected)) / root / np.maximum(left, _LEAST_DENOMINATOR)
            return out, bool(left.min() < _LEAST_DENOMINATOR)

        def loss(penalty: float) -> float:
            found, through_a_row = residuals(penalty)
            if through_a_row:  # what is left of that row is rounding
                return np.inf
            return float(np.median(np.abs(found)) if by_median else share @ found**2)

        penalty = float(min(PENALTIES[::-1], key=loss))  # the largest one if all go through a row
        slopes = Vt.T @ (s / (s**2 + penalty) * projected)
        return cls(center, scale, slopes, mean), residuals(penalty)[0]

    def predict(self, A: np.ndarray) -> np.ndarray:
        """Return the line at rows."""
        return self.intercept + np.clip((A - self.center) / self.scale, -_FARTHEST, _FARTHEST) @ self.slopes


def _decomposed(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the singular value decomposition of a matrix, of wide ones by divide and conquer, which an interrupt can leave."""
    if min(A.shape) > _WIDE:
        try:
            U, s, Vt = np.linalg.svd(A, full_matrices=False)
            return U, s, Vt
        except np.linalg.LinAlgError:  # as may happen where columns are linearly dependent, as indicators are
            pass
    U, s, Vt = svd(A, full_matrices=False, lapack_driver="gesvd")
    return U, s, Vt
