"""Sums of a Gaussian kernel over points on a device, by isopleth and by other means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.exact import squared_distances
from isopleth import Gaussian
from isopleth.operators import Operator
from isopleth.torch import kernel_product

# Bytes of one array of a program that works slab by slab.
SLAB_BYTES = 2**30


@dataclass(frozen=True)
class Product:
    """Points and coefficients, float32, on a device."""

    x: torch.Tensor
    v: torch.Tensor


def problem(n: int, d: int, device: torch.device) -> Product:
    """Draw normal points at distances of about 1, and normal coefficients."""
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n)
    return Product(*(torch.from_numpy(a.astype(np.float32)).to(device) for a in (x, v)))


def _slabs(p: Product, numbers_a_row: int) -> list[slice]:
    n = len(p.x)
    step = max(1, SLAB_BYTES // (4 * numbers_a_row))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def matrix_product(p: Product) -> None:
    """Compute x x' repeatedly into the same memory: the rate of the device for this shape."""
    n = len(p.x)
    slabs = _slabs(p, n)
    out = torch.empty((slabs[0].stop, n), dtype=p.x.dtype, device=p.x.device)
    right = p.x.T
    for rows in slabs:
        torch.matmul(p.x[rows], right, out=out[: rows.stop - rows.start])


def operator(p: Product) -> torch.Tensor:
    """Return the sums over the points themselves; half of the tiles are computed."""
    return Operator(Gaussian(), p.x).matvec(p.v)


def operator_of_two_sets(p: Product) -> torch.Tensor:
    """Return the sums with all tiles."""
    return Operator(Gaussian(), p.x, p.x.clone()).matvec(p.v)


def forward_and_backward(p: Product) -> torch.Tensor:
    """Return the sums and their gradients for points, queries and coefficients."""
    x, y, v = p.x.clone().requires_grad_(), p.x.clone().requires_grad_(), p.v.clone().requires_grad_()
    out = kernel_product("gaussian", x, y, v)
    out.sum().backward()
    return out.detach()


def dense(p: Product) -> torch.Tensor:
    """Return the sums by the whole matrix."""
    if p.x.device.type == "cuda":
        needed, free = 3 * 4 * len(p.x) ** 2, torch.cuda.mem_get_info(p.x.device)[0]
        if needed > free:
            raise MemoryError(f"{needed / 2**30:.0f} GiB wanted, {free / 2**30:.0f} GiB free")
    return torch.exp(-0.5 * torch.cdist(p.x, p.x) ** 2) @ p.v


def differences(p: Product) -> torch.Tensor:
    """Return the sums by the (b, m, d) tensor of differences of b rows at a time."""
    out = torch.empty_like(p.v)
    for rows in _slabs(p, p.x.numel()):
        s = ((p.x[rows, None, :] - p.x[None, :, :]) ** 2).sum(dim=2)
        out[rows] = torch.exp(-0.5 * s) @ p.v
    return out


def keops(p: Product) -> torch.Tensor:
    """Return the sums by pykeops, which compiles a function for the device."""
    from pykeops.torch import LazyTensor

    a, b = LazyTensor(p.x[:, None, :]), LazyTensor(p.x[None, :, :])
    return ((-0.5 * ((a - b) ** 2).sum(-1)).exp() @ p.v[:, None])[:, 0]


PROGRAMS = {
    "isopleth": operator,
    "isopleth, two sets of points": operator_of_two_sets,
    "isopleth.torch, with gradients for points, queries and coefficients": forward_and_backward,
    "pykeops": keops,
    "torch, whole matrix": dense,
    "torch, differences (b, m, d)": differences,
}


def error(p: Product, got: torch.Tensor) -> float:
    """Return the error of the first rows relative to the sum of absolute values, against float64 sums."""
    x, v = (a.cpu().numpy().astype(np.float64) for a in (p.x, p.v))
    top, bottom = np.zeros(20), np.zeros(20)
    for block in np.array_split(np.arange(len(x)), max(1, len(x) // 2_000)):
        k = np.exp(-0.5 * squared_distances(x[:20], x[block]))
        top += k @ v[block]
        bottom += k @ np.abs(v[block])
    return float(np.max(np.abs(got[:20].cpu().numpy() - top) / bottom))
