"""Tasks: anomalies, two-sample tests, goodness of fit, drift, change points and class priors."""

from __future__ import annotations

from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.anomaly.explanation import Explanation
from isopleth.tasks.anomaly.pyod import PyODAdapter
from isopleth.tasks.anomaly.result import Anomalies
from isopleth.tasks.change_points.curve import sliding_lsdd
from isopleth.tasks.change_points.detector import ChangePointDetector, ChangePoints
from isopleth.tasks.class_prior.estimator import ClassPriorEstimator, ClassPriors
from isopleth.tasks.drift.alarms import DriftAlarms
from isopleth.tasks.drift.anytime import AnytimeDriftMonitor, AnytimeState
from isopleth.tasks.drift.monitor import DriftMonitor, DriftState
from isopleth.tasks.goodness_of_fit.stein import SteinTestResult, stein_test
from isopleth.tasks.made_rows.result import MadeRows
from isopleth.tasks.two_sample.separation import Separation
from isopleth.tasks.two_sample.testing import ConfidenceInterval, TwoSampleResult, Witness, two_sample_test

__all__ = [
    "Anomalies",
    "AnomalyDetector",
    "AnytimeDriftMonitor",
    "AnytimeState",
    "ChangePointDetector",
    "ChangePoints",
    "ClassPriorEstimator",
    "ClassPriors",
    "ConfidenceInterval",
    "DriftAlarms",
    "DriftMonitor",
    "DriftState",
    "Explanation",
    "MadeRows",
    "PyODAdapter",
    "Separation",
    "SteinTestResult",
    "TwoSampleResult",
    "Witness",
    "sliding_lsdd",
    "stein_test",
    "two_sample_test",
]
