"""The Laplacian (Matern 1/2) kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln

from isopleth._namespace import Array, namespace, overwrite
from isopleth.kernels.base import Kernel, SelfConvolution
from isopleth.kernels.matern_function import matern_table
from isopleth.kernels.workspace import Workspace

# phi^(n) = e^-u * sum_k c_k u^-k in u = sqrt(s); these are the c_k of s^floor(n/2) phi^(n), k from 0 on.
_COEFFICIENTS: dict[int, tuple[float, ...]] = {
    1: (0.0, -1 / 2),
    2: (1 / 4, 1 / 4),
    3: (0.0, -1 / 8, -3 / 8, -3 / 8),
    4: (1 / 16, 6 / 16, 15 / 16, 15 / 16),
}


@dataclass(frozen=True)
class Laplacian(Kernel):
    r"""The Laplacian or exponential kernel, :math:`\varphi(s) = e^{-\sqrt{s}}` (Matern 1/2).

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; left out, it is bound at fit.

    Examples
    --------
    >>> from isopleth import Laplacian
    >>> round(float(Laplacian(dim=2)(4.0)), 6)  # e^-2
    0.135335
    """

    @property
    def smoothness(self) -> float:
        """1/2: continuous, with a kink at 0."""
        return 0.5

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        xp = namespace(s)
        u = overwrite(xp.sqrt, s)
        if order == 0:
            u *= -1.0
            return overwrite(xp.exp, u)
        return self._rough(u, order, work)

    @staticmethod
    def _rough(u: Array, order: int, work: Workspace) -> Array:
        """Horner's rule in 1/u; 1/0 is left to be the infinite limit."""
        coefficients = _COEFFICIENTS[order]
        out = work.copy("polynomial in 1/u", u)
        out[...] = coefficients[-1]
        for c in coefficients[-2::-1]:
            out /= u
            out += c
        u *= -1.0
        out *= overwrite(namespace(u).exp, u)
        return out

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """e^-u (1 - (d - 1)/u): written out, so that no infinities of opposite sign meet at 0."""
        xp = namespace(s)
        u = overwrite(xp.sqrt, s)
        out = work.copy("polynomial in 1/u", u)
        if self.bound_dim == 1:
            out[...] = 1.0
        else:
            out[...] = 1.0 - self.bound_dim
            out /= u
            out += 1.0
        u *= -1.0
        out *= overwrite(xp.exp, u)
        return out

    def _log(self, s: Array, work: Workspace) -> Array:
        out = overwrite(namespace(s).sqrt, s)
        out *= -1.0
        return out

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        out = overwrite(namespace(s).sqrt, s)
        out[...] = -0.5 / out
        return out

    def self_convolution(self) -> SelfConvolution:
        r"""A Matern kernel of order :math:`\mu = 1 + d/2` in :math:`u = r/\ell`, not rescaled.

        .. math:: k * k = 2^d \pi^{d/2} \Bigl[\tfrac{\Gamma((1+d)/2)}{\Gamma(1/2)}\Bigr]^2
            \frac{\Gamma(1+d/2)}{\Gamma(1+d)}\, M_\mu(u), \qquad M_\mu(u) = \frac{2^{1-\mu}}{\Gamma(\mu)} u^\mu K_\mu(u)
        """
        d = self.bound_dim
        log_constant = (
            d * math.log(2.0)
            + 0.5 * d * math.log(math.pi)
            + 2 * (gammaln(0.5 * (1 + d)) - gammaln(0.5))
            + gammaln(1 + 0.5 * d)
            - gammaln(1 + d)
        )
        return SelfConvolution(float(log_constant), matern_table(1 + 0.5 * d))
