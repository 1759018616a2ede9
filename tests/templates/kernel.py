"""Template of a kernel. Copy this file to src/isopleth/kernels/, replace what is marked `todo`, and delete what does not apply.

It is a complete kernel, the mean of two Gaussian kernels, so that each method shows a formula that is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from numbers import Real

import numpy as np
from scipy.special import logsumexp

from isopleth import InputError
from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.kernels import Kernel, SelfConvolution, Workspace
from isopleth.kernels.base import cap

# todo: import `register` and put @register("name") above @dataclass, then add the import of this file to kernels/__init__.py.
# todo: add the module and the class to src/isopleth/io/registry.py, so that models that hold the kernel can be saved.
# todo: add the name of the class to docs/reference/kernels.rst, if users shall construct it themselves.

_LARGEST = 1e300  # of s: infinity times the factor 0 would be NaN


@dataclass(frozen=True)
class KernelTemplate(Kernel):
    r"""todo: name of the kernel, :math:`\varphi(s) = \tfrac12 e^{-s/2} + \tfrac12 e^{-s/(2 c^2)}`.

    todo: what it is good for, and in which dimensions it and its square have an integral.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.
    ratio : float, default=2.0
        todo: c, the length scale of the second Gaussian kernel, positive.

    Raises
    ------
    InputError
        If `ratio` is not a positive finite number.

    References
    ----------
    .. [1] todo: the paper that defines it.

    Examples
    --------
    >>> float(KernelTemplate(dim=2)(0.0))
    1.0
    """

    # todo: parameters with defaults; the first field is always `dim`, which the base class defines.
    ratio: float = 2.0

    # todo: `nonnegative: ClassVar[bool] = False` if phi can be negative; then _log, _log_slope, log_integral, sample go.

    def __post_init__(self) -> None:
        super().__post_init__()
        # todo: one sentence for each parameter that can be wrong: what it is, what was expected.
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, Real) or not 0.0 < float(self.ratio) < math.inf:
            raise InputError(f"ratio = {self.ratio!r}: expected a positive, finite number.")

    @property
    def smoothness(self) -> float:
        """todo: order nu of the Matern kernel that is equally smooth at 0; infinite for analytic kernels."""
        return math.inf

    # todo: override `integrable` and `square_integrable` if the answer depends on the dimension.

    @property
    def _rates(self) -> tuple[float, float]:
        return 0.5, 0.5 / self.ratio**2

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        """todo: compute phi, phi', s phi'', s phi''', s^2 phi'''' for order 0, 1, 2, 3, 4. It may overwrite `s`.

        Use in-place operators and `overwrite`, so that it runs on every array library. NaN must not appear, also for infinite
        s; from s = 1e300 on, orders 1 to 4 are exactly 0.
        """
        s = cap(s, _LARGEST)
        first = work.copy("first", s)  # scratch arrays have names; each call with the same name gets the same memory
        second = work.copy("second", s)
        for term, rate in ((first, self._rates[0]), (second, self._rates[1])):
            term *= -rate
            overwrite(namespace(term).exp, term)
            term *= 0.5 * (-rate) ** order
        first += second
        for _ in range(order // 2):
            first *= cap(s, 1e6 * max(1.0, self.ratio**2))  # both exponentials are 0 beyond
        return first

    def _log(self, s: Array, work: Workspace) -> Array:
        """todo: compute log phi, finite where phi underflows."""
        slow, fast = min(self._rates), max(self._rates)
        ratio = work.copy("ratio", s)
        ratio *= slow - fast
        ratio = overwrite(namespace(s).exp, ratio)
        ratio = overwrite(namespace(s).log1p, ratio)
        ratio -= math.log(2.0)
        s *= -slow
        s += ratio
        return s

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        """todo: compute the derivative of log phi in s, finite where phi underflows."""
        slow, fast = min(self._rates), max(self._rates)
        s *= slow - fast
        share = overwrite(namespace(s).exp, s)  # of the fast term, relative to the slow one
        total = work.copy("total", share)
        total += 1.0
        share *= -fast
        share -= slow
        share /= total
        return share

    def self_convolution(self) -> SelfConvolution:
        r"""todo: return :math:`\int k(x, z) k(z, y) dz`, which normalises densities f^2, or delete the method."""
        d = self.bound_dim
        squares = [(a * a, b * b) for a, b in product((1.0, self.ratio), repeat=2)]
        logs = [0.5 * d * math.log(2.0 * math.pi * a * b / (a + b)) - math.log(4.0) for a, b in squares]
        log_constant = float(logsumexp(logs))
        terms = [(math.exp(log - log_constant), 0.5 / (a + b)) for log, (a, b) in zip(logs, squares, strict=True)]

        def psi(s: Array, work: Workspace) -> Array:
            out = work.copy("sum", s)
            out[...] = 0.0
            for weight, rate in terms:
                term = work.copy("term", s)
                term *= -rate
                term = overwrite(namespace(s).exp, term)
                term *= weight
                out += term
            return out

        return SelfConvolution(log_constant, psi)

    def log_integral(self) -> float:
        """todo: return the logarithm of the integral of phi(|x|^2) over all x of `dim` columns, or delete the method."""
        d = self.bound_dim
        return float(0.5 * d * math.log(2.0 * math.pi) + np.logaddexp(0.0, d * math.log(self.ratio)) - math.log(2.0))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """todo: draw points from phi as a density, or delete the method."""
        wide = 1.0 / (1.0 + self.ratio**-self.bound_dim)
        scale = np.where(rng.random((n, 1)) < wide, self.ratio, 1.0)
        return np.asarray(scale * rng.standard_normal((n, self.bound_dim)))

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """todo: draw wave vectors omega with phi(|x|^2) = E cos(omega . x), or delete the method."""
        scale = np.where(rng.random((n, 1)) < 0.5, 1.0 / self.ratio, 1.0)
        return np.asarray(scale * rng.standard_normal((n, self.bound_dim)))

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        """todo: return the logarithm of the density of these wave vectors, or delete the method."""
        d, c = self.bound_dim, self.ratio
        square = np.sum(omega**2, axis=1)
        both = np.logaddexp(-0.5 * square, -0.5 * c * c * square + d * math.log(c))
        return np.asarray(both - math.log(2.0) - 0.5 * d * math.log(2.0 * math.pi))
