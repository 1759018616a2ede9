"""Exact kernel densities: how likely is this row, which rows are least likely, and how sure is that?"""

from __future__ import annotations

from importlib.metadata import version

from isopleth.density import SOSREP
from isopleth.errors import InputError, MissingExtraError
from isopleth.io import load, save
from isopleth.kernels import SDO, Gaussian, Laplacian
from isopleth.tasks import AnomalyDetector, PyODAdapter
from isopleth.validation import DataWarning

__version__ = version("isopleth")

__all__ = [
    "SDO",
    "SOSREP",
    "AnomalyDetector",
    "DataWarning",
    "Gaussian",
    "InputError",
    "Laplacian",
    "MissingExtraError",
    "PyODAdapter",
    "load",
    "save",
]
