"""Problems that several solvers are tried on."""

import numpy as np
import pytest

from isopleth.kernels import SDO
from isopleth.operators import Operator


@pytest.fixture(scope="session")
def problem():
    """Operator and weights of normal rows."""

    def make(kernel, n=300, dim=3, spread=1.0, seed=0):
        rng = np.random.default_rng(seed)
        w = rng.uniform(0.2, 1.0, size=n)
        return Operator(kernel, spread * rng.normal(size=(n, dim))).store(), w / w.sum()

    return make


@pytest.fixture(scope="session")
def far_cluster():
    """A kernel with negative values, and one row at a distance where the others' values are negative for some distances."""

    def make(distance):
        rng = np.random.default_rng(1)
        x = np.concatenate([rng.normal(size=(200, 2)) * 0.3, [[distance, 0.0]]])
        return Operator(SDO(order=3), x).store(), np.full(201, 1 / 201)

    return make
