"""L2 distances of two normal densities: LSDD and the difference of kernel density estimates (paper, Fig. 1 to 3).

    python -m experiments.lsdd_l2 [--runs 100] [--seed 0] [--columns 1 5] [--means 0 0.2 ...] [--out FIGURE] [--pictures FIGURE]
    python -m experiments.lsdd_l2 --clusters [--runs 40] [--seed 0] [--centers 500]
    python -m experiments.lsdd_l2 --correlated [--runs 24] [--seed 100]

p and q are N((mu, 0, ..., 0), I/(4 pi)) and N(0, I/(4 pi)) in d columns, 200 rows of each. Their squared L2 distance is
2 (1 - exp(-pi mu^2)) for every d. Printed are, over the runs, mean, standard error and root mean squared error of LSDD's
estimates by name (`LSDD.squared_l2`) on its default grid, and of the difference of two kernel density estimates whose length
scales maximise the held-out likelihood; and how often the distance lies within `LSDD.squared_l2_interval` at 95 %, how often the
interval is below and above it, and the median width.

With --clusters both densities are mixtures of round normal densities around points on the first axis, 300 rows of each. Printed
are the root mean squared errors over the distance of LSDD, of `KDEDifference`, and of the distance between SciPy's kernel density
estimates (Scott's rule), and how often the intervals of LSDD hold the distance.

With --correlated both densities are normal with one correlation between all columns, and the first column is moved by 1.2 of
what the others leave open, 400 rows of each. Printed are, in the columns themselves and in balanced coordinates, the mean and the
root mean squared error of `squared_l2_` over the distance, how often the interval holds it, and the median width over it.

What the paper proposes is "combined", its equation (11), with a grid of its own that it does not state. On a wide grid (11) is
far too large where the search finds a small length scale; that is what the cross-fitted estimate is for.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import gaussian_kde

from isopleth import LSDD, DataWarning
from isopleth.difference import KDEDifference
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure

SIZE = 200
DIMENSIONS = (1, 5)
MEANS = (0.0, 0.2, 0.4, 0.6, 0.8)
KINDS = ("cross_fitted", "lower_bound", "combined", "corrected")
NAMES = (*KINDS, "KDE")


Mixture = list[tuple[float, float, float]]
NARROW_ROWS = 300
WIDE: Mixture = [(1.0, 0.0, 1.0)]
# Number of columns, and both mixtures: weight, place on the first axis and standard deviation of each part.
CLUSTERS: dict[str, tuple[int, Mixture, Mixture]] = {
    "shift, d = 1": (1, WIDE, [(1.0, 0.6, 1.0)]),
    "three clusters, d = 1": (
        1,
        [(0.4, -3.0, 0.2), (0.3, 0.0, 0.5), (0.3, 2.0, 0.1)],
        [(0.2, -3.0, 0.2), (0.3, 0.0, 0.5), (0.5, 2.0, 0.1)],
    ),
    "two narrow, d = 1": (1, [(0.6, -1.5, 0.03), (0.4, 1.5, 0.03)], [(0.35, -1.5, 0.03), (0.65, 1.5, 0.03)]),
    "spread, d = 2": (2, WIDE, [(1.0, 0.0, 0.7)]),
    "clusters, d = 2": (2, [(0.5, -3.0, 0.3), (0.5, 3.0, 0.3)], [(0.5, -3.0, 0.3), (0.5, 3.0, 0.5)]),
    "two narrow, d = 3": (3, [(0.6, -2.0, 0.12), (0.4, 2.0, 0.12)], [(0.4, -2.0, 0.12), (0.6, 2.0, 0.12)]),
    "narrow in wide, d = 3": (3, [(0.9, 0.0, 1.0), (0.1, 2.0, 0.15)], [(0.7, 0.0, 1.0), (0.3, 2.0, 0.15)]),
    "narrow in wide, d = 5": (5, WIDE, [(0.85, 0.0, 1.0), (0.15, 1.5, 0.2)]),
}


def draw_mixture(law: Mixture, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a sample of a mixture."""
    weights, places, deviations = np.array(law).T
    part = rng.choice(len(law), NARROW_ROWS, p=weights)
    x = rng.normal(size=(NARROW_ROWS, dim)) * deviations[part, None]
    x[:, 0] += places[part]
    return x


def mixture_distance(one: Mixture, other: Mixture, dim: int) -> float:
    """Return the squared L2 distance of two mixtures."""
    weights, places, deviations = np.array([*one, *other]).T
    weights = np.where(np.arange(len(weights)) < len(one), weights, -weights)
    variance = deviations[:, None] ** 2 + deviations**2
    inner = np.exp(-0.5 * (places[:, None] - places) ** 2 / variance) / (2.0 * np.pi * variance) ** (dim / 2.0)
    return float(weights @ inner @ weights)


def of_clusters(task: tuple[str, int, int]) -> list[float]:
    """Return the estimates of one run, and the ends of the interval."""
    name, seed, centers = task
    dim, *laws = CLUSTERS[name]
    rng = np.random.default_rng([seed, list(CLUSTERS).index(name)])
    x, y = (draw_mixture(law, dim, rng) for law in laws)
    fitted = LSDD(centers=centers, random_state=seed, n_jobs=1).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DataWarning
        )  # the grid of KDE ends above the best scale of the narrowest clusters
        baseline = KDEDifference(n_jobs=1).fit(x, y).squared_l2_
    p, q = gaussian_kde(x.T), gaussian_kde(y.T)
    plug_in = p.integrate_kde(p) - 2.0 * p.integrate_kde(q) + q.integrate_kde(q)
    return [fitted.squared_l2_, baseline, plug_in, *fitted.squared_l2_interval()]


def study_clusters(runs: int, jobs: int, seed: int, centers: int) -> None:
    """Print a line for each pair of mixtures, and the means."""
    print(f"{'':<24}{'distance':>9}{'LSDD':>8}{'KDE':>8}{'SciPy':>8}{'holds':>8}{'below':>8}{'above':>8}", flush=True)
    means = []
    with ProcessPoolExecutor(jobs) as pool:
        for name, (dim, *laws) in CLUSTERS.items():
            true = mixture_distance(*laws, dim)
            found = np.array(list(pool.map(of_clusters, [(name, seed + run, centers) for run in range(runs)])))
            errors = np.sqrt(np.mean((found[:, :3] / true - 1.0) ** 2, axis=0))
            below, above = np.mean(found[:, 4] < true), np.mean(found[:, 3] > true)
            means.append([*errors, 1.0 - below - above, below, above])
            print(f"{name:<24}{true:>9.4f}" + "".join(f"{value:>8.3f}" for value in means[-1]), flush=True)
    print(f"{'mean':<33}" + "".join(f"{value:>8.3f}" for value in np.mean(means, axis=0)), flush=True)


def true_distance(mu: float) -> float:
    """Return the squared L2 distance, which does not depend on the number of columns."""
    return float(2.0 * (1.0 - np.exp(-np.pi * mu**2)))


def draw(mu: float, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples of both densities."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(scale=(4.0 * np.pi) ** -0.5, size=(2, SIZE, dim))
    x[:, 0] += mu
    return x, y


CORRELATED = ((2, 0.9), (3, 0.95), (5, 0.95), (3, 0.5), (3, 0.0), (5, 0.0))
CORRELATED_ROWS, MOVED = 400, 1.2


def of_correlated(task: tuple[int, float, str, int]) -> list[float]:
    """Return the estimate and the interval of one run, over the distance."""
    dim, rho, frame, seed = task
    rng = np.random.default_rng(seed)
    correlation = np.full((dim, dim), rho) + (1.0 - rho) * np.eye(dim)
    x, y = rng.normal(size=(2, CORRELATED_ROWS, dim)) @ np.linalg.cholesky(correlation).T
    x[:, 0] += MOVED / np.sqrt(np.linalg.inv(correlation)[0, 0])
    height = (4.0 * np.pi) ** (-0.5 * dim) / np.sqrt(np.linalg.det(correlation))
    true = 2.0 * height * (1.0 - np.exp(-0.25 * MOVED**2))
    fitted = LSDD(frame=frame, random_state=seed, n_jobs=1).fit(x, y)
    return [value / true for value in (fitted.squared_l2_, *fitted.squared_l2_interval())]


def study_correlated(runs: int, jobs: int, seed: int) -> None:
    """Print estimates and intervals of correlated normal densities in both frames."""
    print(f"{'d':>3}{'correlation':>13}{'frame':>10}{'mean':>7}{'error':>7}{'held':>6}{'width':>7}")
    with ProcessPoolExecutor(jobs) as pool:
        for dim, rho in CORRELATED:
            for frame in ("scale", "balanced"):
                tasks = [(dim, rho, frame, seed + run) for run in range(runs)]
                value, low, high = np.array(list(pool.map(of_correlated, tasks))).T
                error, held = np.sqrt(np.mean((value - 1.0) ** 2)), np.mean((low <= 1.0) & (high >= 1.0))
                cells = f"{value.mean():>7.2f}{error:>7.2f}{held:>6.2f}{np.median(high - low):>7.2f}"
                print(f"{dim:>3}{rho:>13}{frame:>10}{cells}", flush=True)


def estimates(task: tuple[float, int, int]) -> list[float]:
    """Return all estimates of one run."""
    mu, dim, seed = task
    x, y = draw(mu, dim, seed)
    fitted = LSDD(random_state=seed, n_jobs=1).fit(x, y)
    baseline = KDEDifference(n_jobs=1).fit(x, y).squared_l2_
    return [*(fitted.squared_l2(kind) for kind in KINDS), baseline, *fitted.squared_l2_interval()]


def interval_line(ends: np.ndarray, true: float) -> str:
    """Return the shares of intervals that contain the truth, lie below and above it, and the median width."""
    low, high = ends.T
    held = np.mean((low <= true) & (true <= high))
    return f"{held:.2f} {np.mean(high < true):.2f} {np.mean(low > true):.2f} {np.median(high - low):.3f}"


def study(
    runs: int, jobs: int, seed: int, columns: Sequence[int], means: Sequence[float]
) -> dict[tuple[int, float], np.ndarray]:
    """Return estimates and ends of intervals by dimension and mean, of shape (runs, 7); print them as they are computed."""
    out = {}
    with ProcessPoolExecutor(jobs) as pool:
        for dim in columns:
            heads = "".join(f"{name:>25}" for name in (*NAMES, "held below above width"))
            print(f"d = {dim}\n{'mu':>5}{'true':>7}{heads}", flush=True)
            for mu in means:
                found = np.array(list(pool.map(estimates, [(mu, dim, seed + run) for run in range(runs)])))
                out[dim, mu] = found
                true = true_distance(mu)
                cells = (
                    f"{c.mean():.3f}+-{c.std() / np.sqrt(len(c)):.3f} ({np.sqrt(np.mean((c - true) ** 2)):.3f})"
                    for c in found[:, : len(NAMES)].T
                )
                line = "".join(f"{cell:>25}" for cell in (*cells, interval_line(found[:, len(NAMES) :], true)))
                print(f"{mu:>5}{true:>7.3f}{line}", flush=True)
    return out


def draw_estimates(found: dict[tuple[int, float], np.ndarray], path: Path) -> None:
    """Draw means and standard errors against mu, as in the paper's Fig. 3."""
    figure = new_figure(9.0, 3.9)
    dims, means = sorted({dim for dim, _ in found}), sorted({mu for _, mu in found})
    panels = figure.subplots(1, len(dims), sharey=True, squeeze=False)[0]
    mu = np.linspace(0.0, max(means), 100)
    for axes, dim in zip(panels, dims, strict=True):
        axes.plot(mu, [true_distance(m) for m in mu], color=GREY, linestyle="--", label="true")
        for name, color, style in (("cross_fitted", BLUE, "o-"), ("combined", BLUE, "o:"), ("KDE", VERMILLION, "s-")):
            columns = np.array([found[dim, m][:, NAMES.index(name)] for m in means])
            error = columns.std(axis=1) / np.sqrt(columns.shape[1])
            label = name if name == "KDE" else f"LSDD, {name}"
            axes.errorbar(means, columns.mean(axis=1), error, fmt=style, color=color, label=label)
        axes.set(xlabel="mu", title=f"d = {dim}", ylim=(-0.1, 2.5))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("squared L2 distance")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    save_figure(figure, path)


def draw_pictures(path: Path) -> None:
    """Draw one sample in one column for mu = 0 and 0.5: the true difference, LSDD's with its bands, and that of the KDEs."""
    figure = new_figure(9.0, 3.9)
    grid = np.linspace(-1.2, 1.7, 400)[:, None]
    for axes, mu in zip(figure.subplots(1, 2, sharey=True), (0.0, 0.5), strict=True):
        x, y = draw(mu, 1, 0)
        bells = [np.sqrt(2.0) * np.exp(-2.0 * np.pi * (grid[:, 0] - centre) ** 2) for centre in (mu, 0.0)]
        fitted = LSDD(random_state=0).fit(x, y)
        value, error = fitted.difference(grid), fitted.difference_std(grid)
        axes.plot(grid[:, 0], bells[0] - bells[1], color=GREY, linestyle="--", label="true")
        axes.plot(grid[:, 0], value, color=BLUE, label="LSDD")
        axes.fill_between(grid[:, 0], value - 1.96 * error, value + 1.96 * error, color=BLUE, alpha=0.15, linewidth=0)
        axes.plot(grid[:, 0], KDEDifference().fit(x, y).difference(grid), color=VERMILLION, label="difference of KDEs")
        axes.set(xlabel="x", title=f"mu = {mu}")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("p - q")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the estimates and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", action="store_true", help="mixtures of clusters instead")
    parser.add_argument("--correlated", action="store_true", help="correlated normal densities instead")
    parser.add_argument("--centers", type=int, default=500, help="centres of LSDD for clusters")
    parser.add_argument(
        "--runs", type=int, default=100, help="samples for each mean and dimension, or pair of mixtures"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the others follow")
    parser.add_argument("--columns", type=int, nargs="+", default=DIMENSIONS, help="numbers of columns")
    parser.add_argument("--means", type=float, nargs="+", default=MEANS, help="values of mu")
    parser.add_argument("--out", type=Path, help="figure of the estimates")
    parser.add_argument("--pictures", type=Path, help="figure of differences in one column")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(arguments)
    if options.clusters:
        study_clusters(options.runs, options.jobs, options.seed, options.centers)
        return
    if options.correlated:
        study_correlated(options.runs, options.jobs, options.seed)
        return
    for path in filter(None, (options.out, options.pictures)):
        check_figure_target(path)
    if options.pictures:
        draw_pictures(options.pictures)
    found = study(options.runs, options.jobs, options.seed, options.columns, options.means)
    if options.out:
        draw_estimates(found, options.out)


if __name__ == "__main__":
    main()
