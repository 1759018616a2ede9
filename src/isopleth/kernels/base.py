"""Base class of all kernels, and the registry of their names."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from isopleth.core.arrays import Array, namespace
from isopleth.core.errors import InputError

if TYPE_CHECKING:
    from isopleth.kernels.product import Factor

# Kernels by the name that `kernel=` accepts. The tests run through all of them.
KERNELS: dict[str, Kernel] = {}

K = TypeVar("K", bound="type[Kernel]")


def register(name: str, **parameters: Any) -> Callable[[K], K]:
    """Return a class decorator that makes a kernel available under a name.

    Parameters
    ----------
    name : str
        Name that `kernel=` accepts.
    **parameters
        Arguments of the kernel that has this name.

    Examples
    --------
    >>> from isopleth.kernels import Matern, get_kernel
    >>> get_kernel("matern52") == Matern(nu=2.5)  # the class has the decorator @register("matern52", nu=2.5)
    True
    """

    def add(kernel: K) -> K:
        KERNELS[name] = kernel(**parameters)
        return kernel

    return add


def get_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel that has a name, or the kernel itself.

    Parameters
    ----------
    kernel : str or Kernel
        A registered name or a kernel.

    Returns
    -------
    Kernel
        Not bound to a dimension if it was given by name.

    Raises
    ------
    InputError
        If the name is not registered.

    Examples
    --------
    >>> from isopleth.kernels import get_kernel
    >>> get_kernel("gaussian")
    Gaussian(dim=None)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]
    names = ", ".join(repr(name) for name in KERNELS)
    raise InputError(
        f"kernel = {kernel!r}: expected one of {names}, or a kernel such as isopleth.kernels.SDO(order=4)."
    )


# Methods that a kernel defines if the property is true.
_METHODS = {
    "integrable": ("log_integral", "sample"),
    "square_integrable": ("self_convolution",),
    "has_spectrum": ("sample_frequencies", "log_spectral_density"),
}


def names_of_kernels(query: str, dim: int) -> str:
    """Return the registered names that have the capability `query` in `dim` columns and its methods, as words for a message."""
    bound = {name: kernel.bind(dim) for name, kernel in KERNELS.items()}
    able = [repr(name) for name, kernel in bound.items() if getattr(kernel, query) and _defines(kernel, query)]
    return " or ".join([", ".join(able[:-1]), able[-1]] if len(able) > 1 else able)


def _defines(kernel: Kernel, query: str) -> bool:
    """Tell whether the class of a kernel has the methods of a capability; a property that it overrides may promise too much."""
    return all(getattr(type(kernel), method) is not getattr(Kernel, method) for method in _METHODS[query])


_PRODUCTS = ("phi", "phi'", "s phi''", "s phi'''", "s^2 phi''''")


def _on_copy(product: Callable[[Array, Workspace], Array], s: Array) -> Array:
    """Apply a formula that overwrites its argument to a copy of `s`, which may be a number, a list or an array."""
    a = s if hasattr(s, "ndim") and s.ndim else np.asarray(s, dtype=np.float64)
    xp = namespace(a)
    dtype = a.dtype if xp.isdtype(a.dtype, "real floating") else xp.float64
    with np.errstate(all="ignore"):
        out = product(xp.asarray(xp.reshape(a, (-1,)), dtype=dtype, copy=True), Workspace())
    out = xp.reshape(xp.asarray(out, copy=True), a.shape)
    return out[()] if isinstance(out, np.ndarray) else out


@dataclass(frozen=True)
class Kernel(ABC):
    r"""Radial kernel :math:`k(x, y) = \varphi(s)`, :math:`s = |x - y|^2/\ell^2`, :math:`\varphi(0) = 1`.

    Users pass a kernel without `dim` to an estimator. :meth:`bind` returns the same kernel for a given number of columns; only a
    kernel with `dim` can be evaluated. Kernels are immutable, comparable and hashable.

    To define a kernel, write a subclass. It must define

    - ``smoothness``, a number or a property: the order nu of the Matern kernel that is equally smooth at 0;
    - ``_product(s, order, work)``, the formulas that :meth:`derivative` lists: `s` is an array that may be overwritten, `work`
      provides scratch memory. Sums and solvers need order 0, gradients 1, Laplacians 2. For orders that the kernel does not
      define, return ``super()._product(s, order, work)``, which raises an error that names the order. From s = 1e300 on, orders
      1 to 4 are exactly 0, and nothing is NaN.

    and it may define

    - ``nonnegative = False``, if :math:`\varphi` can be negative;
    - ``_log(s, work)`` and ``_log_slope(s, work)``, log phi and its derivative, for densities at rows where phi underflows;
    - :meth:`self_convolution`, for densities :math:`f^2`;
    - :meth:`log_integral` and :meth:`sample`, for densities that are mixtures of the kernel itself;
    - :meth:`sample_frequencies` and :meth:`log_spectral_density`, for random features.

    The properties :attr:`nonnegative`, :attr:`integrable`, :attr:`square_integrable` and :attr:`has_spectrum` say which of
    these a kernel has. They follow from the methods that are defined; a kernel that integrates in some dimensions only
    overrides them.

    :func:`~isopleth.kernels.check_kernel` compares what a kernel defines with slow forms of it.

    Parameters of a kernel are fields of a frozen dataclass, with defaults. A model that holds a kernel defined elsewhere can be
    pickled and cloned; :func:`isopleth.save` refuses it, because a file cannot hold its code.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from isopleth.kernels import Kernel
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
    isopleth.core.errors.InputError: Cauchy(dim=1) does not define s phi'': let its _product answer for order = 2.
    """

    dim: int | None = None

    # True if phi is nowhere negative.
    nonnegative: ClassVar[bool] = True

    # True for products over columns, which are functions of :meth:`separation` in place of squared distances.
    by_columns: ClassVar[bool] = False

    @property
    def column_factor(self) -> Factor | None:
        """Factor of a numeric column if the kernel is a product over columns; None for other kernels."""
        return None

    def separation(self, a: Array, b: Array, work: Workspace) -> Array:
        """Return the argument of the kernel for all pairs of rows of `a` and `b`; only if :attr:`by_columns`."""
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
        """Return this kernel for points of `dim` columns.

        Raises
        ------
        InputError
            If it is bound to another number of columns.
        """
        if self.dim is None:
            return replace(self, dim=int(dim))
        if self.dim != dim:
            raise InputError(
                f"{self!r} is bound to {self.dim} columns but the data have {dim}; leave dim out to bind at fit."
            )
        return self

    @property
    def bound_dim(self) -> int:
        """`dim` of a bound kernel; InputError for others."""
        if self.dim is None:
            raise InputError(f"{self!r} is not bound to a dimension: call bind(dim) first.")
        return self.dim

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Order nu of the Matern kernel that is equally smooth at 0; infinite for a Gaussian."""

    @property
    def integrable(self) -> bool:
        """Tell whether phi divided by its integral is a density: then :meth:`log_integral` and :meth:`sample` are defined."""
        return self.nonnegative and type(self).log_integral is not Kernel.log_integral

    @property
    def square_integrable(self) -> bool:
        """Tell whether the square of phi has an integral: then :meth:`self_convolution` is defined."""
        return type(self).self_convolution is not Kernel.self_convolution

    @property
    def has_spectrum(self) -> bool:
        """Tell whether :meth:`sample_frequencies` and :meth:`log_spectral_density` are defined."""
        return _defines(self, "has_spectrum")

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        """Compute :meth:`derivative` without a copy: `s` may be overwritten, and the result may be `s` or scratch of `work`."""
        raise InputError(f"{self!r} does not define {_PRODUCTS[order]}: let its _product answer for order = {order}.")

    def __call__(self, s: Array) -> Array:
        """Return phi at squared scaled distances `s`, an array or a number."""
        return self.derivative(s, 0)

    def derivative(self, s: Array, order: int) -> Array:
        r"""Return a derivative of phi in `s`, times :math:`s^{\lfloor order/2 \rfloor}`.

        The power of s keeps the product finite for kernels that are rough at 0.

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
            If `order` is none of these, or the kernel does not define it.
        """
        if order not in range(5):
            raise InputError(f"order = {order!r}: expected an integer from 0 to 4.")
        return _on_copy(lambda a, work: self._product(a, order, work), s)

    def laplacian(self, s: Array) -> Array:
        r"""Return :math:`\Delta_x k = 2\,(d\,\varphi' + 2 s\varphi'')` at unit length scale; finite at 0 from Matern 3/2 on."""
        return _on_copy(self._laplacian, s)

    def _laplacian(self, s: Array, work: Workspace) -> Array:
        """Compute :meth:`laplacian` without a copy; `s` and the result are as in :meth:`_product`."""
        second = self._product(work.copy("laplacian of", s), 2, work)
        second = work.copy("second derivative", second)  # the next product may use the scratch that holds it
        first = self._product(s, 1, work)
        first *= 2.0 * self.bound_dim
        second *= 4.0
        first += second
        return first

    def second_at_zero(self) -> float:
        r"""Return the limit of :math:`\varphi''` itself at 0, infinite up to :attr:`smoothness` 2."""
        tiny = 1e-30  # phi'' differs from its limit by less than rounding, and tiny * phi'' is a normal number
        return float(self.derivative(tiny, 2)) / tiny if self.smoothness > 2.0 else math.inf

    def log(self, s: Array) -> Array:
        """Return log phi without underflow; InputError for kernels that can be negative."""
        return _on_copy(self._log, s)

    def _log(self, s: Array, work: Workspace) -> Array:
        raise self._no_logarithm("_log")

    def _log_slope(self, s: Array, work: Workspace) -> Array:
        """Compute the derivative of log phi in s, overwriting `s`."""
        raise self._no_logarithm("_log_slope")

    def _no_logarithm(self, method: str) -> InputError:
        if not self.nonnegative:
            return InputError(f"{self!r} can be negative and has no logarithm.")
        return InputError(f"{self!r} does not define {method}: densities need it for rows where they underflow.")

    def self_convolution(self) -> SelfConvolution:
        r"""Return the kernel convolved with itself, :math:`\int k(x, z)\, k(z, y)\, dz`, at unit length scale.

        Raises
        ------
        InputError
            If the square of the kernel does not integrate, or the kernel does not define it.
        """
        others = names_of_kernels("square_integrable", self.bound_dim)
        if type(self).square_integrable is not Kernel.square_integrable and not self.square_integrable:
            raise InputError(f"{self!r} is not square integrable, as densities f^2 must be: use {others}.")
        raise InputError(
            f"{self!r} does not define self_convolution, which normalises densities f^2: define it, or use {others}."
        )

    def at_half_the_scale(self, values: Array) -> Array | None:
        """Compute phi(4 s) from phi(s), which may be overwritten; None for kernels for which that is no simple function."""
        return None

    def log_integral(self) -> float:
        r"""Return the logarithm of :math:`\int \varphi(|x|^2)\, dx` over all points of `dim` columns, at unit length scale.

        Raises
        ------
        InputError
            If the kernel does not integrate, can be negative, or does not define it.
        """
        raise self._no_density("log_integral")

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw points from the density :math:`\varphi(|x|^2)/\int\varphi`, at unit length scale.

        Parameters
        ----------
        n : int
            Number of draws.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n, dim)
            One draw per row, float64.

        Raises
        ------
        InputError
            In the same cases as :meth:`log_integral`.
        """
        raise self._no_density("sample")

    def _no_density(self, method: str) -> InputError:
        others = names_of_kernels("integrable", self.bound_dim)
        if not self.nonnegative:
            return InputError(f"{self!r} can be negative and is no density: use {others}.")
        return InputError(f"{self!r} does not define {method}: define it, or use {others}.")

    def sample_frequencies(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw wave vectors :math:`\omega` with :math:`\varphi(|x|^2) = \mathbb{E}\cos(\omega\cdot x)`.

        They are in radians per unit of length, at unit length scale.

        Parameters
        ----------
        n : int
            Number of wave vectors.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n, dim)
            One wave vector per row, float64.

        Raises
        ------
        InputError
            If the kernel does not define it.
        """
        raise self._no_spectrum("sample_frequencies")

    def log_spectral_density(self, omega: np.ndarray) -> np.ndarray:
        r"""Return the logarithm of the density that :meth:`sample_frequencies` draws from.

        Parameters
        ----------
        omega : ndarray of shape (n, dim)
            Wave vectors, in radians per unit of length.

        Returns
        -------
        ndarray of shape (n,)
            log q, with :math:`\varphi(|x|^2) = \int q(\omega) \cos(\omega\cdot x)\, d\omega`.

        Raises
        ------
        InputError
            If the kernel does not define it.
        """
        raise self._no_spectrum("log_spectral_density")

    def _no_spectrum(self, method: str) -> InputError:
        others = names_of_kernels("has_spectrum", self.bound_dim)
        return InputError(f"{self!r} does not define {method}: define it, or use {others}.")


@dataclass(frozen=True)
class SelfConvolution:
    r"""Kernel convolved with itself: :math:`(k * k)(r) = e^{c}\,\psi(s)`, psi(0) = 1.

    The constant is kept as a logarithm because it over- or underflows in high dimensions.

    Parameters
    ----------
    log_constant : float
        c, at unit length scale; a length scale ell adds ``dim * log(ell)``.
    psi : callable
        ``(s, work) -> array``; it may overwrite `s`.
    kernel : Kernel, optional
        Kernel whose separation of points is the argument of psi, if that is not a squared distance.
    """

    log_constant: float
    psi: Callable[[Array, Workspace], Array]
    kernel: Kernel | None = None

    def __call__(self, s: Array) -> Array:
        """Return psi at squared scaled distances `s`, an array or a number."""
        return _on_copy(self.psi, s)


class Workspace:
    """Scratch arrays of one thread, which are reused: fresh memory pages cost more time than the arithmetic."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray] = {}

    def empty(self, slot: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialised NumPy array of `shape` in the memory of every earlier array of the same `slot`."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(slot)
        if buffer is None or buffer.nbytes < size:
            buffer = self._buffers[slot] = np.empty(size, dtype=np.uint8)
        return buffer[:size].view(dtype).reshape(shape)

    def copy(self, slot: str, a: Array) -> Array:
        """Return a copy of `a`: in this workspace for NumPy, in new memory for other libraries."""
        if not isinstance(a, np.ndarray):
            return namespace(a).asarray(a, device=a.device, copy=True)
        out = self.empty(slot, a.shape, a.dtype)
        out[...] = a
        return out


def cap(a: Array, most: float) -> Array:
    """Replace values above `most` by it, in place, so that powers stay finite and inf * 0 does not occur; NaN stays."""
    if not isinstance(a, np.ndarray):
        a[...] = namespace(a).clip(a, max=most)  # a test for large values would wait for the device
        return a
    above = a > most
    if np.any(above):  # this test takes a quarter of the time of a minimum
        a[above] = most
    return a
