"""Kernel densities, scores and density differences."""

from isopleth.density import SOSREP
from isopleth.kernels import Gaussian, Laplacian
