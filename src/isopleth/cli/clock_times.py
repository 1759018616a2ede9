"""Times of a file by the clock on which they are told: of the zone that is asked for, else of the offsets in the file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from isopleth.core.errors import InputError
from isopleth.tables.time_text import as_datetime
from isopleth.tables.zones import asked_zone

# Ends of times in UTC, which have no other offset.
_IN_UTC = ("Z", "z", "UTC", "+00:00", "+0000")


def on_clock(times: np.ndarray, words: Sequence[str | None] | None, zone: str | None) -> np.ndarray:
    """Return datetimes by the clock of a zone, else by the offsets in their words; other times as they are.

    A file whose offsets differ, as before and after a change to summer time, is read as instants in UTC. Times without a zone
    are in UTC if one is asked for.
    """
    cells = times.astype("datetime64[us]").tolist() if times.dtype.kind == "M" else times.tolist()
    if not isinstance(cells[0], datetime):
        if zone is not None:
            text = "{parameter} is for datetimes; the column of times holds others."
            raise InputError(text, parameter="timezone")
        return times
    if zone is not None:
        clock = asked_zone(zone)
        aware = (cell if cell.tzinfo else cell.replace(tzinfo=UTC) for cell in cells)
        return np.array([cell.astimezone(clock) for cell in aware], dtype=object)
    if words is None or cells[0].utcoffset() is None or any(cell.utcoffset() for cell in cells):
        return times
    if all(word is not None and word.rstrip().endswith(_IN_UTC) for word in words):
        return times
    own = [_datetime_in(word) for word in words]
    shown = [
        cell if one is None or one.tzinfo is None else cell.astimezone(one.tzinfo)
        for cell, one in zip(cells, own, strict=True)
    ]
    return np.array(shown, dtype=object)


def _datetime_in(word: str | None) -> datetime | None:
    """Return the time in a cell of text; None where it is not clear."""
    try:
        return None if word is None else as_datetime(word)
    except ValueError:
        return None
