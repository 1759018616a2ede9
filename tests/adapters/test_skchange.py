"""The detector under skchange's contract tests and the checks that it takes from scikit-learn."""

import inspect

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from isopleth import ChangePointDetector

pytest.importorskip("skchange")

from skchange.detectors.tests import test_all as contract
from skchange.tests import test_all as compatibility

from isopleth.adapters import SkchangeAdapter

DETECTOR = SkchangeAdapter(ChangePointDetector(random_state=0))
CONTRACT = [test for name, test in vars(contract).items() if name.startswith("test_") and inspect.isfunction(test)]


@pytest.mark.parametrize("test", CONTRACT, ids=lambda test: test.__name__)
def test_contract_of_skchange(test):
    test(SkchangeAdapter(ChangePointDetector(random_state=0)))


@parametrize_with_checks([DETECTOR], expected_failed_checks=compatibility._expected_failed_checks)
def test_checks_of_scikit_learn_that_skchange_runs(estimator, check):
    check(estimator)


def test_kinds_and_p_values_come_with_the_changes():
    X = contract.make_single_change_X(DETECTOR)
    found = SkchangeAdapter(ChangePointDetector(random_state=0)).fit(X).predict_all(X)
    assert found["kinds"].tolist() == ["level"]
    assert found["p_values"][0] < 0.01
    assert found["intervals"].shape == (1, 2)
    assert abs(found["changepoints"][0] - contract.CHANGEPOINT) <= 2
