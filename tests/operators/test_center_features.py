"""Functions around centres: their values, and their inner products by quadrature."""

import numpy as np
import pytest

from isopleth.operators.features import GaussianFeatures, LaplaceFeatures

PROFILES = {
    GaussianFeatures: lambda away, scale: np.exp(-0.5 * (away / scale) ** 2),
    LaplaceFeatures: lambda away, scale: np.exp(-np.abs(away) / scale),
}


@pytest.mark.parametrize("kind", PROFILES)
def test_values_are_products_over_the_columns_and_do_not_depend_on_other_rows(kind):
    rows, centers = np.random.default_rng(0).normal(size=(2, 7, 3))
    functions = kind(centers, 0.8)
    found = functions(rows)
    np.testing.assert_allclose(found, PROFILES[kind](rows[:, None] - centers, 0.8).prod(axis=2), rtol=1e-12)
    assert np.array_equal(found[3:4], functions(rows[3:4]))
    assert np.array_equal(found, functions.at(functions.distances(rows)))
    far = kind(centers + 2.0**30, 0.8)(rows + 2.0**30)  # both are rounded to 2^-22
    np.testing.assert_allclose(far, found, rtol=1e-5)


@pytest.mark.parametrize("kind", PROFILES)
@pytest.mark.parametrize("scale", [0.3, 0.8])
def test_inner_products_by_quadrature(kind, scale):
    centers = np.random.default_rng(7).normal(size=(4, 2))
    t = np.linspace(-40.0, 40.0, 400_001)
    want = np.ones((4, 4))
    for column in centers.T:
        functions = PROFILES[kind](t - column[:, None], scale)
        inner = np.trapezoid(functions[:, None] * functions[None], t, axis=-1)
        want *= inner / inner[0, 0]
    np.testing.assert_allclose(kind(centers, scale).inner_products(), want, rtol=1e-5)


def test_inner_products_of_centres_that_are_far_apart_are_0():
    centers = np.array([[0.0] * 20, [1e300] * 20])
    with np.errstate(over="ignore"):  # the distance
        found = LaplaceFeatures(centers, 1.0).inner_products()
    np.testing.assert_array_equal(found, np.eye(2))
