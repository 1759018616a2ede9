"""One eigendecomposition, for every regulariser and every strength of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from isopleth._namespace import Array, namespace


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    values : array of shape (n,)
        Ascending.
    vectors : array of shape (n, n)
        The eigenvectors are its columns.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.solvers import Spectrum
    >>> Spectrum.of(np.array([[2.0, 0.0], [0.0, 4.0]])).apply(lambda sigma: 1.0 / sigma, np.array([[2.0], [2.0]]))
    array([[1. ],
           [0.5]])
    """

    values: Array
    vectors: Array

    @classmethod
    def of(cls, matrix: Array) -> Self:
        """Of a symmetric `matrix`, of which only one triangle is read."""
        values, vectors = namespace(matrix).linalg.eigh(matrix)
        return cls(values, vectors)

    @property
    def largest(self) -> float:
        """The largest eigenvalue."""
        return float(self.values[-1])

    def apply(self, function: Callable[[Array], Array], b: Array) -> Array:
        """f(A) b for `b` of shape (n, k); `function` gets all eigenvalues."""
        return self.vectors @ (function(self.values)[:, None] * (self.vectors.T @ b))
