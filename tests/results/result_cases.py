"""A result of every task, small and with a finding, for tests of what all results have in common."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from isopleth import (
    AnomalyDetector,
    CellwiseDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DriftMonitor,
    stein_test,
    two_sample_test,
)
from isopleth.tasks import AnytimeDriftMonitor, MadeRows

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 3))
ROWS[7] = 9.0
AFTER = RNG.normal(size=(100, 3)) + [0.0, 1.5, 0.0]
NAMES = ["age", "income", "height"]
CLASSES = np.repeat(["healthy", "ill"], 60)
SHIFTED = ROWS + 2.0 * (CLASSES == "ill")[:, None]


def _detector(make: Any) -> AnomalyDetector:
    return AnomalyDetector(n_estimators=10, random_state=0).fit(make(ROWS))


def _framed(rows: Any) -> Any:
    """Return arrays as a frame: rows are made as a table."""
    return pd.DataFrame(rows, columns=NAMES) if isinstance(rows, np.ndarray) else rows


# Each makes a result from rows that `make` turns into a frame or leaves as they are.
CASES = {
    "anomalies": lambda make: _detector(make).anomalies(make(ROWS)),
    "wrong cells": lambda make: CellwiseDetector(n_estimators=20, random_state=0).fit(make(ROWS)).cells(make(ROWS)),
    "explained anomalies": lambda make: _detector(make).anomalies(make(ROWS), explain=3),
    "anomalies of ten rows": lambda make: _detector(make).anomalies(make(AFTER[:10])),
    "explanation": lambda make: _detector(make).explain(make(ROWS[:4] + 4.0)),
    "two samples": lambda make: two_sample_test(make(ROWS), make(AFTER), n_resamples=99, random_state=0),
    "equal rows": lambda make: two_sample_test(make(np.ones((5, 3))), make(np.ones((4, 3))), random_state=0),
    "change points": lambda make: ChangePointDetector(random_state=0).fit(make(np.vstack([ROWS, AFTER + 3.0]))).result_,
    "no change": lambda make: ChangePointDetector(random_state=0).fit(make(AFTER)).result_,
    "class priors": lambda make: (
        ClassPriorEstimator(random_state=0).fit(make(SHIFTED), CLASSES).estimate(make(SHIFTED[:70]))
    ),
    "drift": lambda make: (
        DriftMonitor(20, 200, random_state=0).fit(make(ROWS[8:])).update(make(np.vstack([AFTER, AFTER + 5.0])))
    ),
    "no drift": lambda make: DriftMonitor(20, 200, random_state=0).fit(make(ROWS[8:])).update(make(ROWS[8:30])),
    "made rows": lambda make: MadeRows.of(_framed(make(AFTER)), _framed(make(ROWS))),
    "sample of another density": lambda make: stein_test(make(AFTER), lambda X: -X, n_resamples=99, random_state=0),
    "sample of the density": lambda make: stein_test(make(ROWS[8:]), -ROWS[8:], n_resamples=99, random_state=0),
    "anytime drift": lambda make: AnytimeDriftMonitor(random_state=0).fit(make(ROWS[8:])).update(make(AFTER + 5.0)),
}


def as_array(rows: np.ndarray) -> np.ndarray:
    """Leave rows as they are."""
    return rows


@cache
def result_of(name: str) -> Any:
    """Return the result of a case for arrays."""
    return CASES[name](as_array)
