"""Which units are in the first sample: as observed, and under random permutations."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

# From twice as many rows in both samples on, so many groups of rows are permuted and not single ones.
_GROUPS = 4000
# Groups that the smaller sample keeps, at the least: its permutations must not run out.
_LEAST_GROUPS = 200
_MOST_AGAINST_ONE = 100
_ENOUGH = 20_000
# A sample that is so many times smaller than both together is summed over its own rows only.
_SPARSE = 16
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Units:
    """What is permuted: rows, or groups of `group` rows of one sample each.

    Parameters
    ----------
    rows : array of shape (sum(sizes) group,)
        Places of the rows in the samples, one below the other; group by group, those of the first sample first.
    sizes : tuple of two int
        Units in each sample.
    group : int
        Rows in a unit.
    """

    rows: np.ndarray
    sizes: tuple[int, int]
    group: int

    @classmethod
    def of(cls, n: int, m: int, rng: np.random.Generator) -> Self:
        """Of samples of `n` and `m` rows; rows that fill no group, or are too many to matter, are left out at random.

        Any fixed set of permutations of exchangeable units gives an exact test; where each unit is a group of rows of the
        same sample, drawn without a look at values, units are exchangeable if rows are.
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
    """Whether label vectors of samples of these sizes hold little but zeros."""
    return sum(sizes) > _SPARSE * min(sizes)


@dataclass(frozen=True, eq=False)
class Labels:
    """How many units of the smaller sample each distinct unit stands for, observed and permuted.

    Parameters
    ----------
    members : array or sparse array of shape (1 + B, m)
        Counts; the first line is the observed one.
    counts : array of shape (m,)
        Units of both samples that are alike.
    sizes : tuple of two int
        Units in the smaller and in the larger sample.
    """

    members: Any
    counts: np.ndarray
    sizes: tuple[int, int]

    @classmethod
    def draw(cls, place: np.ndarray, sizes: tuple[int, int], permutations: int, rng: np.random.Generator) -> Self:
        """Of units whose distinct ones are numbered by `place`, those of the first sample first.

        Nothing but `place` and the number of units in the smaller sample goes into the draws, so that neither the order of
        the rows nor which sample is called the first makes a difference.
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
        """Numbers of eight bytes that a label vector takes, those on the way to it counted in."""
        return 5 * min(sizes) if is_sparse(sizes) else sum(sizes)

    def contrasts(self, features: np.ndarray) -> np.ndarray:
        """Mean over the smaller sample less mean over the other, for `features` of mean 0, of shape (1 + B, k)."""
        return np.asarray(self.members @ features) * sum(1.0 / size for size in self.sizes)

    def own_products(self, squares: np.ndarray) -> np.ndarray:
        """What the products of units with themselves add to a quadratic form, for `squares` of shape (m, k), up to a constant."""
        smaller, larger = self.sizes
        if smaller == larger:
            return np.zeros((1, squares.shape[1]))
        return np.asarray(self.members @ squares) * (smaller**-2.0 - larger**-2.0)


def at_least(statistics: np.ndarray, bar: Any) -> np.ndarray:
    """Whether statistics reach `bar`, equal ones in spite of rounding."""
    return np.asarray(statistics >= bar - _TOLERANCE * np.maximum(1.0, np.abs(bar)))


def p_value(statistics: np.ndarray) -> float:
    """Share of the statistics that are no smaller than the first, the observed one; it counts itself."""
    return float(at_least(statistics, statistics[0]).mean())


def adjusted_p_values(statistics: np.ndarray) -> np.ndarray:
    """p-values of several statistics, of shape (1 + B, k), by Westfall and Young's step-down maxima.

    The chance of any p-value <= alpha among statistics whose null hypotheses hold is at most alpha.
    """
    order = np.argsort(-statistics[0], kind="stable")
    # The maxima over the columns from each one on, in falling order of what was observed.
    maxima = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    raw = at_least(maxima, statistics[0, order]).mean(axis=0)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate(raw)
    return out
