"""Do gradient steps keep f positive? The natural gradient and the standard one (Fig. 3 of the papers).

    python -m experiments.negative_values --data DIR [--out FIGURE] [--initialisations 50] [--steps 1000] [--rows 500]
        [--rates 0.001 0.01] [--scale 1]

DIR holds ADBench's tables, in any folder below it. For each of the paper's fifteen that is there, both iterations run from the
same random coefficients, alpha_i = |N(0, 1)|, and the share of rows with f < 0 is taken at the start and in the end; given is,
as in the paper, the mean over the worst tenth of the initialisations (five of fifty).

The iterations are the published ones, with no safeguard:

    natural        alpha <- alpha - 2 rate (alpha - 1/(N K alpha))                 eq. 7
    standard       alpha <- alpha - 2 rate (K alpha - K (1/(K alpha))/N)           eq. 7
    algorithm 4    alpha <- alpha - 2 rate (K alpha - K (1/(K alpha)))/N           Algorithm 4

The last is the standard gradient too, for a root sqrt(N) times larger and with steps N times shorter. That makes the difference:
the objective is infinite where f = 0 at a row, so short steps along either gradient cannot cross it, and long ones do. What the
natural gradient has ahead is that it stands long steps: with a rate below 1/2 and a kernel without negative values none crosses.

A share near 1 is a root of one sign again, as good as its negative; what harms is the middle.

The paper leaves open, and here is: the rate, 0.001 and 0.01 (`--rates`); the order of the SDO kernel, the smallest that the
dimension allows; the number of its random features, 10,000, of which K is the mean product cos(z.x + b) cos(z.y + b); its length
scale, the median distance over sqrt(d) (`--scale` multiplies it), of standardised columns; the rows, 500 drawn without
replacement (`--rows`; the paper took all).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.adbench_tables import find_table, missing, standardised, typical_length
from isopleth.kernels import SDO
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure

# In the order of the paper's appendix, under ADBench's names.
NAMES = ("mnist", "shuttle", "PageBlocks", "mammography", "magic.gamma", "skin", "backdoor", "glass", "Lymphography")
NAMES += ("Stamps", "WDBC", "SpamBase", "Hepatitis", "wine", "letter")
FEATURES = 10_000

Step = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Shares:
    """Shares of negative values in the worst runs of a table; `overflowed` is the share of all runs of the standard gradient."""

    name: str
    shape: tuple[int, int]
    rate: float
    start: float
    natural: float
    standard: float
    algorithm4: float
    overflowed: float


def sampled_kernel(z: np.ndarray, length_scale: float, features: int, rng: np.random.Generator) -> np.ndarray:
    """Return the papers' random estimate of the SDO kernel matrix, eq. 11: half of it in expectation."""
    dim = z.shape[1]
    frequencies = SDO(dim, order=dim // 2 + 1).sample_frequencies(features, rng) / length_scale
    waves = np.cos(z @ frequencies.T + rng.uniform(0.0, 2.0 * np.pi, size=features))
    return waves @ waves.T / features


def natural_step(k: np.ndarray, alpha: np.ndarray, rate: float) -> np.ndarray:
    """Take one step of the natural gradient for every column of `alpha`."""
    return alpha - 2.0 * rate * (alpha - 1.0 / (len(k) * (k @ alpha)))


def standard_step(k: np.ndarray, alpha: np.ndarray, rate: float) -> np.ndarray:
    """Take one step of the standard gradient for every column of `alpha`."""
    f = k @ alpha
    return alpha - 2.0 * rate * (f - k @ (1.0 / f) / len(k))


def algorithm4_step(k: np.ndarray, alpha: np.ndarray, rate: float) -> np.ndarray:
    """Take one step of Algorithm 4 for every column of `alpha`."""
    f = k @ alpha
    return alpha - 2.0 * rate * (f - k @ (1.0 / f)) / len(k)


def iterate(step: Step, k: np.ndarray, alpha: np.ndarray, rate: float, steps: int) -> np.ndarray:
    """Return the values K alpha after `steps` steps; columns that overflow remain infinite."""
    with np.errstate(all="ignore"):
        for _ in range(steps):
            alpha = step(k, alpha, rate)
        return k @ alpha


def worst_share(values: np.ndarray) -> float:
    """Return the share of rows whose value is negative or NaN, averaged over the worst tenth of the columns."""
    shares = np.sort(np.mean(~(values >= 0.0), axis=0))
    return float(np.mean(shares[-max(1, len(shares) // 10) :]))


def compare(name: str, z: np.ndarray, options: argparse.Namespace, rng: np.random.Generator) -> list[Shares]:
    """Run all iterations on the rows `z`, from the same starts, at each rate."""
    k = sampled_kernel(z, options.scale * typical_length(z), FEATURES, rng)
    alpha = np.abs(rng.normal(size=(len(z), options.initialisations)))
    found = []
    for rate in options.rates:
        natural, standard, algorithm4 = (
            iterate(step, k, alpha, rate, options.steps) for step in (natural_step, standard_step, algorithm4_step)
        )
        shares = map(worst_share, (k @ alpha, natural, standard, algorithm4))
        found.append(Shares(name, z.shape, rate, *shares, float(np.mean(~np.isfinite(standard).all(axis=0)))))
    return found


MARKS = (
    ("standard", VERMILLION, "s", 60, "standard gradient"),
    ("algorithm4", VERMILLION, "x", 110, "the same, Algorithm 4"),
    ("natural", BLUE, "o", 36, "natural gradient"),
    ("start", GREY, "|", 240, "at the start"),
)


def draw(found: list[Shares], path: Path) -> None:
    """Draw a panel for each rate, with a line of marks for each table."""
    rates = list(dict.fromkeys(shares.rate for shares in found))
    count = len(found) // len(rates)
    figure = new_figure(1.5 + 4.5 * len(rates), 1.6 + 0.3 * count)
    panels = figure.subplots(1, len(rates), sharey=True, squeeze=False)[0]
    place = np.arange(count)[::-1]
    for axes, rate in zip(panels, rates, strict=True):
        part = [shares for shares in found if shares.rate == rate]
        axes.hlines(
            place, [s.natural for s in part], [s.standard for s in part], color="#D9D9D9", linewidth=3, zorder=1
        )
        for field, color, marker, size, label in MARKS:
            axes.scatter(
                [getattr(s, field) for s in part], place, size, color=color, marker=marker, label=label, zorder=3
            )
        axes.set(xlim=(-0.03, 1.03), title=f"rate {rate:g}")
        axes.set_yticks(place, [shares.name for shares in part])
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("share of rows with f < 0, mean of the worst tenth of the initialisations", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    save_figure(figure, path)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--initialisations", type=int, default=50)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.001, 0.01])
    parser.add_argument("--scale", type=float, default=1.0)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Print the table and write the figure."""
    options = parse(arguments)
    if options.out:
        check_figure_target(options.out)
    paths = {name: find_table(options.data, name) for name in NAMES}
    for name in (name for name, path in paths.items() if path is None):
        print(missing(name, options.data), file=sys.stderr)
    heads = ("rate", "start", "natural", "standard", "alg. 4", "overflowed")
    print(f"{'':<14}{'rows':>6}{'columns':>9}" + "".join(f"{head:>11}" for head in heads))
    found = []
    with threadpool_limits(1):  # products this small are slower in threads
        for seed, (name, path) in enumerate(paths.items()):
            if path is None:
                continue
            rng = np.random.default_rng(seed)
            for s in compare(name, standardised(path, options.rows, rng), options, rng):
                numbers = (s.start, s.natural, s.standard, s.algorithm4, s.overflowed)
                print(
                    f"{name:<14}{s.shape[0]:>6}{s.shape[1]:>9}{s.rate:>11g}" + "".join(f"{x:>11.3f}" for x in numbers)
                )
                found.append(s)
    if options.out and found:
        draw(found, options.out)


if __name__ == "__main__":
    main()
