"""Folds and samples of rows that do not depend on the order of the columns: models of permuted columns are the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isopleth import KDE, LSDD, SOSREP, KernelScore, NystromKEF, Search
from isopleth.core.parts import ArrayParts, RowSample
from isopleth.core.rows import RunningFolds, distinct_rows, merge_rows
from isopleth.difference.lsdd import fit_parts as fit_difference
from isopleth.score.nystrom import fit_parts as fit_score

ORDER = np.array([2, 0, 1])
SCALES = np.array([0.9, 1.5, 0.4])
SEARCH = {"grid": [0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8], "cv": 4}


def rows(n=300, seed=0):
    """Columns of unlike units and dependence, some rows that are there twice, and some that are permutations of others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5]
    X[:, 1] += X[:, 0] ** 2
    X[: n // 10] = np.round(X[: n // 10])
    X[n // 10 : n // 8] = X[: n // 8 - n // 10]
    return X


ASKED = rows(40, 1)


def both(fit):
    """Return the results of ``fit(X, asked, scales)`` for the columns in both orders."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(lambda X: X, SCALES), fit(lambda X: X[:, ORDER], SCALES[ORDER])


@pytest.mark.parametrize("criterion", ["hyvarinen", "likelihood"])
@pytest.mark.parametrize("kind", [SOSREP, KDE])
def test_densities_with_a_search(kind, criterion):
    def fit(order, scales):
        model = kind(length_scale=Search(criterion, base=scales, **SEARCH), frame="scale").fit(order(rows()))
        return np.concatenate([model.search_path_.losses, model.score_samples(order(ASKED))])

    here, there = both(fit)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


def test_levels_of_regions():
    def fit(order, scales):
        return SOSREP(length_scale=scales, frame="scale").fit(order(rows())).level_set(np.linspace(0.05, 0.95, 19))

    here, there = both(fit)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


def test_the_median_rule_of_many_rows():
    def fit(order, scales):
        X = rows(1500) / SCALES
        return KDE(length_scale="median", frame="scale").fit(order(X)).score_samples(order(ASKED))

    here, there = both(fit)
    np.testing.assert_allclose(there, here, rtol=1e-9)


# Beyond 512 rows, scales are compared on some of them.
@pytest.mark.parametrize("n", [60, pytest.param(700, marks=pytest.mark.slow)])
def test_scores_with_a_selection(n):
    def fit(order, scales):
        model = KernelScore().fit(order(rows(n) / SCALES))
        return model.search_path_.path_losses, model.grad_log_density(order(ASKED))[
            :, np.argsort(order(np.arange(3)[None])[0])
        ]

    here, there = both(fit)
    for one, other in zip(here, there, strict=True):
        # Systems are solved to a tolerance; the largest difference of three samples was 2e-6.
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


def test_a_nystrom_score_in_memory_and_in_parts():
    landmarks = rows(15, 3)

    def fit(order, scales):
        back = np.argsort(order(np.arange(3)[None])[0])
        given = NystromKEF(landmarks=order(landmarks), length_scale=scales).fit(order(rows(150)))
        drawn = fit_score(
            NystromKEF(landmarks=15, length_scale=scales, random_state=0), ArrayParts(order(rows(150)), part_rows=70)
        )
        losses = drawn.search_path_.losses  # of folds, which must not depend on how a frame rounds
        return losses, *(model.grad_log_density(order(ASKED))[:, back] for model in (given, drawn))

    here, there = both(fit)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)


def test_differences_with_their_search_and_drawn_centres():
    X, Y = rows(200), rows(150, 5) + [0.5, 0.0, 0.2]

    def fit(order, scales):
        in_memory = LSDD(centers=60, random_state=0).fit(order(X), order(Y))
        in_parts = fit_difference(
            LSDD(centers=60, random_state=0), ArrayParts(order(X), part_rows=70), ArrayParts(order(Y), part_rows=70)
        )
        return [[model.alpha_, model.squared_l2_, *model.difference(order(ASKED))] for model in (in_memory, in_parts)]

    here, there = both(fit)
    np.testing.assert_allclose(there, here, rtol=1e-7, atol=1e-9)


@given(st.integers(2, 60), st.integers(0, 2**32 - 1), st.permutations(range(3)), st.sampled_from([1, 3, 12]))
def test_the_order_of_distinct_rows_goes_with_them(n, seed, order, digits):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5], digits)
    weights = rng.integers(0, 4, n) + 0.0
    weights[0] = 1.0
    shuffled = rng.permutation(n)
    found, counts, place = distinct_rows(X, weights)
    again, counted, _ = distinct_rows(X[shuffled][:, order] * [2.0, 0.5, 8.0] + 1.0, weights[shuffled])
    np.testing.assert_allclose(again, found[:, order] * [2.0, 0.5, 8.0] + 1.0, rtol=1e-12)
    np.testing.assert_array_equal(counted, counts)
    np.testing.assert_array_equal(found[place[place >= 0]], X[place >= 0])
    np.testing.assert_array_equal(np.unique(found, axis=0), merge_rows(X, weights)[0])


def test_constant_columns_do_not_change_the_order():
    X = rows(50)
    for columns in (slice(0, 1), slice(None)):
        wide = np.insert(X[:, columns], 0, 7.0, axis=1)
        np.testing.assert_array_equal(
            distinct_rows(wide, np.ones(50))[0][:, 1:], distinct_rows(X[:, columns], np.ones(50))[0]
        )


def test_rows_that_are_permutations_of_one_another_are_not_merged():
    X = np.eye(4)[[0, 1, 2, 3, 0]]
    found, weights, place = distinct_rows(X, np.ones(5))
    assert len(found) == 4
    assert sorted(weights) == [1.0, 1.0, 1.0, 2.0]
    np.testing.assert_array_equal(found[place], X)
    drawn = RowSample(10).add(X)
    np.testing.assert_array_equal(np.unique(drawn.rows, axis=0), np.unique(X, axis=0))
    assert len(RowSample(2).add(np.eye(9)).rows) == 2  # rows of one key do not go all or none


@given(st.integers(1, 300), st.permutations(range(3)), st.integers(1, 200))
def test_a_sample_of_rows_goes_with_the_columns(size, order, part_rows):
    X = rows(200)
    weights = 1.0 + np.arange(200) % 3
    drawn, counts = ArrayParts(X, weights, part_rows=200).sample(size, 7)
    again, counted = ArrayParts(X[:, order], weights, part_rows=part_rows).sample(size, 7)
    np.testing.assert_array_equal(again, drawn[:, order])
    np.testing.assert_allclose(counted, counts)


def test_running_folds_go_with_the_columns():
    X = rows(57)
    np.testing.assert_array_equal(RunningFolds(5, 1).deal(X[:, ORDER]), RunningFolds(5, 1).deal(X))
