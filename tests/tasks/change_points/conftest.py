"""Fewer simulations for all tests of changes: what is simulated is how far chance goes, and planted changes are beyond it."""

import pytest


@pytest.fixture(autouse=True)
def few_simulations(request, monkeypatch):
    if "slow" not in request.keywords:
        monkeypatch.setattr("isopleth.tasks.segmentation.description_length.RUNS", 49)
        monkeypatch.setattr("isopleth.tasks.change_points.detector.RUNS", 49)
