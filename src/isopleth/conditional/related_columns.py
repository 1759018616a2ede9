"""Columns that say most about each column of a wide table: its law is asked of these, and not of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from isopleth.core.threads import check_stopped, slices

# Columns from which on a table is wide, and columns that a law has as inputs there, as the reasons of anomalies have.
_WIDE, _INPUTS = 24, 16
# Scores count as at most this.
_FARTHEST = 4.0
# Columns that are compared with all others at once: an interrupt waits for these.
_AT_ONCE = 256
# Strengths are compared on this grid: equal ones, of copies of a column, must not be ordered by rounding errors.
_GRID = 1e-9


def is_wide(columns: int) -> bool:
    """Return whether a table has so many columns that the law of each is asked of some others only."""
    return columns > _WIDE


def related_columns(scored: np.ndarray, n_numeric: int, sizes: Sequence[int], order: np.ndarray) -> list[np.ndarray]:
    """Return for each column of a wide table the others that it depends on most, in the order given; of a narrow one all.

    Parameters
    ----------
    scored : ndarray of shape (n, d)
        Rows: scores of numbers, then codes of words; NaN is a gap.
    n_numeric : int
        Number of columns of numbers.
    sizes : sequence of int
        Number of words of each column of words.
    order : ndarray of shape (d,)
        Columns in an order that does not depend on that of the table.
    """
    d = scored.shape[1]
    if not is_wide(d):
        return [order[order != j] for j in range(d)]
    strength = np.rint(dependence(scored, n_numeric, sizes) / _GRID)
    np.fill_diagonal(strength, -1.0)
    found = []
    for j in range(d):
        first = np.sort(np.argsort(-strength[j, order], kind="stable")[:_INPUTS])
        found.append(order[first])
    return found


def dependence(scored: np.ndarray, n_numeric: int, sizes: Sequence[int]) -> np.ndarray:
    r"""Return the share of variance that each column explains of each other one, (d, d), symmetric.

    Of two columns of numbers it is the largest squared correlation of the scores and of their distances from the middle, so
    that a bent line is seen, of a word and a number the correlation ratio, and of two words the contingency over its largest
    value :math:`\min(r, s) - 1`; shares that independent words have by chance are taken off.
    """
    n, d = scored.shape
    numbers = _number_features(scored[:, :n_numeric])
    out = np.zeros((d, d))
    for part in slices(n_numeric, _AT_ONCE):
        check_stopped()
        squares = [(one[:, part].T @ two) ** 2 for one in numbers for two in numbers]
        out[part, :n_numeric] = np.max(squares, axis=0)
    words, starts = _indicators(scored[:, n_numeric:], sizes)
    levels = np.diff(starts)
    for k, (first, last) in enumerate(pairwise(starts)):
        check_stopped()
        own = words[:, first:last]
        sums = [np.asarray(own.T @ each) for each in numbers]
        chance = (levels[k] - 1.0) / n
        explained = np.max([(each**2).sum(axis=0) for each in sums], axis=0)
        out[n_numeric + k, :n_numeric] = np.maximum(explained - chance, 0.0) / (1.0 - chance)
        pairs = np.asarray((own.T @ words).power(2).sum(axis=0)).ravel()
        both = np.add.reduceat(pairs, starts[:-1]) - 1.0
        free, least = (levels[k] - 1.0) * (levels - 1.0) / n, np.maximum(np.minimum(levels[k], levels) - 1.0, 1.0)
        out[n_numeric + k, n_numeric:] = np.maximum(both - free, 0.0) / least
    out[:n_numeric, n_numeric:] = out[n_numeric:, :n_numeric].T
    return out


def _number_features(scored: np.ndarray) -> list[np.ndarray]:
    """Return scores and their distances from the middle, (n, k) each, of mean 0 and length 1; gaps are 0."""
    clipped = np.clip(scored, -_FARTHEST, _FARTHEST)
    return [_unit(clipped), _unit(np.abs(clipped))]


def _unit(values: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and length 1, of zeros where they are constant; gaps are 0."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    out = np.where(known, filled - filled.sum(axis=0) / np.maximum(known.sum(axis=0), 1), 0.0)
    length = np.sqrt((out**2).sum(axis=0))
    return np.asarray(out / np.where(length > 1e-12, length, np.inf))


def _indicators(codes: np.ndarray, sizes: Sequence[int]) -> tuple[csr_array, np.ndarray]:
    """Return a column for each word over the root of its rows, and where the words of each column begin."""
    starts = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.intp))])
    rows, columns = np.nonzero(~np.isnan(codes))
    places = starts[columns] + codes[rows, columns].astype(np.intp)
    counts = np.bincount(places, minlength=starts[-1])
    values = 1.0 / np.sqrt(counts[places])
    return csr_array((values, (rows, places)), shape=(len(codes), int(starts[-1]))), starts
