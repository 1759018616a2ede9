"""Tikhonov regularisation: ridge."""

from __future__ import annotations

from dataclasses import dataclass, replace

from isopleth._namespace import Array
from isopleth.errors import InputError
from isopleth.solvers.regularizers.base import Regularizer, check_positive


@dataclass(frozen=True)
class Tikhonov(Regularizer):
    r"""Ridge, :math:`g_\alpha(\sigma) = 1/(\sigma + \alpha)`.

    Its full form solves the regularised problem exactly and explodes away from the data for small alpha; the truncated one, a sum
    of kernels at the samples alone, has the same values there and stays calm. Qualification 1.

    Parameters
    ----------
    alpha : float, default=0.03
        The ridge, in units of the eigenvalues of K/M, the kernel being 1 at 0 at unit length scale.
    truncated : bool, default=True
        Leave out the term zeta, and with it eigenvalues within 1e-12 of the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import Tikhonov
    >>> Tikhonov(alpha=0.5).filter(np.array([0.0, 0.5]), bound=1.0)
    array([2., 1.])
    """

    alpha: float = 0.03
    truncated: bool = True

    def __post_init__(self) -> None:
        check_positive("alpha", self.alpha)
        if not isinstance(self.truncated, bool):
            raise InputError(f"truncated = {self.truncated!r}: expected True or False.")

    @property
    def qualification(self) -> float:
        """1."""
        return 1.0

    def filter(self, sigma: Array, bound: float) -> Array:
        r""":math:`1/(\sigma + \alpha)`."""
        return 1.0 / (sigma + self.alpha)

    def at_zero(self, bound: float) -> float:
        r""":math:`1/\alpha` in the full form."""
        return 0.0 if self.truncated else 1.0 / self.alpha

    def multiplier(self, sigma: Array, bound: float) -> Array:
        r""":math:`-1/(\alpha(\sigma + \alpha))` in the full form."""
        if self.truncated:
            return super().multiplier(sigma, bound)
        return -1.0 / (self.alpha * (sigma + self.alpha))

    def at(self, alpha: float) -> Tikhonov:
        """The same form with ridge `alpha`."""
        return replace(self, alpha=alpha)
