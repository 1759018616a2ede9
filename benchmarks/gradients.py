"""Sums of a kernel under torch's differentiation: the sums, and their gradients for points, queries and coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import squared_distances


@dataclass(frozen=True)
class Problem:
    """Two sets of points, and coefficients of the second."""

    x: np.ndarray
    y: np.ndarray
    v: np.ndarray


def problem(n: int, d: int) -> Problem:
    """Draw normal points, at distances of about 1 for every d, and normal coefficients."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n, d)) / np.sqrt(d)
    return Problem(x, y, rng.normal(size=n))


def tensors(p: Problem) -> Any:
    """Return the same numbers without a graph."""
    import torch

    return tuple(torch.from_numpy(a) for a in (p.x, p.y, p.v))


def ours(given: Any) -> Any:
    """Return sums and gradients by isopleth, tile by tile."""
    from isopleth.torch import kernel_product

    inputs = [a.clone().requires_grad_() for a in given]
    kernel_product("gaussian", *inputs).sum().backward()
    return inputs[0].grad.numpy()


def whole(given: Any) -> Any:
    """Return sums and gradients by the whole matrix and torch's differentiation."""
    import torch

    x, y, v = (a.clone().requires_grad_() for a in given)
    s = (x**2).sum(dim=1)[:, None] - 2.0 * x @ y.T + (y**2).sum(dim=1)
    (torch.exp(-0.5 * s) @ v).sum().backward()
    return x.grad.numpy()


def in_slabs(given: Any, rows: int = 256) -> Any:
    """Return sums and gradients by slabs of rows, whose graphs are all kept until the end."""
    import torch

    x, y, v = (a.clone().requires_grad_() for a in given)
    norms = (y**2).sum(dim=1)
    parts = [torch.exp(-0.5 * ((a**2).sum(dim=1)[:, None] - 2.0 * a @ y.T + norms)) @ v for a in x.split(rows)]
    torch.cat(parts).sum().backward()
    return x.grad.numpy()


def error(p: Problem, got: np.ndarray) -> float:
    """Return the error of the gradient for the first points relative to its largest entry."""
    some = p.x[:50]
    weights = np.exp(-0.5 * squared_distances(some, p.y)) * p.v
    want = weights @ p.y - weights.sum(axis=1)[:, None] * some
    return float(np.max(np.abs(got[:50] - want)) / np.max(np.abs(want)))


COMPARISONS = [
    Comparison(
        "gradients",
        "Sums of a Gaussian kernel over points with gradients for all inputs, float64, n = {n:,}, d = {d}",
        problem,
        {
            "isopleth.torch": Program(ours, needs="torch", setup=tensors),
            "torch, whole matrix": Program(whole, needs="torch", setup=tensors, array_bytes=lambda n, d: 5 * 8 * n**2),
            "torch, in slabs of rows": Program(
                in_slabs, needs="torch", setup=tensors, array_bytes=lambda n, d: 4 * 8 * n**2
            ),
        },
        error,
        "largest relative error",
        rows=(1024, 2048, 4096, 8192),
        columns=16,
        slowest=60.0,
    )
]
