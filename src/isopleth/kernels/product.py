"""Kernels that are products over columns: a factor for each numeric column, a heat kernel for each categorical column.

The integrals of such a kernel are products over columns too. Therefore marginals, conditionals and draws of its densities are
exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from isopleth.core.arrays import Array, namespace, overwrite
from isopleth.core.errors import InputError
from isopleth.kernels.base import Kernel, SelfConvolution, Workspace

# Above this, e^-u is 0, and a product of 64 factors 1 + u of this size is still finite.
_FURTHEST = 750.0
_FOLD = 64  # number of factors 1 + u that are multiplied before the logarithm is taken


def _difference(a: Array, b: Array, work: Workspace) -> Array:
    """Compute a_i - b_j of two coordinates, in a scratch array."""
    if not isinstance(a, np.ndarray):
        return a[:, None] - b[None, :]
    return np.subtract.outer(a, b, out=work.empty("coordinate difference", (len(a), len(b)), a.dtype))


class Factor(ABC):
    """Kernel of one numeric column, :math:`k(x, y) = e^{-t(x - y)}` at unit length scale, with its integrals and products."""

    # The order of the Matern kernel that is as smooth at 0.
    smoothness: ClassVar[float]

    # log of :math:`\int k(0, t)\, dt`.
    log_integral: ClassVar[float]

    # log of :math:`\int k(0, t)^2\, dt`.
    log_overlap: ClassVar[float]

    # Factor with the kernel :math:`\int k(x, t)\, k(y, t)\, dt`, divided by its value at x = y.
    overlap: ClassVar[Factor]

    @abstractmethod
    def add(self, s: Array, a: Array, b: Array, work: Workspace) -> None:
        """Add :math:`t(a_i - b_j)` summed over the columns of `a` and `b` to `s`."""

    @abstractmethod
    def slope(self, x: np.ndarray, centers: np.ndarray, shares: np.ndarray) -> np.ndarray:
        r"""Compute :math:`\sum_j b_{ij}\, \partial_x \log k(x_i, c_j)` at `x` of shape (n,), for `shares` b of sum 1."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        r"""Draw from the density :math:`k(0, \cdot)/\int k`, shape (n,)."""

    @abstractmethod
    def sample_pair(self, a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        r"""Draw from the density :math:`\propto k(a, \cdot)\, k(b, \cdot)` for each pair; its mean is the mean of a and b."""

    @abstractmethod
    def cumulative(self, t: np.ndarray, a: np.ndarray) -> np.ndarray:
        r"""Compute the distribution function of the density :math:`k(a, \cdot)/\int k` at `t`."""

    @abstractmethod
    def pair_mixture(self, values: np.ndarray) -> PairMixture:
        r"""Return a mixture of the densities :math:`\propto k(a, \cdot)\, k(b, \cdot)` of pairs, without weights so far."""


class PairMixture(ABC):
    """Mixture over all pairs of some values, stored as sums whose length is the number of values."""

    @abstractmethod
    def add(self, rows: slice, weights: np.ndarray) -> None:
        """Add the weights of pairs of the values `rows` with all values. The matrix of all weights is symmetric."""

    @abstractmethod
    def cumulative(self, t: float) -> float:
        """Return the weight below `t`."""


class _Midpoints(PairMixture):
    """Normal distributions of variance 1/2 about midpoints, on a grid of steps of 1/32 by cubic weights, exact to 2e-7."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        low, high = float(values.min()), float(values.max())
        self._step = max(1.0 / 32.0, (high - low) / 2**18)
        self._low = low - 1.5 * self._step
        self._bins = np.zeros(int((high - low) / self._step) + 6)

    def add(self, rows: slice, weights: np.ndarray) -> None:
        """Add the midpoints of some rows with all values to a grid, by cubic interpolation."""
        place = (0.5 * (self._values[rows, None] + self._values) - self._low) / self._step
        left = place.astype(np.intp)
        u = place - left  # between the second and the third of four points
        for shift, share in (
            (-1, -u * (u - 1.0) * (u - 2.0) / 6.0),
            (0, (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0),
            (1, -(u + 1.0) * u * (u - 2.0) / 2.0),
            (2, (u + 1.0) * u * (u - 1.0) / 6.0),
        ):
            share *= weights
            self._bins += np.bincount((left + shift).ravel(), share.ravel(), len(self._bins))

    def cumulative(self, t: float) -> float:
        points = self._low + self._step * np.arange(len(self._bins))
        return float(self._bins @ ndtr(math.sqrt(2.0) * (t - points)))


class _Plateaus(PairMixture):
    """Densities that are constant between two values and fall like e^(-2 t) outside."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self._below, self._above, self._rise = (np.zeros(len(values)) for _ in range(3))

    def add(self, rows: slice, weights: np.ndarray) -> None:
        """Add the pairs of some rows with all values, each pair once."""
        distance = self._values - self._values[rows, None]
        equal = 0.5 * np.where(distance == 0.0, weights, 0.0).sum(axis=1)
        self._below[rows] += equal
        self._above[rows] += equal
        plateau = np.where(distance > 0.0, weights / (1.0 + np.abs(distance)), 0.0)  # each pair once
        first, last = plateau.sum(axis=1), plateau.sum(axis=0)
        self._below[rows] += first
        self._above += last
        self._rise[rows] += 2.0 * first
        self._rise -= 2.0 * last

    def cumulative(self, t: float) -> float:
        """Return the distribution function at t."""
        beyond = t - self._values
        tails = np.exp(-2.0 * np.abs(beyond))
        passed = beyond > 0.0
        below = self._below @ np.where(passed, 1.0, tails)
        above = self._above @ np.where(passed, 1.0 - tails, 0.0)
        return float(below + above + self._rise @ np.maximum(beyond, 0.0))


@dataclass(frozen=True)
class GaussianFactor(Factor):
    r"""Gaussian factor, :math:`t(u) = \text{rate}\; u^2`; the rate is 1/2 for the kernel and 1/4 for its overlap."""

    rate: float = 0.5
    smoothness: ClassVar[float] = math.inf
    log_integral: ClassVar[float] = 0.5 * math.log(2.0 * math.pi)
    log_overlap: ClassVar[float] = 0.5 * math.log(math.pi)

    def add(self, s: Array, a: Array, b: Array, work: Workspace) -> None:
        """Add squared differences."""
        for j in range(a.shape[1]):
            step = _difference(a[:, j], b[:, j], work)
            step *= step
            step *= self.rate
            s += step

    def slope(self, x: np.ndarray, centers: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the mean of the centres minus x."""
        return np.asarray(shares @ centers - x)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw from the standard normal distribution."""
        return rng.standard_normal(n)

    def sample_pair(self, a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Add a normal draw of variance 1/2 to the midpoint."""
        return np.asarray(0.5 * (a + b) + rng.normal(scale=math.sqrt(0.5), size=np.shape(a)))

    def cumulative(self, t: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Compute the normal distribution function."""
        return np.asarray(ndtr(t - a))

    def pair_mixture(self, values: np.ndarray) -> PairMixture:
        """Return a mixture of normal distributions about midpoints."""
        return _Midpoints(values)


GaussianFactor.overlap = GaussianFactor(0.25)


@dataclass(frozen=True)
class LaplacianFactor(Factor):
    """Laplacian factor, :math:`t(u) = |u|`.

    The product of two is constant between a and b and falls outside like :math:`e^{-2|t|}`: masses are 1/2 : |a - b| : 1/2.
    """

    smoothness: ClassVar[float] = 0.5
    log_integral: ClassVar[float] = math.log(2.0)
    log_overlap: ClassVar[float] = 0.0

    def add(self, s: Array, a: Array, b: Array, work: Workspace) -> None:
        """Add absolute differences."""
        xp = namespace(s)
        for j in range(a.shape[1]):
            s += overwrite(xp.abs, _difference(a[:, j], b[:, j], work))

    def slope(self, x: np.ndarray, centers: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the share of the centres above x minus that below; a centre at x counts as 0."""
        return np.asarray(np.einsum("ij,ij->i", shares, np.sign(centers[None, :] - x[:, None])))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw from the Laplace distribution."""
        return rng.laplace(size=n)

    def sample_pair(self, a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Compute the quantile of a uniform draw."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        place = rng.uniform(size=np.shape(a)) * (1.0 + high - low)  # position in the three parts one after another
        tail = np.minimum(place, 1.0 + high - low - place)
        with np.errstate(divide="ignore"):
            beyond = 0.5 * np.log(np.maximum(2.0 * tail, np.finfo(np.float64).tiny))
        inside = low + place - 0.5
        return np.asarray(np.where(tail >= 0.5, inside, np.where(place < 0.5, low + beyond, high - beyond)))

    def cumulative(self, t: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Compute the distribution function of the Laplace distribution."""
        u = np.asarray(t - a)
        tail = 0.5 * np.exp(-np.abs(u))
        return np.where(u < 0.0, tail, 1.0 - tail)

    def pair_mixture(self, values: np.ndarray) -> PairMixture:
        """Return a mixture of densities that are constant between two values."""
        return _Plateaus(values)


@dataclass(frozen=True)
class _LaplacianOverlap(LaplacianFactor):
    r"""Overlap of the Laplacian factor, :math:`t(u) = |u| - \log(1 + |u|)`, from the integral of the product of two."""

    def add(self, s: Array, a: Array, b: Array, work: Workspace) -> None:
        """Add |u| - log(1 + |u|), with one logarithm for the product of many factors, which is faster."""
        xp = namespace(s)
        for start in range(0, a.shape[1], _FOLD):
            product = work.copy("product of overlaps", s)
            product[...] = 1.0
            for j in range(start, min(start + _FOLD, a.shape[1])):
                step = overwrite(xp.abs, _difference(a[:, j], b[:, j], work))
                s += step
                if bool(_reach(a[:, j], b[:, j]) > _FURTHEST):
                    step = xp.clip(step, None, _FURTHEST)  # by position: NumPy 2.0 needs both bounds
                step += 1.0
                product *= step
            s -= overwrite(xp.log, product)


def _reach(a: Array, b: Array) -> Array:
    """Return the largest difference of two coordinates."""
    xp = namespace(a)
    return xp.maximum(xp.max(a) - xp.min(b), xp.max(b) - xp.min(a))


LaplacianFactor.overlap = _LaplacianOverlap()

GAUSSIAN_FACTOR = GaussianFactor()
LAPLACIAN_FACTOR = LaplacianFactor()


def overlap_of_unlike(rho: float, size: int) -> float:
    """Return the overlap of the kernels of two of `size` categories, whose similarity is `rho`, over that of one with itself."""
    return (2.0 * rho + (size - 2) * rho * rho) / (1.0 + (size - 1) * rho * rho)


@dataclass(frozen=True)
class ColumnKernel(Kernel):
    r"""Product kernel over columns, :math:`k(x, y) = \prod_k k_k(x_k, y_k)`.

    The first columns are numeric and have the same factor. The last ones are codes of categories, where the kernel is 1 for
    equal codes and :math:`\rho_k` otherwise. For m categories this is, up to a constant, the heat kernel :math:`e^{-tL}` of the
    complete graph with :math:`\rho = (1 - e^{-mt})/(1 + (m - 1) e^{-mt})`, positive definite for :math:`0 \le \rho < 1` [1]_.
    The tile loop computes s, the sum over columns of :math:`-\log k_k`, in place of squared distances, and the kernel is
    :math:`e^{-s}`.

    References
    ----------
    .. [1] R. I. Kondor, J. Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002.
    """

    factor: Factor = GAUSSIAN_FACTOR  # factor of the numeric columns
    rho: tuple[float, ...] = ()  # kernel of two different categories, for each categorical column; above 0 and below 1
    sizes: tuple[int, ...] = field(default=())  # number of categories of each categorical column

    by_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rho) != len(self.sizes):
            raise InputError(
                f"{len(self.rho)} values of rho for {len(self.sizes)} categorical columns; expected one each."
            )
        for value, size in zip(self.rho, self.sizes, strict=True):
            if not 0.0 < value < 1.0 or size < 2:
                raise InputError(
                    f"rho = {value!r} of {size} categories: expected 0 < rho < 1 and at least 2 categories."
                )

    @property
    def smoothness(self) -> float:
        """Smoothness of the factor."""
        return self.factor.smoothness

    @property
    def column_factor(self) -> Factor:
        """Factor of the numeric columns."""
        return self.factor

    @property
    def n_numeric(self) -> int:
        """Number of numeric columns; they come first."""
        return self.bound_dim - len(self.rho)

    def take(self, columns: np.ndarray) -> ColumnKernel:
        """Return the kernel of some of the columns; numeric columns must come before categorical ones."""
        codes = [int(j) - self.n_numeric for j in columns if j >= self.n_numeric]
        return ColumnKernel(
            len(columns), self.factor, tuple(self.rho[k] for k in codes), tuple(self.sizes[k] for k in codes)
        )

    def separation(self, a: Array, b: Array, work: Workspace) -> Array:
        """Compute sums of -log k between rows `a` and rows `b`, in a scratch array."""
        xp = namespace(a)
        shape = (a.shape[0], b.shape[0])
        if isinstance(a, np.ndarray):
            s = work.empty("separation", shape, a.dtype)
            s[...] = 0.0
        else:
            s = xp.zeros(shape, dtype=a.dtype, device=a.device)
        d = self.n_numeric
        self.factor.add(s, a[:, :d], b[:, :d], work)
        for k, value in enumerate(self.rho):
            unlike = xp.astype(_difference(a[:, d + k], b[:, d + k], work) != 0.0, s.dtype)
            unlike *= -math.log(value)
            s += unlike
        return s

    def _product(self, s: Array, order: int, work: Workspace) -> Array:
        if order:
            return super()._product(s, order, work)
        s *= -1.0
        return overwrite(namespace(s).exp, s)

    def _log(self, s: Array, work: Workspace) -> Array:
        s *= -1.0
        return s

    @property
    def overlap(self) -> ColumnKernel:
        r"""The kernel :math:`\prod_k g_k(x, y)/g_k(x, x)`, :math:`g(x, y) = \int k(x, t)\, k(y, t)\, dt`, or a sum."""
        rho = tuple(overlap_of_unlike(r, m) for r, m in zip(self.rho, self.sizes, strict=True))
        return ColumnKernel(self.dim, self.factor.overlap, rho, self.sizes)

    @property
    def log_overlap(self) -> float:
        r"""log of :math:`\prod_k g_k(x, x)`, the factor that :attr:`overlap` leaves out."""
        words = (math.log1p((m - 1) * r * r) for r, m in zip(self.rho, self.sizes, strict=True))
        return self.n_numeric * self.factor.log_overlap + math.fsum(words)

    def self_convolution(self) -> SelfConvolution:
        """Return the product of the overlaps of the columns; its psi takes the separation of :attr:`overlap`."""
        return SelfConvolution(self.log_overlap, lambda s, work: self._product(s, 0, work), self.overlap)

    def log_integral(self) -> float:
        """Return the log of the integral over numeric columns and the sum over categories."""
        words = (math.log1p((m - 1) * r) for r, m in zip(self.rho, self.sizes, strict=True))
        return self.n_numeric * self.factor.log_integral + math.fsum(words)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw about 0; kernels with categorical columns are no functions of differences and have no draws."""
        if self.rho:
            raise InputError("a kernel of categories is not a function of differences, so it has no draws about 0.")
        return np.column_stack([self.factor.sample(n, rng) for _ in range(self.bound_dim)])


@dataclass(frozen=True)
class ProductLaplacian(ColumnKernel):
    r"""The product Laplacian kernel, :math:`k(x, y) = \exp(-\sum_k |x_k - y_k|/\ell_k)`.

    It falls off with the city-block distance. Its densities have exact marginals and conditionals, like those of the Gaussian
    kernel. The :class:`Laplacian` kernel depends on the Euclidean distance; its densities have none.

    Parameters
    ----------
    dim : int, optional
        Dimension of the points; if omitted, fit sets it.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels.product import ProductLaplacian
    >>> from isopleth.operators import Operator
    >>> Operator(ProductLaplacian(), np.array([[0.0, 0.0], [1.0, 2.0]])).dense().round(4)  # e^-3 = 0.0498
    array([[1.    , 0.0498],
           [0.0498, 1.    ]])
    """

    factor: Factor = field(default=LAPLACIAN_FACTOR, init=False, repr=False)
    rho: tuple[float, ...] = field(default=(), init=False, repr=False)
    sizes: tuple[int, ...] = field(default=(), init=False, repr=False)
