"""The kernel of a Sobolev norm with derivatives of any orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar

import numpy as np

from isopleth._namespace import Array
from isopleth.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution
from isopleth.kernels.sobolev_spectrum import unit_spectrum
from isopleth.kernels.sobolev_tables import convolution_table, laplacian_table, log_convolution, product_table
from isopleth.kernels.workspace import Workspace


@dataclass(frozen=True)
class Sobolev(Kernel):
    r"""The reproducing kernel of a Sobolev norm whose derivative orders are weighted at will, scaled to be 1 at 0.

    The norm is :math:`\sum_{l=0}^m a_l\, \ell^{2l} \sum_{|\alpha|=l} \tfrac{l!}{\alpha!} \|D^\alpha f\|_2^2` with
    :math:`a_0 = 1` (appendix H.1 of [1]_), and

    .. math:: \varphi(s) = \frac{k(\sqrt s)}{k(0)}, \qquad
        k(|x|) = \int_{\mathbb{R}^d} \frac{e^{2\pi i\, z\cdot x}}{1 + \sum_{l=1}^m a_l\, |2\pi z|^{2l}}\, dz.

    With ``a_m = 1`` and zeros before it this is `SDO`, with binomial coefficients, :math:`a_l = \binom{m}{l}`, the Matern
    kernel of order m - d/2 in :math:`\sqrt s`. It is not sampled but evaluated, to 11 digits or more, from a table that
    is made once for every dimension and coefficients and serves all length scales. It can be negative.

    Parameters
    ----------
    coefficients : sequence of float
        :math:`a_1, \ldots, a_m`: none negative, the last that is not 0 of an order m above half the number of columns.
        They are of frequencies in units of 1/length_scale.
    dim : int, optional
        Dimension of the points; left out, it is bound at fit.

    Raises
    ------
    InputError
        If coefficients are negative, all zero or no numbers; and when bound, if there are too few for the columns.

    References
    ----------
    .. [1] M. Kozdoba, B. Perets, S. Mannor, "Unnormalized Density Estimation with Root Sobolev Norm Regularization".

    Examples
    --------
    >>> from isopleth import Sobolev
    >>> kernel = Sobolev([2.0, 1.0], dim=1)  # (1 + t^2)^2: Matern 3/2
    >>> round(float(kernel(4.0)), 6)  # (1 + 2) e^-2
    0.406006
    """

    coefficients: Sequence[float]
    dim: int | None = field(default=None, kw_only=True)

    nonnegative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "coefficients", _checked(self.coefficients))
        if self.dim is not None and 2 * len(self.coefficients) <= self.dim:
            least = self.dim // 2 + 1
            raise InputError(
                f"coefficients = {self.coefficients!r}: Sobolev needs a positive coefficient of order {least} or above for "
                f"{self.dim} columns, and the highest here is of order {len(self.coefficients)}."
            )

    @property
    def smoothness(self) -> float:
        """m - dim/2."""
        return len(self.coefficients) - 0.5 * self.bound_dim

    @property
    def _norm(self) -> tuple[int, tuple[float, ...]]:
        return self.bound_dim, tuple(self.coefficients)

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        return product_table(*self._norm, order)(s, work)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """One table instead of two, and no infinities of opposite sign at 0."""
        if len(self.coefficients) == 1:  # exp(-r/sqrt(a_1)) in one dimension, whose two infinities cancel
            out = self._product(s, 0, work)
            out /= self.coefficients[0]
            return out
        return laplacian_table(*self._norm)(s, work)

    def second_at_zero(self) -> float:
        r"""By the fourth moment of the spectrum: tables of :math:`s\varphi''` end before."""
        if self.smoothness <= 2.0:
            return math.inf
        spectrum, shift = unit_spectrum(*self._norm)
        d = self.bound_dim
        moment = math.exp(spectrum.log_moment(d + 4) - spectrum.log_moment(d)) * 4.0**shift
        return moment / (4.0 * d * (d + 2.0))

    def self_convolution(self) -> SelfConvolution:
        r"""From its spectrum, which is the square."""
        return SelfConvolution(log_convolution(*self._norm), convolution_table(*self._norm))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Angular wave vectors :math:`\omega` with :math:`\varphi(|x|^2) = E \cos(\omega \cdot x)`: exact draws.

        Parameters
        ----------
        n : int
            How many.
        rng : numpy.random.Generator
            Source of the draws.

        Returns
        -------
        ndarray of shape (n, dim)
            Uniform directions, lengths of density proportional to :math:`t^{d-1}/(1 + \sum_l a_l t^{2l})`.
        """
        spectrum, shift = unit_spectrum(*self._norm)
        directions = rng.standard_normal((n, self.bound_dim))
        radii = spectrum.sample(n, rng) * 2.0 ** (0.5 * shift)
        return directions * (radii / np.linalg.norm(directions, axis=1))[:, None]

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r""":math:`\propto 1/(1 + \sum_l a_l |\omega|^{2l})`."""
        spectrum, shift = unit_spectrum(*self._norm)
        d, octaves = self.bound_dim, 0.5 * shift * math.log(2.0)
        log_sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)
        log_radius = np.log(np.maximum(np.linalg.norm(omega, axis=1), 1e-300))
        mass = log_sphere + spectrum.log_moment(d) + d * octaves
        return np.asarray(-spectrum.log_polynomial(log_radius - octaves) - mass)


def _checked(coefficients: Sequence[float]) -> tuple[float, ...]:
    """Coefficients as a tuple that ends with a positive one."""
    sequence = isinstance(coefficients, Sequence | np.ndarray) and not isinstance(coefficients, str | bytes)
    values = list(coefficients) if sequence else []
    while values and isinstance(values[-1], Real) and values[-1] == 0:
        values.pop()
    numbers = all(isinstance(a, Real) and not isinstance(a, bool) and math.isfinite(a) and a >= 0 for a in values)
    if not values or not numbers:
        raise InputError(
            f"coefficients = {coefficients!r}: expected a_1, ..., a_m, finite numbers that are at least 0 and one of them "
            f"above, such as (0.5, 0.0, 1.0)."
        )
    return tuple(float(a) for a in values)
