"""Check the arguments of the differentiable functions: tensors of one type on one device."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import torch
from torch import Tensor
from torch.autograd import Function

from isopleth.core.errors import InputError

# Types of tensors that functions take. Those of two bytes are computed in float32.
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def computed(x: Tensor) -> Tensor:
    """Return a tensor in the type in which it is computed: float32 instead of types of two bytes."""
    return x.float() if x.dtype.itemsize < 4 else x


def check_points(x: Any, y: Any, called: str = "y", first: str = "x") -> None:
    """Refuse points that are not two tables of equally many columns, of one floating-point type and on one device."""
    for name, a in ((first, x), (called, y)):
        check_tensor(name, a)
        if a.ndim != 2 or a.shape[1] == 0:
            raise InputError(f"{name} has shape {tuple(a.shape)}; expected points of shape (n, d), d at least 1.")
        check_like(name, a, first, x)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"{first} has {x.shape[1]} columns and {called} has {y.shape[1]}; expected the same.")


def check_coefficients(name: str, v: Any, points: str, y: Tensor, axes: tuple[int, ...]) -> None:
    """Refuse coefficients that are not one row for each point `y`, or whose number of axes is not in `axes`."""
    check_tensor(name, v)
    if v.ndim not in axes or v.shape[0] != y.shape[0]:
        shapes = {1: f"({y.shape[0]},)", 2: f"({y.shape[0]}, k)"}
        raise InputError(
            f"{name} has shape {tuple(v.shape)}; expected {' or '.join(shapes[a] for a in axes)} as {points} has rows."
        )
    check_like(name, v, points, y)


def unit_lengths(length_scale: Any, x: Tensor) -> Tensor:
    """Return length scales (d,) with the graph of the tensor; checking one on a device would wait for it."""
    try:
        scale = length_scale if isinstance(length_scale, Tensor) else torch.as_tensor(length_scale, dtype=x.dtype)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"length_scale = {length_scale!r}: expected a number, or one a column.") from None
    if scale.ndim > 1 or (scale.ndim == 1 and scale.shape[0] != x.shape[1]):
        raise InputError(
            f"length_scale has shape {tuple(scale.shape)}; expected one number, or {x.shape[1]} as x has columns."
        )
    if scale.device.type == "cpu" and not bool(torch.all((scale > 0.0) & torch.isfinite(scale))):
        raise InputError(f"length_scale = {length_scale!r}: expected positive, finite numbers.")
    if scale.device != x.device and scale.ndim == 0 and not scale.requires_grad:
        scale = torch.full((), float(scale), device=x.device)  # a copy would wait for the device
    return scale.to(dtype=x.dtype, device=x.device).expand(x.shape[1])


def check_tensor(name: str, a: Any) -> None:
    """Refuse what is no plain tensor of floating-point numbers."""
    if not isinstance(a, Tensor):
        raise InputError(f"{name} is of type {type(a).__name__}; expected a tensor, such as torch.as_tensor makes.")
    if a.layout is not torch.strided:
        raise InputError(f"{name} is stored as {a.layout}; expected a plain tensor, see Tensor.to_dense.")
    if a.dtype not in TYPES:
        raise InputError(f"{name} is of type {a.dtype}; expected torch.float32, float64, float16 or bfloat16.")


def check_finite(name: str, a: Tensor) -> None:
    """Refuse entries that are not finite; on other devices than the CPU they would have to be waited for, and give NaN."""
    if a.device.type == "cpu" and not bool(torch.isfinite(a).all()):
        raise InputError(f"{name} has entries that are not finite; expected finite numbers.")


def check_like(name: str, a: Tensor, other: str, b: Tensor) -> None:
    """Refuse a tensor that is not of the type and on the device of another."""
    if a.dtype != b.dtype or a.device != b.device:
        raise InputError(
            f"{name} is of type {a.dtype} on {a.device} and {other} of type {b.dtype} on {b.device}; expected the same, see "
            "Tensor.to."
        )


P = ParamSpec("P")
T = TypeVar("T")


def outside_graphs(function: Callable[P, T]) -> Callable[P, T]:
    """Keep a function, whose sums choose tiles, check values and run threads, out of ``torch.compile``.

    A compiled caller breaks there and gradients pass through; ``fullgraph=True`` refuses it.
    """
    reason = "sums of isopleth.torch go tile by tile, in threads; they are not part of a graph"
    kept_out = cast(Callable[P, T], torch.compiler.disable(function, reason=reason))

    # ``torch.compile(f)`` of a disabled function f itself would take the function that was disabled; of this one it does not.
    @wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> T:
        return kept_out(*arguments, **options)

    return called


class TensorFunction(Function):
    """Base class of functions with reverse derivatives, also for ``torch.func``; `forward` takes no context."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, *inputs: Any) -> NoReturn:
        """Refuse ``torch.func.vmap``, and with it ``jacrev`` and ``hessian``."""
        raise InputError(
            "isopleth.torch has no torch.func.vmap (jacrev, hessian): its sums do not take batches of point sets."
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> NoReturn:
        """Refuse forward-mode differentiation."""
        raise InputError(
            "isopleth.torch has no forward-mode derivatives (torch.func.jvp, jacfwd); use torch.func.vjp or grad."
        )


class _Once(TensorFunction):
    """First derivatives that raise an error when differentiated: treating them as constants would silently be wrong."""

    @staticmethod
    def forward(compute: Callable[..., tuple[Tensor, ...]], refusal: str, *tensors: Tensor) -> tuple[Tensor, ...]:
        return compute(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.refusal = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise InputError(ctx.refusal)


class _Constant(TensorFunction):
    """A value computed from tensors that is a constant of every graph."""

    @staticmethod
    def forward(compute: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        return compute(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)
        ctx.inputs = len(inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, ...]:
        return (None,) * ctx.inputs


def constant(compute: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Return ``compute(*tensors)`` as a constant, also within ``torch.func``; it must use no other tensors."""
    return cast(Tensor, _Constant.apply(compute, *tensors))


NO_SECOND = (
    "these sums of isopleth.torch have no second derivatives; kernel_product has, for kernels of a smoothness above 1."
)


def first_derivatives(
    compute: Callable[..., tuple[Tensor, ...]], *tensors: Tensor, refusal: str = NO_SECOND
) -> tuple[Tensor, ...]:
    """Return ``compute(*tensors)``, first derivatives only: more raise `refusal`. It must use no other tensors."""
    if torch.is_grad_enabled():
        return cast(tuple[Tensor, ...], _Once.apply(compute, refusal, *tensors))
    return compute(*tensors)


def spread_out(found: tuple[Tensor, ...], wanted: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
    """Return one entry for each input of a function, None for those that need no gradient."""
    rest = iter(found)
    return tuple(next(rest) if needed else None for needed in wanted)
