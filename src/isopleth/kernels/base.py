"""What a kernel is: a frozen value, free of dimension until it is bound to one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from isopleth.backend import Array, namespace
from isopleth.errors import InputError

# Kernels that are densities themselves, once divided by their integral.
DENSITIES = "Gaussian(), Laplacian() or Matern()"

# Kernels whose self-convolution is known in every dimension.
SQUARES = "Gaussian(), Laplacian(), Matern() or SDO()"

_PRODUCTS = ("phi", "phi'", "s phi''", "s phi'''", "s^2 phi''''")


def _on_copy(product: Callable[[Array, Workspace], Array], s: Array) -> Array:
    """Answer of an overwriting formula, for numbers, lists and arrays of any shape, leaving `s` as it was."""
    a = s if hasattr(s, "ndim") and s.ndim else np.asarray(s, dtype=np.float64)
    xp = namespace(a)
    dtype = a.dtype if xp.isdtype(a.dtype, "real floating") else xp.float64
    with np.errstate(all="ignore"):
        out = product(xp.asarray(xp.reshape(a, (-1,)), dtype=dtype, copy=True), Workspace())
    out = xp.reshape(xp.asarray(out, copy=True), a.shape)
    return out[()] if isinstance(out, np.ndarray) else out


@dataclass(frozen=True)
class Kernel(ABC):
    r"""A radial kernel :math:`k(x, y) = \varphi(s)`, :math:`s = |x - y|^2/\ell^2`, :math:`\varphi(0) = 1`.

    Without `dim` it is what a user names; with `dim` (:meth:`bind`) it is a profile that can be evaluated. It answers
    with :math:`\varphi` and its derivatives in `s`, each times the power of `s` that keeps it finite for kernels that
    are rough at 0.

    A kernel of one's own is a subclass. It has to define

    - ``smoothness``, a number or a property: the order nu of the Matern kernel that is as smooth at 0;
    - ``_product(s, order, work)``, the formulas that :meth:`derivative` lists: `s` is an array that may be overwritten,
      `work` lends scratch memory to formulas that want it. Sums and solvers need order 0, gradients 1, Laplacians 2.
      What is handed on to ``super()`` is refused with a sentence when somebody asks for it.

    and may define, for what needs it,

    - ``nonnegative = False``, if :math:`\varphi` can be negative;
    - ``_log(s, work)`` and ``_log_slope(s, work)``, log phi and its derivative, for densities where they underflow;
    - :meth:`self_convolution`, for densities :math:`f^2`;
    - :meth:`log_integral` and :meth:`sample`, for densities that are mixtures of the kernel itself;
    - :meth:`sample_frequencies` and :meth:`log_spectral_density`, for random features.

    Parameters of its own are fields of a frozen dataclass, with defaults. A model that holds it can be pickled and
    cloned; :func:`isopleth.save` refuses it, as a file cannot hold its code.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from isopleth import Kernel
    >>> from isopleth.operators import Operator
    >>> class Cauchy(Kernel):
    ...     smoothness = math.inf
    ...
    ...     def _product(self, s, order, work):
    ...         if order == 0:
    ...             return 1 / (1 + s)
    ...         if order == 1:
    ...             return -1 / (1 + s) ** 2
    ...         return super()._product(s, order, work)
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> Operator(Cauchy(), points).matvec(np.ones(3))
    array([1.6, 1.7, 1.3])
    >>> Cauchy(dim=1).laplacian(1.0)
    Traceback (most recent call last):
    isopleth.errors.InputError: Cauchy(dim=1) does not define s phi'': let its _product answer for order = 2.
    """

    dim: int | None = None

    # Whether phi is nowhere negative.
    nonnegative: ClassVar[bool] = True

    # Whether it is a product over columns, evaluated at what its :meth:`separation` of two sets of points gives in the
    # place of squared distances.
    by_columns: ClassVar[bool] = False

    def separation(self, a: Array, b: Array, work: Workspace) -> Array:
        """What the kernel is a function of, for all pairs of rows of `a` and `b`; only where :attr:`by_columns`."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        if self.dim is None:
            return
        if isinstance(self.dim, bool) or not isinstance(self.dim, Integral) or self.dim < 1:
            raise InputError(
                f"dim = {self.dim!r}: expected a whole number of columns, at least 1; give other parameters by name."
            )
        object.__setattr__(self, "dim", int(self.dim))

    def bind(self, dim: int) -> Self:
        """This kernel for points of `dim` columns."""
        if self.dim is None:
            return replace(self, dim=int(dim))
        if self.dim != dim:
            raise InputError(
                f"{self!r} is bound to {self.dim} columns but the data have {dim}; leave dim out to bind at fit."
            )
        return self

    @property
    def bound_dim(self) -> int:
        """`dim`, once it is known."""
        if self.dim is None:
            raise InputError(f"{self!r} is not bound to a dimension: call bind(dim) first.")
        return self.dim

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """The order nu of the Matern kernel that is as smooth at 0; infinite for a Gaussian."""

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        """:meth:`derivative` of a one- or two-dimensional array for the hot path: may overwrite `s`, and answers in
        `s`, in scratch of `work` that the next call overwrites, or in a new array."""
        raise InputError(f"{self!r} does not define {_PRODUCTS[order]}: let its _product answer for order = {order}.")

    def __call__(self, s: Array) -> Array:
        """phi at squared scaled distances `s`, an array or a number."""
        return self.derivative(s, 0)

    def derivative(self, s: Array, order: int) -> Array:
        r"""Derivative of phi in `s`, times :math:`s^{\lfloor order/2 \rfloor}`.

        Parameters
        ----------
        s : array or float
            Squared scaled distances, not negative.
        order : int
            0 to 4 for :math:`\varphi,\ \varphi',\ s\varphi'',\ s\varphi''',\ s^2\varphi''''`.

        Returns
        -------
        array of the shape of `s`
            At ``s = 0`` the limits, which are infinite where the kernel is too rough.

        Raises
        ------
        InputError
            If `order` is none of these, or one that a kernel of a user does not define.
        """
        if order not in range(5):
            raise InputError(f"order = {order!r}: expected an integer from 0 to 4.")
        return _on_copy(lambda a, work: self._product(a, order, work), s)

    def laplacian(self, s: Array) -> Array:
        r""":math:`\Delta_x k = 2\,(d\,\varphi' + 2 s\varphi'')` at unit length scale; finite at 0 from Matern 3/2 on."""
        return _on_copy(self._laplacian, s)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """:meth:`laplacian` for the hot path, in the manner of :meth:`_product`."""
        second = self._product(work.copy("laplacian of", s), 2, work)
        second = work.copy("second derivative", second)  # the next product may use the scratch that holds it
        first = self._product(s, 1, work)
        first *= 2.0 * self.bound_dim
        second *= 4.0
        first += second
        return first

    def second_at_zero(self) -> float:
        r"""The limit of :math:`\varphi''` itself at 0, infinite up to :attr:`smoothness` 2."""
        tiny = 1e-30  # its square root is nothing beside 1, and its product with phi'' is no subnormal number
        return float(self.derivative(tiny, 2)) / tiny if self.smoothness > 2.0 else math.inf

    def log(self, s: Array) -> Array:
        """log phi without underflow; only kernels that are nowhere negative have it."""
        return _on_copy(self._log, s)

    def _log(self, s: Array, work: Workspace) -> Array:
        raise self._no_logarithm("_log")

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        """Derivative of log phi in s."""
        raise self._no_logarithm("_log_slope")

    def _no_logarithm(self, method: str) -> InputError:
        if not self.nonnegative:
            return InputError(f"{self!r} can be negative and has no logarithm.")
        return InputError(f"{self!r} does not define {method}: densities need it for rows where they underflow.")

    def self_convolution(self) -> SelfConvolution:
        r"""The kernel convolved with itself, :math:`\int k(x, z)\, k(z, y)\, dz`, at unit length scale.

        Raises
        ------
        InputError
            If the square of the kernel does not integrate, or a kernel of a user does not define it.
        """
        raise InputError(
            f"{self!r} does not define self_convolution, which normalises densities f^2: define it, or use {SQUARES}."
        )

    def log_integral(self) -> float:
        r"""Logarithm of :math:`\int \varphi(|x|^2)\, dx` over all points of `dim` columns, at unit length scale.

        Raises
        ------
        InputError
            If the kernel does not integrate or can be negative, or a kernel of a user does not define it.
        """
        raise self._no_density("log_integral")

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Independent draws from the density :math:`\varphi(|x|^2)/\int\varphi`, at unit length scale.

        Parameters
        ----------
        n : int
            Number of draws.
        rng : numpy.random.Generator
            Where they come from.

        Returns
        -------
        ndarray of shape (n, dim)
            One draw a row, float64.

        Raises
        ------
        InputError
            As for :meth:`log_integral`.
        """
        raise self._no_density("sample")

    def _no_density(self, method: str) -> InputError:
        if not self.nonnegative:
            return InputError(f"{self!r} can be negative and is no density: use {DENSITIES}.")
        return InputError(f"{self!r} does not define {method}: define it, or use {DENSITIES}.")

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Independent wave vectors :math:`\omega` with :math:`\varphi(|x|^2) = \mathbb{E}\cos(\omega\cdot x)`.

        They are in radians a unit of length, at unit length scale.

        Parameters
        ----------
        n : int
            Number of wave vectors.
        rng : numpy.random.Generator
            Where they come from.

        Returns
        -------
        ndarray of shape (n, dim)
            One wave vector a row, float64.

        Raises
        ------
        InputError
            If a kernel of a user does not define it.
        """
        raise InputError(
            f"{self!r} does not define sample_frequencies: define it, or use Gaussian(), Laplacian(), Matern(), IMQ(), SDO() or "
            "Sobolev()."
        )

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Logarithm of the density that :meth:`sample_frequencies` draws from.

        Parameters
        ----------
        omega : ndarray of shape (n, dim)
            Wave vectors, in radians a unit of length.

        Returns
        -------
        ndarray of shape (n,)
            log q, with :math:`\varphi(|x|^2) = \int q(\omega) \cos(\omega\cdot x)\, d\omega`.

        Raises
        ------
        InputError
            If a kernel of a user does not define it.
        """
        raise InputError(
            f"{self!r} does not define log_spectral_density: define it, or use Gaussian(), Laplacian(), Matern(), IMQ(), SDO() "
            "or Sobolev()."
        )


@dataclass(frozen=True)
class SelfConvolution:
    r"""A kernel convolved with itself: :math:`(k * k)(r) = e^{c}\,\psi(s)`, psi(0) = 1.

    The constant is kept as a logarithm: it over- and underflows in high dimensions.

    Parameters
    ----------
    log_constant : float
        c, at unit length scale; a length scale ell adds ``dim * log(ell)``.
    psi : callable
        Overwriting form ``(s, work) -> array`` of psi.
    kernel : Kernel, optional
        The kernel whose separation of points psi takes, where it is not a function of squared distances.
    """

    log_constant: float
    psi: Callable[[Array, Workspace], Array]
    kernel: Kernel | None = None

    def __call__(self, s: Array) -> Array:
        """psi at squared scaled distances `s`, an array or a number."""
        return _on_copy(self.psi, s)


class Workspace:
    """Scratch arrays of one thread, allocated once and used again: fresh pages cost more than the arithmetic."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def empty(self, slot: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Uninitialised NumPy array of `shape`, sharing memory with every earlier array of the same `slot`."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(slot)
        if buffer is None or buffer.nbytes < size:
            buffer = self._buffers[slot] = np.empty(size, dtype=np.uint8)
        return buffer[:size].view(dtype).reshape(shape)

    def copy(self, slot: str, a: Array) -> Array:
        """Copy of `a`: in this workspace for NumPy, wherever the library puts it for others."""
        if not isinstance(a, np.ndarray):
            return namespace(a).asarray(a, device=a.device, copy=True)
        out = self.empty(slot, a.shape, a.dtype)
        out[...] = a
        return out


def cap(a: Array, most: float) -> Array:
    """Overwrite what is above `most` by it, so that powers stay finite and no infinity meets a 0; NaN stays."""
    if not isinstance(a, np.ndarray):
        a[...] = namespace(a).clip(a, max=most)  # to look would be to wait for the device
        return a
    above = a > most
    if np.any(above):  # to look takes a quarter of the time of a minimum
        a[above] = most
    return a
