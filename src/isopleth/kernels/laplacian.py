"""The Laplacian (Matern 1/2) kernel."""

from __future__ import annotations

from dataclasses import dataclass

from isopleth.kernels.matern_family import MaternFamily


@dataclass(frozen=True)
class Laplacian(MaternFamily):
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
