"""Sums of columns that nearly all rows keep."""

import numpy as np
import pytest

from isopleth.tables.rules import AddsUp, find_rules, rules_of_json, rules_to_json
from isopleth.tables.sums import sums_of


def sums(cells):
    return [found for found in find_rules(cells) if isinstance(found.rule, AddsUp)]


def soils(seed, n=200):
    rng = np.random.default_rng(seed)
    parts = np.round(100.0 * rng.dirichlet([4.0, 3.0, 2.0], n), 1)
    parts[:, 2] = np.round(100.0 - parts[:, 0] - parts[:, 1], 1)
    return {"sand": parts[:, 0], "silt": parts[:, 1], "clay": parts[:, 2], "depth": np.round(rng.normal(50, 9, n))}


def spendings(seed, n=200):
    rng = np.random.default_rng(seed)
    parts = np.round(rng.lognormal(3.0, 0.5, (n, 3)), 2)
    return dict(zip(("food", "rent", "rest", "total"), [*parts.T, np.round(parts.sum(axis=1), 2)], strict=True))


@pytest.mark.parametrize(
    ("made", "name", "said"),
    [(soils, "silt", "clay + sand + silt = 100"), (spendings, "rent", "total = food + rent + rest")],
)
def test_parts_add_up_though_a_few_rows_break_it_and_the_missing_part_is_told(made, name, said):
    for seed in range(3):
        cells = made(seed)
        right = cells[name].copy()
        cells[name][[3, 50, 120]] += [12.0, -5.0, 200.0]
        (found,) = sums(cells)
        assert str(found.rule) == said
        assert found.broken.tolist() == [3, 50, 120]
        np.testing.assert_allclose(found.rule.solved_for(name, cells), right, atol=1e-9)
        order = np.random.default_rng(seed).permutation(200)
        (again,) = sums({key: cells[key][order] for key in reversed(cells)})
        assert again.rule == found.rule
        assert rules_of_json(rules_to_json([found]), "rules.json") == [found.rule]


def test_parts_that_are_rounded_one_by_one_add_up_nearly():
    shares = np.round(100.0 * np.random.default_rng(1).dirichlet([4.0, 3.0, 2.0, 5.0], 300))
    (found,) = sums(dict(zip("abcd", shares.T, strict=True)))
    assert str(found.rule) == "a + b + c + d = 100"
    assert found.rule.sum.within == 2.0


def test_columns_that_only_go_together_do_not_add_up():
    for seed in range(10):
        rng = np.random.default_rng(20 + seed)
        x = rng.normal(size=(150, 5))
        x[:, 3] = x[:, 0] + x[:, 1] + x[:, 2] + 0.4 * rng.normal(size=150)
        x[:, 4] = 3.0 - x[:, 0] + 0.3 * rng.normal(size=150)
        for digits in (1, 12):
            assert not sums(dict(zip("abcde", np.round(x, digits).T, strict=True)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1e200, 1e300])
def test_columns_that_hardly_vary_or_overflow_are_in_the_way_of_no_sum(size):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.0, 50.0, (2, 200)).round(1)
    far = size * rng.uniform(-1.0, 1.0, 200)
    half = np.arange(200) < 100
    once = {"d": np.where(half, 1.0, far), "e": np.where(half, far, np.nan), "f": np.where(half[::-1], 0.0, far)}
    found = sums_of({"a": a, "b": b, "c": (100.0 - a - b).round(1), "far": far} | once, 0.1)
    assert [str(each) for each in found] == ["a + b + c = 100"]
