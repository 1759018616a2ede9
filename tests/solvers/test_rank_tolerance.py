"""Eigenvalues that count as zero."""

import numpy as np
import pytest

from isopleth.solvers.regularizers import above_rank_tolerance


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_rank_tolerance_is_relative_to_the_largest_eigenvalue(scale):
    sigma = scale * np.array([-1e-3, 0.0, 1e-13, 1e-11, 1.0])
    assert above_rank_tolerance(sigma).tolist() == [False, False, False, True, True]
