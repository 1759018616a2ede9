"""Columns of text or numbers that hold times: dates of many forms, days as whole numbers, and seconds since 1970."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import Hint, InputError, Message
from isopleth.tables.dates import (
    CLOCK,
    SLASHES,
    Moment,
    calendar_day,
    calendar_form,
    calendar_share,
    is_season,
    moment_of,
    order_of_days,
)
from isopleth.tables.plain_numbers import FIRST_CELLS
from isopleth.tables.text_column import NEARLY_ALL, TextColumn, TypedCells
from isopleth.tables.unread import UnreadCells

_LEAST_MONTH = 100_000  # smallest whole number that may be a month or a day, as 202401 or 20240131
# Seconds since 1970 of the years 1980 and 2100: as milliseconds they are other numbers.
_FIRST_INSTANT, _LAST_INSTANT = 315_532_800, 4_102_444_800


def as_days(name: str, values: Any, wanted: str | None) -> TypedCells:
    """Return whole numbers that are days, such as 20240131, or months, such as 202401, as times; other numbers as they are."""
    return TypedCells(values) if wanted is not None else days_of(name, values) or TypedCells(values)


def instants_of(values: Any) -> Any:
    """Return the times in UTC that an Arrow array counts in seconds or milliseconds since 1970; None if it does not.

    All must be in the years 1980 to 2099 by one of these units.
    """
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return None
    counts = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    known = counts[~np.isnan(counts)]
    for unit in (1, 1000):
        if len(known) and known.min() >= _FIRST_INSTANT * unit and known.max() < _LAST_INSTANT * unit:
            micro = np.rint(np.where(np.isnan(counts), 0.0, counts) * (1e6 / unit)).astype(np.int64)
            return pa.array(micro, pa.timestamp("us", "UTC"), mask=np.isnan(counts))
    return None


def days_of(name: str, values: Any, *, asked: bool = False) -> TypedCells | None:
    """Return times, and what is said of them, where nearly all numbers of an Arrow array are days or months; None for others.

    If days are `asked` for, few numbers are enough, and seconds or milliseconds since 1970 are times, too.
    """
    if asked and (instants := instants_of(values)) is not None:
        return TypedCells(instants)
    if pa.types.is_floating(values.type):  # gaps make floats of the whole numbers of a frame
        with suppress(pa.ArrowInvalid):
            whole = compute.if_else(compute.is_nan(values), None, values).cast(pa.int64())
            return days_of(name, whole, asked=asked)
        return None
    known = values.drop_null()
    first = known.slice(0, FIRST_CELLS)
    if not pa.types.is_integer(values.type) or not len(first) or compute.max(first).as_py() < _LEAST_MONTH:
        return None
    if not calendar_share(first.to_pylist()):
        return None
    counts = compute.value_counts(known)
    numbers, weights = counts.field("values").to_pylist(), counts.field("counts").to_numpy(zero_copy_only=False)
    days = [calendar_day(number) for number in numbers]
    read = np.array([day is not None for day in days], dtype=bool)
    form = calendar_form([number for number, day in zip(numbers, days, strict=True) if day is not None])
    if (form is None and not asked) or weights[read].sum() < NEARLY_ALL * weights.sum():
        return None
    times = pa.array(
        [None if day is None else datetime(day.year, day.month, day.day) for day in days], pa.timestamp("us")
    )
    found = times.take(compute.index_in(values, value_set=counts.field("values")))
    what = "days" if numbers[0] > 999_999 else "months"
    text = f"{{column}} holds {what} written as whole numbers, such as {{value}}, and is taken as times"
    hint = Hint("{numeric} takes them as numbers", numeric=[name])
    note = Message(text, column=name, value=known[0].as_py(), hint=hint)
    rows = np.flatnonzero(np.asarray(compute.and_(compute.is_null(found), compute.is_valid(values))))
    unread = (
        UnreadCells(rows, tuple(str(values[row].as_py()) for row in rows.tolist()), "times", asked)
        if len(rows)
        else None
    )
    return TypedCells(found, unread, notes=(note,))


def read_times(column: TextColumn) -> TypedCells | None:
    """Return times where nearly all cells are times in one form, None otherwise; two forms in one column are refused."""
    texts = column.texts
    if not column.is_likely(
        lambda word: (
            any(map(str.isdigit, word))  # most words are no times, and are soon known by this
            and any(moment_of(word, order) is not None for order in (None, True, False))
        )
    ):
        return None
    order = _order(column)
    moments = [moment_of(word, order) for word in texts.words]
    counts: Counter[tuple[str, bool]] = Counter()
    for moment, count in zip(moments, texts.counts.tolist(), strict=True):
        if moment is not None:
            counts[moment.kind] += count
    if not counts or _are_seasons(texts.words, moments):
        return None
    kind = counts.most_common(1)[0][0]
    read = np.array([moment is not None and moment.kind == kind for moment in moments], dtype=bool)
    _, share = column.known(read)
    if share < NEARLY_ALL and not column.asked:
        some = np.array([moment is not None for moment in moments], dtype=bool)
        if column.known(some)[1] < 1.0:
            return None
        firsts = {m.kind: texts.first_row(i) for i, m in reversed(list(enumerate(moments))) if m is not None}
        rows = sorted(firsts.values())
        raise _two_formats(column.name, [(row, texts.words[texts.codes[row]]) for row in rows], column.place)
    if kind[0] == SLASHES:
        column.day_first[column.name] = bool(order)
    found = [moment.value if kept and moment is not None else None for moment, kept in zip(moments, read, strict=True)]
    what = "times"
    if kind[0] == SLASHES and any(order_of_days(texts.words[i]) not in (None, order) for i in np.flatnonzero(~read)):
        what = f"dates with {'days before months' if order else 'months before days'}"
    return column.result(_arrow_times(found, kind), read, what)


def _arrow_times(values: Sequence[Any], kind: tuple[str, bool]) -> Any:
    """Return times as an Arrow array: of day, or moments with their common offset, or UTC if they have several."""
    form, zoned = kind
    if form == CLOCK:
        return pa.array(values, pa.time64("us"))
    offsets = {value.strftime("%z") for value in values if value is not None}
    offset = next(iter(offsets))
    zone = None if not zoned else f"{offset[:3]}:{offset[3:5]}" if len(offsets) == 1 and offset != "+0000" else "UTC"
    return pa.array(values, pa.timestamp("us", zone))


def _order(column: TextColumn) -> bool | None:
    """Return whether days come before months in dates with slashes: as is known, or as nearly all dates show."""
    known = column.day_first.get(column.name)
    if known is not None:
        return known
    votes: dict[bool, int] = {True: 0, False: 0}
    firsts: dict[bool, int] = {}
    for i, (word, count) in enumerate(zip(column.texts.words, column.texts.counts.tolist(), strict=True)):
        vote = order_of_days(word)
        if vote is not None:
            votes[vote] += count
            firsts.setdefault(vote, i)
    order = votes[True] > votes[False]
    if min(votes.values()) > (1.0 - NEARLY_ALL) * sum(votes.values()):
        rows = sorted(column.texts.first_row(i) for i in firsts.values())
        found = [(row, column.texts.words[column.texts.codes[row]]) for row in rows]
        raise _two_formats(column.name, found, column.place)
    return order if any(votes.values()) else None


def _are_seasons(words: Sequence[str], moments: Sequence[Moment | None]) -> bool:
    """Tell whether what looks like months are years that follow each other, as in 2011-12."""
    months = [
        word for word, moment in zip(words, moments, strict=True) if moment is not None and moment.form == "2024-01"
    ]
    return bool(months) and all(map(is_season, months))


def _two_formats(name: str, found: list[tuple[int, str]], place: Callable[[int], str]) -> InputError:
    """Return the error of a column with dates in two formats."""
    (row, word), (other_row, other) = found[:2]
    return InputError(
        f"column {name!r} has dates in two formats, {word!r} in {place(row)} and {other!r} in {place(other_row)}; write all of "
        "them as 2024-01-31, or leave the column out."
    )
