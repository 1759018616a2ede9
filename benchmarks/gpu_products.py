"""Sums of a Gaussian kernel over points on a device, by isopleth and by other means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.exact import squared_distances
from isopleth.kernels import Gaussian
from isopleth.operators import Operator
from isopleth.torch import kernel_product

# Bytes of one array of a program that works slab by slab.
SLAB_BYTES = 2**30


@dataclass(frozen=True)
class Product:
    """Points x at which sums are computed, points y that are summed over, and coefficients, on a device."""

    x: torch.Tensor
    y: torch.Tensor
    v: torch.Tensor


def problem(n: int, d: int, device: torch.device, dtype: torch.dtype = torch.float32, m: int | None = None) -> Product:
    """Draw n normal points at distances of about 1, m others or the same ones, and normal coefficients."""
    rng = np.random.default_rng(0)

    def there(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.normal(size=shape)).to(device=device, dtype=dtype)

    x = there(n, d) / d**0.5
    y = x if m is None else there(m, d) / d**0.5
    return Product(x, y, there(len(y)))


def _slabs(p: Product, numbers_a_row: int) -> list[slice]:
    n = len(p.x)
    step = max(1, SLAB_BYTES // (p.x.element_size() * numbers_a_row))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def matrix_product(p: Product) -> None:
    """Compute x y' repeatedly into the same memory: the rate of the device for this shape."""
    m = len(p.y)
    slabs = _slabs(p, m)
    out = torch.empty((slabs[0].stop, m), dtype=p.x.dtype, device=p.x.device)
    right = p.y.T
    for rows in slabs:
        torch.matmul(p.x[rows], right, out=out[: rows.stop - rows.start])


def square(n: int, device: torch.device, dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    """Return a function that multiplies two square matrices of n rows: the highest rate of the device, without TF32."""
    a = torch.rand((n, n), device=device, dtype=dtype)
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, a, out=out)


def operator(p: Product) -> torch.Tensor:
    """Return the sums over the points themselves; half of the tiles are computed."""
    return Operator(Gaussian(), p.x).matvec(p.v)


def operator_of_two_sets(p: Product) -> torch.Tensor:
    """Return the sums with all tiles."""
    return Operator(Gaussian(), p.x, p.x.clone() if p.y is p.x else p.y).matvec(p.v)


def forward_and_backward(p: Product) -> torch.Tensor:
    """Return the sums and their gradients for points, queries and coefficients."""
    x, y, v = p.x.clone().requires_grad_(), p.x.clone().requires_grad_(), p.v.clone().requires_grad_()
    out = kernel_product("gaussian", x, y, v)
    out.sum().backward()
    return out.detach()


def dense(p: Product) -> torch.Tensor:
    """Return the sums by the whole matrix."""
    if p.x.device.type == "cuda":
        needed, free = 3 * p.x.element_size() * len(p.x) ** 2, torch.cuda.mem_get_info(p.x.device)[0]
        if needed > free:
            raise MemoryError(f"{needed / 2**30:.0f} GiB wanted, {free / 2**30:.0f} GiB free")
    return torch.exp(-0.5 * torch.cdist(p.x, p.y) ** 2) @ p.v


def differences(p: Product) -> torch.Tensor:
    """Return the sums by the (b, m, d) tensor of differences of b rows at a time."""
    out = torch.empty_like(p.x[:, 0])
    for rows in _slabs(p, p.y.numel()):
        s = ((p.x[rows, None, :] - p.y[None, :, :]) ** 2).sum(dim=2)
        out[rows] = torch.exp(-0.5 * s) @ p.v
    return out


def keops(p: Product) -> torch.Tensor:
    """Return the sums by pykeops, which compiles a function for the device."""
    from pykeops.torch import LazyTensor

    a, b = LazyTensor(p.x[:, None, :]), LazyTensor(p.y[None, :, :])
    return ((-0.5 * ((a - b) ** 2).sum(-1)).exp() @ p.v[:, None])[:, 0]


PROGRAMS = {
    "isopleth": operator,
    "isopleth, two sets of points": operator_of_two_sets,
    "isopleth.torch, with gradients for points, queries and coefficients": forward_and_backward,
    "pykeops": keops,
    "torch, whole matrix": dense,
    "torch, differences (b, m, d)": differences,
}
OF_TWO_SETS = {name: PROGRAMS[name] for name in ("isopleth, two sets of points", "pykeops")}


def error(p: Product, got: torch.Tensor) -> float:
    """Return the error of the first rows relative to the sum of absolute values, against float64 sums."""
    x, y, v = (a.cpu().numpy().astype(np.float64) for a in (p.x[:20], p.y, p.v))
    top, bottom = np.zeros(20), np.zeros(20)
    for block in np.array_split(np.arange(len(y)), max(1, len(y) // 2_000)):
        k = np.exp(-0.5 * squared_distances(x, y[block]))
        top += k @ v[block]
        bottom += k @ np.abs(v[block])
    return float(np.max(np.abs(got[:20].cpu().numpy() - top) / bottom))
