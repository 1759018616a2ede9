"""Products of a Gaussian kernel matrix, computed in tiles, with a vector."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from benchmarks.comparison import Comparison, Program
from benchmarks.exact import sdo, squared_distances
from isopleth.kernels import Gaussian, Kernel, Laplacian, Matern, get_kernel
from isopleth.operators import Operator


@dataclass(frozen=True)
class Product:
    """Points, and the coefficients of a sum of kernels over them."""

    x: np.ndarray
    v: np.ndarray


def problem(n: int, d: int) -> Product:
    """Draw normal points, at distances of about 1 for every d, and normal coefficients."""
    rng = np.random.default_rng(0)
    return Product(rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=n))


def hand_tiled(p: Product, rows: int = 256, columns: int = 512, threads: int = 2) -> np.ndarray:
    """Compute the product as a careful user would: one buffer for each thread, in-place operations, one BLAS thread."""
    x, v, n = p.x, p.v, len(p.x)
    norms = np.einsum("ij,ij->i", x, x)
    out = np.zeros(n)

    def work(first: int) -> None:
        buffer = np.empty((rows, columns))
        for i in range(first * rows, n, threads * rows):
            for j in range(0, n, columns):
                s = buffer[: min(rows, n - i), : min(columns, n - j)]
                np.matmul(x[i : i + rows], x[j : j + columns].T, out=s)
                s *= -2.0
                s += norms[i : i + rows, None]
                s += norms[None, j : j + columns]
                s *= -0.5
                np.exp(s, out=s)
                out[i : i + rows] += s @ v[j : j + columns]

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return out


def whole_matrix(p: Product) -> np.ndarray:
    """Compute the matrix, then the product."""
    return np.exp(-0.5 * cdist(p.x, p.x, "sqeuclidean")) @ p.v


def keops(p: Product) -> np.ndarray:
    """Compute the product by pykeops on the CPU."""
    os.environ["KEOPS_VERBOSE"] = "0"  # before the import, which would print
    from pykeops.numpy import LazyTensor

    a, b = LazyTensor(p.x[:, None, :]), LazyTensor(p.x[None, :, :])
    return ((-0.5 * ((a - b) ** 2).sum(-1)).exp() @ p.v[:, None])[:, 0]


def gaussian_error(p: Product, got: np.ndarray) -> float:
    """Return the error of the first rows, relative to the sum of absolute values."""
    k = np.exp(-0.5 * squared_distances(p.x[:50], p.x))
    return float(np.max(np.abs(got[:50] - k @ p.v) / (k @ np.abs(p.v))))


def _product_of(kernel: Kernel) -> Callable[[Product], tuple[Kernel, np.ndarray]]:
    return lambda p: (kernel, Operator(kernel, p.x).matvec(p.v))


def _profile(kernel: Kernel, r: np.ndarray, d: int) -> np.ndarray:
    if isinstance(kernel, Gaussian):
        return np.exp(-0.5 * r**2)
    if isinstance(kernel, Laplacian):
        return np.exp(-r)
    if isinstance(kernel, Matern):
        z = np.sqrt(5.0) * r
        return (1.0 + z + z**2 / 3.0) * np.exp(-z)
    values = np.ones_like(r)
    values[r > 0.0] = sdo(r[r > 0.0], d, d // 2 + 2)
    return values


def kernel_error(p: Product, answer: tuple[Kernel, np.ndarray]) -> float:
    """Return the same as :func:`gaussian_error` for each kernel's own formula."""
    kernel, got = answer
    k = _profile(kernel, np.sqrt(squared_distances(p.x[:50], p.x)), p.x.shape[1])
    return float(np.max(np.abs(got[:50] - k @ p.v) / (np.abs(k) @ np.abs(p.v))))


COMPARISONS = [
    Comparison(
        "products",
        "Gaussian kernel matrix of n points with themselves times a vector, n = {n:,}, d = {d}",
        problem,
        {
            "isopleth": Program(lambda p: Operator(Gaussian(), p.x).matvec(p.v)),
            "isopleth, two sets of points": Program(lambda p: Operator(Gaussian(), p.x, p.x.copy()).matvec(p.v)),
            "NumPy, tiled by hand, two threads": Program(hand_tiled),
            "SciPy distances, whole matrix": Program(whole_matrix),
            "pykeops": Program(keops, needs="pykeops"),
        },
        gaussian_error,
        "largest relative error",
        rows=(1024, 2048, 4096, 8192),
        columns=16,
        column_range=(4, 8, 16, 32, 64),
        column_rows=4096,
    ),
    Comparison(
        "kernels",
        "Such a product for each of the kernels, n = {n:,}, d = {d}",
        problem,
        {
            f"isopleth {name}": Program(_product_of(get_kernel(name)))
            for name in ("gaussian", "laplacian", "matern52", "sdo")
        },
        kernel_error,
        "largest relative error",
        rows=(1024, 2048, 4096, 8192),
        columns=5,
    ),
]
