"""Exact kernel densities, scores and density differences for tables, and tasks that are built on them.

The parts are imported when they are first used, so that ``import isopleth`` takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isopleth.density import KDE, SOSREP, DensityImputer, RandomFeatureSOSREP
    from isopleth.density.hutchinson import hutchinson_loss
    from isopleth.density.search import Search
    from isopleth.difference import LSDD
    from isopleth.errors import DataWarning, InputError, MissingExtraError
    from isopleth.io import load, save
    from isopleth.kernels import (
        IMQ,
        SDO,
        Gaussian,
        Kernel,
        Laplacian,
        Matern,
        ProductLaplacian,
        RationalQuadratic,
        Sobolev,
    )
    from isopleth.score import KEF, SSGE, KernelScore, Landweber, NuMethod, NystromKEF, Stein
    from isopleth.solvers.regularizers import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov
    from isopleth.tasks import (
        AnomalyDetector,
        ChangePointDetector,
        ClassPriorEstimator,
        DriftMonitor,
        PyODAdapter,
        stein_test,
        two_sample_test,
    )

    __version__: str

__all__ = [
    "IMQ",
    "KDE",
    "KEF",
    "LSDD",
    "SDO",
    "SOSREP",
    "SSGE",
    "AnomalyDetector",
    "ChangePointDetector",
    "ClassPriorEstimator",
    "DataWarning",
    "DensityImputer",
    "DriftMonitor",
    "Gaussian",
    "InputError",
    "Kernel",
    "KernelScore",
    "Landweber",
    "LandweberIteration",
    "Laplacian",
    "Matern",
    "MissingExtraError",
    "NuIteration",
    "NuMethod",
    "NystromKEF",
    "ProductLaplacian",
    "PyODAdapter",
    "RandomFeatureSOSREP",
    "RationalQuadratic",
    "Search",
    "Sobolev",
    "SpectralCutoff",
    "Stein",
    "Tikhonov",
    "hutchinson_loss",
    "load",
    "save",
    "stein_test",
    "two_sample_test",
]

# The module that defines each name of __all__.
_DEFINED_IN = {
    "IMQ": "isopleth.kernels",
    "KDE": "isopleth.density",
    "KEF": "isopleth.score",
    "LSDD": "isopleth.difference",
    "SDO": "isopleth.kernels",
    "SOSREP": "isopleth.density",
    "SSGE": "isopleth.score",
    "AnomalyDetector": "isopleth.tasks",
    "ChangePointDetector": "isopleth.tasks",
    "ClassPriorEstimator": "isopleth.tasks",
    "DataWarning": "isopleth.errors",
    "DensityImputer": "isopleth.density",
    "DriftMonitor": "isopleth.tasks",
    "Gaussian": "isopleth.kernels",
    "InputError": "isopleth.errors",
    "Kernel": "isopleth.kernels",
    "KernelScore": "isopleth.score",
    "Landweber": "isopleth.score",
    "LandweberIteration": "isopleth.solvers.regularizers",
    "Laplacian": "isopleth.kernels",
    "Matern": "isopleth.kernels",
    "MissingExtraError": "isopleth.errors",
    "NuIteration": "isopleth.solvers.regularizers",
    "NuMethod": "isopleth.score",
    "NystromKEF": "isopleth.score",
    "ProductLaplacian": "isopleth.kernels",
    "PyODAdapter": "isopleth.tasks",
    "RandomFeatureSOSREP": "isopleth.density",
    "RationalQuadratic": "isopleth.kernels",
    "Search": "isopleth.density.search",
    "Sobolev": "isopleth.kernels",
    "SpectralCutoff": "isopleth.solvers.regularizers",
    "Stein": "isopleth.score",
    "Tikhonov": "isopleth.solvers.regularizers",
    "hutchinson_loss": "isopleth.density.hutchinson",
    "load": "isopleth.io",
    "save": "isopleth.io",
    "stein_test": "isopleth.tasks",
    "two_sample_test": "isopleth.tasks",
}

_SUBPACKAGES = frozenset(
    [
        "cli",
        "datasets",
        "density",
        "difference",
        "distributed",
        "errors",
        "io",
        "kernels",
        "operators",
        "plotting",
        "sampling",
        "score",
        "solvers",
        "tasks",
    ]
)

if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        """Import a public name or a subpackage when it is first asked for (PEP 562)."""
        if name in _DEFINED_IN:
            value = getattr(import_module(_DEFINED_IN[name]), name)
        elif name in _SUBPACKAGES:
            return import_module(f"{__name__}.{name}")
        elif name == "__version__":
            from importlib.metadata import version

            value = version("isopleth")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES, "__version__"})
