"""The direct solver."""

import array_api_strict
import numpy as np
import pytest

from isopleth import InputError
from isopleth.solvers import Shifted


def test_many_right_hand_sides_of_one_factor():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    A, before = root @ root.T, (root @ root.T).copy()
    shifted = Shifted(A, 0.3)
    for b in (rng.normal(size=8), rng.normal(size=(8, 3))):
        np.testing.assert_allclose(A @ shifted.solve(b) + 0.3 * shifted.solve(b), b)
    np.testing.assert_array_equal(A, before)
    strict = Shifted(array_api_strict.asarray(A), 0.3).solve(array_api_strict.asarray(b))
    np.testing.assert_allclose(np.asarray(strict), shifted.solve(b))


def test_tensors_have_a_factor_of_their_own():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    A, b = torch.asarray(root @ root.T), torch.asarray(rng.normal(size=(8, 3)))
    shifted = Shifted(A, 0.3)
    for right in (b, b[:, 0]):
        found = shifted.solve(right)
        assert found.shape == right.shape
        torch.testing.assert_close(A @ found + 0.3 * found, right)


def test_a_ridge_lost_in_rounding_is_refused():
    A = np.full((3, 3), 1e3)
    A[0, 0] -= 1e-9
    for matrix in (A, array_api_strict.asarray(A)):
        with pytest.raises(InputError, match=r"alpha = 1e-20 is lost in the rounding of .*float64"):
            Shifted(matrix, 1e-20)
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"alpha = 1e-20 is lost in the rounding of torch.float64"):
        Shifted(torch.asarray(A), 1e-20)
