"""Scores: gradients of log densities, by kernels and regularisers."""

from __future__ import annotations

from isopleth.score.base import Normalizer
from isopleth.score.estimator import KernelScore
from isopleth.score.named import KEF, SSGE, Landweber, NuMethod, Stein
from isopleth.score.nystrom import NystromKEF

__all__ = ["KEF", "SSGE", "KernelScore", "Landweber", "Normalizer", "NuMethod", "NystromKEF", "Stein"]
