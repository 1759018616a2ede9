"""Every answer is continuous in the data: cells moved by 1e-12 of themselves move estimators and tests by at most 1e-6."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils import get_tags

from estimators import ALL, VARIANTS
from isopleth import (
    KDE,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    ConditionalDensity,
    DensityImputer,
    InputError,
    KernelScore,
    stein_test,
    two_sample_test,
)
from isopleth.difference import LSDD, KDEDifference
from isopleth.score import Stein
from isopleth.tasks import DriftMonitor, sliding_lsdd

N = 60
ANSWERS = ("score_samples", "grad_log_density", "decision_function", "p_values", "transform", "difference")
# Counts of steps, and times, may change.
LEFT_OUT = {"n_iter_"}


def table(kind, seed=0):
    """Numbers of unlike shapes that depend on each other; with gaps, or with gaps and words."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=N)
    X = np.column_stack([x, x**2 + 0.3 * rng.normal(size=N), np.exp(0.5 * rng.normal(size=N))])
    if kind == "numbers":
        return X
    X[rng.random(X.shape) < 0.1] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    if kind == "gaps":
        return X
    words = np.where(rng.random(len(X)) < 0.1, None, rng.choice(["a", "b", "c"], len(X)))
    return pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "word": words})


def moved(X, seed=1):
    """Return a table whose numbers are moved by at most 1e-12 of themselves."""
    if isinstance(X, pd.DataFrame):
        return X.assign(**{name: moved(X[name].to_numpy(), seed) for name in "xyz"})
    return X * (1.0 + 1e-12 * np.random.default_rng(seed).uniform(-1.0, 1.0, X.shape))


def numbers(value):
    """Return the numbers of an answer; an empty array for other things."""
    if isinstance(value, pd.DataFrame):
        return np.concatenate([numbers(value[name].to_numpy()) for name in value])
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.ndarray, np.number)):
        return np.empty(0)
    array = np.asarray(value)
    return array.astype(float).ravel() if array.dtype.kind in "iuf" else np.empty(0)


def attributes(model):
    """Return the fitted numbers and arrays of a model."""
    return {
        name: numbers(value)
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name not in LEFT_OUT
    }


def fitted(estimator, X):
    estimator = clone(estimator)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    half = len(X) // 2
    if isinstance(estimator, (LSDD, KDEDifference)):
        return estimator.fit(X[:half], X[half:])
    if isinstance(estimator, ClassPriorEstimator):
        return estimator.fit(X, np.arange(len(X)) % 2)
    if isinstance(estimator, ConditionalDensity):
        return estimator.fit(X, np.sin(np.arange(len(X))))
    return estimator.fit(X)


def answers(estimator, X):
    model = fitted(estimator, X)
    out = attributes(model)
    for name in ANSWERS:
        if hasattr(model, name):
            try:
                out[name] = numbers(getattr(model, name)(X))
            except (NotImplementedError, AttributeError):
                continue
    if isinstance(model, ConditionalDensity):
        out["quantiles"] = model.predict_quantile(X, [0.1, 0.5, 0.9]).ravel()
    if isinstance(model, ClassPriorEstimator):
        out["priors"] = np.asarray(model.estimate(X).priors, dtype=float).ravel()
    return out


def same(here, there):
    assert here.keys() == there.keys()
    assert sum(len(value) for value in here.values()) > 0
    for name, value in here.items():
        np.testing.assert_allclose(there[name], value, rtol=1e-6, atol=1e-6, err_msg=name)


def kinds_of(estimator):
    tags = get_tags(estimator).input_tags
    yield "numbers"
    if tags.allow_nan:
        yield "words" if tags.categorical else "gaps"  # a table with words has gaps, too


SLOW = VARIANTS[5:]  # those before run code that no basic estimator runs, and are quick

CASES = [
    pytest.param(
        estimator, kind, id=f"{estimator!r}-{kind}"[:60], marks=[pytest.mark.slow] * any(estimator is v for v in SLOW)
    )
    for estimator in ALL
    if not isinstance(estimator, ChangePointDetector)
    for kind in kinds_of(estimator)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "kind"), CASES)
def test_estimators(estimator, kind):
    X = table(kind)
    if kind != "numbers" and getattr(estimator, "frame", None) == "deep":
        with pytest.raises(InputError, match="frame"):
            fitted(estimator, X)
        return
    same(answers(estimator, X), answers(estimator, moved(X)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "kind", "answer"),
    [
        (SOSREP(), "numbers", "score_samples"),
        (SOSREP(landmarks=15), "numbers", "score_samples"),
        (KernelScore(), "numbers", "grad_log_density"),
        (DensityImputer(), "gaps", "transform"),
        (Stein(), "numbers", "grad_log_density"),
        (LSDD(), "numbers", "difference"),
        (AnomalyDetector(), "numbers", "score_samples"),
        (CellwiseDetector(n_estimators=20), "gaps", "score_samples"),
        (AnomalyDetector(n_estimators=25), "gaps", "p_values"),
        (AnomalyDetector(novelty=True), "gaps", "p_values"),
    ],
    ids=str,
)
def test_repeated_values(estimator, kind, answer):
    """Values that are equal in the table, and rows that are, behave as those that differ by rounding."""
    X = np.round(table(kind))
    assert len(np.unique(X, axis=0)) < len(X)
    here, there = (getattr(fitted(estimator, some), answer)(some) for some in (X, moved(X)))
    np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [SOSREP, KDE])
def test_columns_of_many_zeros(kind):
    """Zeros have no digits: they differ by rounding if they do by a small share of the other numbers."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)) * (rng.random((N, 3)) < [0.1, 0.1, 1.0])
    there = kind().fit(X + 1e-12 * rng.uniform(-1.0, 1.0, X.shape))
    np.testing.assert_allclose(there.score_samples(X + 0.1), kind().fit(X).score_samples(X + 0.1), rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_column_that_is_constant_up_to_rounding_is_constant():
    X = table("numbers")
    X[:, 1] = 5.0
    here, there = (SOSREP(frame="scale").fit(rows).score_samples(X) for rows in (X, moved(X)))
    np.testing.assert_allclose(there, here, rtol=1e-6)
    with pytest.raises(InputError, match="constant columns have no score: column 1"):
        KernelScore().fit(moved(X))


def test_centers_of_repeated_rows():
    X = np.round(table("numbers"))
    here, there = (fitted(ClassPriorEstimator(), some).centers_ for some in (X, moved(X)))
    np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("novelty", [False, True])
def test_rows_that_are_alike(novelty):
    """The nodes of a grid, whose distances and ranks are equal in many pairs, and new rows at and beside them."""
    X = np.repeat(np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2), 3, axis=0)
    here, there = (AnomalyDetector(novelty=novelty, random_state=0).fit(rows) for rows in (X, moved(X)))
    np.testing.assert_allclose(there.training_scores_, here.training_scores_, rtol=1e-6, atol=1e-6)
    for factor in (1.0, 1.1):
        found = [model.score_samples(factor * rows[:40]) for model, rows in ((here, X), (there, moved(X)))]
        np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("novelty", [False, True])
def test_explanations(novelty):
    """Columns that say the same, and a column of one value, beside rounded ones, in which many surprises are equal."""
    X = np.round(table("numbers"), 1)
    X = np.column_stack([X, -X, np.full(N, 0.37)])
    models = [AnomalyDetector(novelty=novelty, fast=True, random_state=0).fit(rows) for rows in (X, moved(X))]
    here, there = (model.explain(rows[:20]) for model, rows in zip(models, (X, moved(X)), strict=True))
    assert here.top() == there.top()
    for name in ("scores", "excess", "rarity", "usual", "low", "high"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["gaps", "words"])
def test_intervals_of_gaps(kind):
    def ask(X):
        ends = DensityImputer().fit(X).impute_interval(X)
        return dict(zip(("lower", "upper"), map(numbers, ends), strict=True))

    same(ask(table(kind)), ask(moved(table(kind))))


@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_two_samples(kind):
    def ask(X):
        half = len(X) // 2
        found = two_sample_test(X[:half], X[half:], random_state=0)
        return {"pvalue": numbers(found.pvalue), "statistic": numbers(found.statistic)}

    X = table(kind)
    tables = [X] if kind == "words" else [X, np.round(X)]
    for rows in tables:
        same(ask(rows), ask(moved(rows)))


@pytest.mark.usefixtures("few_simulations")
def test_changes_of_rounded_series():
    X = load_iris().data[:, [3]]
    here, there = (attributes(ChangePointDetector(random_state=0).fit(series)) for series in (X, moved(X)))
    here["p_values_"], there["p_values_"] = (
        np.log(some["p_values_"]) for some in (here, there)
    )  # some are below 1e-40
    same(here, there)


def test_goodness_of_fit():
    def ask(X):
        found = stein_test(X, SOSREP(frame="scale").fit(X[::2]).grad_log_density, random_state=0)
        return {"pvalue": numbers(found.pvalue), "statistic": numbers(found.statistic)}

    same(ask(table("numbers")), ask(moved(table("numbers"))))


@pytest.mark.usefixtures("few_simulations")
@pytest.mark.parametrize("gaps", [pytest.param(False, marks=pytest.mark.slow), True])
def test_changes(gaps):
    rng = np.random.default_rng(2)
    series = rng.normal(size=(100, 2)) * np.repeat([1.0, 4.0], 50)[:, None]
    series[30:, 0] += 3.0
    curves = [sliding_lsdd(rows, random_state=0) for rows in (series, moved(series))]
    np.testing.assert_allclose(*curves, atol=1e-6)
    if gaps:
        series[rng.random(series.shape) < 0.05] = np.nan
    here, there = (attributes(ChangePointDetector(random_state=0).fit(rows)) for rows in (series, moved(series)))
    assert len(here["change_points_"])
    same(here, there)


def test_alarms():
    def ask(X):
        monitor = DriftMonitor(window=8, expected_run_length=40, random_state=0).fit(X)
        return {"statistic": numbers(monitor.update(X[:30]).statistic), "threshold": numbers(monitor.threshold_)}

    for X in (table("numbers"), np.round(table("numbers"))):
        same(ask(X), ask(moved(X)))
