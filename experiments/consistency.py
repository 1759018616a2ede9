"""Consistency of SOSREP with a = 1/N on compactly supported densities (papers, theorem 3 or 12).

    python -m experiments.consistency [--columns 1 2 3] [--rows 100 300 1000 3000 10000 20000] [--runs 10] [--out FILE]
        [--figure FIGURE] [--results consistency.csv] [--report]

The theorem: if the rows have a compactly supported density v^2, v in the space of the kernel, then with a = 1/N the root u of
SOSREP converges to v in L2, and with it its integral Z = |u|^2 to 1. It is about u before it is normalised, so it needs the
kernel in the scale of the papers, whose integral is 1, and not k(0) = 1 as in this library; the two differ by a factor.

- SDO: a = ell^(2m), with the default order m = floor(d/2) + 2. So ell = N^(-1/(2m)), in the units of the support.
- Laplacian: its space is that of order m = (d+1)/2, so ell = N^(-1/(d+1)).
- Gaussian: its space has no order, and the theorem does not include it; it takes the length scales of SDO.
- KDE: Gaussian kernel and Scott's rule.

Two densities, both on the cube from -1 to 1: "bump", proportional to the product of (1 - x^2)^6, whose root is in the spaces of
all three orders; and "box", the uniform one, whose root is in none of them because it jumps.

Two errors: the theorem's |u - v|^2 in L2, and the squared Hellinger distance 1 - int u v / sqrt(Z) of the normalised density.
Both need one integral besides Z, int u v, by Gauss-Jacobi quadrature. The table has means and standard errors over runs, and the
slope of the logarithm of the mean against that of N, from 300 rows. Above 1,000 rows there are fewer runs, see RUNS. A command
that was interrupted goes on with the runs in --results, and --report makes the table and the figure of these alone.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
from scipy.special import roots_jacobi

from isopleth import KDE, SOSREP
from isopleth.kernels import SDO, Gaussian, Kernel, Laplacian
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure

# Powers of (1 - x^2) in the root of the density.
DENSITIES = {"bump": 3, "box": 0}
# Nodes of the quadrature in each column, by the number of columns.
NODES = {1: 2000, 2: 120, 3: 36}
# Largest number of runs with so many rows; fits of more rows take minutes.
RUNS = {1000: 10, 3000: 4, 10_000: 2, sys.maxsize: 1}
KERNELS: dict[str, type[Kernel]] = {"Gaussian": Gaussian, "Laplacian": Laplacian, "SDO": SDO}
METHODS = (*KERNELS, "KDE")
MEASURES = ("L2", "Hellinger", "Z - 1")
FIRST_OF_SLOPE = 300
# Errors of this relative size in the coefficients change the squared distances by much less than the sampling does.
TOL = 1e-4

# MEASURES by density, columns, method, rows and seed.
Results = dict[tuple[str, int, str, int, int], list[float]]


@dataclass(frozen=True)
class Support:
    """Density v^2 on a cube, v proportional to the product of (1 - x_j^2)^power, and a quadrature of u v.

    Parameters
    ----------
    power : int
        Power of the root.
    dim : int
        Number of columns.
    nodes : int
        Nodes in each column.
    """

    power: int
    dim: int
    nodes: int

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw rows."""
        shape = 2.0 * self.power + 1.0
        return 2.0 * rng.beta(shape, shape, size=(n, self.dim)) - 1.0

    def quadrature(self) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes (k, d) and weights (k,) such that the sum of w u(x) is the integral of u v."""
        x, w = roots_jacobi(self.nodes, self.power, self.power)
        squares = roots_jacobi(self.nodes, 2 * self.power, 2 * self.power)[
            1
        ].sum()  # the integral of (1 - x^2)^(2 power)
        w = w / math.sqrt(squares)
        points = np.stack(np.meshgrid(*[x] * self.dim, indexing="ij"), axis=-1).reshape(-1, self.dim)
        return points, reduce(np.multiply.outer, [w] * self.dim).ravel()


def length_scale(method: str, n: int, dim: int) -> float:
    """Return the length scale at which the regularisation is a = 1/n."""
    order = 0.5 * (dim + 1) if method == "Laplacian" else SDO(dim).bound_order
    return float(n ** (-1.0 / (2.0 * order)))


def log_total(kernel: Kernel, dim: int, scale: float) -> float:
    """Return the logarithm of the integral of k(|x|/scale), k(0) = 1: the density of its spectrum at 0, times (2 pi)^d."""
    return float(kernel.log_spectral_density(np.zeros((1, dim)))[0] + dim * math.log(2.0 * math.pi * scale))


def errors(method: str, support: Support, n: int, rng: np.random.Generator, memory_limit: float = 2**30) -> list[float]:
    """Return the MEASURES of one fit."""
    X = support.sample(n, rng)
    points, weights = support.quadrature()
    limits = {"n_jobs": 1, "memory_limit": memory_limit}
    if method == "KDE":
        model = KDE("gaussian", "scott", "scale", **limits).fit(X)
        z = 1.0
    else:
        kernel, scale = KERNELS[method](dim=support.dim), length_scale(method, n, support.dim)
        model = SOSREP(kernel, scale, "scale", tol=TOL, **limits).fit(X)
        z = math.exp(model.log_normalizer_ - log_total(kernel, support.dim, scale))
    overlap = float(weights @ np.exp(0.5 * model.score_samples(points)))
    return [z + 1.0 - 2.0 * math.sqrt(z) * overlap, 1.0 - overlap, z - 1.0]


def runs_of(n: int, most: int) -> int:
    """Return the number of runs with `n` rows."""
    return min(most, next(runs for rows, runs in RUNS.items() if n <= rows))


def slope(rows: Sequence[int], means: np.ndarray) -> float:
    """Return the slope of log |mean| against log rows, from FIRST_OF_SLOPE rows."""
    used = (np.array(rows) >= FIRST_OF_SLOPE) & np.isfinite(means)
    if used.sum() < 2:
        return math.nan
    return float(np.polyfit(np.log(np.array(rows)[used]), np.log(np.abs(means[used])), 1)[0])


def measure(dims: Sequence[int], rows: Sequence[int], runs: int, memory_limit: float, path: Path) -> Results:
    """Return the MEASURES of all runs; those that the file holds are read, the others computed and added to it."""
    known = read(path)
    for n in sorted(rows):
        for (name, power), dim, method in product(DENSITIES.items(), dims, METHODS):
            support = Support(power, dim, NODES[dim])
            for seed in range(runs_of(n, runs)):
                key = (name, dim, method, n, seed)
                if key not in known:
                    known[key] = errors(method, support, n, np.random.default_rng([seed, n, dim, power]), memory_limit)
                    with path.open("a") as file:
                        file.write(",".join(map(str, (*key, *known[key]))) + "\n")
            print(f"{n} rows, {name}, {dim} columns, {method}: done", file=sys.stderr, flush=True)
    return known


def read(path: Path) -> Results:
    """Return what the file holds of :func:`measure`."""
    found: Results = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        name, dim, method, n, seed, *values = line.split(",")
        found[name, int(dim), method, int(n), int(seed)] = [float(value) for value in values]
    return found


def summary(
    known: Results, dims: Sequence[int], rows: Sequence[int], runs: int
) -> dict[tuple[str, int, str], np.ndarray]:
    """Return means and standard errors by density, columns and method: arrays of shape (rows, 2, measures).

    They are NaN where no run is known.
    """
    out = {}
    for name, dim, method in product(DENSITIES, dims, METHODS):
        cells = []
        for n in rows:
            keys = [(name, dim, method, n, seed) for seed in range(runs_of(n, runs))]
            values = np.array([known[key] for key in keys if key in known])
            if not len(values):
                cells.append(np.full((2, len(MEASURES)), np.nan))
                continue
            spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(len(MEASURES), np.nan)
            cells.append([values.mean(axis=0), spread / math.sqrt(len(values))])
        out[name, dim, method] = np.array(cells)
    return out


def lines(found: dict[tuple[str, int, str], np.ndarray], rows: Sequence[int], runs: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "runs: " + ", ".join(f"at most {runs_of(n, runs)} with {n} rows" for n in rows)
    for k, measure in enumerate(MEASURES):
        what = {"L2": "|u - v|^2 in L2", "Hellinger": "squared Hellinger distance", "Z - 1": "Z - 1"}[measure]
        yield f"\n{what}, mean (standard error of the last digits)"
        yield f"{'density':<9}{'d':>2}  {'method':<10}" + "".join(f"{n:>15}" for n in rows) + f"{'slope':>8}"
        for (name, dim, method), values in found.items():
            if method == "KDE" and measure != "Hellinger":
                continue  # a KDE has Z = 1, and its L2 distance of roots is twice the squared Hellinger distance
            cells = "".join(_cell(mean, error) for mean, error in values[:, :, k])
            yield f"{name:<9}{dim:>2}  {method:<10}{cells}{slope(rows, values[:, 0, k]):>8.2f}"


def _cell(mean: float, error: float) -> str:
    if math.isnan(mean):
        return "-".rjust(15)
    return (f"{mean:.5f}" + ("" if math.isnan(error) else f" ({1e5 * error:.0f})")).rjust(15)


def draw(found: dict[tuple[str, int, str], np.ndarray], rows: Sequence[int], path: Path) -> None:
    """Draw the squared Hellinger distance above and |Z - 1| below, a panel for each density and number of columns."""
    panels = list(dict.fromkeys((name, dim) for name, dim, _ in found))
    figure = new_figure(2.6 * len(panels), 5.2)
    axes = figure.subplots(2, len(panels), sharex=True, sharey="row", squeeze=False)
    styles = {"Gaussian": (BLUE, "o-"), "Laplacian": (VERMILLION, "s-"), "SDO": ("black", "^-"), "KDE": (GREY, "d--")}
    for column, (name, dim) in enumerate(panels):
        for method, (color, style) in styles.items():
            values = found[name, dim, method]
            axes[0, column].plot(rows, values[:, 0, 1], style, color=color, markersize=4, label=method)
            if method != "KDE":
                axes[1, column].plot(rows, np.abs(values[:, 0, 2]), style, color=color, markersize=4)
        axes[0, column].set_title(f"{name}, {dim} column{'s' if dim > 1 else ''}", fontsize=10)
        axes[1, column].set_xlabel("rows")
        for place in axes[:, column]:
            place.set(xscale="log", yscale="log")
            place.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("squared Hellinger distance")
    axes[1, 0].set_ylabel("|Z - 1|")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and save it and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 2, 3], choices=NODES)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000, 3000, 10_000, 20_000])
    parser.add_argument("--runs", type=int, default=10, help="runs of up to 1,000 rows")
    parser.add_argument("--memory-limit", type=float, default=2**30, help="bytes a fit may take")
    parser.add_argument("--results", type=Path, default=Path("consistency.csv"), help="single runs; more are added")
    parser.add_argument("--report", action="store_true", help="report what --results holds, and compute nothing")
    parser.add_argument("--out", type=Path, help="a text file")
    parser.add_argument("--figure", type=Path, help="figure of the errors")
    options = parser.parse_args(arguments)
    if options.figure:
        check_figure_target(options.figure)
    if options.report:
        known = read(options.results)
    else:
        known = measure(options.columns, options.rows, options.runs, options.memory_limit, options.results)
    found = summary(known, options.columns, options.rows, options.runs)
    text = "\n".join(lines(found, options.rows, options.runs))
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    if options.figure:
        draw(found, options.rows, options.figure)


if __name__ == "__main__":
    main()
