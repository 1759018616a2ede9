"""Checks that run after every test of a picture."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def without_pyplot(monkeypatch):
    """Pictures need no pyplot: here its import fails."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)


@pytest.fixture(autouse=True)
def quick(few_simulations):
    """Results of planted changes are those of any number of simulations."""
