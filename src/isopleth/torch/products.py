"""Kernel sums over points and their gradients as differentiable functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from isopleth.core.budget import DEFAULT_MEMORY_LIMIT, Budget
from isopleth.core.errors import InputError
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import (
    CURL_FREE,
    FLUX,
    GRADIENT,
    GRADIENT_OF_LAPLACIAN,
    LAPLACIAN,
    VALUE,
    Block,
    Operator,
)
from isopleth.operators.vector_blocks import PairedGradient, PairedHessian
from isopleth.torch.checks import (
    TensorFunction,
    check_coefficients,
    check_points,
    computed,
    first_derivatives,
    outside_graphs,
    spread_out,
    unit_lengths,
)

# Rows of which the median is taken.
_ASKED = 1000


@dataclass(frozen=True)
class KernelSums:
    """Sums of one kernel over points, at unit length scale, without a graph."""

    kernel: Kernel  # bound to the dimension of the points
    budget: Budget
    # (d,): subtracted from all coordinates, because products of coordinates far from 0 lose the digits of differences
    origin: Tensor | None = None

    @classmethod
    def of(cls, kernel: str | Kernel, dim: int, budget: Budget) -> KernelSums:
        """Return the sums of a kernel, given as users do, for points of `dim` columns."""
        return cls(get_kernel(kernel).bind(dim), budget)

    def about(self, points: Tensor) -> KernelSums:
        """Return the sums with an origin among the points, which sums and their derivatives must share to agree in all digits."""
        return replace(self, origin=_middle(points.detach()))

    def __call__(self, x: Tensor, y: Tensor, v: Tensor, block: Block = VALUE) -> Any:
        """Return the sums of a block at `x` over `y`; some blocks use symmetry if both are the same points."""
        assert self.origin is not None, "call about() first"
        left = x.detach() - self.origin
        right = None if y is x else y.detach() - self.origin
        op = Operator(self.kernel, left, right, block=block, budget=self.budget)
        return op.matvec(v.detach())


def _middle(points: Tensor) -> Tensor:
    """Return medians in columns in which 0 is far from the points, else 0: subtraction costs digits of points near 0."""
    some = torch.sort(points[:: max(1, -(-len(points) // _ASKED))], dim=0).values
    n = len(some)
    if n == 0:
        return points.new_zeros(points.shape[1])
    low, middle, high = some[n // 10], some[n // 2], some[9 * n // 10]
    return torch.where(middle.abs() > high - low, middle, torch.zeros_like(middle))


Slopes = tuple[Callable[[], Any], ...]


class _KernelProduct(TensorFunction):
    """out_i = sum_j k(x_i, y_j) v_j for coefficients of shape (m, k)."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, v: Tensor, sums: KernelSums, one_set: bool) -> Tensor:
        return sums.about(y)(x, x if one_set else y, v)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _keep(ctx, inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return derivatives of a product, which can be differentiated again if the kernel is smooth enough."""
        x, y, v = ctx.saved_tensors
        sums, one_set, wanted = ctx.sums, ctx.one_set, ctx.needs_input_grad[:3]
        if torch.is_grad_enabled() and sums.kernel.smoothness > 1.0:
            return *_differentiable_slopes(sums, one_set, wanted, x, y, v, grad), None, None

        def compute(x: Tensor, y: Tensor, v: Tensor, g: Tensor) -> tuple[Tensor, ...]:
            at, y = sums.about(y), x if one_set else y
            slopes: Slopes = (
                lambda: _paired_gradient(at, x, g, y, v),
                lambda: _paired_gradient(at, y, v, x, g),
                lambda: at(y, x, g),
            )
            return tuple(slope() for slope, needed in zip(slopes, wanted, strict=True) if needed)

        return *spread_out(first_derivatives(compute, x, y, v, grad), wanted), None, None


def _paired_gradient(sums: KernelSums, x: Tensor, a: Tensor, y: Tensor, v: Tensor) -> Tensor:
    """Return sum_j (a_i . v_j) grad_x k(x_i, y_j); a single column of coefficients is multiplied after the sum over pairs."""
    if v.shape[1] == 1:
        return a * sums(x, y, v[:, 0], GRADIENT)
    return sums(x, y, v, PairedGradient(a))[:, : x.shape[1]]


def _differentiable_slopes(
    sums: KernelSums, one_set: bool, wanted: tuple[bool, ...], x: Tensor, y: Tensor, v: Tensor, g: Tensor
) -> tuple[Tensor | None, ...]:
    """Return the derivatives of a product as functions that have derivatives; each column of coefficients is a sum of its own."""

    def of_points(x: Tensor, a: Tensor, y: Tensor, v: Tensor) -> Tensor:
        slopes = [_GradientProduct.apply(x, y, v[:, c], sums, one_set) for c in range(v.shape[1])]
        return sum((a[:, c, None] * slope for c, slope in enumerate(slopes)), torch.zeros_like(x))

    return (
        of_points(x, g, y, v) if wanted[0] else None,
        of_points(y, v, x, g) if wanted[1] else None,
        _KernelProduct.apply(y, x, g, sums, one_set) if wanted[2] else None,
    )


def _keep(ctx: Any, inputs: tuple[Any, ...]) -> None:
    """Keep what derivatives need."""
    *tensors, ctx.sums, ctx.one_set = inputs
    ctx.save_for_backward(*tensors)


def _product_with(block: Block, slopes: Callable[..., Slopes]) -> type[TensorFunction]:
    """Return the function out_i = sum_j B(x_i, y_j) v_j for coefficients of shape (m,), which has first derivatives."""

    class Product(TensorFunction):
        @staticmethod
        def forward(x: Tensor, y: Tensor, v: Tensor, sums: KernelSums, one_set: bool) -> Tensor:
            return sums.about(y)(x, x if one_set else y, v, block)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            _keep(ctx, inputs)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            """Return first derivatives of a product."""
            sums, one_set, wanted = ctx.sums, ctx.one_set, ctx.needs_input_grad[:3]

            def compute(x: Tensor, y: Tensor, v: Tensor, g: Tensor) -> tuple[Tensor, ...]:
                at = slopes(sums.about(y), x, x if one_set else y, v, g)
                return tuple(slope() for slope, needed in zip(at, wanted, strict=True) if needed)

            return *spread_out(first_derivatives(compute, *ctx.saved_tensors, grad), wanted), None, None

    return Product


_GradientProduct = _product_with(
    GRADIENT,
    lambda at, x, y, v, g: (
        lambda: at(x, y, v, PairedHessian(g))[:, : x.shape[1]],
        lambda: at(y, x, g, CURL_FREE) * v[:, None],
        lambda: -at(y, x, g, FLUX),
    ),
)
_LaplacianProduct = _product_with(
    LAPLACIAN,
    lambda at, x, y, v, g: (
        lambda: g[:, None] * at(x, y, v, GRADIENT_OF_LAPLACIAN),
        lambda: v[:, None] * at(y, x, g, GRADIENT_OF_LAPLACIAN),
        lambda: at(y, x, g, LAPLACIAN),
    ),
)


def laplacian_product(x: Tensor, y: Tensor, v: Tensor, sums: KernelSums) -> Tensor:
    """Return the sums over `y` of the Laplacians of a kernel at `x`, at unit length scale."""
    return cast(Tensor, _LaplacianProduct.apply(x, y, v, sums, y is x))


def scaled_points(x: Tensor, y: Tensor, length_scale: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return both sets of points over the length scale, one tensor if they are one, and the length scale of each column."""
    wide = computed(x)
    scale = unit_lengths(length_scale, wide)
    left = wide / scale
    return left, left if y is x else computed(y) / scale, scale


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
    about as long as the sums. Kernels of a :attr:`~isopleth.kernels.Kernel.smoothness` above 1 have second derivatives too, one
    pass for each column of `v`; third ones are refused.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel
        The kernel.
    x : Tensor of shape (n, d)
        Points at which the sums are evaluated, on any device: float64, float32, or float16 and bfloat16, which are computed in
        float32.
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
    left, right, _ = scaled_points(x, y, length_scale)
    sums = KernelSums.of(kernel, x.shape[1], Budget(memory_limit, n_jobs))
    wide = computed(v)
    out = _KernelProduct.apply(left, right, wide[:, None] if v.ndim == 1 else wide, sums, y is x)
    return (out[:, 0] if v.ndim == 1 else out).to(x.dtype)


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

    This is the gradient of :func:`kernel_product`, as a value: for forces between particles, kernel Stein steps and penalties on
    gradients. Second derivatives are refused.

    Parameters
    ----------
    kernel : {"gaussian", "matern32", "matern52", "matern72", "imq", "sdo"} or Kernel
        The kernel. Its :attr:`~isopleth.kernels.Kernel.smoothness` must be above 1, so that its gradient has a derivative.
    x : Tensor of shape (n, d)
        Points at which the sums are evaluated, on any device: float64, float32, or float16 and bfloat16, which are computed in
        float32.
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
    left, right, scale = scaled_points(x, y, length_scale)
    sums = KernelSums.of(kernel, x.shape[1], Budget(memory_limit, n_jobs))
    if sums.kernel.smoothness <= 1.0:
        raise InputError(f"kernel = {kernel!r} has no second derivatives at 0; use a Matern kernel or 'gaussian'.")
    return (_GradientProduct.apply(left, right, computed(v), sums, y is x) / scale).to(x.dtype)
