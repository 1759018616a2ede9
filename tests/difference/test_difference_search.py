"""What cross-validation found."""

from __future__ import annotations

import numpy as np

from isopleth.difference import DifferenceSearchPath


def test_steady_length_scale_is_the_largest_that_a_fold_chose():
    scales = np.array([[0.5, 5.0], [1.0, 10.0], [2.0, 20.0]])
    volumes = np.log(scales).sum(axis=1)
    path = DifferenceSearchPath(
        scales, np.ones(1), volumes, np.zeros((3, 3, 1)), (2, 0), np.array([[0, 0], [1, 0], [0, 0]])
    )
    assert path.steady_length_scale.tolist() == [1.0, 10.0]
