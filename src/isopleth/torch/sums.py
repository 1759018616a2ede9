"""The way from tensors to the operators of the core, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from torch import Tensor
from torch.autograd import Function

from isopleth.errors import InputError
from isopleth.kernels import Kernel, get_kernel
from isopleth.operators import VALUE, Block, Operator


@dataclass(frozen=True)
class Sums:
    """Sums of one kernel over points, at unit length scale; no graph is kept of them.

    Parameters
    ----------
    kernel : Kernel
        Bound to the dimension of the points.
    memory_limit, n_jobs
        As for :class:`~isopleth.operators.Operator`.
    """

    kernel: Kernel
    memory_limit: float
    n_jobs: int | None

    @classmethod
    def of(cls, kernel: str | Kernel, x: Tensor, memory_limit: float, n_jobs: int | None) -> Sums:
        """Of a kernel as a user names it."""
        return cls(get_kernel(kernel).bind(x.shape[1]), memory_limit, n_jobs)

    def __call__(self, x: Tensor, y: Tensor, v: Tensor, block: Block = VALUE) -> Any:
        """The sums of a block at `x` over `y`; over the same points half of the pairs are enough for some."""
        origin = y.detach().mean(dim=0)  # differences of points far from the origin would lose digits
        left = x.detach() - origin
        right = None if y is x else y.detach() - origin
        op = Operator(self.kernel, left, right, block=block, memory_limit=self.memory_limit, n_jobs=self.n_jobs)
        return op.matvec(v.detach())


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
