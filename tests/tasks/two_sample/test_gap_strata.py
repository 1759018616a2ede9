"""Strata of rows with the same missing cells."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.two_sample.problem import gap_strata


def test_strata_of_gaps_have_rows_of_both_samples_and_alike_gaps():
    rng = np.random.default_rng(0)
    first = np.arange(300) < 120
    missing = rng.random((300, 6)) < np.where(first, 0.3, 0.1)[:, None]
    strata, blanked = gap_strata(missing, first)
    assert strata.max() > 3
    assert (blanked >= missing).all()
    for stratum in range(strata.max() + 1):
        rows = strata == stratum
        assert first[rows].any()
        assert (~first[rows]).any()
        assert len(np.unique(blanked[rows], axis=0)) == 1
        np.testing.assert_array_equal(blanked[rows][0], missing[rows].any(axis=0))
