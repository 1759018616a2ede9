"""The Matern kernels of order 3/2, 5/2 and 7/2."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

from isopleth.errors import InputError
from isopleth.kernels.matern_family import MaternFamily

_ORDERS = (1.5, 2.5, 3.5)
_OTHER_NAMES = {0.5: "Laplacian()", float("inf"): "Gaussian()"}


@dataclass(frozen=True)
class Matern(MaternFamily):
    r"""The Matern kernel of order nu, a polynomial in :math:`z = \sqrt{2\nu s}` times an exponential.

    .. math:: \varphi(s) = e^{-z} \begin{cases} 1 + z & \nu = 3/2 \\ 1 + z + z^2/3 & \nu = 5/2 \\
        1 + z + 2z^2/5 + z^3/15 & \nu = 7/2 \end{cases}

    Functions in its space have about nu + dim/2 derivatives: it lies between :class:`Laplacian`, which is order 1/2, and
    :class:`Gaussian`, which is the limit of large orders.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; left out, it is bound at fit.
    nu : {1.5, 2.5, 3.5}, default=1.5
        The order.

    Examples
    --------
    >>> from isopleth import Matern
    >>> round(float(Matern(dim=2, nu=1.5)(3.0)), 6)  # z = 3: 4 e^-3
    0.199148
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.nu, Real) and self.nu in _ORDERS:
            return
        if isinstance(self.nu, Real) and self.nu in _OTHER_NAMES:
            raise InputError(f"nu = {self.nu!r}: that kernel is isopleth.{_OTHER_NAMES[float(self.nu)]}; use that.")
        raise InputError(f"nu = {self.nu!r}: Matern has 1.5, 2.5 and 3.5; Laplacian() is 0.5.")

    @property
    def smoothness(self) -> float:
        """`nu`."""
        return float(self.nu)
