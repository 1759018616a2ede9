"""The estimated Hyvarinen loss against exact ones, and its standard error against what it does."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from isopleth import KDE, SOSREP, InputError
from isopleth.density import hutchinson_loss
from isopleth.kernels import SDO, Matern


def bowl(x: np.ndarray) -> np.ndarray:
    """A log density that is neither quadratic nor a sum over columns."""
    return -0.5 * (x**2).sum(axis=1) - 0.05 * (x**2).sum(axis=1) ** 2 + np.sin(x[:, 0] * x[:, -1])


def exact_bowl(x: np.ndarray) -> float:
    """The loss of the bowl, differentiated by hand."""
    d, s, u = x.shape[1], (x**2).sum(axis=1), x[:, 0] * x[:, -1]
    gradient = -x * (1.0 + 0.2 * s[:, None])
    gradient[:, 0] += x[:, -1] * np.cos(u)
    gradient[:, -1] += x[:, 0] * np.cos(u)
    trace = -d - 0.2 * (d + 2) * s - (x[:, 0] ** 2 + x[:, -1] ** 2) * np.sin(u)
    return float(np.mean(trace + 0.5 * (gradient**2).sum(axis=1)))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize(
    "density",
    [
        SOSREP(frame="scale"),
        SOSREP(kernel="laplacian", frame="scale"),
        SOSREP(kernel=Matern(nu=1.5), frame="scale"),
        SOSREP(kernel=SDO(order=5), length_scale="median", frame="scale"),
        KDE(frame="scale"),
        KDE(kernel="matern52", frame="scale"),
    ],
    ids=repr,
)
def test_densities_of_this_library_have_the_loss_that_is_estimated(density: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4)) * [1.0, 50.0, 0.02, 3.0]
    density.fit(X[:80])
    estimate = hutchinson_loss(density.score_samples, X[80:], density.unit_, n_probes=150, random_state=seed)
    exact = density.hyvarinen_loss(X[80:])
    assert abs(estimate.value - exact) < 4.0 * estimate.standard_error
    assert estimate.standard_error < 0.05 * max(abs(exact), X.shape[1])


def test_the_standard_error_is_that_of_the_estimate() -> None:
    x = np.random.default_rng(0).normal(size=(20, 3))
    exact = exact_bowl(x)
    found = [hutchinson_loss(bowl, x, n_probes=30, random_state=seed) for seed in range(400)]
    values, errors = np.array([(loss.value, loss.standard_error) for loss in found]).T
    z = (values - exact) / errors
    assert abs(z.mean()) < 4.0 / np.sqrt(len(z))
    assert 0.75 < z.var() < 1.3  # the standard deviation of a variance of 400 is 0.07
    assert 0.75 < values.var() / np.mean(errors**2) < 1.3


@pytest.mark.parametrize("d", [1, 3, 10])
def test_a_normal_log_density_is_met_exactly(d: int) -> None:
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d))
    precision, X = root @ root.T + np.eye(d), rng.normal(size=(50, d))
    exact = -np.trace(precision) + 0.5 * np.mean(((X @ precision) ** 2).sum(axis=1))
    estimate = hutchinson_loss(lambda x: -0.5 * ((x @ precision) * x).sum(axis=1), X, random_state=0)
    rounding = 1e-6 * d * abs(exact)
    assert abs(estimate.value - exact) < 4.0 * estimate.standard_error + rounding
    assert d > 1 or estimate.standard_error < rounding


def test_all_directions_together_have_no_error() -> None:
    class AllSigns(np.random.RandomState):
        """Every vector of signs, one probe after the other, for one row."""

        signs = iter(product([-1.0, 1.0], repeat=4))

        def choice(self, *args: Any, **kwargs: Any) -> np.ndarray:
            return np.array([next(self.signs)])

    x = np.array([[0.3, -1.0, 0.5, 0.8]])
    estimate = hutchinson_loss(bowl, x, n_probes=16, random_state=AllSigns(0))
    np.testing.assert_allclose(estimate.value, exact_bowl(x), rtol=1e-6)


def test_the_loss_is_in_the_units_given_and_columns_without_one_are_held() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    unit = np.array([100.0, 0.01, 7.0])
    plain = hutchinson_loss(bowl, x, n_probes=20, random_state=0)
    scaled = hutchinson_loss(lambda y: bowl(y / unit), x * unit, unit, n_probes=20, random_state=0)
    np.testing.assert_allclose(scaled.value, plain.value, rtol=1e-6)
    np.testing.assert_allclose(scaled.standard_error, plain.standard_error, rtol=1e-5)
    half = hutchinson_loss(bowl, x, unit=2.0, n_probes=20, random_state=0)
    np.testing.assert_allclose(half.value, 4.0 * plain.value, rtol=1e-6)
    constant = np.column_stack([x, np.full(30, 3.0)])
    held = hutchinson_loss(lambda y: bowl(y[:, :3]), constant, [1.0, 1.0, 1.0, np.nan], n_probes=400, random_state=0)
    assert abs(held.value - exact_bowl(x)) < 4.0 * held.standard_error


def test_rows_far_from_the_origin_keep_their_digits() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    far = hutchinson_loss(lambda y: bowl(y - 1e6), x + 1e6, n_probes=20, random_state=0)
    near = hutchinson_loss(bowl, (x + 1e6) - 1e6, n_probes=20, random_state=0)
    np.testing.assert_allclose(far.value, near.value, rtol=1e-5)


def test_rows_too_far_from_the_origin_to_be_moved_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    for offset in (1e11, 1e13, 1e16):
        with pytest.raises(InputError, match="column 2 of X is so far from 0"):
            hutchinson_loss(lambda y: bowl(y), x + [0.0, 0.0, offset])
    held = hutchinson_loss(lambda y: bowl(y - [0.0, 0.0, 1e16]), x + [0.0, 0.0, 1e16], [1.0, 1.0, np.nan])
    assert np.isfinite(held.value)


def test_more_probes_say_more() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    few, many = (hutchinson_loss(bowl, x, n_probes=n, random_state=0) for n in (100, 1600))
    np.testing.assert_allclose(few.standard_error / many.standard_error, 4.0, rtol=0.1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"X": [1.0, 2.0]}, "X has shape"),
        ({"X": [["a"]]}, "an array of rows and columns of numbers"),
        ({"X": [[np.nan, 1.0]]}, "NaN or inf"),
        ({"n_probes": 1}, "n_probes = 1"),
        ({"n_probes": 2.5}, "n_probes = 2.5"),
        ({"unit": 0.0}, "unit = 0.0"),
        ({"unit": [1.0, 2.0, 3.0]}, "each of 2 columns"),
        ({"unit": [np.nan, np.nan]}, "unit"),
        ({"log_density": lambda x: x}, r"shape \(1, 2\)"),
        ({"log_density": lambda x: np.full(len(x), -np.inf)}, "not finite"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(arguments: dict[str, Any], sentence: str) -> None:
    usable: dict[str, Any] = {"log_density": bowl, "X": [[1.0, 2.0]]}
    with pytest.raises(InputError, match=sentence):
        hutchinson_loss(**(usable | arguments))
