"""Cost of every estimator and task against the number of rows, and of several threads against one.

    python -m benchmarks.growth [--only NAME ...] [--limit 600] [--sizes ROWS ...] [--out DIR] [--picture FILE]
    python -m benchmarks.growth --threads [--only NAME ...] [--rounds 3] [--out DIR]

Each run has a process of its own, whose peak memory is printed. A size is left out when the two sizes before it predict more than
`--limit` seconds of the processor. The files in DIR hold the runs, one a line; a run that was interrupted goes on where it ended.
`--threads` compares the processor seconds with all threads to those with one, at 200 to 2,000 rows, medians of some rounds in one
process. `--picture` draws the runs of DIR and measures none.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import description
from benchmarks.power_law import expected, fitted

COLUMNS = 10
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
SMALL_SIZES = (200, 500, 1_000, 2_000)
FIELDS = ("task", "rows", "threads", "cpu_seconds", "wall_seconds", "peak_mb")


def rows(n: int, columns: int = COLUMNS, seed: int = 0) -> np.ndarray:
    """Draw correlated normal rows."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(99).normal(size=(columns, columns)) / np.sqrt(columns) + np.eye(columns)
    return rng.normal(size=(n, columns)) @ mix


def with_gaps(n: int) -> np.ndarray:
    """Draw rows of which one cell in ten is missing."""
    out = rows(n)
    out[np.random.default_rng(1).random(out.shape) < 0.1] = np.nan
    return out


def with_words(n: int) -> Any:
    """Draw such rows whose first three columns are words."""
    import pandas as pd

    out = pd.DataFrame(with_gaps(n))
    for j in range(3):
        out[j] = pd.cut(out[j], [-np.inf, -2.0, -1.0, 0.0, 1.0, 2.0, np.inf], labels=list("abcdef")).astype(object)
    return out


def with_level(n: int) -> np.ndarray:
    """Draw a series with a change of its level in the middle."""
    out = np.random.default_rng(0).normal(size=n)
    out[n // 2 :] += 1.0
    return out


def labelled(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of two classes."""
    x = rows(n)
    return x, (x[:, 0] > 0.0).astype(int)


# Each task makes its data before the clock starts and returns what is timed. The imports are outside the clock as well.
Task = Callable[[int], Callable[[], object]]


def tasks() -> dict[str, Task]:
    """Return the tasks by name."""
    import isopleth as ip
    from isopleth import score

    def fit(make: Callable[[], object], data: Callable[[int], np.ndarray] = rows) -> Task:
        def prepared(n: int) -> Callable[[], object]:
            x = data(n)
            return lambda: make().fit(x)  # type: ignore[attr-defined]

        return prepared

    def two(run: Callable[[np.ndarray, np.ndarray], object]) -> Task:
        def prepared(n: int) -> Callable[[], object]:
            x, y = rows(n // 2), rows(n - n // 2, seed=1)
            return lambda: run(x, y)

        return prepared

    def prior(n: int) -> Callable[[], object]:
        (x, y), fresh = labelled(n // 2), rows(n - n // 2, seed=1)
        return lambda: ip.ClassPriorEstimator().fit(x, y).estimate(fresh)

    def filled(data: Callable[[int], Any]) -> Task:
        def prepared(n: int) -> Callable[[], object]:
            x = data(n)
            return lambda: ip.DensityImputer().fit_transform(x)

        return prepared

    def scored(n: int) -> Callable[[], object]:
        x, model = rows(n), ip.SOSREP().fit(rows(2_000, seed=1))
        return lambda: model.score_samples(x)

    return {
        "SOSREP": fit(ip.SOSREP),
        'SOSREP(frame="deep")': fit(lambda: ip.SOSREP(frame="deep")),
        'SOSREP(frame="scale")': fit(lambda: ip.SOSREP(frame="scale")),
        'SOSREP(frame="scale", landmarks=2000)': fit(lambda: ip.SOSREP(frame="scale", landmarks=2_000)),
        "SOSREP.score_samples, 2,000 rows fitted": scored,
        "KDE": fit(ip.KDE),
        "RandomFeatureSOSREP": fit(lambda: ip.RandomFeatureSOSREP(random_state=0)),
        "DensityImputer, fit and transform": filled(with_gaps),
        "DensityImputer, three columns of words": filled(with_words),
        "KernelScore": fit(ip.KernelScore),
        "NystromKEF": fit(lambda: ip.NystromKEF(random_state=0)),
        "Stein": fit(score.Stein),
        "SSGE": fit(score.SSGE),
        "LSDD": two(lambda x, y: ip.LSDD(random_state=0).fit(x, y)),
        "two_sample_test": two(lambda x, y: ip.two_sample_test(x, y, random_state=0)),
        "AnomalyDetector": fit(ip.AnomalyDetector),
        "AnomalyDetector(novelty=True)": fit(lambda: ip.AnomalyDetector(novelty=True)),
        "ChangePointDetector": fit(lambda: ip.ChangePointDetector(random_state=0), with_level),
        "DriftMonitor": fit(lambda: ip.DriftMonitor(random_state=0)),
        "ClassPriorEstimator": prior,
    }


def measured(name: str, sizes: Sequence[int], threads: int | None, limit: float) -> list[tuple[float, float, float]]:
    """Return processor seconds, wall seconds and peak memory at each size; fewer if the limit or an error ended it."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    kept = {key: os.environ.get(key) for key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    for key in kept:  # a new process reads them when it loads BLAS
        os.environ.pop(key, None)
        if threads is not None:
            os.environ[key] = str(threads)
    process = context.Process(target=_work, args=(theirs, name, sizes, threads), daemon=True)
    process.start()
    os.environ.update({key: value for key, value in kept.items() if value is not None})
    theirs.close()
    found: list[tuple[float, float, float]] = []
    end = time.monotonic() + 10.0 * limit + 60.0  # other programs may have most of the processors
    try:
        while len(found) < len(sizes) and ours.poll(max(0.0, end - time.monotonic())):
            found.append(ours.recv())
    except EOFError:
        pass
    process.kill()
    process.join()
    return found


def _work(pipe: Connection, name: str, sizes: Sequence[int], threads: int | None) -> None:
    warnings.simplefilter("ignore")
    if threads == 1 and hasattr(os, "sched_setaffinity"):  # our own threads count the processors of the process
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the first one has most of the interrupts
    chosen = tasks()[name]
    from joblib import parallel_config

    with parallel_config("threading", n_jobs=threads):
        chosen(200)()  # imports and compiled code
        for n in sizes:
            run = chosen(n)
            wall, processor = time.perf_counter(), time.process_time()
            run()
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
            pipe.send((processor, wall, peak))


def journal(path: Path) -> dict[tuple[str, int, str], list[str]]:
    """Return the runs of a file by task, rows and threads."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        lines = list(csv.reader(file))[1:]
    return {(line[0], int(line[1]), line[2]): line[3:] for line in lines}


def append(path: Path, line: Sequence[object]) -> None:
    """Add one run to the file."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([FIELDS, line] if new else [line])


def grown(names: Sequence[str], path: Path, limit: float, sizes: Sequence[int]) -> None:
    """Measure each task at growing sizes until the next would take longer than the limit."""
    for name in names:
        seconds: dict[int, float] = {}
        for n in sizes:
            known = journal(path).get((name, n, "all"))
            if known is None:
                if expected(seconds, n) > limit:
                    break
                found = measured(name, [n], None, limit)
                if not found:
                    append(path, [name, n, "all", "", "", ""])
                    break
                known = [f"{value:.4g}" for value in found[0]]
                append(path, [name, n, "all", *known])
                print(name, n, *known, flush=True)
            if not known[0]:
                break
            seconds[n] = float(known[0])


def threaded(names: Sequence[str], path: Path, limit: float, rounds: int) -> None:
    """Measure each task at small sizes with one thread and with all."""
    for name in names:
        for threads, word in ((1, "one"), (None, "all")):
            if (name, SMALL_SIZES[-1], word) in journal(path):
                continue
            found = measured(name, SMALL_SIZES * rounds, threads, limit)
            for i, n in enumerate(SMALL_SIZES):
                each = found[i :: len(SMALL_SIZES)]
                middle = [f"{statistics.median(column):.4g}" for column in zip(*each, strict=True)] or ["", "", ""]
                append(path, [name, n, word, *middle])
                print(name, n, word, *middle, flush=True)


def growth_table(path: Path, limit: float) -> Iterator[str]:
    """Return the lines of the table of growth: seconds by size, the exponent from the last sizes, peak memory."""
    runs = journal(path)
    names, sizes = list(dict.fromkeys(name for name, _, _ in runs)), sorted({n for _, n, _ in runs})
    yield f"a dash: beyond the limit of {limit:g} CPU seconds a run, by the sizes before"
    yield f"{'CPU seconds, rows =':40}" + "".join(f"{n:>11,}" for n in sizes) + f"{'exponent':>10}{'peak MB':>10}"
    for name in names:
        found = {n: runs[name, n, "all"] for n in sizes if runs.get((name, n, "all"), [""])[0]}
        cells = "".join(f"{float(found[n][0]):>11.3g}" if n in found else f"{'-':>11}" for n in sizes)
        law = fitted({n: float(found[n][0]) for n in list(found)[-3:]})
        yield f"{name:40}{cells}{'-' if law is None else f'{law.exponent:.2f}':>10}" + (
            f"{float(found[max(found)][2]):>10.0f}" if found else f"{'-':>10}"
        )


def thread_table(path: Path) -> Iterator[str]:
    """Return the lines of the table of threads: processor seconds with all threads over those with one."""
    runs = journal(path)
    names = list(dict.fromkeys(name for name, _, _ in runs))
    yield f"{'CPU with all threads / with one, rows =':40}" + "".join(f"{n:>9,}" for n in SMALL_SIZES)
    for name in names:
        ratios = [[runs.get((name, n, word), [""])[0] for word in ("all", "one")] for n in SMALL_SIZES]
        yield f"{name:40}" + "".join(f"{float(a) / float(b):>9.2f}" if a and b else f"{'-':>9}" for a, b in ratios)


PANELS = {
    "Densities": (
        "SOSREP",
        'SOSREP(frame="deep")',
        'SOSREP(frame="scale")',
        'SOSREP(frame="scale", landmarks=2000)',
        "KDE",
    ),
    "Densities of features, gaps, answers": (
        "RandomFeatureSOSREP",
        "DensityImputer, fit and transform",
        "DensityImputer, three columns of words",
        "SOSREP.score_samples, 2,000 rows fitted",
        "ClassPriorEstimator",
    ),
    "Scores and differences": ("KernelScore", "NystromKEF", "Stein", "SSGE", "LSDD"),
    "Tasks": (
        "two_sample_test",
        "AnomalyDetector",
        "AnomalyDetector(novelty=True)",
        "ChangePointDetector",
        "DriftMonitor",
    ),
}


def picture(path: Path, out: Path) -> None:
    """Draw processor seconds against rows, with lines of slope 1 and 2."""
    from matplotlib.figure import Figure

    runs = journal(path)
    sizes = sorted({n for _, n, _ in runs})
    figure = Figure(figsize=(9.0, 7.5), layout="constrained")
    for axis, (title, names) in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, PANELS.items(), strict=True):
        for name in names:
            found = {n: float(runs[name, n, "all"][0]) for n in sizes if runs.get((name, n, "all"), [""])[0]}
            if found:
                axis.plot(list(found), list(found.values()), "o-", markersize=3, linewidth=1, label=name)
        ends = np.array([1e3, 1e6])
        for power, start in ((1.0, 0.02), (2.0, 0.02)):
            axis.plot(ends, start * (ends / 1e3) ** power, ":", color="0.6", linewidth=0.8)
        axis.set(xscale="log", yscale="log", ylim=(0.02, 2e3), title=title)
        axis.legend(fontsize=7, frameon=False, loc="upper left")
    figure.supxlabel("rows")
    figure.supylabel("processor seconds; dotted: proportional to n and n²")
    figure.savefig(out, dpi=150)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(tasks()), metavar="NAME")
    parser.add_argument("--limit", type=float, default=600.0, help="processor seconds of one run")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="ROWS", help="numbers of rows, growing")
    parser.add_argument("--threads", action="store_true", help="several threads against one, instead of growth")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each size with --threads")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the files with the runs")
    parser.add_argument("--picture", type=Path, help="draw the runs and measure none")
    options = parser.parse_args(arguments)
    if options.picture:
        picture(options.out / "growth.csv", options.picture)
        return
    names = options.only or list(tasks())
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / ("threads.csv" if options.threads else "growth.csv")
    if options.threads:
        threaded(names, path, options.limit, options.rounds)
    else:
        grown(names, path, options.limit, options.sizes)
    table = thread_table(path) if options.threads else growth_table(path, options.limit)
    print("\n".join([*description(), *table]))


if __name__ == "__main__":
    main()
