"""The quantifier under the protocols and checks of QuaPy."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from isopleth import ClassPriorEstimator, InputError

quapy = pytest.importorskip("quapy")

from quapy.functional import check_prevalence_vector
from quapy.method.aggregative import CC
from quapy.method.meta import Ensemble
from quapy.model_selection import GridSearchQ
from quapy.protocol import APP, UPP
from quapy.tests._synthetic import make_dataset
from sklearn.linear_model import LogisticRegression

from isopleth.adapters import QuaPyAdapter

QUICK = ClassPriorEstimator(centers=100, random_state=0, n_jobs=1)


@pytest.fixture(autouse=True)
def quiet():
    quapy.environ["SAMPLE_SIZE"] = 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("classes", [2, 3])
def test_its_data_sets_and_prevalence_check(classes):
    data = make_dataset(n_train=140, n_test=40, n_classes=classes, n_features=12, random_state=11)
    quantifier = QuaPyAdapter(QUICK)
    assert quantifier.fit(*data.training.Xy) is quantifier
    assert check_prevalence_vector(quantifier.predict(data.test.X))
    assert check_prevalence_vector(quantifier.quantify(data.test.X))
    np.testing.assert_array_equal(quantifier.classes_, data.training.classes_)
    assert clone(quantifier).estimator.centers == 100


@pytest.mark.parametrize("protocol", [APP, UPP])
def test_its_protocols_find_it_better_than_counting(protocol):
    data = make_dataset(n_train=200, n_test=600, class_sep=0.8, random_state=5)
    draws = {"n_prevalences": 7, "repeats": 4} if protocol is APP else {"repeats": 30}
    samples = protocol(data.test, sample_size=60, random_state=0, **draws)
    errors = {
        name: quapy.evaluation.evaluate(quantifier.fit(*data.training.Xy), samples, error_metric="mae")
        for name, quantifier in [("ours", QuaPyAdapter(QUICK)), ("counting", CC(LogisticRegression()))]
    }
    assert errors["ours"] < 0.8 * errors["counting"]


def test_its_confidence_regions_hold_the_true_shares():
    data = make_dataset(n_train=200, n_test=600, class_sep=0.8, random_state=5)
    quantifier = QuaPyAdapter(QUICK).fit(*data.training.Xy)
    held, widths = [], []
    for rows, shares in APP(data.test, sample_size=60, n_prevalences=7, repeats=6, random_state=0)():
        estimate, region = quantifier.predict_conf(rows, confidence_level=0.9)
        assert region.coverage(estimate) == 1.0
        assert estimate in region
        held.append(region.coverage(shares))
        widths.append(region.simplex_portion())
    assert np.mean(held) > 0.75  # of 42 draws at 90 %
    assert 0.0 < np.mean(widths) < 0.6
    assert region.ndim() == 2
    with pytest.raises(InputError, match="without resampling"):
        _ = region.samples


def test_its_grid_search_and_ensemble_take_it():
    data = make_dataset(n_train=140, n_test=100, random_state=3)
    search = GridSearchQ(
        QuaPyAdapter(QUICK),
        {"estimator__centers": [20, 60]},
        UPP(data.test, sample_size=40, repeats=3, random_state=0),
        error="mae",
        refit=False,
        n_jobs=1,
    ).fit(*data.training.Xy)
    assert search.best_params_["estimator__centers"] in (20, 60)
    ensemble = Ensemble(QuaPyAdapter(QUICK), size=2, policy="ave", n_jobs=1).fit(*data.training.Xy)
    assert check_prevalence_vector(ensemble.predict(data.test.X))
