"""Logarithms of kernel sums as differentiable functions."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.kernels import Kernel
from isopleth.operators import LOG_SUM
from isopleth.operators.vector_blocks import PairedLogGradient
from isopleth.torch.checks import (
    TensorFunction,
    check_coefficients,
    check_points,
    computed,
    first_derivatives,
    outside_graphs,
    spread_out,
)
from isopleth.torch.products import KernelSums, scaled_points

_NO_SECOND = (
    "log_kernel_sum has no second derivatives; kernel_product has, and its logarithm if the sums do not underflow."
)


class _LogKernelSum(TensorFunction):
    """out_i = log sum_j e^(log k(x_i, y_j) + w_j), and the two numbers that it is the logarithm of."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, w: Tensor, sums: KernelSums, one_set: bool) -> tuple[Tensor, Tensor, Tensor]:
        top, total = sums.about(y)(x, x if one_set else y, w, LOG_SUM).unbind(dim=1)
        # Copies: torch.func refuses views of one tensor as several results.
        return top + torch.log(total), top.clone(), total.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        *tensors, ctx.sums, ctx.one_set = inputs
        ctx.save_for_backward(*tensors, *output[1:])
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        """Return first derivatives of the logarithm of a sum."""
        sums, one_set, wanted = ctx.sums, ctx.one_set, ctx.needs_input_grad[:3]

        def compute(x: Tensor, y: Tensor, w: Tensor, top: Tensor, total: Tensor, g: Tensor) -> tuple[Tensor, ...]:
            # Not computed from the sum itself: where logarithms are large, it has lost the digits of log total.
            unit = torch.where(total > 0.0, g / total, torch.zeros_like(g))  # an empty sum has shares of 0
            at, y = sums.about(y), x if one_set else y
            found = _slopes(at, x, y, w, top, unit, wanted[0], wanted[1] or wanted[2])
            return tuple(slope for slope, needed in zip(found, wanted, strict=True) if needed and slope is not None)

        found = first_derivatives(compute, *ctx.saved_tensors, grad, refusal=_NO_SECOND)
        return *spread_out(found, wanted), None, None


def _slopes(
    sums: KernelSums, x: Tensor, y: Tensor, w: Tensor, top: Tensor, unit: Tensor, for_x: bool, for_others: bool
) -> tuple[Tensor | None, ...]:
    """Return the derivatives for x, y and w; each pair is relative to the largest of its row, which has the weight `unit`."""
    d = x.shape[1]
    reciprocal = torch.where(torch.isinf(top), top, -top)
    of_x = of_others = None
    if for_x:
        ones = torch.ones_like(w)
        block = PairedLogGradient(reciprocal[:, None])
        of_x = unit[:, None] * sums(x, y, torch.stack([w, ones], dim=1), block)[:, :d]
    if for_others:
        of_others = sums(y, x, torch.stack([reciprocal, unit], dim=1), PairedLogGradient(w.detach()[:, None]))
    return of_x, None if of_others is None else of_others[:, :d], None if of_others is None else of_others[:, d]


@outside_graphs
def log_kernel_sum(
    kernel: str | Kernel,
    x: Tensor,
    y: Tensor,
    log_weights: Tensor | None = None,
    length_scale: Any = 1.0,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Compute :math:`\log \sum_j w_j\, k(x_i, y_j)` with gradients for points, queries, log weights and length scale.

    The result neither overflows nor underflows. With weights of sum 1, minus the logarithm of the integral of the kernel, it is
    the log density of a kernel density estimate. It is computed tile by tile, as in :func:`kernel_product`.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72"} or Kernel
        The kernel. It must be nowhere negative and define its logarithm.
    x : Tensor of shape (n, d)
        Points at which the sums are evaluated, of the types that :func:`kernel_product` takes.
    y : Tensor of shape (m, d)
        Points that are summed over.
    log_weights : Tensor of shape (m,), optional
        Logarithms of the weights; None means 0. Minus infinity is a weight of 0.
    length_scale, memory_limit, n_jobs
        As for :func:`kernel_product`.

    Returns
    -------
    Tensor of shape (n,)
        The logarithms, of the type and on the device of `x`; minus infinity where all weights are 0.

    Raises
    ------
    InputError
        If the kernel has no logarithm, or shapes, types, devices or parameters do not fit.

    Examples
    --------
    The gradient of a mean log density with respect to the length scale:

    >>> import math
    >>> import torch
    >>> from isopleth.torch import log_kernel_sum
    >>> rows = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> held_out, points = rows[:100], rows[100:]
    >>> scale = torch.tensor(0.1, requires_grad=True)
    >>> log_norm = math.log(2 * math.pi) + 2 * torch.log(scale) + math.log(100)
    >>> (log_kernel_sum("gaussian", held_out, points, length_scale=scale) - log_norm).mean().backward()
    >>> bool(scale.grad > 0)  # 0.1 is too small
    True
    """
    check_points(x, y)
    w = torch.zeros_like(y[:, 0]) if log_weights is None else log_weights
    check_coefficients("log_weights", w, "y", y, (1,))
    left, right, _ = scaled_points(x, y, length_scale)
    sums = KernelSums.of(kernel, x.shape[1], Budget(memory_limit, n_jobs))
    if not sums.kernel.nonnegative:
        raise InputError(
            f"kernel = {kernel!r} can be negative and has no logarithm; use 'gaussian' or a Matern kernel."
        )
    return cast(Tensor, _LogKernelSum.apply(left, right, computed(w), sums, y is x)[0]).to(x.dtype)
