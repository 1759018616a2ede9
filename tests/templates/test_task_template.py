"""The template of a task is a task."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from templates.task import LowDensityRows, TaskTemplate


@parametrize_with_checks([TaskTemplate()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_result_and_its_table():
    X = np.r_[np.random.default_rng(0).normal(size=(39, 2)), [[30.0, 30.0]]]
    found = clone(TaskTemplate(share=0.05)).fit(X).lowest(X)
    assert isinstance(found, LowDensityRows)
    assert found.rows[0] == 39
    assert len(found.rows) == 2
    assert list(found.table()) == ["row", "log_density"]
    assert found.to_dict()["summary"] == ["2 rows of low density; the lowest one is row 39."]
    assert str(found).startswith("row 39: log density -")
    with pytest.raises(AttributeError):
        found.rows = np.empty(0)


def test_weights_are_repetitions():
    X, w = np.random.default_rng(1).normal(size=(30, 2)), np.random.default_rng(2).integers(1, 4, size=30)
    weighted, repeated = TaskTemplate().fit(X, sample_weight=w), TaskTemplate().fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-10)
