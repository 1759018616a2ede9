"""Affine frames: shift and scale of each column, also to the same spread between near rows, and whitening."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import pdist, squareform

from isopleth.core.arrays import Array, namespace
from isopleth.core.errors import InputError
from isopleth.core.laws import quantile_means
from isopleth.core.scales import deviations
from isopleth.frames.base import ColumnMap, Frame, FrameMap, check_nonnegative, like, limited

# Relative size of an eigenvalue of a correlation matrix that cannot be told from 0.
_NO_EIGENVALUE = 1e-13

# Square of the relative precision of numbers of single precision. Columns that depend on each other do so to their last digits.
RIDGE = 1e-14

# A smaller lack of variance is rounding.
_NARROW = 1e-9


@dataclass(frozen=True)
class ScaleMap(ColumnMap):
    """Map z_j = (x_j - shift_j) / scale_j.

    Parameters
    ----------
    shift, scale : arrays of shape (d,)
        Centre and positive scale of each column.
    """

    shift: np.ndarray
    scale: np.ndarray

    affine: ClassVar[bool] = True

    @property
    def dim(self) -> int:
        return len(self.shift)

    def forward(self, X: Array) -> Array:
        with np.errstate(over="ignore"):
            return limited((X - like(self.shift, X)) / like(self.scale, X))

    def inverse(self, Z: Array) -> Array:
        return Z * like(self.scale, Z) + like(self.shift, Z)

    def log_slopes(self, X: Array) -> Array:
        return namespace(X).zeros_like(X) - like(np.log(self.scale), X)

    def log_slope_gradients(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)

    def log_slope_curvatures(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)

    def pullback(self, X: Array, V: Array) -> Array:
        return V / like(self.scale, V)

    def take(self, columns: np.ndarray) -> ScaleMap:
        return ScaleMap(self.shift[columns], self.scale[columns])


@dataclass(frozen=True)
class LinearMap(FrameMap):
    """Map z = A (x - shift) / scale with an invertible matrix A.

    Parameters
    ----------
    shift, scale : arrays of shape (d,)
        Centre and positive scale of each column.
    matrix, matrix_inverse : arrays of shape (d, d)
        A and its inverse.
    log_determinant : float
        Logarithm of the absolute value of the determinant of A.
    """

    shift: np.ndarray
    scale: np.ndarray
    matrix: np.ndarray
    matrix_inverse: np.ndarray
    log_determinant: float

    affine: ClassVar[bool] = True

    @property
    def dim(self) -> int:
        return len(self.shift)

    def forward(self, X: Array) -> Array:
        with np.errstate(over="ignore"):
            scaled = limited((X - like(self.shift, X)) / like(self.scale, X))
            return limited(scaled @ like(self.matrix.T, X))

    def inverse(self, Z: Array) -> Array:
        return (Z @ like(self.matrix_inverse.T, Z)) * like(self.scale, Z) + like(self.shift, Z)

    def log_volume(self, X: Array) -> Array:
        return namespace(X).zeros_like(X[:, 0]) + float(self.log_determinant - np.log(self.scale).sum())

    def grad_log_volume(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)

    def laplacian_log_volume(self, X: Array) -> Array:
        return namespace(X).zeros_like(X[:, 0])

    def laplacian(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)

    def pullback(self, X: Array, V: Array) -> Array:
        return (V @ like(self.matrix, V)) / like(self.scale, V)

    def pushforward(self, X: Array, V: Array) -> Array:
        return (V / like(self.scale, V)) @ like(self.matrix.T, V)


@dataclass(frozen=True)
class Scale(Frame):
    """Frame that divides each column by its standard deviation.

    Every column is shifted by the mean of its middle tenth, which one far row hardly changes.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import Scale
    >>> Scale().fit(np.array([[1.0], [2.0], [3.0]]), np.ones(3)).forward(np.array([[2.0]]))
    array([[0.]])
    """

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> ScaleMap:
        return ScaleMap(_centres(rows, weights), deviations(rows, weights))


@dataclass(frozen=True)
class Whiten(Frame):
    r"""Frame in which the columns are uncorrelated and have unit variance.

    With C the correlation matrix, :math:`z = (C + \rho I)^{-1/2} (x - \text{shift})/\text{deviation}`. The symmetric root
    changes the columns least; radial kernels do not depend on the choice of the root.

    Parameters
    ----------
    ridge : float, default=1e-14
        :math:`\rho`, which bounds the scale of directions in which the rows do not vary: by default, by the square of the
        relative precision of numbers of single precision. With 0, radial kernels give densities
        and scores that are equivariant under all invertible affine maps.
    components : bool, default=False
        Whether the coordinates are principal components of the scaled columns.
    least_deviation : float, default=0.0
        Columns with a smaller standard deviation are not divided by it.

    Raises
    ------
    InputError
        If `ridge` or `least_deviation` is negative or no number; in fit, if the ridge is 0 and columns are linearly dependent.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import Whiten
    >>> rows = np.random.default_rng(0).normal(size=(100, 2)) @ [[1.0, 1.0], [0.0, 0.1]]
    >>> z = Whiten().fit(rows, np.ones(100)).forward(rows)
    >>> np.round(np.cov(z.T, bias=True), 3)
    array([[1., 0.],
           [0., 1.]])
    """

    ridge: float = RIDGE
    components: bool = False
    least_deviation: float = 0.0

    def __post_init__(self) -> None:
        for name in ("ridge", "least_deviation"):
            check_nonnegative(name, getattr(self, name))

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> LinearMap:
        shift, scale = _centres(rows, weights), deviations(rows, weights)
        scale = np.where(scale <= self.least_deviation, 1.0, scale)
        values, vectors, empty = self._eigen((rows - shift) / scale, weights / weights.sum())
        root = np.sqrt(values)
        if self.components:
            matrix, inverse = vectors.T / root[:, None], vectors * root
        else:
            matrix, inverse = _symmetric(1.0 / root, vectors, empty), _symmetric(root, vectors, empty)
        return LinearMap(shift, scale, matrix, inverse, float(-np.log(root).sum()))

    def _eigen(self, scaled: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Return eigenvalues and eigenvectors of C, and how many of the first are 0 because rows are fewer than columns.

        Singular values have the digits that eigenvalues of a product lose.
        """
        centred = scaled - share @ scaled
        root = centred * np.sqrt(share)[:, None]
        missing = 1.0 - (root * root).sum(axis=0)
        narrow = missing > _NARROW  # columns that are not scaled, nor stretched
        root = np.concatenate([root, np.diag(np.sqrt(np.maximum(missing, 0.0)))[narrow]])
        rows, columns = root.shape
        if rows < columns:
            basis = np.linalg.qr(root.T, mode="complete")[0]
            _, singular, transposed = np.linalg.svd(root @ basis[:, :rows])
            transposed = np.concatenate([transposed @ basis[:, :rows].T, basis[:, rows:].T])
            singular = np.concatenate([singular, np.zeros(columns - rows)])
        else:
            padded = np.concatenate([root, np.zeros((columns, columns))])
            _, singular, transposed = np.linalg.svd(np.linalg.qr(padded, mode="r"))
        values, vectors = singular[::-1] ** 2, transposed[::-1].T
        if self.ridge == 0.0 and values[0] <= _NO_EIGENVALUE * values[-1]:
            raise InputError(
                "the columns of X are linearly dependent, so ridge = 0 cannot whiten them; use ridge=1e-14."
            )
        third = share @ (centred @ vectors) ** 3  # the sign of an eigenvector is arbitrary; this fixes it by the rows
        return values + self.ridge, vectors * np.where(third < 0.0, -1.0, 1.0), max(0, columns - rows)


def _symmetric(values: np.ndarray, vectors: np.ndarray, same: int) -> np.ndarray:
    """Return the symmetric matrix of these eigenvalues, of which the first `same` are equal."""
    if not same:
        return (vectors * values) @ vectors.T
    inside = vectors[:, same:]
    return values[0] * np.eye(len(vectors)) + (inside * (values[same:] - values[0])) @ inside.T


def _centres(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return quantile_means(rows, weights, np.array([0.45, 0.55]))[0]


# Most rows whose pairs are compared, evenly spaced in their order.
_ROWS = 512

# About how many pairs decide, at least, among normal rows of many columns.
_PAIRS = 100.0

# Rows nearer than the root mean squared distance over the root of this count as equal.
_EQUAL = 1e6

# Near rows are found in columns of equal spread first, then in those that result. More steps changed scores little.
_STEPS = 2

# Smallest scale over the standard deviation, before all are multiplied by one number.
_LEAST = 1e-3


@dataclass(frozen=True)
class LocalScale(Frame):
    r"""Frame that divides each column by its spread between near rows.

    Clusters that are round in some units of the columns are round in this frame, whatever the units are; standard deviations of
    whole columns include the distances between clusters. The squared scale of a column is proportional to its mean squared
    difference over pairs of rows with the weights :math:`\exp(-b\,|z - z'|^2 / m)`, where m is the mean squared distance and
    :math:`b = \log(n^2/200)` for n distinct rows. The geometric mean of the scales is that of the standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import LocalScale
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(300, 2)) + rng.integers(2, size=300)[:, None] * [8.0, 0.0]  # two round clusters
    >>> scale = LocalScale().fit(rows, np.ones(300)).scale
    >>> bool(rows[:, 0].std() > 4 * rows[:, 1].std()), bool(scale[0] < 2 * scale[1])
    (True, True)
    """

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> ScaleMap:
        whole = Scale().fit(rows, weights)
        chosen = np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int)
        z, share = whole.forward(rows[chosen]), weights[chosen] / weights[chosen].sum()
        factor = np.ones(rows.shape[1])
        for _ in range(_STEPS):
            squares = _squared_differences(z, z / factor, share)
            factor = np.maximum(np.sqrt(squares / squares.max()), _LEAST)
            factor /= np.exp(np.log(factor).mean())
        return ScaleMap(whole.shift, whole.scale * factor)


def _squared_differences(z: np.ndarray, inside: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the squared differences of each column of `z`, summed over pairs of rows that are near in `inside`."""
    distances = squareform(pdist(inside, "sqeuclidean"))
    mean = share @ distances @ share
    one_over_n = share @ np.exp(-_EQUAL / mean * distances) @ share  # for n distinct rows of equal weight
    sharpness = max(0.0, -2.0 * np.log(one_over_n) - np.log(2.0 * _PAIRS))
    pairs = np.exp(-sharpness / mean * distances) * share * share[:, None]
    np.fill_diagonal(pairs, 0.0)  # they cancel, but for the rounding errors of far rows
    return np.maximum(np.sum(pairs, axis=1) @ (z * z) - np.einsum("ij,ij->j", z, pairs @ z), 0.0)
