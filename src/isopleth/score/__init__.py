"""Scores: gradients of log densities, by kernels and regularisers."""

from __future__ import annotations

from isopleth.score.estimator import KernelScore
from isopleth.score.field import Normalizer
from isopleth.score.nystrom import NystromKEF
from isopleth.score.presets import KEF, SSGE, Landweber, NuMethod, Stein

__all__ = ["KEF", "SSGE", "KernelScore", "Landweber", "Normalizer", "NuMethod", "NystromKEF", "Stein"]
