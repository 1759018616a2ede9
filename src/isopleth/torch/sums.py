"""Compute kernel sums of tensors by the operators of the core."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import VALUE, Block, Operator

# Rows of which the median is taken.
_ASKED = 1000


@dataclass(frozen=True)
class Sums:
    """Sums of one kernel over points, at unit length scale, without a graph."""

    kernel: Kernel  # bound to the dimension of the points
    memory_limit: float
    n_jobs: int | None
    # (d,): subtracted from all coordinates, because products of coordinates far from 0 lose the digits of differences
    origin: Tensor | None = None

    @classmethod
    def of(cls, kernel: str | Kernel, dim: int, memory_limit: float, n_jobs: int | None) -> Sums:
        """Return the sums of a kernel, given as users do, for points of `dim` columns."""
        return cls(get_kernel(kernel).bind(dim), memory_limit, n_jobs)

    def about(self, points: Tensor) -> Sums:
        """Return the sums with an origin among the points, which sums and their derivatives must share to agree in all digits."""
        return replace(self, origin=_middle(points.detach()))

    def __call__(self, x: Tensor, y: Tensor, v: Tensor, block: Block = VALUE) -> Any:
        """Return the sums of a block at `x` over `y`; some blocks use symmetry if both are the same points."""
        assert self.origin is not None, "call about() first"
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
