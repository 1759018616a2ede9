"""Permutations of the labels of two samples, and p-values from them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

# Smallest number of groups; from twice as many rows in both samples, groups are permuted instead of rows.
_GROUPS = 4000
# Smallest number of groups in the smaller sample: with fewer there would be too few different permutations.
_LEAST_GROUPS = 200
_MOST_AGAINST_ONE = 100
_ENOUGH = 20_000
# If a sample is this many times smaller than both together, sums are over its own rows only.
_SPARSE = 16
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Units:
    """Units of permutation: single rows, or groups of `group` rows of one sample each.

    Parameters
    ----------
    rows : array of shape (sum(sizes) group,)
        Positions of the rows in the samples, X above Y; group by group, those of the first sample first.
    sizes : tuple of two int
        Number of units in each sample.
    group : int
        Number of rows in a unit.
    """

    rows: np.ndarray
    sizes: tuple[int, int]
    group: int

    @classmethod
    def of(cls, n: int, m: int, rng: np.random.Generator) -> Self:
        """Form units of samples of `n` and `m` rows; rows that fill no group, or are too many to matter, are left out at random.

        Any fixed set of permutations of exchangeable units gives an exact test. Where each unit is a group of rows of the
        same sample, drawn without regard to values, units are exchangeable if rows are.
        """
        smaller = min(n, m)
        # The variance goes with 1/n + 1/m: beyond a hundred to one, more rows do not change it by one percent.
        most = max(_ENOUGH, _MOST_AGAINST_ONE * smaller)
        kept = min(n, most), min(m, most)
        group = max(1, min(sum(kept) // _GROUPS, smaller // _LEAST_GROUPS))
        sizes = (kept[0] // group, kept[1] // group)
        if (sizes[0] * group, sizes[1] * group) == (n, m) and group == 1:
            return cls(np.arange(n + m), sizes, 1)
        parts = [rng.permutation(n)[: sizes[0] * group], n + rng.permutation(m)[: sizes[1] * group]]
        return cls(np.concatenate(parts), sizes, group)


def is_sparse(sizes: tuple[int, int]) -> bool:
    """Tell whether label vectors of samples of these sizes are mostly zeros."""
    return sum(sizes) > _SPARSE * min(sizes)


@dataclass(frozen=True, eq=False)
class Labels:
    """Label vectors, observed and permuted: how many units of each distinct kind are in the smaller sample.

    The statistics use the permutations through :meth:`contrasts` and :meth:`own_products` only. Another scheme, such as
    permutation of blocks of unequal size, needs only other `members` and `weights`.

    Parameters
    ----------
    members : array or sparse array of shape (1 + B, m)
        Counts; the first line is the observed one.
    counts : array of shape (m,)
        Number of equal units in both samples together.
    sizes : tuple of two int
        Units in the smaller and in the larger sample.
    weights : array of shape (m,), optional
        Number of rows in each unit; None if all units have the same number.
    """

    members: Any
    counts: np.ndarray
    sizes: tuple[int, int]
    weights: np.ndarray | None = None

    @classmethod
    def draw(cls, place: np.ndarray, sizes: tuple[int, int], permutations: int, rng: np.random.Generator) -> Self:
        """Draw permutations of units whose distinct ones are numbered by `place`, those of the first sample first.

        The draws depend only on `place` and the number of units in the smaller sample, so that neither the order of the rows
        nor the order of the samples matters.
        """
        total, smaller = sum(sizes), min(sizes)
        sorted_place = np.sort(place)
        own = place[: sizes[0]] if sizes[0] <= sizes[1] else place[sizes[0] :]
        drawn = (rng.choice(total, smaller, replace=False, shuffle=False) for _ in range(permutations))
        lines = chain([own], (sorted_place[chosen] for chosen in drawn))
        counts = np.bincount(place).astype(np.float64)
        shape = permutations + 1, len(counts)
        if is_sparse(sizes):
            columns = np.concatenate(list(lines))
            members: Any = csr_array(
                (np.ones(len(columns)), columns, smaller * np.arange(permutations + 2)), shape=shape
            )
        else:
            members = np.empty(shape)
            for member, line in zip(members, lines, strict=True):
                member[:] = np.bincount(line, minlength=len(counts))
        return cls(members, counts, (smaller, total - smaller))

    @staticmethod
    def floats(sizes: tuple[int, int]) -> int:
        """Return how many numbers of eight bytes a label vector takes, scratch included."""
        return 5 * min(sizes) if is_sparse(sizes) else sum(sizes)

    @property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the smaller sample and of the other one under each label vector, of shape (1 + B, 1)."""
        if self.weights is None:
            return np.full((1, 1), float(self.sizes[0])), np.full((1, 1), float(self.sizes[1]))
        inside = np.asarray(self.members @ self.weights)[:, None]
        return inside, float(self.counts @ self.weights) - inside

    def mean(self, features: np.ndarray) -> np.ndarray:
        """Return the mean of `features`, of shape (m, k), over the rows of both samples."""
        share = self.counts if self.weights is None else self.counts * self.weights
        return np.asarray(share @ features / share.sum())

    def contrasts(self, features: np.ndarray) -> np.ndarray:
        """Return the mean over the smaller sample less that over the other, of shape (1 + B, k).

        `features`, of shape (m, k), are means over the rows of a unit, and have mean 0 over all rows.
        """
        inside, outside = self._rows
        sums = self.members @ (features if self.weights is None else features * self.weights[:, None])
        return np.asarray(sums) * (1.0 / inside + 1.0 / outside)

    def own_products(self, squares: np.ndarray) -> np.ndarray:
        """Return what products of units with themselves add to quadratic forms with the diagonal `squares`, of shape (m, k).

        They are defined up to a constant, so that they are 0 for samples of equal size.
        """
        if self.weights is None and self.sizes[0] == self.sizes[1]:
            return np.zeros((1, squares.shape[1]))
        inside, outside = self._rows
        if self.weights is None:
            return np.asarray(self.members @ squares) * (inside**-2.0 - outside**-2.0)
        squares = squares * self.weights[:, None] ** 2
        own = np.asarray(self.members @ squares)
        return np.asarray(own * inside**-2.0 + (self.counts @ squares - own) * outside**-2.0)


def at_least(statistics: np.ndarray, bar: Any) -> np.ndarray:
    """Tell whether statistics are at least `bar`, up to rounding."""
    return np.asarray(statistics >= bar - _TOLERANCE * np.maximum(1.0, np.abs(bar)))


def p_value(statistics: np.ndarray) -> float:
    """Return the share of the statistics that are no smaller than the first, the observed one; it counts itself."""
    return float(at_least(statistics, statistics[0]).mean())


def adjusted_p_values(statistics: np.ndarray) -> np.ndarray:
    """Return p-values of several statistics, of shape (1 + B, k), by Westfall and Young's step-down maxima.

    The chance of any p-value <= alpha among statistics whose null hypotheses hold is at most alpha.
    """
    order = np.argsort(-statistics[0], kind="stable")
    # The maxima over the columns from each one on, in falling order of what was observed.
    maxima = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    raw = at_least(maxima, statistics[0, order]).mean(axis=0)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate(raw)
    return out
