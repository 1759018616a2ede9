"""Questions that people come with, answered by the estimators."""

from __future__ import annotations

from isopleth.tasks.anomaly import AnomalyDetector
from isopleth.tasks.change_points import ChangePointDetector, ChangePoints
from isopleth.tasks.class_prior import ClassPriorEstimator
from isopleth.tasks.drift import DriftMonitor
from isopleth.tasks.pyod import PyODAdapter
from isopleth.tasks.two_sample import TwoSampleResult, two_sample_test

__all__ = [
    "AnomalyDetector",
    "ChangePointDetector",
    "ChangePoints",
    "ClassPriorEstimator",
    "DriftMonitor",
    "PyODAdapter",
    "TwoSampleResult",
    "two_sample_test",
]
