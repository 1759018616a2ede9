"""Result of a search for changes: places, kinds and intervals, in tables and pictures; and the times of the steps of a series."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np

from isopleth.backend import to_numpy
from isopleth.errors import InputError, listed
from isopleth.results.charts import Chart, Series, thinned
from isopleth.results.result import Result, ShownTable, frame_library, shown
from isopleth.results.text import counted, in_words
from isopleth.tables.cells import as_frame, in_memory, is_missing, refuse_names, with_columns
from isopleth.tables.typed import as_datetime, axis_of, length_text, moment, time_words


def split_times(series: Any, times: Any) -> tuple[Any, np.ndarray | None]:
    """Return a series without its column of times, by default the only one or the index, and the times."""
    if not hasattr(series, "__len__"):
        series = in_memory(series)
    refuse_names(series, "series")
    frame = None if frame_library(series) is None else as_frame(series)
    if isinstance(times, str):
        if frame is None or times not in frame.columns:
            there = "it is no data frame" if frame is None else f"it has {listed(list(map(str, frame.columns)))}"
            raise InputError(f"series has no column {times!r} (times); {there}.")
        return _taken(series, frame, times)
    if times is None and frame is not None:
        found = [name for name in frame.columns if _holds_times(frame.get_column(name))]
        if len(found) > 1:
            raise InputError(
                f"series has several columns of times, {listed(list(map(str, found)))}; name that of the steps with times, and "
                "leave the others out."
            )
        if found:
            return _taken(series, frame, found[0])
    if times is None:
        index = getattr(series, "index", None)
        if type(index).__name__ != "DatetimeIndex":
            return series, None
        times = index
    cells = np.asarray(times if isinstance(times, (list, tuple)) else to_numpy(times))
    if cells.shape != (len(series),):
        raise InputError(f"times has the shape {cells.shape}; expected ({len(series)},), a time for each step.")
    return series, ascending_times(cells, "times")


def _holds_times(column: Any) -> bool:
    """Return whether a column holds times, or text that begins with one, as readers of CSV leave them."""
    if column.dtype in (nw.Date, nw.Datetime):
        return True
    known = column.drop_nulls() if column.dtype == nw.String else column.head(0)
    return len(known) > 0 and moment(known[0]) is not None


def _taken(series: Any, frame: Any, name: str) -> tuple[Any, np.ndarray]:
    rest = [column for column in frame.columns if column != name]
    if not rest:
        raise InputError(f"series has no column but {name!r}, which holds its times; add the values.")
    cells = np.asarray(frame.get_column(name).to_numpy())
    return with_columns(frame.to_native(), rest), ascending_times(cells, f"column {name!r}")


def ascending_times(cells: np.ndarray, name: str) -> np.ndarray:
    """Return times if each is later than the one before. Times without a zone are taken as UTC."""
    missing = _missing(cells)
    if missing.any():
        row = int(missing.argmax())
        raise InputError(f"{name} has no time in {{row}}", row=row, hint="fill it in, or leave the times out")
    moments = _moments(cells, name)
    late = np.flatnonzero(moments[1:] <= moments[:-1])
    shown = cells.astype("datetime64[us]") if cells.dtype.kind == "M" else cells
    if len(late):
        row = int(late[0]) + 1
        raise InputError(
            f"{name} does not ascend: {shown[row]} in {{row}} is not later than {shown[row - 1]} before it",
            row=row,
            value=shown[row],
            hint="sort the rows by time, keep one row for each time, or leave the times out",
        )
    return shown


def _missing(cells: np.ndarray) -> np.ndarray:
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

    rows: np.ndarray  # (T,), int: step of each row, from 0, ascending
    note: str  # sentence on what the times are, empty if each step has a row

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return the values at all steps, NaN where there is no row."""
        out = np.full((self.rows[-1] + 1, values.shape[1]), np.nan)
        out[self.rows] = values
        return out

    def seconds(self, times: np.ndarray | None) -> np.ndarray | None:
        """Return the times of all steps as seconds since 1970; None if they are unknown or plain numbers."""
        if times is None:
            return None
        known, dates = axis_of(times)
        return np.interp(np.arange(self.rows[-1] + 1), self.rows, known) if dates else None

    def first_rows(self, steps: np.ndarray) -> np.ndarray:
        """Return the first rows that are not before these steps."""
        return np.searchsorted(self.rows, steps)


def grid_of(times: np.ndarray | None, count: int) -> Grid:
    """Return the grid of ascending times, or that of `count` rows one step apart if they have none or uneven ones."""
    each = np.arange(count)
    if times is None or count < 3:
        return Grid(each, "")
    seconds, dates = axis_of(times)
    apart = np.diff(seconds)
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
        )
    if not missing:
        return Grid(each, "")
    places = np.concatenate([[0], np.cumsum(steps)]).astype(np.intp)
    told = f"{int(missing)} of {places[-1] + 1} steps of {length(middle)} have no row and are taken as gaps."
    return Grid(places, told)


_MOST_CURVES = 6
# Descriptions of the kinds of changes.
MEANINGS = {
    "level": "level",
    "slope": "slope",
    "scatter": "scatter",
    "shape": "shape or dependence",
    "frequency": "frequency",
    "relation": "relation of columns",
}


@dataclass(frozen=True, eq=False)
class ChangePoints(Result):
    """Changes of a series.

    Parameters
    ----------
    change_points : ndarray of shape (m,), int
        First steps after the changes, ascending; the first step of the series is number 0.
    kinds : ndarray of shape (m,), str
        Kinds of the changes: "level", "slope", "scatter", "frequency", "relation" (between columns), or "shape" for any other.
    series : ndarray of shape (T, d)
        The series.
    p_values : ndarray of shape (m,), optional
        The least false alarm rates at which each change would be reported.
    columns : list of tuple of int, optional
        The columns in which each change was seen.
    where : dict of str to ndarray of shape (T,), optional
        Columns that say where the steps stand, such as lines of a file; by default steps are counted from 0.
    names : list of str, optional
        Names of the columns of the series.
    times : ndarray of shape (T,), optional
        Times of the steps.
    intervals : ndarray of shape (m, 2), int, optional
        Least and largest first step after each change: 90 % intervals.
    spacing : str, default=""
        A sentence on times that are uneven, or that lack steps; the steps of the result are rows of the series.
    """

    change_points: np.ndarray
    kinds: np.ndarray
    series: np.ndarray = field(repr=False)
    p_values: np.ndarray | None = field(default=None, repr=False)
    columns: list[tuple[int, ...]] | None = field(default=None, repr=False)
    where: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    names: list[str] | None = field(default=None, repr=False)
    times: np.ndarray | None = field(default=None, repr=False)
    intervals: np.ndarray | None = field(default=None, repr=False)
    spacing: str = field(default="", repr=False)

    def __len__(self) -> int:
        return len(self.change_points)

    def __repr__(self) -> str:
        found = ", ".join(f"{place} ({kind})" for place, kind in zip(self.change_points, self.kinds, strict=True))
        return f"ChangePoints({found or 'none'})"

    kind = "change_points"
    title = "Changes of a series"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each change, with the means of the segments beside it in every column of the series."""
        bounds = np.concatenate([[0], self.change_points, [len(self.series)]]).astype(int)
        means = np.array([np.nanmean(self.series[a:b], axis=0) for a, b in pairwise(bounds)])
        where = {name: column[self.change_points] for name, column in self.where.items()} or {
            "change": self.change_points
        }
        out: dict[str, Any] = dict(where)
        if self.times is not None:
            out["time"] = self.times[self.change_points]
        if self.intervals is not None:
            counts = next(iter(self.where.values()), np.arange(len(self.series)))
            out |= {"earliest": counts[self.intervals[:, 0]], "latest": counts[self.intervals[:, 1]]}
        out["kind"] = self.kinds
        if self.p_values is not None:
            out["pvalue"] = self.p_values
        if self.columns is not None:
            names = self.names or list(map(str, range(self.series.shape[1])))
            out["columns"] = np.array([", ".join(names[j] for j in some) for some in self.columns], dtype=object)
        for j in range(self.series.shape[1]):
            label = "" if self.series.shape[1] == 1 else f"_{j if self.names is None else self.names[j]}"
            out |= {f"before{label}": means[:-1, j], f"after{label}": means[1:, j]}
        return out

    def _facts(self) -> dict[str, Any]:
        return {"rows": len(self.series), "columns": self.series.shape[1], "changes": len(self)}

    def _sentences(self) -> list[str]:
        steps = counted(len(self.series), "step")
        spacing = [self.spacing] * bool(self.spacing)
        if not len(self):
            return [f"The series of {steps} shows no change.", *spacing]
        noun, column = next(iter(self.where.items()), ("step", np.arange(len(self.series))))
        when = (
            [""] * len(self)
            if self.times is None
            else [f", {time_words(time)}" for time in self.times[self.change_points]]
        )
        found = zip(self.change_points, self.kinds, when, strict=True)
        kinds = [f"{noun} {column[place]} ({kind}{time})" for place, kind, time in found]
        first = f"The series of {steps} changes {'once' if len(self) == 1 else f'{len(self)} times'}."
        places = f"The first {'step' if len(self) == 1 else 'steps'} after a change: {in_words(kinds, 8)}."
        return [first, places, *spacing]

    def axis(self) -> tuple[str, np.ndarray, bool]:
        """Return where pictures show the steps: at their times if known, else at their lines of a file, else counted from 0.

        Returns
        -------
        name : str
            Name of the axis.
        change_points : ndarray of shape (T,)
            Place of each step.
        dates : bool
            Whether places are seconds since 1970.
        """
        if self.times is not None:
            places, dates = axis_of(self.times)
            return "time", places, dates
        name, counts = next(iter(self.where.items()), ("step", np.arange(len(self.series))))
        return name, np.asarray(counts, dtype=np.float64), False

    def _tables(self) -> list[ShownTable]:
        return [shown("Changes", self._columns())]

    def _charts(self) -> list[Chart]:
        return charts(self)

    def _notes(self) -> list[str]:
        noun = next(iter(self.where), "step")
        return [
            f"{noun}: the first one after the change.{'' if self.where else ' Steps are counted from 0.'}",
            f"earliest and latest: {noun}s between which the first one after the change is, with a probability of about 90 %.",
            "pvalue: about the least false alarm rate at which the change would be reported.",
            "before and after: means of the parts of the series beside the change.",
            f"kind: {in_words([f'{kind} ({words})' if kind != words else kind for kind, words in MEANINGS.items()], 8)}.",
        ] * bool(len(self))


def charts(found: ChangePoints) -> list[Chart]:
    """Return each column of the series with its changes, their intervals and the means between them."""
    dim = found.series.shape[1]
    names = found.names or (["value"] if dim == 1 else [f"column {j}" for j in range(dim)])
    noun, where = next(iter(found.where.items()), ("step", np.arange(len(found.series))))
    axis, moments, dates = found.axis()
    when = np.full(len(moments), "")
    if found.times is not None:
        when = np.array([f" ({time_words(t)})" for t in found.times])
    borders = [_border(moments, place) for place in found.change_points]
    lines = [
        (border, f"{noun} {where[place]}{when[place]}, {kind}")
        for place, kind, border in zip(found.change_points, found.kinds, borders, strict=True)
    ]
    # A change between two rows that a gap separates may be anywhere in the gap.
    half = 0.5 * float(np.median(np.diff(moments)))
    intervals = np.empty((0, 2), dtype=int) if found.intervals is None else found.intervals
    bands = [(float(moments[max(a - 1, 0)]) + half, float(moments[b]) - half) for a, b in intervals]
    title = f"{len(found)} change{'' if len(found) == 1 else 's'}" if len(found) else "no change"
    out = []
    for j in range(min(dim, _MOST_CURVES)):
        steps, values = thinned(found.series[:, j])
        notes = [f"{noun} {where[s]}{when[s]}: {v:.6g}" for s, v in zip(steps, values, strict=True)]
        curve = Series(names[j], moments[steps], values, "line", "blue", notes)
        series = [curve, *_means(found, j, moments, borders)]
        about = "Vertical bands: 90 % intervals of the changes." * bool(bands)
        about += f" {_MOST_CURVES} of {dim} columns are shown." * (j == 0 and dim > _MOST_CURVES)
        how: dict[str, Any] = {"lines": lines, "bands": bands, "times": "x" * dates, "wide": True}
        out.append(Chart(f"{names[j]}: {title}", axis, names[j], series, about.strip(), **how))
    return out


def _border(moments: np.ndarray, place: int) -> float:
    """Return the middle between a step and the one before it."""
    return float(0.5 * (moments[place] + moments[max(place - 1, 0)]))


def _means(found: ChangePoints, column: int, moments: np.ndarray, borders: list[float]) -> list[Series]:
    """Return the mean of each segment, unless slopes, frequencies or relations changed, which it does not describe."""
    if not len(found) or not set(found.kinds) <= {"level", "scatter", "shape"}:
        return []
    bounds = [0, *found.change_points.tolist(), len(found.series)]
    ends = [moments[0], *borders, moments[-1]]
    x, y = [], []
    for (a, b), (start, stop) in zip(pairwise(bounds), pairwise(ends), strict=True):
        part = found.series[a:b, column]
        mean = np.nanmean(part) if not np.isnan(part).all() else np.nan
        x += [start, stop, stop]
        y += [mean, mean, np.nan]
    return [Series("mean of the segment", x, y, "line", "text", strong=True)]
