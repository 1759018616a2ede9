"""Times as numbers for axes, and as text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from isopleth.tables.time_text import places_of_times, seconds_of, time_text

ROME = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "times",
    [
        np.array(["1970-01-02", "1970-01-03T12"], dtype="datetime64[h]"),
        np.array(["1970-01-02", "1970-01-03 12:00"], dtype=object),
        np.array([date(1970, 1, 2), datetime(1970, 1, 3, 12)], dtype=object),
        np.array([datetime(1970, 1, 2, tzinfo=ROME), datetime(1970, 1, 3, 12, tzinfo=ROME)], dtype=object),
    ],
)
def test_times_stand_at_the_seconds_that_their_clock_shows(times):
    places, dates = places_of_times(times)
    assert dates
    assert places.tolist() == [86_400.0, 86_400.0 * 2.5]


def test_times_of_two_zones_stand_in_utc():
    moment = datetime(1970, 1, 2, 12, tzinfo=UTC)
    places, dates = places_of_times(np.array([moment, moment.astimezone(ROME)], dtype=object))
    assert dates
    assert places[0] == places[1] == 86_400.0 * 1.5


def test_numbers_are_no_dates():
    places, dates = places_of_times(np.array([1871, 1872]))
    assert not dates
    assert places.tolist() == [1871.0, 1872.0]


@pytest.mark.parametrize("text", ["1969-12-31 23:59:59.25", "2024-02-29", "2024-02-29 00:00:10", "1700-01-01 10:00:00"])
def test_text_of_seconds_is_the_time_again(text):
    assert time_text(float(seconds_of(np.datetime64(text)))) == text
