"""Distinct rows up to rounding."""

from __future__ import annotations

import numpy as np

from isopleth.core.rows import distinct_rows


def test_codes_of_missing_cells_make_no_numbers_equal():
    column = np.append(np.arange(60.0), np.full(6, -9.2e18))
    assert len(distinct_rows(column[:, None], np.ones(66))[0]) == 61
