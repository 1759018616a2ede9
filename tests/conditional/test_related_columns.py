"""Laws of wide tables have the columns as inputs that say most about theirs, in whatever order the table has them."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth import CellwiseDetector
from isopleth.conditional import related_columns as module
from isopleth.conditional.related_columns import dependence, related_columns


def mixed(n=600, seed=0):
    """Rows of six numbers and three words: 1 follows 0, 2 the distance of 0 from the middle, word 7 the number 3 and word 6."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6))
    Z[:, 1] = 0.8 * Z[:, 0] + 0.6 * Z[:, 1]
    Z[:, 2] = np.abs(Z[:, 0]) - 0.8 + 0.3 * Z[:, 2]
    town = rng.integers(0, 12, n)
    state = np.where(rng.random(n) < 0.9, town // 4, rng.integers(0, 3, n))
    Z[:, 3] += 2.0 * (town % 3)
    return np.column_stack([Z, town, state, rng.integers(0, 5, n)]).astype(float)


SIZES = (12, 3, 5)


def test_bent_lines_words_and_numbers_are_seen_and_chance_is_not():
    found = dependence(mixed(), 6, SIZES)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    np.fill_diagonal(found, 0.0)
    depends = {(0, 1), (0, 2), (3, 6), (6, 7)}
    assert all(found[pair] > 0.15 for pair in depends)
    others = [found[i, j] for i in range(9) for j in range(i) if (j, i) not in depends | {(1, 2)}]
    assert max(others) < 0.05


def test_words_that_tell_each_other_have_all_of_the_dependence_and_gaps_none():
    rows = mixed()
    rows[:, 7] = rows[:, 6] // 4
    assert dependence(rows, 6, SIZES)[6, 7] == pytest.approx(1.0, abs=0.05)
    rows[:, 1], rows[::2, 0] = rows[:, 0], np.nan
    assert 0.4 < dependence(rows, 6, SIZES)[0, 1] <= 1.0
    rows[:, 0] = np.nan
    assert not dependence(rows, 6, SIZES)[0].any()


def test_narrow_tables_have_all_columns_and_wide_ones_the_most_related(monkeypatch):
    rows, order = mixed(), np.random.default_rng(1).permutation(9)
    assert [sorted(each) for each in related_columns(rows, 6, SIZES, order)] == [
        [k for k in range(9) if k != j] for j in range(9)
    ]
    monkeypatch.setattr(module, "_WIDE", 8)
    monkeypatch.setattr(module, "_INPUTS", 2)
    found = related_columns(rows, 6, SIZES, order)
    assert {1, 2} == set(found[0])
    assert 6 in found[3]
    assert all(list(each) == [k for k in order if k in each] for each in found)


def wide(n=300, d=40, seed=0):
    """Columns that follow four factors, with wrong cells in rows 5 and 9."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + 0.2 * rng.normal(size=(n, d))
    table[5, 7] += 4.0 * table[:, 7].std()
    table[9, 30] -= 4.0 * table[:, 30].std()
    return table


@pytest.fixture(scope="module")
def judged():
    return CellwiseDetector(n_estimators=8, random_state=0).fit(wide())


def test_wrong_cells_of_a_wide_table_are_found(judged):
    found = judged.cells()
    assert {(i, int(j)) for i, j in np.argwhere(found.flagged)} == {(5, 7), (9, 30)}
    assert all(len(law.inputs.columns) == 16 for law in judged._model.laws.laws)


def test_the_order_of_the_columns_of_a_wide_table_changes_nothing(judged):
    order = np.random.default_rng(2).permutation(40)
    moved = CellwiseDetector(n_estimators=8, random_state=0).fit(wide()[:, order])
    np.testing.assert_allclose(moved.cell_scores_, judged.cell_scores_[:, order], atol=1e-6)


def test_rounding_errors_change_nothing_in_a_wide_table_with_copies_of_columns():
    table = wide()
    table[:, 20:] = table[:, :20]
    one = CellwiseDetector(n_estimators=4, random_state=0).fit(table).cell_scores_
    moved = table * (1.0 + 1e-13 * np.random.default_rng(3).normal(size=table.shape))
    np.testing.assert_allclose(CellwiseDetector(n_estimators=4, random_state=0).fit(moved).cell_scores_, one, atol=1e-6)


def test_new_rows_of_a_wide_table_are_judged_as_part_of_it(judged):
    scores = judged.score_cells(wide()[:20])
    assert scores.argmax(axis=1)[[5, 9]].tolist() == [7, 30]
