"""Density estimators."""

from __future__ import annotations

from isopleth.density.feature_sosrep import RandomFeatureSOSREP
from isopleth.density.kde import KDE
from isopleth.density.search import Search, SearchPath
from isopleth.density.sosrep import SOSREP

__all__ = ["KDE", "SOSREP", "RandomFeatureSOSREP", "Search", "SearchPath"]
