"""Estimators of the difference or ratio of two densities."""

from __future__ import annotations

from isopleth.difference.cross_validation import DifferenceSearchPath
from isopleth.difference.kde_difference import KDEDifference
from isopleth.difference.lsdd import LSDD

__all__ = ["LSDD", "DifferenceSearchPath", "KDEDifference"]
