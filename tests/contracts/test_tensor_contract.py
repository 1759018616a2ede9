"""Every estimator gives NumPy's numbers for tensors, in the library and on the device of what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import array_api_compat
import numpy as np
import pytest
from sklearn.base import clone

from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DriftMonitor,
    InputError,
    KernelScore,
    NystromKEF,
    RandomFeatureSOSREP,
    Search,
    load,
    save,
)
from isopleth.core.arrays import is_foreign, to_numpy
from isopleth.difference import KDEDifference
from isopleth.kernels import Sobolev
from isopleth.score import KEF, SSGE, Landweber, NuIteration, NuMethod, SpectralCutoff, Stein, system

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 3))
ROWS[5:9] = ROWS[5]
OTHERS = RNG.normal(0.5, 1.3, size=(70, 3))
TIED = RNG.integers(0, 4, size=(60, 3)).astype(float)
WEIGHTS = RNG.integers(0, 4, size=80).astype(float)
ASKED = np.concatenate([2.0 * RNG.normal(size=(10, 3)), ROWS[:2]])
LABELS = np.repeat([3, 5], 40)
SERIES = np.concatenate([RNG.normal(size=(40, 1)), RNG.normal(4.0, size=(40, 1))])
SEARCH = Search(grid=[0.5, 1, 2, 4], cv=0.3)
scale_score = partial(KernelScore, frame="scale")
scale_nystrom = partial(NystromKEF, frame="scale", base=None)


def of_weighted_rows(send):
    return {"X": send(ROWS), "sample_weight": send(WEIGHTS)}


@dataclass(frozen=True)
class Case:
    """An estimator, how it is fitted to what `send` makes of arrays, and the accuracy to which libraries agree."""

    estimator: object
    arguments: Callable = of_weighted_rows
    rtol: float = 1e-9
    strict: bool = True  # whether it runs on a library that has nothing but the standard

    def fit(self, send):
        arguments = self.arguments(send)
        return clone(self.estimator).fit(*list(arguments.values())[:1], **dict(list(arguments.items())[1:]))


def of_two(send):
    return {"X": send(ROWS), "Y": send(OTHERS)}


def of_ties(send):
    return {"X": send(np.vstack([ROWS, TIED])), "Y": send(OTHERS)}


def of_rows(send):
    return {"X": send(ROWS)}


densities = partial(Case, rtol=1e-12)
tasks = partial(Case, rtol=0.0, strict=False)
CASES = {
    "sosrep": densities(SOSREP(frame="scale")),
    "streamed": densities(SOSREP(memory_limit=2**19, frame="scale")),
    "laplacian": densities(SOSREP(kernel="laplacian", frame="scale")),
    "table": densities(SOSREP(kernel="sdo", frame="scale")),
    "sobolev": densities(SOSREP(kernel=Sobolev((0.5, 0.0, 1.0)), frame="scale")),
    "coordinates": densities(SOSREP(solver="coordinate_descent", frame="scale")),
    "natural": densities(SOSREP(solver="natural_gradient", frame="scale")),
    "search": densities(SOSREP(length_scale=SEARCH, frame="scale")),
    "landmarks": densities(SOSREP(landmarks=50, frame="scale")),
    "bounds": densities(SOSREP(kernel="matern52", bounds={0: (-100, None)}, frame="scale")),
    "kde": densities(KDE(frame="scale")),
    "kde search": densities(KDE(kernel="matern32", length_scale=SEARCH, frame="scale")),
    "features": densities(RandomFeatureSOSREP(n_frequencies=100, random_state=0)),
    "folds": Case(scale_score(cv=2)),
    "diagonal folds": Case(scale_score(space="diagonal", kernel="matern52", cv=2)),
    "base": Case(scale_score(regularizer=NuIteration(steps=5), base="gaussian", length_scale="median")),
    "lanczos": Case(
        scale_score(regularizer=SpectralCutoff(threshold=0.05), base=None, length_scale=2.0, solver="lanczos")
    ),
    "stein": Case(Stein()),
    "augmented": Case(Stein(out_of_sample="augmented")),
    "ssge": Case(SSGE()),
    "curl-free ssge": Case(SSGE(space="curl_free", count=9)),
    "kef": Case(KEF()),
    "full kef": Case(KEF(kernel="gaussian", truncated=False, base="gaussian", solver="direct")),
    "cg": Case(KEF(solver="cg", tol=1e-12)),
    "nu": Case(NuMethod(solver="iterate", base="gaussian")),
    "landweber": Case(Landweber(space="diagonal", steps=7)),
    "nystrom": Case(scale_nystrom(landmarks=12, random_state=0, base="gaussian")),
    "diagonal nystrom": Case(scale_nystrom(landmarks=12, space="diagonal", random_state=0)),
    "filtered nystrom": Case(
        scale_nystrom(landmarks=8, regularizer=SpectralCutoff(energy=0.9), landmark_method="leverage", random_state=0)
    ),
    "difference": Case(LSDD(centers=30, random_state=0), of_two),
    "ties": Case(LSDD(length_scale=[[0.5], [1.0], [2.0]], alpha=[0.01, 1.0], centers=None, random_state=1), of_ties),
    # The norm of the kernel's space is singular up to the 1e-8 that is added, so its solutions have few digits.
    "rkhs": Case(LSDD(length_scale=1.0, alpha=0.1, penalty="rkhs", centers=20, random_state=0), of_two, 1e-6),
    "points": Case(LSDD(length_scale=1.0, alpha=0.1, centers=ASKED, cv=3, random_state=0), of_two),
    "difference of KDE": Case(KDEDifference(length_scale=0.7), of_two),
    "cells": tasks(CellwiseDetector(n_estimators=10, random_state=0), of_rows),
    "anomalies": tasks(AnomalyDetector(n_estimators=10, random_state=0), of_rows),
    "priors": tasks(
        ClassPriorEstimator(random_state=0), lambda send: {"X": send(ROWS + LABELS[:, None]), "y": send(LABELS)}
    ),
    "drift": tasks(DriftMonitor(window=10, expected_run_length=50, random_state=0), of_rows),
    "changes": tasks(ChangePointDetector(random_state=0), lambda send: {"X": send(SERIES)}),
}
ANSWERS = (
    "score_samples",
    "grad_log_density",
    "divergence",
    "log_density",
    "difference",
    "difference_std",
    "decision_function",
    "predict",
    "p_values",
)
NUMBERS = ("log_normalizer_", "squared_l2_", "alpha_", "threshold_")


@pytest.fixture(autouse=True)
def small_systems_count_as_large(monkeypatch, few_simulations):
    monkeypatch.setattr(system, "QUICK", 0)  # systems as small as those of tests are solved where the rows are


def numbers(array):
    return hasattr(array, "shape") and array.ndim > 0 and to_numpy(array).dtype.kind in "fi"


def public_arrays(model):
    """Return the public fitted arrays of numbers by their names, those of properties too."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name, None) for name in names}
    return {name: array for name, array in found.items() if numbers(array)}


def same(found, expected, sent, rtol):
    """`found` has the library and the device of `sent`, and the numbers of `expected`."""
    assert type(found) is type(sent)
    assert array_api_compat.device(found) == array_api_compat.device(sent)
    assert to_numpy(found).dtype == expected.dtype
    close(found, expected, rtol)


def close(found, expected, rtol):
    finite = np.abs(expected[np.isfinite(expected)])
    np.testing.assert_allclose(to_numpy(found), expected, rtol=rtol, atol=rtol * finite.max(initial=1.0))


def outcome(model, method, *arguments):
    """Return the answer, or what refused it."""
    try:
        return getattr(model, method)(*arguments)
    except InputError as error:
        return str(error)


@pytest.fixture(scope="module")
def on_host():
    """Models of NumPy's arrays, fitted once."""
    fitted = {}

    def model(name):
        if name not in fitted:
            fitted[name] = CASES[name].fit(np.array)
        return fitted[name]

    return model


# The strict library finds what is not standard. Of the two ways of torch, one for each case: all solvers and blocks meet both.
WAYS = [("strict", name) for name, case in CASES.items() if case.strict]
WAYS += [(("torch", "torch as a device")[k % 2], name) for k, name in enumerate(CASES)]
WAYS += [("cuda", name) for name in CASES]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("send", "name"), WAYS, indirect=["send"])
def test_models_and_answers_are_those_of_numpy_where_they_are_asked_for(name, send, on_host, tmp_path):
    case, sent = CASES[name], send(ASKED)
    host, away = on_host(name), case.fit(send)
    expected, arrays = public_arrays(host), public_arrays(away)
    assert expected.keys() == arrays.keys()
    for attribute, array in arrays.items():
        same(array, expected[attribute], sent, case.rtol)
    for attribute in NUMBERS:
        if np.ndim(value := getattr(host, attribute, ())) == 0:
            assert float(getattr(away, attribute)) == pytest.approx(float(value), rel=max(case.rtol, 1e-12), abs=1e-12)
    answered = [method for method in ANSWERS if hasattr(host, method)]
    for method in answered:
        answer = outcome(host, method, ASKED)
        if isinstance(answer, str):
            assert outcome(away, method, sent) == answer
            continue
        for model in (host, away):
            same(getattr(model, method)(sent), answer, sent, case.rtol)
        assert type(getattr(away, method)(ASKED)) is np.ndarray
    save(away, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for attribute, array in public_arrays(loaded).items():
        assert type(array) is np.ndarray
        close(array, expected[attribute], case.rtol)
        assert is_foreign(getattr(away, attribute))  # what was saved is as it was


@pytest.mark.parametrize("name", ["kde", "features", "kef", "nystrom", "difference", "anomalies", "priors", "changes"])
def test_tensors_that_want_a_gradient_are_refused_by_name(name):
    torch = pytest.importorskip("torch")
    for wanting in CASES[name].arguments(np.array):
        arguments = {
            other: torch.asarray(np.array(array, dtype=float))
            for other, array in CASES[name].arguments(np.array).items()
        }
        arguments[wanting].requires_grad_()
        first, *rest = arguments.items()
        with pytest.raises(InputError, match=r"requires a gradient.*\.detach\(\)"):
            clone(CASES[name].estimator).fit(first[1], **dict(rest))
