"""Committees of small-sample densities: their members, their samples, their columns."""

import numpy as np
import pytest
from anomaly_tables import table

from isopleth.tasks.anomaly.committee import Committee, Member, discounted, sample_sizes, some_columns


def test_few_copies_count_once_and_very_many_in_full():
    c = np.array([1, 2, 8, 1000, 10**6])
    w = discounted(c)
    np.testing.assert_allclose(w[:3], [1, 1, 512 / 320])
    np.testing.assert_allclose(w[3:], c[3:], rtol=1e-3)
    assert (np.diff(discounted(np.arange(1, 200))) >= 0).all()


def test_sample_sizes_double_and_keep_to_their_share():
    assert sample_sizes(128, 10_000) == [8, 16, 32, 64, 128]
    assert sample_sizes(128, 200) == [8, 16, 25, 25, 25]
    assert sample_sizes(128, 10) == [8, 8, 8, 8, 8]
    assert sample_sizes(4, 10_000) == [4]
    assert sample_sizes(20, 10_000) == [8, 16]


def test_members_are_densities_of_their_sample():
    z = table(20)
    member = Member.of(z, np.array([0, 2]))
    f = np.exp(0.5 * member.log_density(z[np.lexsort(z[:, [2, 0]].T)], 1e9))
    np.testing.assert_allclose(20 * member.coefficients * f, 1.0, rtol=0.02)  # centres are in lexical order
    one = Member.of(z[:1], np.arange(3))
    assert one.log_density(z[:1], 1e9)[0] > one.log_density(z[1:2], 1e9)[0]


def test_column_subsets_are_log_uniform_in_size():
    rng = np.random.default_rng(0)
    sizes = np.array([len(np.unique(some_columns(64, rng))) for _ in range(4000)])
    assert sizes.min() == 1
    assert sizes.max() == 64
    for power in range(1, 6):
        assert (sizes <= 2**power).mean() == pytest.approx((power + 0.15) / 6, abs=0.08)
    assert len(some_columns(1, rng)) == 1


def test_committees_fall_back_to_the_spare_scale():
    rows = np.c_[np.arange(10.0), np.zeros(10)]
    committee = Committee.of(rows, np.ones(10), np.array([1.0, 0.5]), 10, 16, np.random.default_rng(0))
    assert committee.frame.scale[1] == 0.5
