"""Time SOSREP, KDE and random features fitted to NumPy arrays and to PyTorch tensors, in turns.

    python -m experiments.tensors [--device cpu] [--rows 8192] [--columns 16] [--repeats 5] [--quick] [--out FILE]

Printed are the shortest of `--repeats` times of the wall clock of a fit and of the log density of half as many fresh rows, for
normal rows, and the largest difference of the two log densities. A device finishes what it was given before a clock is read.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from isopleth import KDE, SOSREP, DataWarning, RandomFeatureSOSREP
from isopleth.core.errors import require

CASES = {
    "SOSREP, Gaussian": SOSREP(frame="scale"),
    "SOSREP, Matern 5/2": SOSREP(kernel="matern52", frame="scale"),
    "SOSREP, SDO": SOSREP(kernel="sdo", frame="scale"),
    "KDE, Gaussian": KDE(frame="scale"),
    "200 random features": RandomFeatureSOSREP(n_frequencies=100, random_state=0),
}
HEADS = ("fit, NumPy s", "fit, torch s", "score, NumPy s", "score, torch s", "difference")


def seconds(work: Callable[[], Any], wait: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall-clock time and the result."""
    wait()
    start = time.perf_counter()
    found = work()
    wait()
    return time.perf_counter() - start, found


def study(
    estimator: Any, backends: list[Callable[[np.ndarray], Any]], shape: tuple[int, int], repeats: int, wait: Any
) -> list[str]:
    """Return one line of the table: fit and score with each backend in turns."""
    rows = np.random.default_rng(0).normal(size=shape)
    fresh = np.random.default_rng(1).normal(size=(shape[0] // 2, shape[1]))
    fits: list[list[float]] = [[], []]
    scores: list[list[float]] = [[], []]
    for _ in range(repeats):
        answers = []
        for k, send in enumerate(backends):
            x, asked = send(rows), send(fresh)
            took, model = seconds(lambda x=x: clone(estimator).fit(x), wait)
            fits[k].append(took)
            took, answer = seconds(lambda model=model, asked=asked: model.score_samples(asked), wait)
            scores[k].append(took)
            answers.append(answer if isinstance(answer, np.ndarray) else answer.cpu().numpy())
    known = np.isfinite(answers[0])
    apart = np.abs(answers[0][known] - answers[1][known]).max(initial=0.0)
    return [f"{min(times):.3f}" for times in (*fits, *scores)] + [f"{apart:.1e}"]


def main(arguments: list[str] | None = None) -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="device of torch")
    parser.add_argument("--rows", type=int, default=8192, help="rows that are fitted")
    parser.add_argument("--columns", type=int, default=16, help="columns of the rows")
    parser.add_argument("--repeats", type=int, default=5, help="of every time, the shortest of which is shown")
    parser.add_argument("--quick", action="store_true", help="300 rows, once: a check that it runs")
    parser.add_argument("--out", type=Path, help="a text file")
    options = parser.parse_args(arguments)
    torch = require("torch", "torch", "a comparison with tensors")
    shape, repeats = ((300, 3), 1) if options.quick else ((options.rows, options.columns), options.repeats)
    cuda = options.device.startswith("cuda")
    name = torch.cuda.get_device_name(options.device) if cuda else "the processor"
    lines = [f"n = {shape[0]:,} normal rows of {shape[1]} columns, tensors on {name}"]
    lines.append(f"{'':>20}" + "".join(f"{head:>16}" for head in HEADS))
    print("\n".join(lines), flush=True)
    backends = [np.asarray, lambda a: torch.asarray(a, device=options.device)]
    for label, estimator in CASES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # features in many columns
            cells = study(estimator, backends, shape, repeats, torch.cuda.synchronize if cuda else lambda: None)
        lines.append(f"{label:>20}" + "".join(f"{cell:>16}" for cell in cells))
        print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
