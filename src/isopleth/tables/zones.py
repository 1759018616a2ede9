"""Time zones by their names."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo

from isopleth.core.errors import InputError


def zone_named(name: str) -> tzinfo | None:
    """Return the zone of a name of the database of time zones, such as Asia/Tokyo; None if it is unknown."""
    from zoneinfo import ZoneInfo  # here, since most tables have no zones

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name of a file, or the name of a folder
        return None


def asked_zone(name: str) -> tzinfo:
    """Return the zone that the parameter `timezone` names."""
    zone = zone_named(name)
    if zone is None:
        text = f"{{parameter}} = {name!r}: expected the name of a time zone, such as 'Europe/Berlin'."
        raise InputError(text, parameter="timezone")
    return zone


def zone_of(name: str) -> tzinfo:
    """Return a zone by its name, or by its offset, such as +09:00; UTC if it is unknown."""
    offset = re.fullmatch(r"(?:UTC)?([-+])(\d\d):?(\d\d)", name)
    if offset:
        minutes = 60 * int(offset[2]) + int(offset[3])
        return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    return zone_named(name) or UTC
