"""The way from tensors to the operators of the core, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import Function

from isopleth.errors import InputError
from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import VALUE, Block, Operator

# Rows that are asked where the points are.
_ASKED = 1000


@dataclass(frozen=True)
class Sums:
    """Sums of one kernel over points, at unit length scale; no graph is kept of them.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the points.
    origin : Tensor of shape (d,)
        Where coordinates are counted from: products of those far from 0 would lose the digits of differences.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    """

    kernel: Kernel
    origin: Tensor
    memory_limit: float
    n_jobs: int | None

    @classmethod
    def of(cls, kernel: str | Kernel, points: Tensor, memory_limit: float, n_jobs: int | None) -> Sums:
        """Of a kernel as a user names it, over `points` or beside them."""
        return cls(get_kernel(kernel).bind(points.shape[1]), _middle(points.detach()), memory_limit, n_jobs)

    def __call__(self, x: Tensor, y: Tensor, v: Tensor, block: Block = VALUE) -> Any:
        """The sums of a block at `x` over `y`; over the same points half of the pairs are enough for some."""
        left = x.detach() - self.origin
        right = None if y is x else y.detach() - self.origin
        op = Operator(self.kernel, left, right, block=block, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
        return op.matvec(v.detach())


def _middle(points: Tensor) -> Tensor:
    """Medians of some rows, in columns where 0 is far away by the spread of the points; 0 in others.

    To subtract costs the digits of points that lie nearer to 0 than to the middle, so it should be needed; and a mean would
    follow a single far point.
    """
    some = torch.sort(points[:: max(1, -(-len(points) // _ASKED))], dim=0).values
    n = len(some)
    if n == 0:
        return points.new_zeros(points.shape[1])
    low, middle, high = some[n // 10], some[n // 2], some[9 * n // 10]
    return torch.where(middle.abs() > high - low, middle, torch.zeros_like(middle))


class _Once(Function):
    """A first derivative, which says so when it is differentiated: to count it as a constant would be wrong in silence."""

    @staticmethod
    def forward(ctx: Any, slope: Tensor, *sources: Tensor) -> Tensor:
        return slope.view_as(slope)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> NoReturn:
        raise InputError(
            "the sums of isopleth.torch have no second derivatives; for those of kernel_product, differentiate gradient_product."
        )


def first_derivative(slope: Tensor | None, *sources: Tensor) -> Tensor | None:
    """A derivative that was computed from `sources` without a graph."""
    return None if slope is None else _Once.apply(slope, *sources)
