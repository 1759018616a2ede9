"""Run lengths and detection delays of the drift monitor, beside MMD and Kolmogorov-Smirnov monitors.

    python -m experiments.drift [--part lengths|delays|anytime|speed] [--streams 1000] [--only NAME] [--quick]
                                [--out FIGURE]

lengths  Mean run length while nothing changes over fresh references and streams, as a share of the one asked for, with its
         standard error; the median; and the quartiles of the means over the five streams that run against each reference.
delays   Rows from a change to the alarm (mean, or the median of those that came where some did not within 600 rows), at the
         same mean run length: the threshold of the monitor is its own, those of the others are found by simulation of fresh
         references and streams, which no user could do. MMD has a Gaussian kernel of the median distance; KS is the largest
         Kolmogorov-Smirnov statistic of the columns.
anytime  Of the monitor whose false alarms have a bounded probability for ever, at .01: the share of streams of 5,000 rows with a
         false alarm, and the delays of the changes above, for 900 rows after 500 unchanged ones, beside those of DriftMonitor
         with run lengths of 1,000 and 10,000; references of 500 rows.
speed    Microseconds a row in batches of 100.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.spatial.distance import cdist, pdist

from isopleth import DriftMonitor
from isopleth.results.figures import GREY, check_figure_target, new_figure, save_figure
from isopleth.tasks import AnytimeDriftMonitor

Draw = Callable[[np.random.Generator, int], np.ndarray]
PER_REFERENCE = 5
# A stream without an alarm ends after so many of the run lengths asked for.
LONGEST = 50

_DRAWN = 104 * 24  # rows of a stream that are drawn together: whole days
# Rows after a change, and where the monitor is compared that is valid at any time.
AFTER, LONG_AFTER = 600, 900
WINDOW, ROWS, RUN_LENGTH = 50, 500, 1000.0


def normals(dim: int) -> Draw:
    return lambda rng, n: rng.normal(size=(n, dim))


def heavy(dim: int) -> Draw:
    return lambda rng, n: rng.standard_t(2, size=(n, dim))


def counts(dim: int) -> Draw:
    return lambda rng, n: rng.poisson(1.0, size=(n, dim)).astype(float)


def autoregressive(coefficient: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        noise = rng.normal(size=(n + 100, 2)) * np.sqrt(1.0 - coefficient**2)
        return np.asarray(lfilter([1.0], [1.0, -coefficient], noise, axis=0)[100:])

    return draw


def daily(rng: np.random.Generator, n: int) -> np.ndarray:
    """A day of 24 rows, from its first hour."""
    return np.sin(2.0 * np.pi * np.arange(n) / 24.0)[:, None] * [1.5, 0.7] + rng.normal(size=(n, 2))


SETTINGS: list[tuple[str, Draw, int, int, int]] = [
    ("normal, d = 3", normals(3), 500, 20, 500),
    ("normal, d = 1", normals(1), 200, 20, 500),
    ("normal, d = 20", normals(20), 1000, 50, 500),
    ("heavy tails, d = 3", heavy(3), 500, 20, 500),
    ("counts, d = 3", counts(3), 500, 20, 500),
    ("normal, d = 5", normals(5), 200, 50, 500),
    ("normal, d = 3", normals(3), 500, 20, 2000),
    ("AR .5, d = 2", autoregressive(0.5), 1000, 20, 500),
    ("AR .8, d = 2", autoregressive(0.8), 1000, 20, 500),
    ("season, d = 2", daily, 1500, 20, 500),
]


def run_length(monitor: DriftMonitor, draw: Draw, rng: np.random.Generator) -> int:
    """Rows until the first alarm."""
    state, asked = monitor.state_, int(monitor.expected_run_length)
    try:
        for done in range(0, LONGEST * asked, _DRAWN):
            alarms = monitor.update(draw(rng, _DRAWN))
            if alarms:
                return done + int(alarms.rows[0]) + 1 - alarms.first_row
        return LONGEST * asked
    finally:
        monitor.state_ = state


def lengths(streams: int, only: str) -> None:
    """Print the run lengths of the settings whose name begins with `only`."""
    print(
        f"{'rows':<20}{'reference':>10}{'window':>8}{'asked':>7}{'mean/asked':>18}{'median/asked':>14}{'references':>14}",
        flush=True,
    )
    for name, draw, rows, window, asked in SETTINGS:
        if not name.startswith(only):
            continue
        found = np.empty((-(-streams // PER_REFERENCE), PER_REFERENCE))
        for i in range(len(found)):
            rng = np.random.default_rng([i, rows])
            monitor = DriftMonitor(window, asked, random_state=i, n_jobs=1).fit(draw(rng, rows))
            found[i] = [run_length(monitor, draw, rng) for _ in range(PER_REFERENCE)]
        found /= asked
        error = found.mean(axis=1).std(ddof=1) / np.sqrt(len(found))
        mean = f"{found.mean():.3f}+-{error:.3f}"
        quartiles = "{:.2f} to {:.2f}".format(*np.quantile(found.mean(axis=1), (0.25, 0.75)))
        print(
            f"{name:<20}{rows:>10}{window:>8}{asked:>7}{mean:>18}{np.median(found):>14.2f}{quartiles:>14}", flush=True
        )


def draw_stream(path: Path) -> None:
    """A stream of which one of five means moves after 500 rows, by little and by much."""
    figure = new_figure(7.6, 4.6)
    rng = np.random.default_rng(0)
    monitor = DriftMonitor(WINDOW, 5000, random_state=0).fit(rng.normal(size=(1000, 5)))
    start = monitor.state_
    for axes, by in zip(figure.subplots(2, 1, sharex=True), (0.6, 1.2), strict=True):
        monitor.state_ = start
        monitor.update(np.vstack([rng.normal(size=(500, 5)), moved(5, by)(rng, 400)])).plot(axes)
        axes.axvline(500, color=GREY, linewidth=0.8)
        axes.set_title(f"one mean moves by {by} standard deviations at row 500", loc="left", fontsize=9)
    save_figure(figure, path)


def mmd_path(reference: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Squared maximum mean discrepancy of every full window."""
    gamma = 0.5 / np.median(pdist(reference)) ** 2
    cross = np.cumsum(np.concatenate([[0.0], np.exp(-gamma * cdist(stream, reference, "sqeuclidean")).mean(axis=1)]))
    within = np.exp(-gamma * cdist(stream, stream, "sqeuclidean"))
    table = np.zeros((len(stream) + 1, len(stream) + 1))
    table[1:, 1:] = within.cumsum(axis=0).cumsum(axis=1)
    low, high = np.arange(len(stream) - WINDOW + 1), np.arange(WINDOW, len(stream) + 1)
    squares = table[high, high] - table[low, high] - table[high, low] + table[low, low]
    return squares / WINDOW**2 - 2.0 * (cross[high] - cross[low]) / WINDOW


def ks_path(reference: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Largest Kolmogorov-Smirnov statistic of the columns for every full window."""
    out = np.zeros(len(stream) - WINDOW + 1)
    steps = np.arange(1, WINDOW + 1) / WINDOW
    for column, values in zip(reference.T, stream.T, strict=True):
        share = np.searchsorted(np.sort(column), values, side="right") / len(column)
        windows = np.sort(np.lib.stride_tricks.sliding_window_view(share, WINDOW), axis=1)
        gaps = np.maximum(steps - windows, windows - steps + 1.0 / WINDOW)
        np.maximum(out, gaps.max(axis=1), out=out)
    return out


def threshold_of(paths: np.ndarray) -> float:
    """The threshold with the mean run length asked for: rows watched over alarms, as run lengths are about exponential."""
    watched = paths.shape[1]

    def mean(threshold: float) -> float:
        above = paths > threshold
        first = np.where(above.any(axis=1), above.argmax(axis=1) + 1, watched)
        return WINDOW - 1 + first.sum() / max(1, int(above.any(axis=1).sum()))

    candidates = np.sort(paths.max(axis=1))
    return float(candidates[np.argmax([mean(c - 1e-12) >= RUN_LENGTH for c in candidates])])


def correlated(by: float) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        x = rng.normal(size=(n, 5))
        x[:, 1] = by * x[:, 0] + np.sqrt(1.0 - by**2) * x[:, 1]
        return x

    return draw


def two_modes(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.95 * rng.choice([-1.0, 1.0], size=(n, 1)) + np.sqrt(1.0 - 0.95**2) * rng.normal(size=(n, 1))


def moved(dim: int, by: float, columns: int = 1) -> Draw:
    return lambda rng, n: rng.normal(size=(n, dim)) + by * (np.arange(dim) < columns)


def widened(dim: int, by: float) -> Draw:
    return lambda rng, n: by * rng.normal(size=(n, dim))


CHANGES: dict[int, dict[str, Draw]] = {
    1: {"mean by 0.7": moved(1, 0.7), "deviation 1.6": widened(1, 1.6), "two modes": two_modes},
    5: {
        "one mean by 1": moved(5, 1.0),
        "deviations 1.4": widened(5, 1.4),
        "correlation 0.7": correlated(0.7),
        "correlation 0.9": correlated(0.9),
    },
    20: {"one mean by 1.2": moved(20, 1.2), "all means by 0.3": moved(20, 0.3, 20), "deviations 1.2": widened(20, 1.2)},
}


def delays(references: int) -> None:
    """Print the delays of the three monitors."""
    print(f"{'rows':<8}{'change':<20}" + "".join(f"{name:>20}" for name in ("LSDD", "MMD", "KS")), flush=True)
    for dim, changes in CHANGES.items():
        before = normals(dim)
        drawn = [before(np.random.default_rng([i, dim]), ROWS) for i in range(references)]
        rngs = [np.random.default_rng([i, dim, 1]) for i in range(references)]
        monitors = [DriftMonitor(WINDOW, RUN_LENGTH, random_state=i, n_jobs=1).fit(x) for i, x in enumerate(drawn)]
        paths = (mmd_path, ks_path)
        calm = [[path(x, before(rng, 2000)) for path in paths] for x, rng in zip(drawn, rngs, strict=True)]
        limits = [threshold_of(np.array([pair[k] for pair in calm])) for k in range(2)]
        for name, after in changes.items():
            found: list[list[float]] = [[], [], []]
            for x, rng, monitor in zip(drawn, rngs, monitors, strict=True):
                stream = np.vstack([before(rng, WINDOW - 1), after(rng, AFTER)])
                start = monitor.state_
                alarms = monitor.update(stream).rows - start.n_rows - WINDOW + 2
                monitor.state_ = start
                found[0].append(alarms[0] if len(alarms) else np.inf)
                for k, path in enumerate(paths):
                    above = np.flatnonzero(path(x, stream) > limits[k])
                    found[k + 1].append(above[0] + 1.0 if len(above) else np.inf)
            print(f"d = {dim:<4}{name:<20}" + "".join(f"{_delay(np.array(rows)):>20}" for rows in found), flush=True)


def _delay(rows: np.ndarray) -> str:
    seen = np.isfinite(rows)
    if seen.all():
        return f"{rows.mean():.1f}+-{rows.std() / np.sqrt(len(rows)):.1f}"
    return f"{np.median(rows):.0f} ({seen.mean():.0%} seen)"


def anytime(references: int) -> None:
    """Print false alarms and delays of the monitor that is valid at any time."""
    print(
        f"{'rows':<8}{'change':<20}" + "".join(f"{name:>20}" for name in ("anytime, .01", "1 in 1,000", "1 in 10,000")),
        flush=True,
    )
    for dim, changes in CHANGES.items():
        before = normals(dim)
        monitors: list[list[AnytimeDriftMonitor | DriftMonitor]] = []
        false = 0
        for i in range(references):
            reference = before(np.random.default_rng([i, dim]), ROWS)
            kinds = [AnytimeDriftMonitor(0.01, WINDOW, random_state=i)]
            plain = [DriftMonitor(WINDOW, length, random_state=i, n_jobs=1) for length in (RUN_LENGTH, 10 * RUN_LENGTH)]
            monitors.append([monitor.fit(reference) for monitor in (*kinds, *plain)])
            start = monitors[-1][0].state_
            false += len(monitors[-1][0].update(before(np.random.default_rng([i, dim, 3]), 5000)))
            monitors[-1][0].state_ = start
        print(f"d = {dim:<4}{'none, 5,000 rows':<20}{f'{false} of {references}':>20}", flush=True)
        for name, after in changes.items():
            found = np.full((3, references), np.inf)
            for i, row in enumerate(monitors):
                rng = np.random.default_rng([i, dim, 2])
                stream = np.vstack([before(rng, ROWS), after(rng, LONG_AFTER)])
                for k, monitor in enumerate(row):
                    start = monitor.state_
                    alarms = monitor.update(stream).rows - start.n_rows - ROWS + 1
                    monitor.state_ = start
                    alarms = alarms[alarms > 0]
                    found[k, i] = alarms[0] if len(alarms) else np.inf
            print(f"d = {dim:<4}{name:<20}" + "".join(f"{_delay(rows):>20}" for rows in found), flush=True)


def speed() -> None:
    """Print the cost of a row."""
    rng = np.random.default_rng(0)
    print(f"{'columns':>8}{'us a row':>10}", flush=True)
    for dim in (1, 5, 20, 100):
        monitor = DriftMonitor(WINDOW, RUN_LENGTH, random_state=0, n_jobs=1).fit(rng.normal(size=(1000, dim)))
        batches = rng.normal(size=(100, 100, dim))
        times = []
        for batch in batches:
            start = time.perf_counter()
            monitor.update(batch)
            times.append(time.perf_counter() - start)
        print(f"{dim:>8}{np.median(times) / 100 * 1e6:>10.1f}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["lengths", "delays", "anytime", "speed"], help="only this one")
    parser.add_argument("--streams", type=int, default=1000, help="streams of each setting of the run lengths")
    parser.add_argument("--only", default="", help="run lengths of the settings whose name begins with this")
    parser.add_argument("--quick", action="store_true", help="fifty streams")
    parser.add_argument("--out", type=Path, help="figure of two streams")
    options = parser.parse_args(arguments)
    if options.out:
        check_figure_target(options.out)
        draw_stream(options.out)
    streams = 50 if options.quick else options.streams
    if options.part in (None, "speed"):
        speed()
    if options.part in (None, "delays"):
        delays(max(10, streams // 10))
    if options.part in (None, "anytime"):
        anytime(max(5, streams // 25))
    if options.part in (None, "lengths"):
        lengths(streams, options.only)


if __name__ == "__main__":
    main()
