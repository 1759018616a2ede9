"""Rational quadratic kernel, and the inverse multiquadric one, a preset of it with arithmetic of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from scipy.special import gammaln, kve, logsumexp

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.core.errors import InputError, positive_number
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, names_of_kernels, register
from isopleth.kernels.radial_table import RadialTable, rescaled, tabulate


@register("rational_quadratic")
@dataclass(frozen=True)
class RationalQuadratic(Kernel):
    r"""Rational quadratic kernel, :math:`\varphi(s) = \bigl(1 + \tfrac{s}{2\alpha}\bigr)^{-\alpha}`.

    It is a mixture of Gaussian kernels, :math:`\varphi(s) = \mathbb{E}\, e^{-\tau s/2}`, over precisions :math:`\tau` that are
    Gamma distributed with shape and rate :math:`\alpha` [1]_, eq. 4.19. A small one gives heavy tails, a power
    of the distance; a large one approaches the Gaussian. It has an integral if :math:`\alpha > d/2` (then it is the density of a
    multivariate t-distribution, up to a constant) and its square has one if :math:`\alpha > d/4`.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.
    shape : float, default=1.0
        Half the exponent of the distance in the tails, positive.

    Raises
    ------
    InputError
        If `shape` is not a positive finite number.

    References
    ----------
    .. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006.

    Examples
    --------
    >>> from isopleth.kernels import RationalQuadratic
    >>> float(RationalQuadratic(dim=2, shape=2.0)(4.0))  # (1 + 4/4)^-2
    0.25
    """

    shape: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", positive_number("shape", self.shape))

    @property
    def smoothness(self) -> float:
        """Infinite: the kernel is analytic."""
        return math.inf

    @property
    def integrable(self) -> bool:
        """True for shape > dim/2."""
        return self.shape > 0.5 * self.bound_dim

    @property
    def square_integrable(self) -> bool:
        """True for shape > dim/4."""
        return self.shape > 0.25 * self.bound_dim

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        r"""Compute :math:`(-1)^n\, (\alpha)_n\, (2\alpha)^{p-n}\, (1-q)^p\, q^{\alpha+n-p}`.

        Here q is :math:`1/(1 + s/(2\alpha))`, n the order and p the whole part of n/2.
        """
        power = order // 2
        share = None
        if power:
            share = work.copy("share", s)  # 1 - q = 1/(1 + 2 shape/s), which is 1 at infinity
            with np.errstate(divide="ignore"):
                share **= -1.0
            share *= 2.0 * self.shape
            share += 1.0
            share **= -1.0
            if power == 2:
                share *= share
        out = self._scaled_log1p(s)
        out *= -(self.shape + order - power)
        out = overwrite(namespace(out).exp, out)
        if share is not None:
            out *= share
        rising = math.prod(self.shape + i for i in range(order))
        out *= (-1.0) ** order * rising * (2.0 * self.shape) ** (power - order)
        return out

    def _scaled_log1p(self, s: Array) -> Array:
        s *= 0.5 / self.shape
        return overwrite(namespace(s).log1p, s)

    def _log(self, s: Array, work: Workspace) -> Array:
        out = self._scaled_log1p(s)
        out *= -self.shape
        return out

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        """Return the derivative of the logarithm of the profile."""
        s *= 0.5 / self.shape
        s += 1.0
        s **= -1.0
        s *= -0.5
        return s

    def self_convolution(self) -> SelfConvolution:
        r"""Return the self-convolution, a hypergeometric function.

        With :math:`a = 2\alpha - d/2`,

        .. math:: k * k = (2\pi\alpha)^{d/2}\, \frac{\Gamma(a)}{\Gamma(2\alpha)}\;
            {}_2F_1\Bigl(\alpha, a;\, \alpha + \tfrac12;\, -\frac{s}{8\alpha}\Bigr).

        Raises
        ------
        InputError
            If the square of the kernel has no integral.
        """
        d, shape = self.bound_dim, self.shape
        if not self.square_integrable:
            others = self._others("square_integrable", d / 4)
            raise InputError(f"{self!r} has a square that does not integrate, so that f^2 is no density: use {others}.")
        a = 2.0 * shape - 0.5 * d
        log_constant = 0.5 * d * math.log(2.0 * math.pi * shape) + gammaln(a) - gammaln(2.0 * shape)
        return SelfConvolution(float(log_constant), partial(rescaled, convolution_table(shape, a), 0.125 / shape))

    def log_integral(self) -> float:
        r"""Return the logarithm of :math:`(2\pi\alpha)^{d/2}\, \Gamma(\alpha - d/2)/\Gamma(\alpha)`."""
        self._check_integrable()
        d, shape = self.bound_dim, self.shape
        return float(0.5 * d * math.log(2.0 * math.pi * shape) + gammaln(shape - 0.5 * d) - gammaln(shape))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw from the multivariate t-distribution of :math:`2\alpha - d` degrees of freedom."""
        self._check_integrable()
        d, shape = self.bound_dim, self.shape
        precision = rng.gamma(shape - 0.5 * d, size=(n, 1)) / shape
        return rng.standard_normal((n, d)) / np.sqrt(precision)

    def _check_integrable(self) -> None:
        if not self.integrable:
            others = self._others("integrable", self.bound_dim / 2)
            raise InputError(f"{self!r} does not integrate and is no density: use {others}.")

    def _others(self, query: str, least: float) -> str:
        """Return the shapes and kernels for which the capability `query` is true, as words for a message."""
        return f"shape above {least:g}, or {names_of_kernels(query, self.bound_dim)}"

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw standard normal vectors, each times the root of a Gamma distributed precision."""
        precision = rng.gamma(self.shape, size=(n, 1)) / self.shape
        return np.sqrt(precision) * rng.standard_normal((n, self.bound_dim))

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Return the log of a density :math:`\propto |\omega|^{b} K_b(\sqrt{2\alpha}\,|\omega|)`, :math:`b = \alpha - d/2`.

        It is infinite at 0 if b is not positive.
        """
        d, shape = self.bound_dim, self.shape
        b = shape - 0.5 * d
        r = math.sqrt(2.0 * shape) * np.linalg.norm(omega, axis=1)
        constant = (1.0 - b) * math.log(2.0) + 0.5 * d * math.log(0.5 * shape / math.pi) - gammaln(shape)
        out = np.full(len(r), (b - 1.0) * math.log(2.0) + gammaln(b) if b > 0.0 else math.inf)  # the limit at 0
        apart = r > 0.0
        out[apart] = b * np.log(r[apart]) + log_bessel_k(b, r[apart])
        return np.asarray(out + constant)


_LARGEST_ARGUMENT = 1e6  # of SciPy's scaled Bessel function, which fails for much larger ones
_SMALL = 1e-9  # its square is below the machine epsilon


def log_bessel_k(order: float, r: np.ndarray) -> np.ndarray:
    r"""Return :math:`\log K_\nu(r)` for r > 0, also where the Bessel function itself over- or underflows."""
    order = abs(order)
    with np.errstate(over="ignore", divide="ignore"):
        out = np.asarray(np.log(kve(order, np.minimum(r, _LARGEST_ARGUMENT))) - r)
    missing = ~np.isfinite(out) | (r > _LARGEST_ARGUMENT)
    small = missing & (r < _SMALL)  # K_nu overflows, so nu > 1, and only the singular term counts
    out[small] = gammaln(order) - math.log(2.0) + order * (math.log(2.0) - np.log(r[small]))
    large = missing & (r > max(_LARGEST_ARGUMENT, 1e8 * order**2))
    out[large] = 0.5 * np.log(0.5 * math.pi / r[large]) + (order**2 - 0.25) / (2.0 * r[large]) - r[large]
    others = missing & ~small & ~large
    out[others] = [_log_bessel_k_by_integral(order, x) for x in r[others]]
    return out


def _log_bessel_k_by_integral(order: float, r: float) -> float:
    r"""Compute the logarithm of :math:`K_\nu(r) = \tfrac12 \int e^{\nu t - r\cosh t}\, dt`.

    The trapezoid rule converges exponentially, and all terms are positive; the integrand has its peak at asinh(nu/r).
    """
    width = min(1.0, math.hypot(r, order) ** -0.5)
    peak, both_ends = math.asinh(order / r), math.asinh(50.0 / r)
    left = 12.0 * width + min(50.0 / order if order else math.inf, peak + both_ends)
    right = max(12.0 * width, both_ends - peak)
    step = min(0.25, 0.5 * width)
    t = peak + step * np.arange(-math.ceil(left / step), math.ceil(right / step) + 1)
    return float(logsumexp(order * t - 2.0 * r * np.sinh(0.5 * t) ** 2) + math.log(0.5 * step) - r)


_END = 1e-17
_LAST_OCTAVE = 300  # cells of a table hold third powers of their widths


@lru_cache(maxsize=64)
def convolution_table(shape: float, a: float) -> RadialTable:
    """Return 2F1(shape, a; shape + 1/2; -z) as a table in z."""
    function = _Hypergeometric(shape, a)
    octaves = np.arange(2, _LAST_OCTAVE)
    gone = function(np.ldexp(1.0, octaves)) < _END
    return tabulate(function, 1.0, int(octaves[np.argmax(gone)]) if gone.any() else _LAST_OCTAVE, 1.0)


class _Hypergeometric:
    r"""The function :math:`{}_2F_1(\alpha, a; \alpha + \tfrac12; -z)` of z > 0 for positive shape and a.

    Euler's integral with :math:`4t(1-t) = \cosh^{-2}(u/2)` is

    .. math:: {}_2F_1 = \int \frac{\cosh^{2(a-\alpha)}(u/2)}{(\cosh^2(u/2) + z)^{a}}\, du \Big/ \int \cosh^{-2\alpha}(u/2)\, du.

    Integrands are analytic for :math:`|\operatorname{Im} u| < \pi`, whatever z: the trapezoid rule converges exponentially.
    """

    def __init__(self, shape: float, a: float) -> None:
        self._shape, self._a = shape, a
        self._step = min(0.4, 0.7 / math.sqrt(max(shape, a)))
        # Of the even integrands only u >= 0 is summed; factors of a sum, such as the step, cancel in the ratio.
        self._log_c = self._log_cosh_squared(self._step * np.arange(self._count(_LAST_OCTAVE * math.log(2.0))))
        self._log_whole = self._log_sum(-shape * self._log_c[: self._count(0.0)])

    def _count(self, log_z: float) -> int:
        """Return the number of nodes up to where the integrand, which decreases like cosh^(-2 shape), is negligible."""
        end = max(0.0, log_z + math.log(4.0)) + max(45.0 / self._shape, math.sqrt(200.0 / self._shape))
        return math.ceil(end / self._step) + 1

    @staticmethod
    def _log_cosh_squared(u: np.ndarray) -> np.ndarray:
        """Return 2 log cosh(u/2) for u >= 0."""
        return np.asarray(u + 2.0 * np.log1p(np.exp(-u)) - 2.0 * math.log(2.0))

    @staticmethod
    def _log_sum(terms: np.ndarray) -> float:
        top = terms.max()
        shares = np.exp(terms - top)
        return float(top + math.log(shares.sum() - 0.5 * shares[0]))

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """Return values at an array of z > 0, at most 2^300."""
        log_z = np.log(z)
        out = np.empty(z.shape)
        for i in np.ndindex(z.shape):
            log_c = self._log_c[: self._count(log_z[i])]
            terms = (self._a - self._shape) * log_c - self._a * np.logaddexp(log_c, log_z[i])
            out[i] = math.exp(self._log_sum(terms) - self._log_whole)
        return out


# s^floor(n/2) phi^(n) = c (s/(1+s))^floor(n/2) (1+s)^(-e/2); these are the (c, e).
_FACTORS = ((1.0, 1), (-1 / 2, 3), (3 / 4, 3), (-15 / 8, 5), (105 / 16, 5))


def _inverse(a: Array) -> Array:
    """Compute 1/a in the memory of `a`."""
    a **= -1.0
    return a


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
        """Return :math:`s^k` times the k-th derivative, also where s is infinite."""
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
