"""Deviations of rows from the centre of a table."""

from __future__ import annotations

import numpy as np
import pytest

from isopleth.results.charts import robust_z

RNG = np.random.default_rng(0)


def test_columns_are_measured_in_robust_standard_deviations():
    table = RNG.normal(5.0, 3.0, size=(20_000, 2))
    z = robust_z(np.array([[11.0, -1.0]]), table)
    np.testing.assert_allclose(z, [[2.0, -2.0]], atol=0.1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1.0, 1e300])
def test_a_column_of_mostly_one_value_is_measured_in_plain_ones(size):
    table = np.column_stack([np.zeros(100), np.ones(100)])
    table[0, 0] = size
    z = robust_z(table[:1], table)
    np.testing.assert_allclose(z, [[1.0 / np.sqrt(0.01 * 0.99), 0.0]])


@pytest.mark.filterwarnings("error")
def test_a_wild_cell_beside_ordinary_ones():
    table = RNG.normal(size=(100, 1))
    table[0] = -1e300
    assert robust_z(table, table)[0, 0] < -1e299
