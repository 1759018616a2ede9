"""Streams whose rows are judged in their context: which columns say the context, and which are watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self

import numpy as np

from isopleth.context.indexed_ranks import IndexedRanks, regressors
from isopleth.context.ranks import ContextRanks, RowContexts, small_counts
from isopleth.core.errors import Hint, InputError, listed, meant, quoted
from isopleth.core.rows import row_keys
from isopleth.tables.checks import CheckedRows
from isopleth.tables.kinds import Column
from isopleth.tables.zones import asked_zone, zone_of
from isopleth.tasks.drift.cause_state import CauseState
from isopleth.tasks.drift.causes import NullModel
from isopleth.tasks.drift.page import PageEvent
from isopleth.tasks.drift.page_watch import CauseWatch
from isopleth.tasks.drift.stream_rows import StreamRows
from isopleth.tasks.drift.stream_times import StreamClock
from isopleth.tasks.running_totals import is_running_total, warn_of_totals

# Words for parts of a time, which name no column.
PARTS_OF_TIME = ("hour", "weekday")
_DAY, _HOUR, _QUARTER = 86400.0, 3600.0, 900.0
# 1970-01-01 was a Thursday.
_FIRST_WEEKDAY = 3
# A column with more values does not name kinds of rows, and a reference has no days for more kinds.
_MOST_VALUES, _MOST_KINDS = 31, 60
_FEWEST_DAYS, _FEWEST_ROWS, _ROWS_A_REGRESSOR = 3, 100, 5
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
    numbers: tuple[int, ...]  # places of columns of many numbers, such as a temperature
    words: tuple[int, ...]  # places of columns that name more kinds of rows than a reference has days for
    word_values: tuple[np.ndarray, ...]  # their known values
    sorted_numbers: np.ndarray  # values of the one column of numbers in the reference, in order; empty without one
    zone: str | None = None  # time zone whose clock counts; None if times are taken as they are written

    @classmethod
    def of(cls, table: CheckedRows, every: Sequence[Column], asked: Sequence[Any], zone: str | None = None) -> Self:
        """Find the columns of the context among `every` column, in the order of the rows."""
        named, parts = _named(every, asked)
        times = [j for j, column in enumerate(every) if column.kind == "time"]
        whole = [j for j in named if j in times]
        # The one column of times says the days and the times of pages also where the clock is no context.
        time = whole[0] if whole else times[0] if len(times) == 1 else -1
        hours = [j for j in named if every[j].kind == "numeric" and _are_hours(every[j].name, table.rows[:, j])]
        hour = hours[0] if hours else -1
        weekday = bool(whole) or "weekday" in parts
        others = [j for j in named if j not in whole and j != hour]
        numbers, kinds, words = _divided(every, others, table.rows, 7 if weekday else 1)
        watched, alone = _watched(every, named, table.rows), numbers if len(numbers) == 1 and not words else ()
        return cls(
            tuple(name if isinstance(name := every[j].name, str) else f"column {name}" for j in watched),
            np.array(watched),
            time,
            hour,
            weekday,
            bool(whole) or "hour" in parts or hour >= 0,
            every[time].origin if time >= 0 else 0.0,
            kinds,
            tuple(_values(table.rows[:, j]) for j in kinds),
            numbers,
            words,
            tuple(_values(table.rows[:, j]) for j in words),
            np.sort(_known(table.rows[:, alone[0]])) if alone else np.empty(0),
            _zone_of(every[time].zone if time >= 0 else None, zone, has_times=time >= 0),
        )

    @property
    def regressors(self) -> int:
        """Number of regressors that these make."""
        return regressors(len(self.numbers), self.word_values)

    @property
    def indexed(self) -> bool:
        """True if several numbers, or words of many kinds, are brought to one number."""
        return len(self.numbers) > 1 or bool(self.words)

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
        return seconds if self.zone is None else seconds + _offsets(seconds, zone_of(self.zone))

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
        for place, values in zip(self.kinds + self.words, self.values + self.word_values, strict=True):
            cells = rows[:, place]
            at = np.minimum(np.searchsorted(values, cells), len(values) - 1)
            known &= values[at] == cells
            kind = kind * len(values) + at if place in self.kinds else kind
        known &= ~np.isnan(rows[:, self.numbers]).any(axis=1)
        rank, given = None, rows[:, self.numbers + self.words] if self.indexed else None
        if self.numbers and not self.indexed:
            cells = rows[:, self.numbers[0]]
            below, up_to = (np.searchsorted(self.sorted_numbers, cells, side) for side in ("left", "right"))
            rank = np.asarray((below + up_to) / (2.0 * len(self.sorted_numbers)))
        days = self._days(seconds, hour)
        return RowContexts(np.where(known, hour, 0.0), np.where(known, kind, -1), days, rank, given)

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
        return own
    if not has_times:
        raise InputError("{parameter}: the context has no column of times.", parameter="timezone")
    asked_zone(asked)
    return asked


def _offsets(seconds: np.ndarray, zone: tzinfo) -> np.ndarray:
    """Return by how many seconds a clock of the zone is ahead of UTC, which changes at quarters of an hour only; NaN for NaN."""
    out = np.full(len(seconds), np.nan)
    known = np.isfinite(seconds)
    quarters, place = np.unique(np.floor(seconds[known] / _QUARTER), return_inverse=True)
    ahead = [datetime.fromtimestamp(float(q) * _QUARTER, zone).utcoffset() or timedelta() for q in quarters]
    out[known] = np.array([each.total_seconds() for each in ahead])[place.ravel()]
    return out


def _are_hours(name: Any, values: np.ndarray) -> bool:
    known = _known(values)
    return "hour" in str(name).lower() and len(known) > 0 and known.min() >= 0.0 and known.max() <= 24.0


def _named(every: Sequence[Column], asked: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Return the places of the columns that are asked for, and the parts of times that are."""
    places = {column.name: j for j, column in enumerate(every)}
    times = [str(column.name) for column in every if column.kind == "time"]
    parts = [name for name in asked if name in PARTS_OF_TIME and name not in places]
    if parts and len(times) != 1:
        advice = "name a column of times, or of hours from 0 to 24; {time_columns} takes seconds since 1970 as times"
        raise InputError(
            f"{{parameter}}: {quoted(parts)} {'is' if len(parts) == 1 else 'are'} taken from the one column of times, and there "
            f"{'are several: ' + quoted(times) if times else 'is none'}",
            parameter="context",
            hint="name one of them" if times else Hint(advice, time_columns=...),
        )
    unknown = [str(name) for name in asked if name not in places and name not in parts]
    if unknown:
        known = [*places, *PARTS_OF_TIME]
        text = f"{{parameter}}: the rows have no column {listed(unknown)}{meant(unknown, known)}."
        raise InputError(text, parameter="context")
    named = list(dict.fromkeys(places[name] for name in asked if name in places))
    whole = [str(every[j].name) for j in named if every[j].kind == "time"]
    if len(whole) > 1:
        raise InputError(f"{{parameter}}: {quoted(whole)} are times; name one.", parameter="context")
    return named, parts


def _watched(every: Sequence[Column], named: Sequence[int], rows: np.ndarray) -> list[int]:
    """Return the places of the columns of numbers that vary and are no context, without running totals beside others."""
    words = [str(column.name) for j, column in enumerate(every) if column.kind == "categorical" and j not in named]
    if words:
        raise InputError(
            f"{{parameter}}: {listed(words)} {'holds' if len(words) == 1 else 'hold'} words, which are not watched in a context; "
            "name them in the context, or leave them out.",
            parameter="context",
        )
    numbers = [j for j, column in enumerate(every) if column.kind == "numeric" and j not in named]
    varying = [j for j in numbers if np.nanmax(rows[:, j]) > np.nanmin(rows[:, j])]
    if not varying:
        raise InputError("{parameter}: no column of numbers that vary is left to be watched.", parameter="context")
    return _without_totals(every, varying, rows)


def _without_totals(every: Sequence[Column], places: list[int], rows: np.ndarray) -> list[int]:
    """Leave out running totals, of which every row of a stream is beyond the reference, unless no other column is left."""
    totals = [j for j in places if is_running_total(rows[:, j])]
    left = [j for j in places if j not in totals]
    if totals:
        warn_of_totals([every[j].name for j in totals], left_out=bool(left))
    return left or places


def _divided(
    every: Sequence[Column], places: Sequence[int], rows: np.ndarray, weekdays: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the places of columns of many numbers, of those that name kinds of rows, and of those that name too many."""
    count = {j: len(_values(rows[:, j])) for j in places}
    many = [j for j in places if count[j] > _MOST_VALUES]
    words = [str(every[j].name) for j in many if every[j].kind != "numeric"]
    if words:
        raise InputError(
            f"{{parameter}}: {quoted(words)} {'has' if len(words) == 1 else 'have'} more than {_MOST_VALUES} words; a context is "
            f"a column of times, hours from 0 to 24, numbers, and columns of at most {_MOST_VALUES} words. Divide them into "
            "classes.",
            parameter="context",
        )
    few = tuple(j for j in places if j not in many)
    if weekdays * np.prod([count[j] for j in few], dtype=float) > _MOST_KINDS:
        return tuple(many), (), few
    return tuple(many), few, ()


def _known(cells: np.ndarray) -> np.ndarray:
    return np.asarray(cells[~np.isnan(cells)])


def _values(cells: np.ndarray) -> np.ndarray:
    """Return the values of a column that names kinds of rows."""
    return np.unique(_known(cells))


@dataclass(frozen=True, eq=False)
class WatchInContext:
    """Reference in its contexts, and what its scores say of a stream without a change."""

    columns: ContextColumns
    ranks: ContextRanks | IndexedRanks
    model: NullModel
    key: int
    positive: np.ndarray  # (d,): columns without negative cells in the reference
    counts: np.ndarray  # (d,): columns of small counts
    least: float  # least size of a change that is told
    clock: StreamClock

    @classmethod
    def of(cls, estimator: Any, table: CheckedRows) -> Self:
        """Learn from a reference, whose rows are in the order in which they arrived."""
        every, asked, zone = columns_of(estimator, table), estimator.context, estimator.timezone
        run_length, least = float(estimator.expected_run_length), float(estimator.min_effect)
        columns = ContextColumns.of(table, every, [asked] if isinstance(asked, str) else list(asked), zone)
        contexts = columns.of_rows(table.rows)
        days = len(np.unique(contexts.day))
        if days < _FEWEST_DAYS or len(table.rows) < _FEWEST_ROWS:
            raise InputError(
                f"context: the reference has {len(table.rows)} rows of {days} day{'s' if days > 1 else ''}; give "
                f"{_FEWEST_DAYS} days and {_FEWEST_ROWS} rows at least, and two weeks if days of the week differ.",
                parameter="X",
            )
        if columns.indexed and (needed := _ROWS_A_REGRESSOR * columns.regressors) > len(table.rows):
            raise InputError(
                f"{{parameter}}: its numbers and words ask for a reference of {needed:,} rows, and this one has "
                f"{len(table.rows):,}; give more rows, or fewer columns of the context.",
                parameter="context",
            )
        rows = table.rows[:, columns.watched]
        usable = contexts.kind >= 0
        known = rows[usable], contexts.take(usable)
        ranks: ContextRanks | IndexedRanks
        if columns.indexed:
            ranks = IndexedRanks.of(*known, columns.word_values, columns.count, clock=columns.clock)
        else:
            ranks = ContextRanks.of(*known, columns.count, clock=columns.clock)
        scores = ranks.of_reference(rows, contexts, usable)
        per_day = _rows_a_day(contexts)
        instants = columns.instants(table.rows)
        model = NullModel.of(scores, run_length, per_day, _pace(instants, per_day))
        positive = np.nanmin(rows, axis=0) >= 0.0
        about = model, reference_key(table.rows), positive, small_counts(rows), least
        return cls(columns, ranks, *about, StreamClock.of(instants))

    def empty(self, n_rows: int = 0) -> CauseState:
        """Return the state after `n_rows` rows, of which nothing is known."""
        return replace(CauseState.empty(self.model, n_rows), key=self.key)

    def take_in(self, state: CauseState, rows: np.ndarray) -> tuple[CauseState, StreamRows, list[PageEvent]]:
        """Return the state after more rows, the rows as they were judged, and what happened to pages in them."""
        cells = rows[:, self.columns.watched]
        scores, usual = self.ranks.judge(cells, self.columns.of_rows(rows), means=self.counts)
        usual = np.where(self.counts, np.maximum(usual, 0.0), usual)  # a line may fall below 0
        judged = StreamRows(np.where(np.isnan(cells), np.nan, scores), cells, usual, self.columns.instants(rows))
        watch = CauseWatch(self.model, state, judged, self.positive, self.counts, self.least)
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
