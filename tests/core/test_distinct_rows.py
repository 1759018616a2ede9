"""Distinct rows up to rounding."""

from __future__ import annotations

import numpy as np

from isopleth.core import rows
from isopleth.core.rows import (
    column_blocks,
    columns_by_key,
    distinct_rows,
    first_equal,
    keys_by_rank,
    lexical_order,
    row_draws,
)


def test_codes_of_missing_cells_make_no_numbers_equal():
    column = np.append(np.arange(60.0), np.full(6, -9.2e18))
    assert len(distinct_rows(column[:, None], np.ones(66))[0]) == 61


def test_blocks_of_columns_hold_each_column_once_and_are_copies():
    X = np.arange(3.0e5).reshape(3000, 100)
    blocks = list(column_blocks(X))
    assert len(blocks) > 1
    assert all(block.flags.c_contiguous for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), X.T)
    next(column_blocks(X[:, :1]))[:] = -1.0
    assert X[0, 0] == 0.0


def test_blocks_of_columns_and_rows_change_no_key(monkeypatch):
    X = np.round(np.random.default_rng(0).normal(size=(60, 5)), 1)
    whole = *distinct_rows(X, np.ones(60)), columns_by_key(X), keys_by_rank(X)
    monkeypatch.setattr(rows, "IN_CACHE", 64)
    for one, other in zip((*distinct_rows(X, np.ones(60)), columns_by_key(X), keys_by_rank(X)), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_draws_of_rows_go_by_contents_and_are_independent_for_equal_rows():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=4000), rng.integers(0, 2, (4000, 2))])
    rows[rng.random(rows.shape) < 0.1] = np.nan
    draws, order = row_draws(rows), rng.permutation(4000)
    distinct = ~np.isnan(rows[:, 0])
    for changed in (rows, rows[:, [2, 0, 1]], rows * 3.7, rows * (1.0 + 1e-15)):
        assert (row_draws(changed[order]) == draws[order])[distinct[order]].mean() > 0.999
        assert (np.sort(row_draws(changed)) == np.sort(draws)).mean() > 0.999
    few = rng.integers(0, 2, (4000, 3)).astype(float)  # eight different rows
    some = few[np.argsort(row_draws(few))[:1000]]
    for one in np.unique(few, axis=0):
        share, found = ((part == one).all(axis=1).mean() for part in (few, some))
        assert abs(found - share) < 4.0 * np.sqrt(share / 1000)
    u = np.sort(row_draws(few) / 2.0**64)
    assert np.abs(u - np.linspace(0.0, 1.0, 4000)).max() < 0.04


def test_rows_are_ordered_and_their_first_equal_ones_found_as_by_a_sort_of_whole_rows():
    rng = np.random.default_rng(0)
    for columns in (1, 3):
        few, mixed = rng.integers(0, 3, (200, columns)), rng.normal(size=(200, columns)).round(1)
        for rows_ in (few, mixed, np.repeat(rng.normal(size=(50, columns)), 4, axis=0)):
            _, first, place = np.unique(rows_, axis=0, return_index=True, return_inverse=True)
            np.testing.assert_array_equal(first_equal(rows_), first[place.ravel()])
            np.testing.assert_array_equal(lexical_order(rows_), np.lexsort(rows_.T[::-1]))
