"""Nystrom form of a score: sums over the samples, which add over chunks, files and machines, and their solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import NUMPY, Array, Backend, namespace
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.progress import unheard
from isopleth.core.threads import slices
from isopleth.score.field import GaussianBase
from isopleth.score.landmark_sums import CHUNK, add_squares, bytes_of_squares, empty_squares, stacked
from isopleth.score.spaces import Space
from isopleth.solvers.direct import Spectrum
from isopleth.solvers.regularizers import Regularizer, Tikhonov, divided

# Matrices over all pairs of landmarks that a solution holds at once.
MATRICES = 6


@dataclass(eq=False, repr=False)
class NystromStatistics:
    r"""Sums over samples x with weights w from which a score with landmarks Z is solved.

    They are :math:`\sum w\, K(Z, x) K(x, Z)`, :math:`\sum w \operatorname{div}_x K(x, Z)` and :math:`\sum w`; no samples are
    kept. The sums of several parts of the data, computed in any order, process or machine, merge to the sums of all data.

    Parameters
    ----------
    space : Space
        The space of the score. Its memory limit bounds these sums and all scratch; its threads share the work.
    landmarks : ndarray of shape (m, d)
        Landmarks in frame coordinates, float64 or float32; samples are converted to this precision. The sums are float64.
    base : GaussianBase, optional
        Base measure; the difference to its score is fitted.
    backend : Backend
        Backend of the sums; samples are NumPy arrays.

    Attributes
    ----------
    total_weight : float
        Sum of the weights.
    n_samples : int
        Number of samples of positive weight.

    Raises
    ------
    InputError
        If the landmarks are not finite rows, or a solution for so many does not fit in the memory limit.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import IMQ
    >>> from isopleth.score import Tikhonov
    >>> from isopleth.score.spaces import CurlFree
    >>> from isopleth.score.statistics import NystromStatistics
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> def sums():
    ...     return NystromStatistics(CurlFree(IMQ(dim=2)), z[:20])
    >>> one = sums().accumulate(z[:300])
    >>> other = sums().accumulate(z[300:600]).accumulate(z[600:])
    >>> coefficients = one.merge(other).solve(Tikhonov(alpha=0.01))
    >>> bool(np.allclose(coefficients, sums().accumulate(z).solve(Tikhonov(alpha=0.01))))
    True
    """

    space: Space
    landmarks: np.ndarray
    base: GaussianBase | None = None
    backend: InitVar[Backend] = NUMPY

    def __post_init__(self, backend: Backend) -> None:
        landmarks = _checked("landmarks", self.landmarks, self.space.kernel.bound_dim)
        self.landmarks = _squarable(landmarks, landmarks.dtype)
        self._points = backend.array(self.landmarks)
        self._squares = self._within_memory()
        self._rhs = backend.array(np.zeros(self.landmarks.shape))
        self.total_weight = 0.0
        self.n_samples = 0

    def _within_memory(self) -> Array:
        """Return the empty matrices of sums; refuse more landmarks than the memory limit allows."""
        m, each = len(self.landmarks), MATRICES * bytes_of_squares(self.space, 1, self.landmarks.shape[1])
        limit = self.space.budget.memory
        most = int((limit / each) ** 0.5)
        what = f"{m} landmarks in {self.landmarks.shape[1]} columns"
        refuse_too_large(what, m**2 * each, limit, f"use at most {most}", most)
        return empty_squares(self.space, self._points)

    def accumulate(self, chunk: np.ndarray, weights: Any = None, tick: Callable[[int], None] = unheard) -> Self:
        """Add samples.

        Parameters
        ----------
        chunk : ndarray of shape (n, d)
            Samples in frame coordinates, any number of them.
        weights : ndarray of shape (n,), optional
            Their nonnegative weights, which count repetitions; None is 1 for each.
        tick : callable, optional
            Called with the number of samples that were added, after each chunk.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If samples or weights are invalid.
        """
        chunk = _checked("chunk", chunk, self.landmarks.shape[1])
        w = _checked_weights(weights, len(chunk))
        for part in slices(len(chunk), CHUNK):
            rows = part.start + np.flatnonzero(w[part])
            self._add(_squarable(chunk[rows], self.landmarks.dtype), w[rows])
            tick(len(w[part]))
        self.total_weight += float(w.sum())
        self.n_samples += int(np.count_nonzero(w))
        return self

    def _add(self, x: np.ndarray, w: np.ndarray) -> None:
        if not len(x):
            return
        z, backend = self._points, Backend.of(self._points)
        points, weights = backend.array(x), backend.array(w.astype(x.dtype))
        budget = self.space.budget
        left = budget.memory - bytes_of_squares(self.space, *self.landmarks.shape)
        add_squares(self.space, z, points, weights, self._squares, budget.within(left))
        self._rhs += self.space.zeta(z, points, weights)
        if self.base is not None:
            at_base = backend.array(self.base.value(x).astype(x.dtype, copy=False))
            self._rhs += self.space.operator(z, points).matvec(weights[:, None] * at_base)

    def merge(self, other: NystromStatistics) -> Self:
        """Add the sums of `other`.

        Parameters
        ----------
        other : NystromStatistics
            Sums with the same kernel, space, landmarks and base measure; not changed.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If one of these differs.
        """
        for what, same in (
            ("kernel or space", type(self.space) is type(other.space) and self.space.kernel == other.space.kernel),
            ("landmarks", np.array_equal(self.landmarks, other.landmarks)),
            ("base measure", _same_base(self.base, other.base)),
        ):
            if not same:
                raise InputError(f"statistics of another {what} cannot be merged; accumulate with one and the same.")
        self._squares += other._squares
        self._rhs += other._rhs
        self.total_weight += other.total_weight
        self.n_samples += other.n_samples
        return self

    def system(self) -> NystromSystem:
        """Return the system of equations, which serves several regularizers.

        Raises
        ------
        InputError
            If no samples have been accumulated.
        """
        return pooled_system([self])

    def solve(self, regularizer: Regularizer) -> Array:
        """Solve for the coefficients of the kernels at the landmarks.

        Parameters
        ----------
        regularizer : Regularizer
            Regularizer with its strength, for the operator with weights of sum 1.

        Returns
        -------
        ndarray of shape (m, d)
            One vector for each landmark, in frame coordinates, float64.

        Raises
        ------
        InputError
            If no samples have been accumulated, or for the full form of Tikhonov.
        """
        return self.space.unstack(self.system().solve(regularizer), self.landmarks.shape[1])


def pooled_system(parts: Sequence[NystromStatistics], gram: Array | None = None) -> NystromSystem:
    """Return the system of the samples of all parts, which have the same landmarks, of matrix `gram`, and stay unchanged."""
    first, total = parts[0], sum(part.total_weight for part in parts)
    if not total > 0.0:
        raise InputError("no samples of positive weight have been accumulated; there is nothing to solve.")
    squares, rhs = stacked(first._squares), first._rhs
    for part in parts[1:]:
        squares += stacked(part._squares)
        rhs = rhs + part._rhs
    squares /= total
    if gram is None:
        gram = first.space.gram(Backend.of(first._points).array(first.landmarks.astype(np.float64, copy=False)))
    return NystromSystem(gram, squares, first.space.stack(rhs / total), float(np.finfo(first.landmarks.dtype).eps))


def _checked(what: str, rows: np.ndarray, columns: int) -> np.ndarray:
    """Return rows as they are if they are finite numbers in so many columns."""
    if (
        not isinstance(rows, np.ndarray)
        or rows.ndim != 2
        or rows.shape[1] != columns
        or rows.dtype not in (np.float64, np.float32)
    ):
        found = f"shape {np.shape(rows)} and dtype {getattr(rows, 'dtype', type(rows).__name__)}"
        raise InputError(f"{what} has {found}; expected an array of {columns} columns, float64 or float32.")
    if not np.isfinite(rows).all():
        raise InputError(f"{what} has {np.sum(~np.isfinite(rows))} values that are not finite; drop their rows first.")
    return rows


def _squarable(rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert rows to `dtype` and clip them, so that the sum of their squares does not overflow."""
    farthest = float(np.finfo(dtype).max) ** 0.47
    return np.clip(rows, -farthest, farthest).astype(dtype, copy=False)


def _checked_weights(weights: Any, n: int) -> np.ndarray:
    """Return checked weights; all weights of a chunk may be 0, unlike those of a fit."""
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0.0).any():
        raise InputError(f"weights: expected {n} finite numbers >= 0, one a row of the chunk.")
    return w


def _same_base(one: GaussianBase | None, other: GaussianBase | None) -> bool:
    """Return whether two statistics count from the same Gaussian."""
    if one is None or other is None:
        return one is other
    return all(
        np.array_equal(a, b)
        for a, b in (
            (one.mean, other.mean),
            (one.axes, other.axes),
            (one.variances, other.variances),
        )
    )


def rank_tolerance(eps: float) -> float:
    """Return the share of the largest eigenvalue below which others count as 0.

    The error of L is the rounding error of A over this share, 4e-11 in float64 and 2e-5 in float32.
    """
    return eps ** (2.0 / 3.0)


@dataclass(frozen=True)
class NystromSystem:
    r"""System of equations of a Nystrom form, with vectors stacked as its space does.

    Parameters
    ----------
    gram : array of shape (n, n)
        Kernel matrix of the landmarks, :math:`K_{ZZ}`.
    squares : array of shape (n, n)
        The matrix A, the weighted mean of :math:`K(Z, x) K(x, Z)`.
    rhs : array of shape (n, k)
        The right-hand side h, the weighted mean of :math:`\operatorname{div}_x K(x, Z)`.
    eps : float
        Relative rounding error of A.
    """

    gram: Array
    squares: Array
    rhs: Array
    eps: float

    def solve(self, regularizer: Regularizer) -> Array:
        r"""Solve for stacked coefficients c, of shape (n, k).

        For Tikhonov they are the least-squares solution of least norm: eigenvalues of :math:`A + \alpha K_{ZZ}` count as 0 if,
        relative to the largest, they are below the rounding error of A or below that of the decomposition (n times that of
        float64). Other regularizers use the eigenvalues of :math:`K_{ZZ}` above ``rank_tolerance``.

        Raises
        ------
        InputError
            For the full form of Tikhonov, which has a term at every sample.
        """
        if not isinstance(regularizer, Tikhonov):
            return self._filtered(regularizer)
        if not regularizer.truncated:
            raise InputError(
                "the full form of Tikhonov regularisation has a term at every sample, not at landmarks alone; use truncated=True."
            )
        spectrum = Spectrum.of(self.squares + regularizer.alpha * self.gram)
        least = max(self.eps, self.gram.shape[0] * float(np.finfo(np.float64).eps))
        ones = namespace(spectrum.values).ones_like(spectrum.values)
        inverse = divided(ones, spectrum.values, spectrum.values > least * spectrum.largest)
        return -spectrum.apply(lambda _: inverse, self.rhs)

    @property
    def largest(self) -> float:
        """The largest eigenvalue of L."""
        return self._compressed[1].largest

    def _filtered(self, regularizer: Regularizer) -> Array:
        basis, spectrum = self._compressed
        sigma = namespace(spectrum.values).clip(spectrum.values, 0.0, None)
        g = regularizer.filter(sigma, spectrum.largest)
        return -(basis @ (spectrum.vectors @ (g[:, None] * (spectrum.vectors.T @ (basis.T @ self.rhs)))))

    @cached_property
    def _compressed(self) -> tuple[Array, Spectrum]:
        r"""Inverse square root of :math:`K_{ZZ}` on its numerical range, as columns, and the spectrum of L."""
        gram = Spectrum.of(self.gram)
        xp = namespace(gram.values)
        (kept,) = xp.nonzero(gram.values > rank_tolerance(self.eps) * gram.largest)
        root = xp.sqrt(xp.take(gram.values, kept, axis=0))
        basis = (xp.take(gram.vectors.T, kept, axis=0) / root[:, None]).T
        return basis, Spectrum.of(basis.T @ self.squares @ basis)
