"""Choice of the ridge of a Nystrom form from sums over parts of the samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from isopleth.backend import NUMPY, Backend, namespace
from isopleth.errors import InputError, TooLargeError
from isopleth.rows import FOLDS, RunningFolds
from isopleth.score.field import GaussianBase
from isopleth.score.landmark_sums import bytes_of_squares
from isopleth.score.selection import ALPHA_ERRORS, FLOOR, LARGEST_ALPHA
from isopleth.score.spaces import Space
from isopleth.score.statistics import MATRICES, NystromStatistics, NystromSystem, pooled_system
from isopleth.solvers.direct import factorised, inner, plus_identity, singular
from isopleth.solvers.regularizers import Regularizer, Tikhonov

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
    >>> from isopleth.score.ridge_selection import NystromFolds
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
    >>> from isopleth.score.ridge_selection import choose_ridge
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
    >>> from isopleth.score.ridge_selection import default_landmarks
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
