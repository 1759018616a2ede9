"""Time and accuracy of isopleth on a CUDA device, compared with other ways to do the same.

    python -m benchmarks.gpu --out docs/benchmarks_gpu_results.txt

Without a CUDA device it measures nothing and says so. ``--device cpu --quick`` shows that it runs.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import description
from benchmarks.report import Section, duration, number

NOT_MEASURED = "not measured: no CUDA device"


@dataclass(frozen=True)
class Sizes:
    """Rows and columns of each task."""

    products: tuple[int, int]
    fit: tuple[int, int]
    scores: tuple[int, int]
    rounds: int


FULL = Sizes(products=(100_000, 64), fit=(50_000, 20), scores=(64, 128), rounds=7)
QUICK = Sizes(products=(1_500, 16), fit=(400, 5), scores=(64, 8), rounds=1)


def seconds(run: Callable[[], Any], device: Any, rounds: int) -> tuple[float, Any]:
    """Return the median seconds of several runs, each including all work on the device, and the last answer.

    A turn before them, which compiles and allocates, is not counted.
    """
    import torch

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    answer, times = run(), []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        answer = run()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times), answer


def products(sizes: Sizes, device: Any) -> Section:
    """Measure sums of a Gaussian kernel, compared with the matrix product that gives the distances."""
    from benchmarks import gpu_products as programs

    n, d = sizes.products
    problem = programs.problem(n, d, device)
    bare, _ = seconds(lambda: programs.matrix_product(problem), device, sizes.rounds)
    rows = [["the matrix product x x' alone, slab by slab", duration(bare), "1", "", rate(n, d, bare)]]
    for name, run in programs.PROGRAMS.items():
        try:
            taken, answer = seconds(lambda run=run: run(problem), device, sizes.rounds)
        except Exception as error:  # what a program cannot do at this size, or lacks, is part of the result
            reason = str(error).splitlines() or [""]
            rows.append([name, f"{type(error).__name__}: {reason[0][:60]}", "", "", ""])
            continue
        error = "" if answer is None else number(programs.error(problem, answer))
        rows.append([name, duration(taken), number(bare / taken), error, rate(n, d, taken)])
    header = ["", "time", "share of the product's rate", "largest relative error", "TFLOP/s of 2 n n d"]
    return Section(
        f"Gaussian kernel of n points with themselves times a vector, float32, n = {n:,}, d = {d}", header, rows
    )


def rate(n: int, d: int, taken: float) -> str:
    """Return the rate as if a sum were only its matrix product."""
    return number(2.0 * n * n * d / taken / 1e12)


def fit(sizes: Sizes, device: Any) -> Section:
    """Measure SOSREP in double precision, and check its equation at some rows by direct sums on the CPU."""
    import numpy as np
    import torch

    from benchmarks.exact import squared_distances
    from isopleth import SOSREP

    n, d = sizes.fit
    x = np.random.default_rng(0).normal(size=(n, d))
    there = torch.from_numpy(x).to(device)
    taken, model = seconds(lambda: SOSREP(tol=1e-6).fit(there), device, 1)
    alpha, scale = (a.cpu().numpy() for a in (model.dual_coef_, model.length_scale_))
    some = slice(0, 50)
    z = model.centers_.cpu().numpy() / scale
    blocks = np.array_split(np.arange(n), max(1, n // 2_000))
    f = sum(np.exp(-0.5 * squared_distances(z[some], z[block])) @ alpha[block] for block in blocks)
    residual = float(np.max(np.abs(n * alpha[some] * f - 1.0)))
    row = ["isopleth SOSREP", duration(taken), str(model.n_iter_), number(model.residual_), number(residual)]
    header = ["", "time", "products", "residual", "residual of 50 rows, literal sums"]
    return Section(f"Fit of SOSREP to 1e-6, float64, n = {n:,}, d = {d}", header, [row])


def scores(sizes: Sizes, device: Any) -> Section:
    """Measure the score of a small batch at its own rows, as in a training step."""
    import numpy as np
    import torch

    from isopleth import KEF

    n, d = sizes.scores
    x = np.random.default_rng(0).normal(size=(n, d))
    there = torch.from_numpy(x).to(device)
    estimator = KEF(alpha=0.01)
    taken, model = seconds(lambda: estimator.fit(there).grad_log_density_, device, 5 * sizes.rounds)
    want = KEF(alpha=0.01).fit(x).grad_log_density_
    error = float(np.max(np.abs(model.cpu().numpy() - want)) / np.max(np.abs(want)))
    row = ["isopleth KEF", duration(taken), number(error)]
    title = f"Score of a batch at its rows, float64, M = {n:,}, d = {d}"
    return Section(title, ["", "time", "largest error, relative to NumPy's"], [row])


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="a device of torch; cpu shows that it runs")
    parser.add_argument("--quick", action="store_true", help="small sizes: a check that it runs, no figures to quote")
    parser.add_argument("--out", type=Path, help="a file for the tables, as reStructuredText")
    return parser.parse_args(arguments)


def measured(name: str, quick: bool) -> tuple[list[str], list[Section]]:
    """Return the introduction and the tables."""
    import torch

    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        return [NOT_MEASURED], []
    found = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "processor"
    head = [f"{found}, torch {torch.__version__}", *description()]
    if quick:
        head.append("Quick run: small sizes, no figures to quote.")
    sizes = QUICK if quick else FULL
    return head, [part(sizes, device) for part in (products, fit, scores)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the tables."""
    options = parse(arguments)
    head, sections = measured(options.device, options.quick)
    print("\n".join(head))
    for one in sections:
        print(one.text())
    if options.out is not None:
        text = "\n".join([*(f"| {line}" for line in head), "", *(one.rst() for one in sections)])
        options.out.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
