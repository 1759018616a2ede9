"""Kernel ridge regression on landmarks, compared with fits without a row."""

import numpy as np
import pytest

from isopleth.conditional import kernel_ridge
from isopleth.conditional.kernel_ridge import KernelRidge
from isopleth.conditional.ridge import Ridge

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, size=(60, 2))
Y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=60)


def by_hand(A, y, w, model, penalty, left_out):
    """Weighted ridge regression on the kernels at the landmarks, solved by its normal equations without one row."""
    Z = np.clip((A - model.center) / model.scale, -4.0, 4.0)
    away = (Z[:, None] - model.functions.centers) / model.functions.length_scale
    K = np.exp(-0.5 * (away**2).sum(axis=2))
    share = w / w.sum()
    B, mean = K - share @ K, share @ y
    kept = np.delete(np.arange(len(y)), left_out)
    root = np.sqrt(share)[:, None]
    design = np.column_stack([root, root * B])  # the mean is not penalised
    G = design[kept].T @ design[kept] + np.diag([0.0, *np.full(K.shape[1], penalty)])
    coefficients = np.linalg.solve(G, design[kept].T @ (root[kept, 0] * (y - mean)[kept]))
    return y[left_out] - mean - coefficients[0] - B[left_out] @ coefficients[1:]


def test_residuals_are_those_of_fits_without_the_row(monkeypatch):
    monkeypatch.setattr(kernel_ridge, "_PENALTIES", np.array([1e-3]))
    monkeypatch.setattr(kernel_ridge, "_LENGTHS", (0.5,))
    ones = np.ones(60)
    model, residuals = KernelRidge.fit(X, Y, ones, ones)
    want = [by_hand(X, Y, ones, model, 1e-3, i) for i in (0, 7, 31)]
    np.testing.assert_allclose(residuals[[0, 7, 31]], want, rtol=1e-4)


def test_a_smooth_function_is_found_where_a_line_fails():
    ones = np.ones(60)
    model, residuals = KernelRidge.fit(X, Y, ones, ones)
    assert np.mean(residuals**2) < 0.15 * np.mean(Ridge.fit(X, Y, ones)[1] ** 2)
    new = RNG.uniform(-1.5, 1.5, size=(200, 2))
    assert np.sqrt(np.mean((model.predict(new) - np.sin(2.0 * new[:, 0]) * new[:, 1]) ** 2)) < 0.25


def test_noise_is_left_alone():
    noise, ones = RNG.normal(size=60), np.ones(60)
    model, residuals = KernelRidge.fit(X, noise, ones, ones)
    assert np.mean(residuals**2) < 1.1 * np.var(noise)
    assert np.ptp(model.predict(X)) < 1.5


@pytest.mark.parametrize(("rows", "columns"), [(30, 3), (80, 5), (120, 20)])
def test_with_as_many_landmarks_as_rows_residuals_are_as_large_as_errors_at_new_rows(rows, columns):
    rng = np.random.default_rng(5)
    A = rng.normal(size=(rows + 500, columns))
    y = A[:, 0] + 0.5 * rng.normal(size=len(A))
    for law in (KernelRidge, Ridge):
        model, residuals = law.fit(A[:rows], y[:rows], np.ones(rows), copies=np.ones(rows))
        errors = y[rows:] - model.predict(A[rows:])
        assert 0.7 < np.sqrt(np.mean(errors**2) / np.mean(residuals**2)) < 1.4


def test_rows_beyond_those_of_the_fit_are_predicted_without_them(monkeypatch):
    ones = np.ones(60)
    monkeypatch.setattr(kernel_ridge, "_ROWS", 40)
    model, residuals = KernelRidge.fit(X, Y, ones, ones)
    plain = Y - model.predict(X)
    assert (residuals == plain).sum() == 20
    assert residuals.shape == (60,)


@pytest.mark.parametrize("column", [np.zeros(60), np.full(60, 3.0)])
def test_constant_columns_and_targets_are_no_obstacle(column):
    ones = np.ones(60)
    model, residuals = KernelRidge.fit(np.column_stack([X, column]), column, ones, ones)
    np.testing.assert_allclose(residuals, 0.0, atol=1e-13)
    np.testing.assert_allclose(model.predict(np.column_stack([X, column])), column, atol=1e-13)
