"""Coverage of the limit law of a density difference: its bands, and the intervals of the squared L2 distance.

    python -m experiments.lsdd_limit_law [--runs 200] [--size 200] [--seed 0] [--only bands]
        [--columns 1 5] [--means 0 0.4 ...] [--quick]

p and q are N((mu, 0, ..., 0), I/(4 pi)) and N(0, I/(4 pi)) in d columns, whose squared L2 distance is 2 (1 - exp(-pi mu^2)).

Bands, `LSDD.difference_std` at 95 %, are looked at in 50 places drawn from either density: how often, over runs and places, they
hold the expectation of the fit at its centres, length scale and ridge (which is in closed form), and how often p - q itself. This
with length scale and ridge given, and with both chosen by the default search among the same rows.

Intervals are those of `LSDD.squared_l2_interval`, on the default grids: how often they hold the distance, and lie below and above
it. There are 100 centres throughout.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from isopleth import LSDD

CENTERS = 100
PLACES = 50
DEVIATION = (4.0 * np.pi) ** -0.5
GIVEN = {"length_scale": 1.5 * DEVIATION, "alpha": 1.0}


def draw(mu: float, dim: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples of both densities."""
    x, y = rng.normal(scale=DEVIATION, size=(2, size, dim))
    x[:, 0] += mu
    return x, y


def bells(at: np.ndarray, mu: float, variance: float) -> np.ndarray:
    """Return the difference of two normal curves of height 1 at some points."""
    squares = (at**2).sum(axis=1)
    shifted = squares - 2.0 * mu * at[:, 0] + mu**2
    return np.asarray(np.exp(-0.5 * shifted / variance) - np.exp(-0.5 * squares / variance))


def expected_difference(model: LSDD, mu: float, at: np.ndarray) -> np.ndarray:
    """Return the expectation of the fit at its centres, length scale and ridge."""
    scale, centers, dim = float(model.length_scale_[0]), model.centers_, at.shape[1]
    wide = scale**2 + DEVIATION**2
    h = (scale**2 / wide) ** (dim / 2.0) * bells(centers, mu, wide)
    gaps = ((centers[:, None] - centers[None]) ** 2).sum(axis=-1) / scale**2
    theta = np.linalg.solve(np.exp(-0.25 * gaps) + model.alpha_ * np.eye(len(centers)), h)
    near = np.exp(-0.5 * ((at[:, None] - centers[None]) ** 2).sum(axis=-1) / scale**2)
    return np.asarray(near @ theta / np.exp(model.log_volume_))


def band_coverage(mu: float, dim: int, size: int, runs: int, seed: int, chosen: bool) -> tuple[float, float]:
    """Return the shares of places whose band contains the expectation of the fit, and p - q."""
    held = np.zeros(2)
    for run in range(runs):
        rng = np.random.default_rng([seed, run, dim])
        x, y = draw(mu, dim, size, rng)
        at = np.concatenate(draw(mu, dim, PLACES // 2, rng))
        model = LSDD(centers=CENTERS, random_state=run, n_jobs=1, **({} if chosen else GIVEN)).fit(x, y)
        if not chosen:  # centres that are not rows, as the law has it
            model.set_params(centers=np.concatenate(draw(mu, dim, CENTERS // 2, rng))).fit(x, y)
        off = np.array([expected_difference(model, mu, at), bells(at, mu, DEVIATION**2) * 2.0 ** (dim / 2.0)])
        held += np.mean(np.abs(off - model.difference(at)) <= 1.96 * model.difference_std(at), axis=1)
    return float(held[0] / runs), float(held[1] / runs)


def interval_coverage(mu: float, dim: int, size: int, runs: int, seed: int) -> tuple[float, float, float, float]:
    """Return the shares of intervals that contain the distance, lie below and above it, and their median width."""
    ends = np.empty((runs, 2))
    for run in range(runs):
        x, y = draw(mu, dim, size, np.random.default_rng([seed, run, dim]))
        ends[run] = LSDD(centers=CENTERS, random_state=run, n_jobs=1).fit(x, y).squared_l2_interval()
    true = 2.0 * (1.0 - np.exp(-np.pi * mu**2))
    below, above = float(np.mean(ends[:, 1] < true)), float(np.mean(ends[:, 0] > true))
    return 1.0 - below - above, below, above, float(np.median(ends[:, 1] - ends[:, 0]))


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="samples for each line")
    parser.add_argument("--size", type=int, default=200, help="rows of each sample")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    parser.add_argument("--only", choices=("bands", "intervals"), help="one of the tables")
    parser.add_argument("--columns", type=int, nargs="+", default=(1, 5), help="numbers of columns")
    parser.add_argument(
        "--means", type=float, nargs="+", default=(0.0, 0.05, 0.1, 0.2, 0.4, 0.8), help="mu of the intervals"
    )
    parser.add_argument("--quick", action="store_true", help="two means and one column only")
    options = parser.parse_args(arguments)
    dims = (1,) if options.quick else options.columns
    means = (0.0, 0.4) if options.quick else options.means
    if options.only != "intervals":
        print_bands(dims, options)
    if options.only != "bands":
        print_intervals(dims, means, options)


def print_bands(dims: Sequence[int], options: argparse.Namespace) -> None:
    """Print a line for each distribution and way to choose."""
    print(f"{'d':>3}{'mu':>6}  {'length scale, ridge':<20}{'holds E g':>11}{'holds p - q':>13}", flush=True)
    for dim in dims:
        for mu in (0.0, 0.4):
            for chosen in (False, True):
                shares = band_coverage(mu, dim, options.size, options.runs, options.seed, chosen)
                name = "chosen" if chosen else "given"
                print(f"{dim:>3}{mu:>6}  {name:<20}{shares[0]:>11.3f}{shares[1]:>13.3f}", flush=True)


def print_intervals(dims: Sequence[int], means: Sequence[float], options: argparse.Namespace) -> None:
    """Print a line for each distribution."""
    print(f"{'d':>3}{'mu':>6}{'distance':>10}{'holds it':>10}{'below':>8}{'above':>8}{'width':>8}", flush=True)
    for dim in dims:
        for mu in means:
            held, below, above, width = interval_coverage(mu, dim, options.size, options.runs, options.seed)
            true = 2.0 * (1.0 - np.exp(-np.pi * mu**2))
            print(f"{dim:>3}{mu:>6}{true:>10.3f}{held:>10.3f}{below:>8.3f}{above:>8.3f}{width:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
