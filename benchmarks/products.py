"""Streamed kernel products beside a hand-tiled NumPy loop and pykeops: time, memory, growth.

python -m benchmarks.products
"""

from __future__ import annotations

import resource
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import interleaved, machine, table
from isopleth import SDO, Gaussian, Laplacian
from isopleth.operators import Operator


def hand_tiled(x: np.ndarray, v: np.ndarray, rows: int = 256, columns: int = 512, threads: int = 2) -> np.ndarray:
    """What a careful user writes: one buffer a thread, everything in place, BLAS held to one thread."""
    n = len(x)
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


def keops(x: np.ndarray, v: np.ndarray) -> Any:
    """The same sum by pykeops on the processor, or None where it is not installed."""
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        return None

    def run() -> np.ndarray:
        a, b = LazyTensor(x[:, None, :]), LazyTensor(x[None, :, :])
        return ((-0.5 * ((a - b) ** 2).sum(-1)).exp() @ v[:, None])[:, 0]

    return run


def main() -> None:
    """Print the three tables."""
    print(machine())
    rng = np.random.default_rng(0)
    n, d = 8192, 16
    x, v = rng.normal(size=(n, d)), rng.normal(size=n)
    other = x.copy()
    gaussian = Operator(Gaussian(), x)
    rivals = {
        "isopleth, points with themselves": lambda: gaussian.matvec(v),
        "isopleth, set up anew": lambda: Operator(Gaussian(), x).matvec(v),
        "isopleth, two sets of points": lambda: Operator(Gaussian(), x, other).matvec(v),
        "hand-tiled NumPy, two threads": lambda: hand_tiled(x, v),
    }
    peer = keops(x, v)
    if peer is not None:
        rivals["pykeops"] = peer
    else:
        print("pykeops is not installed: not measured")
    for name, run in rivals.items():
        error = np.max(np.abs(run() - gaussian.matvec(v)))
        if error > 1e-9:
            sys.exit(f"{name} disagrees by {error:.1e}")
    table(f"one Gaussian product, n = {n}, d = {d}, float64", interleaved(rivals), "isopleth, points with themselves")

    kernels = {repr(k): Operator(k, x) for k in (Gaussian(), Laplacian(), SDO())}
    kernels |= {f"{k!r}, two sets": Operator(k, x, other) for k in (Gaussian(), SDO())}
    table(
        "the same for each kernel",
        interleaved({name: (lambda op=op: op.matvec(v)) for name, op in kernels.items()}),
        "Gaussian(dim=None)",
    )

    tracemalloc.start()
    Operator(Gaussian(), x).matvec(v)
    print(f"\npeak beside the inputs: {tracemalloc.get_traced_memory()[1] / 2**20:.1f} MiB")
    tracemalloc.stop()
    print(f"peak of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")

    pairs, seconds = [], []
    for size in (2000, 5000, 10_000, 20_000, 50_000):
        y = rng.normal(size=(size, d))
        op, u = Operator(Gaussian(), y), np.ones(size)
        median = interleaved({"": lambda op=op, u=u: op.matvec(u)}, rounds=3)[""]
        pairs.append(size * size)
        seconds.append(median)
        print(f"  n = {size:>6}: {median * 1e3:9.1f} ms, {median / size**2 * 1e9:.3f} ns a pair")
    print(f"time grows as (n m)^{np.polyfit(np.log(pairs), np.log(seconds), 1)[0]:.3f}")


if __name__ == "__main__":
    main()
