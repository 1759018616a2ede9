"""Questions that people come with, answered by the estimators."""

from __future__ import annotations

from isopleth.tasks.anomaly import AnomalyDetector
from isopleth.tasks.pyod import PyODAdapter

__all__ = ["AnomalyDetector", "PyODAdapter"]
