"""Rate of convergence of a density difference, for differences of known smoothness (paper, theorem of section 2.3.2).

    python -m experiments.lsdd_rate [--runs 10] [--seed 0] [--quick]

In one column, p and q are two boxes, two triangles or two normal bells, one standard deviation or more apart. Their difference is
of Besov regularity 1/2, 3/2 and without bound, and the least error over samples of n rows falls like n^(-2a/(2a + 1)): to the
power of -0.5, -0.75 and nearly -1. Printed are the mean of the squared L2 error over the runs, for `LSDD` with 200 centres on its
default grids and for the difference of two kernel density estimates whose length scales maximise the held-out likelihood,
and the slope of a line through the logarithms.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from isopleth import LSDD
from isopleth.difference import KDEDifference

CENTERS = 200
SIZES = (100, 200, 400, 800, 1600)
GRID = np.linspace(-6.0, 7.0, 4001)
SHIFT = 1.0


def box(t: np.ndarray) -> np.ndarray:
    """Return the density of the uniform distribution on (-1, 1)."""
    return 0.5 * (np.abs(t) < 1.0)


def triangle(t: np.ndarray) -> np.ndarray:
    """Return the density of the sum of two uniform variables on (-1/2, 1/2)."""
    return np.maximum(1.0 - np.abs(t), 0.0)


def bell(t: np.ndarray) -> np.ndarray:
    """Return the standard normal density."""
    return np.asarray(np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi))


Draw = Callable[[np.random.Generator, int], np.ndarray]
LAWS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray], Draw]] = {
    "boxes": (-0.5, box, lambda rng, n: rng.uniform(-1.0, 1.0, n)),
    "triangles": (-0.75, triangle, lambda rng, n: rng.uniform(-0.5, 0.5, (2, n)).sum(axis=0)),
    "bells": (-1.0, bell, lambda rng, n: rng.normal(size=n)),
}


def errors(name: str, n: int, seed: int, run: int) -> tuple[float, float]:
    """Return the squared L2 errors of LSDD and of the kernel density estimates in one run."""
    _, density, draw = LAWS[name]
    rng = np.random.default_rng([seed, run, n])
    x, y = draw(rng, n)[:, None] + SHIFT, draw(rng, n)[:, None]
    true = density(GRID - SHIFT) - density(GRID)
    fits = LSDD(centers=CENTERS, random_state=run, n_jobs=1).fit(x, y), KDEDifference(n_jobs=1).fit(x, y)
    ours, theirs = (float(np.trapezoid((fit.difference(GRID[:, None]) - true) ** 2, GRID)) for fit in fits)
    return ours, theirs


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="samples for each size")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    parser.add_argument("--quick", action="store_true", help="up to 200 rows only")
    options = parser.parse_args(arguments)
    sizes = SIZES[:2] if options.quick else SIZES
    print(f"{'':<32}" + "".join(f"{n:>9}" for n in sizes) + f"{'slope':>9}{'theory':>9}", flush=True)
    for name in LAWS:
        found = np.array([[errors(name, n, options.seed, run) for run in range(options.runs)] for n in sizes])
        for mean, who in zip(found.mean(axis=1).T, ("LSDD", "difference of KDEs"), strict=True):
            slope = np.polyfit(np.log(sizes), np.log(mean), 1)[0]
            cells = "".join(f"{value:>9.4f}" for value in mean) + f"{slope:>9.2f}{LAWS[name][0]:>9.2f}"
            print(f"{f'{name}, {who}':<32}" + cells, flush=True)


if __name__ == "__main__":
    main()
