"""Trends of a number in the inputs: lines, a function by kernels and forests, and what they say of rows they do not know.

Rows are left out one at a time, or by groups: where the rows of a group are alike, one of them is known by the others, which
says nothing about a row that is in no group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from isopleth.conditional.forest import Forest, Growth
from isopleth.conditional.kernel_ridge import KernelRidge, smoothness_of_groups
from isopleth.conditional.ridge import Ridge
from isopleth.core.threads import check_stopped

# Fewest rows of a trend by kernels.
_SMOOTHED = 20


class TrendRows(NamedTuple):
    """Rows that trends are fitted to."""

    X: np.ndarray  # inputs of trees
    A: np.ndarray  # inputs of lines
    y: np.ndarray  # (n,): target
    z: np.ndarray  # (n,): its scores
    weights: np.ndarray
    copies: np.ndarray

    def take(self, rows: np.ndarray) -> Self:
        """Return some of the rows."""
        return type(self)(*(part[rows] for part in self))


@dataclass(frozen=True)
class HeldGroups:
    """Groups of rows that are left out together: those at a level of a column, or of the target."""

    column: int | None  # None for the target
    levels: np.ndarray  # its values, ascending
    fold: np.ndarray  # (n,): fold of each row; -1 for rows that are always known
    # (n,): row of a fold, itself where a row is in one: what leaving its group out changes in its residual stands for the row
    like: np.ndarray
    # (n,): how much of that counts. Rows between two neighbouring levels are nearer to these than the rows of a level are to the
    # levels beside it when their own is left out: trends miss them by anything from nothing to as much.
    part: np.ndarray
    judged: np.ndarray  # places of rows of folds whose cells choose the weights of a pool


@dataclass(frozen=True)
class Unseen:
    """Residuals of rows from trends that do not know them."""

    line: np.ndarray  # (n,): of the target from the line
    curve: np.ndarray  # (n,): of the scores from the line
    smooth: np.ndarray  # (n,): of the scores from the line and the function by kernels
    mean: np.ndarray  # (n,): mean of the forest, in scores
    kernels: dict[
        str, csr_array
    ]  # of groups: weights of the rows by forest, (n, n); empty where forests know them themselves

    def blended(self, rows: TrendRows) -> tuple[float, np.ndarray]:
        """Return the share of the function by kernels in its blend with the mean of the forest, and the blend."""
        own = rows.z - self.mean
        blend = _proportion(own, self.smooth, rows.weights) if len(rows.z) >= _SMOOTHED else 0.0
        return blend, self.mean + blend * (rows.z - self.smooth - self.mean)


@dataclass(frozen=True)
class Trends:
    """Fitted trends."""

    line: Ridge
    curve: Ridge
    smooth: KernelRidge
    forests: dict[str, Forest]

    @classmethod
    def fit(
        cls,
        rows: TrendRows,
        growth: Growth,
        residual_forest: bool,
        smoothness: tuple[float, float] | None = None,
    ) -> tuple[Self, Unseen]:
        """Return the trends, and the residuals of each row from those without it; see :meth:`KernelRidge.fit`."""
        X, A, y, z, w, copies = rows
        (line, from_line), (curve, from_curve) = (Ridge.fit(A, u, w, copies=copies) for u in (y, z))
        forests = {"target": Forest.fit(X, _standard(z, w), w, growth, copies)}
        if residual_forest:
            # In one or two columns small leaves are so local that the spread of few residuals is mostly noise.
            other = replace(growth, leaf=max(3, 10 // X.shape[1]), seed=growth.seed + 1)
            forests["residual"] = Forest.fit(X, _standard(from_curve, w), w, other, copies)
        smooth, from_smooth = KernelRidge.fit(A, from_curve, w, copies, smoothness)
        mean = forests["target"].out_of_bag() @ z
        return cls(line, curve, smooth, forests), Unseen(from_line, from_curve, from_smooth, mean, {})


def weights_between(forest: Forest, X: np.ndarray, at: int, levels: np.ndarray, known: np.ndarray) -> csr_array:
    """Return the weights of a forest at rows between levels, linear from one level that it knows to the next.

    `at` is the input that holds the ranks of the levels, and `known` are the ranks of those that the forest knows.
    """
    rank = X[:, at]
    above = np.clip(np.searchsorted(known, rank), 1, len(known) - 1)
    ends = known[above - 1], known[above]
    value = np.interp(rank, np.arange(len(levels)), levels)
    low, high = (levels[end] for end in ends)
    part = np.clip((value - low) / (high - low), 0.0, 1.0)
    out = None
    for end, share in zip(ends, (1.0 - part, part), strict=True):
        moved = X.copy()
        moved[:, at] = end
        W = forest.weights_at(moved)
        W.data = W.data * np.repeat(share, np.diff(W.indptr))
        out = W if out is None else out + W
    return csr_array(out)


def fit_to_groups(
    rows: TrendRows, held: HeldGroups, at: int | None, growth: Growth, residual_forest: bool
) -> tuple[Trends, Unseen]:
    """Return the trends, and what such trends say of groups they do not know, and of the other rows, left out one at a time.

    `at` is the input of trees that holds the ranks of the levels, None for those of the target.
    """
    _, from_line = Ridge.fit(rows.A, rows.z, rows.weights, copies=rows.copies)
    smoothness, *of_folds = smoothness_of_groups(rows.A, from_line, rows.weights, held.fold)
    all_rows, one = Trends.fit(rows, growth, residual_forest, smoothness)
    line, curve, smooth, mean = (part.copy() for part in (one.line, one.curve, one.smooth, one.mean))
    n = len(rows.y)
    names = ["equal", "target", *["residual"] * residual_forest]
    parts: dict[str, list[csr_array]] = {name: [] for name in names}
    found = []
    for k in range(int(held.fold.max()) + 1):
        check_stopped()
        out, rest = np.flatnonzero(held.fold == k), np.flatnonzero(held.fold != k)
        trends, _ = Trends.fit(rows.take(rest), growth, residual_forest, of_folds[k])
        X, A, y, z, _, _ = rows.take(out)
        flat = trends.curve.predict(A)
        line[out], curve[out] = y - trends.line.predict(A), z - flat
        smooth[out] = z - flat - trends.smooth.predict(A)
        share = rows.weights[rest] / rows.weights[rest].sum()
        if at is None:
            kernels = {name: forest.weights_at(X) for name, forest in trends.forests.items()}
        else:
            known = np.setdiff1d(np.arange(len(held.levels)), np.rint(X[:, at]))
            kernels = {
                name: weights_between(forest, X, at, held.levels, known) for name, forest in trends.forests.items()
            }
        kernels["equal"] = csr_array(np.tile(share, (len(out), 1)))
        mean[out] = kernels["target"] @ rows.z[rest]
        for name, W in kernels.items():
            parts[name].append(csr_array((W.data, rest[W.indices], W.indptr), shape=(len(out), n)))
        found.append(out)
    line, curve, smooth, mean = (
        own + held.part * (part - own)[held.like]
        for own, part in zip((one.line, one.curve, one.smooth, one.mean), (line, curve, smooth, mean), strict=True)
    )
    return all_rows, Unseen(line, curve, smooth, mean, _joined(parts, np.concatenate(found), n))


def _joined(parts: dict[str, list[csr_array]], places: np.ndarray, n: int) -> dict[str, csr_array]:
    """Return matrices whose lines `places` are those of the parts, one after another."""
    from scipy.sparse import vstack

    order = csr_array((np.ones(len(places)), (places, np.arange(len(places)))), shape=(n, len(places)))
    return {name: csr_array(order @ vstack(some, format="csr")) for name, some in parts.items()}


def _proportion(one: np.ndarray, other: np.ndarray, w: np.ndarray) -> float:
    """Return the share of a second function beside a first, in [0, 1], that has the least squares of their joint residuals."""
    apart = one - other
    square = float(w @ apart**2)
    return float(np.clip(w @ (one * apart) / square, 0.0, 1.0)) if square > 0.0 else 0.0


def _standard(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return numbers at mean 0 and deviation 1."""
    share = w / w.sum()
    centered = x - share @ x
    return np.asarray(centered / (np.sqrt(share @ centered**2) or 1.0))
