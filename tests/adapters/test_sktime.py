"""The adapter under sktime's own checks."""

import numpy as np
import pytest

pytest.importorskip("sktime")

import pandas as pd
from sktime.transformations.compose import Id
from sktime.utils.estimator_checks import check_estimator

from isopleth import ChangePointDetector, InputError
from isopleth.adapters import SktimeAdapter


def test_checks_of_sktime():
    results = check_estimator(SktimeAdapter, raise_exceptions=True, verbose=False)
    assert len(results) > 50
    assert set(results.values()) == {"PASSED"}


@pytest.mark.parametrize("missing", [False, True])
def test_changes_of_two_columns_with_kinds(missing):
    series = np.random.default_rng(0).normal(size=(200, 2)) + 5.0 * (np.arange(200) >= 120)[:, None]
    if missing:
        series[40:45, 0] = np.nan
    frame = pd.DataFrame(series, index=pd.date_range("2026-01-01", periods=200, freq="h"), columns=["flow", "level"])
    detector = Id() * SktimeAdapter(ChangePointDetector(random_state=0))
    assert detector.fit(frame).predict(frame).ilocs.tolist() == [120]
    scores = SktimeAdapter(ChangePointDetector(random_state=0)).fit(frame).predict_scores(frame)
    assert scores.kind.tolist() == ["level"]
    assert scores.pvalue[0] < 0.01
    assert scores.earliest[0] <= 120 <= scores.latest[0]


def test_a_series_without_changes_has_an_empty_answer():
    noise = np.random.default_rng(1).normal(size=(100, 1))
    detector = SktimeAdapter(ChangePointDetector(random_state=0)).fit(noise)
    assert len(detector.predict(noise)) == len(detector.predict_scores(noise)) == 0


def test_words_are_refused_with_the_name_of_the_column():
    frame = pd.DataFrame({"flow": np.arange(40.0), "valve": ["open", "shut"] * 20})
    with pytest.raises(InputError, match="'valve'"):
        SktimeAdapter().fit(frame).predict(frame)
