"""Scores: gradients of log densities, by kernels and regularisers."""

import lazy_loader

from isopleth.solvers.regularizers import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov

_modules = {
    "kernel_score": ["KernelScore"],
    "field": ["Normalizer"],
    "nystrom": ["NystromKEF"],
    "presets": ["KEF", "SSGE", "Landweber", "NuMethod", "Stein"],
}
__getattr__, __dir__, _names = lazy_loader.attach(__name__, submod_attrs=_modules)
__all__ = ["LandweberIteration", "NuIteration", "SpectralCutoff", "Tikhonov", *_names]
