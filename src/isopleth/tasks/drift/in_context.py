"""Streams whose rows are judged in their context: which columns say the context, and which are watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from isopleth.context.ranks import ContextRanks, RowContexts, small_counts
from isopleth.core.errors import InputError, listed, quoted
from isopleth.core.rows import row_keys
from isopleth.tables.checks import CheckedRows
from isopleth.tables.kinds import Column
from isopleth.tasks.drift.causes import CauseModel
from isopleth.tasks.drift.page_watch import CauseState, CauseWatch, PageEvent, StreamRows

# Words for parts of a time, which name no column.
PARTS_OF_TIME = ("hour", "weekday")
_DAY, _HOUR, _QUARTER = 86400.0, 3600.0, 900.0
# 1970-01-01 was a Thursday.
_FIRST_WEEKDAY = 3
# A column with more values does not name kinds of rows, and a reference has no days for more kinds.
_MOST_VALUES, _MOST_KINDS = 31, 60
_FEWEST_DAYS, _FEWEST_ROWS = 3, 100
# Parts of a reference without times that are left out in turn, as its days would be.
_PARTS = 14


@dataclass(frozen=True, eq=False)
class ContextColumns:
    """Columns of checked rows that say the context, and columns of numbers that are watched."""

    names: tuple[str, ...]  # names of the watched columns
    watched: np.ndarray  # their places in the rows
    time: int  # place of the times, -1 if there are none
    hour: int  # place of hours that are given as numbers, -1 if there are none
    weekday: bool  # whether the weekday of the times counts
    clock: bool  # whether the time of day counts
    origin: float  # seconds that the times are counted from
    kinds: tuple[int, ...]  # places of columns that name kinds of rows
    values: tuple[np.ndarray, ...]  # their known values
    number: int  # place of a column of many numbers, such as a temperature; -1 if there is none
    sorted_numbers: np.ndarray  # its values in the reference, in order
    zone: str | None = None  # time zone whose clock counts; None if times are taken as they are written

    @classmethod
    def of(cls, table: CheckedRows, every: Sequence[Column], asked: Sequence[Any], zone: str | None = None) -> Self:
        """Find the columns of the context among `every` column, in the order of the rows."""
        places = {column.name: j for j, column in enumerate(every)}
        times = [j for j, column in enumerate(every) if column.kind == "time"]
        parts = [name for name in asked if name in PARTS_OF_TIME and name not in places]
        if parts and len(times) != 1:
            found = quoted([str(every[j].name) for j in times]) if times else "none"
            raise InputError(
                f"context: {quoted(parts)} {'is' if len(parts) == 1 else 'are'} taken from the one column of times, and there "
                f"{'are several: ' + found if times else 'is none'}; name a column.",
                parameter="context",
            )
        unknown = [str(name) for name in asked if name not in places and name not in parts]
        if unknown:
            raise InputError(f"context: the rows have no column {listed(unknown)}.", parameter="context")
        named = [places[name] for name in asked if name in places]
        whole = [j for j in named if every[j].kind == "time"]
        if len(whole) > 1:
            raise InputError(
                f"context: {quoted([str(every[j].name) for j in whole])} are times; name one.", parameter="context"
            )
        time = whole[0] if whole else times[0] if parts else -1
        hours = [j for j in named if every[j].kind == "numeric" and _are_hours(every[j].name, table.rows[:, j])]
        hour = hours[0] if hours else -1
        others = [j for j in named if j not in whole and j != hour]
        number = _number_of([(j, every[j]) for j in others], table.rows)
        kinds = tuple(j for j in others if j != number)
        values = tuple(_values(table.rows[:, j]) for j in kinds)
        watched = [j for j, column in enumerate(every) if column.kind == "numeric" and j not in named]
        words = [str(column.name) for j, column in enumerate(every) if column.kind == "categorical" and j not in named]
        if words:
            raise InputError(
                f"context: {listed(words)} {'holds' if len(words) == 1 else 'hold'} words, which are not watched in a context; "
                "name them in the context, or leave them out.",
                parameter="context",
            )
        watched = [j for j in watched if np.nanmax(table.rows[:, j]) > np.nanmin(table.rows[:, j])]
        if not watched:
            raise InputError("context: no column of numbers that vary is left to be watched.", parameter="context")
        return cls(
            tuple(name if isinstance(name := every[j].name, str) else f"column {name}" for j in watched),
            np.array(watched),
            time,
            hour,
            bool(whole) or "weekday" in parts,
            bool(whole) or "hour" in parts or hour >= 0,
            every[time].origin if time >= 0 else 0.0,
            kinds,
            values,
            number,
            np.sort(table.rows[:, number][~np.isnan(table.rows[:, number])]) if number >= 0 else np.empty(0),
            _zone_of(every[time].zone if time >= 0 else None, zone, has_times=time >= 0),
        )

    @property
    def count(self) -> int:
        """Number of kinds of rows."""
        return int(np.prod([7 if self.weekday else 1, *map(len, self.values)]))

    def instants(self, rows: np.ndarray) -> np.ndarray:
        """Return the times of rows in seconds since 1970, as they are given; NaN without times."""
        return rows[:, self.time] + self.origin if self.time >= 0 else np.full(len(rows), np.nan)

    def seconds(self, rows: np.ndarray) -> np.ndarray:
        """Return the times of rows by the clock of the zone, in seconds since 1970; NaN without times."""
        seconds = self.instants(rows)
        return seconds if self.zone is None else seconds + _offsets(seconds, ZoneInfo(self.zone))

    def of_rows(self, rows: np.ndarray) -> RowContexts:
        """Return the contexts of rows; the kind of rows whose context is missing or new is -1."""
        seconds = self.seconds(rows)
        known, kind = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=np.intp)
        hour = np.zeros(len(rows))
        if self.clock:
            hour = rows[:, self.hour] % 24.0 if self.hour >= 0 else seconds % _DAY / _HOUR
            known &= np.isfinite(hour)
        if self.weekday:
            known &= np.isfinite(seconds)
            kind += (np.floor(np.where(known, seconds, 0.0) / _DAY).astype(np.intp) + _FIRST_WEEKDAY) % 7
        for place, values in zip(self.kinds, self.values, strict=True):
            cells = rows[:, place]
            at = np.minimum(np.searchsorted(values, cells), len(values) - 1)
            known &= values[at] == cells
            kind = kind * len(values) + at
        rank = None
        if self.number >= 0:
            cells = rows[:, self.number]
            known &= ~np.isnan(cells)
            below, up_to = (np.searchsorted(self.sorted_numbers, cells, side) for side in ("left", "right"))
            rank = np.asarray((below + up_to) / (2.0 * len(self.sorted_numbers)))
        return RowContexts(np.where(known, hour, 0.0), np.where(known, kind, -1), self._days(seconds, hour), rank)

    def _days(self, seconds: np.ndarray, hour: np.ndarray) -> np.ndarray:
        """Return the number of the day of each row: by times, by hours that begin anew, or parts of the rows."""
        if self.time >= 0:
            return np.floor(np.where(np.isfinite(seconds), seconds, 0.0) / _DAY).astype(np.intp)
        if self.hour >= 0:
            return np.concatenate([[0], np.cumsum(np.diff(hour) < -12.0)]).astype(np.intp)
        return np.arange(len(hour)) * _PARTS // max(len(hour), 1)


def _zone_of(own: str | None, asked: str | None, *, has_times: bool) -> str | None:
    """Return the zone whose clock counts: the one asked for, or that of the times; None for that of the times as written."""
    if asked is None:
        return own if own is not None and _is_zone(own) else None
    if not has_times:
        raise InputError("timezone: the context has no column of times.", parameter="timezone")
    if not _is_zone(asked):
        raise InputError(
            f"timezone = {asked!r}: expected the name of a time zone, such as 'Europe/Berlin'.", parameter="timezone"
        )
    return asked


def _is_zone(name: str) -> bool:
    """Tell whether a name is that of a time zone; the offset of a time is none."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _offsets(seconds: np.ndarray, zone: ZoneInfo) -> np.ndarray:
    """Return by how many seconds a clock of the zone is ahead of UTC, which changes at quarters of an hour only; NaN for NaN."""
    out = np.full(len(seconds), np.nan)
    known = np.isfinite(seconds)
    quarters, place = np.unique(np.floor(seconds[known] / _QUARTER), return_inverse=True)
    ahead = [datetime.fromtimestamp(float(q) * _QUARTER, zone).utcoffset() or timedelta() for q in quarters]
    out[known] = np.array([each.total_seconds() for each in ahead])[place.ravel()]
    return out


def _are_hours(name: Any, values: np.ndarray) -> bool:
    known = values[~np.isnan(values)]
    return "hour" in str(name).lower() and len(known) > 0 and known.min() >= 0.0 and known.max() <= 24.0


def _number_of(columns: list[tuple[int, Column]], rows: np.ndarray) -> int:
    """Return the place of the column of more numbers than name kinds of rows; -1 if there is none."""
    many = [(j, column) for j, column in columns if len(_values(rows[:, j])) > _MOST_VALUES]
    words = [str(column.name) for _, column in many if column.kind != "numeric"]
    if words or len(many) > 1:
        named = quoted(words or [str(column.name) for _, column in many])
        have = (
            f"{'has' if len(words or many) == 1 else 'have'} more than {_MOST_VALUES} {'words' if words else 'values'}"
        )
        raise InputError(
            f"context: {named} {have}; a context is a column of times, hours from 0 to 24, one column of many numbers, and "
            f"columns of at most {_MOST_VALUES} words or numbers. Divide them into classes.",
            parameter="context",
        )
    return many[0][0] if many else -1


def _values(cells: np.ndarray) -> np.ndarray:
    """Return the values of a column that names kinds of rows."""
    return np.unique(cells[~np.isnan(cells)])


@dataclass(frozen=True, eq=False)
class WatchInContext:
    """Reference in its contexts, and what its scores say of a stream without a change."""

    columns: ContextColumns
    ranks: ContextRanks
    model: CauseModel
    key: int
    positive: np.ndarray  # (d,): columns without negative cells in the reference
    counts: np.ndarray  # (d,): columns of small counts

    @classmethod
    def of(cls, estimator: Any, table: CheckedRows, asked: Any, run_length: float, zone: str | None = None) -> Self:
        """Learn from a reference, whose rows are in the order in which they arrived."""
        every = columns_of(estimator, table)
        columns = ContextColumns.of(table, every, [asked] if isinstance(asked, str) else list(asked), zone)
        contexts = columns.of_rows(table.rows)
        days = len(np.unique(contexts.day))
        if days < _FEWEST_DAYS or len(table.rows) < _FEWEST_ROWS:
            raise InputError(
                f"context: the reference has {len(table.rows)} rows of {days} day{'s' if days > 1 else ''}; give {_FEWEST_DAYS} "
                f"days and {_FEWEST_ROWS} rows at least, and two weeks if days of the week differ.",
                parameter="X",
            )
        if columns.count > _MOST_KINDS:
            raise InputError(
                f"context: its columns make {columns.count} kinds of rows; take at most {_MOST_KINDS}.",
                parameter="context",
            )
        rows = table.rows[:, columns.watched]
        usable = contexts.kind >= 0
        ranks = ContextRanks.of(rows[usable], contexts.take(usable), columns.count, clock=columns.clock)
        scores = ranks.scores(rows, contexts, own_day=True)
        per_day = _rows_a_day(contexts)
        model = CauseModel.of(scores, run_length, per_day, _pace(columns.instants(table.rows), per_day))
        positive = np.nanmin(rows, axis=0) >= 0.0
        return cls(columns, ranks, model, reference_key(table.rows), positive, small_counts(rows))

    def empty(self) -> CauseState:
        """Return the state before the first row."""
        return replace(CauseState.empty(self.model), key=self.key)

    def take_in(self, state: CauseState, rows: np.ndarray) -> tuple[CauseState, StreamRows, list[PageEvent]]:
        """Return the state after more rows, the rows as they were judged, and what happened to pages in them."""
        cells = rows[:, self.columns.watched]
        scores, usual = self.ranks.judge(cells, self.columns.of_rows(rows), counts=self.counts)
        judged = StreamRows(np.where(np.isnan(cells), np.nan, scores), cells, usual, self.columns.instants(rows))
        watch = CauseWatch(self.model, state, judged, self.positive, self.counts)
        return watch.run(), judged, watch.events


def columns_of(estimator: Any, table: CheckedRows) -> list[Column]:
    """Return the columns in the order of the checked rows; those of an array are named by their numbers."""
    if table.columns is None:
        named = getattr(estimator, "feature_names_in_", range(table.rows.shape[1]))
        return [Column(name if isinstance(name, int) else str(name), "numeric") for name in named]
    kinds = table.columns.columns
    return [kind for kind in kinds if kind.kind != "categorical"] + [
        kind for kind in kinds if kind.kind == "categorical"
    ]


def _pace(seconds: np.ndarray, per_day: int) -> float:
    """Return how many rows a day would have without gaps: by the usual distance of times that rise, if there are times."""
    steps = np.diff(seconds)
    steps = steps[steps > 0.0]
    return max(_DAY / float(np.median(steps)), float(per_day)) if len(steps) else float(per_day)


def _rows_a_day(contexts: RowContexts) -> int:
    """Return the usual number of rows a day."""
    counts = np.unique(contexts.day, return_counts=True)[1]
    return max(1, int(np.median(counts)))


def reference_key(rows: np.ndarray) -> int:
    """Return a number that tells whether a saved monitor was fitted to these rows."""
    return int(row_keys(np.nan_to_num(rows, nan=-1.0)).sum())
