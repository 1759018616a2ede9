"""Columns of the types that data frames have, but for lists, from the fit to the result as JSON: nothing fails or warns."""

import json
import warnings
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from isopleth import AnomalyDetector, ClassPriorEstimator, DensityImputer, DriftMonitor, two_sample_test
from isopleth.core.errors import DataWarning

N = 80
RNG = np.random.default_rng(0)
COLUMNS = {
    "words": RNG.choice(["x", "y"], N),
    "words with gaps": pd.Series(RNG.choice(["x", "y", None], N)),
    "several types": pd.Series([1, "a", 2.5, None] * (N // 4), dtype=object),
    "categories": pd.Categorical(RNG.choice(["x", "y", "z"], N)),
    "numbered categories": pd.Categorical(RNG.choice([1, 2, 3], N)),
    "whole numbers with gaps": pd.array([1, 2, None, 4] * (N // 4), dtype="Int64"),
    "truth values with gaps": pd.array([True, False, None, True] * (N // 4), dtype="boolean"),
    "times": pd.date_range("2024-01-01", periods=N, freq="h"),
    "times of a zone": pd.date_range("2024-01-01", periods=N, freq="h", tz="Europe/Berlin"),
    "durations": pd.to_timedelta(np.arange(N), unit="h"),
    "durations of Python": pd.Series([timedelta(hours=i) for i in range(N)], dtype=object),
    "periods": pd.period_range("2024-01", periods=N, freq="M"),
    "Arrow words": pd.array(RNG.choice(["x", "y"], N), dtype="string[pyarrow]"),
    "gaps only": np.full(N, np.nan),
    "no objects": pd.Series([None] * N, dtype=object),
    "names of rows": [f"id{i}" for i in range(N)],
}


@pytest.mark.parametrize("part", range(4))
def test_columns_of_all_types_go_through_every_task(part):
    frame = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
    frame = frame.assign(**{kind: COLUMNS[kind] for kind in list(COLUMNS)[part::4]})
    before, after = frame.iloc[: N // 2], frame.iloc[N // 2 :]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)
        results = [
            AnomalyDetector(novelty=True, fast=True).fit(before).anomalies(after),
            AnomalyDetector().fit(frame).anomalies(frame, explain=2),
            two_sample_test(before, after, n_resamples=19, random_state=0),
            ClassPriorEstimator(random_state=0).fit(before, np.arange(N // 2) % 2).estimate(after),
        ]
        for result in results:
            assert str(result)
            json.dumps(result.to_dict(), allow_nan=False)
        DriftMonitor(expected_run_length=20, window=4).fit(before).update(after)
        filled = DensityImputer().fit_transform(frame)
    pd.testing.assert_frame_equal(filled[["a", "b"]], frame[["a", "b"]])
