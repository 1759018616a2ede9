"""Choice of the ridge of a Nystrom form from sums over parts of the samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from isopleth.core.arrays import NUMPY, Backend, namespace
from isopleth.core.errors import InputError, refuse_too_large
from isopleth.core.progress import Progress
from isopleth.core.rows import FOLDS, RunningFolds
from isopleth.score.field import GaussianBase
from isopleth.score.landmark_sums import bytes_of_squares
from isopleth.score.selection import ALPHA_ERRORS, FLOOR, LARGEST_ALPHA
from isopleth.score.spaces import Space
from isopleth.score.statistics import MATRICES, NystromStatistics, NystromSystem, pooled_system
from isopleth.solvers.direct import factorised, inner, plus_identity, singular
from isopleth.solvers.regularizers import Regularizer, Tikhonov

# Least memory of the sums of one part and their scratch, in matrices over all pairs of landmarks.
LEAST = 1.5


@dataclass(eq=False)
class NystromFolds:
    """Running sums of a Nystrom form over the folds of a stream of samples, from which a ridge can be chosen.

    ``isopleth.core.rows.RunningFolds`` assigns each sample to a fold. So a chosen ridge depends on the order of the samples as it
    would on a seed; nothing else depends on the order.

    Parameters
    ----------
    parts : list of NystromStatistics
        Sums over all samples, or sums over each fold to choose a ridge.
    folds : RunningFolds
        Assigns samples to folds.
    regularizer : Regularizer or None
        The regularizer given; None to choose a ridge.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import IMQ
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
        """Return sums over no samples.

        Parameters
        ----------
        space, landmarks, base
            As for :class:`~isopleth.score.statistics.NystromStatistics`.
        regularizer : Regularizer, optional
            The regularizer, if there is no ridge to choose.
        merged : bool
            Whether these sums will be merged with others, so that the memory limit holds for two of them together.

        Raises
        ------
        InputError
            If the sums do not fit in the memory limit of the space.
        """
        choosing = regularizer is None
        parts = parts_within_memory(space, landmarks, base) if choosing else [NystromStatistics(space, landmarks, base)]
        if merged:
            each = bytes_of_squares(space, *landmarks.shape)
            left = space.budget.memory - (2 * len(parts) - 1) * each
            for part in parts:
                part.space = replace(part.space, budget=space.budget.within(max(left, LEAST * each)))
        return cls(parts, RunningFolds(len(parts), seed=0), regularizer)

    def accumulate(self, chunk: np.ndarray, weights: Any = None) -> Self:
        """Add samples in frame coordinates, as :meth:`~isopleth.score.statistics.NystromStatistics.accumulate` does."""
        w = np.ones(len(chunk)) if weights is None else weights
        counted = np.flatnonzero(w > 0)
        fold = self.folds.deal(chunk[counted])
        chunk, w = chunk[counted], w[counted]
        for place, part in enumerate(self.parts):
            here = fold == place
            part.accumulate(chunk[here], w[here])
        return self

    def merge(self, other: NystromFolds) -> Self:
        """Add the sums of `other`, which is not changed.

        Raises
        ------
        InputError
            If the number of parts, the landmarks, the kernel, the space or the base measure differ.
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
        """The landmarks of all parts, in frame coordinates."""
        return self.parts[0].landmarks

    def path(self) -> RidgePath | None:
        """Compare ridges; return None if there are too few samples, or nothing to choose."""
        return path_of(self.parts)


def path_of(parts: Sequence[NystromStatistics]) -> RidgePath | None:
    """Compare ridges by holding out each part; return None for a single part or too few samples."""
    enough = sum(part.n_samples for part in parts) >= 2 * FOLDS and all(part.total_weight > 0.0 for part in parts)
    return choose_ridge(parts) if len(parts) > 1 and enough else None


# Half as many ridges as KernelScore compares: each costs a factorisation for each part, and losses are flat within a factor
# of two.
STEPS_A_DECADE = 2

# Most landmarks by default, and most unknowns: beyond that, the factorisations that choose a ridge take many seconds.
MOST_LANDMARKS, MOST_UNKNOWNS = 300, 1500


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath:
    """Held-out Hyvarinen losses of a Nystrom form by its ridge, lower being better, and the choice based on them.

    Parameters
    ----------
    alphas : ndarray of shape (r,)
        Ridges, the strongest first.
    losses : ndarray of shape (r,)
        Mean loss over the rows of all parts, in units of the length scales, minus that of the base alone.
    errors : ndarray of shape (r,)
        Standard error of its difference to the smallest one, from the differences between parts.
    best_index : int
        Index of the chosen ridge.

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
        """The chosen regularizer."""
        return Tikhonov(float(self.alphas[self.best_index]))

    def __repr__(self) -> str:
        """Return a table of ridges and losses."""
        lines = [f"RidgePath: {self.regularizer!r}", f"{'alpha':>12} {'loss':>12} {'std. error':>12}"]
        for i, row in enumerate(zip(self.alphas, self.losses, self.errors, strict=True)):
            lines += ["{:>12.4g} {:>12.5g} {:>12.2g}".format(*row) + ("  <- chosen" if i == self.best_index else "")]
        return "\n".join(lines)


def choose_ridge(parts: Sequence[NystromStatistics]) -> RidgePath:
    """Choose the largest ridge whose held-out loss is within ALPHA_ERRORS standard errors of the smallest one.

    Ridges go from LARGEST_ALPHA down to FLOOR over the number of samples.

    Parameters
    ----------
    parts : sequence of NystromStatistics
        Sums over two or more parts of the samples, with the same landmarks. Each part is held out once.
    verbose : bool or int, default=False
        Whether to show a progress bar.

    Returns
    -------
    RidgePath

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.kernels import IMQ
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
    with Progress("search of a ridge", len(parts) * len(alphas), parts[0].space.budget.verbose) as tick:
        losses = _losses(parts, share.tolist(), alphas.tolist(), tick)
    means = share @ losses
    best = int(np.argmin(means))
    with np.errstate(invalid="ignore"):  # infinite losses have none
        difference = losses - losses[:, [best]]
        errors = np.sqrt(share**2 @ (difference - share @ difference) ** 2 * len(parts) / (len(parts) - 1))
        near = means - means[best] <= ALPHA_ERRORS * errors
    near[best] = True
    return RidgePath(alphas, means, errors, int(np.argmax(near)))


def default_landmarks(space: Space, columns: int) -> int:
    """Return a number of landmarks for which choosing a ridge takes seconds and the sums of two machines fit in memory."""
    unknowns = math.isqrt(bytes_of_squares(space, 1, columns) // 8)  # of one landmark
    each = (MATRICES + 2 * FOLDS) * bytes_of_squares(space, 1, columns)
    within = int((space.budget.memory / each) ** 0.5)
    return max(1, min(MOST_LANDMARKS, MOST_UNKNOWNS // unknowns, within))


def parts_within_memory(
    space: Space, landmarks: np.ndarray, base: GaussianBase | None = None, backend: Backend = NUMPY
) -> list[NystromStatistics]:
    """Return empty sums for FOLDS parts, or for fewer if the memory limit of the space requires it."""
    each = bytes_of_squares(space, *landmarks.shape)
    folds = min(FOLDS, int(space.budget.memory // each) - MATRICES + 1)
    most = int((space.budget.memory / ((MATRICES + 1) * bytes_of_squares(space, 1, landmarks.shape[1]))) ** 0.5)
    what = f"folds of {len(landmarks)} landmarks in {landmarks.shape[1]} columns, to choose a ridge,"
    advice = f"give a regularizer, use {most} landmarks at most"
    refuse_too_large(what, (MATRICES + 1) * each, space.budget.memory, advice, most)
    beside = replace(space, budget=space.budget.within(space.budget.memory - (folds - 1) * each))
    return [NystromStatistics(beside, landmarks, base, backend) for _ in range(folds)]


def _losses(
    parts: Sequence[NystromStatistics], share: list[float], alphas: list[float], tick: Callable[[], None]
) -> np.ndarray:
    """Return the loss of each part by fits to the others, of shape (parts, ridges); infinite if rounding prevents a solution."""
    whole = pooled_system(parts)
    out = np.full((len(parts), len(alphas)), np.inf)
    for f, (w, part) in enumerate(zip(share, parts, strict=True)):
        held = pooled_system([part], whole.gram)
        squares = whole.squares - w * held.squares
        squares /= 1.0 - w
        others = NystromSystem(whole.gram, squares, (whole.rhs - w * held.rhs) / (1.0 - w), held.eps)
        for i, alpha in enumerate(alphas):
            out[f, i] = _loss(others, alpha, held)
            tick()
    return np.where(np.isfinite(out), out, np.inf)


def _loss(others: NystromSystem, alpha: float, held: NystromSystem) -> float:
    """Return the loss of a part by the fit to the others, by a factorisation that is cheaper than that of the final fit."""
    matrix = others.squares + alpha * others.gram
    # Directions that the final fit leaves out as rounding errors are damped here.
    least = max(others.eps, matrix.shape[0] * float(np.finfo(np.float64).eps))
    entries = namespace(matrix).reshape(matrix, (-1,))
    ridge = least * math.sqrt(float(entries @ entries))
    try:
        c = -factorised(plus_identity(matrix, ridge, overwrite=True))(others.rhs)
    except singular(matrix):
        return math.inf
    return inner(held.rhs, c) + 0.5 * inner(c, held.squares @ c)
