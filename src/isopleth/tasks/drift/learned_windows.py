"""Features of windows and their threshold, as a monitor learns them from a reference."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from isopleth.core.budget import Budget
from isopleth.core.dependence import FEWEST_BLOCKS, Dependence
from isopleth.core.errors import DataWarning, Hint, InputError, listed, warn_user
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.tables.checks import CheckedRows, in_quotes, numbered_groups, plain_names
from isopleth.tasks.drift.alarms import CLOCKS, in_order_of_rows
from isopleth.tasks.drift.calibration import RowBlocks, calibrate, in_stretches, of_some_groups
from isopleth.tasks.drift.window_features import WindowFeatures

# Fewer groups say too little of how much groups vary.
_FEWEST_GROUPS = 10


class LearnedWindows(NamedTuple):
    """Features of windows, the threshold of their statistic, and what its simulation has shown."""

    features: WindowFeatures
    threshold: float
    run_lengths: np.ndarray  # (simulations,): run lengths without a change
    dependence: float  # rows of the reference that say as much as one independent row
    period: int  # of a season in the reference, in rows; 0 if there is none


def learn(monitor: Any, table: CheckedRows, groups: Any) -> LearnedWindows:
    """Fit features to a reference with the parameters of a monitor, and simulate the threshold."""
    n, window = len(table.rows), int(monitor.window)
    if n < window:
        raise InputError(
            f"the reference has {n} row{'s' if n > 1 else ''}, fewer than the window of {window}; give a "
            "longer reference, of ten windows or more, or a shorter window."
        )
    numbers, run_length = checked_groups(groups, n, window), float(monitor.expected_run_length)
    seed = int(check_random_state(monitor.random_state).randint(2**31))
    rng, seeds = np.random.default_rng(seed), np.random.default_rng([seed, 1]).integers(2**31, size=2)
    with ONE_BLAS_THREAD:  # the matrices are small
        features, values, found, blocks = _features(monitor, table, numbers, seeds, rng)
        threshold, run_lengths = calibrate(values, window, run_length, rng, blocks, Budget.of(monitor))
    # The norm of the noise exceeds the root of the threshold once in a run length, and the norm of a difference adds to it.
    # Far away all kernels are 0, so a share of rows that moves there changes the mean by this share of its norm.
    threshold = float((np.sqrt(threshold) + monitor.min_effect * np.linalg.norm(features.mean)) ** 2)
    learned = LearnedWindows(features, threshold, run_lengths, found.rows, found.period)
    _warn_of_limits(learned, window, run_length)
    return learned


def _features(
    monitor: Any, table: CheckedRows, groups: np.ndarray | None, seeds: np.ndarray, rng: np.random.Generator
) -> tuple[WindowFeatures, np.ndarray, Dependence, RowBlocks | None]:
    """Return features, their values at the rows that calibrate, and how these rows depend on each other."""
    n, window = len(table.rows), int(monitor.window)
    # At most a quarter of the rows are centres: functions as wide as the reference need few.
    count = max(1, min(int(monitor.centers), n // 4))
    if groups is not None:
        chosen, others = of_some_groups(groups, count, rng)
        features, values = WindowFeatures.of(monitor, table, chosen, others, seeds)
        return features, values, Dependence(), RowBlocks.of_groups(groups[others])
    chosen = np.sort(rng.permutation(n)[:count])
    others = np.delete(np.arange(n), chosen)
    features, values = WindowFeatures.of(monitor, table, chosen, others, seeds)
    found = Dependence.of(values, others)
    if not found.reach:
        return features, values, found, None
    # In stretches, so that the other rows follow each other as rows of the stream do.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the same as before
        chosen = in_stretches(n, count, rng)
        others = np.delete(np.arange(n), chosen)
        features, values = WindowFeatures.of(monitor, table, chosen, others, seeds)
    _refuse_short(monitor, found, len(others), table)
    length = found.block(window, len(others))
    lost = found.lost(window, length, len(others))
    return features, values, found, RowBlocks.of_stretches(others, length, found.period, lost)


def _refuse_short(monitor: Any, found: Dependence, calibrating: int, table: CheckedRows) -> None:
    """Refuse a reference with too few blocks to say how much windows vary, and name columns that count its rows."""
    n, window = len(table.rows), int(monitor.window)
    needed = [FEWEST_BLOCKS * found.block(size, 0) + n - calibrating for size in range(2, window + 1)]
    if n >= needed[-1]:
        return
    shorter = 1 + sum(rows <= n for rows in needed)  # the longest window for which there are enough rows
    season = f", with a season of {found.period} rows" if found.period else ""
    names = plain_names(monitor) if table.columns is None else table.columns.numeric_names
    counting = [in_quotes(name) for name, values in zip(names, table.rows.T, strict=False) if in_order_of_rows(values)]
    without = len(counting) < table.rows.shape[1] and counting
    in_context = "judge rows in their context, as in {context}"
    clock = {"context": ["hour", "weekday"]}
    left_out = table.columns is not None and CLOCKS in table.columns.left_out.values()
    if left_out and found.period:  # the time says what the season is, and windows of rows do not know it
        raise InputError(
            f"the rows of the reference depend on the time of day{season}, which windows of rows do not tell from a change",
            parameter="X",
            hint=Hint(f"{in_context}, with two weeks of rows", **clock),
        )
    raise InputError(
        f"the rows of the reference depend on each other: about {found.rows:.1f} of them say as much as one independent "
        f"row{season}. Its {n} rows are too few to calibrate windows of {window} rows",
        parameter="X",
        hint=Hint(
            (f"leave out {listed(counting)}, which only rises or falls; or " if without else "")
            + f"give {needed[-1]} rows or more"
            + (f", a window of {shorter} rows or fewer" if shorter > 1 else "")
            + f", {in_context} of a column of times with two weeks of rows"
            + ", or give rows in random order if their order means nothing",
            **clock,
        ),
    )


def _warn_of_limits(windows: LearnedWindows, window: int, run_length: float) -> None:
    """Warn if the threshold does not reach the run length, or if far rows would give no alarm."""
    reached = float(windows.run_lengths.mean())
    if reached > 1.1 * run_length:
        warn_user(
            f"by simulation no threshold has a mean run length of {run_length:g} rows, and the nearest has {reached:.0f}: "
            "the reference has too few rows that differ."
        )
    # All kernels are 0 far away, so rows there give this statistic.
    if windows.features.mean @ windows.features.mean <= windows.threshold:
        warn_user(
            f"a window of {window} rows is so short that rows far from all of the reference would raise no alarm: by "
            "chance it differs as much. Take a longer window or a shorter run length."
        )


def checked_groups(groups: Any, rows: int, window: int) -> np.ndarray | None:
    """Return the number of the group of each row of a reference."""
    if groups is None:
        return None
    (numbers,) = numbered_groups([groups], [rows])
    found = int(numbers.max()) + 1
    if found < _FEWEST_GROUPS:
        raise InputError(
            f"groups: {found} group{'s' if found > 1 else ''}; the threshold of a window of {window} rows needs "
            f"{_FEWEST_GROUPS} or more, or no groups if rows are independent."
        )
    return numbers
