"""A part of an operator is that part of its matrix."""

import array_api_strict
import numpy as np
import pytest

from isopleth.core.budget import Budget
from isopleth.kernels import Gaussian
from isopleth.operators import LAPLACIAN, VALUE, Operator

ROWS, COLUMNS = slice(3, 17), slice(10, 41)


@pytest.mark.parametrize("dim", [2, 6])
@pytest.mark.parametrize("block", [VALUE, LAPLACIAN], ids=repr)
@pytest.mark.parametrize("stored", [True, False])
def test_part_of_the_matrix(dim, block, stored):
    x = np.random.default_rng(0).normal(size=(50, dim))
    op = Operator(Gaussian(), x, block=block)
    op = op.store() if stored else op
    whole, v = op.dense(), np.random.default_rng(1).normal(size=31)
    part = op.part(ROWS, COLUMNS, Budget(1e6))
    assert part.shape == (14, 31)
    np.testing.assert_allclose(part.dense(), whole[ROWS, COLUMNS], rtol=1e-12)
    np.testing.assert_allclose(part.matvec(v), whole[ROWS, COLUMNS] @ v, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(op.dense(), whole)  # and the whole is what it was


def test_part_on_a_strict_array_api_library():
    x = np.random.default_rng(0).normal(size=(50, 4))
    part = Operator(Gaussian(), array_api_strict.asarray(x)).part(ROWS, COLUMNS, Budget(1e6))
    np.testing.assert_allclose(np.asarray(part.dense()), Operator(Gaussian(), x).dense()[ROWS, COLUMNS])
