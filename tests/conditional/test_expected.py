"""What columns hold where some have given values."""

import numpy as np
import pandas as pd
import pytest

from isopleth import InputError
from isopleth.conditional import LawsGiven


@pytest.fixture(scope="module")
def rides():
    rng = np.random.default_rng(0)
    kind = rng.choice(["bike", "car"], 200)
    speed = rng.normal(np.where(kind == "car", 60.0, 18.0), 4.0).round(1)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(200), unit="D")
    frame = pd.DataFrame({"kind": kind, "speed": speed, "wet": rng.random(200) < 0.3, "when": when})
    frame.loc[::9, "speed"] = np.nan
    return frame


def test_each_other_column_has_its_law(rides):
    cars = LawsGiven({"kind": "car"}, n_jobs=1).fit(rides)
    assert list(cars.median()) == ["speed", "when"]
    low, high = cars.interval()["speed"]
    assert 50.0 < low < 56.0 < cars.median()["speed"] < 63.0 < high < 70.0  # 53.4, 60, 66.6
    assert abs(cars.mean()["speed"] - cars.median()["speed"]) < 1.5
    assert abs(cars.mode()["speed"] - 60.0) < 5.0
    assert 0.15 < cars.probabilities()["wet"][True] < 0.45
    assert pd.Timestamp("2024-01-01") <= cars.interval()["when"][0] < cars.interval()["when"][1]
    curve, bars, days = cars.charts()
    series = curve.series[0]
    assert len(series.notes) == len(series.x)  # what a page says where the mouse or the arrow keys are
    assert series.notes[0] == f"{series.x[0]:.4g}: density {series.y[0]:.3g}"
    assert days.series[0].notes[0].startswith("202")
    assert np.trapezoid(series.y, series.x) == pytest.approx(1.0, abs=0.02)
    assert bars.names == ["False", "True"]


def test_values_that_cannot_be_given(rides):
    for given, words in (
        ({"nose": 1}, "'nose', which does not exist"),
        ({"kind": None}, "no value for column 'kind'"),
        (rides.iloc[1].to_dict(), "leave at least one out"),
    ):
        with pytest.raises(InputError, match=words):
            LawsGiven(given).fit(rides)
    with pytest.warns(UserWarning, match="no training row has"):
        LawsGiven({"kind": "kar"}, n_jobs=1).fit(rides[["kind", "speed"]])
