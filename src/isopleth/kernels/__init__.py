"""Kernels: what is near. One small file a family; `get_kernel` turns a name into one."""

from __future__ import annotations

from isopleth.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace
from isopleth.kernels.gaussian import Gaussian
from isopleth.kernels.inverse_multiquadric import IMQ
from isopleth.kernels.matern import Laplacian, Matern
from isopleth.kernels.sdo import SDO
from isopleth.kernels.sobolev import Sobolev

# The registry: names that `kernel=` accepts, and the list that the tests go through.
KERNELS: dict[str, Kernel] = {
    "gaussian": Gaussian(),
    "laplacian": Laplacian(),
    "matern32": Matern(nu=1.5),
    "matern52": Matern(nu=2.5),
    "matern72": Matern(nu=3.5),
    "imq": IMQ(),
    "sdo": SDO(),
}


def get_kernel(kernel: str | Kernel) -> Kernel:
    """Kernel of a name, or the kernel itself.

    Raises
    ------
    InputError
        If the name is not registered.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]
    names = ", ".join(repr(name) for name in KERNELS)
    raise InputError(f"kernel = {kernel!r}: expected one of {names}, or a kernel such as isopleth.SDO(order=4).")


__all__ = [
    "IMQ",
    "KERNELS",
    "SDO",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Matern",
    "SelfConvolution",
    "Sobolev",
    "Workspace",
    "get_kernel",
]
