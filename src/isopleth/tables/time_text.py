"""Times and lengths of time as text, and text as a time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from datetime import time as clock
from typing import Any

import numpy as np

from isopleth.tables.dates import datetime_of, moment_of

# Units of a length of time, longest first, and the seconds that each has.
_UNITS = (("years", 31_556_952.0), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def moment(word: str) -> datetime | None:
    """Return the time that a single word says; None if it is no time, or the day may be the month."""
    found = moment_of(word)
    if found is None:
        return None
    return as_datetime(found.value)


def as_datetime(cell: Any) -> datetime | None:
    """Return a date, time, datetime or ISO 8601 text as a datetime; None for anything else."""
    if isinstance(cell, str):
        found = moment_of(cell.strip())
        return datetime.fromisoformat(cell.strip()) if found is None else as_datetime(found.value)
    return datetime_of(cell) if isinstance(cell, (date, clock)) else None


def places_of_times(times: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return times on an axis, by their own clock if all have one offset, else in UTC, and whether they are in seconds."""
    if times.dtype.kind in "iuf":
        return times.astype(np.float64), False
    if times.dtype.kind == "M":
        return seconds_of(times), True
    moments = [as_datetime(cell) for cell in times.tolist()]
    if any(moment is None for moment in moments):
        return np.array([float(cell) for cell in times.tolist()]), False
    known = [moment for moment in moments if moment is not None]
    one_clock = len({moment.utcoffset() for moment in known}) <= 1
    own = [moment.replace(tzinfo=UTC) if one_clock or moment.tzinfo is None else moment for moment in known]
    return np.array([moment.timestamp() for moment in own]), True


def seconds_of(times: Any) -> np.ndarray:
    """Return datetime64 as seconds since 1970."""
    return np.asarray(times.astype("datetime64[us]").astype(np.int64) / 1e6)


def time_text(seconds: float) -> str:
    """Return seconds since 1970 as text."""
    text = str(np.datetime64(round(seconds * 1e6), "us")).replace("T", " ")
    return text.rstrip("0").removesuffix(".").removesuffix(" 00:00:00") if "." in text else text


def time_words(time: Any) -> str:
    """Return a time in the words of its table: datetime64 without a fraction of zeros, others as they are."""
    if isinstance(time, np.datetime64) and time.astype("datetime64[us]") != time:
        return str(time).replace("T", " ")
    return time_text(float(seconds_of(time))) if isinstance(time, np.datetime64) else str(time)


def length_text(seconds: float) -> str:
    """Return a length of time in the largest unit of which it has at least two."""
    name, unit = next(((name, unit) for name, unit in _UNITS if abs(seconds) >= 2.0 * unit), _UNITS[-1])
    number = f"{seconds / unit:.3g}"
    return f"{number} {name.removesuffix('s') if number == '1' else name}"
