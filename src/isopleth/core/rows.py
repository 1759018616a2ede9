"""Equal rows, keys of rows, and folds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.core.threads import slices

# Values are equal if they differ by rounding only: by less than this share of the range of most of them, or of the whole range if
# they agree in eleven digits, because most values may be one. If most are 0, there is no range and are no digits: a share of the
# range of the others decides. If all agree in eleven digits, the column is constant. Whole numbers are exact: they have no
# rounding, however many digits they share.
_ROUNDING, _DIGITS, _OF_OTHERS = 1e-9, 4e-12, 2e-11
# From here on, float64 holds only some of the whole numbers: those below are exact.
ALL_INTEGERS = 2**53

# Cells of a table that stay in the cache of a core.
IN_CACHE = 2**17


def merge_rows(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distinct rows of positive weight in lexical order, their summed weights, and the place of each row (or -1)."""
    positive = w > 0
    kept = (X if positive.all() else X[positive]) + 0.0  # -0.0 is 0.0
    if kept.shape[1] == 1:
        rows, inverse = np.unique(kept, return_inverse=True)
        rows = rows[:, None]
    else:
        order, starts = _runs(kept)
        rows, inverse = kept[order[starts]], _inverse(order, starts)
    return rows, *_summed(inverse.ravel(), positive, w)


def merge_without_rounding(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return :func:`merge_rows` of rows whose numbers that differ by rounding are made equal."""
    return merge_rows(without_rounding(X), w)


def merge_with_gaps(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return :func:`merge_rows` of rows in which missing cells, NaN, are equal to each other."""
    gaps = np.isnan(X)
    rows, weights, place = merge_rows(np.column_stack([np.where(gaps, 0.0, X), gaps]), w)
    return np.where(rows[:, X.shape[1] :] > 0.0, np.nan, rows[:, : X.shape[1]]), weights, place


def _summed(inverse: np.ndarray, positive: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the summed weights of distinct rows, and the place of each row, -1 without weight."""
    place = np.full(len(w), -1)
    place[positive] = inverse
    return np.bincount(inverse, weights=w[positive]), place


def lexical_order(X: np.ndarray) -> np.ndarray:
    """Return the lexical order of rows without gaps."""
    return _runs(X)[0]


def first_equal(X: np.ndarray) -> np.ndarray:
    """Return for each row the place of the first row that is equal to it."""
    order, starts = _runs(X)
    out = np.empty(len(X), dtype=np.intp)
    out[order] = np.repeat(order[starts], np.diff(starts, append=len(X)))
    return out


def _runs(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lexical order of rows, and where runs of equal ones start. One sort for each column beats np.unique.

    Only rows that are not alone with their first number are sorted by the others.
    """
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    tied = first[1:] == first[:-1]
    if not tied.any():
        return order, np.arange(len(order))
    several = np.append(tied, False) | np.append(False, tied)
    rows = X[order[several]]
    by_all = np.lexsort(rows.T[::-1])
    order[several], rows = order[several][by_all], rows[by_all]
    starts = np.ones(len(order), dtype=bool)
    starts[np.flatnonzero(several)[1:]] = (rows[1:] != rows[:-1]).any(axis=1)
    return order, np.flatnonzero(starts)


def _inverse(order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the run of each row."""
    inverse = np.empty(len(order), dtype=np.intp)
    inverse[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return inverse


def distinct_rows(X: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merge rows that are equal up to rounding, in an order that depends on neither the order of rows and columns nor on units.

    Folds and samples drawn by places in this order share that. Rows of weight 0 are left out; `place` has the index of each row
    of `X` among the distinct ones, or -1.
    """
    positive = w > 0
    ranks, kept, order = _ranked(X[positive] + 0.0)  # -0.0 is 0.0
    starts = np.arange(len(order))
    if ranks[order[-1], 0] < starts[-1]:  # the first column has ties
        order, starts = _runs(ranks)
    weights, place = _summed(_inverse(order, starts), positive, w)
    # For rows with equal keys, which are permutations of one another, the weight decides, then the lexical order.
    first = order[starts]
    order = np.lexsort([weights, _keys(ranks[first])])
    new = np.empty(len(first), dtype=np.intp)
    new[order] = np.arange(len(first))
    place[place >= 0] = new[place[place >= 0]]
    return kept[first[order]], weights[order], place


def keys_by_rank(rows: np.ndarray) -> np.ndarray:
    """Return a key for each of the distinct `rows`, from ranks of values, that does not depend on the order of rows or columns.

    A sum over columns alone would give the same key to rows whose ranks are permutations of one another. So each column gets a
    key too, from its ranks and the first keys of the rows, and the second keys of the rows combine ranks with keys of columns.
    """
    return _keys(_ranked(rows)[0])


def _keys(found: np.ndarray) -> np.ndarray:
    """Return the keys of rows from the ranks of their values."""
    used = found.any(axis=0)  # models drop constant columns, so these must not change keys
    found = found if used.all() else found[:, used]
    if found.shape[1] < 2:
        return np.asarray(found.sum(axis=1, dtype=np.uint64))
    columns, out = _keys_of_columns(found), np.empty(len(found), dtype=np.uint64)
    for part in _row_blocks(found):
        out[part] = mixed(mixed(found[part], 0) ^ columns, 4).sum(axis=1, dtype=np.uint64)
    return out


def _keys_of_columns(found: np.ndarray) -> np.ndarray:
    """Return a key for each column from hashed ranks and from first keys of the rows."""
    total = np.zeros(found.shape[1], dtype=np.uint64)
    for part in _row_blocks(found):
        ranks = mixed(found[part], 0)
        first = mixed(ranks.sum(axis=1, dtype=np.uint64), 1)
        total += mixed(ranks ^ first[:, None], 2).sum(axis=0, dtype=np.uint64)
    return mixed(total, 3)


def _row_blocks(X: np.ndarray) -> list[slice]:
    """Return slices of rows that stay in the cache of a core."""
    return slices(len(X), max(1, IN_CACHE // max(X.shape[1], 1)))


def columns_by_key(rows: np.ndarray) -> np.ndarray:
    """Return the columns in an order that does not depend on their order, nor on that of the rows or on units."""
    return np.argsort(_keys_of_columns(_ranked(rows)[0]), kind="stable")


def _ranked(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the place of each value in its column, the rows without rounding, and the order of the first column."""
    columns = np.array(rows.T, order="C")
    ranks, first = np.empty(columns.shape, dtype=np.uint64), np.empty(0, dtype=np.intp)
    # Some columns at a time, since what is computed on the way takes several times their memory.
    for some in slices(len(columns), max(1, IN_CACHE // max(len(rows), 1))):
        order = np.argsort(columns[some], axis=1)
        ordered = np.take_along_axis(columns[some], order, axis=1)
        starts = np.ones(ordered.shape, dtype=bool)
        starts[:, 1:] = differ(ordered)
        steps = np.cumsum(starts, axis=1, dtype=np.uint64) - np.uint64(1)
        for j in np.flatnonzero(~starts.all(axis=1)):
            columns[some.start + j, order[j]] = ordered[j, starts[j]][steps[j]]
        np.put_along_axis(ranks[some], order, steps, axis=1)
        first = order[0] if some.start == 0 else first
    return ranks.T, columns.T, first


def column_blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the columns of rows some at a time, as the rows of arrays that stay in the cache of a core."""
    for some in slices(rows.shape[1], max(1, IN_CACHE // max(len(rows), 1))):
        yield np.array(rows[:, some].T, order="C")


def rounding_of(ordered: np.ndarray) -> np.ndarray:
    """Return how far apart numbers are that differ by rounding: a share of the range of most of them, without codes."""
    others = ordered.shape[-1] // 4
    share = _ROUNDING * ordered  # ranges of giant numbers would overflow
    return np.asarray((share[..., ordered.shape[-1] - 1 - others :] - share[..., : others + 1]).min(axis=-1))


def differ(ordered: np.ndarray) -> np.ndarray:
    """Tell of each value, in ascending order along the last axis, whether it differs from the one before beyond rounding."""
    if _far_apart(ordered):
        return np.ones(ordered.shape[:-1] + (ordered.shape[-1] - 1,), dtype=bool)
    every = _ROUNDING * ordered[..., -1:] - _ROUNDING * ordered[..., :1]
    digits = np.where(_whole(ordered)[..., None], 0.0, _DIGITS * np.abs(ordered[..., 1:]))
    digits = np.where(every > _ROUNDING * digits[..., -1:], np.minimum(digits, every), digits[..., -1:])
    apart = rounding_of(ordered)
    for j in np.argwhere(apart <= _OF_OTHERS * every[..., 0]):
        least = _OF_OTHERS * _inner_range(ordered[tuple(j)])
        apart[tuple(j)] = np.where(apart[tuple(j)] <= _ROUNDING * least, least, apart[tuple(j)])
    with np.errstate(over="ignore"):
        return np.asarray(np.diff(ordered) > np.maximum(apart[..., None], digits))


def _far_apart(ordered: np.ndarray) -> bool:
    """Tell whether all values differ by more than any rule of rounding asks for: most columns of numbers need no other look."""
    if ordered.ndim > 1 or len(ordered) < 2:
        return False
    low, high = float(ordered[0]), float(ordered[-1])
    most = _ROUNDING * high - _ROUNDING * low + _DIGITS * max(abs(low), abs(high))
    with np.errstate(over="ignore"):
        return bool(np.diff(ordered).min() > most)


def _whole(values: np.ndarray) -> np.ndarray:
    """Tell along the last axis whether all values are whole numbers."""
    with np.errstate(invalid="ignore"):
        return np.asarray(((values == np.rint(values)) & (np.abs(values) < ALL_INTEGERS)).all(axis=-1))


def _inner_range(ordered: np.ndarray) -> float:
    """Return the range of ascending numbers without the largest and the smallest, which may be codes for missing cells."""
    low, high = ordered[0], ordered[-1]
    inner = ordered[(ordered > low + _DIGITS * abs(low)) & (ordered < high - _DIGITS * abs(high))]
    return float(inner[-1] - inner[0]) if len(inner) else 0.0


@dataclass(frozen=True)
class Rounding:
    """Numbers of each column that differ from a smaller one by rounding, and that smaller one, which stands for both."""

    found: list[np.ndarray]  # for each column, ascending
    instead: list[np.ndarray]

    @classmethod
    def of(cls, X: np.ndarray, constants: bool = False) -> Self:
        """Find the numbers of rows of numbers and NaN that differ by rounding.

        With `constants` a column whose numbers all agree in eleven digits has one value; identifiers of more digits have many.
        """
        pairs = [cls._of_column(column, constants) for columns in column_blocks(X) for column in columns]
        return cls([found for found, _ in pairs], [instead for _, instead in pairs])

    @staticmethod
    def _of_column(column: np.ndarray, constants: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of a column that change, and those that stand in their place."""
        ordered = np.sort(column)
        ordered = ordered[: np.searchsorted(ordered, np.nan)]  # NaN comes last
        if len(ordered) < 2:
            return ordered[:0], ordered[:0]
        if _far_apart(ordered):
            return ordered[:0], ordered[:0]
        starts = np.concatenate([[True], differ(ordered)])
        if constants and ordered[-1] - ordered[0] <= _DIGITS * abs(ordered[-1]) and not _whole(ordered):
            starts[1:] = False
        first = ordered[starts][np.cumsum(starts) - 1]
        changed = first != ordered
        return ordered[changed], first[changed]

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return rows in which the smaller number stands; the same array if no number changes."""
        out = X
        for j, (found, instead) in enumerate(zip(self.found, self.instead, strict=True)):
            if len(found):
                place = np.minimum(np.searchsorted(found, X[:, j]), len(found) - 1)
                equal = found[place] == X[:, j]
                out = X.copy() if out is X else out
                out[equal, j] = instead[place[equal]]
        return out


def without_rounding(X: np.ndarray) -> np.ndarray:
    """Return rows of numbers and NaN in which values that differ by rounding are equal."""
    return Rounding.of(X).apply(X)


def mixed(keys: np.ndarray, seed: int) -> np.ndarray:
    """Return hashed keys: every bit depends on every bit of `keys` and of the seed."""
    out = keys ^ np.uint64((int(seed) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64)
    for shift, factor in ((32, 0xE9846AF9B1A615D), (29, 0xD6E8FEB86659FD93), (32, 1)):
        out ^= out >> np.uint64(shift)
        out *= np.uint64(factor)
    return out


def symmetric_keys(X: np.ndarray) -> np.ndarray:
    """Return a 64-bit number for each row, for drawing rows, that does not depend on the order of the columns."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    keys = np.zeros(len(X), dtype=np.uint64)
    for j in range(X.shape[1]):
        keys += mixed(bits[:, j], 0)
    return keys


# Cells of a grid for a number of the usual size of its column, and the border of the first: no usual number lies on a border.
_CELLS, _BORDER, _GAP = 2.0**20, 0.381966, -1e300


def row_draws(rows: np.ndarray) -> np.ndarray:
    """Return a uniform 64-bit number for each row, by which to draw some: those with the smallest numbers.

    They go by what rows hold, NaN being equal to NaN, and not by the order of rows and columns, units or rounding errors. Equal
    rows are drawn independently of each other.
    """
    keys = grid_keys(rows)
    order = np.argsort(keys, kind="stable")
    starts = np.append(True, np.diff(keys[order]) != 0)
    several = np.flatnonzero(~starts | ~np.append(starts[1:], True))
    # Permutations of one another, and numbers of one cell of the grid, have to be ordered by their contents.
    if len(several) and rows.shape[1]:
        tied = order[several]
        cells = np.stack([_on_grid(column)[tied] for column in rows.T], axis=1)
        exact = np.where(np.isnan(rows[tied]), _GAP, rows[tied])
        order[several] = tied[np.lexsort([_keys(_bits(exact)), _keys(_bits(cells)), keys[tied]])]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(keys)), 0))
    draws = np.empty_like(keys)
    draws[order] = mixed(mixed(keys[order], 5) + (np.arange(len(keys)) - first).astype(np.uint64), 6)
    return draws


def grid_keys(rows: np.ndarray) -> np.ndarray:
    """Return a 64-bit number for each row that rounding errors, units, and the order of the columns do not change."""
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:  # one after another: the cells of all take the memory of the rows
        keys += symmetric_keys(_on_grid(column)[:, None])
    return keys


def _on_grid(column: np.ndarray) -> np.ndarray:
    """Return the cell of each number on a grid whose step is a share of the median size of the numbers."""
    sizes = np.abs(column[(column != 0.0) & np.isfinite(column)])
    step = float(np.median(sizes)) / _CELLS if len(sizes) else 1.0
    with np.errstate(over="ignore"):
        cells = np.floor(column / (step or 1.0) + _BORDER)
    return np.where(np.isnan(cells), _GAP, cells)


def _bits(cells: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(cells + 0.0).view(np.uint64)


def row_keys(X: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each row."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    # With fixed multipliers and shifts, hashes are the same in every process that loads a model.
    keys = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for j in range(X.shape[1]):
        keys ^= bits[:, j]
        keys *= np.uint64(0xBF58476D1CE4E5B9)
        keys ^= keys >> np.uint64(29)
    return keys


FOLDS = 5


def folds_of(n: int, seed: int, folds: int = FOLDS) -> np.ndarray:
    """Return the fold of each of `n` distinct rows by its place (see :func:`distinct_rows`); sizes differ by at most one."""
    return np.random.default_rng(seed).permutation(n) % max(1, min(folds, n))


def held_out_parts(n: int, cv: int | float) -> list[np.ndarray]:
    """Return masks of the rows that are held out in turn: `cv` folds of `n` distinct rows, or one share `cv` of them."""
    if cv >= 1:
        fold = folds_of(n, 0, int(cv))
        return [fold == k for k in range(fold.max() + 1)]
    count = min(max(1, round(cv * n)), n - 1)  # at least one row on each side
    return [np.random.default_rng(0).permutation(n) < count]


def sample_places(n: int, most: int) -> np.ndarray:
    """Return places of at most `most` of `n` distinct rows; the order of these does not depend on that of the table."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).permutation(n)[:most])


def systematic_sample(shares: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `n` places in ascending order, each as often as `n` times its share, rounded up or down (systematic sampling)."""
    total = np.cumsum(shares)
    places = np.searchsorted(total, (np.arange(n) + rng.uniform()) * (total[-1] / n), side="right")
    return np.asarray(np.minimum(places, np.flatnonzero(shares)[-1]))


def _rounded(x: float) -> int:
    """Return a number that is the same for nonnegative `x` that differ by rounding errors, and another one from 0.1 % on."""
    fraction, exponent = math.frexp(x) if math.isfinite(x) else (1.0, 1025)
    return (exponent + 1100) * 2**11 + round(fraction * 2**10)


@dataclass
class RunningFolds:
    """Folds of rows that arrive one after another: `folds` consecutive rows get different ones, in a random order.

    The order depends on the rounded norm of the first row; otherwise many short parts of rows would all fill the same folds.
    """

    folds: int  # number of folds
    seed: int  # seed of the orders
    seen: int = 0  # number of rows so far
    mark: int = 0  # rounded norm of the first of them

    def deal(self, rows: np.ndarray) -> np.ndarray:
        """Return the folds of the next rows."""
        if not len(rows):
            return np.empty(0, dtype=np.intp)
        if not self.seen:
            self.mark = _rounded(float(rows[0] @ rows[0]))
        first, ahead = divmod(self.seen, self.folds)
        runs = -(-(ahead + len(rows)) // self.folds)
        draws = -(-self.folds // 4)  # one counter of the generator gives four numbers
        numbers = np.random.Philox(key=np.array([self.seed, self.mark], dtype=np.uint64), counter=first * draws)
        order = np.argsort(numbers.random_raw(4 * draws * runs).reshape(runs, -1)[:, : self.folds], axis=1)
        self.seen += len(rows)
        return np.asarray(order.ravel()[ahead : ahead + len(rows)])

    def merge(self, other: RunningFolds) -> Self:
        """Add the count of rows of `other`, and return this one."""
        if not self.seen:
            self.mark = other.mark
        self.seen += other.seen
        return self


def mask_of_cells(cells: Iterable[tuple[int, int]], shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask of cells that are given by row and column."""
    out = np.zeros(shape, dtype=bool)
    for cell in cells:
        out[cell] = True
    return out
