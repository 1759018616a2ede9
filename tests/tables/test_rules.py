"""Rules that nearly all rows of a table keep."""

import numpy as np
import pytest

from isopleth.tables.rules import InOrder, NotNegative, Times, Words, find_rules, rules_of_json, rules_to_json


def _has_a_sign(values):
    return any(isinstance(found.rule, NotNegative) for found in find_rules({"x": values}))


@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_a_column_that_runs_smoothly_through_zero_has_no_sign(decimals):
    values = np.round(np.random.default_rng(0).normal(20.0, 8.0, 5000), decimals)
    assert 0 < (values < 0.0).sum() < 100
    assert not _has_a_sign(values)


@pytest.mark.parametrize("decimals", [0, 12])
def test_wrong_signs_break_a_rule(decimals):
    values = np.round(np.random.default_rng(1).exponential(10.0, 3000), decimals)
    values[:20] = -1.0 - values[:20]
    assert _has_a_sign(values)


def test_a_code_below_zero_breaks_a_rule():
    ages = np.random.default_rng(2).integers(0, 90, 4000).astype(float)
    ages[::100] = -1.0
    assert _has_a_sign(ages)


def test_numbers_without_a_negative_one_keep_the_rule():
    assert _has_a_sign(np.random.default_rng(3).exponential(size=200))


def test_few_numbers_and_constant_columns_have_no_rule():
    counts = np.arange(29.0)
    many = np.arange(60.0)
    assert find_rules({"few": counts}) == []
    assert find_rules({"few": np.where(np.arange(60) < 29, many, np.nan)}) == []
    assert find_rules({"same": np.full(60, 7.0)}) == []
    enough = find_rules({"enough": np.where(np.arange(60) % 2, np.nan, many)})
    assert enough
    assert [type(found.rule) for found in enough] == [type(found.rule) for found in find_rules({"enough": many})]


def _orders(**cells):
    return {str(found.rule): found.broken.tolist() for found in find_rules(cells) if isinstance(found.rule, InOrder)}


def _ordered_and_delivered(swapped):
    rng = np.random.default_rng(4)
    ordered = 86_400.0 * rng.integers(19_000, 19_300, 400)
    delivered = ordered + 86_400.0 * (1.0 + rng.poisson(3, 400))
    ordered[swapped], delivered[swapped] = delivered[swapped], ordered[swapped]
    ordered[7] = np.nan
    return ordered, delivered


def test_an_order_of_times_or_numbers_that_few_rows_break_is_a_rule():
    swapped = [3, 50, 201]
    ordered, delivered = _ordered_and_delivered(swapped)
    assert _orders(ordered=Times(ordered, False), delivered=Times(delivered, False)) == {
        "delivered >= ordered": swapped
    }
    assert _orders(low=ordered, high=delivered) == {"high >= low": swapped}
    assert _orders(low=-delivered, high=-ordered) == {"high >= low": swapped}
    found = find_rules({"low": ordered, "high": delivered})
    assert rules_of_json(rules_to_json(found), "rules.json") == [each.rule for each in found]


def test_instants_are_not_compared_with_times_of_an_unknown_clock():
    ordered, delivered = _ordered_and_delivered([3, 50, 201])
    assert _orders(ordered=Times(ordered, True), delivered=Times(delivered, False)) == {}


def test_an_order_by_spread_or_by_range_is_no_rule():
    """Differences that run on through 0 are a tail, and of columns that hardly overlap each number is below each other."""
    rng = np.random.default_rng(5)
    low = rng.normal(0.0, 20.0, 3000)
    high = low + rng.normal(8.0, 3.0, 3000)
    assert 0 < (high < low).sum() < 30
    assert _orders(low=low, high=high) == {}
    few = rng.uniform(0.0, 10.0, 3000)
    few[:2] = 60.0
    assert _orders(few=few, many=rng.uniform(50.0, 100.0, 3000)) == {}


def test_parts_of_an_equation_have_no_order():
    rng = np.random.default_rng(6)
    price, count = rng.integers(100, 10_000, 500) / 100.0, rng.integers(1, 9, 500).astype(float)
    total = np.round(price * count, 2)
    total[:2] = price[:2] / 10.0
    assert _orders(price=price, count=count, total=total) == {}


def _words(column):
    levels, codes = np.unique(column, return_inverse=True)
    return Words(tuple(levels.tolist()), codes)


def test_rows_of_rare_words_count_in_what_is_said_of_words_that_tell_words():
    """Words of few rows are no evidence for a rule; but "in all rows" has to hold for them, too."""
    rng = np.random.default_rng(7)
    member = rng.integers(0, 150, 700)
    town = rng.choice(["Ayr", "Bath", "Cork"], 150)[member]
    counts = np.bincount(member, minlength=150)
    twice, thrice = (int(np.flatnonzero(counts[member] == k)[0]) for k in (2, 3))
    once = np.flatnonzero(counts == 1)
    for row in (twice, thrice):
        town[row] = "Bath" if town[row] == "Ayr" else "Ayr"
    cells = {"member": _words(np.char.mod("m%d", member)), "town": _words(town)}
    (found,) = (each for each in find_rules(cells) if str(each.rule) == "member -> town")
    assert len(found.broken) == 0
    assert len(found.exceptions) == 2
    assert thrice in found.exceptions
    assert member[twice] in member[found.exceptions]
    about = 700 - len(once)
    assert found.rows_about == about
    assert found.kept_in == (
        f"{about - 2} of the {about} rows whose member stands in several rows"
        if len(once)
        else f"{about - 2} of {about} rows"
    )
