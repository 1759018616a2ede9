"""Landmarks: laws of the draws, weights as repetition, and independence of the frame."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from isopleth import InputError
from isopleth.core.budget import Budget
from isopleth.kernels import IMQ, Gaussian
from isopleth.score.nystrom import METHODS, choose_landmarks


def rows(n=200, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def choose(z, m, method="uniform", **options):
    return choose_landmarks(z, m, method, kernel=options.pop("kernel", IMQ()), **options)


@pytest.mark.parametrize("method", METHODS)
def test_distinct_rows_the_same_for_a_seed(method):
    z = np.repeat(rows(50), 3, axis=0)
    chosen = choose(z, 30, method, random_state=0)
    assert len(np.unique(z[chosen], axis=0)) == 30
    np.testing.assert_array_equal(chosen, np.sort(chosen))
    np.testing.assert_array_equal(chosen, choose(z, 30, method, random_state=0))
    assert not np.array_equal(chosen, choose(z, 30, method, random_state=1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [50, 51, 10**6])
def test_all_distinct_rows_where_there_are_not_more(method, m):
    z = np.tile(rows(50), (2, 1))
    np.testing.assert_array_equal(choose(z, m, method), np.arange(50))


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_are_never_chosen(method):
    z, w = rows(60), np.tile([1.0, 0.0, 2.0], 20)
    for seed in range(5):
        assert (w[choose(z, 25, method, weights=w, random_state=seed)] > 0).all()
    assert len(choose(z, 50, method, weights=w)) == 40


@pytest.mark.parametrize("method", METHODS)
def test_the_choice_does_not_turn_with_the_rows(method):
    z = rows(100)
    turn = np.linalg.qr(rows(3, 3, seed=5))[0]
    np.testing.assert_array_equal(
        choose(z @ turn + 7.0, 20, method, random_state=0), choose(z, 20, method, random_state=0)
    )


def test_uniform_draws_follow_successive_sampling():
    """The chance to be among 2 of 3, by hand: first i, or first j and then i."""
    w = np.array([1.0, 2.0, 5.0])
    p = w / w.sum()
    want = [p[i] + sum(p[j] * w[i] / (w.sum() - w[j]) for j in range(3) if j != i) for i in range(3)]
    found = np.zeros(3)
    random = np.random.RandomState(0)
    for _ in range(4000):
        found[choose(np.arange(3.0)[:, None], 2, weights=w, random_state=random)] += 1
    np.testing.assert_allclose(found / 4000, want, atol=5 * np.sqrt(0.25 / 4000))


def test_weights_of_any_size():
    w = 10.0 ** np.linspace(-140, 140, 50)
    assert len(choose(rows(50), 10, weights=w, random_state=0)) == 10


def test_seeds_of_clusters_cover_the_rows_better_than_chance():
    z = np.concatenate([rows(2000, 2), rows(20, 2, seed=1) + 50.0])
    farthest = {
        method: np.mean([cdist(z, z[choose(z, 10, method, random_state=seed)]).min(axis=1).max() for seed in range(5)])
        for method in ("uniform", "kmeans++")
    }
    assert farthest["kmeans++"] < 0.5 * farthest["uniform"]


def test_leverage_draws_follow_the_scores():
    """A far row and rows at one place are drawn by the exact scores at the ridge that halves the number of landmarks."""
    z = np.concatenate([0.01 * rows(300, 2), [[30.0, 0.0], [0.0, 40.0], [-50.0, 0.0]]])
    kernel = Gaussian()
    found = np.mean(
        [np.isin([300, 301, 302], choose(z, 8, "leverage", kernel=kernel, random_state=s)) for s in range(40)]
    )
    chance = np.mean([np.isin([300, 301, 302], choose(z, 8, random_state=s)) for s in range(40)])
    assert found > 0.9 > 0.2 > chance


def test_leverage_within_little_memory():
    z = rows(500)
    little = choose(z, 20, "leverage", random_state=0, budget=Budget(1e5, 1))
    np.testing.assert_array_equal(little, choose(z, 20, "leverage", random_state=0))


@pytest.mark.parametrize("m", [0, -3, 2.5, True, "all"])
def test_numbers_that_are_none(m):
    with pytest.raises(InputError, match="n_landmarks"):
        choose(rows(), m)


def test_unknown_methods():
    with pytest.raises(InputError, match="'uniform', 'kmeans\\+\\+', 'leverage'"):
        choose(rows(), 3, "random")
