"""Made-up series of many kinds whose changes are known: the rules of the detector were chosen on these.

    python -m experiments.change_points_made_up [--runs 20] [--first 0] [--kinds NAME,...] [--jobs 1] [--results FILE.csv]

Each kind draws a length, a size of noise and places of changes; printed are F1 and cover against the true changes and the mean
number of changes found beside the true one; for the kinds without a change (`--kinds none` is all of these) the share of series
with a false alarm and its standard error. With a file of results, what is there is not run again, and all of it is printed.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from experiments.resumed import resumed
from experiments.series_data import cover, f1
from isopleth import ChangePointDetector

NONE = "none"  # how the names of the kinds without a change begin, and all of these kinds
Series = tuple[Any, list[int]]
Rng = np.random.Generator


def _length(rng: Rng) -> int:
    """Mostly 300 steps, and 2,000 in a fifth of the series."""
    return int(rng.choice([300, 2000], p=[0.8, 0.2]))


def _places(rng: Rng, length: int, count: int, gap: int) -> list[int]:
    """Changes at least `gap` steps from each other and from the ends."""
    free = length - (count + 1) * gap
    return [int(p) + (i + 1) * gap for i, p in enumerate(np.sort(rng.integers(0, free + 1, count)))]


def _autoregressive(rng: Rng, length: int, phi: float) -> np.ndarray:
    """Noise of standard deviation 1."""
    innovations = rng.normal(size=length + 200) * np.sqrt(1.0 - phi**2)
    return lfilter([1.0], [1.0, -phi], innovations)[200:]


def _levels(rng: Rng, places: list[int], length: int, size: float) -> np.ndarray:
    """Steps of at least `size` standard deviations, up or down."""
    out = np.zeros(length)
    for place in places:
        out[place:] += rng.choice([-1.0, 1.0]) * size * rng.uniform(1.0, 2.0)
    return out


def _steps(rng: Rng, noise: Callable[[Rng, int], np.ndarray], size: float, most: int = 6) -> Series:
    length = int(rng.integers(60, 900))
    places = _places(rng, length, int(rng.integers(1, 2 + min(most - 1, length // 60))), 15)
    return _levels(rng, places, length, size) + noise(rng, length), places


def _normal(rng: Rng, length: int) -> np.ndarray:
    return rng.normal(size=length)


def steps_small(rng: Rng) -> Series:
    return _steps(rng, _normal, 1.5)


def steps_large(rng: Rng) -> Series:
    return _steps(rng, _normal, 4.0)


def steps_heavy_tails(rng: Rng) -> Series:
    return _steps(rng, lambda r, n: r.standard_t(3, size=n) / np.sqrt(3.0), 2.5)


def steps_outliers(rng: Rng) -> Series:
    def noise(r: Rng, n: int) -> np.ndarray:
        wild = r.random(n) < 0.015
        return r.normal(size=n) + wild * r.choice([-1.0, 1.0], n) * r.uniform(6.0, 12.0, n)

    return _steps(rng, noise, 2.5)


def steps_correlated(rng: Rng) -> Series:
    phi = rng.uniform(0.3, 0.7)
    return _steps(rng, lambda r, n: _autoregressive(r, n, phi), 3.0, 4)


def counts(rng: Rng) -> Series:
    length = int(rng.integers(60, 400))
    places = _places(rng, length, int(rng.integers(1, 3)), 15)
    rate = rng.uniform(2.0, 20.0) * np.exp(np.cumsum(np.isin(np.arange(length), places) * rng.choice([-0.8, 0.8])))
    return rng.poisson(rate).astype(float), places


def scatter(rng: Rng) -> Series:
    length = int(rng.integers(120, 900))
    places = _places(rng, length, int(rng.integers(1, 3)), 40)
    log_size = np.zeros(length)
    for place in places:
        log_size[place:] += rng.choice([-1.0, 1.0]) * rng.uniform(0.9, 1.5)
    return rng.normal(size=length) * np.exp(log_size), places


def slopes(rng: Rng) -> Series:
    length = int(rng.integers(60, 500))
    places = _places(rng, length, int(rng.integers(1, 4)), length // 6)
    slope = np.full(length, rng.normal())
    for place in places:
        slope[place:] += rng.choice([-1.0, 1.0]) * rng.uniform(1.0, 2.0)
    line = np.cumsum(slope)
    return line + 0.02 * np.ptp(line) * rng.uniform(0.2, 1.5) * rng.normal(size=length), places


def slopes_correlated(rng: Rng) -> Series:
    values, places = slopes(rng)
    return values + 0.02 * np.ptp(values) * _autoregressive(rng, len(values), 0.8), places


def seasonal_steps(rng: Rng) -> Series:
    length, period = int(rng.integers(96, 480)), int(rng.choice([4, 7, 12]))
    places = _places(rng, length, int(rng.integers(1, 3)), 24)
    season = np.tile(rng.normal(size=period), length)[:length]
    slope = rng.normal() * 3.0 * np.linspace(0.0, 1.0, length)
    return _levels(rng, places, length, 1.8) + season + slope + 0.4 * rng.normal(size=length), places


def jump_in_walk(rng: Rng) -> Series:
    length = int(rng.integers(60, 600))
    places = _places(rng, length, 1, 20)
    return np.cumsum(rng.normal(size=length)) + _levels(rng, places, length, 7.0), places


def short_steps(rng: Rng) -> Series:
    length = int(rng.integers(15, 60))
    places = _places(rng, length, int(rng.integers(1, 2 + length // 30)), 6)
    return _levels(rng, places, length, 3.5) + rng.normal(size=length), places


def short_slopes(rng: Rng) -> Series:
    length = int(rng.integers(20, 60))
    place = _places(rng, length, 1, 8)[0]
    slope = np.where(np.arange(length) < place, rng.normal(), rng.normal() + rng.choice([-2.5, 2.5]))
    line = np.cumsum(slope)
    return line + 0.03 * np.ptp(line) * rng.normal(size=length), [place]


def collapse(rng: Rng) -> Series:
    """A slow trend that falls at once and then grows again, with noise that is correlated."""
    length = int(rng.integers(60, 400))
    place = _places(rng, length, 1, 20)[0]
    t = np.arange(length)
    noise = _autoregressive(rng, length, rng.uniform(0.3, 0.9))
    return 8.0 * t / length - rng.uniform(5.0, 9.0) * (t >= place) + noise, [place]


def none_normal(rng: Rng) -> Series:
    """Independent normal values, 40 to 900 steps."""
    return rng.normal(size=int(rng.integers(40, 900))), []


def none_correlated(rng: Rng) -> Series:
    """Autoregressions of .2 to .8, 60 to 900 steps."""
    return _autoregressive(rng, int(rng.integers(60, 900)), rng.uniform(0.2, 0.8)), []


def none_heavy_tails(rng: Rng) -> Series:
    """Student's t with 3 degrees of freedom, 40 to 900 steps."""
    return rng.standard_t(3, size=int(rng.integers(40, 900))), []


def none_trend(rng: Rng) -> Series:
    """A line and autoregressive noise, 40 to 600 steps."""
    length = int(rng.integers(40, 600))
    noise = _autoregressive(rng, length, rng.uniform(0.0, 0.8))
    return rng.uniform(5.0, 40.0) * np.linspace(0.0, 1.0, length) + noise, []


def none_growth(rng: Rng) -> Series:
    """Exponential growth with noise that grows along, 40 to 600 steps."""
    length = int(rng.integers(40, 600))
    logs = rng.uniform(0.5, 3.0) * np.linspace(0.0, 1.0, length) + 0.02 * np.cumsum(rng.normal(size=length))
    return np.exp(logs), []


def none_walk(rng: Rng) -> Series:
    """A random walk with a drift, 40 to 600 steps."""
    length = int(rng.integers(40, 600))
    return np.cumsum(rng.normal(size=length) + rng.normal() * 0.2), []


def none_smooth(rng: Rng) -> Series:
    """A trend whose slope wanders, 60 to 600 steps."""
    length = int(rng.integers(60, 600))
    return np.cumsum(0.5 + _autoregressive(rng, length, rng.uniform(0.7, 0.95))), []


def none_shocks(rng: Rng) -> Series:
    """Rare shocks that fade, a stationary process, 100 to 700 steps."""
    length = int(rng.integers(100, 700))
    shocks = (rng.random(length) < rng.uniform(0.02, 0.08)) * rng.uniform(5.0, 20.0, length)
    fades = lfilter([1.0], [1.0, -rng.uniform(0.7, 0.97)], shocks + rng.normal(size=length))
    return fades, []


def none_seasonal(rng: Rng) -> Series:
    """A season that grows along a trend, 96 to 480 steps."""
    length, period = int(rng.integers(96, 480)), int(rng.choice([4, 7, 12, 52]))
    season = np.tile(rng.normal(size=period), length)[:length] * np.linspace(1.0, rng.uniform(1.0, 3.0), length)
    return season + rng.normal() * 5.0 * np.linspace(0.0, 1.0, length) + 0.3 * rng.normal(size=length), []


def none_spikes(rng: Rng) -> Series:
    """A constant with rare spikes, 5,000 steps."""
    values = np.full(5000, 3.0)
    spikes = rng.random(5000) < rng.uniform(0.002, 0.01)
    return values + spikes * 5.0 * rng.normal(size=5000), []


def none_walk_200(rng: Rng) -> Series:
    """A random walk, 200 steps."""
    return np.cumsum(rng.normal(size=200)), []


def none_volatility(rng: Rng) -> Series:
    """Noise whose log variance is an autoregression, 400 to 1,500 steps."""
    length = int(rng.integers(400, 1500))
    return rng.normal(size=length) * np.exp(0.5 * _autoregressive(rng, length, rng.uniform(0.9, 0.98))), []


def none_independent(rng: Rng) -> Series:
    """Independent normal values, 1,000 steps."""
    return rng.normal(size=1000), []


def none_autoregressive(rng: Rng) -> Series:
    """An autoregression of .9, 1,000 steps."""
    return _autoregressive(rng, 1000, 0.9), []


def _sine(rng: Rng, length: int) -> np.ndarray:
    return np.asarray(np.sin(2.0 * np.pi * np.arange(length) / rng.uniform(8.0, 50.0) + rng.uniform(0.0, 2.0 * np.pi)))


def none_sine(rng: Rng) -> Series:
    """A sine and noise, 1,000 steps."""
    return _sine(rng, 1000) + 0.2 * rng.normal(size=1000), []


def none_two_sines(rng: Rng) -> Series:
    """Two sines and noise, 1,000 steps."""
    return _sine(rng, 1000) + _sine(rng, 1000) + 0.2 * rng.normal(size=1000), []


def none_beats(rng: Rng) -> Series:
    """A beat that comes back at intervals that jitter, 1,000 steps."""
    t, values, place = np.arange(1000), 0.05 * rng.normal(size=1000), 10.0
    while place < 1000:
        beat = np.exp(-0.5 * ((t - place) / 2.0) ** 2) - 0.5 * np.exp(-0.5 * ((t - place - 6.0) / 3.0) ** 2)
        values += (1.0 + 0.1 * rng.normal()) * beat
        place += rng.normal(30.0, 1.5)
    return values, []


def _slow(rng: Rng, count: int, sizes: tuple[float, ...]) -> list[np.ndarray]:
    """Properties of beats that wander over tens of them and come back."""
    memory = rng.uniform(0.9, 0.98)
    return [size * _autoregressive(rng, count, memory) for size in sizes]


def none_wandering_beats(rng: Rng) -> Series:
    """Cycles whose length, size and harmonic wander."""
    count, usual = int(rng.integers(100, 300)), rng.uniform(15.0, 50.0)
    length, size, harmonic = _slow(rng, count, (0.08, 0.25, 0.3))
    lengths = usual * np.exp(length)
    edges = np.concatenate([[0.0], np.cumsum(lengths)])
    t = np.arange(int(edges[-1]))
    beat = np.searchsorted(edges, t, side="right") - 1
    phase = 2.0 * np.pi * (t - edges[beat]) / lengths[beat]
    shape = np.sin(phase) + (0.4 + harmonic[beat]) * np.sin(2.0 * phase + 1.0)
    return np.exp(size[beat]) * shape + 0.1 * rng.normal(size=len(t)), []


def none_wandering_pulses(rng: Rng) -> Series:
    """Pulses whose distances, heights and widths wander."""
    count, usual = int(rng.integers(120, 300)), rng.uniform(20.0, 40.0)
    distance, height, width = _slow(rng, count, (0.1, 0.3, 0.2))
    places, widths = np.cumsum(usual * np.exp(distance)), usual / 12.0 * np.exp(width)
    t = np.arange(int(places[-1]))
    values = 0.05 * rng.normal(size=len(t))
    for place, size, spread in zip(places, np.exp(height), widths, strict=True):
        near = slice(max(0, int(place - 6.0 * spread)), int(place + 12.0 * spread))
        away = t[near] - place
        dip = np.exp(-0.5 * ((away - 4.0 * spread) / (2.0 * spread)) ** 2)
        values[near] += size * (np.exp(-0.5 * (away / spread) ** 2) - 0.4 * dip)
    return values, []


def none_few_cycles(rng: Rng) -> Series:
    """Twelve to forty cycles of a random profile, a saw, a square wave or two harmonics, with noise."""
    period, noise = rng.uniform(5.0, 60.0), rng.uniform(0.1, 0.5)
    t = np.arange(int(period * rng.uniform(12.0, 40.0)))
    turn = (t / period) % 1.0
    profile = np.interp(turn, np.linspace(0.0, 1.0, 9), rng.normal(size=9), period=1.0)
    harmonics = np.sin(2.0 * np.pi * turn) + 0.7 * np.sin(6.0 * np.pi * turn + 1.0)
    shapes = (profile, 3.0 * turn, 2.0 * (turn < rng.uniform(0.2, 0.6)), harmonics)
    return shapes[int(rng.integers(len(shapes)))] + noise * rng.normal(size=len(t)), []


def _smooth(rng: Rng, curve: Callable[[np.ndarray], np.ndarray]) -> Series:
    """A curve of 3 to 10 standard deviations of noise that may be autoregressive."""
    length = _length(rng)
    size = rng.choice([-1.0, 1.0]) * rng.uniform(3.0, 10.0)
    return size * curve(np.arange(length) / length) + _autoregressive(rng, length, rng.choice([0.0, 0.5])), []


def none_saturating(rng: Rng) -> Series:
    """A curve that saturates."""
    return _smooth(rng, lambda t: 1.0 - np.exp(-t / rng.uniform(0.1, 0.5)))


def none_logistic(rng: Rng) -> Series:
    """A logistic curve."""
    return _smooth(rng, lambda t: 1.0 / (1.0 + np.exp(-(t - rng.uniform(0.3, 0.7)) / rng.uniform(0.05, 0.15))))


def none_arc(rng: Rng) -> Series:
    """Less than one cycle of a sine."""
    return _smooth(rng, lambda t: 0.5 * np.sin(2.0 * np.pi * (t * rng.uniform(0.3, 0.95) + rng.random())))


def none_long_memory(rng: Rng) -> Series:
    """Fractional noise of order .3."""
    length, order = _length(rng), 0.3
    lags = np.arange(1, length + 1000)
    weights = np.concatenate([[1.0], np.cumprod((lags - 1.0 + order) / lags)])
    return np.convolve(rng.normal(size=length + 1000), weights)[1000 : length + 1000], []


def none_measured_walk(rng: Rng) -> Series:
    """An autoregression of .95 that is measured with noise."""
    length = _length(rng)
    return _autoregressive(rng, length, 0.95) + 0.5 * rng.normal(size=length), []


def none_growth_errors(rng: Rng) -> Series:
    """Exponential growth with log-normal errors."""
    length = _length(rng)
    return np.exp(rng.uniform(0.5, 3.0) * np.arange(length) / length + 0.2 * rng.normal(size=length)), []


def _weeks(rng: Rng, times: pd.DatetimeIndex, level: np.ndarray) -> pd.Series:
    """Hours of a day, busy or on a wave, weekends, autoregressive noise and a level; .03 of cells and 70 rows are missing."""
    hours, length = times.hour + times.minute / 60.0, len(times)
    start, end = rng.uniform(5.0, 9.0), rng.uniform(16.0, 21.0)
    day = rng.uniform(1.0, 3.0) * ((hours >= start) & (hours < end)) + np.sin(2.0 * np.pi * hours / 24.0)
    weekend = rng.uniform(1.0, 3.0) * (times.day_of_week >= 5)
    values = day - weekend + _autoregressive(rng, length, 0.8) + level
    series = pd.Series(np.where(rng.random(length) < 0.03, np.nan, values), index=times)
    return series.drop(times[rng.choice(length, 70, replace=False)])


def none_weeks(rng: Rng) -> Series:
    """Eight weeks of hours."""
    times = pd.date_range("2024-01-01", periods=1344, freq="h")
    return _weeks(rng, times, np.zeros(len(times))), []


def week_step(rng: Rng) -> Series:
    """Sixty days of half hours, with a step of two and a half deviations of the noise."""
    times = pd.date_range("2024-01-01", periods=2880, freq="30min")
    series = _weeks(rng, times, 2.5 * (np.arange(len(times)) >= 1500))
    return series, [int(np.searchsorted(series.index, times[1500]))]


KINDS: tuple[Callable[[Rng], Series], ...] = (
    steps_small,
    steps_large,
    steps_heavy_tails,
    steps_outliers,
    steps_correlated,
    counts,
    scatter,
    slopes,
    slopes_correlated,
    seasonal_steps,
    jump_in_walk,
    short_steps,
    short_slopes,
    collapse,
    week_step,
    none_weeks,
    none_normal,
    none_correlated,
    none_heavy_tails,
    none_trend,
    none_growth,
    none_walk,
    none_smooth,
    none_shocks,
    none_seasonal,
    none_spikes,
    none_walk_200,
    none_volatility,
    none_independent,
    none_autoregressive,
    none_sine,
    none_two_sines,
    none_beats,
    none_saturating,
    none_logistic,
    none_arc,
    none_long_memory,
    none_measured_walk,
    none_growth_errors,
    none_wandering_beats,
    none_wandering_pulses,
    none_few_cycles,
)


def measured(task: tuple[int, int]) -> tuple[float, float, int, int]:
    """F1, cover, and the numbers of changes found and true, of one series of a kind."""
    kind, seed = task
    values, places = KINDS[kind](np.random.default_rng([seed, kind]))
    found = ChangePointDetector(random_state=0).fit_predict(values)
    marks = {"true": places}
    return f1(marks, found), cover(marks, found, len(values)), len(found), len(places)


def collected(
    measured: Callable[[tuple[int, int]], tuple[float, ...]],
    names: list[str],
    kinds: list[int],
    runs: range,
    jobs: int,
    results: Path,
    fields: list[str],
) -> dict[str, np.ndarray]:
    """Run what the file lacks of each kind, and return the numbers of all series of the file by kind."""
    with resumed(results, ["kind", "run", *fields], 2) as (finished, add), ProcessPoolExecutor(jobs) as pool:
        for kind in kinds:
            todo = [run for run in runs if (names[kind], str(run)) not in finished]
            found = pool.map(measured, [(kind, run) for run in todo])
            for run, numbers in zip(todo, found, strict=True):
                add([[names[kind], run, *map(float, numbers)]])
    with results.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        name: np.array([[float(row[field]) for field in fields] for row in rows if row["kind"] == name])
        for name in names
        if any(row["kind"] == name for row in rows)
    }


def study(kinds: list[int], runs: range, jobs: int, results: Path) -> dict[str, np.ndarray]:
    """Measure each kind and print the results; arrays of shape (runs, 4)."""
    names = [kind.__name__ for kind in KINDS]
    out = collected(measured, names, kinds, runs, jobs, results, ["f1", "cover", "found", "true"])
    never = {name: rows for name, rows in out.items() if name.startswith(NONE)}
    changing = {name: rows for name, rows in out.items() if name not in never}
    if changing:
        print(f"{'kind':<20}{'N':>5}{'F1':>7}{'cover':>7}{'found':>7}{'true':>6}")
        for name, rows in changing.items():
            means = rows.mean(axis=0)
            print(f"{name:<20}{len(rows):>5}{means[0]:>7.3f}{means[1]:>7.3f}{means[2]:>7.2f}{means[3]:>6.2f}")
    if never:
        print_false_alarms(never)
    return out


def print_false_alarms(never: dict[str, np.ndarray]) -> None:
    """Print the share of series without a change in which one was found, with its standard error, and their mean."""
    about = {kind.__name__: (kind.__doc__ or "").rstrip(".") for kind in KINDS}
    shares = {name: float(np.mean(rows[:, 2] > 0)) for name, rows in never.items()}
    print(f"{'kind':<24}{'N':>5}{'share':>7}{'error':>7}  series")
    for name, share in shares.items():
        error = np.sqrt(share * (1.0 - share) / len(never[name]))
        print(f"{name:<24}{len(never[name]):>5}{share:>7.3f}{error:>7.3f}  {about[name]}")
    print(f"{'mean':<24}{sum(map(len, never.values())):>5}{np.mean(list(shares.values())):>7.3f}")


def run_kinds(
    arguments: list[str] | None,
    about: str | None,
    names: list[str],
    runs: int,
    study: Callable[[list[int], range, int, Path], object],
) -> None:
    """Parse the options of a study of kinds of series, and run it."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help="series of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first series, which is its seed")
    parser.add_argument("--kinds", help="names of kinds, or 'none'; all of them without")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, help="file to which results are added")
    options = parser.parse_args(arguments)
    chosen = names if options.kinds is None else options.kinds.split(",")
    if chosen == [NONE]:
        chosen = [name for name in names if name.startswith(NONE)]
    for name in chosen:
        if name not in names:
            parser.error(f"there is no kind {name!r}; there are {', '.join(names)}.")
    with tempfile.TemporaryDirectory() as folder:
        results = options.results or Path(folder) / "results.csv"
        study(
            [names.index(name) for name in chosen],
            range(options.first, options.first + options.runs),
            options.jobs,
            results,
        )


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    run_kinds(arguments, __doc__, [kind.__name__ for kind in KINDS], 20, study)


if __name__ == "__main__":
    main()
