"""Power of the two-sample test in six published settings, and against made-up differences of other kinds.

    python -m experiments.two_sample_power --p-values FILE [--data DIR] [--runs 200] [--only NAME ...] [--quick] [--others]
        [--jobs N] [--out FILE]

The file holds the p-values of every run. A command that was interrupted, or is given more runs, adds the missing ones.

The published settings are those of MMD-FUSE (Biggs, Schrab and Gretton, 2023): a uniform law against one with 2 bumps a column
whose signs are drawn anew in each run, amplitude .3 and .4 in one column, .6 and .8 in two; and a mixture of four normals in
two columns, 40 apart, one of which has standard deviation .7 or 1.6 in the second sample. n = n' = 500, level .05. With --data
the folder `power` of that folder has the published shares of rejections over 200 runs (perturbations_vary_dif_d1.npy and so
on: row 0 is MMD-FUSE, row 3 MMDAgg). The bar is the better of the two less .02 and less its standard error.

"no products" is the test without the statistic of products and cubes, on the same permutations. Eight settings are those in
which the test was compared with MMD-FUSE before; the last line is their mean.

--others runs hyppo's MMD (its defaults) and, in one column, SciPy's energy distance with 199 permutations on the same samples.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.special import ndtr
from sklearn.datasets import load_digits

from experiments.resumed import resumed
from isopleth import two_sample_test
from isopleth.core.p_values import permutation_pvalue

ALPHA = 0.05
FIELDS = ["setting", "run", "this test", "no products", "hyppo MMD", "energy"]
HEADS = ("runs", *FIELDS[2:], "MMD-FUSE", "MMDAgg", "bar")
FUSE, AGG = 0, 3
Pair = tuple[np.ndarray, np.ndarray]


def bump(x: np.ndarray) -> np.ndarray:
    """A smooth wave on (-1, 0): up on the first half, down on the second."""
    out = np.zeros_like(x)
    for centre, sign in ((-0.75, 1.0), (-0.25, -1.0)):
        inside = np.abs(x - centre) < 0.25
        out[inside] = sign * np.exp(-1.0 / (1.0 - (4.0 * (x[inside] - centre)) ** 2))
    return out


def perturbed(rng: np.random.Generator, dim: int, amplitude: float, n: int = 500) -> Pair:
    """Bumps of random signs on a uniform law, by rejection, against the uniform law."""
    signs = rng.choice([-1.0, 1.0], (2,) * dim)
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < n:
        x = rng.random((4 * n, dim))
        density = np.ones(len(x))
        for cell in itertools.product(range(2), repeat=dim):
            density += amplitude * np.exp(dim) * signs[cell] * bump(2.0 * x - np.array(cell) - 1.0).prod(axis=1)
        kept.append(x[rng.random(len(x)) * (1.0 + amplitude) <= density])
    return np.concatenate(kept)[:n], rng.random((n, dim))


def mixture(rng: np.random.Generator, deviation: float, n: int = 500) -> Pair:
    """Four normals of which the last has another standard deviation in the second sample."""
    means = 20.0 * np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
    samples = []
    for last in (1.0, deviation):
        part = rng.integers(0, 4, n)
        samples.append(means[part] + rng.normal(size=(n, 2)) * np.where(part == 3, last, 1.0)[:, None])
    return samples[0], samples[1]


def normal_and(
    other: Callable[[np.random.Generator, int, int], np.ndarray], n: int, m: int, dim: int
) -> Callable[[np.random.Generator], Pair]:
    """A standard normal sample, and one of another law."""
    return lambda rng: (rng.normal(size=(n, dim)), other(rng, m, dim))


def first(dim: int) -> np.ndarray:
    """1 in the first column."""
    return np.eye(dim)[0]


def dependent(rng: np.random.Generator, n: int, dim: int, correlation: float) -> np.ndarray:
    """Normal with one correlation between all columns."""
    covariance = np.full((dim, dim), correlation)
    np.fill_diagonal(covariance, 1.0)
    return rng.normal(size=(n, dim)) @ np.linalg.cholesky(covariance).T


def blobs(rng: np.random.Generator, n: int = 500, correlation: float = 0.62) -> Pair:
    """Nine clusters on a grid, 10 apart: round ones, and correlated ones."""
    samples = []
    for rho in (0.0, correlation):
        centers = 10.0 * np.stack(np.unravel_index(rng.integers(0, 9, n), (3, 3)), axis=1)
        samples.append(centers + dependent(rng, n, 2, rho))
    return samples[0], samples[1]


def counts(rng: np.random.Generator, n: int = 300, dim: int = 10) -> Pair:
    """Poisson counts of mean 1, and one column with twice the variance, negative binomial."""
    x, y = rng.poisson(1.0, (2, n, dim)).astype(float)
    y[:, 0] = rng.negative_binomial(1, 0.5, n)
    return x, y


def decays(rng: np.random.Generator, n: int = 300, share: float = 0.5) -> Pair:
    """Momenta and angles of pairs of particles; a share of the second sample comes from one mass."""
    samples = []
    for resonant in (0.0, share):
        mass = np.where(rng.random(n) < resonant, rng.normal(3.0, 0.25, n), 1.0 + rng.exponential(1.5, n))
        rapidity, gap = rng.normal(size=n), np.abs(rng.logistic(0.0, 0.8, n))
        one, angle = 0.5 + rng.exponential(1.2, n), rng.uniform(-np.pi, np.pi, n)
        other = np.minimum(mass**2 / (2.0 * one * (np.cosh(gap) - np.cos(angle) + 0.3)), 50.0)
        samples.append(np.stack([np.log(one), np.log(other), rapidity, gap, angle], axis=1))
    return samples[0], samples[1]


def copulas(rng: np.random.Generator, n: int = 250) -> Pair:
    """Two uniform columns of Kendall's correlation .5: normal dependence, and Clayton's, which ties small values closer."""
    normal = dependent(rng, n, 2, float(np.sin(np.pi / 4.0)))
    clayton = (1.0 + rng.exponential(size=(n, 2)) / rng.gamma(0.5, size=(n, 1))) ** -0.5
    return ndtr(normal), clayton


def two_clusters(rng: np.random.Generator, n: int = 500, dim: int = 5) -> Pair:
    """Two normal clusters, of which two columns are correlated in the second sample, in opposite directions (HDGM)."""
    samples = []
    for correlation in (0.0, 0.5):
        cluster = rng.integers(0, 2, n)
        z = rng.normal(size=(n, dim))
        r = np.where(cluster == 0, correlation, -correlation)
        z[:, 1] = r * z[:, 0] + np.sqrt(1.0 - r**2) * z[:, 1]
        samples.append(z + 2.0 * cluster[:, None])
    return samples[0], samples[1]


def overdispersed(rng: np.random.Generator, n: int = 200, dim: int = 5) -> Pair:
    """Counts of mean 3: Poisson, and negative binomial of twice the variance."""
    return rng.poisson(3.0, (n, dim)).astype(float), rng.negative_binomial(3, 0.5, (n, dim)).astype(float)


def related_pair(rng: np.random.Generator, n: int = 100, dim: int = 3, correlation: float = 0.5) -> Pair:
    """Normal columns, of which the first two are correlated in the second sample."""
    x, y = rng.normal(size=(2, n, dim))
    y[:, 1] = correlation * y[:, 0] + np.sqrt(1.0 - correlation**2) * y[:, 1]
    return x, y


def mixed_digits(rng: np.random.Generator, n: int = 120, share: float = 0.3) -> Pair:
    """Images of 64 pixels: all digits, and the same with a share replaced by zeros and ones."""
    images, classes = load_digits(return_X_y=True)
    x, y = images[rng.choice(len(images), 2 * n, replace=False)].reshape(2, n, -1)
    few = np.flatnonzero(classes < 2)
    replaced = rng.random(n) < share
    y[replaced] = images[rng.choice(few, int(replaced.sum()))]
    return x, y


@cache
def _images(path: Path) -> dict[int, np.ndarray]:
    with np.load(path) as file:
        images, classes = file["x_train"], file["y_train"]
    return {digit: images[classes == digit].reshape(-1, 784).astype(float) for digit in (3, 5)}


def digits(rng: np.random.Generator, path: Path, n: int = 200, share: float = 0.25) -> Pair:
    """Images of a 3, and the same with a share of fives."""
    images = _images(path)
    x, y = images[3][rng.choice(len(images[3]), 2 * n, replace=False)].reshape(2, n, -1)
    fives = int(rng.binomial(n, share))
    y[:fives] = images[5][rng.choice(len(images[5]), fives, replace=False)]
    return x, y


PUBLISHED: dict[str, tuple[Callable[[np.random.Generator], Pair], str, float]] = {
    "bumps, d = 1, .3": (lambda rng: perturbed(rng, 1, 0.3), "perturbations_vary_dif_d1", 0.3),
    "bumps, d = 1, .4": (lambda rng: perturbed(rng, 1, 0.4), "perturbations_vary_dif_d1", 0.4),
    "bumps, d = 2, .6": (lambda rng: perturbed(rng, 2, 0.6), "perturbations_vary_dif_d2", 0.6),
    "bumps, d = 2, .8": (lambda rng: perturbed(rng, 2, 0.8), "perturbations_vary_dif_d2", 0.8),
    "mixture, .7": (lambda rng: mixture(rng, 0.7), "mixture_vary_dif", 0.7),
    "mixture, 1.6": (lambda rng: mixture(rng, 1.6), "mixture_vary_dif", 1.6),
}
MADE_UP: dict[str, Callable[[np.random.Generator], Pair]] = {
    "mean, d = 1": normal_and(lambda rng, n, d: rng.normal(0.35, 1.0, (n, d)), 100, 100, 1),
    "spread, d = 1": normal_and(lambda rng, n, d: rng.normal(0.0, 1.4, (n, d)), 100, 100, 1),
    "tails (t3), d = 1": normal_and(lambda rng, n, d: rng.standard_t(3, (n, d)) / 1.3, 300, 300, 1),
    "mean of 1 of 10": normal_and(lambda rng, n, d: rng.normal(size=(n, d)) + 0.5 * first(d), 100, 100, 10),
    "mean of all 10": normal_and(lambda rng, n, d: rng.normal(0.16, 1.0, (n, d)), 100, 100, 10),
    "spread of 1 of 10": normal_and(lambda rng, n, d: rng.normal(size=(n, d)) * (1 + 0.8 * first(d)), 100, 100, 10),
    "spread of all 10": normal_and(lambda rng, n, d: rng.normal(0.0, 1.12, (n, d)), 100, 100, 10),
    "correlation .3, d = 5": normal_and(lambda rng, n, d: dependent(rng, n, d, 0.3), 200, 200, 5),
    "mean of 1 of 20, 30 v 200": normal_and(lambda rng, n, d: rng.normal(size=(n, d)) + 0.9 * first(d), 30, 200, 20),
    "tails (t5), d = 20": normal_and(lambda rng, n, d: rng.standard_t(5, (n, d)) / (5 / 3) ** 0.5, 200, 200, 20),
}
OTHERS: dict[str, Callable[[np.random.Generator], Pair]] = {
    "mean of 1 of 100": normal_and(lambda rng, n, d: rng.normal(size=(n, d)) + first(d), 100, 100, 100),
    "blobs": blobs,
    "counts": counts,
    "correlation .38, d = 5": normal_and(lambda rng, n, d: dependent(rng, n, d, 0.38), 200, 200, 5),
    "tails (t3), d = 10": normal_and(lambda rng, n, d: rng.standard_t(3, (n, d)) / 3**0.5, 200, 200, 10),
    "decays": decays,
}
EIGHT: dict[str, Callable[[np.random.Generator], Pair]] = {
    "Poisson v negative binomial": overdispersed,
    "mean of 1 of 100, .65": normal_and(lambda rng, n, d: rng.normal(size=(n, d)) + 0.65 * first(d), 100, 100, 100),
    "spread of 1 of 5, 1.4": normal_and(lambda rng, n, d: rng.normal(size=(n, d)) * (1 + 0.4 * first(d)), 120, 120, 5),
    "digits of 8 x 8, .3": mixed_digits,
    "skew (gamma), d = 3": normal_and(lambda rng, n, d: (rng.gamma(2.0, size=(n, d)) - 2.0) / 2.0**0.5, 100, 100, 3),
    "copulas, d = 2": copulas,
    "correlation .5 of a pair": related_pair,
    "two clusters (HDGM)": two_clusters,
}
SETTINGS = {name: draw for name, (draw, _, _) in PUBLISHED.items()} | OTHERS | EIGHT | MADE_UP
DIGITS = "digits"


def p_values(task: tuple[str, int, bool], data: Path | None) -> list[float]:
    """Return p-values of the test with and without products, and of the peers where asked for; NaN where there is none."""
    name, run, others = task
    rng = np.random.default_rng([run, sum(map(ord, name))])
    x, y = digits(rng, require_digits(data)) if name == DIGITS else SETTINGS[name](rng)
    found = two_sample_test(x, y, n_jobs=1, random_state=run)
    fewer = permutation_pvalue(found.problem.scores[:-1].max(axis=0))
    return [found.pvalue, fewer, *(peers(x, y, run) if others else [np.nan, np.nan])]


def require_digits(data: Path | None) -> Path:
    """Return the file with the images."""
    path = (data or Path()) / "mnist" / "mnist.npz"
    if data is None or not path.exists():
        raise SystemExit(
            f"{path} is missing; it holds the 70,000 digits of MNIST as x_train, y_train, x_test and y_test."
        )
    return path


def peers(x: np.ndarray, y: np.ndarray, run: int) -> list[float]:
    """hyppo's MMD and SciPy's energy distance."""
    from hyppo.ksample import MMD
    from scipy.stats import energy_distance

    mmd = float(MMD().test(x, y)[1])
    if x.shape[1] > 1:
        return [mmd, np.nan]
    rng = np.random.default_rng(run)
    z, n = np.concatenate([x, y])[:, 0], len(x)
    orders = [np.arange(len(z)), *(rng.permutation(len(z)) for _ in range(199))]
    distances = np.array([energy_distance(z[order[:n]], z[order[n:]]) for order in orders])
    return [mmd, float((distances >= distances[0] * (1 - 1e-9)).mean())]


def published(data: Path | None, name: str) -> tuple[float, float]:
    """Shares of rejections of MMD-FUSE and MMDAgg; NaN without data."""
    if data is None or name not in PUBLISHED:
        return np.nan, np.nan
    _, file, x = PUBLISHED[name]
    paths = [data / "power" / f"{file}{end}.npy" for end in ("", "_x_axis")]
    for path in paths:
        if not path.exists():
            raise SystemExit(
                f"{path} is missing; it is {path.name} of the results of github.com/antoninschrab/mmdfuse-paper."
            )
    table, axis = map(np.load, paths)
    place = int(np.argmin(np.abs(axis - x)))
    return float(table[FUSE, place]), float(table[AGG, place])


def bar(better: float) -> float:
    """Return the power to reach."""
    return better - 0.02 - float(np.sqrt(better * (1.0 - better) / 200.0))


def table(found: dict[str, np.ndarray], data: Path | None) -> Iterator[str]:
    """Yield a line a setting from the p-values of its runs, of shape (runs, 4)."""
    yield f"{'setting':<28}" + "".join(f"{head:>11}" for head in HEADS)
    powers = {}
    for name, values in found.items():
        power = np.where(np.isnan(values), np.nan, values <= ALPHA).mean(axis=0)
        known = published(data, name)
        powers[name] = power
        cells = "".join(f"{'-' if np.isnan(c) else format(c, '.3f'):>11}" for c in [*power, *known, bar(max(known))])
        yield f"{name:<28}{len(values):>11,}{cells}"
    if set(EIGHT) <= set(powers):
        mean = np.mean([powers[name][:2] for name in EIGHT], axis=0)
        yield f"{'mean of the eight':<39}{mean[0]:>11.3f}{mean[1]:>11.3f}"


def read(path: Path, names: list[str], runs: int) -> dict[str, np.ndarray]:
    """Return the p-values in a file by setting, for settings of which there are any."""
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            if line["setting"] in found and int(line["run"]) < runs:
                found[line["setting"]].append([float(line[field]) for field in FIELDS[2:]])
    return {name: np.array(values) for name, values in found.items() if values}


def main(arguments: list[str] | None = None) -> None:
    """Add the missing runs to the file of p-values and print a line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with power/*.npy, the published rejections")
    parser.add_argument("--runs", type=int, default=200, help="pairs of samples a setting")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these settings only")
    parser.add_argument("--quick", action="store_true", help="5 runs")
    parser.add_argument("--others", action="store_true", help="run hyppo's MMD and SciPy's energy distance too")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--p-values", type=Path, required=True, help="file of p-values, to which missing runs are added"
    )
    parser.add_argument("--out", type=Path, help="write the table of all settings in the file of p-values here")
    options = parser.parse_args(arguments)
    runs = 5 if options.quick else options.runs
    names = [*SETTINGS, *([DIGITS] if options.data else [])]
    asked = [name for name in names if not options.only or name in options.only]
    with (
        ProcessPoolExecutor(options.jobs) as pool,
        resumed(options.p_values, FIELDS, 2) as (finished, add),
    ):
        for name in asked:
            todo = [run for run in range(runs) if (name, str(run)) not in finished]
            tasks = [(name, run, options.others) for run in todo]
            values = pool.map(partial(p_values, data=options.data), tasks, chunksize=5)
            for run, value in zip(todo, values, strict=True):
                add([[name, run, *value]])
            print("\n".join(table(read(options.p_values, [name], runs), options.data)), file=sys.stderr, flush=True)
    lines = [f"power at level {ALPHA}", *table(read(options.p_values, names, runs), options.data)]
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
