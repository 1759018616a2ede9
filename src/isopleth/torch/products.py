"""Kernel sums over points and their gradients as differentiable functions."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from isopleth.errors import InputError
from isopleth.kernels import Kernel
from isopleth.operators import CURL_FREE, DEFAULT_MEMORY_LIMIT, FLUX, GRADIENT
from isopleth.operators.threads import DEFAULT_N_JOBS
from isopleth.operators.vector_blocks import PairedGradient, PairedHessian
from isopleth.torch.checks import check_coefficients, check_points, outside_graphs, unit_lengths
from isopleth.torch.sums import Sums, first_derivative


class _KernelProduct(Function):
    """out_i = sum_j k(x_i, y_j) v_j for coefficients of shape (m, k)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, v: Tensor, sums: Sums) -> Tensor:
        ctx.save_for_backward(x, y, v)
        ctx.sums, ctx.one_set = sums, y is x
        return sums(x, y, v)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y, v = _saved(ctx)
        for_x, for_y, for_v, _ = ctx.needs_input_grad
        g = grad.detach()
        slopes = (
            _paired_gradient(ctx.sums, x, g, y, v.detach()) if for_x else None,
            _paired_gradient(ctx.sums, y, v.detach(), x, g) if for_y else None,
            ctx.sums(y, x, g) if for_v else None,
        )
        return *(first_derivative(slope, x, y, v, grad) for slope in slopes), None


def _paired_gradient(sums: Sums, x: Tensor, a: Tensor, y: Tensor, v: Tensor) -> Tensor:
    """Return sum_j (a_i . v_j) grad_x k(x_i, y_j); a single column of coefficients is multiplied after the sum over pairs."""
    if v.shape[1] == 1:
        return a * sums(x, y, v[:, 0], GRADIENT)
    return sums(x, y, v, PairedGradient(a))[:, : x.shape[1]]


def _saved(ctx: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the saved tensors; if x and y were one tensor, return it twice, because torch returns two copies."""
    x, y, v = ctx.saved_tensors
    return x, x if ctx.one_set else y, v


class _GradientProduct(Function):
    """out_i = sum_j grad_x k(x_i, y_j) v_j for coefficients of shape (m,)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, v: Tensor, sums: Sums) -> Tensor:
        ctx.save_for_backward(x, y, v)
        ctx.sums, ctx.one_set = sums, y is x
        return sums(x, y, v, GRADIENT)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y, v = _saved(ctx)
        for_x, for_y, for_v, _ = ctx.needs_input_grad
        g, d = grad.detach(), x.shape[1]
        slopes = (
            ctx.sums(x, y, v, PairedHessian(g))[:, :d] if for_x else None,
            ctx.sums(y, x, g, CURL_FREE) * v.detach()[:, None] if for_y else None,
            -ctx.sums(y, x, g, FLUX) if for_v else None,
        )
        return *(first_derivative(slope, x, y, v, grad) for slope in slopes), None


@outside_graphs
def kernel_product(
    kernel: str | Kernel,
    x: Tensor,
    y: Tensor,
    v: Tensor,
    length_scale: Any = 1.0,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Compute :math:`\sum_j k(x_i, y_j)\, v_j` with gradients for points, queries, weights and length scale.

    Neither the sums nor their gradients store a matrix of all pairs: both are computed tile by tile. Each gradient takes
    about as long as the sums. Second derivatives are refused; use :func:`gradient_product`.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel
        The kernel.
    x : Tensor of shape (n, d)
        Points at which the sums are evaluated, float32 or float64, on any device.
    y : Tensor of shape (m, d)
        Points that are summed over. If it is the same tensor as `x`, the sums take half the work.
    v : Tensor of shape (m,) or (m, k)
        Weights.
    length_scale : float or Tensor of shape () or (d,), default=1.0
        Length scale, one for all columns or one for each.
    memory_limit : float, default=2**30
        Memory for tiles and scratch arrays, in bytes.
    n_jobs : int or None, default=-1
        CPU threads; -1 is all processors, None is one or what joblib.parallel_config says.

    Returns
    -------
    Tensor of shape (n,) or (n, k)
        The sums, of the type and on the device of `x`.

    Raises
    ------
    InputError
        If shapes, types, devices or parameters do not fit; the sentence says which and what to do.

    See Also
    --------
    log_kernel_sum : The logarithm of the sums, without underflow.

    Notes
    -----
    Where two points coincide, the gradient of a kernel with a kink is 0, the mean of its limits.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import kernel_product
    >>> x = torch.zeros(1, 2, requires_grad=True)
    >>> y = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> total = kernel_product("gaussian", x, y, torch.ones(2)).sum()
    >>> total.backward()
    >>> x.grad  # towards the points: e^(-1/2) of the way to one, e^-2 of that to the other
    tensor([[0.6065, 0.2707]])
    """
    check_points(x, y)
    check_coefficients("v", v, "y", y, (1, 2))
    scale = unit_lengths(length_scale, x)
    left = x / scale
    right = left if y is x else y / scale
    sums = Sums.of(kernel, right, memory_limit, n_jobs)
    if v.ndim == 1:
        return _KernelProduct.apply(left, right, v[:, None], sums)[:, 0]
    return _KernelProduct.apply(left, right, v, sums)


@outside_graphs
def gradient_product(
    kernel: str | Kernel,
    x: Tensor,
    y: Tensor,
    v: Tensor,
    length_scale: Any = 1.0,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
) -> Tensor:
    r"""Compute :math:`\sum_j \nabla_x k(x_i, y_j)\, v_j` with gradients for points, queries, weights and length scale.

    This is the gradient of :func:`kernel_product`, as a value that can be differentiated again: for forces between particles,
    kernel Stein steps and penalties on gradients.

    Parameters
    ----------
    kernel : {"gaussian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel
        The kernel. Its :attr:`~isopleth.Kernel.smoothness` must be above 1, so that its gradient has a derivative.
    x : Tensor of shape (n, d)
        Points at which the sums are evaluated, float32 or float64, on any device.
    y : Tensor of shape (m, d)
        Points that are summed over.
    v : Tensor of shape (m,)
        Weights.
    length_scale, memory_limit, n_jobs
        As for :func:`kernel_product`.

    Returns
    -------
    Tensor of shape (n, d)
        The sums, of the type and on the device of `x`.

    Raises
    ------
    InputError
        If the kernel is too rough, or shapes, types, devices or parameters do not fit.

    Examples
    --------
    >>> import torch
    >>> from isopleth.torch import gradient_product
    >>> y = torch.tensor([[1.0, 0.0]])
    >>> gradient_product("gaussian", torch.zeros(1, 2), y, torch.ones(1))
    tensor([[0.6065, 0.0000]])
    """
    check_points(x, y)
    check_coefficients("v", v, "y", y, (1,))
    scale = unit_lengths(length_scale, x)
    left = x / scale
    right = left if y is x else y / scale
    sums = Sums.of(kernel, right, memory_limit, n_jobs)
    if sums.kernel.smoothness <= 1.0:
        raise InputError(f"kernel = {kernel!r} has no second derivatives at 0; use a Matern kernel or 'gaussian'.")
    return _GradientProduct.apply(left, right, v, sums) / scale
