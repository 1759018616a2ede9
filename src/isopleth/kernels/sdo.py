"""Kernel of the Sobolev norm of a single derivative order."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from isopleth.errors import InputError
from isopleth.kernels.base import register
from isopleth.kernels.sobolev import SobolevNorm


@register("sdo")
@dataclass(frozen=True)
class SDO(SobolevNorm):
    r"""Single derivative order kernel: the reproducing kernel of a Sobolev norm, scaled to be 1 at 0.

    The norm is :math:`\|f\|_2^2 + \ell^{2m} \sum_{|\alpha|=m} \tfrac{m!}{\alpha!} \|D^\alpha f\|_2^2`; the spectrum of
    its kernel is flat up to the frequency :math:`1/(2\pi\ell)`:

    .. math:: \varphi(s) = \frac{k_1(\sqrt s)}{k_1(0)}, \qquad
        k_1(|x|) = \int_{\mathbb{R}^d} \frac{e^{2\pi i\, z\cdot x}}{1 + |2\pi z|^{2m}}\, dz, \qquad
        k_1(0) = \frac{2 \pi^{d/2}}{(2\pi)^d\, \Gamma(d/2)}\, \frac{\pi}{2m \sin(\pi d/2m)}.

    It is :class:`Sobolev` with the last coefficient 1 and zeros before it, and is evaluated like that kernel: to 11 digits or
    more, from a table that is computed once for every (dim, order) and is valid for all length scales. Except for
    ``dim=1, order=1``, where it is :math:`e^{-\sqrt s}`, it is negative at some distances, so sums of it with positive weights
    can be negative too. Further constants are

    .. math:: \varphi''(0) = \frac{\sin(\pi d/2m)}{4 d (d + 2) \sin(\pi (d + 4)/2m)} \quad (2m > d + 4), \qquad
        \varphi * \varphi = \frac{1}{k_1(0)} \Bigl[\bigl(1 - \tfrac{d}{2m}\bigr)\, \varphi - \tfrac{s}{m}\, \varphi'\Bigr].

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.
    order : int, optional
        Derivative order m, more than half of `dim`; the default is ``dim // 2 + 2``.

    References
    ----------
    Kozdoba et al., Sobolev Space Regularised Pre Density Models.

    Examples
    --------
    >>> from isopleth.kernels import SDO
    >>> round(float(SDO(dim=1, order=1)(4.0)), 6)  # e^-2
    0.135335
    """

    order: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order is None:
            return
        smallest = 1 if self.dim is None else self.dim // 2 + 1
        if isinstance(self.order, bool) or not isinstance(self.order, Integral) or self.order < smallest:
            where = "" if self.dim is None else f" for {self.dim} columns"
            raise InputError(f"order = {self.order!r}: SDO needs a whole number, at least {smallest}{where}.")

    @property
    def bound_order(self) -> int:
        """The order, or its default for the dimension."""
        return self.bound_dim // 2 + 2 if self.order is None else int(self.order)

    @property
    def _coefficients(self) -> tuple[float, ...]:
        return (0.0,) * (self.bound_order - 1) + (1.0,)
