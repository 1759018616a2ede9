"""Strata of rows with the same missing cells."""

from __future__ import annotations

import numpy as np

from isopleth import two_sample_test
from isopleth.tasks.two_sample.problem import gap_strata


def test_rows_of_a_stratum_lack_the_same_cells():
    rng = np.random.default_rng(0)
    first = np.arange(300) < 120
    missing = rng.random((300, 6)) < np.where(first, 0.3, 0.1)[:, None]
    strata, blanked = gap_strata(missing, first)
    assert strata.max() > 3
    assert (blanked >= missing).all()
    for stratum in range(strata.max() + 1):
        rows = strata == stratum
        assert len(np.unique(blanked[rows], axis=0)) == 1
        np.testing.assert_array_equal(blanked[rows][0], missing[rows].any(axis=0))


def test_a_gap_in_one_sample_hides_no_column():
    rng = np.random.default_rng(0)
    x, y = rng.normal(7.0, 0.8, (150, 1)), rng.normal(7.8, 0.8, (150, 1))
    x[0] = np.nan
    assert two_sample_test(x, y, compare_missing=False, n_resamples=99, random_state=0).pvalue == 0.01


def test_rows_of_one_sample_are_set_apart_only_if_that_leaves_more_cells_to_compare():
    first = np.arange(40) < 20
    for lacking, strata in ((5, 2), (15, 1)):
        missing = np.zeros((40, 3), dtype=bool)
        missing[:lacking, 0] = True
        found, blanked = gap_strata(missing, first)
        assert found.max() + 1 == strata
        assert blanked[lacking:, 0].all() == (strata == 1)
        assert not blanked[:, 1:].any()
