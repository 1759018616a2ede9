"""Time and accuracy of isopleth on a CUDA device, compared with other ways to do the same.

    python -m benchmarks.gpu --out benchmarks_gpu_results.txt

- Gaussian kernel sums in float32 and float64, compared with pykeops (if installed), with plain torch, and with the peak of the
  device, its rate for a product of large square matrices.
- Sums of 1,000,000 rows with 131,072 others in 16 columns.
- Fits: SOSREP to 100,000 rows; the score of a batch of 64 rows of 128 columns; a step of the entropy gradient.

Results are checked against direct sums in float64 on the CPU. Without a CUDA device it measures nothing and says so.
``--device cpu --quick`` shows that it runs.
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
    two_sets: tuple[int, int, int]
    square: int
    fit: tuple[int, int]
    scores: tuple[int, int]
    entropy: tuple[int, int]
    rounds: int


FULL = Sizes(
    products=(100_000, 64),
    two_sets=(1_000_000, 131_072, 16),
    square=8192,
    fit=(100_000, 20),
    scores=(64, 128),
    entropy=(1024, 64),
    rounds=7,
)
QUICK = Sizes(
    products=(1_500, 16),
    two_sets=(3_000, 700, 16),
    square=512,
    fit=(400, 5),
    scores=(64, 8),
    entropy=(128, 8),
    rounds=1,
)


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


def products(sizes: Sizes, device: Any) -> list[Section]:
    """Measure sums of a Gaussian kernel in both precisions, and of many rows with others."""
    import torch

    from benchmarks import gpu_products as programs

    peaks = {}
    for dtype in (torch.float32, torch.float64):
        taken, _ = seconds(programs.square(sizes.square, device, dtype), device, sizes.rounds)
        peaks[dtype] = 2.0 * sizes.square**3 / taken
    n, d = sizes.products
    out = []
    for dtype, peak in peaks.items():
        title = f"Gaussian kernel of n points with themselves times a vector, {str(dtype)[6:]}, n = {n:,}, d = {d}"
        out.append(sums(title, programs.problem(n, d, device, dtype), programs.PROGRAMS, peak, device, sizes.rounds))
    n, m, d = sizes.two_sets
    title = f"Gaussian kernel of n rows with m others times a vector, float32, n = {n:,}, m = {m:,}, d = {d}"
    problem = programs.problem(n, d, device, m=m)
    return [*out, sums(title, problem, programs.OF_TWO_SETS, peaks[torch.float32], device, sizes.rounds)]


def sums(
    title: str, problem: Any, programs: dict[str, Callable[[Any], Any]], peak: float, device: Any, rounds: int
) -> Section:
    """Measure programs, compared with the matrix product that gives the distances and with the peak of the device."""
    from benchmarks import gpu_products

    operations = 2.0 * len(problem.x) * len(problem.y) * problem.x.shape[1]
    bare, _ = seconds(lambda: gpu_products.matrix_product(problem), device, rounds)

    def row(name: str, taken: float, error: str) -> list[str]:
        speed = operations / taken
        return [name, duration(taken), number(bare / taken), number(speed / peak), error, number(speed / 1e12)]

    rows = [row("the matrix product x y' alone, slab by slab", bare, "")]
    for name, run in programs.items():
        try:
            taken, answer = seconds(lambda run=run: run(problem), device, rounds)
        except Exception as error:  # what a program cannot do at this size, or lacks, is part of the result
            reason = str(error).splitlines() or [""]
            rows.append([name, f"{type(error).__name__}: {reason[0][:60]}", "", "", "", ""])
            continue
        rows.append(row(name, taken, number(gpu_products.error(problem, answer))))
    header = [
        "",
        "time",
        "share of the product's rate",
        "share of peak",
        "largest relative error",
        "TFLOP/s of 2 n m d",
    ]
    return Section(title, header, rows)


def fit(sizes: Sizes, device: Any) -> Section:
    """Measure SOSREP in double precision, and check its equation at some rows by direct sums on the CPU."""
    import numpy as np
    import torch

    from benchmarks.exact import squared_distances
    from isopleth import SOSREP

    n, d = sizes.fit
    x = np.random.default_rng(0).normal(size=(n, d))
    there = torch.from_numpy(x).to(device)
    taken, model = seconds(lambda: SOSREP(tol=1e-6, frame="scale").fit(there), device, 1)
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

    from isopleth.score import KEF

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


def entropy(sizes: Sizes, device: Any) -> Section:
    """Measure a training step of the entropy gradient, with and without weights that are kept."""
    import numpy as np
    import torch

    from isopleth.torch import EntropyGradient, entropy_surrogate

    n, d = sizes.entropy
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(n, d)))
    there = x.to(device).requires_grad_()

    def gradient(surrogate: Callable[[Any], Any], rows: Any) -> Any:
        return torch.autograd.grad(surrogate(rows), rows)[0]

    want = gradient(entropy_surrogate, x.requires_grad_())
    rows = []
    for name, surrogate in (
        ("entropy_surrogate", entropy_surrogate),
        ("EntropyGradient", EntropyGradient(renew_every=10**6)),
    ):
        taken, got = seconds(lambda surrogate=surrogate: gradient(surrogate, there), device, 5 * sizes.rounds)
        rows.append([f"isopleth {name}", duration(taken), number(float((got.cpu() - want).norm() / want.norm()))])
    title = f"Step of the entropy gradient, float64, n = {n:,}, d = {d}"
    return Section(title, ["", "time", "difference from the CPU, relative"], rows)


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
    return head, [*products(sizes, device), *(part(sizes, device) for part in (fit, scores, entropy))]


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
