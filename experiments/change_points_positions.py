"""Coverage of the 90 % intervals for the positions of changes, in simulated series of 400 steps with one change at step 200.

    python -m experiments.change_points_positions [--runs 200] [--first 0] [--kinds NAME,...] [--jobs 1] [--results FILE.csv]

Printed for each kind: the share of series in which a change was found within 20 steps; in those where anything was found, the
share in which the interval of the change nearest to the true one holds it; and the median width of these intervals in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from experiments.change_points_made_up import collected, run_kinds
from isopleth import ChangePointDetector

LENGTH, PLACE = 400, 200
_NEAR = 20
Rng = np.random.Generator


def mean(rng: Rng) -> np.ndarray:
    return rng.normal(size=LENGTH) + (np.arange(LENGTH) >= PLACE)


def mean_correlated(rng: Rng) -> np.ndarray:
    noise = lfilter([1.0], [1.0, -0.5], rng.normal(size=LENGTH + 100))[100:] * np.sqrt(0.75)
    return np.asarray(noise + 2.0 * (np.arange(LENGTH) >= PLACE))


def mean_days(rng: Rng) -> np.ndarray:
    days = 3.0 * np.sin(2.0 * np.pi * np.arange(LENGTH) / 24.0 + rng.uniform(0.0, 2.0 * np.pi))
    return np.asarray(mean_correlated(rng) + days)


def variance(rng: Rng) -> np.ndarray:
    return rng.normal(size=LENGTH) * np.where(np.arange(LENGTH) < PLACE, 1.0, np.sqrt(2.0))


def deviation(rng: Rng) -> np.ndarray:
    return rng.normal(size=LENGTH) * np.where(np.arange(LENGTH) < PLACE, 1.0, 2.0)


def frequency(rng: Rng) -> np.ndarray:
    steps = 2.0 * np.pi / np.where(np.arange(LENGTH) < PLACE, 20.0, 14.0)
    return np.asarray(np.sin(np.cumsum(steps) + rng.uniform(0.0, 2.0 * np.pi)) + 0.3 * rng.normal(size=LENGTH))


def relation(rng: Rng) -> np.ndarray:
    first, second = rng.normal(size=(2, LENGTH))
    weight = np.where(np.arange(LENGTH) < PLACE, 0.0, 0.7)
    return np.column_stack([first, weight * first + np.sqrt(1.0 - weight**2) * second])


def slope(rng: Rng) -> np.ndarray:
    return 0.05 * np.maximum(np.arange(LENGTH) - PLACE, 0.0) + rng.normal(size=LENGTH)


def two_of_twenty(rng: Rng) -> np.ndarray:
    out = rng.normal(size=(LENGTH, 20))
    out[PLACE:, :2] += 1.0
    return np.asarray(out)


KINDS: tuple[Callable[[Rng], np.ndarray], ...] = (
    mean,
    mean_correlated,
    variance,
    deviation,
    frequency,
    relation,
    slope,
    two_of_twenty,
    mean_days,
)


def measured(task: tuple[int, int]) -> tuple[bool, float, float]:
    """Tell whether the change was found, and whether the interval of the nearest change holds it, with its width."""
    kind, seed = task
    found = ChangePointDetector(random_state=0).fit(KINDS[kind](np.random.default_rng([seed, kind])))
    if not len(found.change_points_):
        return False, float("nan"), float("nan")
    nearest = int(np.abs(found.change_points_ - PLACE).argmin())
    low, high = found.intervals_[nearest]
    return abs(found.change_points_[nearest] - PLACE) <= _NEAR, float(low <= PLACE <= high), float(high - low)


def study(kinds: list[int], runs: range, jobs: int, results: Path) -> dict[str, np.ndarray]:
    """Measure each kind and print the results; arrays of shape (runs, 3)."""
    names = [kind.__name__ for kind in KINDS]
    out = collected(measured, names, kinds, runs, jobs, results, ["near", "covered", "width"])
    print(f"{'kind':<18}{'N':>5}{'found':>8}{'intervals':>11}{'coverage':>10}{'width':>7}")
    for name, rows in out.items():
        some = rows[np.isfinite(rows[:, 1])]
        about = f"{some[:, 1].mean():>10.3f}{np.median(some[:, 2]):>7.0f}" if len(some) else f"{'-':>10}{'-':>7}"
        print(f"{name:<18}{len(rows):>5}{rows[:, 0].mean():>8.3f}{len(some):>11}{about}", flush=True)
    return out


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    run_kinds(arguments, __doc__, [kind.__name__ for kind in KINDS], 200, study)


if __name__ == "__main__":
    main()
