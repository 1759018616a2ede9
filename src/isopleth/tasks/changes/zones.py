"""Times of one zone as datetimes in UTC and the name of the zone, which a model file can hold, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import numpy as np

from isopleth.core.errors import InputError
from isopleth.tables.zones import zone_named


def stored_times(times: np.ndarray | None) -> tuple[np.ndarray | None, str | None]:
    """Return datetimes with one zone in UTC, and the name of the zone; other times as they are, or as text."""
    if times is None or times.dtype.kind != "O" or not isinstance(times[0], datetime):
        return times, None
    cells = times.tolist()
    zones = {_name_of(cell.tzinfo) for cell in cells}
    zone = zones.pop() if len(zones) == 1 else None
    if zone is None:  # ISO 8601, which keeps offsets of all kinds
        return np.array([str(cell) for cell in cells], dtype=object), None
    if any(getattr(cell, "nanosecond", 0) for cell in cells):
        return np.array([str(cell) for cell in cells], dtype=object), None
    moments = [cell.astimezone(UTC).replace(tzinfo=None) for cell in cells]
    return np.array(moments, dtype="datetime64[us]"), zone


def in_zone(times: np.ndarray, zone: str) -> np.ndarray:
    """Return datetimes in UTC as objects of a zone."""
    clock = _zone_of(zone)
    moments = times.astype("datetime64[us]").tolist()
    return np.array([moment.replace(tzinfo=UTC).astimezone(clock) for moment in moments], dtype=object)


def _name_of(zone: tzinfo | None) -> str | None:
    """Return the name of a zone from which it can be made again; None if there is none."""
    if zone is None:
        return None
    named: Any = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(named, str):
        return named
    offset = zone.utcoffset(None)
    return None if offset is None else f"{offset.total_seconds():+.0f}"


def _zone_of(name: str) -> tzinfo:
    """Return the zone of a name, or of an offset in seconds."""
    if name[0] in "+-":
        return timezone(timedelta(seconds=int(name)))
    zone = zone_named(name)
    if zone is None:
        raise InputError(f"the times are of the zone {name!r}, which this machine does not know; install tzdata.")
    return zone
