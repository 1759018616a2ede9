"""A sample of the rows of a table in blocks, drawn by what rows hold.

Each row has a key, a hash of its cells. Whether a row is in the sample depends on its key and on how many rows equal it, so that
neither the order of the rows nor the blocks in which they come matter. Copies are counted: a row that occurs c times is drawn as
often as c independent rows would be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeVar

import narwhals as nw
import numpy as np
from scipy.stats import binom

from isopleth.core.errors import InputError, whole_number
from isopleth.core.rows import mixed, row_keys
from isopleth.core.threads import processors_taken
from isopleth.tables.cells import is_missing
from isopleth.tables.given import Given
from isopleth.tasks.anomaly.fit_sample import FirstLook

MAX_ROWS = 100_000
# Share of distinct rows that are looked at, over that of the rows that are drawn: up to so many copies the number of drawn copies
# has exactly the law of independent rows.
_AMPLE = 4
# Steps of a grid for floats of the usual size of their column, or of its range if that is smaller: noise of rounding changes few.
_STEPS = 2.0**6
_RANGE = 2.0**-26
_GAP = -1e300  # stands for a missing cell


class _Merged(Protocol):
    def merge(self, other: Self) -> Self: ...


M = TypeVar("M", bound=_Merged)


class TableBlocks(Protocol):
    """Table in blocks of rows, which are lists of frames or arrays with as many rows each, such as X and y."""

    what: str

    def total(self, of_block: Callable[..., M], *shared: Any) -> M:
        """Return the merged ``of_block(block, number, *shared)`` of all blocks, in their order."""
        ...


class MemoryBlocks:
    """Tables in memory as one block."""

    def __init__(self, tables: Sequence[Any], what: str = "X") -> None:
        self.tables, self.what = list(tables), what

    def total(self, of_block: Callable[..., M], *shared: Any) -> M:
        """Return what is asked of the only block."""
        return of_block(self.tables, 0, *shared)


@dataclass
class _TableLook:
    """Findings of a first pass: sizes, ranges and common rows, and the number of rows of each block."""

    first: FirstLook
    lengths: list[int]

    def merge(self, other: _TableLook) -> _TableLook:
        """Add the blocks of `other`, which follow."""
        return _TableLook(self.first.merge(other.first), self.lengths + other.lengths)

    @property
    def steps(self) -> np.ndarray:
        """Widths of the cells of the grid of each column."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach = (self.first.high - self.first.low) * _RANGE
        of_size = self.first.steps / _STEPS
        return np.where(np.isfinite(reach) & (reach > 0.0), np.minimum(of_size, reach), of_size)


@dataclass
class _Keys:
    """Distinct rows by their hashes: keys that draw them, their copies, whether they may be common, and their first places."""

    hashes: np.ndarray
    keys: np.ndarray  # the same for any order of the columns of a frame
    counts: np.ndarray
    common: np.ndarray
    places: np.ndarray

    @classmethod
    def of(
        cls, hashes: np.ndarray, keys: np.ndarray, counts: np.ndarray, common: np.ndarray, places: np.ndarray
    ) -> Self:
        """Merge rows with equal hashes."""
        found, first, place = np.unique(hashes, return_index=True, return_inverse=True)
        total = np.bincount(place, counts, len(found)).astype(np.int64)
        maybe = np.zeros(len(found), dtype=bool)
        np.logical_or.at(maybe, place, common)
        least = places[first].copy()
        np.minimum.at(least, place, places)
        return cls(found, keys[first], total, maybe, least)

    def merge(self, other: _Keys) -> _Keys:
        """Add the rows of `other`."""
        names = [each.name for each in fields(self)]
        return _Keys.of(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))


@dataclass
class _Taken:
    """Rows of several blocks, one after another."""

    blocks: list[list[Any]]

    def merge(self, other: _Taken) -> _Taken:
        """Add the rows of the blocks that follow."""
        return _Taken(self.blocks + other.blocks)

    @property
    def all(self) -> list[Any]:
        """Rows of all blocks, by table."""
        known = [block for block in self.blocks if block] or self.blocks[:1]
        return [_joined(each) for each in zip(*known, strict=True)]


def drawn_rows(blocks: TableBlocks, most: int, seed: int = 0) -> tuple[list[Any], int]:
    """Return a sample of about `most` rows in their order, or all if there are no more, and the number of all rows."""
    look = blocks.total(_looked, blocks.what, _AMPLE * most)
    n = sum(look.lengths)
    if n <= most:
        return blocks.total(_taken, np.cumsum([0, *look.lengths]), None).all, n
    share = min(1.0, _AMPLE * most / n)
    while True:
        keys = blocks.total(
            _keyed, blocks.what, np.cumsum([0, *look.lengths]), look.steps, look.first.common.keys, share, seed
        )
        if share == 1.0 or 2 * len(keys.hashes) > _AMPLE * most:
            break
        # Rows repeat: a larger share of the distinct ones has as many.
        share = min(1.0, share * max(2.0, _AMPLE * most / max(len(keys.hashes), 1)))
    common = keys.common & (keys.counts * _AMPLE * most > n)
    copies = _copies(keys, common, most / n, share, seed)
    order = np.argsort(keys.places, kind="stable")
    places = np.repeat(keys.places[order], copies[order])
    return blocks.total(_taken, np.cumsum([0, *look.lengths]), places).all, n


def last_rows(blocks: TableBlocks, most: int) -> tuple[list[Any], int]:
    """Return the last `most` rows, which follow each other as in the table, and the number of all rows."""
    starts = np.cumsum([0, *blocks.total(_lengths).values])
    n = int(starts[-1])
    return blocks.total(_taken, starts, np.arange(max(0, n - most), n)).all, n


def _copies(keys: _Keys, common: np.ndarray, rate: float, share: float, seed: int) -> np.ndarray:
    """Return how often each distinct row is drawn: by a binomial law with the rate of the sample.

    Rows below `share` were looked at. Those that would be drawn with a larger probability, since they have many copies, are drawn
    more often where they are, so that the mean number of drawn copies is right.
    """
    u = mixed(keys.keys, seed).astype(np.float64) / 2.0**64
    again = mixed(keys.keys, seed + 1_000_003).astype(np.float64) / 2.0**64
    any_of = -np.expm1(keys.counts * np.log1p(-rate)) if rate < 1.0 else np.ones(len(u))
    out = np.zeros(len(u), dtype=np.int64)
    single = ~common & (keys.counts == 1)
    out[single] = u[single] < rate
    exact = common | ((keys.counts > 1) & (any_of <= share))
    out[exact] = binom.isf(np.where(common, again, u)[exact], keys.counts[exact], rate)
    rest = ~single & ~exact & (u < share)
    mean = rate * keys.counts[rest] / share
    out[rest] = np.floor(mean) + (again[rest] < mean - np.floor(mean))
    return out


# ---- what is asked of a block: functions of modules, which can be sent to workers ---------------------------------------------


@dataclass
class _Lengths:
    values: list[int]

    def merge(self, other: _Lengths) -> _Lengths:
        """Add the lengths of the blocks that follow."""
        return _Lengths(self.values + other.values)


def _lengths(block: list[Any], number: int) -> _Lengths:
    return _Lengths([len(block[0])])


def _looked(block: list[Any], number: int, what: str, common: int) -> _TableLook:
    cells, _, _ = _cells(block, number, what)
    return _TableLook(FirstLook(cells.shape[1], common).add(cells), [len(cells)])


def _keyed(
    block: list[Any],
    number: int,
    what: str,
    starts: np.ndarray,
    steps: np.ndarray,
    common: np.ndarray,
    share: float,
    seed: int,
) -> _Keys:
    """Return the rows that may be common, and those whose key is below the share."""
    cells, exact, names = _cells(block, number, what)
    maybe = np.isin(row_keys(np.where(np.isnan(cells), _GAP, cells)), common)
    with np.errstate(over="ignore"):
        steps_of = np.where(exact, cells, np.floor(cells / steps + 0.381966))
    steps_of = np.where(np.isnan(steps_of), _GAP, steps_of)
    keys = _keys_of(steps_of, names)
    rows = np.flatnonzero(maybe | (mixed(keys, seed).astype(np.float64) / 2.0**64 < share))
    ones = np.ones(len(rows), dtype=np.int64)
    return _Keys.of(row_keys(steps_of[rows]), keys[rows], ones, maybe[rows], starts[number] + rows)


def _taken(block: list[Any], number: int, starts: np.ndarray, places: np.ndarray | None) -> _Taken:
    """Return the rows of a block at rising positions in the whole table; all without them, nothing where there are none."""
    if not len(block[0]):
        return _Taken([block] if number == 0 else [[]])
    if places is None:
        return _Taken([block])
    here = places[np.searchsorted(places, starts[number]) : np.searchsorted(places, starts[number + 1])]
    if not len(here) and number:
        return _Taken([[]])
    return _Taken([[_rows(table, here - starts[number]) for table in block]])


def _rows(table: Any, places: np.ndarray) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[places]
    return Given.of(table).rows(lambda n: places).table if getattr(table, "ndim", 2) != 1 else np.asarray(table)[places]


def _joined(tables: Sequence[Any]) -> Any:
    """Return rows of one table, of some blocks one after another."""
    if len(tables) == 1:
        return tables[0]
    if isinstance(tables[0], np.ndarray):
        return np.concatenate([_unmasked(table) for table in tables])
    if hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables)
    return nw.concat([nw.from_native(table, eager_only=True) for table in tables]).to_native()


def _unmasked(rows: np.ndarray) -> np.ndarray:
    """Return an array with NaN in the place of masked cells."""
    return np.ma.filled(rows.astype(np.float64), np.nan) if np.ma.isMaskedArray(rows) else rows


def _cells(block: list[Any], number: int, what: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the cells of a block as floats, NaN where one is missing, which columns are exact, and names.

    All columns but those of floats are exact. Columns of arrays are named by their places.
    """
    columns: list[tuple[np.ndarray, bool]] = []
    names: list[str] = []
    for table in block:
        if len(table) != len(block[0]):
            raise InputError(
                f"partition {number}: {what} has {len(block[0])} rows and its target {len(table)}; expected one value a row, "
                "partitioned alike."
            )
        if isinstance(table, np.ndarray):
            columns += [_of_array(column) for column in (table[:, None] if table.ndim == 1 else table).T]
            names += [str(place) for place in range(len(names), len(columns))]
        else:
            frame = nw.from_native(table, eager_only=True, allow_series=True)
            each = [frame] if isinstance(frame, nw.Series) else list(frame.iter_columns())
            columns += [_of_series(column) for column in each]
            names += [str(column.name) for column in each]
    return np.column_stack([cells for cells, _ in columns]), np.array([exact for _, exact in columns]), names


def _keys_of(cells: np.ndarray, names: list[str]) -> np.ndarray:
    """Return a key of each row that goes by the names of the columns and not by their order.

    With keys that are the same for any order of the cells, rows such as (1, 2) and (2, 1) would be drawn together.
    """
    bits, keys = np.ascontiguousarray(cells + 0.0).view(np.uint64), np.zeros(len(cells), dtype=np.uint64)
    for column, name in zip(bits.T, names, strict=True):
        keys += mixed(mixed(column, 0) ^ np.uint64(_hash_of(name)), 1)
    return keys


def _hash_of(text: str) -> int:
    """Return a hash of a text that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _of_array(column: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the cells of a column of an array: numbers, times as numbers, words by hashes."""
    column = _unmasked(column)
    if column.dtype.kind in "fiub":
        return column.astype(np.float64), column.dtype.kind != "f"
    if column.dtype.kind in "mM":
        ticks = column.astype(np.int64).astype(np.float64)
        return np.where(np.isnat(column), np.nan, ticks), True
    return _of_words(["" if is_missing(cell) else str(cell) for cell in column.tolist()]), True


def _of_series(column: nw.Series) -> tuple[np.ndarray, bool]:
    """Return the cells of a column of a frame: numbers, times as numbers, words by hashes."""
    dtype = column.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        cells = column.cast(nw.Float64).to_numpy().astype(np.float64)
        return cells, not dtype.is_float()
    if dtype in (nw.Datetime, nw.Duration) or dtype == nw.Date:
        return _of_array(np.asarray(column.to_numpy()).astype("m8[us]" if dtype == nw.Duration else "M8[us]"))
    return _of_words(["" if is_missing(cell) else str(cell) for cell in column.to_list()]), True


def _of_words(cells: list[str]) -> np.ndarray:
    """Return a number for each text, NaN for none, that is the same in every process."""
    numbers = {text: float(_hash_of(text) >> 11) for text in set(cells)} | {"": np.nan}
    return np.array([numbers[text] for text in cells], dtype=np.float64)


def sample(X: Any, max_rows: int = MAX_ROWS, *, seed: int = 0) -> Any:
    """Draw rows of a Dask collection, or of a table in memory, by what they hold.

    Parameters
    ----------
    X : dask.dataframe.DataFrame, dask.array.Array or table in memory
        Rows: numbers, words, truth values and times; cells may be missing.
    max_rows : int, default=100_000
        About how many rows to draw; all rows, in their order, if there are no more.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    pandas.DataFrame, ndarray, or frame of the library of `X`
        Rows in memory. Which rows are drawn depends neither on their order nor on the partitions.

    Raises
    ------
    InputError
        If `X` is no table, or `max_rows` is no positive whole number.

    Examples
    --------
    >>> import dask.array as da
    >>> from isopleth import distributed
    >>> X = da.random.default_rng(0).normal(size=(8000, 3), chunks=(1000, 3))
    >>> 900 < len(distributed.sample(X, 1000)) < 1100
    True
    """
    found, _ = drawn_rows(blocks_of([X], "X"), whole_number("max_rows", max_rows), seed)
    return found[0]


def blocks_of(tables: Sequence[Any], what: str) -> TableBlocks:
    """Return Dask collections, or tables in memory, as blocks."""
    lazy = [hasattr(table, "__dask_graph__") for table in tables]
    if all(lazy):
        from isopleth.distributed.dask_blocks import DaskBlocks  # Dask is there if rows are its own

        return DaskBlocks(tables, what)
    if any(lazy):
        raise InputError(f"{what} and its target are a Dask collection and one in memory; pass both of one kind.")
    first = Given.of(tables[0], what)
    if first.frame is None:
        first.refuse_no_table(np.shape(first.table))
    return MemoryBlocks([first.table if first.frame is None else tables[0], *tables[1:]], what)


def asked_of(block: list[Any], number: int, of_block: Callable[..., M], shared: tuple[Any, ...]) -> M:
    """Return what is asked of a block, by one thread and with the number of the block in errors."""
    try:
        with processors_taken():
            return of_block(block, number, *shared)
    except InputError as error:
        raise error if str(error).startswith("partition") else InputError(f"partition {number}: {error}") from error
