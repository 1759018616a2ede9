from __future__ import annotations

import numpy as np
import pytest
from difference_oracle import volume

from isopleth import LSDD, InputError


@pytest.fixture(scope="module")
def reference(shared):
    return np.load(shared / "reference" / "lsdd.npz")


def fitted(reference, case, sigma, ridges, centers):
    x, y = reference[f"{case}_x"], reference[f"{case}_y"]
    folds = (reference[f"{case}_fold_x"], reference[f"{case}_fold_y"])
    alpha = np.asarray(ridges) / volume(x.shape[1], sigma)
    return LSDD(length_scale=float(sigma), alpha=alpha, centers=centers, cv=folds, n_jobs=1).fit(x, y)


@pytest.mark.data
@pytest.mark.parametrize("case", ["A1d", "B2d"])
@pytest.mark.parametrize("centers", ["all", "train"])
def test_cross_validation_tables(reference, case, centers):
    given = np.concatenate([reference[f"{case}_x"], reference[f"{case}_y"]]) if centers == "all" else None
    expected = reference[f"{case}_cv_{centers}_folds"]
    ridges = reference[f"{case}_lambda_grid"]
    for i, sigma in enumerate(reference[f"{case}_sigma_grid"]):
        losses = fitted(reference, case, sigma, ridges, given).search_path_.fold_losses[:, 0]
        assert np.abs(losses - expected[:, i]).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.data
@pytest.mark.parametrize("case", ["A1d", "B2d"])
def test_coefficients_and_estimates(reference, case):
    sigma, ridge = float(reference[f"{case}_mp_sigma"]), float(reference[f"{case}_mp_lambda"])
    centers = np.concatenate([reference[f"{case}_x"], reference[f"{case}_y"]])
    difference = fitted(reference, case, sigma, ridge, centers)
    theta = difference.dual_coef_ / np.exp(difference.log_volume_)
    expected = reference[f"{case}_mp_theta"]
    assert np.linalg.norm(theta - expected) <= 1e-11 * np.linalg.norm(expected)
    for kind, number in (("linear", 9), ("quadratic", 10), ("combined", 11)):
        assert difference.squared_l2(kind) == pytest.approx(float(reference[f"{case}_mp_l2_{number}"]), rel=1e-11)
    grid = reference[f"{case}_fhat_grid"]
    assert np.abs(difference.difference(reference[f"{case}_grid_t"]) - grid).max() <= 1e-11 * np.abs(grid).max()
    with pytest.raises(InputError, match="singular"):  # the reference's own trace is off by half of itself there
        difference.squared_l2("inverse_corrected")


@pytest.mark.data
@pytest.mark.parametrize("ridge", ["0", "0.001", "0.1"])
def test_bias_correction_of_few_centers(reference, ridge):
    case, sigma = f"D8c_lam{ridge}", 0.8
    difference = LSDD(length_scale=sigma, alpha=float(ridge) / volume(1, sigma), centers=reference[f"{case}_centres"])
    difference.fit(reference[f"{case}_x"], reference[f"{case}_y"])
    theta, expected = difference.dual_coef_ / volume(1, sigma), reference[f"{case}_mp_theta"]
    assert np.linalg.norm(theta - expected) <= 1e-11 * np.linalg.norm(expected)
    for kind, number in (
        ("combined", "mp_l2_11"),
        ("inverse_corrected", "mp_l2_15"),
        ("linear", "l2_9"),
        ("quadratic", "l2_10"),
    ):
        assert difference.squared_l2(kind) == pytest.approx(float(reference[f"{case}_{number}"]), rel=1e-11)
