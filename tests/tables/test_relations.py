"""Relations of columns: orders of times, and equations solved for each of their columns."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from isopleth.tables.relations import (
    Relation,
    broken_relations,
    equations_of,
    kept,
    numbers_of,
    relations_of,
    times_of,
)

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


def table(rows=60, seed=0):
    """Numbers with two decimals, whose parts have no relation."""
    rng = np.random.default_rng(seed)
    parts = {name: np.round(rng.uniform(1.0, 90.0, rows), 2) for name in "abc"}
    return parts | {"off": rng.integers(1, 7, rows) / 10.0}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda t: t["a"] + t["b"], "r = a + b"),
        (lambda t: np.round(t["a"] * t["b"], 2), "r = a x b"),
        (lambda t: np.round(t["a"] * t["b"] * (1.0 - t["off"]), 2), "r = a x b x (1 - off)"),
        (lambda t: t["a"] + 2.0 * t["b"], None),
    ],
)
def test_equations_are_found_whatever_the_order_and_with_few_errors(made, said):
    numbers = table()
    numbers["r"] = made(numbers)
    for names in ("abc", "cba"):
        ordered = {name: numbers[name] for name in ["r", *names, "off"]}
        found = {str(relation) for relation in equations_of(ordered)}
        assert found == (set() if said is None else {said if names == "abc" else _turned(said)})
    numbers["r"][7] += 3.0
    assert [str(each) for each in equations_of(numbers)] == ([] if said is None else [said])  # one row in sixty
    broken = broken_relations(numbers)
    assert {str(each): rows.tolist() for each, rows in broken.items()} == ({} if said is None else {said: [7]})
    numbers["r"][9] += 3.0  # two are more than one in fifty
    assert equations_of(numbers) == []
    few = {name: column[:19] for name, column in table().items()}
    assert equations_of(few | {"r": made(few)}) == []


def _turned(said):
    """The equation with its parts in the other order."""
    return said.replace("a + b", "b + a").replace("a x b", "b x a")


@pytest.mark.parametrize(("apart", "found"), [(0.0, True), (40.0, False)])
def test_an_order_is_told_where_independent_columns_would_break_it(apart, found):
    """Of columns that lie apart it says nothing."""
    rng = np.random.default_rng(1)
    low = rng.uniform(0.0, 30.0, 40)
    high = np.maximum(low, rng.uniform(0.0, 30.0, 40)) + apart
    assert [str(each) for each in relations_of({"low": low.tolist(), "high": high.tolist()})] == ["low <= high"] * found
    high[3] = low[3] - 1.0
    assert relations_of({"low": low.tolist(), "high": high.tolist()}) == []


def test_made_rows_have_the_results_of_their_parts():
    numbers = table(30)
    numbers["sum"] = numbers["a"] + numbers["b"]
    numbers["price"] = np.round(numbers["sum"] * numbers["c"], 2)
    relations = [Relation("price", "sum", "c", "x", 0.01), Relation("sum", "a", "b", "+", 0.01)]
    spoilt = numbers | {"sum": numbers["sum"] + 1.0, "price": numbers["price"] * 2.0}
    cells = {name: column.tolist() for name, column in spoilt.items()}
    cells["sum"][4], cells["a"][6] = None, None
    made = kept(pa.table(cells), relations)
    right = np.delete(np.arange(30), [4, 6])
    for name in ("sum", "price"):
        np.testing.assert_allclose(np.array(made.column(name).to_pylist(), dtype=float)[right], numbers[name][right])
    assert made.column("sum")[4].as_py() is None
    assert made.column("price")[4].as_py() == cells["price"][4]
    assert made.column("sum")[6].as_py() == cells["sum"][6]
    assert made.column("a").to_pylist() == cells["a"]


def test_made_rows_keep_a_discount():
    rng = np.random.default_rng(0)
    numbers = {"price": rng.uniform(1.0, 9.0, 40).round(2), "pieces": rng.integers(1, 9, 40).astype(float)}
    numbers["discount"] = rng.choice([0.0, 0.1, 0.2], 40)
    total = (numbers["price"] * numbers["pieces"] * (1.0 - numbers["discount"])).round(2)
    (relation,) = relations_of({name: column.tolist() for name, column in (numbers | {"total": total}).items()})
    assert set(relation.columns) == {*numbers, "total"}
    made = kept(pa.table(numbers | {"total": total * 2.0}), [relation])
    np.testing.assert_allclose(made.column("total").to_numpy(), total, atol=0.006)
