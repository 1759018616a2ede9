"""Balanced coordinates of a density difference: exact volumes, and what they change and leave alone."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from isopleth import LSDD, load, save
from isopleth.core.scales import ScaledColumns
from isopleth.difference import KDEDifference
from isopleth.difference.coordinates import BalancedColumns, balanced

CORRELATION = np.array([[1.0, 0.9], [0.9, 1.0]])


def two(n=80, correlation=CORRELATION, seed=0):
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(correlation)
    x, y = rng.normal(size=(2, n, len(root))) @ root.T
    x[:, 0] += 0.5
    return x, y


@pytest.fixture(scope="module")
def fitted():
    return LSDD(frame="balanced", length_scale=0.5, alpha=0.1, centers=40, random_state=0, n_jobs=1).fit(*two())


def coordinates(x, y):
    rows = np.vstack([x, y])
    weights = (np.arange(len(rows)) < len(x))[:, None] == [True, False]
    return balanced(ScaledColumns.centred(rows, np.ones(x.shape[1], dtype=bool)), rows, weights.astype(float))


def integral_of_square(difference):
    """Sum over a grid, whose error for Gaussians is far below that of rounding."""
    axis = np.linspace(-10.0, 10.0, 301)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return (difference.difference(grid) ** 2).sum() * (axis[1] - axis[0]) ** 2


def test_volumes_stay_and_correlations_within_go():
    x, y = two(3000)
    x[:, 1] *= 100.0
    y[:, 1] *= 100.0
    frame = coordinates(x, y)
    z = frame.centre(np.vstack([x, y]))
    jacobian = frame.centre(np.eye(2)) - frame.centre(np.zeros((2, 2)))
    assert abs(np.linalg.det(jacobian)) == pytest.approx(1.0, rel=1e-9)
    within = np.corrcoef((z[:3000] - z[:3000].mean(axis=0)).T)[0, 1]
    assert abs(within) < 0.05
    np.testing.assert_allclose(
        frame.scaled([0.3, 2.0]).leave(frame.scaled([0.3, 2.0]).enter(x), np.zeros(2)), x, rtol=1e-8
    )


def test_kernel_widths_are_those_of_its_covariance():
    frame = coordinates(*two())
    assert isinstance(frame, BalancedColumns)
    draws = np.random.default_rng(0).normal(size=(200_000, 2)) * [0.5, 2.0]
    spread = frame.leave(draws, np.zeros(2)).std(axis=0)
    np.testing.assert_allclose(frame.widths(np.array([0.5, 2.0])), spread, rtol=0.01)


def test_columns_that_do_not_go_together_stay_as_they_are():
    x, y = np.random.default_rng(2).normal(size=(2, 60, 3))
    rows = np.vstack([x, y])
    centred = ScaledColumns.centred(rows, np.ones(3, dtype=bool)).centre(rows)
    np.testing.assert_allclose(coordinates(x, y).centre(rows), centred, atol=0.15)


def test_quadratic_is_the_integral_of_the_square(fitted):
    assert fitted.squared_l2("quadratic") == pytest.approx(integral_of_square(fitted), rel=1e-9)


def test_distance_of_kernel_densities_is_the_integral_of_the_square():
    baseline = KDEDifference(length_scale="scott", n_jobs=1).fit(*two(40))
    assert baseline.squared_l2_ == pytest.approx(integral_of_square(baseline), rel=1e-9)


def test_sign_units_weights_and_order_of_columns(fitted, tmp_path):
    x, y = two()
    at = x[:10]
    expected = fitted.difference(at)
    model = LSDD(**fitted.get_params())
    np.testing.assert_allclose(model.fit(y, x).difference(at), -expected, rtol=1e-7)
    unit = np.array([1e3, 1e-2])
    searched = LSDD(centers=30, cv=3, random_state=0, n_jobs=1).fit(x, y)
    scaled = LSDD(**searched.get_params()).fit(x * unit, y * unit)
    np.testing.assert_allclose(scaled.difference(at * unit) * 10.0, searched.difference(at), rtol=1e-6)
    np.testing.assert_allclose(scaled.length_scale_, searched.length_scale_ * unit, rtol=1e-6)
    turned = LSDD(**searched.get_params()).fit(x[:, ::-1], y[:, ::-1])
    np.testing.assert_allclose(turned.difference(at[:, ::-1]), searched.difference(at), rtol=1e-6)
    times = 1 + np.arange(80) % 2
    weighted = model.fit(x, y, sample_weight_x=times).difference(at)
    np.testing.assert_allclose(model.fit(np.repeat(x, times, axis=0), y).difference(at), weighted, rtol=1e-6)
    save(fitted, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").difference(at), expected)


def test_rows_added_in_batches_stand_in_the_coordinates_of_the_first(fitted):
    x, y = two()
    model = LSDD(**{**fitted.get_params(), "centers": two(30, seed=1)[0]})
    whole = model.fit(x, y).difference(x)
    model = LSDD(**model.get_params()).partial_fit(x, y)
    np.testing.assert_allclose(model.difference(x), whole, rtol=1e-8)


def test_the_distance_of_correlated_normals_is_nearer():
    rho, d = 0.95, 3
    correlation = np.full((d, d), rho) + (1.0 - rho) * np.eye(d)
    precision = np.linalg.inv(correlation)
    true = 2.0 * (1.0 - np.exp(-0.25 * precision[0, 0] * 0.25)) / np.sqrt(np.linalg.det(4.0 * np.pi * correlation))
    errors = {
        frame: np.mean(
            [
                LSDD(frame=frame, centers=150, random_state=0, n_jobs=1).fit(*two(250, correlation, seed)).squared_l2_
                for seed in range(3)
            ]
        )
        for frame in ("balanced", "scale")
    }
    assert abs(errors["balanced"] / true - 1.0) < 0.15 < 1.0 - errors["scale"] / true + 0.1
    assert errors["scale"] < errors["balanced"]


def test_categories_and_planes_and_constants():
    rng = np.random.default_rng(0)
    x, y = two(60)
    words = [pandas.DataFrame({"a": part[:, 0], "b": part[:, 1], "w": rng.choice(["u", "v"], 60)}) for part in (x, y)]
    model = LSDD(centers=50, cv=3, random_state=0, n_jobs=1).fit(*words)
    mixing = model._fitted.frame.mixing
    np.testing.assert_array_equal(mixing[2:, :2], 0.0)
    np.testing.assert_array_equal(mixing[2:, 2:], np.eye(len(mixing) - 2))
    plane = [np.column_stack([part, part.sum(axis=1)]) for part in (x, y)]
    assert np.isfinite(LSDD(centers=50, cv=3, random_state=0, n_jobs=1).fit(*plane).difference(plane[0])).all()
    apart = [np.column_stack([part, np.full(60, k)]) for k, part in enumerate((x, y))]
    assert np.isfinite(LSDD(centers=50, cv=3, random_state=0, n_jobs=1).fit(*apart).difference(apart[0])).all()


def test_shares_of_known_and_missing_cells_are_not_shrunk():
    rng = np.random.default_rng(0)
    one, two = (pandas.DataFrame({"flag": np.where(rng.random(2000) < share, 1.0, np.nan)}) for share in (0.55, 0.45))
    shares = [(~part["flag"].isna()).mean() for part in (one, two)]
    expected = 2.0 * (shares[0] - shares[1]) ** 2 - 2.0 * sum(s * (1.0 - s) / 1999 for s in shares)
    assert LSDD(random_state=0, n_jobs=1).fit(one, two).squared_l2_ == pytest.approx(expected, rel=0.1)
