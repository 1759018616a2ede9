"""Gradients of the entropy: their error and the time of a training step, by estimator.

    python -m benchmarks.entropy [--draws 5] [--rounds 5] [--out FILE]

The error is the squared difference of the estimated and the true scores at the samples relative to the squared true scores,
summed over samples and columns: the mean over `--draws` samples. "Separated modes" is a mixture of d standard normal densities
at distinct vertices of a cube of side 4 in d columns; "curved" is a parabola with noise. A step is the surrogate of samples and
its backward pass, in processor seconds on one thread; the estimators take turns, and the figure is the median of `--rounds` turns
after one that is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from benchmarks.machine import description
from benchmarks.report import Section, duration, number

Sample = tuple[np.ndarray, np.ndarray]

SIDE = 4.0


def normal(rng: np.random.Generator, n: int, d: int) -> Sample:
    """Draw standard normal rows; return them and their true scores."""
    x = rng.normal(size=(n, d))
    return x, -x


def separated(rng: np.random.Generator, n: int, d: int) -> Sample:
    """Draw from a mixture of d normal densities at d distinct vertices of a cube; the vertices depend on d alone."""
    corners = np.random.default_rng(d)
    found: set[tuple[int, ...]] = set()
    while len(found) < min(d, 2**d):
        found.add(tuple(int(bit) for bit in corners.integers(0, 2, d)))
    modes = SIDE * np.array(sorted(found), dtype=float)
    x = modes[rng.integers(0, len(modes), n)] + rng.normal(size=(n, d))
    shares = softmax(x @ modes.T - 0.5 * np.sum(modes**2, axis=1), axis=1)
    return x, shares @ modes - x


def heavy(rng: np.random.Generator, n: int, d: int) -> Sample:
    """Draw from the multivariate t distribution with 5 degrees of freedom."""
    x = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(5, size=(n, 1)) / 5.0)
    return x, -(5.0 + d) * x / (5.0 + np.sum(x * x, axis=1, keepdims=True))


def curved(rng: np.random.Generator, n: int, d: int) -> Sample:
    """Draw normal rows whose second column is bent to a parabola over the first one."""
    x = rng.normal(size=(n, d))
    x[:, 1] = 0.5 * x[:, 1] + x[:, 0] ** 2 - 1.0
    score = -x
    score[:, 1] = -4.0 * (x[:, 1] - x[:, 0] ** 2 + 1.0)
    score[:, 0] -= 2.0 * x[:, 0] * score[:, 1]
    return x, score


# Title, density, and number of rows and columns.
TARGETS: list[tuple[str, Callable[..., Sample], int, int]] = [
    ("normal, 256 x 64", normal, 256, 64),
    ("separated modes, 256 x 64", separated, 256, 64),
    ("heavy tails, 256 x 64", heavy, 256, 64),
    ("normal, 64 x 8", normal, 64, 8),
    ("separated modes, 64 x 8", separated, 64, 8),
    ("curved, 256 x 2", curved, 256, 2),
]
STEP = (1024, 64)
QUICK_STEP = (64, 8)


def estimators() -> dict[str, Callable[[], Callable[[Any], Any]]]:
    """Return functions that make a surrogate, by name."""
    from isopleth import KernelScore
    from isopleth.score import KEF, SSGE, NuMethod, Stein
    from isopleth.torch import EntropyGradient, entropy_surrogate

    def by(estimator: Any) -> Callable[[], Callable[[Any], Any]]:
        return lambda: lambda x: entropy_surrogate(x, estimator, n_jobs=1)

    return {
        "default": by(None),
        "EntropyGradient()": lambda: EntropyGradient(n_jobs=1),
        "KernelScore()": by(KernelScore(n_jobs=1)),
        "NuMethod()": by(NuMethod(n_jobs=1)),
        "KEF(alpha=0.01)": by(KEF(alpha=0.01, n_jobs=1)),
        "SSGE()": by(SSGE(n_jobs=1)),
        "Stein(alpha=0.01)": by(Stein(alpha=0.01, n_jobs=1)),
    }


def error(surrogate: Callable[[Any], Any], sample: Sample) -> float:
    """Return the relative squared error of the gradient."""
    import torch

    x = torch.from_numpy(sample[0]).requires_grad_()
    surrogate(x).backward()
    truth = sample[1]
    score = -len(truth) * x.grad.numpy()
    return float(np.sum((score - truth) ** 2) / np.sum(truth**2))


def errors(
    make: Callable[[], Callable[[Any], Any]], target: Callable[..., Sample], n: int, d: int, draws: int
) -> float:
    """Return the mean error over samples; what is kept between steps is not kept from one sample to the next."""
    return statistics.fmean(error(make(), target(np.random.default_rng(seed), n, d)) for seed in range(draws))


def steps(n: int, d: int, rounds: int) -> dict[str, float]:
    """Return the median processor seconds of a step for each estimator."""
    import torch

    x = torch.from_numpy(np.random.default_rng(0).normal(size=(n, d)))
    runs = {name: make() for name, make in estimators().items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, surrogate in runs.items():
            wanting = x.clone().requires_grad_()
            start = time.process_time()
            surrogate(wanting).backward()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def measured(draws: int, rounds: int, quick: bool) -> Section:
    """Return the table."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    size = QUICK_STEP if quick else STEP
    targets = [target for target in TARGETS if not quick or target[2] * target[3] <= 512]
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            times = steps(*size, rounds)
            rows = [
                [name, *(number(errors(make, *target[1:], draws)) for target in targets), duration(times[name])]
                for name, make in estimators().items()
            ]
    finally:
        torch.set_num_threads(threads)
    header = ["", *(f"error: {target[0]}" for target in targets), f"step, {size[0]:,} x {size[1]}"]
    return Section("Gradients of the entropy, float64", header, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.entropy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5, help="samples for each error")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each estimator")
    parser.add_argument("--quick", action="store_true", help="small sizes, one draw and one turn: a check that it runs")
    parser.add_argument("--out", type=Path, help="a file for the table, as reStructuredText")
    options = parser.parse_args(arguments)
    draws, rounds = (1, 1) if options.quick else (options.draws, options.rounds)
    head = [*description(), f"Means over {draws} draws, medians of {rounds} turns."]
    if options.quick:
        head.append("Quick run: small sizes, no figures to quote.")
    print("\n".join(head))
    table = measured(draws, rounds, options.quick)
    print(table.text())
    if options.out is not None:
        text = "\n".join([*(f"| {line}" for line in head), "", table.rst()])
        options.out.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
