"""How close a Gaussian product comes to the processor's limit: its exponentials and its matrix products, each measured alone.

    python -m benchmarks.peak [--rows 8192] [--columns 16] [--out FILE]

One thread. Seconds are those of the processor, medians of turns taken in rotation. The exponentials are of distances as they
occur in the product, in an array of the size of a tile, by NumPy, by torch where it is installed, and by a range-reduced
polynomial in NumPy's operations in place; their errors are in units in the last place, against long double.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import description
from isopleth.kernels import Gaussian
from isopleth.operators import Operator

TILE = 2**18  # numbers, 2 MB
TURNS = 7
# exp(r) for |r| <= log(2)/2 to 1e-17 by its series.
TERMS = 13


def turns(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median processor seconds of each program."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(TURNS + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def polynomial(x: np.ndarray, out: np.ndarray, whole: np.ndarray, power: np.ndarray) -> None:
    """Compute exp(x) = 2^k exp(x - k log 2) for x >= -700 in place, the second factor by Horner's rule."""
    np.multiply(x, 1.0 / math.log(2.0), out=whole)
    np.rint(whole, out=whole)
    np.multiply(whole, -0.6931471803691238, out=power)  # log 2 in two parts, so that the difference is exact
    power += x
    np.multiply(whole, -1.9082149292705877e-10, out=out)
    power += out
    out[:] = 1.0 / math.factorial(TERMS)
    for k in range(TERMS - 1, -1, -1):
        out *= power
        out += 1.0 / math.factorial(k)
    whole += 1023.0
    bits = power.view(np.int64)
    np.copyto(bits, whole, casting="unsafe")
    bits <<= 52
    out *= power


def exponentials() -> list[str]:
    """Return a line for each way to compute exponentials."""
    x = -0.5 * np.random.default_rng(0).chisquare(32, TILE) / 16.0
    out, whole, power = (np.empty_like(x) for _ in range(3))
    runs: dict[str, Callable[[], object]] = {
        "NumPy": lambda: np.exp(x, out=out),
        "polynomial in place": lambda: polynomial(x, out, whole, power),
    }
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        rows, to = torch.from_numpy(x), torch.from_numpy(out)
        runs["torch"] = lambda: torch.exp(rows, out=to)
    exact, lines = np.exp(x.astype(np.longdouble)), []
    for name, seconds in turns(runs).items():
        runs[name]()
        error = float(np.max(np.abs(out - exact) / np.spacing(exact.astype(np.float64))))
        lines.append(
            f"    exp by {name:<24}{seconds / TILE * 1e9:>8.2f} ns a number, {error:.2f} units in the last place"
        )
    return lines


def products(n: int, d: int) -> list[str]:
    """Return the seconds of both products, and the share of the peak of their matrix products."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(n, d)) / np.sqrt(d) for _ in range(2))
    v, square = rng.normal(size=n), rng.normal(size=(1536, 1536))
    own, other = (Operator(Gaussian(), *points, n_jobs=1) for points in ((x,), (x, y)))
    seconds = turns(
        {"peak": lambda: square @ square, "x = y": lambda: own.matvec(v), "x != y": lambda: other.matvec(v)}
    )
    peak = 2.0 * 1536**3 / seconds.pop("peak")
    lines = [f"    dgemm, 1,536 rows square{'':<13}{peak / 1e9:>8.1f} Gflop/s"]
    for name, used in seconds.items():
        pairs = n * (n + 1) / 2 if name == "x = y" else n * n  # the symmetric product computes each pair once
        share = 2.0 * pairs * d / used / peak
        lines.append(
            f"    product, {name:<22}{used * 1e3:>14.1f} ms, {used / pairs * 1e9:.2f} ns a pair, {share:.1%} of the peak"
        )
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    with threadpool_limits(1):
        lines = [*description(), *exponentials(), *products(options.rows, options.columns)]
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
