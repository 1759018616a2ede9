"""What a Nystrom form has to know of the samples: sums, which add over chunks, files and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from isopleth.backend import NUMPY, Array, Backend, namespace
from isopleth.errors import InputError, TooLargeError
from isopleth.score.field import GaussianBase
from isopleth.score.landmark_sums import CHUNK, add_squares, bytes_of_squares, empty_squares, stacked
from isopleth.score.spaces import Space
from isopleth.solvers.direct import Spectrum
from isopleth.solvers.regularizers import Regularizer, Tikhonov, divided

# Matrices of all landmarks against all that a solution holds at once.
MATRICES = 6


@dataclass(eq=False, repr=False)
class NystromStatistics:
    r"""The sums over samples x with weights w that the scores at landmarks Z are solved from.

    They are :math:`\sum w\, K(Z, x) K(x, Z)`, :math:`\sum w \operatorname{div}_x K(x, Z)` and :math:`\sum w`: nothing of the size
    of the data is kept. Sums of parts of the data, taken in any order, in other processes or on other machines, merge to
    those of all.

    Parameters
    ----------
    space : Space
        Where the score is sought. Its memory limit bounds these sums with all scratch, its threads share the work.
    landmarks : ndarray of shape (m, d)
        Landmarks in frame coordinates, float64 or float32; samples are taken in this precision. Sums of chunks are kept in
        float64.
    base : GaussianBase, optional
        Base measure, whose score is not fitted again.
    backend : Backend
        Where the sums are taken and kept; samples come from the host.

    Attributes
    ----------
    total_weight : float
        Sum of the weights.
    n_samples : int
        Samples of positive weight.

    Raises
    ------
    InputError
        If the landmarks are no finite rows, or so many that a solution does not fit in the memory limit.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import IMQ, Tikhonov
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
        m, each = len(self.landmarks), MATRICES * bytes_of_squares(self.space, 1, self.landmarks.shape[1])
        if m**2 * each > self.space.memory_limit:
            most = int((self.space.memory_limit / each) ** 0.5)
            raise TooLargeError(
                f"{m} landmarks in {self.landmarks.shape[1]} columns take {m**2 * each / 2**20:.0f} MiB to solve for, and "
                f"memory_limit is {self.space.memory_limit / 2**20:.0f} MiB; use at most {most}, or raise memory_limit.",
                m**2 * each,
                self.space.memory_limit,
                most,
            )
        return empty_squares(self.space, self._points)

    def accumulate(self, chunk: np.ndarray, weights: Any = None) -> Self:
        """Add samples.

        Parameters
        ----------
        chunk : ndarray of shape (n, d)
            Samples in frame coordinates; as many as one likes.
        weights : ndarray of shape (n,), optional
            Their weights, not negative; ones when left out. A weight counts repetitions.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If samples or weights are not of that kind.
        """
        chunk = _checked("chunk", chunk, self.landmarks.shape[1])
        w = _checked_weights(weights, len(chunk))
        for start in range(0, len(chunk), CHUNK):
            rows = start + np.flatnonzero(w[start : start + CHUNK])
            self._add(_squarable(chunk[rows], self.landmarks.dtype), w[rows])
        self.total_weight += float(w.sum())
        self.n_samples += int(np.count_nonzero(w))
        return self

    def _add(self, x: np.ndarray, w: np.ndarray) -> None:
        if not len(x):
            return
        z, backend = self._points, Backend.of(self._points)
        points, weights = backend.array(x), backend.array(w.astype(x.dtype))
        left = self.space.memory_limit - bytes_of_squares(self.space, *self.landmarks.shape)
        add_squares(self.space, z, points, weights, self._squares, left)
        self._rhs += self.space.zeta(z, points, weights)
        if self.base is not None:
            at_base = backend.array(self.base.value(x).astype(x.dtype, copy=False))
            self._rhs += self.space.operator(z, points).matvec(weights[:, None] * at_base)

    def merge(self, other: NystromStatistics) -> Self:
        """Add the samples that `other` has seen.

        Parameters
        ----------
        other : NystromStatistics
            Of the same kernel, space, landmarks and base measure; left as it is.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If it is of others.
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
        """The matrices of the Nystrom form, for a path of regularisers.

        Raises
        ------
        InputError
            If no samples have been accumulated.
        """
        return pooled_system([self])

    def solve(self, regularizer: Regularizer) -> Array:
        """Coefficients of the kernels at the landmarks.

        Parameters
        ----------
        regularizer : Regularizer
            With its strength, for the operator of weights of sum 1.

        Returns
        -------
        ndarray of shape (m, d)
            A vector a landmark, in frame coordinates, float64.

        Raises
        ------
        InputError
            If no samples have been accumulated, or for the full form of Tikhonov.
        """
        return self.space.unstack(self.system().solve(regularizer), self.landmarks.shape[1])


def pooled_system(parts: Sequence[NystromStatistics], gram: Array | None = None) -> NystromSystem:
    """The matrices of the samples of all parts, over the same landmarks; the parts stay as they are.

    `gram` is that of the landmarks, where it is known.

    Raises
    ------
    InputError
        If no samples have been accumulated.
    """
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
    """In precision `dtype`, none so far that the sum of its squares overflows."""
    farthest = float(np.finfo(dtype).max) ** 0.47
    return np.clip(rows, -farthest, farthest).astype(dtype, copy=False)


def _checked_weights(weights: Any, n: int) -> np.ndarray:
    """Weights of some samples of many: all of them may be 0."""
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0.0).any():
        raise InputError(f"weights: expected {n} finite numbers >= 0, one a row of the chunk.")
    return w


def _same_base(one: GaussianBase | None, other: GaussianBase | None) -> bool:
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
    r"""Eigenvalues of :math:`K_{ZZ}` below this share of the largest count as 0: 4e-11 in float64, 2e-5 in float32.

    What rounding of A does to L is the rounding over this share; what is lost are combinations of landmarks whose norm is
    nothing but rounding itself.
    """
    return eps ** (2.0 / 3.0)


@dataclass(frozen=True)
class NystromSystem:
    """The matrices of a Nystrom form, stacked as its space does.

    Parameters
    ----------
    gram : array of shape (n, n)
        :math:`K_{ZZ}`.
    squares : array of shape (n, n)
        A.
    rhs : array of shape (n, k)
        h.
    eps : float
        Relative rounding error of A.
    """

    gram: Array
    squares: Array
    rhs: Array
    eps: float

    def solve(self, regularizer: Regularizer) -> Array:
        r"""Stacked coefficients c, of shape (n, k).

        Tikhonov's are the least-squares solution of least norm: eigenvalues of :math:`A + \alpha K_{ZZ}` count as 0 if,
        relative to the largest, they are below the rounding error of A, or below that of the decomposition, n times that of
        float64. Those of other regularisers rest on eigenvalues of :math:`K_{ZZ}` above ``rank_tolerance``.

        Raises
        ------
        InputError
            For the full form of Tikhonov, which has a term at every sample.
        """
        _refuse_full_form(regularizer)
        if not isinstance(regularizer, Tikhonov):
            return self._filtered(regularizer)
        spectrum = Spectrum.of(self.squares + regularizer.alpha * self.gram)
        least = max(self.eps, self.gram.shape[0] * float(np.finfo(np.float64).eps))
        ones = namespace(spectrum.values).ones_like(spectrum.values)
        inverse = divided(ones, spectrum.values, spectrum.values > least * spectrum.largest)
        return -spectrum.apply(lambda _: inverse, self.rhs)

    def solve_path(self, regularizers: Sequence[Regularizer]) -> list[Array]:
        """The same for several regularisers by one decomposition of L; Tikhonov's then rest on its rank tolerance too."""
        for regularizer in regularizers:
            _refuse_full_form(regularizer)
        return [self._filtered(regularizer) for regularizer in regularizers]

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
        r"""An inverse square root of :math:`K_{ZZ}` on what counts of it, as columns, and the spectrum of L."""
        gram = Spectrum.of(self.gram)
        xp = namespace(gram.values)
        (counts,) = xp.nonzero(gram.values > rank_tolerance(self.eps) * gram.largest)
        root = xp.sqrt(xp.take(gram.values, counts, axis=0))
        basis = (xp.take(gram.vectors.T, counts, axis=0) / root[:, None]).T
        return basis, Spectrum.of(basis.T @ self.squares @ basis)


def _refuse_full_form(regularizer: Regularizer) -> None:
    if isinstance(regularizer, Tikhonov) and not regularizer.truncated:
        raise InputError(
            "the full form of Tikhonov regularisation has a term at every sample, not at landmarks alone; use truncated=True."
        )
