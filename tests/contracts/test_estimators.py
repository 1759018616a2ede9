"""The conventions of scikit-learn, for every estimator of the library."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import estimators
from isopleth import SOSREP, AnomalyDetector

EACH = pytest.mark.parametrize("estimator", estimators.ALL, ids=repr)
pytestmark = pytest.mark.usefixtures("few_simulations")
CLASSES = sorted({type(estimator) for estimator in estimators.ALL}, key=lambda cls: cls.__name__)


def expected_failures(estimator):
    return estimators.EXPECTED_FAILURES.get(type(estimator), {})


@parametrize_with_checks(estimators.BASIC, expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    if check.func.__name__.startswith("check_array_api"):
        pytest.importorskip("scipy", "1.14", reason="scikit-learn takes tensors with SciPy 1.14 or later")
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(estimators.VARIANTS, expected_failed_checks=expected_failures)
def test_checks_of_variants(estimator, check):
    test_checks_of_scikit_learn(estimator, check)


def test_every_estimator_is_listed():
    assert set(CLASSES) == estimators.defined()
    assert {type(estimator) for estimator in estimators.OF_ONE_TABLE} | set(estimators.OF_ANOTHER_SHAPE) == set(CLASSES)


@EACH
def test_the_constructor_stores_its_parameters_and_nothing_else(estimator):
    for copy in (clone(estimator), pickle.loads(pickle.dumps(estimator))):
        assert type(copy) is type(estimator)
        assert repr(copy) == repr(estimator)
        assert not [name for name in vars(copy) if name.endswith("_")]
    parameters = estimator.get_params(deep=False)
    assert set(vars(estimator)) == set(parameters)
    marks = {name: object() for name in parameters}
    assert all(getattr(clone(estimator).set_params(**{name: mark}), name) is mark for name, mark in marks.items())
    with pytest.raises(ValueError, match="Invalid parameter 'no_such_parameter'"):
        clone(estimator).set_params(no_such_parameter=1)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_docstring_has_all_parameters_and_no_other(cls):
    section = re.search(r"\n *Parameters\n *-+\n(.*?)(\n *[A-Z]\w+\n *-+\n|\Z)", cls.__doc__, re.DOTALL)[1]
    # Lines that are indented least: "name : type", or names that another class explains.
    indent = min(len(line) - len(line.lstrip()) for line in section.splitlines() if line.strip())
    heads = re.findall(rf"^ {{{indent}}}(\w.*?)(?: : .*)?$", section, re.MULTILINE)
    names = [name for head in heads for name in head.split(", ")]
    assert sorted(names) == sorted(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", ["memory_limit", "n_jobs", "random_state"])
def test_a_parameter_of_all_estimators_has_one_default(name):
    signatures = [inspect.signature(cls).parameters for cls in CLASSES]
    assert len({repr(parameters[name].default) for parameters in signatures if name in parameters}) == 1


def test_metadata_is_routed_through_a_pipeline():
    rng = np.random.default_rng(0)
    X, weights, groups = (
        rng.normal(size=(80, 2)),
        rng.integers(1, 5, size=80).astype(float),
        np.repeat(np.arange(20), 4),
    )
    with config_context(enable_metadata_routing=True):
        density = SOSREP(frame="scale").set_fit_request(sample_weight=True)
        routed = make_pipeline(FunctionTransformer(), density).fit(X, sample_weight=weights)
        detector = AnomalyDetector(novelty=True, random_state=0).set_fit_request(groups=True)
        grouped = make_pipeline(FunctionTransformer(), detector).fit(X, groups=groups)
    direct = SOSREP(frame="scale").fit(X, sample_weight=weights)
    np.testing.assert_array_equal(routed.score_samples(X), direct.score_samples(X))
    assert np.abs(routed.score_samples(X) - SOSREP(frame="scale").fit(X).score_samples(X)).max() > 0.01
    direct = AnomalyDetector(novelty=True, random_state=0).fit(X, groups=groups)
    np.testing.assert_array_equal(grouped[-1].p_values(X[:5]), direct.p_values(X[:5]))
    assert not np.array_equal(direct.p_values(X), AnomalyDetector(novelty=True, random_state=0).fit(X).p_values(X))
