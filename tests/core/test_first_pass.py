"""Moments of numbers of any size, and samples that do not depend on how rows are divided into parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isopleth.core.parts import ArrayParts, ColumnMoments, FirstPass, RowSample


def rows(n=400, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def moments(X, weights=None, **options):
    return ArrayParts(X, weights, **options).sums(lambda: ColumnMoments(X.shape[1]), ColumnMoments.add)


@given(st.integers(1, 500), st.integers(0, 2**32 - 1), st.sampled_from([1e-300, 1e-3, 1.0, 1e300]))
def test_moments_do_not_depend_on_the_parts(part_rows, seed, unit):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2)) * [unit, 1.0] + [0.0, 1e8]
    weights = rng.integers(0, 3, 200).astype(float)
    found = moments(X, weights, part_rows=part_rows)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    np.testing.assert_allclose(found.mean / [unit, 1e8], repeated.mean(axis=0) / [unit, 1e8], rtol=1e-12, atol=1e-12)
    expected = (repeated / [unit, 1.0] - [0.0, 1e8]).std(axis=0)
    np.testing.assert_allclose(found.deviation / [unit, 1.0], expected, rtol=1e-12)
    np.testing.assert_array_equal(found.low, repeated.min(axis=0))
    np.testing.assert_array_equal(found.high, repeated.max(axis=0))
    assert (found.weight, found.n_rows) == (weights.sum(), (weights > 0).sum())
    assert found.varying.all()


def test_a_constant_column_has_no_deviation():
    X = rows()
    X[:, 1] = 0.1
    found = moments(X, part_rows=33)
    assert found.varying.tolist() == [True, False, True]
    assert found.deviation[1] == 0.0
    assert found.mean[1] == 0.1


@given(st.integers(1, 500), st.permutations(range(5)), st.integers(1, 300))
def test_a_sample_does_not_depend_on_the_parts_nor_on_the_order(part_rows, order, size):
    X = np.round(rows(300, 1), 1)  # with repeats
    weights = np.arange(300) % 4.0
    mixed = np.concatenate([np.arange(300).reshape(5, 60)[i] for i in order])
    drawn, counts = ArrayParts(X, weights, part_rows=300).sample(size, 7)
    again, counted = ArrayParts(X[mixed], weights[mixed], part_rows=part_rows).sample(size, 7)
    np.testing.assert_array_equal(again, drawn)
    np.testing.assert_allclose(counted, counts)


def test_a_sample_of_all_rows_has_each_once_with_its_weight():
    X = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [9.0, 9.0], [-0.0, 5.0]])
    drawn = RowSample(3).add(X, np.array([1.0, 2.0, 3.0, 0.0, 5.0]))
    assert dict(zip(map(tuple, drawn.rows), drawn.weights, strict=True)) == {(0.0, 5.0): 7.0, (1.0, 2.0): 4.0}
    assert drawn.complete
    assert not RowSample(2).add(X).complete


@pytest.mark.parametrize("copies", [1, 40, 100])  # the rows of the smallest keys are many, or copies of too few
def test_a_sample_has_the_rows_of_the_smallest_keys_with_all_their_copies(copies):
    distinct = np.random.default_rng(0).normal(size=(400 // copies + 20, 2))
    X = np.random.default_rng(1).permutation(np.repeat(distinct, copies, axis=0))
    weights = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    drawn = RowSample(15).add(X, weights)
    heavy = np.array([weights[(row == X).all(axis=1)].sum() for row in distinct])
    seen = heavy > 0
    smallest = np.argsort(drawn.keys(distinct[seen]))[:15]
    order = np.lexsort(distinct[seen][smallest].T)
    mine = np.lexsort(drawn.rows.T)
    np.testing.assert_array_equal(drawn.rows[mine], distinct[seen][smallest][order])
    np.testing.assert_array_equal(drawn.weights[mine], heavy[seen][smallest][order])
    assert not drawn.complete


def test_samples_are_uniform_and_those_of_other_seeds_are_others():
    X = np.arange(1000.0)[:, None]
    drawn = [ArrayParts(X, part_rows=90).sample(100, seed)[0].ravel() for seed in range(60)]
    times = np.bincount(np.concatenate(drawn).astype(int), minlength=1000)
    assert all(len(set(one)) == 100 for one in drawn)
    # sums over blocks of 50 rows are 300 each, with a deviation below 17
    assert np.abs(times.reshape(20, 50).sum(axis=1) - 300).max() < 70
    assert np.abs(times - 6).max() < 14


def test_a_weight_is_that_of_all_copies_even_if_others_push_in_between():
    X = np.concatenate([np.repeat(rows(5), 3, axis=0), rows(2000, 1)])
    drawn, weights = ArrayParts(X, part_rows=7).sample(50, 3)
    copied = (drawn[:, None] == rows(5)[None]).all(axis=2).any(axis=1)
    assert (weights == np.where(copied, 3.0, 1.0)).all()


def test_a_survey_has_a_pair_that_stands_for_all():
    X = rows()
    survey = ArrayParts(X, part_rows=90).sums(lambda: FirstPass(3, 50), FirstPass.add)
    two, weights = survey.pair(np.array([True, False, True]))
    np.testing.assert_allclose(two.std(axis=0), X.std(axis=0)[[0, 2]], rtol=1e-12)
    assert weights.sum() == 400
    assert survey.n_rows == 400
    small = FirstPass(3, 50).add(X, np.full(400, 1e-3))
    assert small.n_rows == 400
