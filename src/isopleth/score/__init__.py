"""Scores: gradients of log densities, by kernels and regularisers."""

from __future__ import annotations

from isopleth.score.estimator import KernelScore
from isopleth.score.field import Normalizer
from isopleth.score.nystrom import NystromKEF
from isopleth.score.presets import KEF, SSGE, Landweber, NuMethod, Stein
from isopleth.solvers.regularizers import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov

__all__ = [
    "KEF",
    "SSGE",
    "KernelScore",
    "Landweber",
    "LandweberIteration",
    "Normalizer",
    "NuIteration",
    "NuMethod",
    "NystromKEF",
    "SpectralCutoff",
    "Stein",
    "Tikhonov",
]
