"""What no estimator may depend on: copies instead of weights, orders, units, threads, constant columns, files."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    DataWarning,
    KernelScore,
    NystromKEF,
    RandomFeatureSOSREP,
    Search,
    load,
    save,
)
from isopleth.difference import KDEDifference
from isopleth.score import KEF, SSGE, NuMethod, Stein, Tikhonov

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 2.0]] + 3.0 * RNG.integers(
    2, size=(60, 1)
)
OTHERS = RNG.normal(1.0, 1.5, size=(50, 3))
ASKED = RNG.normal(1.0, 2.0, size=(12, 3))
COUNTS = RNG.integers(0, 4, size=60)
ORDER, UNIT, SHIFT = np.array([2, 0, 1]), np.array([1e3, 1.0, 1e-2]), np.array([5.0, -20.0, 0.0])


@dataclass(frozen=True)
class Case:
    """An estimator, the method that answers, the accuracy of its solver, and the bytes that are hardly enough for it."""

    estimator: object
    answer: str = "score_samples"
    rtol: float = 1e-7
    memory: float = 1e5

    def fit(self, X, Y=OTHERS, weights=None, **parameters):
        model = clone(self.estimator).set_params(**parameters)
        if self.answer == "difference":
            return model.fit(X, Y, **({} if weights is None else {"sample_weight_x": weights}))
        return model.fit(X, **({} if weights is None else {"sample_weight": weights}))

    def ask(self, model, asked=ASKED):
        answer = getattr(model, self.answer)(asked)
        return np.append(answer, model.squared_l2_) if self.answer == "difference" else answer

    def in_units(self, answer):
        """The answer of a model of rows in other units and columns in another order, as if there had been neither."""
        if self.answer == "grad_log_density":
            return answer[:, np.argsort(ORDER)] * UNIT
        return answer * UNIT.prod() if self.answer == "difference" else answer + np.log(UNIT).sum() * self.is_density

    @property
    def is_density(self):
        return self.answer == "score_samples" and not isinstance(self.estimator, AnomalyDetector | CellwiseDetector)


def score(estimator, memory=3e5):
    return Case(estimator, "grad_log_density", 1e-6, memory)


CASES = {
    "sosrep": Case(SOSREP(frame="scale")),
    "laplacian": Case(SOSREP(kernel="laplacian", length_scale="scott", frame="scale")),
    "sdo": Case(SOSREP(kernel="sdo", frame="scale")),
    "landmarks": Case(SOSREP(landmarks=25, frame="scale")),
    "search": Case(SOSREP(length_scale=Search(grid=[0.5, 1.0, 2.0, 4.0]), frame="scale")),
    "whitened": Case(KDE(frame="whiten")),
    "frames": Case(SOSREP(frame="auto"), rtol=1e-6, memory=1e6),
    "deep frames": Case(SOSREP(frame="gp2"), rtol=1e-6, memory=1e6),
    "kde": Case(KDE(frame="scale")),
    "kde search": Case(KDE(length_scale=Search("likelihood", grid=[0.5, 1.0, 2.0, 4.0]), frame="scale")),
    "matern": Case(KDE(kernel="matern52", frame="scale")),
    "debiased": Case(KDE(debias=KernelScore(length_scale=1.5, regularizer=Tikhonov(0.1)), frame="scale"), rtol=1e-5),
    "features": Case(RandomFeatureSOSREP(n_frequencies=60, random_state=0), rtol=1e-5, memory=1e6),
    "stein": score(Stein(frame="whiten")),
    "kef": score(KEF(frame="whiten", base="gaussian"), memory=2e6),
    "ssge": score(SSGE(frame="whiten", energy=0.9)),
    "nu": score(NuMethod(frame="whiten", steps=9)),
    "fixed": score(KernelScore(frame="smooth", length_scale=1.5, regularizer=Tikhonov(0.1, truncated=False))),
    "chosen": score(KernelScore(frame="whiten"), memory=2e6),
    "chosen nystrom": score(NystromKEF(frame="whiten", landmarks=20, random_state=0), memory=2e6),
    "nystrom": score(NystromKEF(frame="whiten", landmarks=20, random_state=0, regularizer=Tikhonov(0.1))),
    "lsdd": Case(LSDD(alpha=[0.1, 1.0], centers=30, random_state=0), "difference", 1e-6),
    "difference of kde": Case(KDEDifference(), "difference"),
    "anomalies": Case(AnomalyDetector(n_estimators=20, random_state=0)),
    "cells": Case(CellwiseDetector(n_estimators=10, random_state=0), rtol=1e-6, memory=3e6),
}
EACH = pytest.mark.parametrize("name", CASES)
DRAW_COLUMNS = {"features", "anomalies"}  # in their order


def close(found, wanted, rtol):
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())


@pytest.fixture(scope="module")
def fitted():
    return {name: case.fit(ROWS) for name, case in CASES.items()}


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("anomalies", "cells")])
def test_weights_are_copies_in_any_order(name):
    case = CASES[name]
    order = np.random.default_rng(1).permutation(COUNTS.sum())
    weighted = case.fit(ROWS, weights=COUNTS)
    copies = case.fit(np.repeat(ROWS, COUNTS, axis=0)[order])
    close(case.ask(weighted), case.ask(copies), case.rtol)


@EACH
def test_neither_units_nor_the_orders_of_columns_and_rows_matter(name, fitted):
    case, order = CASES[name], [0, 1, 2] if name in DRAW_COLUMNS else ORDER
    rows, others, asked = ((X * UNIT + SHIFT)[:, order] for X in (ROWS[::-1], OTHERS, ASKED))
    close(case.in_units(case.ask(case.fit(rows, others), asked)), case.ask(fitted[name]), 10.0 * case.rtol)


@pytest.mark.parametrize("name", [name for name in CASES if name != "cells"])  # its laws are of few rows
def test_threads_and_little_memory_change_nothing(name, fitted):
    case = CASES[name]
    close(case.ask(case.fit(ROWS, n_jobs=2, memory_limit=case.memory)), case.ask(fitted[name]), case.rtol)


@pytest.mark.parametrize(
    "name", [n for n in CASES if CASES[n].answer != "grad_log_density" and n != "difference of kde"]
)
def test_a_constant_column_is_named_and_changes_nothing(name, fitted):
    """The detector does not name it: it judges other numbers there in new rows."""
    case = CASES[name]
    wide, asked = (np.insert(X, 1, 7.0, axis=1) for X in (ROWS, ASKED))
    with nullcontext() if name == "anomalies" else pytest.warns(DataWarning, match="constant"):
        model = case.fit(wide, np.insert(OTHERS, 1, 7.0, axis=1))
    close(case.ask(model, asked), case.ask(fitted[name]), case.rtol)


@EACH
def test_files_copies_and_pickles_have_the_same_bits(name, fitted, tmp_path):
    case, model = CASES[name], fitted[name]
    save(model, tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(case.ask(copy), case.ask(model))
        assert repr(getattr(copy, "search_path_", None)) == repr(getattr(model, "search_path_", None))
    assert str(clone(model).get_params()) == str(case.estimator.get_params())
