"""Check the arguments of the differentiable functions: tensors of one type on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from isopleth.errors import InputError


def check_points(x: Any, y: Any, called: str = "y") -> None:
    """Refuse points that are not two tables of equally many columns, float32 or float64, of one type and on one device.

    `called` is the name of `y` in messages.

    Raises
    ------
    InputError
        If they are not; the sentence says which and what to do.
    """
    for name, a in (("x", x), (called, y)):
        _check_tensor(name, a)
        if a.ndim != 2 or a.shape[1] == 0:
            raise InputError(f"{name} has shape {tuple(a.shape)}; expected points of shape (n, d), d at least 1.")
        _check_like(name, a, "x", x)
    if x.shape[1] != y.shape[1]:
        raise InputError(f"x has {x.shape[1]} columns and {called} has {y.shape[1]}; expected the same.")


def check_coefficients(name: str, v: Any, points: str, y: Tensor, axes: tuple[int, ...]) -> None:
    """Refuse coefficients that are not one row for each point `y`, or whose number of axes is not in `axes`.

    Raises
    ------
    InputError
        If it is not.
    """
    _check_tensor(name, v)
    if v.ndim not in axes or v.shape[0] != y.shape[0]:
        shapes = {1: f"({y.shape[0]},)", 2: f"({y.shape[0]}, k)"}
        raise InputError(
            f"{name} has shape {tuple(v.shape)}; expected {' or '.join(shapes[a] for a in axes)} as {points} has rows."
        )
    _check_like(name, v, points, y)


def unit_lengths(length_scale: Any, x: Tensor) -> Tensor:
    """Return the length scale of each column, of shape (d,), with the graph of the given tensor.

    Raises
    ------
    InputError
        If it is neither one positive number nor one for each column.
    """
    try:
        scale = torch.as_tensor(length_scale, dtype=x.dtype, device=x.device)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"length_scale = {length_scale!r}: expected a number, or one a column.") from None
    if scale.ndim > 1 or (scale.ndim == 1 and scale.shape[0] != x.shape[1]):
        raise InputError(
            f"length_scale has shape {tuple(scale.shape)}; expected one number, or {x.shape[1]} as x has columns."
        )
    if not bool(torch.all((scale > 0.0) & torch.isfinite(scale))):
        raise InputError(f"length_scale = {length_scale!r}: expected positive, finite numbers.")
    return scale.expand(x.shape[1])


def _check_tensor(name: str, a: Any) -> None:
    if not isinstance(a, Tensor):
        raise InputError(f"{name} is of type {type(a).__name__}; expected a tensor, such as torch.as_tensor makes.")
    if a.layout is not torch.strided:
        raise InputError(f"{name} is stored as {a.layout}; expected a plain tensor, see Tensor.to_dense.")
    if a.dtype not in (torch.float32, torch.float64):
        raise InputError(f"{name} is of type {a.dtype}; expected torch.float32 or torch.float64.")


def _check_like(name: str, a: Tensor, other: str, b: Tensor) -> None:
    if a.dtype != b.dtype or a.device != b.device:
        raise InputError(
            f"{name} is of type {a.dtype} on {a.device} and {other} of type {b.dtype} on {b.device}; expected the same, see "
            "Tensor.to."
        )


P = ParamSpec("P")
T = TypeVar("T")


def outside_graphs(function: Callable[P, T]) -> Callable[P, T]:
    """Keep a function out of the graphs of ``torch.compile``.

    The sums choose tiles by the memory limit, check values and run in threads, none of which a graph can hold. A compiled
    function that calls one of them is compiled before and after the call, and gradients pass through it as they do otherwise.
    With ``fullgraph=True``, which allows no such break, torch refuses the function.
    """
    reason = "sums of isopleth.torch go tile by tile, in threads; they are not part of a graph"
    return cast(Callable[P, T], torch.compiler.disable(function, reason=reason))
