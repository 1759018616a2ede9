"""The difference of two densities, estimated in one go."""

from __future__ import annotations

from isopleth.difference.kde_difference import KDEDifference
from isopleth.difference.kliep import KLIEP
from isopleth.difference.lsdd import LSDD
from isopleth.difference.search_path import DifferenceSearchPath

__all__ = ["KLIEP", "LSDD", "DifferenceSearchPath", "KDEDifference"]
