"""Relations of columns: orders of times, and equations solved for each of their columns."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest

from isopleth.tables.relations import Relation, numbers_of, relations_of, times_of

FIRST = date(2024, 1, 1)
OPENED = [FIRST + timedelta(days=i % 11) for i in range(30)]


def test_an_order_of_dates_is_found_beside_gaps():
    closed = [None if i == 4 else day + timedelta(days=1 + i % 7) for i, day in enumerate(OPENED)]
    (found,) = relations_of({"opened": OPENED, "closed": closed})
    assert str(found) == "opened <= closed"
    assert found.columns == ("opened", "closed")
    closed[9] = OPENED[9] - timedelta(days=3)
    assert relations_of({"opened": OPENED, "closed": closed}) == []


def test_times_are_seconds_and_columns_of_several_kinds_are_none():
    east = timezone(timedelta(hours=2))
    columns = {
        "zoned": [datetime(1970, 1, 1, 3, tzinfo=east), float("nan")],
        "wait": [timedelta(minutes=2), None],
        "mixed": [FIRST, 3.0],
        "none": [None, float("nan")],
    }
    found = times_of(columns)
    assert list(found) == ["zoned", "wait"]
    np.testing.assert_array_equal(found["zoned"], [3600.0, np.nan])
    np.testing.assert_array_equal(found["wait"], [120.0, np.nan])
    numbers = numbers_of({"a": [1, None, float("nan")], "truth": [True, False, True], "none": [None] * 3})
    assert list(numbers) == ["a"]
    np.testing.assert_array_equal(numbers["a"], [1.0, np.nan, np.nan])


@pytest.mark.parametrize("relation", [Relation("r", "a", "b", "+"), Relation("r", "a", "b", "x", 0.01, "d")], ids=str)
def test_an_equation_says_each_of_its_columns(relation):
    rng = np.random.default_rng(0)
    numbers = {name: rng.uniform(1.0, 9.0, 20) for name in "ab"} | {"d": rng.uniform(0.1, 0.6, 20)}
    numbers["r"] = (
        numbers["a"] + numbers["b"] if relation.sign == "+" else numbers["a"] * numbers["b"] * (1 - numbers["d"])
    )
    for name in relation.columns:
        within = 0.006 if name == "r" else 1e-9
        np.testing.assert_allclose(relation.solved_for(name, numbers), numbers[name], atol=within)
    assert relation.broken(numbers) == 0
    numbers["r"][3] += 0.5
    numbers["r"][7] = np.nan
    assert np.flatnonzero(relation.breaks(numbers)).tolist() == [3]
