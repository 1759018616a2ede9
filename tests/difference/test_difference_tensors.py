"""Differences and ratios of tensors: the kernel and the systems are computed in their library, the numbers are NumPy's."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone

from isopleth import LSDD
from isopleth.difference.gaussian_system import GaussianSystem, PenalizedSpectrum, eigenpairs
from isopleth.difference.statistics import Moments

torch = pytest.importorskip("torch")

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
RNG = np.random.default_rng(3)
X, Y, NEW = RNG.normal(size=(80, 2)), RNG.normal(0.5, 1.3, size=(70, 2)), RNG.normal(size=(20, 2))
TIED = RNG.integers(0, 4, size=(60, 2)).astype(float)
ESTIMATORS = {
    "grid": LSDD(centers=30, random_state=0),
    "points": LSDD(length_scale=1.0, alpha=0.1, centers=NEW, cv=3, random_state=0),
}


@pytest.fixture(scope="module", params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(scope="module")
def send(device):
    return lambda array: torch.as_tensor(array, device=device)


def fitted_to(name, send):
    return clone(ESTIMATORS[name]).fit(send(X), send(Y))


@pytest.fixture(scope="module")
def plain():
    return {name: fitted_to(name, np.array) for name in ESTIMATORS}


@pytest.fixture(scope="module")
def fitted(send):
    return {name: fitted_to(name, send) for name in ESTIMATORS}


def same(tensor, array, device="cpu"):
    """Tell whether a tensor of this device holds the numbers of an array."""
    assert isinstance(tensor, torch.Tensor)
    assert tensor.device.type == device
    assert str(tensor.dtype).removeprefix("torch.") == str(array.dtype)
    np.testing.assert_allclose(tensor.cpu().numpy(), array, rtol=1e-10, atol=1e-10 * np.nanmax(np.abs(array)))


def test_statistics_are_those_of_numpy(plain, fitted, send, device):
    one, other = plain["grid"], fitted["grid"]
    same(other.predict(send(NEW), priors=(0.3, 0.7)), one.predict(NEW, priors=(0.3, 0.7)), device)
    for kind in ("cross_fitted", "lower_bound", "linear", "quadratic", "combined", "corrected"):
        assert other.squared_l2(kind) == pytest.approx(one.squared_l2(kind), rel=1e-10), kind
    assert other.squared_l2_interval() == pytest.approx(one.squared_l2_interval(), rel=1e-10, abs=1e-12)
    assert other.level_set([0.5, 0.9]) == pytest.approx(np.array(one.level_set([0.5, 0.9])), rel=1e-10)
    same(other.level_set(send(np.array([0.5, 0.9])))[1], one.level_set([0.5, 0.9])[1], device)


def test_matrices_are_decomposed_where_the_rows_are(send, device, monkeypatch):
    kinds = []

    def recorded(matrix, norm):
        kinds.append((type(matrix), matrix.device.type))
        return eigenpairs(matrix, norm)

    monkeypatch.setattr("isopleth.difference.gaussian_system.eigenpairs", recorded)
    clone(ESTIMATORS["grid"]).fit(send(X), send(Y))
    assert set(kinds) == {(torch.Tensor, device)}


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])
def test_systems_of_a_strict_library(penalty):
    """It has nothing but the standard."""
    plain, strict = (GaussianSystem(send(X[:15]), 0.0) for send in (np.array, array_api_strict.asarray))
    one, other = (PenalizedSpectrum.of(system.gram(), system.norm(penalty)) for system in (plain, strict))
    h = plain.sums(X, np.full((len(X), 1), 1.0 / len(X)))
    np.testing.assert_allclose(strict.sums(X, np.full((len(X), 1), 1.0 / len(X))), h, rtol=1e-12)
    theta = one.solve(h, 0.1)
    np.testing.assert_allclose(other.solve(h, 0.1), theta, rtol=1e-6 if penalty == "rkhs" else 1e-10)
    assert other.squared_size(theta[:, 0]) == pytest.approx(one.squared_size(theta[:, 0]))


def test_moments_of_a_strict_library():
    weights = np.arange(1.0, 81.0)
    merged = []
    for send in (np.array, array_api_strict.asarray):
        system = GaussianSystem(send(X[:15]), 0.0)
        first, second = (
            Moments.of(system, system.matrix(X[part]), weights[part]) for part in (slice(0, 50), slice(50, 80))
        )
        merged.append(first + second)
    np.testing.assert_allclose(merged[1].mean, merged[0].mean, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(merged[1].scatter), merged[0].scatter, rtol=1e-9, atol=1e-12)


def test_parameters_and_weights_may_be_tensors(send):
    weights = np.arange(1.0, 81.0)
    scale, folds = np.array([1.0, 0.5]), (np.arange(80) % 3, np.arange(70) % 3)
    one = LSDD(length_scale=scale, alpha=0.1, centers=NEW, cv=folds).fit(X, Y, weights)
    tensors = {"length_scale": send(scale), "centers": send(NEW), "cv": tuple(map(send, folds))}
    other = LSDD(alpha=0.1, **tensors).fit(send(X), send(Y), send(weights))
    np.testing.assert_allclose(other.difference(NEW), one.difference(NEW), rtol=1e-9, atol=1e-12)


def test_samples_of_two_libraries(plain, send, device):
    """The backend is that of X."""
    model = clone(ESTIMATORS["points"]).fit(send(X), Y)
    same(model.dual_coef_, plain["points"].dual_coef_, device=device)
    assert isinstance(clone(ESTIMATORS["points"]).fit(X, send(Y)).dual_coef_, np.ndarray)


def test_float32_is_computed_in_float64(send):
    rounded = [part.astype(np.float32) for part in (X, Y)]
    one = clone(ESTIMATORS["points"]).fit(*rounded)
    other = clone(ESTIMATORS["points"]).fit(*map(send, rounded))
    same(other.dual_coef_, one.dual_coef_, device=other.dual_coef_.device.type)


def test_the_paper_s_correction(send):
    """It takes the inverse of the inner products, which there is for few centres."""
    estimator = LSDD(length_scale=1.0, alpha=0.1, centers=[[0.0, 0.0], [2.0, 2.0]], cv=3, random_state=0)
    one, other = clone(estimator).fit(X, Y), clone(estimator).fit(send(X), send(Y))
    assert other.squared_l2("inverse_corrected") == pytest.approx(one.squared_l2("inverse_corrected"), rel=1e-10)


def test_a_share_that_wants_a_gradient_is_called_by_its_name():
    rng = np.random.default_rng(0)
    change = LSDD(length_scale=0.5, alpha=0.1).fit(rng.normal(size=(30, 1)), rng.normal(size=(30, 1)))
    with pytest.raises(ValueError, match=r"^mass requires a gradient"):
        change.level_set(torch.tensor([0.5], requires_grad=True))
