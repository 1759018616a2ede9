"""Rules that nearly all rows of a table keep."""

import numpy as np
import pytest

from isopleth.tables.rules import NotNegative, find_rules


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
