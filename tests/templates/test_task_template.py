"""The template of a task is a task."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from templates.task import LowDensityRows, TaskTemplate


@parametrize_with_checks([TaskTemplate()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_a_result_needs_no_rendering_code(tmp_path):
    X = np.r_[np.random.default_rng(0).normal(size=(39, 2)), [[30.0, 30.0]]]
    found = clone(TaskTemplate(share=0.05)).fit(X).lowest(X)
    assert isinstance(found, LowDensityRows)
    assert found.rows[0] == 39
    assert len(found.rows) == 2
    assert list(found.table()) == ["row", "log_density"]
    assert found.to_dict()["summary"] == ["2 rows of low density; the lowest one is row 39."]
    assert found.text(1).splitlines()[2:4] == ["row  log_density", f" 39  {found.log_density[0]:.4g}"]
    assert found.plot().get_ylabel() == "log density"
    found.report(tmp_path / "page.html")
    assert "Rows of low density" in (tmp_path / "page.html").read_text()
    with pytest.raises(AttributeError):
        found.rows = np.empty(0)


def test_weights_are_repetitions():
    X, w = np.random.default_rng(1).normal(size=(30, 2)), np.random.default_rng(2).integers(1, 4, size=30)
    weighted, repeated = TaskTemplate().fit(X, sample_weight=w), TaskTemplate().fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-10)
