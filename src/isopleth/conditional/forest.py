r"""Forest kernel: the share of trees in whose leaf two rows are, evaluated without the trees that saw the row.

A forest that is fitted to a target weighs the rows of the fit by :math:`w_i(x) = T^{-1} \sum_t n_{ti} [L_t(x_i) = L_t(x)] /
N_t(x)`, where n counts row i in the bag of tree t and N is the sum of these counts in the leaf of x (Meinshausen, JMLR 7,
2006). At a row of the fit only the trees count whose bag it is not in. So nothing is fitted again for weights, widths,
calibration and residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn import config_context

from isopleth.core.budget import ONE_THREAD, Budget
from isopleth.core.progress import unheard
from isopleth.core.threads import check_stopped, map_threads, slices

# Trees see multiples of this share of a deviation: their sums have no rounding errors then, which would choose between columns
# that divide the rows of a node alike.
_STEP = 2.0**-16
# Most rows of a leaf that share its weight. Leaves are larger only where targets are equal.
_LEAF_ROWS = 32
# Pairs of rows and trees that descend at once, and steps after which those that are at a leaf are left out: to look for them
# takes as long as a step.
_PAIRS, _LEVELS = 2**15, 4


@dataclass(frozen=True)
class Growth:
    """Number and kind of the trees of a forest."""

    trees: int = 100  # number of trees
    leaf: int = 2  # fewest rows of a leaf
    columns: float = 0.7  # share of the columns that a node compares
    seed: int = 0  # of bags and columns
    bootstrap: bool = True  # whether each tree sees a sample of the rows; there are no rows out of bag else
    # Whether a node compares one random threshold of a column in place of all (extremely randomised trees): a third of the time.
    random_splits: bool = False
    budget: Budget = ONE_THREAD
    tick: Callable[[int], None] = unheard  # called after each tree


@dataclass(frozen=True)
class Forest:
    """Trees as arrays, and the shares of the rows of the fit in their leaves."""

    roots: np.ndarray  # (t,): first node of each tree
    feature: np.ndarray  # (nodes,): column that is compared, negative at leaves
    threshold: np.ndarray  # (nodes,)
    child: np.ndarray  # (2, nodes): next node of values up to the threshold and beyond it
    gap: np.ndarray  # (nodes,): which child a missing value goes to
    leaf: np.ndarray  # (nodes,): number of each leaf
    # indptr, rows, shares: matrix of the leaves by the rows of the fit, whose lines add up to 1
    indptr: np.ndarray
    rows: np.ndarray
    shares: np.ndarray
    unseen: (
        np.ndarray
    )  # (n, t): probability that a tree did not see one of the equal rows that a row of a weight stands for
    own: np.ndarray  # (n, t): leaves of the rows of the fit

    @classmethod
    def fit(
        cls,
        X: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray,
        growth: Growth | None = None,
        copies: np.ndarray | None = None,
    ) -> Self:
        """Grow trees on bootstrap samples of the rows, or on all of them; see `fit_placing`."""
        return cls.fit_placing(X, target, weights, growth or Growth(), copies)[0]

    @classmethod
    def fit_placing(
        cls,
        X: np.ndarray,
        target: np.ndarray,
        weights: np.ndarray,
        growth: Growth,
        copies: np.ndarray | None = None,
    ) -> tuple[Self, Callable[[np.ndarray], np.ndarray]]:
        """Grow trees; the second value is `leaves` by the compiled trees, which is several times as fast, and is not kept.

        Parameters
        ----------
        X : float32 array of shape (n, d)
            Rows in an order that does not depend on that of the table, since bags are drawn by place; NaN is a gap.
        target : array of shape (n,) or (n, k)
            What the trees tell apart, in deviations: numbers, or words as columns of 0 and 1.
        weights : array of shape (n,)
            Weight of each row; their sum is the number of rows that are drawn for a tree.
        growth : Growth
            Number and kind of the trees.
        copies : array of shape (n,), optional
            Number of equal rows that each stands for, one of which a tree may not have seen; the weights by default.
        """
        # Here, because detectors that explain no row grow no trees, and a small one is fitted in the time of this import.
        from sklearn.tree import DecisionTreeRegressor

        drawn, splitter = round(float(weights.sum())), "random" if growth.random_splits else "best"
        target = np.ascontiguousarray(np.rint(target / _STEP) * _STEP).reshape(len(X), -1)
        share, gaps = weights / weights.sum(), bool(np.isnan(X).any())
        X = np.ascontiguousarray(X, dtype=np.float32)

        def grow(t: int) -> tuple[Any, np.ndarray, np.ndarray]:
            check_stopped()
            rng = np.random.default_rng([growth.seed, t])
            bag = rng.multinomial(drawn, share) if growth.bootstrap else weights
            tree = DecisionTreeRegressor(
                splitter=splitter,
                min_samples_leaf=growth.leaf,
                max_features=growth.columns,
                random_state=int(rng.integers(2**31)),
            )
            # The checks of scikit-learn take a quarter of the time of a tree, and see the same rows each time.
            with config_context(assume_finite=not gaps, skip_parameter_validation=True):
                tree.fit(X, target, sample_weight=bag.astype(np.float64), check_input=gaps)
            growth.tick(1)
            return tree.tree_, bag, tree.tree_.apply(X)

        grown = map_threads(grow, range(growth.trees), growth.budget.threads)
        forest = cls._of_trees(grown, weights if copies is None else copies)

        def leaves(rows: np.ndarray) -> np.ndarray:
            rows = np.ascontiguousarray(rows, dtype=np.float32)
            found = [
                forest.leaf[tree.apply(rows) + root] for (tree, _, _), root in zip(grown, forest.roots, strict=True)
            ]
            return np.stack(found, axis=1)

        return forest, leaves

    @classmethod
    def _of_trees(cls, grown: list[tuple[Any, np.ndarray, np.ndarray]], copies: np.ndarray) -> Self:
        """Join the arrays of trees; nodes and leaves are numbered through all of them."""
        trees = [tree for tree, _, _ in grown]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])
        sides = [
            np.concatenate([children + root for children, root in zip(side, roots, strict=False)])
            for side in ([tree.children_left for tree in trees], [tree.children_right for tree in trees])
        ]
        feature = np.concatenate([tree.feature for tree in trees])
        is_leaf = feature < 0
        child = np.stack(sides).astype(np.int32)
        number = (np.cumsum(is_leaf) - 1).astype(np.int32)
        own = np.stack([number[nodes + root] for (_, _, nodes), root in zip(grown, roots, strict=False)], axis=1)
        bags = np.stack([bag for _, bag, _ in grown], axis=1)
        return cls(
            roots[:-1].astype(np.int32),
            feature.astype(np.int32),
            np.concatenate([tree.threshold for tree in trees]),
            child,
            1 - np.concatenate([tree.missing_go_to_left for tree in trees]).astype(np.int8),
            number,
            *_leaf_shares(own, bags, int(is_leaf.sum())),
            np.maximum(1.0 - 1.0 / copies[:, None], 0.0) ** bags,
            own,
        )

    def of_new_rows(self) -> Self:
        """Return the forest without the leaves of the rows of the fit: it answers for new rows only."""
        return replace(self, unseen=self.unseen[:, :0].copy(), own=self.own[:, :0].copy())

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def _matrix(self) -> csr_array:
        return csr_array((self.shares, self.rows, self.indptr), shape=(len(self.indptr) - 1, len(self.unseen)))

    @cached_property
    def _routes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Column and threshold of each node, and the next nodes, two for each, with leaves that lead to themselves.

        The largest number of single precision up to a threshold divides numbers of single precision as the threshold does.
        """
        is_leaf = self.feature < 0
        threshold = self.threshold.astype(np.float32)
        threshold = np.where(
            threshold > self.threshold, np.nextafter(threshold, np.float32(-np.inf), dtype=np.float32), threshold
        )
        own = np.arange(len(is_leaf), dtype=np.int32)
        following = np.where(is_leaf, own, self.child)
        return np.maximum(self.feature, 0), threshold, np.ascontiguousarray(following.T, dtype=np.int32).ravel()

    def leaves(self, X: np.ndarray) -> np.ndarray:
        """Return the number of the leaf of each row in each tree, (n, t)."""
        flat, offset = np.ascontiguousarray(X, dtype=np.float32).ravel(), np.arange(len(X), dtype=np.int32) * X.shape[1]
        gaps = bool(np.isnan(flat).any())
        out = np.empty((len(X), self.n_trees), dtype=np.int32)
        # Some trees at once: few rows would spend their time between steps, and the nodes of all trees do not fit into a cache.
        for trees in slices(self.n_trees, max(1, _PAIRS // max(len(X), 1))):
            check_stopped()
            roots = self.roots[trees]
            node = self._descended(np.repeat(roots, len(X)), np.tile(offset, len(roots)), flat, gaps)
            out[:, trees] = self.leaf[node].reshape(len(roots), len(X)).T
        return out

    def _descended(self, node: np.ndarray, at: np.ndarray, flat: np.ndarray, gaps: bool) -> np.ndarray:
        """Return the leaf nodes below `node`, (k,), of rows that begin `at` places of `flat`."""
        feature, threshold, following = self._routes
        out, left = node, np.arange(len(node))
        while len(left):
            for _ in range(_LEVELS):
                value = flat.take(at + feature.take(node))
                far = value > threshold.take(node)
                if gaps:
                    far |= np.isnan(value) & (self.gap.take(node) > 0)
                node = following.take(2 * node + far)
            out[left] = node
            more = np.flatnonzero(self.feature.take(node) >= 0)
            left, node, at = left[more], node[more], at[more]
        return out

    def weights_at(self, X: np.ndarray) -> csr_array:
        """Return the weights of the rows of the fit for each row of X, (n, m), each line of sum 1."""
        return csr_array(self.in_leaves(self.leaves(X)) @ self._matrix)

    def in_leaves(self, leaves: np.ndarray) -> csr_array:
        """Return the shares of leaves, numbered as `leaves` does, for each row, (n, leaves), each line of sum 1."""
        part = np.full(leaves.size, 1.0 / self.n_trees)
        starts = np.arange(len(leaves) + 1) * self.n_trees
        return csr_array((part, leaves.ravel(), starts), shape=(len(leaves), len(self.indptr) - 1))

    def of_leaves(self, values: csr_array) -> csr_array:
        """Return the means over each leaf of values of the rows of the fit, (leaves, k)."""
        return csr_array(self._matrix @ values)

    def out_of_bag(self, places: np.ndarray | None = None) -> csr_array:
        """Return the weights of the rows of the fit for each of them, without the row itself, by the trees that did not see it.

        A row that is in every bag, which happens with few trees only, has equal weights of all others.
        """
        own, unseen = (self.own, self.unseen) if places is None else (self.own[places], self.unseen[places])
        rows, trees = np.nonzero(unseen > 1e-6)
        parts = unseen[rows, trees]
        counts, total = np.bincount(rows, minlength=len(own)), np.bincount(rows, parts, len(own))
        at = csr_array(
            (parts / total[rows], own[rows, trees], np.concatenate([[0], np.cumsum(counts)])),
            shape=(len(own), self._matrix.shape[0]),
        )
        W = csr_array(at @ self._matrix)
        if (lost := np.flatnonzero(counts == 0)).size:
            W = W.tolil()
            n = W.shape[1]
            for i in lost:
                W[[i], :] = 1.0 / max(n - 1, 1)
                W[i, i if places is None else int(places[i])] = 0.0
            W = csr_array(W)
        return W


def _leaf_shares(own: np.ndarray, mass: np.ndarray, n_leaves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the shares of rows in leaves as a sparse matrix; of the rows of a giant leaf some at equal steps stand for all."""
    rows, trees = np.nonzero(mass)
    leaf, part = own[rows, trees], mass[rows, trees]
    order = np.argsort(leaf, kind="stable")
    leaf, rows, part = leaf[order], rows[order], part[order]
    counts = np.bincount(leaf, minlength=n_leaves)
    place = np.arange(len(leaf)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = -(-counts // _LEAF_ROWS)
    kept = place % step[leaf] == 0
    leaf, rows, part = leaf[kept], rows[kept], part[kept]
    total = np.bincount(leaf, part, n_leaves)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=n_leaves))])
    return indptr, rows.astype(np.int32), part / total[leaf]


def squared(W: csr_array, copies: np.ndarray | None = None) -> csr_array:
    """Return the squares of weights, each line of sum 1: a power of a forest kernel is a shorter length scale.

    `copies` is the number of columns that share the weight of a row of the fit, which is squared before it is shared.
    """
    out = W.copy()
    out.data = out.data**2 if copies is None else out.data**2 * copies[W.indices]
    total = np.asarray(out.sum(axis=1)).ravel()
    out.data /= np.repeat(total, np.diff(out.indptr))
    return out
