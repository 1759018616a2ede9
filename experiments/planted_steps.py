"""Real series as backgrounds: changes told where none was planted, and the share found of steps that were.

    python -m experiments.planted_steps --data DIR --results FILE.csv [--plants 1] [--quick] [--out FIGURE] [--methods NAME,...]

Backgrounds are the series of the Numenta Anomaly Benchmark (the first 2,016 steps, rows of one time once) and the
univariate ones of the Turing Change Point Dataset of at least 100 steps. A change told in a background as it is counts as false,
unless its owners call the stretch anomalous or a person marked a change within the margin. In each background a step of 1, 2
and 4 robust deviations (1.4826 times the median absolute deviation of the series) is planted at a random place, one at a time.
It is found if a change is told within the margin, 1 % of the length and at least 5 steps; the share is less that by chance, of
changes within the margin of the same place in the background as it is. Series that do not move for half of the time are left out.

isopleth has the times of a series and all parameters at their default. "PELT" is ruptures' KernelCPD with the linear kernel,
the search for changes of mean that Pelt(model="l2", jump=1) makes, in units of the noise (the median absolute difference), with
a penalty of 2 log T; "kernel" is KernelCPD with the Gaussian kernel on standardised values and log T; "seeded" is skchange's
SeededBinarySegmentation with its penalty in units of the noise, and "ClaSP" claspy's BinaryClaSPSegmentation. The first
three run at multiples of their usual penalty too, which gives the level at which they tell no more false changes than isopleth
does. Peers that are not installed are left out. Results are added to FILE.csv; an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.resumed import resumed
from experiments.series_data import nab, turing
from isopleth import ChangePointDetector
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure

SIZES = (1.0, 2.0, 4.0)
FACTORS = (1, 4, 16, 64, 256, 1024, 4096)
_LONGEST, _SHORTEST, _QUICK = 2016, 100, 250
_MARGIN, _SHARE = 5, 0.01
_INNER = 0.1  # share of a series at either end in which nothing is planted
FIELDS = ["series", "method", "factor", "size", "number", "steps", "place", "told", "false"]


@dataclass(frozen=True)
class Background:
    """A real series, its times, and a mask of steps at which a change is no false one."""

    name: str
    values: np.ndarray
    times: np.ndarray | None
    excused: np.ndarray

    @property
    def margin(self) -> int:
        return max(_MARGIN, int(_SHARE * len(self.values)))

    @property
    def deviation(self) -> float:
        """Robust standard deviation of the values."""
        return 1.4826 * float(np.median(np.abs(self.values - np.median(self.values))))


def backgrounds(folder: Path) -> list[Background]:
    """The series in which steps are planted."""
    found = [
        Background(one.name, one.values[:_LONGEST], one.times[:_LONGEST], one.anomalous[:_LONGEST])
        for one in nab(folder)
    ]
    for series in turing(folder):
        length = len(series.values)
        margin = max(_MARGIN, int(_SHARE * length))
        marks = {mark for own in series.marks.values() for mark in own}
        excused = np.array([any(abs(step - mark) <= margin for mark in marks) for step in range(length)])
        if length >= _SHORTEST:
            found.append(Background(series.name, series.values[:, 0], None, excused))
    return [one for one in found if one.deviation > 0.0]


def _noise_units(values: np.ndarray) -> np.ndarray:
    """Return values in units of their noise: the median absolute difference, or of all differences if most are 0."""
    steps = np.abs(np.diff(values))
    spread = 1.4826 * float(np.median(steps)) or float(np.sqrt(np.mean(steps**2)))
    return (values - np.median(values))[:, None] / (spread / np.sqrt(2.0))


def by_isopleth(series: Background, values: np.ndarray, factor: int) -> list[int]:
    return ChangePointDetector(random_state=0).fit(values, times=series.times).change_points_.tolist()


def by_pelt(series: Background, values: np.ndarray, factor: int) -> list[int]:
    import ruptures

    penalty = factor * 2.0 * np.log(len(values))
    return list(ruptures.KernelCPD("linear", min_size=2).fit(_noise_units(values)).predict(pen=penalty)[:-1])


def by_kernel(series: Background, values: np.ndarray, factor: int) -> list[int]:
    import ruptures

    rows = ((values - values.mean()) / values.std())[:, None]
    return list(ruptures.KernelCPD("rbf", min_size=2).fit(rows).predict(pen=factor * np.log(len(rows)))[:-1])


def by_seeded(series: Background, values: np.ndarray, factor: int) -> list[int]:
    from skchange.detectors import SeededBinarySegmentation

    rows = _noise_units(values)
    return list(SeededBinarySegmentation(penalty_scale=float(factor)).fit(rows).predict(rows))


def by_clasp(series: Background, values: np.ndarray, factor: int) -> list[int]:
    from claspy.segmentation import BinaryClaSPSegmentation

    return list(BinaryClaSPSegmentation(n_jobs=1).fit_predict(values))


@dataclass(frozen=True)
class Method:
    """A detector of changes: what it needs, and the factors of its penalty."""

    run: Callable[[Background, np.ndarray, int], list[int]]
    needs: str
    factors: tuple[int, ...] = FACTORS


METHODS = {
    "isopleth": Method(by_isopleth, "isopleth", (1,)),
    "PELT": Method(by_pelt, "ruptures"),
    "kernel": Method(by_kernel, "ruptures", (1, 2, 4, 8, 16)),
    "seeded": Method(by_seeded, "skchange"),
    "ClaSP": Method(by_clasp, "claspy", (1,)),
}


def plants(series: Background, number: int) -> Iterator[tuple[float, int, np.ndarray]]:
    """Yield the size, the place and the values of each planted step, first of none."""
    if number == 0:
        yield 0.0, 0, series.values
    rng = np.random.default_rng([number, *map(ord, series.name)])
    length = len(series.values)
    for size in SIZES:
        place = int(rng.integers(int(_INNER * length), length - int(_INNER * length)))
        step = rng.choice([-1.0, 1.0]) * size * series.deviation
        yield size, place, series.values + step * (np.arange(length) >= place)


def study(many: list[Background], names: list[str], numbers: int, path: Path) -> None:
    """Run what is missing, and add it to the file."""
    with resumed(path, FIELDS, 5) as (finished, add):
        for number in range(numbers):
            for name in names:
                for series in many:
                    for factor in METHODS[name].factors:
                        for size, place, values in plants(series, number):
                            key = (series.name, name, str(factor), str(size), str(number))
                            if key in finished:
                                continue
                            told = [int(step) for step in METHODS[name].run(series, values, factor)]
                            false = sum(not series.excused[min(step, len(values) - 1)] for step in told)
                            add([[*key, len(values), place, " ".join(map(str, told)), false]])


def measured(path: Path, many: list[Background]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return for each method and factor the false changes, the steps, and the net finds of planted steps by size.

    Only series that all methods of the file have finished count.
    """
    margins = {series.name: series.margin for series in many}
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["series"] in margins]
    done = {(row["method"], row["factor"]): {"none"} for row in rows}
    for row in rows:
        if float(row["size"]) == SIZES[-1]:
            done[row["method"], row["factor"]].add(row["series"])
    rows = [row for row in rows if row["series"] in set.intersection(*done.values())]
    told = {tuple(row[name] for name in FIELDS[:5]): [*map(int, row["told"].split())] for row in rows}
    out: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        one = out.setdefault((row["method"], int(row["factor"])), {"false": 0, "steps": 0, "series": 0})
        if float(row["size"]) == 0.0:
            one["false"] += int(row["false"])
            one["steps"] += int(row["steps"])
            one["series"] += 1
        else:
            place, margin = int(row["place"]), margins[row["series"]]
            both = [tuple(row[name] for name in FIELDS[:5]), (*(row[name] for name in FIELDS[:3]), "0.0", "0")]
            planted, plain = (any(abs(step - place) <= margin for step in told[key]) for key in both)
            one.setdefault(float(row["size"]), []).append(float(planted) - float(plain))
    return out


def at_level(found: dict[tuple[str, int], dict[str, Any]], name: str, level: float) -> int | None:
    """Return the least factor at which a method tells no more false changes per step than the level; None without one."""
    factors = [factor for own, factor in sorted(found) if own == name]
    return next((some for some in factors if found[name, some]["false"] <= level * found[name, some]["steps"]), None)


def print_table(found: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Print each method at its usual penalty and at the level of isopleth."""
    print(
        f"{'method':<10}{'penalty':>9}{'series':>8}{'false per 1,000':>17}"
        + "".join(f"{f'{s:g} dev':>9}" for s in SIZES)
    )
    base = found.get(("isopleth", 1))
    for name, method in METHODS.items():
        equal = (
            None if base is None or len(method.factors) == 1 else at_level(found, name, base["false"] / base["steps"])
        )
        for factor in sorted({1, equal} - {None}):
            one = found.get((name, factor))
            if one is not None and one["steps"]:
                shares = "".join(f"{np.mean(one[size]):>9.2f}" if one.get(size) else f"{'-':>9}" for size in SIZES)
                false = 1000.0 * one["false"] / one["steps"]
                print(f"{name:<10}{f'x {factor}':>9}{one['series']:>8}{false:>17.2f}{shares}")


def draw(found: dict[tuple[str, int], dict[str, Any]], path: Path) -> None:
    """Share of planted steps found against false changes, for each size."""
    figure = new_figure(10.0, 3.4)
    colours = dict(zip(METHODS, (VERMILLION, BLUE, "#009E73", GREY, "#CC79A7"), strict=True))
    axes = figure.subplots(1, len(SIZES), sharey=True)
    for size, one in zip(SIZES, axes, strict=True):
        for name in METHODS:
            own = [found[key] for key in sorted(found) if key[0] == name and found[key].get(size)]
            if not own:
                continue
            x = [1000.0 * some["false"] / some["steps"] for some in own]
            y = [float(np.mean(some[size])) for some in own]
            one.plot(
                np.maximum(x, 0.01), y, "o-", color=colours[name], label=name, markersize=8 if name == "isopleth" else 4
            )
        one.set_xscale("log")
        one.set_title(f"steps of {size:g} robust deviation{'s' * (size > 1)}", loc="left", fontsize=9)
        one.set_xlabel("false changes per 1,000 steps")
        one.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share found, less that by chance")
    axes[0].legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Run the study, print the table and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cpd in it")
    parser.add_argument("--results", type=Path, required=True, help="file to which results are added")
    parser.add_argument("--plants", type=int, default=1, help="steps of each size in each series")
    parser.add_argument("--methods", help="names of methods; all that are installed without")
    parser.add_argument("--quick", action="store_true", help="short series only")
    parser.add_argument("--out", type=Path, help="figure")
    options = parser.parse_args(arguments)
    if options.out:
        check_figure_target(options.out)
    names = [*METHODS] if options.methods is None else options.methods.split(",")
    for name in names:
        if name not in METHODS:
            parser.error(f"there is no method {name!r}; there are {', '.join(METHODS)}.")
    many = [one for one in backgrounds(options.data) if not options.quick or len(one.values) <= _QUICK]
    installed = [name for name in names if importlib.util.find_spec(METHODS[name].needs)]
    study(many, installed, options.plants, options.results)
    found = measured(options.results, many)
    print_table(found)
    if options.out:
        draw(found, options.out)


if __name__ == "__main__":
    main()
