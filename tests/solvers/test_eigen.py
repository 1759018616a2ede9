"""The spectrum against a matrix and its inverse."""

import array_api_strict
import numpy as np

from isopleth.solvers import Spectrum


def test_functions_of_a_matrix():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    A, b = root @ root.T, rng.normal(size=(8, 3))
    spectrum = Spectrum.of(A)
    np.testing.assert_allclose(spectrum.apply(lambda s: 1 / (s + 0.1), b), np.linalg.solve(A + 0.1 * np.eye(8), b))
    np.testing.assert_allclose(spectrum.apply(np.square, b), A @ A @ b)
    np.testing.assert_allclose(spectrum.largest, np.linalg.eigvalsh(A)[-1])
    strict = Spectrum.of(array_api_strict.asarray(A)).apply(lambda s: s, array_api_strict.asarray(b))
    np.testing.assert_allclose(np.asarray(strict), A @ b)
