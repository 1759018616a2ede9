"""Density estimators."""

from __future__ import annotations

from isopleth.density.feature_sosrep import RandomFeatureSOSREP
from isopleth.density.hutchinson import hutchinson_loss
from isopleth.density.imputer import DensityImputer
from isopleth.density.kde import KDE
from isopleth.density.search import Search, SearchPath
from isopleth.density.sosrep import SOSREP
from isopleth.density.stack import Component, StackPath
from isopleth.density.table_density import TableDensity

__all__ = [
    "KDE",
    "SOSREP",
    "Component",
    "DensityImputer",
    "RandomFeatureSOSREP",
    "Search",
    "SearchPath",
    "StackPath",
    "TableDensity",
    "hutchinson_loss",
]
