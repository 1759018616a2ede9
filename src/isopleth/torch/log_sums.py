"""Logarithms of kernel sums as differentiable functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from isopleth.errors import InputError
from isopleth.kernels import Kernel
from isopleth.operators import DEFAULT_MEMORY_LIMIT, LOG_SUM
from isopleth.operators.threads import DEFAULT_N_JOBS
from isopleth.operators.vector_blocks import PairedLogGradient
from isopleth.torch.checks import check_coefficients, check_points, outside_graphs, unit_lengths
from isopleth.torch.sums import Sums, first_derivative


class _LogKernelSum(Function):
    """out_i = log sum_j e^(log k(x_i, y_j) + w_j)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, w: Tensor, sums: Sums) -> Tensor:
        top, total = sums(x, y, w, LOG_SUM).unbind(dim=1)
        ctx.save_for_backward(x, y, w, top, total)
        ctx.sums = sums
        return top + torch.log(total)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y, w, top, total = ctx.saved_tensors
        for_x, for_y, for_w, _ = ctx.needs_input_grad
        with torch.no_grad():
            # Not computed from the sum itself: where logarithms are large, it has lost the digits of log total.
            unit = torch.where(total > 0.0, grad / total, torch.zeros_like(grad))  # an empty sum has shares of 0
            of_x, of_y, of_w = _slopes(ctx.sums, x, y, w, top, unit, for_x, for_y or for_w)
        slopes = (of_x, of_y if for_y else None, of_w if for_w else None)
        return *(first_derivative(slope, x, y, w, grad) for slope in slopes), None


def _slopes(
    sums: Sums, x: Tensor, y: Tensor, w: Tensor, top: Tensor, unit: Tensor, for_x: bool, for_others: bool
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
        Points at which the sums are evaluated, float32 or float64, on any device.
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
    scale = unit_lengths(length_scale, x)
    left = x / scale
    right = left if y is x else y / scale
    sums = Sums.of(kernel, right, memory_limit, n_jobs)
    if not sums.kernel.nonnegative:
        raise InputError(
            f"kernel = {kernel!r} can be negative and has no logarithm; use 'gaussian' or a Matern kernel."
        )
    return _LogKernelSum.apply(left, right, w, sums)
