"""What no answer to a table of words, truth values, times and gaps may depend on: library, order of columns, threads, files."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from isopleth import (
    KDE,
    LSDD,
    SOSREP,
    AnomalyDetector,
    CellwiseDetector,
    ClassPriorEstimator,
    ConditionalDensity,
    DataWarning,
    DensityImputer,
    DriftMonitor,
    InputError,
    load,
    save,
    two_sample_test,
)
from isopleth.tasks import AnytimeDriftMonitor
from people import people

LABELS = np.where(np.arange(120) % 3, "healthy", "ill")


@dataclass(frozen=True)
class Case:
    """An estimator of a table, how it is asked about another one, and what its fit takes beside the table."""

    estimator: object
    ask: object
    beside: object = field(default=lambda make: ())

    def fit(self, make=lambda table: table, **parameters):
        return clone(self.estimator).set_params(**parameters).fit(make(people(120)), *self.beside(make))

    def answer(self, model, table):
        return np.asarray(self.ask(copy.deepcopy(model), table))


def other_table(make):
    return (make(people(90, 1, red=0.5)),)


def ages(model, table):
    filled = model.transform(table)
    return pd.DataFrame({"age": filled["age"]})["age"].to_numpy(float)


def scores(model, table):
    return model.score_samples(table)


CASES = {
    "density": Case(SOSREP(), scores),
    "mixture": Case(KDE(), scores),
    "filled gaps": Case(DensityImputer(), ages),
    "anomalies": Case(AnomalyDetector(n_estimators=20, random_state=0), scores),
    "anomalies beside a reference": Case(AnomalyDetector(novelty=True, fast=True, random_state=0), scores),
    "wrong cells": Case(CellwiseDetector(n_estimators=10, random_state=0), scores),
    "drift": Case(DriftMonitor(20, 100, random_state=0), lambda model, table: model.update(table).statistic),
    "drift at any time": Case(
        AnytimeDriftMonitor(window=20, random_state=0), lambda model, t: model.update(t).statistic
    ),
    "law of a word": Case(
        ConditionalDensity(n_estimators=10, n_jobs=1, random_state=0),
        lambda model, t: model.probabilities(t),
        lambda _: (LABELS,),
    ),
    "shares": Case(ClassPriorEstimator(random_state=0), lambda model, t: model.estimate(t).priors, lambda _: (LABELS,)),
    "difference": Case(LSDD(centers=50, random_state=0), lambda model, table: model.difference(table), other_table),
}
EACH = pytest.mark.parametrize("name", CASES)
ASKED = people(60, 2, gap=0.2)


class Stream:
    """Nothing but the Arrow stream interface; as the answer of a query, it can be read once."""

    def __init__(self, frame):
        self._table, self._read = arrow(frame), False

    def __arrow_c_stream__(self, requested_schema=None):
        assert not self._read
        self._read = True
        return self._table.__arrow_c_stream__(requested_schema)


def arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


def reordered(frame):
    return frame[["member", "day", "age", "colour"]]


LIBRARIES = [lambda frame: pytest.importorskip("polars").from_pandas(frame), arrow, Stream]


@pytest.fixture(scope="module")
def fitted():
    return {name: case.fit() for name, case in CASES.items()}


@EACH
def test_libraries_and_orders_of_columns_give_one_answer(name, fitted):
    case, model = CASES[name], fitted[name]
    expected = case.answer(model, ASKED)
    assert np.isfinite(expected).any()
    np.testing.assert_array_equal(case.answer(model, reordered(ASKED)), expected)
    for make in LIBRARIES:
        np.testing.assert_array_equal(case.answer(case.fit(make), make(ASKED)), expected)


@EACH
def test_files_and_threads_change_no_bit(name, fitted, tmp_path):
    case, model = CASES[name], fitted[name]
    save(model, tmp_path / "model")
    threads = {"n_jobs": 2} if "n_jobs" in model.get_params(deep=False) else {}
    for other in (load(tmp_path / "model"), case.fit(**threads)):
        np.testing.assert_array_equal(case.answer(other, ASKED), case.answer(model, ASKED))


@EACH
def test_missing_columns_are_named_and_new_words_are_counted(name, fitted):
    case, model = CASES[name], fitted[name]
    with pytest.raises(InputError, match="lacks column 'colour'"):
        case.answer(model, ASKED.drop(columns="colour"))
    with pytest.raises(InputError, match="'age' holds 'old' in row 3"):
        case.answer(model, ASKED.assign(age=ASKED["age"].astype(object).mask(np.arange(60) == 3, "old")))
    new = ASKED.replace({"colour": {"red": "purple"}})
    count = (new["colour"] == "purple").sum()
    with pytest.warns(DataWarning, match=re.escape(f"'colour' ({count})")) as caught:
        assert np.isfinite(case.answer(model, new)).any()
    assert len(caught) == 1


def test_two_samples_of_any_library_give_one_answer():
    tables, few = (people(120), people(90, 1, red=0.4)), {"n_resamples": 99, "random_state": 0}
    expected = two_sample_test(*tables, **few, n_jobs=1)
    for one, other in [*((make, make) for make in LIBRARIES), (pd.DataFrame, reordered), (pd.DataFrame, arrow)]:
        found = two_sample_test(one(tables[0]), other(tables[1]), **few)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
        np.testing.assert_array_equal(found.witness.p_values[np.argsort(found.names)], expected.witness.p_values)
