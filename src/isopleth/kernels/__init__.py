"""Radial kernels. Each file defines one family and registers its names; every import below adds one file."""

from isopleth.kernels.base import KERNELS as KERNELS
from isopleth.kernels.base import Kernel as Kernel
from isopleth.kernels.base import SelfConvolution as SelfConvolution
from isopleth.kernels.base import Workspace as Workspace
from isopleth.kernels.base import get_kernel as get_kernel
from isopleth.kernels.base import register as register
from isopleth.kernels.gaussian import Gaussian as Gaussian
from isopleth.kernels.inverse_multiquadric import IMQ as IMQ
from isopleth.kernels.matern import Laplacian as Laplacian
from isopleth.kernels.matern import Matern as Matern
from isopleth.kernels.product import ProductLaplacian as ProductLaplacian
from isopleth.kernels.rational_quadratic import RationalQuadratic as RationalQuadratic
from isopleth.kernels.sdo import SDO as SDO
from isopleth.kernels.sobolev import Sobolev as Sobolev
