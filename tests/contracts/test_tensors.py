"""Density estimators give NumPy's numbers for tensors, on the backend of the input."""

from __future__ import annotations

import contextlib
import unittest
import warnings
from collections import namedtuple

import array_api_compat
import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from isopleth import KDE, SOSREP, DataWarning, InputError, RandomFeatureSOSREP, Search
from isopleth.core.arrays import NUMPY, Backend, is_foreign, to_numpy
from isopleth.density import feature_sosrep, hutchinson_loss
from isopleth.expansion import KernelExpansion
from isopleth.io.models import with_numpy_arrays
from isopleth.kernels import Gaussian

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 3))
ROWS[5:9] = ROWS[5]
ASKED = np.concatenate([2.0 * RNG.normal(size=(40, 3)), [[90.0, 0.0, 0.0]], ROWS[:2]])
SEARCH = Search(grid=[0.5, 1, 2, 4], cv=0.3)

Pair = namedtuple("Pair", ["one", "other"])


def same_backend(found, sent):
    assert type(found) is type(sent)
    assert array_api_compat.device(found) == array_api_compat.device(sent)


def close(found, expected):
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-12, atol=1e-12)


def test_the_error_of_features_on_a_subsample(send, monkeypatch):
    monkeypatch.setattr(feature_sosrep, "CHECKED", 50)
    model = RandomFeatureSOSREP(n_frequencies=100, random_state=0)
    host, away = clone(model).fit(ROWS), clone(model).fit(send(ROWS))
    assert away.approximation_error_ == pytest.approx(host.approximation_error_, abs=1e-12)


def test_answers_that_are_no_arrays_are_those_of_numpy(send):
    host, away = SOSREP(frame="scale").fit(ROWS), SOSREP(frame="scale").fit(send(ROWS))
    close(away.hyvarinen_loss(send(ASKED[:9])), host.hyvarinen_loss(ASKED[:9]))
    assert away.level_set(0.9) == pytest.approx(host.level_set(0.9), abs=1e-12)
    levels = away.level_set(send(np.array([0.5, 0.9])))
    same_backend(levels, send(ROWS))
    close(levels, host.level_set([0.5, 0.9]))
    assert type(away.level_set([0.5, 0.9])) is np.ndarray


@pytest.mark.parametrize("estimator", [SOSREP(frame="scale"), KDE(kernel="laplacian", frame="scale")], ids=repr)
def test_draws_are_those_of_numpy_on_the_backend_of_the_model(estimator, send):
    host, away = clone(estimator).fit(ROWS), clone(estimator).fit(send(ROWS))
    drawn = away.sample(20, random_state=1)
    same_backend(drawn, send(ROWS))
    close(drawn, host.sample(20, random_state=1))


def test_length_scales_and_bounds_may_be_tensors(send):
    host = SOSREP(length_scale=[0.5, 1.0, 2.0], frame="scale").fit(ROWS)
    away = SOSREP(length_scale=send(np.array([0.5, 1.0, 2.0])), frame="scale").fit(send(ROWS))
    close(away.dual_coef_, host.dual_coef_)
    again = clone(SOSREP(length_scale=away.length_scale_, frame="scale")).fit(ROWS)
    np.testing.assert_array_equal(again.dual_coef_, host.dual_coef_)
    based = Search(grid=send(np.array([1.0, 2.0])), base=send(np.array([0.5, 1.0, 2.0])))
    assert based == Search(grid=[1, 2], base=[0.5, 1.0, 2.0])
    ends = np.array([[-9.0, 9.0], [-9.0, np.inf], [-np.inf, 9.0]])
    host = KDE(bounds=ends, frame="scale").fit(ROWS)
    for bounds in (send(ends), {j: send(pair) for j, pair in enumerate(ends)}):
        close(KDE(bounds=bounds, frame="scale").fit(ROWS).dual_coef_, host.dual_coef_)


def test_constant_columns_come_back_in_draws_and_gradients(send):
    X = np.concatenate([ROWS, np.full((300, 1), 7.0)], axis=1)
    with pytest.warns(DataWarning, match="constant"):
        away = SOSREP(frame="scale").fit(send(X))
    assert (to_numpy(away.sample(3, random_state=0))[:, 3] == 7.0).all()
    assert (to_numpy(away.grad_log_density(send(X[:5])))[:, 3] == 0.0).all()


def test_models_without_tensors_are_saved_as_they_are():
    model = SOSREP(length_scale=SEARCH, frame="scale").fit(ROWS)
    assert with_numpy_arrays(model) is model
    assert with_numpy_arrays({"a": [model, (1, None)]})["a"][0] is model


def test_tensors_in_what_a_model_holds_are_converted(send):
    inner = KDE(length_scale=send(np.ones(3)), frame="scale")
    guarded = KernelExpansion(Gaussian(dim=1), np.zeros((2, 1)), send(np.ones(2)))
    outer = SOSREP(
        bounds=[(inner, 1), {"deep": [send(np.zeros(2)), Pair(1, send(np.ones(3)))]}], kernel=guarded, frame="scale"
    )
    found = with_numpy_arrays(outer)
    np.testing.assert_array_equal(found.kernel.coefficients, np.ones(2))
    assert found.kernel.centers is guarded.centers
    np.testing.assert_array_equal(found.bounds[0][0].length_scale, np.ones(3))
    np.testing.assert_array_equal(found.bounds[1]["deep"][0], np.zeros(2))
    np.testing.assert_array_equal(found.bounds[1]["deep"][1].other, np.ones(3))
    assert is_foreign(inner.length_scale)
    assert is_foreign(guarded.coefficients)
    assert type(found.bounds[0]) is tuple


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "float8_e5m2"])
def test_other_numbers_are_computed_in_float64(dtype):
    torch = pytest.importorskip("torch")
    whole = np.clip(np.round(3 * ROWS), -4, 4)
    X = torch.asarray(whole).to(getattr(torch, dtype))
    away = KDE(length_scale=1.0, frame="scale").fit(X)
    assert away.dual_coef_.dtype == torch.float64
    expected = KDE(length_scale=1.0, frame="scale").fit(whole).score_samples(whole)
    answer = away.score_samples(X)
    assert answer.dtype == torch.float64
    close(answer, expected)


def test_the_sign_of_a_view_is_heeded():
    torch = pytest.importorskip("torch")
    minus = torch.complex(torch.asarray(ROWS), torch.asarray(ROWS)).conj().imag
    assert minus.is_neg()
    close(KDE(frame="scale").fit(minus).centers_, KDE(frame="scale").fit(-ROWS).centers_)


def test_a_default_device_changes_nothing():
    torch = pytest.importorskip("torch")
    X = torch.asarray(ROWS.copy())
    with torch.device("meta"):  # on which there are no numbers
        found = SOSREP(frame="scale").fit(X).score_samples(X)
    close(found, SOSREP(frame="scale").fit(ROWS).score_samples(ROWS))


def test_the_checks_of_scikit_learn(monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("scipy", "1.14", reason="scikit-learn takes tensors with SciPy 1.14 or later")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    ran = 0
    for estimator in (SOSREP(frame="scale"), KDE(frame="scale"), RandomFeatureSOSREP(n_frequencies=20, random_state=0)):
        for _, check in estimator_checks_generator(estimator):
            if check.func.__name__.startswith("check_array_api"):
                with contextlib.suppress(unittest.SkipTest), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # few rows, and many features
                    check(estimator)
                    ran += 1
    assert ran >= 18  # array_api_strict and torch on the processor


def test_float16_is_warned_about():
    torch = pytest.importorskip("torch")
    with pytest.warns(DataWarning, match="float16"):
        KDE(frame="scale").fit(torch.asarray(ROWS).half())


def test_tensors_that_want_a_gradient_are_refused():
    torch = pytest.importorskip("torch")
    X = torch.asarray(ROWS.copy())
    wanting, number = X.clone().requires_grad_(), torch.tensor(0.5, requires_grad=True)
    words = r"requires a gradient, which estimators do not pass on; give \w+.detach\(\), or use .*isopleth.torch"
    for refused in (
        lambda: SOSREP(frame="scale").fit(wanting),
        lambda: SOSREP(frame="scale").fit(X).hyvarinen_loss(wanting),
        lambda: SOSREP(frame="scale").fit(X).level_set(number),
        lambda: SOSREP(length_scale=number, frame="scale").fit(X),
        lambda: SOSREP(bounds=wanting, frame="scale").fit(X),
        lambda: Search(base=number),
        lambda: Search(grid=wanting[0]),
        lambda: hutchinson_loss(lambda x: x.sum(axis=1), wanting),
        lambda: hutchinson_loss(lambda x: x.sum(axis=1), X, unit=number),
    ):
        with pytest.raises(InputError, match=words):
            refused()
    with pytest.raises(InputError, match="sample_weight requires"):
        SOSREP(frame="scale").fit(X, sample_weight=torch.ones(300, requires_grad=True))
    SOSREP(frame="scale").fit(wanting.detach())


def test_tensors_that_cannot_be_used_are_refused():
    torch = pytest.importorskip("torch")
    X = torch.asarray(ROWS.copy())
    holed = X.clone()
    holed[4, 1] = torch.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are a prototype
        nested = torch.nested.nested_tensor([X[:5], X[5:9]])
    for refused, words in (
        (holed, r"NaN in column 1 \(1 row\)"),
        (X.to_sparse(), r"sparse tensor; pass X.to_dense\(\)"),
        (X.to("meta"), "X is a quantised, nested or meta tensor; pass a plain dense tensor"),
        (nested, "X is a quantised, nested or meta tensor; pass a plain dense tensor"),
        (X.to(torch.complex128), "Complex data not supported"),
        (torch.complex(X, X).conj(), "Complex data not supported"),
        (X[:, 0], "one dimension"),
        (X[:1], "1 sample"),
    ):
        with pytest.raises(ValueError, match=words):
            RandomFeatureSOSREP().fit(refused)


def test_devices_without_float64_are_refused():
    device = array_api_strict.Device("no_float64")
    X = array_api_strict.asarray(ROWS, dtype=array_api_strict.float32, device=device)
    with pytest.raises(InputError, match=r"X is on .*, which has no float64; bring it to the processor first"):
        SOSREP(frame="scale").fit(X)


def test_the_estimated_loss_gives_its_density_tensors(send):
    host, away = SOSREP(frame="scale").fit(ROWS), SOSREP(frame="scale").fit(send(ROWS))

    def density(x):
        same_backend(x, send(ROWS))
        return away.score_samples(x)

    found = hutchinson_loss(density, send(ASKED[:9]), unit=away.unit_, n_probes=5, random_state=0)
    expected = hutchinson_loss(host.score_samples, ASKED[:9], unit=host.unit_, n_probes=5, random_state=0)
    assert found.value == pytest.approx(expected.value, rel=1e-4)  # second differences of rounded numbers


def test_arrays_sent_to_a_backend_come_back(send):
    a = np.arange(6.0).reshape(2, 3)
    backend = Backend.of(send(a))
    assert backend == Backend.of(send(a)) != NUMPY
    sent = backend.array(a[:, ::-1])
    same_backend(sent, send(a))
    np.testing.assert_array_equal(to_numpy(sent), a[:, ::-1])
    assert backend.array(2.0) == 2.0
    assert NUMPY.array(a) is a
    assert to_numpy(a) is a


def test_what_is_sent_is_a_copy(send):
    a = np.zeros(3)
    sent = Backend.of(send(a)).array(a)
    a[0] = 1.0
    assert float(sent[0]) == 0.0


def test_frames_and_lists_belong_to_numpy():
    import pandas as pd
    import polars as pl

    for x in (ROWS, ROWS[0, 0], [[1.0]], pd.DataFrame(ROWS), pl.DataFrame(ROWS), None):
        assert Backend.of(x) is NUMPY
        assert to_numpy(x) is x
