"""Labels of groups in two files of different kinds."""

from __future__ import annotations

import numpy as np

from isopleth.cli.compare import labels_of_one_kind


def test_groups_with_many_digits_stay_apart():
    long = np.array([1234567.25, 1234567.5])
    for other in (np.array([1, 2]), np.array(["1234567.25", "x"])):
        assert len(set(labels_of_one_kind(long, other)[0].tolist())) == 2
