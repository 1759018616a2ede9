r"""Nystrom forms: a score sought among the sums of kernels at a few landmarks, by what all samples say.

With :math:`Z` the landmarks, :math:`A = K_{ZX} W K_{XZ}` and :math:`h = \zeta(Z)`, both over all samples with weights of sum 1,
the score is :math:`K_{\cdot Z}\, c` with

.. math:: c = -(A + \alpha K_{ZZ})^+ h \quad\text{(Tikhonov)}, \qquad
          c = -K_{ZZ}^{-1/2}\, g(L)\, K_{ZZ}^{-1/2} h,\quad L = K_{ZZ}^{-1/2} A K_{ZZ}^{-1/2} \quad\text{(any filter g)}.

For all samples as landmarks these are the truncated forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isopleth._namespace import Array, namespace
from isopleth.errors import InputError
from isopleth.solvers.eigen import Spectrum
from isopleth.solvers.regularizers import Regularizer, Tikhonov
from isopleth.solvers.regularizers.base import divided


def rank_tolerance(eps: float) -> float:
    r"""Eigenvalues of :math:`K_{ZZ}` below this share of the largest count as 0: 4e-11 in float64, 2e-5 in float32.

    What rounding of A does to L is the rounding over this share; what is lost are combinations of landmarks whose norm is
    nothing but rounding itself.
    """
    return eps ** (2.0 / 3.0)


@dataclass(frozen=True)
class NystromSystem:
    """The matrices of a Nystrom form, stacked as its space does.

    Parameters
    ----------
    gram : array of shape (n, n)
        :math:`K_{ZZ}`.
    squares : array of shape (n, n)
        A.
    rhs : array of shape (n, k)
        h.
    eps : float
        Relative rounding error of A.
    """

    gram: Array
    squares: Array
    rhs: Array
    eps: float

    def solve(self, regularizer: Regularizer) -> Array:
        r"""Stacked coefficients c, of shape (n, k).

        Tikhonov's are the least-squares solution of least norm: eigenvalues of :math:`A + \alpha K_{ZZ}` count as 0 if,
        relative to the largest, they are below the rounding error of A, or below that of the decomposition, n times that of
        float64. Those of other regularisers rest on eigenvalues of :math:`K_{ZZ}` above ``rank_tolerance``.

        Raises
        ------
        InputError
            For the full form of Tikhonov, which has a term at every sample.
        """
        _refuse_full_form(regularizer)
        if not isinstance(regularizer, Tikhonov):
            return self._filtered(regularizer)
        spectrum = Spectrum.of(self.squares + regularizer.alpha * self.gram)
        least = max(self.eps, self.gram.shape[0] * float(np.finfo(np.float64).eps))
        ones = namespace(spectrum.values).ones_like(spectrum.values)
        inverse = divided(ones, spectrum.values, spectrum.values > least * spectrum.largest)
        return -spectrum.apply(lambda _: inverse, self.rhs)

    def solve_path(self, regularizers: Sequence[Regularizer]) -> list[Array]:
        """The same for several regularisers by one decomposition of L; Tikhonov's then rest on its rank tolerance too."""
        for regularizer in regularizers:
            _refuse_full_form(regularizer)
        return [self._filtered(regularizer) for regularizer in regularizers]

    @property
    def largest(self) -> float:
        """The largest eigenvalue of L."""
        return self._compressed[1].largest

    def _filtered(self, regularizer: Regularizer) -> Array:
        basis, spectrum = self._compressed
        sigma = namespace(spectrum.values).clip(spectrum.values, 0.0, None)
        g = regularizer.filter(sigma, spectrum.largest)
        return -(basis @ (spectrum.vectors @ (g[:, None] * (spectrum.vectors.T @ (basis.T @ self.rhs)))))

    @cached_property
    def _compressed(self) -> tuple[Array, Spectrum]:
        r"""An inverse square root of :math:`K_{ZZ}` on what counts of it, as columns, and the spectrum of L."""
        gram = Spectrum.of(self.gram)
        xp = namespace(gram.values)
        (counts,) = xp.nonzero(gram.values > rank_tolerance(self.eps) * gram.largest)
        root = xp.sqrt(xp.take(gram.values, counts, axis=0))
        basis = (xp.take(gram.vectors.T, counts, axis=0) / root[:, None]).T
        return basis, Spectrum.of(basis.T @ self.squares @ basis)


def _refuse_full_form(regularizer: Regularizer) -> None:
    if isinstance(regularizer, Tikhonov) and not regularizer.truncated:
        raise InputError(
            "the full form of Tikhonov regularisation has a term at every sample, not at landmarks alone; use truncated=True."
        )
