"""Distinct rows up to rounding."""

from __future__ import annotations

import numpy as np

from isopleth.core.rows import column_blocks, distinct_rows


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
