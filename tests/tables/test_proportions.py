"""Products with a constant factor, and the time between two columns, that nearly all rows keep."""

import numpy as np
import pytest

from isopleth.tables.rules import Times, find_rules, rules_of_json, rules_to_json

DAY = 86_400.0


def _equations(**cells):
    return {str(found.rule): found.broken.tolist() for found in find_rules(cells) if found.rule.kind == "equation"}


def _orders(n=600, seed=11):
    rng = np.random.default_rng(seed)
    return rng.integers(3, 900, n).astype(float), rng.choice([7.5, 12.25, 19.0, 33.4], n)


@pytest.mark.parametrize(
    ("factor", "decimals", "said"),
    [
        (0.01, 2, "fee = weight x rate / 100"),
        (1 / 12, 2, "fee = weight x rate / 12"),
        (0.21, 2, "fee = 0.21 x weight x rate"),
    ],
)
def test_a_product_with_a_constant_factor_is_a_rule(factor, decimals, said):
    weight, rate = _orders()
    fee = np.round(weight * rate * factor, decimals)
    fee[[5, 77, 301]] *= 1.06
    found = find_rules({"weight": weight, "rate": rate, "fee": fee})
    assert _equations(weight=weight, rate=rate, fee=fee) == {said: [5, 77, 301]}
    assert rules_of_json(rules_to_json(found), "rules.json") == [each.rule for each in found]


@pytest.mark.parametrize("factor", [0.07, 2.205, 1000.0, -40.0])
def test_a_multiple_of_a_column_is_a_rule(factor):
    rng = np.random.default_rng(12)
    base = np.round(rng.lognormal(5.0, 0.7, 500), 2)
    tax = np.round(base * factor, 2)
    tax[[9, 400]] *= 1.05
    (broken,) = _equations(base=base, tax=tax).values()
    assert broken == [9, 400]


def test_equations_that_follow_from_others_are_not_said_again():
    """Of tax = 0.07 x base and sum = base + tax, base = sum / 1.07 says nothing new, and would count errors of tax twice."""
    base = np.round(np.random.default_rng(13).lognormal(5.0, 0.7, 500), 2)
    tax = np.round(base * 0.07, 2)
    found = _equations(base=base, tax=tax, sum=np.round(base + tax, 2))
    assert set(found) == {"sum = base + tax", "tax = 0.07 x base"}


@pytest.mark.parametrize("emptied", [np.nan, 0.0])
def test_a_product_is_found_in_any_order_of_rows_that_say_nothing_of_it_in_half(emptied):
    rng = np.random.default_rng(16)
    net = np.round(rng.lognormal(5.0, 0.7, 400), 2)
    net[rng.random(400) < 0.5] = emptied
    vat = np.round(net * 0.19, 2)
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(400)
        assert _equations(net=net[order], vat=vat[order]) == {"vat = 0.19 x net": []}


def test_columns_that_are_nearly_proportional_have_no_rule():
    rng = np.random.default_rng(14)
    size = np.round(rng.lognormal(3.0, 0.5, 2000), 1)
    assert _equations(size=size, mass=np.round(size * 0.3 * rng.normal(1.0, 0.02, 2000), 1)) == {}
    few, zeros = rng.integers(0, 3, 2000).astype(float), np.where(rng.random(2000) < 0.9, 0.0, size)
    assert _equations(few=few, zeros=zeros, size=size, more=rng.integers(0, 4, 2000).astype(float)) == {}
    assert _equations(size=size, copy=size.copy()) == {}


@pytest.mark.parametrize(
    ("unit", "more", "said"),
    [(DAY, 0.0, "(in days)"), (DAY, 1.0, "+ 1 (in days)"), (3600.0, 0.0, "(in hours)")],
)
def test_the_time_between_two_columns_is_a_rule(unit, more, said):
    rng = np.random.default_rng(15)
    start = DAY * rng.integers(19_000, 19_400, 400)
    length = 2.0 + rng.poisson(4, 400)
    end, counted = start + unit * length, length + more
    counted[[8, 120]] += 5.0
    start[3] = np.nan
    cells = {"begin": Times(start, False, DAY), "end": Times(end, False, DAY), "length": counted}
    assert _equations(**cells) == {f"length = end - begin {said}": [8, 120]}
    (found,) = (each.rule for each in find_rules(cells) if each.rule.kind == "equation")
    np.testing.assert_allclose(found.solved_for("end", cells)[:3], end[:3])
    assert rules_of_json(rules_to_json(find_rules(cells)), "rules.json") == [each.rule for each in find_rules(cells)]
    assert _equations(begin=Times(start, True), end=Times(end, False), length=counted) == {}
    assert _equations(begin=cells["begin"], end=cells["end"], length=rng.permutation(length)) == {}
