"""Processor seconds of the change point detector: columns, lengths, sensors.

    python -m experiments.change_points_times [--quick]

Medians of three fits, one of the series of 1,000,000 steps, and the most memory of the process. Run it with one BLAS thread on a
processor that does nothing else. --quick has the series of 60 steps only.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np
from scipy.signal import lfilter

from isopleth import ChangePointDetector

_LONG, _RUNS = 1_000_000, 3


def series(quick: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names and series."""
    rng = np.random.default_rng(0)
    yield "60 x 1, none", rng.normal(size=60)
    yield "60 x 1, a step", rng.normal(size=60) + np.repeat([0.0, 3.0], 30)
    if quick:
        return
    for columns in (1, 5, 10, 20):
        calm = rng.normal(size=(1000, columns))
        yield f"1,000 x {columns}, none", calm
        calm[500:, : (columns + 1) // 2] += 1.5
        yield f"1,000 x {columns}, a step in half", calm
    eight = rng.normal(size=(1100, 8))
    yield "1,100 x 8, none", eight
    eight[500:, :4] += 2.0
    eight[800:, 4:] *= 2.0
    yield "1,100 x 8, level and scatter", eight
    sensors = lfilter([1.0], [1.0, -0.9], rng.normal(size=(1300, 8)), axis=0)[200:]
    sensors[600:, :3] += 5.0
    sensors[600:900, 5] += np.linspace(0.0, 8.0, 300)
    yield "1,100 x 8, sensors", sensors
    yield f"{_LONG:,} x 1, a step", rng.normal(size=_LONG) + 0.5 * (np.arange(_LONG) >= 400_000)


def main(arguments: list[str] | None = None) -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="series of 60 steps only")
    options = parser.parse_args(arguments)
    for name, values in series(options.quick):
        times = []
        for _ in range(_RUNS if len(values) < _LONG else 1):
            start = time.process_time()
            found = ChangePointDetector(random_state=0).fit(values).result_
            times.append(time.process_time() - start)
        print(f"{name:<32}{np.median(times):>8.2f} s   {found}", flush=True)
    print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
