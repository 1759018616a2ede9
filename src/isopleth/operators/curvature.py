"""Higher derivatives of a radial kernel for curl-free sums, with cheaper formulas for the Gaussian and the IMQ kernel.

The terms have a factor x - y. Callers remove pairs with s = 0, for which values here may be anything.
"""

from __future__ import annotations

import numpy as np

from isopleth.backend import Array, namespace, overwrite
from isopleth.kernels import IMQ, Gaussian, Kernel, Workspace
from isopleth.kernels.base import cap

_FURTHEST = 1e4  # of s: e^(-s/2) is 0 beyond it


def slope_and_bend(kernel: Kernel, s: Array, work: Workspace) -> tuple[Array, Array]:
    r"""Compute :math:`-2\varphi'` and :math:`-4\varphi''`, in scratch or in the memory of `s`."""
    if type(kernel) in _BENDS:  # a kernel derived from one of these may be another function
        return _BENDS[type(kernel)](s, work)
    bend = quotient(kernel._product(work.copy("bend of", s), 2, work), s, work)
    bend *= -4.0
    slope = kernel._product(s, 1, work)
    slope *= -2.0
    return slope, bend


def _gaussian_bend(s: Array, work: Workspace) -> tuple[Array, Array]:
    """Compute both, which are the same exponential with opposite signs."""
    s *= -0.5
    slope = overwrite(namespace(s).exp, s)
    bend = work.copy("bend", slope)
    bend *= -1.0
    return slope, bend


def _imq_bend(s: Array, work: Workspace) -> tuple[Array, Array]:
    """Compute q^(3/2) and -3 q^(5/2) with q = 1/(1 + s)."""
    root, q = _root_and_inverse(s, work)
    root *= q
    q *= root
    q *= -3.0
    return root, q


_BENDS = {Gaussian: _gaussian_bend, IMQ: _imq_bend}


def laplacian_slope(kernel: Kernel, s: Array, work: Workspace) -> Array:
    r"""Compute the factor of x - y in the gradient of the Laplacian, :math:`4((d + 2)\varphi'' + 2 s\varphi''')`.

    The result is in scratch or in the memory of `s`.
    """
    if type(kernel) in _LAPLACIAN_SLOPES:
        return _LAPLACIAN_SLOPES[type(kernel)](kernel.bound_dim, s, work)
    out = work.copy("third", kernel._product(work.copy("third of", s), 3, work))
    out *= 8.0
    second = second_derivative(kernel, s, work, at_zero=0.0)
    second *= 4.0 * (kernel.bound_dim + 2.0)
    out += second
    return out


def _gaussian_laplacian_slope(dim: int, s: Array, work: Workspace) -> Array:
    """Compute (d + 2 - s) e^(-s/2)."""
    out = cap(work.copy("slope", s), _FURTHEST)
    out *= -1.0
    out += dim + 2.0
    s *= -0.5
    out *= overwrite(namespace(s).exp, s)
    return out


def _imq_laplacian_slope(dim: int, s: Array, work: Workspace) -> Array:
    """Compute 3 (d - 3 + 5 q) q^(5/2), because s q = 1 - q."""
    root, q = _root_and_inverse(s, work)
    root *= q
    root *= q
    q *= 15.0
    q += 3.0 * (dim - 3.0)
    root *= q
    return root


_LAPLACIAN_SLOPES = {Gaussian: _gaussian_laplacian_slope, IMQ: _imq_laplacian_slope}


def _root_and_inverse(s: Array, work: Workspace) -> tuple[Array, Array]:
    """Compute the root of q = 1/(1 + s) in the memory of `s`, and q in scratch."""
    s += 1.0
    q = quotient(1.0, s, work)
    s[...] = q
    return overwrite(namespace(s).sqrt, s), q


def second_derivative(kernel: Kernel, s: Array, work: Workspace, at_zero: float) -> Array:
    r"""Compute :math:`\varphi''` itself from s phi'', in scratch of its own; it is `at_zero` at s = 0."""
    out = quotient(kernel._product(work.copy("second of", s), 2, work), s, work)
    out[s == 0.0] = at_zero
    return out


def quotient(a: Array | float, b: Array, work: Workspace) -> Array:
    """Return a / b in scratch of its own."""
    if not isinstance(b, np.ndarray):
        return a / b
    return np.divide(a, b, out=work.empty("quotient", b.shape, b.dtype))
