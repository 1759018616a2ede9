"""Pages of ``DriftMonitor(context=...)``, and alarms for a column that moves given the others.

``python -m experiments.drift_context --part made --correlation .7 --streams 4``: four columns of 288 steps a day, each with a
shape of the day and of working days, and autoregressive noise. References have 14 days, and one false page in 28 days is asked
for. A stream of 28 days has no change; in others one change comes on the third day, at noon or at another ``--hour``. The first
page after it is exact if it names the changed column or columns and no other.

``--part lengths --days 14 --per-day 288``: false pages in streams of 56 days, each after a reference of its own, at three
autocorrelations; with ``--fault incident``, ``gaps`` or ``clock`` the reference holds an incident of 40 minutes, or lacks a day
and a tenth of the other rows, or the clock of the stream is set back by an hour.

``--part given``: six columns of correlation .95, of which one moves by .3; windows of 50 rows, one false alarm in 5,000.

``--part nab --data DIR``: series of the Numenta Anomaly Benchmark, the first 35 % as the reference. A window is found if a page
opens in it. With ``--renew`` the advice of the pages is followed: where a change has been open for half as many days as the
reference has, and three at least, the rows since its start are the new reference.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from isopleth import DriftMonitor

PER_DAY, DAYS, AT = 288, 9, 2 * 288 + 144
CHANGES = {
    "none": (),
    "step of 1 deviation": (2,),
    "noise doubled": (3,),
    "correlation .6 to -.2": (0, 1),
    "incident": (1,),
}


def noise(rng: np.random.Generator, n: int, correlation: float, change: str, at: int = AT) -> np.ndarray:
    """Return autoregressive noise of four columns, the first two of correlation .6, with a change from row `at` on."""
    fresh = rng.normal(size=(n, 4))
    fresh[:, 1] = 0.6 * fresh[:, 0] + 0.8 * fresh[:, 1]
    if change == "correlation .6 to -.2":
        fresh[at:, 1] = -0.2 * fresh[at:, 0] + 0.96**0.5 * rng.normal(size=n - at)
    out = fresh.copy()
    for i in range(1, n):
        out[i] = correlation * out[i - 1] + (1.0 - correlation**2) ** 0.5 * fresh[i]
    if change == "step of 1 deviation":
        out[at:, 2] += 1.0
    if change == "noise doubled":
        out[at:, 3] *= 2.0
    if change == "incident":
        out[at : at + 8, 1] += 8.0
    return out


def made(
    start: str,
    days: int,
    seed: list[int],
    correlation: float,
    change: str = "none",
    at: int = AT,
    per_day: int = PER_DAY,
) -> pd.DataFrame:
    """Return a stream of five-minute steps, or of another number of them a day."""
    when = pd.date_range(start, periods=days * per_day, freq=pd.Timedelta(days=1) / per_day)
    hour, working = np.asarray(when.hour + when.minute / 60.0), np.asarray(when.day_of_week) < 5
    left = noise(np.random.default_rng(seed), len(when), correlation, change, at)
    daily = (np.sin(hour / 12.0 * np.pi) * (1.0 + working))[:, None] * [1.0, 2.0, 0.0, 0.5]
    rows = daily + left * (1.0 + 0.5 * np.cos(hour / 12.0 * np.pi))[:, None]
    return pd.DataFrame(rows, columns=list("abcd")).assign(time=when)


def made_streams(streams: int, correlation: float, hour: float, first: int) -> None:
    """Print false pages, and for each change at this hour of the third day the delays and the pages after it."""
    at = round((48.0 + hour) * PER_DAY / 24.0)
    false, delays, pages, right = (
        0,
        {name: [] for name in CHANGES},
        dict.fromkeys(CHANGES, 0),
        dict.fromkeys(CHANGES, 0),
    )
    for seed in range(first, first + streams):
        monitor = DriftMonitor(context="time", expected_run_length=28 * PER_DAY).fit(
            made("2025-01-06", 14, [seed, 0], correlation)
        )
        begin = monitor.state_
        false += len(monitor.update(made("2025-01-20", 28, [seed, 1], correlation)))
        for name, columns in list(CHANGES.items())[1:]:
            monitor.state_ = begin
            found = monitor.update(made("2025-01-20", DAYS, [seed, 2], correlation, name, at)).opened
            after = [page for page in found if page.row >= at]
            pages[name] += len(after)
            if after:
                right[name] += after[0].columns == columns
                delays[name].append((after[0].row - at) / 12.0)
    print(f"correlation {correlation:g}: {false} false pages in {streams} streams of 28 days, {streams} asked for")
    for name in list(CHANGES)[1:]:
        median = np.median(delays[name]) if delays[name] else np.nan
        print(
            f"{name:24} found {len(delays[name])}/{streams}  first page exact {right[name]}/{streams}  median delay "
            f"{median:5.1f} h  longest {max(delays[name], default=np.nan):5.1f} h  pages {pages[name] / streams:.1f}"
        )


def lengths(streams: int, first: int, days: int, per_day: int, fault: str) -> None:
    """Print false pages in streams of 56 days; one in 28 days is asked for."""
    for correlation in (0.3, 0.7, 0.9):
        pages = []
        for seed in range(first, first + streams):
            about = {"correlation": correlation, "per_day": per_day}
            change = "incident" if fault == "incident" else "none"
            reference = made("2025-01-06", days, [seed, 3], change=change, at=3 * per_day // 2, **about)
            later = made("2025-04-07", 56, [seed, 4], **about)
            if fault == "gaps":
                kept = np.random.default_rng([seed, 5]).random(len(reference)) < 0.9
                kept[3 * per_day : 4 * per_day] = False
                reference = reference[kept]
            if fault == "clock":
                later.loc[len(later) // 2 :, "time"] -= pd.Timedelta(hours=1)
            monitor = DriftMonitor(context="time", expected_run_length=28 * per_day).fit(reference)
            pages.append(len(monitor.update(later)))
        words = f"reference of {days} days, {per_day} rows a day, {fault or 'no fault'}, correlation {correlation:g}"
        print(
            f"{words}: {sum(pages)} false pages, {2 * streams} asked for; {max(pages)} after one reference", flush=True
        )


def given_the_others(streams: int) -> None:
    """Print the delays of alarms for a column that moves by 1.2 of what the others leave open."""
    root, delays = np.linalg.cholesky(np.full((6, 6), 0.95) + 0.05 * np.eye(6)).T, []
    for seed in range(streams):
        rng = np.random.default_rng([seed, 5])
        reference, stream = rng.normal(size=(800, 6)) @ root, rng.normal(size=(900, 6)) @ root
        stream[300:, 2] += 0.3
        monitor = DriftMonitor(window=50, expected_run_length=5000, random_state=seed).fit(reference)
        delays.append(next((row - 300 for row in monitor.update(stream) if row >= 300), np.inf))
    print(f"{streams} streams: median delay {np.median(delays):.1f} rows, longest {max(delays):.0f}")


def opened_pages(monitor: DriftMonitor, rows: pd.DataFrame, per_day: int, days: float) -> list[int]:
    """Return the rows at which pages are opened, if the reference is renewed from changes that are open for some days."""
    for first in range(0, len(rows), per_day):
        end = first + len(monitor.update(rows[first : first + per_day]).stream.seconds)
        long = [page for page in monitor.state_.pages if page.closed < 0 and end - page.start >= days * per_day]
        if any(page.kind != "incident" for page in long):
            monitor.update_reference(rows[max(page.start for page in long) : end])
    return [page.row for page in monitor.state_.pages]


def nab(folder: Path, *, renew: bool) -> None:
    """Print windows that are found, and pages outside, of each series with at least two weeks."""
    windows = json.loads((folder / "windows.json").read_text())
    for path in sorted(folder.glob("*.csv.gz")):
        rows = pd.read_csv(path)
        rows["timestamp"] = pd.to_datetime(rows["timestamp"])
        first, name = int(0.35 * len(rows)), path.name.removesuffix(".csv.gz")
        per_day = int(rows["timestamp"].dt.date.value_counts().median())
        try:
            monitor = DriftMonitor(context="timestamp", expected_run_length=28 * per_day).fit(rows[:first])
        except ValueError as error:
            print(f"{name:38} {error}")
            continue
        days = max(3.0, 0.5 * first / per_day) if renew else np.inf
        times = [rows["timestamp"][first + row] for row in opened_pages(monitor, rows[first:], per_day, days)]
        ends = [list(map(pd.Timestamp, pair)) for key, pairs in windows.items() if name in key for pair in pairs]
        ends = [(low, high) for low, high in ends if high > rows["timestamp"][first]]
        found = sum(any(low <= time <= high for time in times) for low, high in ends)
        beyond = sum(not any(low <= time <= high for low, high in ends) for time in times)
        print(f"{name:38} windows {found}/{len(ends)}  pages beyond {beyond}", flush=True)


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["made", "lengths", "given", "nab"], required=True)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--correlation", type=float, default=0.7)
    parser.add_argument("--hour", type=float, default=12.0, help="hour of the day at which changes begin")
    parser.add_argument("--first", type=int, default=0, help="seed of the first stream")
    parser.add_argument("--days", type=int, default=14, help="days of a reference")
    parser.add_argument("--per-day", type=int, default=PER_DAY)
    parser.add_argument("--fault", choices=["", "incident", "gaps", "clock"], default="")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--renew", action="store_true")
    asked = parser.parse_args()
    if asked.part == "made":
        made_streams(asked.streams, asked.correlation, asked.hour, asked.first)
    elif asked.part == "lengths":
        lengths(asked.streams, asked.first, asked.days, asked.per_day, asked.fault)
    elif asked.part == "given":
        given_the_others(asked.streams)
    else:
        nab(asked.data, renew=asked.renew)


if __name__ == "__main__":
    main()
