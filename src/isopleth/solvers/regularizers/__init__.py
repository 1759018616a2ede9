"""Regularisers: how a linear system that cannot be inverted is inverted nevertheless. One small file each."""

from __future__ import annotations

from isopleth.solvers.regularizers.base import RANK_TOLERANCE, IterativeRegularizer, Regularizer
from isopleth.solvers.regularizers.cutoff import SpectralCutoff
from isopleth.solvers.regularizers.landweber import LandweberIteration
from isopleth.solvers.regularizers.nu import NuIteration
from isopleth.solvers.regularizers.tikhonov import Tikhonov

__all__ = [
    "RANK_TOLERANCE",
    "IterativeRegularizer",
    "LandweberIteration",
    "NuIteration",
    "Regularizer",
    "SpectralCutoff",
    "Tikhonov",
]
