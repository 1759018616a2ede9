"""Permutations of labels, scores of quadratic forms, and p-values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import chi2, norm

from isopleth.tasks.two_sample.permutation import Labels, adjusted_p_values, p_value
from isopleth.tasks.two_sample.permutation_scores import (
    ALPHAS,
    Basis,
    drawn_in,
    frame_of,
    normal_scores,
    quadratic_forms,
    unit_features,
)

RNG = np.random.default_rng(0)


def labels_of(place, sizes, permutations=50):
    return Labels.draw(np.asarray(place), sizes, permutations, np.random.default_rng(1))


@pytest.mark.parametrize("sizes", [(5, 9), (9, 5), (7, 7), (1, 40)])
def test_each_label_vector_has_the_size_of_the_smaller_sample(sizes):
    place = np.random.default_rng(2).integers(0, 6, sum(sizes))
    place[:6] = np.arange(6)
    labels = labels_of(place, sizes)
    members = labels.members if isinstance(labels.members, np.ndarray) else labels.members.toarray()
    assert (members.sum(axis=1) == min(sizes)).all()
    assert (members <= labels.counts).all()
    own = place[: sizes[0]] if sizes[0] <= sizes[1] else place[sizes[0] :]
    np.testing.assert_array_equal(members[0], np.bincount(own, minlength=6))


@pytest.mark.parametrize("sizes", [(40, 60), (5, 200)])
def test_label_vectors_take_no_more_than_is_announced(sizes):
    members = labels_of(np.arange(sum(sizes)), sizes, 9).members
    parts = [members] if isinstance(members, np.ndarray) else [members.data, members.indices, members.indptr]
    assert isinstance(members, np.ndarray) == (sizes == (40, 60))
    assert sum(part.nbytes for part in parts) <= 8 * 10 * Labels.floats(sizes)


def test_far_values_are_brought_nearer_in_their_order():
    column = np.concatenate([np.linspace(-1.0, 1.0, 101), [1e3, 1e6, -1e9, 1e300]])
    middle, spread, far = frame_of(column[:, None])
    z = drawn_in((column[:, None] - middle) / spread, far)[:, 0]
    assert (np.argsort(z) == np.argsort(column)).all()
    np.testing.assert_allclose(z[:101], (column[:101] - middle) / spread)
    assert z[-1] < far[0] + 800.0
    assert far[0] * spread[0] == pytest.approx(20.0 * 0.53, rel=0.02)


def test_all_labels_are_as_likely():
    members = labels_of(np.arange(5), (2, 3), 4000).members
    kinds = {pair: 0 for pair in itertools.combinations(range(5), 2)}
    for line in members[1:]:
        kinds[tuple(np.flatnonzero(line))] += 1
    counts = np.array(list(kinds.values()))
    assert chi2.sf(((counts - 400.0) ** 2 / 400.0).sum(), 9) > 1e-3


@pytest.mark.parametrize("sizes", [(6, 6), (4, 11), (1, 30)])
def test_quadratic_forms_against_sums_over_pairs_of_rows(sizes):
    """Over all pairs of different units, the kernel centred at the mean of both samples; equal up to a constant."""
    n = sum(sizes)
    place = np.concatenate([np.arange(n - 2), [0, 1]])
    rows, centers = RNG.normal(size=(n - 2, 2)), RNG.normal(size=(5, 2))
    labels = labels_of(place, sizes, 8)
    basis = Basis.of(centers, cdist(centers, centers, "sqeuclidean"), 1.3)
    found = quadratic_forms(basis, unit_features([basis], rows, 1, 1e9, 1)[0], labels)
    psi = np.exp(-0.5 * cdist(rows, centers, "sqeuclidean") / 1.3**2)[place]
    psi -= psi.mean(axis=0)
    H = np.exp(-0.25 * cdist(centers, centers, "sqeuclidean") / 1.3**2)
    members = labels.members if isinstance(labels.members, np.ndarray) else labels.members.toarray()
    smaller, larger = sorted(sizes)
    for k, alpha in enumerate(ALPHAS):
        G = np.linalg.inv(H + alpha * np.eye(5))
        gram = psi @ (2.0 * G - G @ H @ G) @ psi.T
        slow = []
        for line in members:
            left, e = line.copy(), np.full(n, -1.0 / larger)
            for unit in range(n):
                if left[place[unit]] > 0:
                    left[place[unit]] -= 1
                    e[unit] = 1.0 / smaller
            slow.append(e @ gram @ e - np.diag(gram) @ e**2)
        np.testing.assert_allclose(found[k] - found[k, 0], np.array(slow) - slow[0], atol=1e-10 * np.abs(gram).max())


def test_groups_have_the_mean_features_of_their_rows():
    centers = RNG.normal(size=(4, 2))
    basis = Basis.of(centers, cdist(centers, centers, "sqeuclidean"), 0.9)
    rows = RNG.normal(size=(12, 2))
    single = unit_features([basis], rows, 1, 1e9, 1)[0]
    grouped = unit_features([basis], rows, 3, 1e9, 2)[0]
    np.testing.assert_allclose(grouped, single.reshape(4, 3, 4).mean(axis=1))
    with pytest.raises(ValueError, match="memory_limit"):
        unit_features([basis], rows, 3, 100, 1)


@pytest.mark.parametrize("freedom", [1, 3, 30, 300])
def test_normal_scores_of_chi_squared_variables(freedom):
    """Tails agree whatever the degrees of freedom, which is what makes the scores comparable."""
    levels = (np.arange(20_000) + 0.5) / 20_000
    scores = normal_scores(chi2.ppf(levels, freedom)[None])[0]
    high = (levels > 0.8) & (levels < 0.999)
    np.testing.assert_allclose(scores[high], norm.ppf(levels[high]), atol=0.1)
    assert (np.diff(scores) >= 0).all()


def test_forms_that_never_move_have_score_0():
    assert (normal_scores(np.full((2, 9), 3.0)) == 0.0).all()
    assert (normal_scores(np.zeros((1, 9))) == 0.0).all()


def test_p_values_count_ties_and_the_observed_one():
    assert p_value(np.array([1.0, 0.0, 1.0, 2.0])) == 0.75
    assert p_value(np.array([3.0, 0.0, 1.0, 2.0])) == 0.25
    assert p_value(np.array([1.0, 1.0 - 1e-12, 0.0, 0.0])) == 0.5


def test_adjusted_p_values_against_their_definition():
    statistics = np.random.default_rng(3).normal(size=(40, 4)) + np.array([0.0, 2.0, 1.0, 0.0]) * (
        np.arange(40) == 0
    ).reshape(-1, 1)
    found = adjusted_p_values(statistics)
    order = np.argsort(-statistics[0])
    worst = 0.0
    for k, j in enumerate(order):
        maxima = statistics[:, order[k:]].max(axis=1)
        worst = max(worst, float((maxima >= statistics[0, j]).mean()))
        assert found[j] == worst
    assert (found >= [p_value(statistics[:, j]) for j in range(4)]).all()


def test_the_family_of_null_columns_keeps_the_level():
    draws = np.random.default_rng(4)
    named = 0
    for _ in range(400):
        statistics = draws.normal(size=(40, 5))
        statistics[0, 0] += 6.0  # one column does differ
        named += bool((adjusted_p_values(statistics)[1:] <= 0.1 + 1e-12).any())
    assert named / 400 < 0.1 + 3.1 * (0.1 * 0.9 / 400) ** 0.5
