"""Fitted functions as sums of kernel terms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from isopleth.core.arrays import Array, namespace
from isopleth.core.budget import DEFAULT_BUDGET, Budget
from isopleth.kernels import Kernel
from isopleth.operators import (
    GRADIENT,
    LAPLACIAN,
    LOG_GRADIENT,
    LOG_LAPLACIAN,
    LOG_SUM,
    VALUE,
    Block,
    Operator,
)
from isopleth.operators.blocks import Matrix


@dataclass(frozen=True)
class KernelExpansion:
    r"""Function :math:`f = \sum_i \alpha_i k(c_i, \cdot)` in frame coordinates.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the centres.
    centers : array of shape (m, d)
        Centres c.
    coefficients : array of shape (m,)
        Coefficients alpha.
    budget : Budget
        Memory and threads of its sums.
    """

    kernel: Kernel
    centers: Array
    coefficients: Array
    budget: Budget = DEFAULT_BUDGET

    def _sum(self, x: Array, block: Block, coefficients: Array) -> Array:
        op = Operator(self.kernel, x, self.centers, block=block, budget=self.budget)
        return op.matvec(coefficients)

    def value(self, x: Array) -> Array:
        """Return f at the rows of `x`."""
        return self._sum(x, VALUE, self.coefficients)

    def gradient(self, x: Array) -> Array:
        """Return the gradient of f at the rows of `x`."""
        return self._sum(x, GRADIENT, self.coefficients)

    def laplacian(self, x: Array) -> Array:
        """Return the Laplacian of f at the rows of `x`."""
        return self._sum(x, LAPLACIAN, self.coefficients)

    def log_abs(self, x: Array) -> Array:
        r"""Return :math:`\log |f|` at the rows of `x`; if f underflows and the kernel is positive, by a streaming log-sum-exp."""
        return self._log_of(self.value(x), x)

    def _log_of(self, f: Array, x: Array) -> Array:
        """Return the logarithms of values, where they underflow as a log-sum-exp of the terms."""
        xp = namespace(x)
        f = xp.abs(f)
        lost = f < self._lost(x)
        out = xp.log(xp.where(lost, xp.ones_like(f), f))
        if not bool(xp.any(lost)):
            return out
        if not self.kernel.nonnegative:
            zero = f == 0.0
            return xp.where(zero, -xp.inf * xp.ones_like(f), xp.log(xp.where(zero, xp.ones_like(f), f)))
        rows = xp.nonzero(lost)[0]
        state = self._sum(xp.take(x, rows, axis=0), LOG_SUM, xp.log(self.coefficients))
        out[lost] = state[:, 0] + xp.log(state[:, 1])
        return out

    def grad_log_abs(self, x: Array) -> Array:
        r"""Return the gradient of :math:`\log |f|` at the rows of `x`, by a streaming softmax where f underflows."""
        return self._gradient_of(self.value(x), x)

    def log_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Return :meth:`log_abs` and :meth:`grad_log_abs`, which have f in common."""
        f = self.value(x)
        return self._log_of(f, x), self._gradient_of(f, x)

    def _gradient_of(self, f: Array, x: Array) -> Array:
        """Return the gradient of the logarithm of values, where they underflow from weighted terms."""
        xp = namespace(x)
        lost = xp.abs(f) < self._lost(x)
        out = self.gradient(x) / xp.where(f == 0.0, xp.ones_like(f), f)[:, None]
        if self.kernel.nonnegative and bool(xp.any(lost)):
            state = self._sum(xp.take(x, xp.nonzero(lost)[0], axis=0), LOG_GRADIENT, xp.log(self.coefficients))
            for j in range(out.shape[1]):
                column = out[:, j]
                column[lost] = state[:, 2 + j] / state[:, 1]
                out[:, j] = column
        return out

    def laplacian_over_value(self, x: Array) -> Array:
        """Return the Laplacian of f divided by f at the rows of `x`, by a streaming softmax where f underflows.

        For kernels with negative values there is no such sum, so the result is meaningless where f underflows to 0.
        """
        xp = namespace(x)
        f = self.value(x)
        lost = xp.abs(f) < self._lost(x)
        out = self.laplacian(x) / xp.where(f == 0.0, xp.ones_like(f), f)
        if self.kernel.nonnegative and bool(xp.any(lost)):
            state = self._sum(xp.take(x, xp.nonzero(lost)[0], axis=0), LOG_LAPLACIAN, xp.log(self.coefficients))
            out[lost] = state[:, 2] / state[:, 1]
        return out

    @staticmethod
    def _lost(x: Array) -> float:
        """Return the size below which a sum of kernel values has lost digits to subnormal terms, or is 0."""
        return 1e-3 * math.sqrt(float(namespace(x).finfo(x.dtype).smallest_normal))

    def log_square_integral(self) -> float:
        r"""Return the log of the integral of f^2, :math:`\alpha^\top K_2\, \alpha`, K_2 the kernel convolved with itself."""
        convolution = self.kernel.self_convolution()
        block = Matrix("self-convolution", lambda kernel: convolution.psi)
        kernel = convolution.kernel or self.kernel
        op = Operator(kernel, self.centers, block=block, budget=self.budget)
        total = float(namespace(self.centers).sum(self.coefficients * op.matvec(self.coefficients)))
        return convolution.log_constant + math.log(total)
