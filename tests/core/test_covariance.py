"""Shrunk covariances, held against scikit-learn and slow forms."""

import numpy as np
import pytest
from sklearn.covariance import OAS, ledoit_wolf_shrinkage

from isopleth.core.covariance import ledoit_wolf, oracle_shrinkage, row_space

ROWS = np.random.default_rng(0).normal(size=(25, 6)) @ np.diag([1, 2, 3, 1, 1, 0.5])
ROWS -= ROWS.mean(axis=0)
EQUAL = np.full(25, 1 / 25)


def test_the_rules_are_those_of_scikit_learn():
    S, delta = ledoit_wolf(ROWS, EQUAL)
    assert delta == pytest.approx(ledoit_wolf_shrinkage(ROWS, assume_centered=True))
    plain = ROWS.T @ ROWS / 25
    np.testing.assert_allclose(S, (1 - delta) * plain + delta * np.trace(plain) / 6 * np.eye(6))
    assert oracle_shrinkage(plain, 25) == pytest.approx(OAS(assume_centered=True).fit(ROWS).shrinkage_)


def test_rows_of_a_weight_are_repeated_rows_if_the_count_says_so():
    copies = np.arange(25) % 3 + 1
    twice = np.repeat(ROWS - copies @ ROWS / copies.sum(), copies, axis=0)
    again = ROWS - copies @ ROWS / copies.sum()
    found = ledoit_wolf(again, copies / copies.sum(), float(copies.sum()))
    expected = ledoit_wolf(twice, np.full(len(twice), 1 / len(twice)))
    np.testing.assert_allclose(found[0], expected[0])
    assert found[1] == pytest.approx(expected[1])


def test_units_scale_the_covariance_and_many_rows_in_one_direction_are_hardly_shrunk():
    S, delta = ledoit_wolf(1e3 * ROWS, EQUAL)
    np.testing.assert_allclose(S, 1e6 * ledoit_wolf(ROWS, EQUAL)[0])
    line = np.random.default_rng(1).normal(size=(400, 1)) @ np.ones((1, 6))
    assert ledoit_wolf(line, np.full(400, 1 / 400))[1] < 0.05 < delta
    assert ledoit_wolf(ROWS[:2] - ROWS[:2].mean(axis=0), np.full(2, 0.5))[1] <= 1.0


def test_a_correlation_is_shrunk_by_the_formula_of_the_paper():
    R = np.corrcoef(ROWS.T)
    square, p, n = np.trace(R @ R), 6, 25
    rho = ((1 - 2 / p) * square + p**2) / ((n + 1 - 2 / p) * (square - p**2 / p))
    assert oracle_shrinkage(R, n, terms=1.0) == pytest.approx(min(rho, 1))
    assert oracle_shrinkage(np.eye(3), 10, terms=1.0) == 1.0


def test_coordinates_in_the_space_of_the_rows_give_the_covariance_of_all_columns():
    few = ROWS[:4] - ROWS[:4].mean(axis=0)
    share, basis = np.full(4, 0.25), row_space(few)
    S, delta = ledoit_wolf(few, share)
    inner, again = ledoit_wolf(few @ basis, share, columns=6)
    level = np.trace(few.T @ few) / 4 / 6
    assert again == pytest.approx(delta)
    np.testing.assert_allclose(basis @ inner @ basis.T + delta * level * (np.eye(6) - basis @ basis.T), S, atol=1e-12)
    assert row_space(ROWS) is None
