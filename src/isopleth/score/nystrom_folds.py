"""Sums for a Nystrom form whose ridge is yet to be chosen: each sample goes to one of several parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from isopleth.errors import InputError
from isopleth.folds import FOLDS, RunningFolds
from isopleth.score.base_measure import GaussianBase
from isopleth.score.nystrom_selection import RidgePath, choose_ridge, parts_within_memory
from isopleth.score.spaces import Space
from isopleth.score.squares import bytes_of_squares
from isopleth.score.statistics import NystromStatistics
from isopleth.solvers.regularizers import Regularizer

LEAST = 1.5
"""Memory of one part and its scratch, in matrices of all landmarks against all."""


@dataclass(eq=False)
class NystromFolds:
    """What a Nystrom form has to know of samples that are not kept, with what a choice of its ridge has to know.

    Each sample goes to one part, as ``isopleth.folds.RunningFolds`` says; so a ridge that is chosen depends on the order of
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
    >>> from isopleth.score.nystrom_folds import NystromFolds
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
