"""The direct solver: one Cholesky factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from isopleth._namespace import Array, namespace
from isopleth.errors import InputError


class Shifted:
    r"""The factorised matrix :math:`A + \alpha I`, A positive semi-definite, for as many right-hand sides as there are.

    Parameters
    ----------
    matrix : array of shape (n, n)
        A, symmetric; left as it is.
    alpha : float
        Positive.

    Raises
    ------
    InputError
        If `alpha` is so small that the matrix is not positive definite in its precision.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.solvers import Shifted
    >>> Shifted(np.array([[1.0, 0.0], [0.0, 3.0]]), 1.0).solve(np.array([2.0, 2.0]))
    array([1. , 0.5])
    """

    def __init__(self, matrix: Array, alpha: float) -> None:
        xp = namespace(matrix)
        shifted = matrix + alpha * xp.eye(matrix.shape[0], dtype=matrix.dtype)
        self._factor: Any = None
        if isinstance(shifted, np.ndarray):
            try:
                self._factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError as error:
                raise InputError(
                    f"alpha = {alpha:g} is lost in the rounding of {matrix.dtype} eigenvalues; use a larger alpha."
                ) from error
        else:
            self._matrix = shifted  # the standard has no triangular solve

    def solve(self, b: Array) -> Array:
        """The solution for `b` of shape (n,) or (n, k)."""
        if self._factor is not None:
            return cho_solve(self._factor, b, check_finite=False)
        return namespace(b).linalg.solve(self._matrix, b)
