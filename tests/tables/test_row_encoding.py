"""Rows with words and missing cells as complete rows of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from isopleth.tables.kinds import Column
from isopleth.tables.row_encoding import MOST_WORDS, RowEncoding
from isopleth.tables.schema import Schema


def table(*kinds, words=()):
    names = [f"c{j}" for j in range(len(kinds))]
    columns = tuple(
        Column(name, kind, levels=tuple(words) if kind == "categorical" else ())
        for name, kind in zip(names, kinds, strict=True)
    )
    return names, Schema(columns, {}, (), True, len(columns))


def test_complete_numbers_are_left_as_they_are():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    assert RowEncoding.of(rows, ["a", "b", "c"])(rows) is rows


def test_two_words_are_two_squared_units_apart_on_average():
    rng = np.random.default_rng(1)
    codes = rng.choice(4, 400, p=[0.4, 0.3, 0.2, 0.1]).astype(float)[:, None]
    names, columns = table("categorical", words="abcd")
    found = RowEncoding.of(codes, names, columns)(codes)
    assert pdist(found, "sqeuclidean").mean() == pytest.approx(2.0, rel=0.01)


def test_a_missing_number_is_at_the_median_and_apart_as_a_word_is():
    rows = np.array([1.0, 2.0, 4.0, np.nan, np.nan])[:, None]
    found = RowEncoding.of(rows, ["a"])(rows)
    np.testing.assert_allclose(found[:, 0], [1.0, 2.0, 4.0, 2.0, 2.0])
    assert pdist(found[:, 1:], "sqeuclidean").mean() == pytest.approx(2.0 * 5 / 4)  # of pairs of different rows
    blind = RowEncoding.of(rows, ["a"], compared=False)(rows)
    np.testing.assert_allclose(blind, [[1.0], [2.0], [4.0], [2.0], [2.0]])


def test_a_missing_word_is_at_the_mean_of_the_known_ones_where_gaps_are_not_compared():
    codes = np.array([0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 1.0, np.nan])[:, None]
    names, columns = table("categorical", words="abc")
    found = RowEncoding.of(codes, names, columns, compared=False)(codes)
    np.testing.assert_allclose(found[-1], found[:-1].mean(axis=0))


def test_columns_come_in_the_order_of_the_table():
    names, columns = table("categorical", "numeric", "categorical", words="ab")
    rows = np.array([[5.0, 0, 1], [6.0, 1, 0], [7.0, 0, 0], [8.0, 1, 1]])  # numbers first
    encoding = RowEncoding.of(rows, names, columns)
    found = encoding(rows)
    np.testing.assert_array_equal(found[:, encoding.blocks[1]], rows[:, :1])
    np.testing.assert_array_equal(encoding.in_order(rows), rows[:, [1, 0, 2]])
    assert encoding.scaled[encoding.blocks[0]].all()
    assert not encoding.scaled[encoding.blocks[1]].any()
    np.testing.assert_array_equal(np.isnan(encoding.by_column(np.ones(found.shape[1]))), [True, False, True])


def test_each_row_is_encoded_by_itself():
    rng = np.random.default_rng(2)
    names, columns = table("numeric", "categorical", words="abcde")
    rows = np.c_[rng.normal(size=50), rng.integers(0, 5, 50)]
    rows[rng.random((50, 2)) < 0.3] = np.nan
    order = rng.permutation(50)
    for compared in (True, False):
        encoding = RowEncoding.of(rows, names, columns, compared=compared)
        again = RowEncoding.of(rows[order], names, columns, compared=compared)
        np.testing.assert_array_equal(again(rows[order]), encoding(rows)[order])
        np.testing.assert_array_equal(np.vstack([encoding(row[None]) for row in rows]), encoding(rows))


def test_rare_words_share_a_coordinate_and_unknown_words_another():
    words = [f"w{j}" for j in range(MOST_WORDS + 30)]
    names, columns = table("categorical", words=words)
    codes = np.concatenate([np.repeat(np.arange(MOST_WORDS + 20), 2), MOST_WORDS + 20 + np.arange(10)]).astype(float)
    encoding = RowEncoding.of(codes[:, None], names, columns)
    found = encoding(np.array([[MOST_WORDS + 25.0], [MOST_WORDS + 26.0], [len(words)], [0.0], [np.nan]]))
    assert found.shape[1] == MOST_WORDS + 3
    np.testing.assert_array_equal(found[0], found[1])
    assert len(np.unique(found, axis=0)) == 4
    assert found[2].max() == found[0].max()
    nearer = RowEncoding.of(codes[:, None], names, columns, far=False)
    assert len(np.unique(nearer(np.array([[MOST_WORDS + 25.0], [len(words)]])), axis=0)) == 1
    some = RowEncoding.of(codes[:, None], names, columns, words_from=np.arange(4))
    assert [cell.codes.tolist() for cell in some.cells] == [[0, 1]]


def test_a_gap_in_a_column_without_gaps_is_far_away_or_at_the_centre():
    rows = np.arange(9.0)[:, None]
    gap = np.array([[np.nan]])
    assert RowEncoding.of(rows, ["a"])(gap)[0, 0] > 1000.0
    assert RowEncoding.of(rows, ["a"], far=False)(gap)[0, 0] == 4.0
    assert RowEncoding.of(rows, ["a"], compared=False)(gap)[0, 0] == 4.0


@pytest.mark.parametrize("cells", [[0.0, 1.0, 5.0], [7.0, 7.0, 7.0]])
@pytest.mark.parametrize(("unit", "shift"), [(1e-3, 0.0), (40.0, 900.0)])
def test_a_gap_is_as_many_ranges_away_in_every_unit(cells, unit, shift):
    """A constant column has no range; its value stands for one, which a shift would change."""
    rows, gap = np.array(cells)[:, None], np.array([[np.nan]])
    shift *= np.ptp(rows) > 0.0
    moved = RowEncoding.of(unit * rows + shift, ["a"])(gap)
    np.testing.assert_allclose(moved, unit * RowEncoding.of(rows, ["a"])(gap) + shift, rtol=1e-9)


def test_rare_words_are_far_and_very_rare_ones_no_farther():
    names, columns = table("categorical", words="ab")
    apart = []
    for rare in (500, 100, 10, 2):
        codes = np.repeat([0.0, 1.0], [1000 - rare, rare])[:, None]
        found = RowEncoding.of(codes, names, columns)(codes[[0, -1]])
        apart.append(pdist(found, "sqeuclidean")[0])
    assert apart[0] < 0.9 * apart[1] < 0.8 * apart[2]
    assert apart[3] == pytest.approx(apart[2])
