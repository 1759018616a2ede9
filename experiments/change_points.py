"""Change points of real series: the detector's default beside the paper's score, kernel change points, and no change at all.

    python -m experiments.change_points --data DIR [--parts turing,tssb,utsa,klcpd,speech] [--quick] [--out FIGURE] [--jobs N]

turing: the 31 univariate series of the Turing Change Point Dataset, with its benchmark's F1 (margin 5) and covering, everything
at its default. "LSDD score" is the paper's curve with a fixed threshold: peaks above the mean of the curve plus twice its
standard deviation. "kernel" is ruptures' KernelCPD on standardised values with a penalty of log T; it is left out where
ruptures is not installed.

tssb: series of the Time Series Segmentation Benchmark, periodic shapes that turn into others; F1 with a margin of 1 % of the
length, and covering. utsa: recordings of insects, a robot dog and pulses, measured likewise.

klcpd: area under the ROC curve of the score against the marks, over the last fifth of a series, as the KL-CPD study evaluates;
windows of 25, subsequences of 5. Series without marks in that part are left out; a collection's number is the mean.

speech: recordings as the log energy of frames of 10 ms; F1 with a margin of 5 frames, and covering, against the segments. The
default is also run on the samples themselves, whose changes are then counted in frames.

--quick takes the series of at most 120 steps, of the segmentation benchmark 2,000, and the short collections.
"""

from __future__ import annotations

import argparse
import importlib.util
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from experiments.series_data import MARGIN, Annotated, cover, f1, klcpd, speech, tssb, turing, utsa
from isopleth import ChangePointDetector
from isopleth.results.figures import BLUE, GREY, VERMILLION, check_figure_target, new_figure, save_figure
from isopleth.tasks import sliding_lsdd

METHODS = ("none", "default", "LSDD score", "kernel rbf", "kernel linear")
PICTURED = ("nile", "quality_control_1", "well_log", "seatbelts")
_DEVIATIONS = 2.0
_QUICK, _QUICK_SHAPES = 120, 2000
_SHARE = 0.01


def peaks(curve: np.ndarray, window: int) -> list[int]:
    """Highest scores above the fixed threshold, each at least a window from higher ones."""
    left = np.where(np.isnan(curve), -np.inf, curve)
    threshold = np.nanmean(curve) + _DEVIATIONS * np.nanstd(curve)
    found = []
    while left.max() > threshold:
        place = int(left.argmax())
        found.append(place)
        left[max(0, place - window + 1) : place + window] = -np.inf
    return sorted(found)


def kernel_changes(values: np.ndarray, kernel: str) -> list[int]:
    """Return the changes by KernelCPD of ruptures with a penalty of log T."""
    import ruptures

    z = (values - values.mean(axis=0)) / values.std(axis=0)
    return [int(b) for b in ruptures.KernelCPD(kernel, min_size=2).fit(z).predict(pen=np.log(len(z)))[:-1]]


def found_by_all(series: Annotated) -> dict[str, list[int]]:
    """Changes by method."""
    detector = ChangePointDetector(random_state=0).fit(series.values)
    found = {"none": [], "default": detector.change_points_.tolist()}
    curve = sliding_lsdd(series.values, random_state=0)
    found["LSDD score"] = peaks(curve, int(np.isfinite(curve).argmax()))
    if importlib.util.find_spec("ruptures"):
        found |= {f"kernel {kernel}": kernel_changes(series.values, kernel) for kernel in ("rbf", "linear")}
    return found


def measured(series: Annotated, share: float | None = None) -> dict[str, tuple[float, float]]:
    """F1 and covering by method; the margin of F1 is a share of the length, or 5 steps without one."""
    length = len(series.values)
    margin = MARGIN if share is None else int(share * length)
    return {
        name: (f1(series.marks, places, margin), cover(series.marks, places, length))
        for name, places in found_by_all(series).items()
    }


def table(many: list[Annotated], jobs: int, share: float | None = None) -> dict[str, np.ndarray]:
    """F1 and covering of every method on every series, printed as they come, with the means below."""
    with ProcessPoolExecutor(jobs) as pool:
        rows = []
        for series, row in zip(many, pool.map(partial(measured, share=share), many), strict=True):
            if not rows:
                print(f"{'F1 / cover':<22}{'T':>7}" + "".join(f"{name:>16}" for name in row), flush=True)
            rows.append(row)
            _print_line(series.name, str(len(series.values)), row)
    means = {name: np.mean([row[name] for row in rows], axis=0) for name in rows[0]}
    _print_line("mean", "", means)
    return means


def _print_line(name: str, length: str, row: dict[str, tuple[float, float]]) -> None:
    print(f"{name:<22}{length:>7}" + "".join(f"{a:>9.3f} /{b:>5.3f}" for a, b in row.values()), flush=True)


def area(series: Annotated, window: int = 25, subsequence: int = 5) -> float:
    """Area under the ROC curve over the last fifth; NaN where no mark lies there."""
    curve = sliding_lsdd(series.values, subsequence=subsequence, window=window, random_state=0)
    marked = np.zeros(len(curve), dtype=bool)
    marked[list(series.marks["label"])] = True
    judged = np.isfinite(curve) & (np.arange(len(curve)) >= int(0.8 * len(curve)))
    if not 0 < marked[judged].sum() < judged.sum():
        return float("nan")
    return float(roc_auc_score(marked[judged], curve[judged]))


def areas(collections: dict[str, list[Annotated]]) -> dict[str, float]:
    """Mean areas, printed."""
    out = {}
    for name, many in collections.items():
        found = np.array([area(series) for series in many])
        out[name] = float(np.nanmean(found))
        print(f"{name:<12}{np.isfinite(found).sum():>3} of {len(many)} series, AUC {out[name]:.3f}", flush=True)
    return out


def _print_samples(series: Annotated, samples: Annotated) -> None:
    """Print the changes that the default finds in the samples of a recording."""
    step = len(samples.values) // len(series.values)
    frames = np.round(ChangePointDetector(random_state=0).fit_predict(samples.values) / step).astype(int)
    both = f1(series.marks, frames), cover(series.marks, frames, len(series.values))
    print(
        f"{series.name + ', samples':<22}{len(samples.values):>7}{'':>16}{both[0]:>9.3f} /{both[1]:>5.3f}", flush=True
    )


def draw(many: list[Annotated], path: Path) -> None:
    """Series, marks of all annotators, changes found, and score curves."""
    figure = new_figure(10.0, 2.8 * len(many))
    figure.set_layout_engine("none")
    for series, part in zip(many, np.atleast_1d(figure.subfigures(len(many), 1)), strict=True):
        above, below = part.subplots(2, 1, sharex=True, height_ratios=[1.6, 1.0])
        found = ChangePointDetector(random_state=0).fit(series.values).result_
        above.plot(series.values[:, 0], color=GREY, linewidth=0.8)
        below.plot(sliding_lsdd(series.values, random_state=0), color=BLUE, linewidth=1.0)
        for axes in (above, below):
            for place in found.change_points:
                axes.axvline(place - 0.5, color=VERMILLION, linewidth=1.0)
            axes.set_xlim(0, len(series.values))
            axes.spines[["top", "right"]].set_visible(False)
        low = above.get_ylim()[0]
        for marks in series.marks.values():
            above.plot(np.array(marks) - 0.5, np.full(len(marks), low), "k^", markersize=4, alpha=0.6, clip_on=False)
        above.set_title(f"{series.name}: found (lines) and marked (triangles)", loc="left", fontsize=9)
        below.set_ylabel("distance of windows")
    save_figure(figure, path)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with cpd and speech in it")
    parser.add_argument("--parts", default="turing,tssb,utsa,klcpd,speech", help="which of the studies")
    parser.add_argument("--quick", action="store_true", help="short series only")
    parser.add_argument("--out", type=Path, help="figure of score curves")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(arguments)
    if options.out:
        check_figure_target(options.out)
    parts = options.parts.split(",")
    if "turing" in parts:
        many = turing(options.data)
        if options.out:
            draw([one for one in many if one.name in PICTURED], options.out)
        table([one for one in many if not options.quick or len(one.values) <= _QUICK], options.jobs)
    if "tssb" in parts:
        table(
            [one for one in tssb(options.data) if not options.quick or len(one.values) <= _QUICK_SHAPES],
            options.jobs,
            _SHARE,
        )
    if "utsa" in parts and not options.quick:
        table(utsa(options.data), options.jobs, _SHARE)
    if "klcpd" in parts:
        names = ("beedance",) if options.quick else ("hasc", "beedance", "yahoo", "fishkiller")
        areas({name: klcpd(options.data, name) for name in names})
    if "speech" in parts:
        framed = speech(options.data)
        table(framed, options.jobs)
        for series, samples in zip(framed, speech(options.data, raw=True), strict=True):
            _print_samples(series, samples)


if __name__ == "__main__":
    main()
