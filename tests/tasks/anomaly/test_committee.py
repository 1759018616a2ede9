"""Joint evidence: members, their samples, their columns, and who judges which row."""

from dataclasses import replace

import numpy as np
import pytest
from anomaly_tables import table

from isopleth.core.budget import Budget
from isopleth.tasks.anomaly.pooled_rule import (
    MOST_COLUMNS,
    Committee,
    Member,
    root_coefficients,
    sample_sizes,
    some_columns,
)
from isopleth.tasks.anomaly.training_table import NEW, CategoryColumns, TrainingTable

LIMITS = Budget(2.0**30, 1)


def test_sample_sizes_double_and_keep_to_their_share():
    assert sample_sizes(128, 10_000) == [8, 16, 32, 64, 128]
    assert sample_sizes(128, 200) == [8, 16, 25, 25, 25]
    assert sample_sizes(128, 10) == [8, 8, 8, 8, 8]
    assert sample_sizes(4, 10_000) == [4]
    assert sample_sizes(20, 10_000) == [8, 16]


def test_coefficients_solve_the_equation_of_sosrep():
    points = np.random.default_rng(0).normal(size=(30, 2))
    K = np.exp(-np.abs(points[:, None] - points).sum(axis=2))
    w = np.random.default_rng(1).dirichlet(np.ones(30))
    alpha = root_coefficients(K, w)
    np.testing.assert_allclose(alpha * (K @ alpha), w, rtol=0.02)


def test_members_are_squared_kernel_sums():
    z = table(20)
    member = Member.fit(z, np.arange(20), np.array([0, 2]), CategoryColumns(3, []), [20])
    query = table(5, seed=1)
    by_hand = [
        2 * np.log(sum(a * np.exp(-np.abs(q[[0, 2]] - c).sum() / member.length_scale) for a, c in pairs))
        for q in query
        for pairs in [list(zip(member.coefficients[0], member.centers, strict=True))]
    ]
    np.testing.assert_allclose(member.log_density(query), by_hand)
    one = Member.fit(z, np.array([0]), np.arange(3), CategoryColumns(3, []), [1])
    assert one.log_density(z[:1])[0] > one.log_density(z[1:2])[0]


def test_a_member_of_shared_samples_is_the_mean_of_their_densities():
    z, columns, numbers = table(20), np.array([0, 2]), np.arange(20)
    both = Member.fit(z, numbers, columns, CategoryColumns(3, []), [8, 20])
    small, large = (Member.fit(z, numbers[:k], columns, CategoryColumns(3, []), [k]) for k in (8, 20))
    assert both.length_scale == large.length_scale
    small = replace(
        small, length_scale=large.length_scale, coefficients=both.coefficients[:1, :][:, places_of(small, both)]
    )
    query = table(50, seed=1)
    query[:5] *= 1000.0  # beyond which kernels underflow
    expected = 0.5 * (small.log_density(query) + large.log_density(query))
    np.testing.assert_allclose(both.log_density(query), expected, rtol=1e-12)


def places_of(some, every):
    """Return where the centres of one member stand among those of another."""
    return [int(np.flatnonzero((every.centers == centre).all(axis=1))[0]) for centre in some.centers]


def test_column_subsets_are_log_uniform_in_size():
    rng = np.random.default_rng(0)
    sizes = np.array([len(np.unique(some_columns(64, rng))) for _ in range(4000)])
    assert sizes.min() == 1
    assert sizes.max() == 64
    for power in range(1, 6):
        assert (sizes <= 2**power).mean() == pytest.approx((power + 0.15) / 6, abs=0.08)
    assert len(some_columns(1, rng)) == 1


def test_evidence_is_the_mean_over_the_members_that_have_not_sampled_the_row():
    training = TrainingTable.of(table(60))
    committee = Committee.fit(training, 12, 16, 0, LIMITS)
    z = training.rows / training.spread
    for i in (0, 7, 31):
        outside = [
            level - member.log_density(z[i : i + 1])[0]
            for member, level in zip(committee.members, committee.levels, strict=True)
            if i not in member.sampled
        ]
        assert 0 < len(outside) < 12
        assert committee.evidence(training.rows[i : i + 1], np.array([i]), LIMITS)[0] == pytest.approx(np.mean(outside))
    everybody = np.mean([lv - m.log_density(z) for m, lv in zip(committee.members, committee.levels, strict=True)], 0)
    np.testing.assert_allclose(committee.evidence(training.rows, np.full(60, NEW), LIMITS), everybody)


def test_sizes_of_shared_samples_count_alike_although_large_ones_are_few():
    committee = Committee.fit(TrainingTable.of(table(600)), 60, 32, 0, LIMITS, shared=True)
    counts = [len(member.shares) for member in committee.members]
    assert counts[:8] == [3, 3, 1, 1, 2, 2, 1, 1]
    totals = np.zeros(3)
    for member in committee.members:
        totals[: len(member.shares)] += member.shares
    np.testing.assert_allclose(totals, len(committee.members) / 3)


def test_evidence_of_shared_samples_is_the_weighted_mean_over_the_members_that_have_not_sampled_the_row():
    training = TrainingTable.of(table(300))
    committee = Committee.fit(training, 30, 32, 0, LIMITS, shared=True)
    z = training.rows / training.spread
    found = [level - m.log_density(z) for m, level in zip(committee.members, committee.levels, strict=True)]
    shares = np.array([sum(m.shares) for m in committee.members])[:, None]
    judges = np.array([~np.isin(np.arange(300), m.sampled) for m in committee.members])
    assert not judges.all()
    expected = (judges * found).sum(axis=0) / (judges * shares).sum(axis=0)
    np.testing.assert_allclose(committee.evidence(training.rows, training.known, LIMITS), expected)


def test_members_of_a_wide_table_see_some_columns_each_and_all_columns_together():
    committee = Committee.fit(TrainingTable.of(np.random.default_rng(0).normal(size=(60, 200))), 40, 8, 0, LIMITS)
    assert max(len(member.columns) for member in committee.members) == MOST_COLUMNS
    assert {len(member.columns) for member in committee.members[::2]} == {MOST_COLUMNS}
    assert len(np.unique(np.concatenate([member.columns for member in committee.members]))) > 190


def test_rows_in_every_sample_are_judged_by_all_members():
    training = TrainingTable.of(np.array([[0.0], [1.0]]))
    committee = Committee.fit(training, 5, 64, 0, LIMITS)
    assert np.isfinite(committee.evidence(training.rows, training.known, LIMITS)).all()
