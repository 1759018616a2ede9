"""Spectral cut-off: the leading eigenvectors and nothing else."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral, Real

from isopleth._namespace import Array, namespace, to_numpy
from isopleth.errors import InputError
from isopleth.solvers.regularizers.base import Regularizer, above_rank_tolerance, check_positive, divided


@dataclass(frozen=True)
class SpectralCutoff(Regularizer):
    r"""Cut-off, :math:`g(\sigma) = 1/\sigma` for the leading eigenvalues and 0 for the others.

    Which ones lead is said in one of three ways. A result jumps where an eigenvalue crosses the line; eigenvalues within 1e-12 of
    0, relative to the largest, are left out in any case. Every qualification.

    Parameters
    ----------
    threshold : float, optional
        Those of at least this size, of K/M.
    count : int or float, optional
        So many of the largest; a number between 0 and 1 is a share of all, rounded down, but at least one.
    energy : float, optional
        As few of the largest as have this share of the sum of all.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SpectralCutoff
    >>> SpectralCutoff(energy=0.9).filter(np.array([0.05, 0.05, 0.4, 0.5]), bound=1.0)
    array([0. , 0. , 2.5, 2. ])
    """

    threshold: float | None = None
    count: int | float | None = None
    energy: float | None = None

    def __post_init__(self) -> None:
        given = [v for v in (self.threshold, self.count, self.energy) if v is not None]
        if len(given) != 1:
            raise InputError("SpectralCutoff takes one of threshold, count and energy; give exactly one.")
        if self.threshold is not None:
            check_positive("threshold", self.threshold)
        if self.count is not None and not _is_count(self.count):
            raise InputError(
                f"count = {self.count!r}: expected a whole number, at least 1, or a share between 0 and 1."
            )
        if self.energy is not None and not _is_share(self.energy):
            raise InputError(f"energy = {self.energy!r}: expected a share of the sum of eigenvalues, between 0 and 1.")

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    @property
    def needs_all_eigenvalues(self) -> bool:
        """Whether the largest eigenvalues alone do not tell which ones are meant."""
        return self.threshold is None

    def kept(self, sigma: Array) -> Array:
        """Mask of the eigenvalues that lead; `sigma` is ascending."""
        xp = namespace(sigma)
        counts = above_rank_tolerance(sigma)
        if self.threshold is not None:
            return xp.logical_and(counts, sigma >= self.threshold)
        n = sigma.shape[0]
        if self.count is not None:
            # A hair of room: 0.29 of 100 is 29, and their product is not.
            share = max(1, int(float(self.count) * n * (1.0 + 1e-14)))
            many = int(self.count) if isinstance(self.count, Integral) else share
        else:
            lost = (max(float(v), 0.0) for v in to_numpy(sigma))
            below = list(accumulate(lost))  # by leaving out the smallest
            # A hair of room, so that rounding in the sum does not ask for one more.
            many = n - bisect_right(below, (1.0 - float(self.energy or 0.0) + 1e-12) * below[-1])
        return xp.logical_and(counts, xp.arange(n, device=sigma.device) >= n - many)

    def filter(self, sigma: Array, bound: float) -> Array:
        r""":math:`1/\sigma` of those kept."""
        return divided(namespace(sigma).ones_like(sigma), sigma, self.kept(sigma))

    def at(self, alpha: float) -> SpectralCutoff:
        """The cut at the threshold `alpha`."""
        return SpectralCutoff(threshold=alpha)


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0.0 < float(value) < 1.0


def _is_count(value: object) -> bool:
    return _is_share(value) or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1)
