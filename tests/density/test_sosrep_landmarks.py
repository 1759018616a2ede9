"""SOSREP on landmarks: all rows counted for few, the order of far rows, and the model of rows in parts."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from isopleth import SOSREP, InputError, Search
from isopleth.core.budget import Budget
from isopleth.core.parts import ArrayParts
from isopleth.density.landmarks import choose_landmarks
from isopleth.density.sosrep import fit_parts

LIMIT = 2**30


def normal(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def mixture(n, d, seed=0):
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(9).normal(size=(4, d)) * 3.0
    which = rng.integers(4, size=n)
    return middle[which] + np.array([0.5, 1.0, 0.3, 0.8])[which, None] * rng.normal(size=(n, d))


def heavy(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def rows(n=700, seed=0):
    X = normal(n, 3, seed) * [1.0, 2.0, 0.5] + [4.0, 50.0, 0.0]
    X[1:9] = X[11:19]
    return X


@pytest.mark.parametrize("d", [2, 5, 20])
@pytest.mark.parametrize("draw", [normal, mixture, heavy])
def test_far_rows_are_ordered_by_their_distance(draw, d):
    X = draw(3000, d)
    X[7] = X.mean(axis=0) - 40.0 * X.std(axis=0)  # an outlier changes nothing of that
    model = SOSREP(landmarks=100, frame="scale").fit(X)
    for direction in (np.ones(d), np.eye(d)[0], normal(1, d, 3)[0]):
        unit = X.std(axis=0) * direction / np.linalg.norm(direction)
        found = model.score_samples(X.mean(axis=0) + np.array([5.0, 10.0, 20.0, 50.0, 1e6])[:, None] * unit)
        assert np.isfinite(found).all()
        assert (np.diff(found) < 0.0).all()
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("draw", [normal, mixture])
def test_all_rows_say_more_than_the_landmarks_alone(draw, d):
    """Held-out log densities, mean over seeds: above those of the landmarks alone, and at a suitable scale near the exact fit."""
    gains, losses = [], []
    for seed in range(4):
        X, new = draw(3000, d, seed), draw(2000, d, seed + 100)
        model = SOSREP(
            landmarks=150, length_scale=Search("likelihood", grid=[0.35, 0.5, 0.7, 1.0, 1.4]), frame="scale"
        ).fit(X)
        alone = SOSREP(length_scale=model.length_scale_, frame="scale").fit(model.centers_)
        exact = SOSREP(length_scale=model.length_scale_, frame="scale").fit(X[:1500])
        held_out = [one.score_samples(new).mean() for one in (model, alone, exact)]
        gains.append(held_out[0] - held_out[1])
        losses.append(held_out[2] - held_out[0])
    assert np.mean(gains) > 0.005
    assert np.mean(losses) < 0.1 * d


GRID = np.stack(np.meshgrid(np.arange(60.0), np.arange(60.0)), axis=-1).reshape(-1, 2)
DIAGONAL = normal(4000, 1) * [1.0, -1.0]


@pytest.mark.parametrize("X", [normal(4000, 2), GRID, DIAGONAL, heavy(4000, 2) ** 3, 1e6 + normal(4000, 1)])
def test_landmarks_are_a_random_sample_of_the_rows(X):
    """The share of landmarks in parts of the table is the share of rows, up to four standard errors."""
    size = 400
    found = choose_landmarks(ArrayParts(X), size, None, Budget(LIMIT))[0]
    for column, chosen in zip(X.T, found.T, strict=True):
        limits = np.quantile(column, [0.1, 0.25, 0.5, 0.75, 0.9])
        share = (column[:, None] < limits).mean(axis=0)
        error = np.sqrt(share * (1.0 - share) * (1.0 / size - 1.0 / len(X)))
        assert np.all(np.abs((chosen[:, None] < limits).mean(axis=0) - share) < 4.0 * error)


def test_landmarks_count_the_rows_that_are_nearest():
    X = rows()
    weights = np.arange(700) % 3 + 0.5 * (np.arange(700) % 2)
    found, counts = choose_landmarks(ArrayParts(X, weights, part_rows=90), 40, None, Budget(LIMIT))
    assert found.shape == (40, 3)
    assert (found[:, None] == X[None]).all(axis=2).any(axis=1).all()  # rows of the table
    unit = np.sqrt(np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    nearest = cdist(X / unit, found / unit).argmin(axis=1)
    want = np.bincount(nearest, weights, minlength=40)
    np.testing.assert_allclose(counts, want * 40 / weights.sum(), rtol=1e-12)
    tight = choose_landmarks(ArrayParts(X, weights), 40, None, Budget(2e4))[1]  # a few rows at once
    np.testing.assert_allclose(tight, counts, rtol=1e-12)


def test_the_density_is_the_exact_one_of_the_weighted_landmarks():
    X = rows()
    model = SOSREP(landmarks=60, frame="scale").fit(X)
    other = SOSREP(frame="scale").fit(model.centers_, sample_weight=model.weights_)
    np.testing.assert_allclose(other.score_samples(X), model.score_samples(X), rtol=1e-9)
    assert model.weights_.sum() == pytest.approx(60)
    assert model.level_set(0.9) < model.level_set(0.1)
    assert model.sample(5, random_state=0).shape == (5, 3)


@pytest.mark.parametrize(
    ("options", "weighted"),
    [
        ({}, False),
        ({}, True),
        ({"kernel": "matern52", "length_scale": "median"}, False),
        ({"length_scale": Search("likelihood", grid=[0.5, 1.0, 2.0])}, True),
        ({"bounds": {0: (-20.0, None), 2: (-9.0, 9.0)}}, False),
        ({"landmarks": 5000, "length_scale": [1.0, 2.0, 0.5], "frame": "scale"}, True),
    ],
)
def test_rows_in_parts_give_the_model_of_all_rows(options, weighted):
    X = rows()
    weights = np.arange(700) % 3 + 0.5 * (np.arange(700) % 2) if weighted else None
    options = {"landmarks": 50, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = SOSREP(**options).fit(X, sample_weight=weights)
        here = fit_parts(SOSREP(**options), ArrayParts(X, weights, part_rows=130))
    np.testing.assert_allclose(here.score_samples(X), there.score_samples(X), rtol=1e-9, atol=1e-9)
    assert set(vars(here)) == set(vars(there)) - {"_frame_of_fit"}
    assert here.sample(3).shape == (3, 3)


def test_rows_of_weight_0_may_be_anywhere():
    X, weights = rows(), np.ones(700)
    X[5], weights[5] = -1e6, 0.0
    options = {"bounds": {1: (0.0, None)}, "landmarks": 50}
    here = SOSREP(**options).fit(X, sample_weight=weights)
    there = SOSREP(**options).fit(np.delete(X, 5, axis=0))
    np.testing.assert_allclose(here.score_samples(rows(20, 1)), there.score_samples(rows(20, 1)), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "X", "said"),
    [
        ({"landmarks": None}, rows(), "for example landmarks=500"),
        ({"landmarks": 10**8}, rows(), r"landmarks = 100000000 in 3 columns need .* MiB, .* use [\d,]+ at most"),
        ({"bounds": {0: (4.0, None)}}, rows(), r"in column 0, on or beyond its bounds \(4.0, inf\)"),
        ({"length_scale": "broad"}, rows(), "length_scale = 'broad'"),
        ({}, np.ones((9, 2)), "all rows of X are equal"),
        ({}, np.ones((0, 2)), "no rows of positive weight"),
    ],
)
def test_refusals(options, X, said):
    with pytest.raises(InputError, match=said):
        fit_parts(SOSREP(**{"landmarks": 50, **options}), ArrayParts(X))


def test_a_fit_that_fails_leaves_no_model():
    model = fit_parts(SOSREP(landmarks=50, frame="scale"), ArrayParts(rows()))
    with pytest.raises(InputError):
        fit_parts(model, ArrayParts(np.ones((9, 3))))
    assert not hasattr(model, "log_normalizer_")
    with pytest.raises(ValueError, match="landmarks"):
        SOSREP(landmarks=1, frame="scale").fit(rows())
