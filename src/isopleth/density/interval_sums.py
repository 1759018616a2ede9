r"""Joint densities at rows with cells of which an interval is known, and centres for such rows of a fit.

The density of a row whose cell j is in (a, b) is :math:`\int_a^b p(x)\,dx_j`, by Gauss-Legendre nodes; with three such cells and
more by a fixed Sobol sequence. A half-line (a, oo) has the nodes :math:`a + s\,u/(1 - u)` with the deviation s of the column.
A row of the fit gets a point in the interval, by a censored regression on its other cells (``core/censored_regression.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp
from scipy.stats import qmc

from isopleth.core.censored_regression import CensoredRegression
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.interval_laws import IntervalPoints
from isopleth.core.threads import check_stopped
from isopleth.tables.checks import CheckedRows

# Nodes along one interval, and along each of two; logarithm to base 2 of those in more.
_ONE, _TWO, _MORE = 96, 32, 10
_AT_ONCE = 2**16  # rows that are evaluated at once
# Points of an interval of the fit where hardly any two rows differ in their other cells.
_SPREAD_LEVELS = (np.arange(16) + 0.5) / 16
# Periods of a triangle wave of the other cells: neighbouring rows have unlike levels, which are continuous in the cells.
_WAVES = 100.0
_MOST_WORDS = 15


@lru_cache(maxsize=8)
def _unit_nodes(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes in the unit cube of k dimensions, (Q, k), and their weights."""
    if k > 2:
        nodes = qmc.Sobol(k, scramble=True, rng=np.random.default_rng(0)).random_base2(_MORE)
        return nodes, np.full(len(nodes), 1.0 / len(nodes))
    x, w = np.polynomial.legendre.leggauss(_ONE if k == 1 else _TWO)
    x, w = 0.5 * (x + 1.0), 0.5 * w
    if k == 1:
        return x[:, None], w
    return np.stack([np.repeat(x, len(x)), np.tile(x, len(x))], axis=1), np.outer(w, w).ravel()


def _along(low: np.ndarray, high: np.ndarray, unit: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of nodes u, (Q, k), in intervals, (m, k), and the logarithm of the derivative: (m, Q, k) each."""
    a, b, s, u = low[:, None], high[:, None], unit, u[None]
    far, slope = s * u / (1.0 - u), np.log(s) - 2.0 * np.log1p(-u)
    none = np.zeros(np.broadcast_shapes(a.shape, u.shape))
    with np.errstate(invalid="ignore"):
        inner, width = a + (b - a) * u, np.log(b - a) + none
    places = np.where(np.isinf(a), b - far, np.where(np.isinf(b), a + far, inner))
    return places, np.where(np.isinf(a) | np.isinf(b), slope + none, width)


@dataclass(frozen=True)
class Nodes:
    """Some rows with nodes in the place of their intervals."""

    rows: np.ndarray  # (m,): their numbers
    columns: np.ndarray  # (k,): columns of the intervals
    points: np.ndarray  # (m * Q, d)
    log_weights: np.ndarray  # (m, Q)

    def weighed(self, log_p: np.ndarray) -> np.ndarray:
        """Return the logarithms of the terms of the sum of each row, (m, Q)."""
        return np.asarray(log_p.reshape(self.log_weights.shape) + self.log_weights)


@dataclass(frozen=True)
class IntervalSums:
    """Sums over the intervals of rows; `unit`, (d,), are deviations of the columns, 0 for those that have no density."""

    unit: np.ndarray

    def of_rows(self, rows: np.ndarray, limits: IntervalCells) -> Iterator[Nodes]:
        """Yield the rows that have intervals, those with the same columns together."""
        used = limits.mask & (self.unit[limits.columns] > 0.0)
        patterns, place = np.unique(used, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            k = np.flatnonzero(pattern)
            if not len(k):
                continue
            columns = limits.columns[k]
            u, w = _unit_nodes(len(k))
            some = np.flatnonzero(place.ravel() == p)
            for part in np.array_split(some, -(-len(some) * len(w) // _AT_ONCE)):
                check_stopped()
                ends = limits.lower[np.ix_(part, k)], limits.upper[np.ix_(part, k)]
                places, slopes = _along(*ends, self.unit[columns], u)
                points = np.repeat(rows[part], len(w), axis=0)
                points[:, columns] = places.reshape(-1, len(k))
                yield Nodes(part, columns, points, slopes.sum(axis=2) + np.log(w))

    def log_density(
        self, rows: np.ndarray, limits: IntervalCells, log_p: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return the log density of rows, integrated over their intervals, from that of rows."""
        out = log_p(rows)
        for nodes in self.of_rows(rows, limits):
            out[nodes.rows] = logsumexp(nodes.weighed(log_p(nodes.points)), axis=1)
        return out

    def gradient(
        self,
        rows: np.ndarray,
        limits: IntervalCells,
        log_p: Callable[[np.ndarray], np.ndarray],
        slope: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        """Return the gradient of :meth:`log_density` by the known numbers; NaN in cells with an interval."""
        out = slope(rows)
        for nodes in self.of_rows(rows, limits):
            terms = nodes.weighed(log_p(nodes.points))
            share = np.exp(terms - logsumexp(terms, axis=1, keepdims=True))
            slopes = slope(nodes.points).reshape(*share.shape, -1)
            out[nodes.rows] = np.einsum("mq,mqd->md", share, np.where(share[:, :, None] > 0.0, slopes, 0.0))
            out[np.ix_(nodes.rows, nodes.columns)] = np.nan
        return out

    def filled(
        self,
        rows: np.ndarray,
        limits: IntervalCells,
        log_p: Callable[[np.ndarray], np.ndarray],
        draw: np.random.Generator | None,
    ) -> np.ndarray:
        """Return rows with the mean of their cells within the intervals given the known ones, or with a joint draw."""
        out = rows.copy()
        for nodes in self.of_rows(rows, limits):
            terms = nodes.weighed(log_p(nodes.points))
            top = terms.max(axis=1, keepdims=True)
            share = np.exp(terms - np.where(np.isfinite(top), top, 0.0))
            share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
            places = nodes.points[:, nodes.columns].reshape(*share.shape, -1)
            if draw is None:
                found = np.einsum("mq,mqk->mk", share, places)
            else:
                chosen = (np.cumsum(share, axis=1) < draw.random(len(share))[:, None]).sum(axis=1)
                found = places[np.arange(len(share)), np.minimum(chosen, share.shape[1] - 1)]
            out[np.ix_(nodes.rows, nodes.columns)] = found
        return out


# ---- rows of a fit ----------------------------------------------------------------------------------------------------------


def with_points(table: CheckedRows) -> CheckedRows:
    """Return the rows of a fit with a point in each interval, with several where other cells do not tell rows apart."""
    limits = table.limits
    if not len(limits):
        return table
    inputs = IntervalPoints.of(table.rows, limits, table.weights)(table.rows, limits)
    levels = _levels(inputs, table, limits.rows)
    copies = levels.shape[1]
    some = limits.rows
    again = np.concatenate([np.arange(len(table.rows)), np.tile(some, copies - 1)])
    level = np.zeros(len(again))
    level[some], level[len(table.rows) :] = levels[:, 0], levels[:, 1:].T.ravel()
    rows, weights = table.rows[again], table.weights[again].copy()
    weights[np.isin(again, some)] /= copies
    wide = limits.take(again)
    for j in limits.columns.tolist():
        low, high = limits.ends(table.rows[:, j], j)
        used = ~np.isnan(high) & (table.weights > 0.0)
        if not (low[used] != high[used]).any():
            continue
        A = _inputs(np.delete(inputs, j, axis=1), table.n_numeric - 1)
        law = CensoredRegression.fit(A[used], low[used], high[used], table.weights[used])
        where, lower, upper = wide.of(j)
        rows[where, j] = law.between(A[again[where]], lower, upper, level[where, None])[:, 0]
    return replace(table, rows=rows, weights=weights, limits=IntervalCells.none(len(rows)))


def _levels(inputs: np.ndarray, table: CheckedRows, rows: np.ndarray) -> np.ndarray:
    """Return levels at which the intervals of rows have their points, (m, k): one by their other cells, or several fixed ones."""
    others = np.delete(inputs, table.limits.columns, axis=1)
    A = (
        _inputs(others, table.n_numeric - len(table.limits.columns))[rows]
        if others.shape[1]
        else np.zeros((len(rows), 1))
    )
    if 2 * len(np.unique(A, axis=0)) <= len(rows):
        return np.tile(_SPREAD_LEVELS, (len(rows), 1))
    return np.clip(np.abs((_WAVES * A.sum(axis=1, keepdims=True)) % 2.0 - 1.0), 1e-6, 1.0 - 1e-6)


def _inputs(others: np.ndarray, n_numeric: int) -> np.ndarray:
    """Return other cells as standardised numbers without gaps, and the frequent words of columns of words as 0 and 1."""
    numbers = others[:, :n_numeric]
    known = ~np.isnan(numbers)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, numbers, 0.0).sum(axis=0) / count
    about = np.where(known, numbers - centre, 0.0)
    spread = np.sqrt((about**2).sum(axis=0) / count)
    parts = [about / np.where(spread > 0.0, spread, 1.0)]
    for codes in others[:, n_numeric:].T:
        words, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
        frequent = words[np.argsort(-counts, kind="stable")[:_MOST_WORDS]]
        parts.append((codes[:, None] == np.sort(frequent)).astype(np.float64))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(others), 1))
