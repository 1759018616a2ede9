"""The SDO kernel near 0: power series, in which its singular part stands out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import digamma

from isopleth.kernels.estimate import EPS, Estimate

_TERMS = 120
_MAX_ARGUMENT = 25.0  # x of the class below: terms reach e^x before they fall, and 120 of them end below 1e-18


def sine_of_share(p: float, m: int) -> float:
    """sin(pi p / m), accurate near its zeros."""
    periods, rest = divmod(p, m)
    return (-1.0) ** periods * math.sin(math.pi * min(rest, m - rest) / m)


def _gamma(twice: int) -> Fraction:
    """Gamma(twice/2) without the square root of pi that it has for odd `twice`; even `twice` must be positive."""
    n = twice // 2
    if twice % 2 == 0:
        return Fraction(math.factorial(n - 1))
    if n >= 0:
        return Fraction(math.factorial(2 * n), 4**n * math.factorial(n))
    return Fraction((-4) ** -n * math.factorial(-n), math.factorial(-2 * n))


class SDOSeries:
    r"""Derivative `order` in s of :math:`k_1(\sqrt s)/k_1(0)` as a series at 0.

    The derivative is a multiple of the kernel of D = dim + 2 order dimensions. With x = s/(2 D) it is

    .. math:: P(x) + \ln(r/2)\, Q(x) + \sum_j c_j\, (r/2)^{2m(j+1) - D}

    where Q is 0 for odd D; for even D the last sum has negative powers only, since the others meet the logarithm.
    """

    def __init__(self, dim: int, m: int, order: int) -> None:
        self.half = 0.5 * dim + order
        self._m, self._order = m, order
        # everything is relative to k_1(0), whose own constants are these
        self._sine = sine_of_share(0.5 * dim, m)
        self._front = math.prod(-0.25 / (0.5 * dim + i) for i in range(order))
        self._reach = math.sqrt(self.half * _MAX_ARGUMENT)  # of r/2
        self._regular, self._logarithmic = self._polynomials()
        self._powers, self._coefficients = self._singular()

    def _polynomials(self) -> tuple[np.ndarray, np.ndarray]:
        """P and Q, lowest coefficient first."""
        n = np.arange(_TERMS)
        falling = np.cumprod(np.r_[1.0, -self.half / (n[1:] * (self.half + n[:-1]))]) * self._front
        regular, logarithmic = np.zeros(_TERMS), np.zeros(_TERMS)
        for i, factor in enumerate(falling):
            p = self.half + i
            if p % self._m:
                regular[i] = factor * self._sine / sine_of_share(p, self._m)
            else:
                residue = factor * (-1.0) ** (p // self._m - 1) * 2 * self._m * self._sine / math.pi
                regular[i] = residue * 0.5 * (digamma(i + 1.0) + digamma(p))
                logarithmic[i] = -residue
        return regular, logarithmic

    def _singular(self) -> tuple[np.ndarray, np.ndarray]:
        """Exponents and coefficients of the last sum in units of the reach, where no power overflows.

        Exact fractions, because logarithms of the Gammas would lose three digits to cancellation in high dimensions.
        """
        twice = round(2 * self.half)
        top = self.half + _TERMS if twice % 2 else self.half - 0.5
        steps = range(self._m, int(top) + 1, self._m)
        front = self._m * self._sine * (1.0 if twice % 2 else 1.0 / math.pi) * (-0.25) ** self._order
        reach, gamma = Fraction(self._reach), _gamma(twice - 2 * self._order)
        coefficients = [
            (-1.0) ** j
            * front
            * float(gamma * _gamma(twice - 2 * n) * reach ** (2 * n - twice) / math.factorial(n - 1))
            for j, n in enumerate(steps)
        ]
        return 2.0 * np.array(steps) - twice, np.array(coefficients)

    def at_zero(self) -> float:
        """The value at 0, where no power or logarithm is infinite."""
        return float(self._regular[0])

    def __call__(self, r: np.ndarray) -> Estimate:
        """The derivative at distances `r` > 0; infinite errors where the series is out of its reach."""
        out = Estimate.unknown(r.shape)
        near = r <= 2.0 * self._reach
        out.improve(near, self._sum(r[near]))
        return out

    def _sum(self, r: np.ndarray) -> Estimate:
        x, log_r = r * r / (4.0 * self.half), np.log(0.5 * r)
        value, size = np.zeros_like(r), np.zeros_like(r)
        for power, coefficient in zip(self._powers, self._coefficients, strict=True):
            term = coefficient * (0.5 * r / self._reach) ** power
            value += term
            size += np.abs(term)
        polynomial = np.polynomial.polynomial.polyval
        value += polynomial(x, self._regular) + log_r * polynomial(x, self._logarithmic)
        size += polynomial(x, np.abs(self._regular)) + np.abs(log_r) * polynomial(x, np.abs(self._logarithmic))
        return Estimate(value, 4.0 * EPS * size)  # coefficients are products of many factors
