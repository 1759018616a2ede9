"""Radial kernels. Each file defines one family and registers its names; every import below adds one file."""

from __future__ import annotations

from isopleth.kernels.base import KERNELS as KERNELS
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace, get_kernel, register
from isopleth.kernels.check import check_kernel
from isopleth.kernels.gaussian import Gaussian
from isopleth.kernels.matern import Laplacian, Matern
from isopleth.kernels.product import ProductLaplacian
from isopleth.kernels.rational_quadratic import IMQ, RationalQuadratic
from isopleth.kernels.sobolev import SDO, Sobolev

__all__ = [
    "IMQ",
    "SDO",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Matern",
    "ProductLaplacian",
    "RationalQuadratic",
    "SelfConvolution",
    "Sobolev",
    "Workspace",
    "check_kernel",
    "get_kernel",
    "register",
]
