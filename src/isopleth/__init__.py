"""Exact kernel densities: how likely is this row, which rows are least likely, and how sure is that?"""

from __future__ import annotations

from importlib.metadata import version

from isopleth.density import KDE, SOSREP
from isopleth.density.hutchinson import hutchinson_loss
from isopleth.density.search import Search
from isopleth.errors import InputError, MissingExtraError
from isopleth.io import load, save
from isopleth.kernels import IMQ, SDO, Gaussian, Kernel, Laplacian, Matern, Sobolev
from isopleth.tasks import AnomalyDetector, PyODAdapter
from isopleth.validation import DataWarning

__version__ = version("isopleth")

__all__ = [
    "IMQ",
    "KDE",
    "SDO",
    "SOSREP",
    "AnomalyDetector",
    "DataWarning",
    "Gaussian",
    "InputError",
    "Kernel",
    "Laplacian",
    "Matern",
    "MissingExtraError",
    "PyODAdapter",
    "Search",
    "Sobolev",
    "hutchinson_loss",
    "load",
    "save",
]
