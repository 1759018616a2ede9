"""Scores: gradients of log densities, by kernels and regularisers."""

from __future__ import annotations

from isopleth.score.estimator import KernelScore
from isopleth.score.iterations import Landweber, NuMethod
from isopleth.score.kef import KEF
from isopleth.score.normalizer import Normalizer
from isopleth.score.nystrom import NystromKEF
from isopleth.score.ssge import SSGE
from isopleth.score.stein import Stein

__all__ = ["KEF", "SSGE", "KernelScore", "Landweber", "Normalizer", "NuMethod", "NystromKEF", "Stein"]
