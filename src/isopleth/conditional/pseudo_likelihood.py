r"""Pseudolikelihood of rows: the sum over columns of the log density of a cell given the others (Besag 1975).

:class:`BinnedLaw` spends a forest of sixty trees on one column, so that all columns of a table cost seconds. Here trees predict
groups of columns from all others, so that one tree serves the laws of a whole group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.conditional.forest import Forest, Growth
from isopleth.core.budget import Budget
from isopleth.core.laws import weighted_quantile
from isopleth.core.scales import deviations
from isopleth.core.threads import check_stopped, map_threads

# Columns whose cells are judged; of more, this many are drawn, whose cells are judged by all others.
MOST_COLUMNS = 20
# Groups that the columns are divided into at random, and divisions, in each of which a group has one tree: two columns are seldom
# in one group each time. A tree of two columns finds relations as well as one of a single column; of five it does not.
_GROUPS, _DIVISIONS = 10, 3
_LEAF = 3  # fewest rows in a leaf
_WIDTHS = (
    0.05,
    0.5,
)  # of the two kernels around the values in a leaf, which count alike; the second is ten times the first
_OVERALL, _VALUES = 0.05, 64  # share of the law of all rows that is mixed in, and most values that stand for it
_FARTHEST = 300.0  # deviations; no density is 0
_UNKNOWN = 1e-3  # rows that have a word which no row of the fit has


@dataclass(frozen=True)
class ColumnShares:
    """Law of one column, whatever the others are: values and their shares."""

    values: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, copies: np.ndarray, word: bool) -> Self:
        """Choose the distinct values, or quantiles of numbers that have many."""
        values, place = np.unique(y, return_inverse=True)
        if word or len(values) <= _VALUES:
            return cls(values, np.bincount(place.ravel(), copies) / copies.sum())
        levels = (np.arange(_VALUES) + 0.5) / _VALUES
        return cls(weighted_quantile(y, copies, levels), np.full(_VALUES, 1.0 / _VALUES))

    def density(self, y: np.ndarray, word: bool) -> np.ndarray:
        """Return the density of cells."""
        return np.asarray(np.einsum("nb,b->n", _kernel(y[:, None] - self.values, word), self.shares))


@dataclass(frozen=True)
class PseudoLikelihood:
    r"""Laws of columns given the others: the mean over the leaves of a row in extremely randomised trees (Geurts et al. 2006).

    Numbers have a kernel :math:`\frac12 \sum_h e^{-|t|/h}/(2h)` around each value, words their shares.
    """

    z: np.ndarray  # (m, d): rows of the fit, of which each column has a deviation of about 1, or codes of words
    words: np.ndarray  # (d,): which columns are codes
    groups: list[np.ndarray]  # columns that each forest predicts, all of them once in each division
    forests: list[Forest]
    overall: list[ColumnShares]

    @classmethod
    def fit(cls, z: np.ndarray, words: np.ndarray, copies: np.ndarray, seed: int, budget: Budget) -> Self:
        """Fit to rows that occur `copies` times, in an order that does not depend on that of the table."""
        m = min(z.shape[1], MOST_COLUMNS) if z.shape[1] > 1 else 0
        rng, groups = np.random.default_rng(seed), list[np.ndarray]()
        for _ in range(_DIVISIONS if m else 0):
            groups += [np.sort(part) for part in np.array_split(rng.permutation(m), min(m, _GROUPS))]
        scale = deviations(z, copies)
        target, inputs = z / np.where(scale > 0.0, scale, 1.0), z.astype(np.float32)

        def forest(i: int) -> Forest:
            others = np.delete(inputs, groups[i], axis=1)
            d = others.shape[1]
            share = min(1.0, max(8, min(24, d // 2)) / d)
            growth = Growth(1, _LEAF, share, seed + i, bootstrap=False, random_splits=True)
            found = Forest.fit(others, target[:, groups[i]], copies, growth)
            return found.of_new_rows()  # every tree saw every row

        forests = map_threads(forest, range(len(groups)), budget.threads)
        overall = [ColumnShares.of(z[:, j], copies, bool(words[j])) for j in range(m)]
        return cls(z, words, groups, forests, overall)

    def evidence(self, z: np.ndarray) -> np.ndarray:
        """Return minus the log pseudolikelihood of rows."""
        density, inputs = np.zeros((len(self.overall), len(z))), z.astype(np.float32)
        for group, forest in zip(self.groups, self.forests, strict=True):
            check_stopped()
            W = forest.weights_at(np.delete(inputs, group, axis=1))
            row = np.repeat(np.arange(len(z)), np.diff(W.indptr))
            for j in group:
                terms = _kernel(z[row, j] - self.z[W.indices, j], bool(self.words[j]))
                density[j] += np.bincount(row, W.data * terms, len(z))
        total = np.zeros(len(z))
        for j, law in enumerate(self.overall):
            word = bool(self.words[j])
            mixed = (1.0 - _OVERALL) / _DIVISIONS * density[j] + _OVERALL * law.density(z[:, j], word)
            total -= np.log(mixed + _UNKNOWN / len(self.z) * word)
        return total


def _kernel(away: np.ndarray, word: bool) -> np.ndarray:
    """Return the kernel at differences of cells."""
    if word:
        return np.asarray(away == 0.0, dtype=np.float64)
    near, wide = _WIDTHS
    slow = np.exp(-np.minimum(np.abs(away), _FARTHEST) / wide)
    twice = slow * slow
    fourth = twice * twice
    return np.asarray(
        slow / (4.0 * wide) + fourth * fourth * twice / (4.0 * near)
    )  # its tenth power, without another exp
