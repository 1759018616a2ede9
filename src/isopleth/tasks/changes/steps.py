"""Steps of a series: its column of times, and the grid of equal steps on which its rows stand; steps without a row are gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

import narwhals as nw
import numpy as np

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import InputError, listed, meant, warn_user
from isopleth.tables.cells import is_missing
from isopleth.tables.given import Given
from isopleth.tables.text_times import days_of
from isopleth.tables.time_text import as_datetime, length_text, moment, places_of_times, time_words
from isopleth.tasks.changes.periods import days_by_clock
from isopleth.tasks.changes.wall_clock import WallClock


def split_times(series: Any, times: Any) -> tuple[Any, np.ndarray | None]:
    """Return a series without its column of times, by default the only one or the index, and the times."""
    # Tensors and single columns stay as they are.
    is_table = not hasattr(series, "__len__") or hasattr(series, "columns")
    given = Given.of(series, "series") if is_table else Given(series, "series")
    series, frame = given.table, given.frame
    if isinstance(times, str):
        if frame is None or times not in frame.columns:
            names = [] if frame is None else list(map(str, frame.columns))
            there = "it is no data frame" if frame is None else f"it has {listed(names)}"
            text = f"series has no column {times!r} ({{parameter}}){meant([times], names)}; {there}."
            raise InputError(text, parameter="times", column=times)
        return _taken(given, times)
    if times is None and frame is not None:
        found = [name for name in frame.columns if _holds_times(frame.get_column(name))]
        if len(found) > 1:
            raise InputError(
                f"series has several columns of times, {listed(list(map(str, found)))}; name that of the steps with times, and "
                "leave the others out."
            )
        found = found or rising_columns(given)
        if found:
            return _taken(given, found[0])
    if times is None:
        times = _index_of_times(series)
        if times is None:
            return series, None
    cells = np.asarray(times if isinstance(times, (list, tuple)) else to_numpy(times))
    if cells.shape != (len(series),):
        raise InputError(f"times has the shape {cells.shape}; expected ({len(series)},), a time for each step.")
    return series, ascending_times(cells, "times")


def _index_of_times(series: Any) -> Any:
    """Return the index of a series of pandas if it holds times, or the starts of periods; None otherwise."""
    index: Any = getattr(series, "index", None)
    if type(index).__name__ == "PeriodIndex":
        return index.to_timestamp()
    return index if type(index).__name__ == "DatetimeIndex" else None


# Largest deviation of a step from a multiple of the smallest one, as a share of it.
_STEP_ERROR = 1e-6


def rises_as_time(values: np.ndarray) -> bool:
    """Return whether numbers rise from row to row, most by the smallest step and all by multiples of it, as a clock does.

    Such a column has no noise: beside it no change of another column would be found.
    """
    if len(values) < 3 or not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    smallest = steps.min()
    if smallest <= 0.0:
        return False
    multiples = steps / smallest
    alike = np.abs(multiples - np.rint(multiples)) <= _STEP_ERROR * multiples
    return bool(alike.all() and 2 * np.count_nonzero(np.rint(multiples) == 1.0) >= len(steps))


def rising_columns(given: Given) -> list[str]:
    """Return the first of the columns that rise as time does, if others are left, and warn of it."""
    columns = [(name, given.frame.get_column(name)) for name in given.names or ()]
    found = [name for name, column in columns if column.dtype.is_numeric() and rises_as_time(_numbers(column))]
    if not found or len(found) == len(columns):
        return []
    text = "{column} rises from row to row by equal steps, as times do, and is taken as the times of the rows"
    warn_user(text, column=found[0], hint="if it is part of the series, pass times=range(len(series))")
    return found[:1]


def _numbers(column: Any) -> np.ndarray:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _holds_times(column: Any) -> bool:
    """Return whether a column holds times, or text that begins with one, as readers of CSV leave them."""
    if column.dtype in (nw.Date, nw.Datetime) or _has_zone(column):
        return True
    if column.dtype.is_integer():  # days such as 20240131
        return days_of(column.name, column.to_arrow()) is not None
    known = column.drop_nulls() if column.dtype == nw.String else column.head(0)
    return len(known) > 0 and moment(known[0]) is not None


def _has_zone(column: Any) -> bool:
    """Tell whether a column holds times of a zone; narwhals has no type for those of pandas whose names have underscores."""
    named = str(getattr(column.to_native(), "dtype", ""))
    return getattr(column.dtype, "time_zone", None) is not None or (named.startswith("datetime64[") and "," in named)


def _taken(given: Given, name: str) -> tuple[Any, np.ndarray]:
    """Return a frame without its column of times, and the times."""
    rest = [column for column in given.names or () if column != name]
    if not rest:
        raise InputError(f"series has no column but {name!r}, which holds its times; add the values.")
    column = given.frame.get_column(name)
    days = days_of(name, column.to_arrow()) if column.dtype.is_integer() else None
    if days is not None:
        cells = days.values.to_numpy(zero_copy_only=False)
    elif _has_zone(column):  # as an array they would be in UTC
        cells = np.array(column.to_list(), dtype=object)
    else:
        cells = np.asarray(column.to_numpy())
    return given.select(rest).table, ascending_times(cells, f"column {name!r}")


def ascending_times(cells: np.ndarray, name: str) -> np.ndarray:
    """Return times if each is later than the one before. Times without a zone are taken as UTC."""
    missing = _missing(cells)
    if missing.any():
        row = int(missing.argmax())
        raise InputError(f"{name} has no time in {{row}}", row=row, hint="fill it in, or leave the times out")
    moments = _moments(cells, name)
    late = np.flatnonzero(moments[1:] <= moments[:-1])
    shown = _shown(cells)
    if len(late):
        row = int(late[0]) + 1
        before, after = time_words(shown[row - 1]), time_words(shown[row])
        raise InputError(
            f"{name} does not ascend: {after} in {{row}} is not later than {before} before it",
            row=row,
            value=shown[row],
            hint=_CLOCK if _set_back(moments, cells) else _REPEATED if moments[row] == moments[row - 1] else _UNSORTED,
        )
    return shown


# What to do about times that do not ascend: in general, and where a clock was set back by an hour at the end of summer.
_UNSORTED = "sort the rows by time, keep one row for each time, or leave the times out"
_REPEATED = "a time occurs twice: keep one row for each time, or leave the times out"
_CLOCK = (
    "the clock was set back, so that an hour occurs twice: give times with offsets, such as 2024-10-27 02:00+01:00, or in UTC; "
    "rows that repeat a time for another reason can be left out"
)
_HOUR = 3600.0


def _shown(cells: np.ndarray) -> np.ndarray:
    """Return datetime64 in microseconds, or as they are where that would lose digits."""
    if cells.dtype.kind != "M":
        return cells
    rounded = cells.astype("datetime64[us]")
    return rounded if (rounded == cells).all() else cells


def _set_back(moments: np.ndarray, cells: np.ndarray) -> bool:
    """Tell whether times without an offset repeat an hour, once a year, and are regular otherwise: a clock was set back."""
    if cells.dtype.kind in "iuf":
        return False
    if cells.dtype.kind == "M":
        seconds = cells.astype("datetime64[us]").astype(np.int64) / 1e6
    elif any(getattr(as_datetime(cell), "tzinfo", None) for cell in cells[:1].tolist()):
        return False
    else:
        seconds = moments
    apart = np.diff(seconds)
    late = np.flatnonzero(apart <= 0.0)
    step = float(np.median(apart))
    # The hour before is repeated: with steps of an hour or longer one time occurs twice, with shorter ones the clock jumps.
    jumps = np.abs(apart[late] - (step - _HOUR)) < 1e-3 * _HOUR
    if step > _HOUR / 2.0 and not all(map(_is_night_of_weekend, seconds[late + 1].tolist())):
        return False  # one row alone repeats its time, as a row that was written twice does
    return bool(0.0 < step <= _HOUR and jumps.all() and len(late) <= 1 + np.ptp(seconds) / (300.0 * 24.0 * _HOUR))


def _is_night_of_weekend(seconds: float) -> bool:
    """Tell whether a time is before 4:00 on a Saturday or Sunday, when clocks are set back."""
    day, left = divmod(seconds, 24.0 * _HOUR)
    return int(day + 3) % 7 >= 5 and left < 4.0 * _HOUR  # 1970-01-01 was a Thursday


def _missing(cells: np.ndarray) -> np.ndarray:
    """Return a mask of missing times."""
    if cells.dtype.kind == "M":
        return np.isnat(cells)
    if cells.dtype.kind == "O":
        return np.array([is_missing(cell) for cell in cells], dtype=bool)
    return np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(len(cells), dtype=bool)


def _moments(cells: np.ndarray, name: str) -> np.ndarray:
    """Return numbers that have the order of the times."""
    if cells.dtype.kind == "M":
        return cells.astype(np.int64)
    if cells.dtype.kind in "iuf":
        return cells
    return np.array([_moment(cell, row, name) for row, cell in enumerate(cells.tolist())])


def _moment(cell: Any, row: int, name: str) -> float:
    """Return a time as seconds since 1970."""
    try:
        moment = as_datetime(cell)
        if moment is None:
            return float(cell)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError):
        text = f"{name} holds {{value}} in {{row}}; expected a time such as 2024-01-31 12:00."
        raise InputError(text, row=row, value=cell) from None


# Largest distance of a time difference from a whole number of steps, in steps: months and quarters are of unequal length, and
# clocks are not exact. Times are uneven if more than a small share of the differences are farther from one.
_OFF, _UNEVEN_SHARE = 0.25, 0.05
# Largest share of steps without a row. On working days 2 of 7 days have none: then rows are the steps.
_MOST_MISSING = 0.25


@dataclass(frozen=True, eq=False)
class Grid:
    """Steps of equal length on which the rows of a series stand."""

    even: np.ndarray  # (T,), int: step of each row by the time that passed, from 0, ascending
    about: str  # sentence on times that are uneven, or that lack steps
    clock: WallClock | None = None  # clock that is set while the series runs
    by_clock: np.ndarray | None = None  # (T,), int: step of each row by the clock, of which some have several rows
    follows: bool = True  # whether days follow this clock

    @property
    def rows(self) -> np.ndarray:
        """Step of each row, (T,), from 0, not descending."""
        return self.even if self.by_clock is None or not self.follows else self.by_clock

    @property
    def note(self) -> str:
        """Sentences on what the times are, empty if each step has a row."""
        if self.clock is None or self.by_clock is None or (self.by_clock == self.even).all():
            return self.about
        return " ".join(filter(None, [self.about, self.clock.note(self.follows)]))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return the values at all steps of the time that passed, NaN where there is no row."""
        out = np.full((self.even[-1] + 1, values.shape[1]), np.nan)
        out[self.even] = values
        return out

    def on_steps(self, spread: np.ndarray) -> np.ndarray:
        """Return what was spread at the steps of the clock, means of known values where rows share one."""
        if self.rows is self.even:
            return spread
        values = spread[self.even]
        known = ~np.isnan(values)
        sums, counts = (np.zeros((self.rows[-1] + 1, values.shape[1])) for _ in range(2))
        np.add.at(sums, self.rows, np.where(known, values, 0.0))
        np.add.at(counts, self.rows, known)
        return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0.0)

    def with_days_of(self, spread: np.ndarray) -> Grid:
        """Return the grid without its clock if days of 24 hours describe what was spread more cheaply."""
        if self.clock is None:
            return self
        return replace(self, follows=days_by_clock(spread[self.even], self.clock.instants, self.clock.seconds))

    def seconds(self, times: np.ndarray | None) -> np.ndarray | None:
        """Return the times of all steps by their clock, as seconds since 1970; None if they are unknown or plain numbers."""
        if times is None:
            return None
        known, dates = places_of_times(times)
        steps, first = np.unique(self.rows, return_index=True)
        known = known[first]
        if self.clock is not None and self.follows:
            shown = np.sort(self.clock.seconds)[first]
            # Uneven rows of an hour that comes twice share no step.
            known = shown if (np.diff(shown) > 0.0).all() else known
        if not dates or (np.diff(known) <= 0.0).any():  # steps of less than a microsecond have no days
            return None
        return np.interp(np.arange(steps[-1] + 1), steps, known)

    def first_rows(self, steps: np.ndarray) -> np.ndarray:
        """Return the first rows that are not before these steps."""
        return np.searchsorted(self.rows, steps)


def grid_of(times: np.ndarray | None, count: int) -> Grid:
    """Return the grid of ascending times, or that of `count` rows one step apart if they have none or uneven ones."""
    each = np.arange(count)
    if times is None or count < 3:
        return Grid(each, "")
    clock = WallClock.of(times)
    seconds, dates = places_of_times(times)
    apart = np.diff(times) / np.timedelta64(1, "s") if times.dtype.kind == "M" else np.diff(seconds)
    middle = float(np.median(apart))
    step = float(np.mean(apart[np.abs(apart - middle) <= _OFF * middle]))
    steps = np.maximum(np.round(apart / step), 1.0)
    missing = steps.sum() - len(steps)
    uneven = np.mean(np.abs(apart / step - steps) > _OFF) > _UNEVEN_SHARE

    def length(value: float) -> str:
        return length_text(value) if dates else f"{value:.6g}"

    if uneven or missing > _MOST_MISSING * (steps.sum() + 1.0):
        shortest, longest = length(float(apart.min())), length(float(apart.max()))
        return Grid(
            each,
            f"The times are uneven, {shortest} to {longest} apart: each row is taken as one step, and all steps as equally long.",
            clock,
        )
    places = np.concatenate([[0], np.cumsum(steps)]).astype(np.intp)
    about = _note_on_gaps(times, steps, length(middle)) if missing else ""
    return Grid(places, about, clock, None if clock is None else clock.steps(step))


def _note_on_gaps(times: np.ndarray, steps: np.ndarray, length: str) -> str:
    """Return a sentence on the steps that have no row, of rows so many steps apart."""
    count, longest = int(steps.sum()), int(steps.argmax())  # the first of the longest ones
    told = f"{count - len(steps)} of {count + 1} steps of {length} have no row and are taken as gaps"
    if steps[longest] > 2.0:
        told += f"; the longest gap is of {int(steps[longest]) - 1} steps, after {time_words(times[longest])}"
    return f"{told}."
