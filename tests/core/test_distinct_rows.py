"""Distinct rows up to rounding."""

from __future__ import annotations

import numpy as np

from isopleth.core import rows
from isopleth.core.rows import column_blocks, columns_by_key, distinct_rows, keys_by_rank


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
