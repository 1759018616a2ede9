"""What a Nystrom form has to know of the samples: sums, which add over chunks, files and machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from isopleth.backend import NUMPY, Array, Backend, namespace
from isopleth.errors import InputError, TooLargeError
from isopleth.rows import FOLDS, RunningFolds
from isopleth.score.field import GaussianBase
from isopleth.score.landmark_sums import CHUNK, add_squares, bytes_of_squares, empty_squares, stacked
from isopleth.score.selection import ALPHA_ERRORS, FLOOR, LARGEST_ALPHA
from isopleth.score.spaces import Space
from isopleth.solvers.direct import Spectrum, factorised, inner, plus_identity, singular
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


# Memory of one part and its scratch, in matrices of all landmarks against all.
LEAST = 1.5


@dataclass(eq=False)
class NystromFolds:
    """What a Nystrom form has to know of samples that are not kept, with what a choice of its ridge has to know.

    Each sample goes to one part, as ``isopleth.rows.RunningFolds`` says; so a ridge that is chosen depends on the order of
    the samples as it would on a seed, and nothing else does.

    Parameters
    ----------
    parts : list of NystromStatistics
        One, or those that are held out in turn to choose a ridge.
    folds : RunningFolds
        Which sample goes where.
    regularizer : Regularizer or None
        The one given; None to choose a ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import IMQ
    >>> from isopleth.score.statistics import NystromFolds
    >>> from isopleth.score.spaces import CurlFree
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> running = NystromFolds.empty(CurlFree(IMQ(dim=2)), z[:20])
    >>> for chunk in np.split(z, 10):
    ...     running = running.accumulate(chunk)
    >>> 1e-4 < running.path().regularizer.alpha < 1.0
    True
    """

    parts: list[NystromStatistics]
    folds: RunningFolds
    regularizer: Regularizer | None

    @classmethod
    def empty(
        cls,
        space: Space,
        landmarks: np.ndarray,
        base: GaussianBase | None = None,
        regularizer: Regularizer | None = None,
        *,
        merged: bool = False,
    ) -> Self:
        """Over no samples.

        Parameters
        ----------
        space, landmarks, base
            As for :class:`~isopleth.score.statistics.NystromStatistics`.
        regularizer : Regularizer, optional
            Where there is no ridge to choose.
        merged : bool
            Whether these will be merged with others, so that the memory limit is for two of them.

        Raises
        ------
        InputError
            If the sums do not fit in the memory limit of the space.
        """
        choosing = regularizer is None
        parts = parts_within_memory(space, landmarks, base) if choosing else [NystromStatistics(space, landmarks, base)]
        if merged:
            each = bytes_of_squares(space, *landmarks.shape)
            left = space.memory_limit - (2 * len(parts) - 1) * each
            for part in parts:
                part.space = replace(part.space, memory_limit=max(left, LEAST * each))
        return cls(parts, RunningFolds(len(parts), seed=0), regularizer)

    def accumulate(self, chunk: np.ndarray, weights: Any = None) -> Self:
        """Add samples in frame coordinates, as :meth:`~isopleth.score.statistics.NystromStatistics.accumulate` does."""
        w = np.ones(len(chunk)) if weights is None else weights
        counted = np.flatnonzero(w > 0)
        chunk, w = chunk[counted], w[counted]
        fold = self.folds.deal(chunk)
        for place, part in enumerate(self.parts):
            here = fold == place
            part.accumulate(chunk[here], w[here])
        return self

    def merge(self, other: NystromFolds) -> Self:
        """Add the samples that `other` has seen; left as it is.

        Raises
        ------
        InputError
            If it has another number of parts, or is of other landmarks, another kernel, space or base measure.
        """
        if len(self.parts) != len(other.parts):
            raise InputError(
                f"statistics in {len(other.parts)} parts cannot be merged with those in {len(self.parts)}; accumulate with one "
                "regularizer and one memory_limit."
            )
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)
        self.folds.merge(other.folds)
        return self

    @property
    def landmarks(self) -> np.ndarray:
        """Those of all parts, in frame coordinates."""
        return self.parts[0].landmarks

    def path(self) -> RidgePath | None:
        """The ridges compared, or None where there are too few samples to choose by, or nothing to choose."""
        return path_of(self.parts)


def path_of(parts: Sequence[NystromStatistics]) -> RidgePath | None:
    """Ridges compared by holding out each part, if there are several and samples enough in all of them."""
    enough = sum(part.n_samples for part in parts) >= 2 * FOLDS and all(part.total_weight > 0.0 for part in parts)
    return choose_ridge(parts) if len(parts) > 1 and enough else None


# Half as many as with a kernel at every row: each is a factorisation a part, and losses are flat within a factor of
# two.
STEPS_A_DECADE = 2


# The most landmarks by default, and the most unknowns: beyond that, the factorisations that choose a ridge take many seconds.
MOST_LANDMARKS, MOST_UNKNOWNS = 300, 1500


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath:
    """Held-out Hyvarinen losses of a Nystrom form by its ridge, smaller being better, and the choice made by them.

    Parameters
    ----------
    alphas : ndarray of shape (r,)
        Ridges, the strongest first.
    losses : ndarray of shape (r,)
        Mean loss over the rows of all parts, in units of the length scales, less that of the base alone.
    errors : ndarray of shape (r,)
        Standard error of its difference to the smallest one, from the differences between parts.
    best_index : int
        Place of the ridge chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import NystromKEF
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> path = NystromKEF(landmarks=20, random_state=0).fit(X).search_path_
    >>> path.losses[path.best_index] <= path.losses.min() + path.errors[path.best_index]
    np.True_
    """

    alphas: np.ndarray
    losses: np.ndarray
    errors: np.ndarray
    best_index: int

    @property
    def regularizer(self) -> Tikhonov:
        """The regulariser chosen."""
        return Tikhonov(float(self.alphas[self.best_index]))

    def __repr__(self) -> str:
        """A table of ridges."""
        lines = [f"RidgePath: {self.regularizer!r}", f"{'alpha':>12} {'loss':>12} {'std. error':>12}"]
        for i, row in enumerate(zip(self.alphas, self.losses, self.errors, strict=True)):
            lines += ["{:>12.4g} {:>12.5g} {:>12.2g}".format(*row) + ("  <- chosen" if i == self.best_index else "")]
        return "\n".join(lines)


def choose_ridge(parts: Sequence[NystromStatistics]) -> RidgePath:
    """The largest ridge whose held-out loss is within ALPHA_ERRORS standard errors of the smallest one.

    Ridges go from LARGEST_ALPHA down to FLOOR over the number of samples.

    Parameters
    ----------
    parts : sequence of NystromStatistics
        Sums of two parts of the samples or more, over the same landmarks. Each part is held out once.

    Returns
    -------
    RidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import IMQ
    >>> from isopleth.score.statistics import choose_ridge
    >>> from isopleth.score.spaces import CurlFree
    >>> from isopleth.score.statistics import NystromStatistics
    >>> z = np.random.default_rng(0).normal(size=(1000, 2))
    >>> parts = [NystromStatistics(CurlFree(IMQ(dim=2)), z[:20]).accumulate(part) for part in np.split(z, 4)]
    >>> 1e-4 < choose_ridge(parts).regularizer.alpha < 1.0
    True
    """
    weights = np.array([part.total_weight for part in parts])
    share = weights / weights.sum()
    decades = math.log10(LARGEST_ALPHA * sum(part.n_samples for part in parts) / FLOOR)
    alphas = LARGEST_ALPHA * 10.0 ** (-np.arange(int(STEPS_A_DECADE * decades) + 1) / STEPS_A_DECADE)
    losses = _losses(parts, share.tolist(), alphas.tolist())
    means = share @ losses
    best = int(np.argmin(means))
    with np.errstate(invalid="ignore"):  # of infinite losses there is none
        apart = losses - losses[:, [best]]
        errors = np.sqrt(share**2 @ (apart - share @ apart) ** 2 * len(parts) / (len(parts) - 1))
        near = means - means[best] <= ALPHA_ERRORS * errors
    near[best] = True
    return RidgePath(alphas, means, errors, int(np.argmax(near)))


def default_landmarks(space: Space, columns: int) -> int:
    """Number of landmarks whose ridge can be chosen in some seconds, by sums of FOLDS parts within the memory limit.

    Sums of parts on two machines are merged, so that there has to be room for them twice.

    Examples
    --------
    >>> from isopleth import IMQ
    >>> from isopleth.score.statistics import default_landmarks
    >>> from isopleth.score.spaces import CurlFree, Diagonal
    >>> [default_landmarks(CurlFree(IMQ(dim=d)), d) for d in (2, 12, 50)]
    [300, 125, 30]
    >>> default_landmarks(Diagonal(IMQ(dim=50)), 50)
    300
    """
    unknowns = math.isqrt(bytes_of_squares(space, 1, columns) // 8)  # of one landmark
    each = (MATRICES + 2 * FOLDS) * bytes_of_squares(space, 1, columns)
    within = int((space.memory_limit / each) ** 0.5)
    return max(1, min(MOST_LANDMARKS, MOST_UNKNOWNS // unknowns, within))


def parts_within_memory(
    space: Space, landmarks: np.ndarray, base: GaussianBase | None = None, backend: Backend = NUMPY
) -> list[NystromStatistics]:
    """Empty statistics for FOLDS parts, or for as many as the memory limit of the space has room for.

    Raises
    ------
    InputError
        If it has room for less than two.
    """
    each = bytes_of_squares(space, *landmarks.shape)
    folds = min(FOLDS, int(space.memory_limit // each) - MATRICES + 1)
    if folds < 2:
        most = int((space.memory_limit / ((MATRICES + 1) * bytes_of_squares(space, 1, landmarks.shape[1]))) ** 0.5)
        raise TooLargeError(
            f"choosing a ridge for {len(landmarks)} landmarks in {landmarks.shape[1]} columns takes "
            f"{(MATRICES + 1) * each / 2**20:.0f} MiB, and memory_limit is {space.memory_limit / 2**20:.0f} MiB; give a "
            f"regularizer, use {most} landmarks at most, or raise memory_limit.",
            (MATRICES + 1) * each,
            space.memory_limit,
            most,
        )
    beside = replace(space, memory_limit=space.memory_limit - (folds - 1) * each)
    return [NystromStatistics(beside, landmarks, base, backend) for _ in range(folds)]


def _losses(parts: Sequence[NystromStatistics], share: list[float], alphas: list[float]) -> np.ndarray:
    """Loss of each part by fits to the others, of shape (parts, ridges); inf where rounding leaves no solution."""
    whole = pooled_system(parts)
    out = np.full((len(parts), len(alphas)), np.inf)
    for f, (w, part) in enumerate(zip(share, parts, strict=True)):
        held = pooled_system([part], whole.gram)
        squares = whole.squares - w * held.squares
        squares /= 1.0 - w
        others = NystromSystem(whole.gram, squares, (whole.rhs - w * held.rhs) / (1.0 - w), held.eps)
        out[f] = [_loss(others, alpha, held) for alpha in alphas]
    return np.where(np.isfinite(out), out, np.inf)


def _loss(others: NystromSystem, alpha: float, held: NystromSystem) -> float:
    """Of a part by the fit to the others, without the decomposition that the final fit takes."""
    matrix = others.squares + alpha * others.gram
    # What the fit leaves out as rounding is damped here.
    least = max(others.eps, matrix.shape[0] * float(np.finfo(np.float64).eps))
    entries = namespace(matrix).reshape(matrix, (-1,))
    ridge = least * math.sqrt(float(entries @ entries))
    try:
        c = -factorised(plus_identity(matrix, ridge, overwrite=True))(others.rhs)
    except singular(matrix):
        return math.inf
    return inner(held.rhs, c) + 0.5 * inner(c, held.squares @ c)


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
