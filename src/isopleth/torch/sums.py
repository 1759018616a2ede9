"""Compute kernel sums of tensors by the operators of the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import Function

from isopleth.errors import InputError
from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import VALUE, Block, Operator

# Rows of which the median is taken.
_ASKED = 1000


@dataclass(frozen=True)
class Sums:
    """Sums of one kernel over points, at unit length scale, without a graph.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the points.
    origin : Tensor of shape (d,)
        Subtracted from all coordinates, because products of coordinates far from 0 lose the digits of differences.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    """

    kernel: Kernel
    origin: Tensor
    memory_limit: float
    n_jobs: int | None

    @classmethod
    def of(cls, kernel: str | Kernel, points: Tensor, memory_limit: float, n_jobs: int | None) -> Sums:
        """Return the sums of a kernel, given as users do, with the origin taken from `points`."""
        return cls(get_kernel(kernel).bind(points.shape[1]), _middle(points.detach()), memory_limit, n_jobs)

    def __call__(self, x: Tensor, y: Tensor, v: Tensor, block: Block = VALUE) -> Any:
        """Return the sums of a block at `x` over `y`; some blocks use symmetry if both are the same points."""
        left = x.detach() - self.origin
        right = None if y is x else y.detach() - self.origin
        op = Operator(self.kernel, left, right, block=block, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
        return op.matvec(v.detach())


def _middle(points: Tensor) -> Tensor:
    """Return medians of some rows, in columns in which 0 is far from the points relative to their spread; 0 in others.

    Subtraction costs the digits of points that are nearer to 0 than to the middle, so it is done only where needed. A mean would
    follow a single far point.
    """
    some = torch.sort(points[:: max(1, -(-len(points) // _ASKED))], dim=0).values
    n = len(some)
    if n == 0:
        return points.new_zeros(points.shape[1])
    low, middle, high = some[n // 10], some[n // 2], some[9 * n // 10]
    return torch.where(middle.abs() > high - low, middle, torch.zeros_like(middle))


class _Once(Function):
    """First derivative that raises an error when differentiated: treating it as a constant would silently be wrong."""

    @staticmethod
    def forward(ctx: Any, slope: Tensor, *sources: Tensor) -> Tensor:
        return slope.view_as(slope)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> NoReturn:
        raise InputError(
            "the sums of isopleth.torch have no second derivatives; for those of kernel_product, differentiate gradient_product."
        )


def first_derivative(slope: Tensor | None, *sources: Tensor) -> Tensor | None:
    """Mark a derivative that was computed from `sources` without a graph."""
    return None if slope is None else _Once.apply(slope, *sources)
