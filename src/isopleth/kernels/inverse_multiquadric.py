"""Inverse multiquadric kernel, a preset of the rational quadratic one with arithmetic of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from isopleth.backend import Array, namespace, overwrite
from isopleth.kernels.base import SelfConvolution, Workspace, names_of_kernels, register
from isopleth.kernels.rational_quadratic import RationalQuadratic

# s^floor(n/2) phi^(n) = c (s/(1+s))^floor(n/2) (1+s)^(-e/2); these are the (c, e).
_FACTORS = ((1.0, 1), (-1 / 2, 3), (3 / 4, 3), (-15 / 8, 5), (105 / 16, 5))


def _inverse(a: Array) -> Array:
    """Compute 1/a in the memory of `a`."""
    a **= -1.0
    return a


def _convolved(s: Array, work: Workspace) -> Array:
    """Compute 1/agm(1, sqrt(1 + s/4)), agm being the arithmetic-geometric mean."""
    xp = namespace(s)
    s *= 0.25
    s += 1.0
    a = overwrite(xp.sqrt, s)
    g = work.copy("geometric mean", a)
    g[...] = 1.0
    digits = float(xp.finfo(a.dtype).eps)
    while bool(xp.any(a - g > 4.0 * digits * a)):
        middle = work.copy("arithmetic mean", a)
        middle += g
        middle *= 0.5
        g *= a
        g = overwrite(xp.sqrt, g)
        a[...] = middle
    return _inverse(a)


@register("imq")
@dataclass(frozen=True)
class IMQ(RationalQuadratic):
    r"""Inverse multiquadric kernel, :math:`\varphi(s) = (1 + s)^{-1/2}`.

    It has no integral in any dimension, and its square has one in one dimension only: use it for scores and Stein
    discrepancies, not for densities of two columns or more. It is ``RationalQuadratic(shape=0.5)`` without a logarithm and an
    exponential for each value.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.

    Examples
    --------
    >>> from isopleth.kernels import IMQ
    >>> float(IMQ(dim=2)(3.0))
    0.5
    """

    shape: float = field(default=0.5, init=False, repr=False)

    def _others(self, query: str, least: float) -> str:
        return names_of_kernels(query, self.bound_dim)

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        xp = namespace(s)
        share = None
        if order > 1:
            # s/(1+s) in a form that is 1 at infinity
            share = _inverse(work.copy("share", s))
            share += 1.0
            share = _inverse(share)
            if order == 4:
                share *= share
        s += 1.0
        root = _inverse(overwrite(xp.sqrt, s))
        factor, exponent = _FACTORS[order]
        if exponent == 1:
            return root
        square = work.copy("square", root)
        square *= root
        for _ in range(exponent // 2):
            root *= square
        if share is not None:
            root *= share
        root *= factor
        return root

    def self_convolution(self) -> SelfConvolution:
        r"""Return a complete elliptic integral, in one dimension.

        .. math:: \int \varphi(|z|^2)\, \varphi(|z - r|^2)\, dz = \frac{4}{\sqrt{r^2 + 4}}\, K(k)
            = \frac{\pi}{\operatorname{agm}(1, \sqrt{1 + r^2/4})}, \qquad k^2 = \frac{r^2}{r^2 + 4}

        The arithmetic-geometric mean gives it to the last digits at every distance, in a dozen square roots or fewer.

        Raises
        ------
        InputError
            In two dimensions and more, where the square has no integral.
        """
        return SelfConvolution(math.log(math.pi), _convolved) if self.square_integrable else super().self_convolution()
