"""The Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from isopleth._namespace import Array, namespace, overwrite
from isopleth.kernels.base import Kernel, SelfConvolution
from isopleth.kernels.workspace import Workspace


def _exp_of(s: Array, factor: float) -> Array:
    s *= factor
    return overwrite(namespace(s).exp, s)


@dataclass(frozen=True)
class Gaussian(Kernel):
    r"""The Gaussian kernel, :math:`\varphi(s) = e^{-s/2}`.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; left out, it is bound at fit.

    Examples
    --------
    >>> from isopleth import Gaussian
    >>> float(Gaussian(dim=2)(0.0))
    1.0
    """

    @property
    def smoothness(self) -> float:
        """Infinite: the kernel is analytic."""
        return math.inf

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        if order < 2:
            out = _exp_of(s, -0.5)
            if order:
                out *= -0.5
            return out
        power = work.copy("power of s", s)
        if order == 4:
            power *= power
        power *= (-0.5) ** order
        power *= _exp_of(s, -0.5)
        return power

    def _log(self, s: Array, work: Workspace) -> Array:
        s *= -0.5
        return s

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        s[...] = -0.5
        return s

    def self_convolution(self) -> SelfConvolution:
        r""":math:`\pi^{d/2}\, e^{-s/4}`."""
        return SelfConvolution(0.5 * self.bound_dim * math.log(math.pi), lambda s, work: _exp_of(s, -0.25))
