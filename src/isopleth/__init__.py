"""Kernel densities, scores and differences, exact: how likely is a row, where does the density rise, what differs?"""

from __future__ import annotations

from importlib.metadata import version

from isopleth.density import KDE, SOSREP, RandomFeatureSOSREP
from isopleth.density.hutchinson import hutchinson_loss
from isopleth.density.search import Search
from isopleth.difference import LSDD
from isopleth.errors import DataWarning, InputError, MissingExtraError
from isopleth.io import load, save
from isopleth.kernels import IMQ, SDO, Gaussian, Kernel, Laplacian, Matern, Sobolev
from isopleth.score import KEF, SSGE, KernelScore, Landweber, NuMethod, NystromKEF, Stein
from isopleth.solvers.regularizers import LandweberIteration, NuIteration, SpectralCutoff, Tikhonov
from isopleth.tasks import (
    AnomalyDetector,
    ChangePointDetector,
    ClassPriorEstimator,
    DriftMonitor,
    PyODAdapter,
    two_sample_test,
)

__version__ = version("isopleth")

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
    "PyODAdapter",
    "RandomFeatureSOSREP",
    "Search",
    "Sobolev",
    "SpectralCutoff",
    "Stein",
    "Tikhonov",
    "hutchinson_loss",
    "load",
    "save",
    "two_sample_test",
]
