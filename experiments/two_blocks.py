"""SOSREP is not a kernel density estimate: two clusters of different density, compared with KDE (papers, Fig. 2 or 4).

    python -m experiments.two_blocks [--out FIGURE] [--data DIR] [--letter FIGURE] [--clusters 20]

First the two-block matrix: N rows of similarity gamma^2 to each other, N of gamma'^2, and beta gamma gamma' between the two. The
papers' ratio of densities, gamma^2/gamma'^2 whatever beta, is the limit for large N. For finite N the same algebra (proposition
10 with H_12 = H_21) gives (1 + (N-1) gamma^2)/(1 + (N-1) gamma'^2), again without beta. The matrix is made by points: a Gaussian
kernel between the vertices of two regular simplices in orthogonal spaces, sqrt(-2 log beta) apart, has exactly these values.

With --data, a folder with ADBench's tables in it, comes the `letter` table: spectral clustering with the SDO kernel as affinity,
and densities of the two clusters that are most like the two-block matrix. The paper leaves open, and here is: the scale of the
kernel (the median distance over sqrt(d), of standardised columns), its order (the smallest; exact where the paper samples it),
the number of clusters (--clusters; those of fewer than 40 rows are left out), and likeness (the share of the variance of the
pairs' kernel values that the three blocks explain). These choices matter: with ten clusters the pair most like two blocks has
nearly equal densities and no gap to speak of. So the gap is also compared for every pair of clusters.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.cluster import SpectralClustering

from experiments.adbench_tables import find_table, missing, standardised, typical_length
from isopleth.kernels import SDO, Gaussian
from isopleth.operators import Operator
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure
from isopleth.solvers import SCALING_SOLVERS, auto

GAMMA, GAMMA_PRIME, BETA, SIZE = 0.9, 0.3, 0.5, 400
SIZES = (3, 10, 30, 100, 200, 400, 800)
BETAS = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0)
SMALLEST = 40


def two_simplices(size: int, gamma: float, gamma_prime: float, beta: float) -> np.ndarray:
    """Return points between which the Gaussian kernel is the two-block matrix."""
    points = np.zeros((2 * size, 2 * size + 1))
    points[np.arange(size), np.arange(size)] = np.sqrt(-2.0 * np.log(gamma))
    points[np.arange(size, 2 * size), np.arange(size, 2 * size)] = np.sqrt(-2.0 * np.log(gamma_prime))
    points[size:, -1] = np.sqrt(-2.0 * np.log(beta))
    return points


def exact_ratio(size: int, gamma: float, gamma_prime: float) -> float:
    """Return SOSREP's ratio of densities, which does not depend on beta."""
    return (1.0 + (size - 1) * gamma**2) / (1.0 + (size - 1) * gamma_prime**2)


def ratios(size: int, gamma: float, gamma_prime: float, beta: float, solver: str = "auto") -> tuple[float, float]:
    """Return the ratio of the densities in the two blocks, by SOSREP (computed by a solver) and by KDE."""
    op = Operator(Gaussian(), two_simplices(size, gamma, gamma_prime, beta)).store()
    root = SCALING_SOLVERS[solver](op, np.full(2 * size, 0.5 / size), 1e-10).values
    kde = op.matvec(np.ones(2 * size))
    return float((root[0] / root[-1]) ** 2), float(kde[0] / kde[-1])


def print_blocks() -> tuple[np.ndarray, np.ndarray]:
    """Print the ratios against the size of the blocks and against beta."""
    limit = GAMMA**2 / GAMMA_PRIME**2
    print(f"two blocks, gamma = {GAMMA}, gamma' = {GAMMA_PRIME}: the papers' limit is {limit:.2f}")
    print(f"{'N':>6}{'beta':>7}{'SOSREP':>9}{'exact':>9}{'KDE':>7}")

    def line(size: int, beta: float) -> tuple[float, float]:
        sosrep, kde = ratios(size, GAMMA, GAMMA_PRIME, beta)
        print(f"{size:>6}{beta:>7}{sosrep:>9.4f}{exact_ratio(size, GAMMA, GAMMA_PRIME):>9.4f}{kde:>7.2f}", flush=True)
        return sosrep, kde

    return np.array([line(size, BETA) for size in SIZES]), np.array([line(SIZE, beta) for beta in BETAS])


def draw_blocks(by_size: np.ndarray, by_beta: np.ndarray, path: Path) -> None:
    """Draw both ratios against the size of the blocks and against beta."""
    figure = new_figure(9.0, 3.9)
    left, right = figure.subplots(1, 2, sharey=True)
    panels = (
        (left, SIZES, by_size, f"rows a block (beta = {BETA})"),
        (right, BETAS, by_beta, f"beta ({SIZE} rows a block)"),
    )
    for axes, x, values, label in panels:
        axes.axhline(GAMMA**2 / GAMMA_PRIME**2, color=GREY, linewidth=1, linestyle="--", label="limit of the papers")
        axes.plot(x, values[:, 0], "o-", color=BLUE, label="SOSREP")
        axes.plot(x, values[:, 1], "s-", color=VERMILLION, label="kernel density estimate")
        axes.set(xlabel=label, ylim=(0, 10))
        axes.spines[["top", "right"]].set_visible(False)
    left.set(xscale="log", ylabel="ratio of the two densities")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    save_figure(figure, path)


@dataclass(frozen=True)
class TwoClusters:
    """Kernel values within and between two clusters, and the log densities of their rows minus the mean in the first."""

    first: np.ndarray
    second: np.ndarray
    between: np.ndarray
    sosrep: tuple[np.ndarray, np.ndarray]
    kde: tuple[np.ndarray, np.ndarray]
    likeness: float


def gap(log_densities: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the difference of the mean log densities of the two clusters."""
    return float(np.mean(log_densities[0]) - np.mean(log_densities[1]))


def sdo(z: np.ndarray) -> SDO:
    """Return the papers' kernel for the rows `z`, with the smallest order."""
    return SDO(z.shape[1], order=z.shape[1] // 2 + 1)


def _pairs(k: np.ndarray) -> np.ndarray:
    return k[np.triu_indices(len(k), 1)]


def likeness(k: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of the variance of the kernel values that is between the three blocks."""
    blocks = [_pairs(k[np.ix_(one, one)]), _pairs(k[np.ix_(other, other)]), k[np.ix_(one, other)].ravel()]
    everything = np.concatenate(blocks)
    within = sum(len(block) * block.var() for block in blocks)
    return float(1.0 - within / (len(everything) * everything.var()))


def two_clusters(z: np.ndarray, k: np.ndarray, one: np.ndarray, other: np.ndarray) -> TwoClusters:
    """Fit densities to two clusters of the rows `z` with kernel matrix `k`; the one with the larger kernel values is first."""
    if _pairs(k[np.ix_(one, one)]).mean() < _pairs(k[np.ix_(other, other)]).mean():
        one, other = other, one
    rows = np.concatenate([one, other])
    root = auto(Operator(sdo(z), z[rows]).store(), np.full(len(rows), 1.0 / len(rows))).values
    kde = k[np.ix_(rows, rows)].sum(axis=1)
    if not (kde > 0).all():
        raise SystemExit(
            "the sum of SDO kernels is not positive at every row of the two clusters: there is no KDE here."
        )

    def split(log_density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_density = log_density - log_density[: len(one)].mean()
        return log_density[: len(one)], log_density[len(one) :]

    return TwoClusters(
        _pairs(k[np.ix_(one, one)]),
        _pairs(k[np.ix_(other, other)]),
        k[np.ix_(one, other)].ravel(),
        split(2.0 * np.log(root)),
        split(np.log(kde)),
        likeness(k, one, other),
    )


def all_pairs(z: np.ndarray, clusters: int) -> list[TwoClusters]:
    """Return all pairs of spectral clusters of the rows `z`, in units of the length scale, most similar to two blocks first."""
    k = Operator(sdo(z), z).dense()
    model = SpectralClustering(clusters, affinity="precomputed", random_state=0)
    labels = model.fit_predict(np.maximum(k, 0.0))  # an affinity has no negative values
    groups = [np.flatnonzero(labels == label) for label in range(clusters)]
    groups = [group for group in groups if len(group) >= SMALLEST]
    found = [two_clusters(z, k, one, other) for one, other in combinations(groups, 2)]
    return sorted(found, key=lambda pair: -pair.likeness)


def letter(folder: Path, clusters: int) -> TwoClusters:
    """Cluster the letter table and print the gaps of SOSREP and KDE."""
    path = find_table(folder, "letter")
    if path is None:
        sys.exit(missing("letter", folder))
    z = standardised(path, sys.maxsize, np.random.default_rng(0))
    pairs = all_pairs(z / typical_length(z), clusters)
    best = pairs[0]
    print(
        f"letter: {len(best.sosrep[0])} and {len(best.sosrep[1])} rows, mean kernel value {best.first.mean():.3f} and "
        f"{best.second.mean():.3f} within, {best.between.mean():.3f} between; blocks explain {best.likeness:.0%}\n"
        f"mean log density of the first cluster above that of the second: SOSREP {gap(best.sosrep):.3f}, "
        f"KDE {gap(best.kde):.3f}\n"
        f"the gap is the wider one under SOSREP in {sum(abs(gap(p.sosrep)) > abs(gap(p.kde)) for p in pairs)} "
        f"of all {len(pairs)} pairs of clusters"
    )
    return best


def _running_mean(values: np.ndarray, window: int = 15) -> np.ndarray:
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(len(values))
    low, high = np.maximum(ends - window // 2, 0), np.minimum(ends + window // 2 + 1, len(values))
    return (sums[high] - sums[low]) / (high - low)


def draw_letter(found: TwoClusters, path: Path) -> None:
    """Draw the kernel values of the three blocks and the log densities of both models by cluster."""
    figure = new_figure(10.0, 3.8)
    left, right = figure.subplots(1, 2)
    bins = np.linspace(min(found.between.min(), found.second.min()), 1.0, 60)
    blocks = (("within the first cluster", found.first, BLUE), ("within the second", found.second, VERMILLION))
    for label, values, color in (*blocks, ("between", found.between, GREY)):
        left.hist(values, bins, density=True, histtype="step", linewidth=1.6, color=color, label=label)
    left.set(xlabel="kernel value of a pair of rows", ylabel="density of pairs")
    left.legend(frameon=False)
    middle, end = len(found.sosrep[0]), len(found.sosrep[0]) + len(found.sosrep[1])
    for label, parts, color in (("SOSREP", found.sosrep, BLUE), ("kernel density estimate", found.kde, VERMILLION)):
        right.plot(np.arange(end), np.concatenate([_running_mean(part) for part in parts]), color=color, label=label)
    right.axvline(middle - 0.5, color=GREY, linewidth=1, linestyle="--")
    right.set(xlabel="rows, the first cluster and then the second", ylabel="log density, 0 = mean of the first")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the ratios and gaps, and save the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="figure of the two-block matrix")
    parser.add_argument("--data", type=Path, help="folder with ADBench's tables")
    parser.add_argument("--letter", type=Path, help="figure of the clusters of letter")
    parser.add_argument("--clusters", type=int, default=20, help="how many clusters letter is split into")
    options = parser.parse_args(arguments)
    for path in filter(None, (options.out, options.letter)):
        check_figure_target(path)
    by_size, by_beta = print_blocks()
    if options.out:
        draw_blocks(by_size, by_beta, options.out)
    if options.data:
        found = letter(options.data, options.clusters)
        if options.letter:
            draw_letter(found, options.letter)


if __name__ == "__main__":
    main()
