"""Fits to training folds, and the choices that rest on them, against dense solutions."""

from __future__ import annotations

import difference_oracle as oracle
import numpy as np
import pytest
from lsdd_cases import GRID, POINT, two

from isopleth import LSDD
from isopleth.difference.cross_validation import LEAST_ALPHA, _as_good, _below_by_half_octave


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(9).normal(size=(25, 2))


@pytest.mark.parametrize(
    "alpha", [0.3, LEAST_ALPHA]
)  # the least ridge whose cross-fitted estimate leaves out own draws
def test_folds_are_the_fits_to_their_training_rows(alpha):
    x, y = two()
    labels = (np.arange(40) % 4, np.arange(30) % 4)
    difference = LSDD(**{**POINT, "alpha": alpha, "cv": labels}).fit(x, y)
    ridge = alpha * oracle.volume(2, 0.7)
    losses, estimates = [], []
    for t in range(4):
        train, test = (x[labels[0] != t], y[labels[1] != t]), (x[labels[0] == t], y[labels[1] == t])
        losses.append(oracle.fold_loss(train, test, np.concatenate(train), 0.7, ridge))
        estimates.append(oracle.cross_fitted(train, test, 0.7, ridge))
    np.testing.assert_allclose(difference.search_path_.fold_losses[:, 0, 0], losses, rtol=1e-9)
    assert difference.squared_l2_ == pytest.approx(np.mean(estimates), rel=1e-9)
    assert difference.squared_l2("lower_bound") == pytest.approx(-np.mean(losses), rel=1e-9)


@pytest.mark.parametrize(
    ("given", "part"), [({"alpha": 1.0}, np.s_[:, :, 1:2]), ({"length_scale": 0.8}, np.s_[:, 1:2])]
)
def test_candidates_for_one_parameter_are_compared_as_in_the_grid_of_both(given, part):
    x, y = two()
    whole, some = (LSDD(**{**GRID, **more}).fit(x, y) for more in ({}, given))
    losses = some.search_path_.fold_losses
    np.testing.assert_allclose(losses, whole.search_path_.fold_losses[part], rtol=1e-9)
    scale, alpha = np.unravel_index(np.argmin(losses.mean(axis=0)), losses.shape[1:])
    taken = [np.ravel({**GRID, **given}[name]) for name in ("length_scale", "alpha")]
    np.testing.assert_allclose(some.length_scale_, taken[0][scale])
    assert some.alpha_ == taken[1][alpha]


def test_folds_of_the_rkhs_form_are_fits_of_their_own(points):
    x, y = two()
    labels = (np.arange(40) % 2, np.arange(30) % 2)
    difference = LSDD(**{**POINT, "cv": labels, "penalty": "rkhs"}).fit(x, y)
    losses = []
    for t in range(2):
        parts = [[part[label == s] for part, label in zip((x, y), labels, strict=True)] for s in (1 - t, t)]
        own = LSDD(**{**POINT, "penalty": "rkhs"}).fit(*parts[0])
        means = [own.difference(part).mean() for part in parts[1]]
        losses.append(own.squared_l2("quadratic") - 2.0 * (means[0] - means[1]))
    np.testing.assert_allclose(difference.search_path_.fold_losses[:, 0, 0], losses, rtol=1e-7)


@pytest.mark.parametrize(("penalty", "alpha"), [("rkhs", 0.3), ("l2", 1e-5)])
def test_nearly_singular_systems_are_cross_fitted_with_all_draws(penalty, alpha):
    x, y = two(dim=1)
    labels = (np.arange(40) % 3, np.arange(30) % 3)
    params = {**POINT, "penalty": penalty, "alpha": alpha, "cv": labels}
    difference = LSDD(**params).fit(x, y)
    estimates = []
    for t in range(3):
        train, test = (x[labels[0] != t], y[labels[1] != t]), (x[labels[0] == t], y[labels[1] == t])
        centers, ridge = np.concatenate(train), alpha * oracle.volume(1, 0.7)
        norm_matrix = np.eye(len(centers))
        if penalty == "rkhs":
            norm_matrix = oracle.psi(centers, centers, 0.7) + 1e-8 * norm_matrix
        inverse = np.linalg.inv(oracle.gram(centers, 0.7) + ridge * norm_matrix)
        fit = inverse @ oracle.h_of(*train, centers, 0.7)
        doubled = 2.0 * fit - inverse @ oracle.gram(centers, 0.7) @ fit
        estimates.append(oracle.h_of(*test, centers, 0.7) @ doubled)
    assert difference.squared_l2_ == pytest.approx(np.mean(estimates), rel=1e-4)
    low, high = difference.squared_l2_interval()
    assert low <= difference.squared_l2_ <= high
    assert high < 1.0  # the distance is 0.08


@pytest.mark.parametrize("centers", [1, 2])
def test_folds_without_a_center_give_no_difference(centers):
    x, y = two()
    difference = LSDD(**GRID, centers=centers).fit(x, y)
    losses = difference.search_path_.fold_losses
    without = (losses == 0.0).all(axis=(1, 2))
    assert without.sum() == 1 if centers == 1 else without.sum() < 2
    assert np.isfinite([difference.squared_l2_, *difference.squared_l2_interval()]).all()


def test_pairs_of_folds_choose_by_rows_that_the_fold_has_not():
    x, y = two()
    labels = (np.arange(40) % 3, np.arange(30) % 3)
    path = LSDD(**{**GRID, "cv": labels}).fit(x, y).search_path_
    for t, (i, j) in enumerate(path.nested_index):
        others = [s for s in range(3) if s != t]
        scores = np.empty((2, 3, 3))
        for a, s in enumerate(others):
            train = [part[~np.isin(label, [s, t])] for part, label in zip((x, y), labels, strict=True)]
            test = [part[label == s] for part, label in zip((x, y), labels, strict=True)]
            for k, sigma in enumerate((0.4, 0.8, 1.6)):
                for m, alpha in enumerate((0.1, 1.0, 10.0)):
                    ridge = alpha * oracle.volume(2, sigma)
                    scores[a, k, m] = oracle.fold_loss(train, test, np.concatenate(train), sigma, ridge)
        score = scores.mean(axis=0) + scores.std(axis=0, ddof=1) / np.sqrt(2)
        assert (i, j) == np.unravel_index(np.argmin(score), score.shape)


def test_intervals_have_the_finest_length_scale_as_good_as_the_best_over_the_root_of_two():
    """Losses of fits to the average of both densities, times the volume, of three folds, four length scales and two ridges."""
    log_scales = np.array([0.0, 1.0, 1.5, 2.0]) * np.log(2.0)
    relative = np.exp(log_scales)
    losses = np.array([[-6.0, -9.0, -9.9, -10.0], [-6.0, -9.0, -10.2, -10.0], [-6.0, -9.0, -9.8, -10.0]])
    tables = np.stack([losses, losses + 1.0], axis=2) * relative[:, None]
    good = _as_good(tables, log_scales, 3)
    assert good.tolist() == [False, False, True, True]
    assert _below_by_half_octave(log_scales, log_scales[good].min()) == 1
    assert _below_by_half_octave(log_scales, log_scales[0]) == 0


def test_the_length_scale_of_the_densities_has_the_smallest_loss_for_their_average():
    x, y = two()
    labels = (np.arange(40) % 3, np.arange(30) % 3)
    path = LSDD(**{**GRID, "cv": labels}).fit(x, y).search_path_
    losses = np.zeros((3, 3))
    for t in range(3):
        train, test = (x[labels[0] != t], y[labels[1] != t]), (x[labels[0] == t], y[labels[1] == t])
        centers = np.concatenate(train)
        for k, sigma in enumerate((0.4, 0.8, 1.6)):
            means = [
                0.5 * sum(oracle.psi(part, centers, sigma).mean(axis=0) for part in parts) for parts in (train, test)
            ]
            gram = oracle.gram(centers, sigma)
            for m, alpha in enumerate((0.1, 1.0, 10.0)):
                theta = np.linalg.solve(gram + alpha * oracle.volume(2, sigma) * np.eye(len(centers)), means[0])
                losses[k, m] += theta @ gram @ theta - 2.0 * means[1] @ theta
    assert path.density_index == np.unravel_index(np.argmin(losses), losses.shape)[0]


def test_the_cross_fitted_estimate_is_that_of_the_length_scale_of_the_densities():
    x, y = two()
    labels = (np.arange(40) % 4, np.arange(30) % 4)
    model = LSDD(**{**GRID, "alpha": [0.1, 1.0, 10.0], "cv": labels}).fit(x, y)
    sigma = float(model.search_path_.length_scales[model.search_path_.density_index, 0])
    estimates = []
    for t in range(4):
        train, test = (x[labels[0] != t], y[labels[1] != t]), (x[labels[0] == t], y[labels[1] == t])
        estimates.append(oracle.cross_fitted(train, test, sigma, 0.1 * oracle.volume(2, sigma)))
    assert model.squared_l2_ == pytest.approx(np.mean(estimates), rel=1e-9)
