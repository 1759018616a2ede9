"""Evidence of conditional laws: how unusual each cell of a row is given the other cells, by forests of randomised trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from sklearn.tree import ExtraTreeRegressor

from isopleth.operators.threads import map_threads
from isopleth.tasks.anomaly.table import Limits, blocks, map_blocks

MOST_COLUMNS = 20  # of more columns, this many are drawn, whose cells are judged by all others
TREES = 12
LEAF = 3  # fewest rows in a leaf
DEPTH = 20
VALUES = 64  # most values of a column of numbers that its rows in the leaves are rounded to
WIDTHS = (0.05, 0.5)  # of the two kernels around these values, which count alike
OVERALL = 0.05  # share of the law of all rows that is mixed in
FARTHEST = 300.0  # deviations; no density is 0
ROWS = 1024  # judged at once, so that they stay in the processor's cache


@dataclass(frozen=True)
class ConditionalLaw:
    r"""Law of one column given the others: the mean over the leaves of a row in the trees of Geurts et al. (2006).

    Numbers have a kernel :math:`\frac12 \sum_h e^{-|t|/h}/(2h)` around each value.
    """

    target: int
    word: bool
    roots: np.ndarray  # (t,): first node of each tree
    depth: int
    feature: np.ndarray  # (nodes,): column that is compared
    threshold: np.ndarray  # (nodes,): infinite for leaves
    child: np.ndarray  # (2, nodes): next node of rows up to the threshold, and beyond it; leaves lead to themselves
    law: np.ndarray  # (leaves, b): share of each value in each leaf; the last line is that of all rows
    place: np.ndarray  # (nodes,): line of each leaf
    values: np.ndarray  # (b,)

    @classmethod
    def fit(cls, z: np.ndarray, target: int, word: bool, copies: np.ndarray, seed: int) -> Self:
        """Fit to rows that occur `copies` times."""
        y, others = z[:, target], np.delete(np.arange(z.shape[1]), target)
        x = z[:, others].astype(np.float32)
        values = np.unique(y)
        if not word and len(values) > VALUES:
            values = np.unique(np.quantile(y, (np.arange(VALUES) + 0.5) / VALUES))
        most = min(len(others), max(8, min(24, len(others) // 2)))
        trees = [
            ExtraTreeRegressor(min_samples_leaf=LEAF, max_depth=DEPTH, max_features=most, random_state=seed + t)
            .fit(x, y, sample_weight=copies, check_input=False)
            .tree_
            for t in range(TREES)
        ]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])
        feature = np.concatenate([tree.feature for tree in trees])
        child = np.concatenate(
            [[tree.children_left, tree.children_right] + r for tree, r in zip(trees, roots, strict=False)], 1
        )
        leaf = feature < 0
        child[:, leaf] = np.flatnonzero(leaf)
        place = np.cumsum(leaf) - 1
        near = np.abs(y[:, None] - values).argmin(axis=1)
        cells = [place[tree.apply(x) + r] * len(values) + near for tree, r in zip(trees, roots, strict=False)]
        cells.append((place[-1] + 1) * len(values) + near)  # the law of all rows is one more leaf
        law = np.bincount(np.concatenate(cells), np.tile(copies, TREES + 1)).astype(np.float32)
        law = np.append(law, np.zeros(-len(law) % len(values), dtype=np.float32)).reshape(-1, len(values))
        law /= law.sum(axis=1, keepdims=True)
        threshold = np.where(leaf, np.inf, np.concatenate([tree.threshold for tree in trees]))
        feature = np.where(leaf, 0, others[np.where(leaf, 0, feature)])
        depth = max(tree.max_depth for tree in trees)
        child, place = child.astype(np.int32), place.astype(np.int32)
        return cls(target, word, roots[:-1], depth, feature, threshold, child, law, place, values)

    def evidence(self, z: np.ndarray) -> np.ndarray:
        """Return minus the log density of the cells of rows."""
        x, node = z.astype(np.float32), np.tile(self.roots, (len(z), 1))
        for _ in range(self.depth):
            beyond = np.take_along_axis(x, self.feature[node], axis=1) > self.threshold[node]
            node = self.child[beyond.astype(np.intp), node]
        kernel = self._kernel(z[:, self.target])
        density = np.zeros(len(z))
        for leaf in self.place[node].T:
            density += np.einsum("nb,nb->n", self.law[leaf], kernel)
        return -np.log((1.0 - OVERALL) / TREES * density + OVERALL * np.einsum("nb,b->n", kernel, self.law[-1]))

    def _kernel(self, y: np.ndarray) -> np.ndarray:
        away = np.abs(y[:, None] - self.values)
        if self.word:  # a word that no training row has is as likely as a thousandth of a row
            return np.where(away == 0.0, 1.0, 1e-3 / len(self.law)).astype(np.float32)
        away = np.minimum(away, FARTHEST)
        return sum(np.exp(-away / h) / (4.0 * h) for h in WIDTHS)


class NormalSpace(Protocol):
    """Rows in normal scores, and the way into them."""

    @property
    def rows(self) -> np.ndarray:
        """The rows in normal scores."""

    @property
    def copies(self) -> np.ndarray:
        """Number of times that each occurs."""

    def enter(self, rows: np.ndarray) -> np.ndarray:
        """Return complete rows in normal scores."""


@dataclass(frozen=True)
class Conditionals:
    """Laws of columns given the others, in normal scores."""

    space: NormalSpace
    columns: np.ndarray  # (d,): columns in an order that does not depend on theirs in the table
    seed: int
    laws: list[ConditionalLaw]

    @classmethod
    def fit(cls, space: NormalSpace, columns: np.ndarray, n_numeric: int, seed: int, limits: Limits) -> Self:
        """Fit to the rows of a space; its columns after the first `n_numeric` are codes."""
        z = space.rows[:, columns]

        def law(i: int) -> ConditionalLaw:
            return ConditionalLaw.fit(z, i, bool(columns[i] >= n_numeric), space.copies, seed % 2**31 + TREES * i)

        count = min(len(columns), MOST_COLUMNS) if len(columns) > 1 else 0
        return cls(space, columns, seed, map_threads(law, range(count), limits.threads))

    def evidence(self, rows: np.ndarray, limits: Limits) -> np.ndarray:
        """Return the sum over the columns of minus the log densities of complete rows."""
        return self._evidence(self.space.enter(rows)[:, self.columns], limits)

    def _evidence(self, z: np.ndarray, limits: Limits) -> np.ndarray:
        def total(part: slice) -> np.ndarray:
            return np.sum([law.evidence(z[part]) for law in self.laws], axis=0) + np.zeros(len(z[part]))

        return np.concatenate(
            map_blocks("conditional laws", total, blocks(len(z), 8.0 * 4 * VALUES, limits, ROWS), limits)
        )

    def counterfactual_evidence(self, rows: np.ndarray, values: np.ndarray, limits: Limits) -> np.ndarray:
        """Return evidence of rows as they are and with each of `values` in each cell, of shape (n, d, 1 + k)."""
        z, there = self.space.enter(rows)[:, self.columns], self.space.enter(values)[:, self.columns]
        out = np.empty((*rows.shape, 1 + len(values)))
        for i, j in enumerate(self.columns):
            moved = np.repeat(z, 1 + len(values), axis=0)
            moved[:, i] = np.column_stack([z[:, i], np.tile(there[:, i], (len(z), 1))]).ravel()
            out[:, j] = self._evidence(moved, limits).reshape(len(z), -1)
        return out
