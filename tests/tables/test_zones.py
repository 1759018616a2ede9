"""Time zones by their names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from isopleth.core.errors import InputError
from isopleth.tables.zones import asked_zone, zone_named, zone_of

NO_ZONES = ["Nowhere/Else", "Europe", "../etc/passwd", "", "UTC\x00"]


def test_a_zone_has_a_name():
    assert zone_named("Asia/Tokyo") == zone_of("Asia/Tokyo") == asked_zone("Asia/Tokyo")
    assert datetime(2024, 7, 1, tzinfo=zone_named("Asia/Tokyo")).utcoffset() == timedelta(hours=9)


@pytest.mark.parametrize("name", NO_ZONES)
def test_what_no_zone_is_called_is_refused_with_one_sentence_or_stands_for_utc(name):
    assert zone_named(name) is None
    assert zone_of(name) is UTC
    with pytest.raises(InputError) as refusal:
        asked_zone(name)
    assert str(refusal.value) == f"timezone = {name!r}: expected the name of a time zone, such as 'Europe/Berlin'."


@pytest.mark.parametrize(("name", "minutes"), [("+09:00", 540), ("UTC-0330", -210), ("-00:00", 0)])
def test_offsets_are_zones_too(name, minutes):
    assert zone_of(name).utcoffset(None) == timedelta(minutes=minutes)
