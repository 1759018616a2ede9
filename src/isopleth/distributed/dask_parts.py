"""Partitions of a Dask collection as parts of the rows; only sums are sent between workers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Generic

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from dask.utils import is_dataframe_like

from isopleth.core.errors import InputError
from isopleth.core.parameters import column_labels
from isopleth.core.parts import Add, Parts, S, part_sums
from isopleth.core.threads import processors_taken
from isopleth.tables.given import refuse_names

# Sums that are merged in one task.
FAN = 8


class DaskParts(Parts):
    """Partitions of a ``dask.array`` or ``dask.dataframe``, computed on the current client.

    A pass is one graph. Eight neighbours at a time are merged in the order of the partitions, so that answers always have the
    same bits; a task changes none of its inputs, so that any of them can be run again.
    """

    def __init__(self, rows: Any, weights: Any = None, what: str = "X") -> None:
        rows = _table(rows, what)
        columns = list(rows.columns) if is_frame(rows) else None
        self.names = columns if columns and all(isinstance(name, str) for name in columns) else None
        self.n_features = int(rows.shape[1])
        self._labels, self.what = column_labels(columns, self.n_features), what
        self._blocks: list[Delayed] = list(np.ravel(rows.to_delayed()))
        self._weights: list[Any] = [None] * len(self._blocks) if weights is None else _weights(weights, rows, what)

    @property
    def labels(self) -> list[str]:
        """Names of the columns for messages, including names that are no strings."""
        return self._labels

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return the sums of a pass over the parts; see :meth:`isopleth.core.parts.Parts.sums`."""
        # One node of the graph, which goes to a worker once and not with every partition.
        work = delayed(_Pass(start, add, self.labels, self.what), pure=False, traverse=False)
        of_part = delayed(_of_part, pure=False)
        return computed_sums(
            [of_part(work, *part, i) for i, part in enumerate(zip(self._blocks, self._weights, strict=True))]
        )


class _Pass(Generic[S]):
    """Functions of a pass over the parts."""

    def __init__(self, start: Callable[[], S], add: Add[S], labels: list[str], what: str) -> None:
        self.start, self.add, self.labels, self.what = start, add, labels, what


def _of_part(work: _Pass[S], rows: Any, weights: Any, number: int) -> S:
    with processors_taken():
        return part_sums(work.start, work.add, *numbers(rows, weights), work.labels, place(number), work.what)


def computed_sums(of_parts: list[Delayed]) -> Any:
    """Compute the sums of all parts, merged eight neighbours at a time in their order."""
    merged, level = delayed(_merged_sums, pure=False), of_parts
    while len(level) > 1:
        level = [merged(*level[i : i + FAN]) for i in range(0, len(level), FAN)]
    return dask.compute(level[0])[0]


def _merged_sums(first: S, *others: S) -> S:
    total = copy.deepcopy(first)
    for sums in others:
        total = total.merge(sums)
    return total


def place(number: int) -> str:
    """Return the name of a partition for messages."""
    return f"partition {number}"


def numbers(rows: Any, weights: Any) -> tuple[Any, Any]:
    """Return a partition as arrays, with NaN for missing cells of a frame."""
    plain = rows.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(rows, "to_numpy") else rows
    return plain, weights.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(weights, "to_numpy") else weights


def is_frame(rows: Any) -> bool:
    """Return whether a Dask collection has columns with names."""
    return bool(is_dataframe_like(rows))


def check_collection(rows: Any, what: str) -> None:
    """Refuse rows that are neither a two-dimensional Dask array nor a Dask frame."""
    if not is_frame(rows) and not (isinstance(rows, da.Array) and rows.ndim == 2):
        kind = f"{type(rows).__name__} of {rows.ndim} dimensions" if isinstance(rows, da.Array) else type(rows).__name__
        raise InputError(f"{what} is {kind}; expected a two-dimensional dask.array or a dask.dataframe.")


def _table(rows: Any, what: str) -> Any:
    """Return rows with all columns in one chunk."""
    check_collection(rows, what)
    if is_frame(rows):
        _check_frame(rows, what)
        return rows
    if math.isnan(rows.shape[1]) or not rows.shape[1]:
        raise InputError(f"{what} has shape {rows.shape}; expected a number of columns that is known, at least one.")
    if rows.dtype.kind not in "fiub":
        raise InputError(f"{what} is of dtype {rows.dtype}; expected numbers.")
    return rows.rechunk({1: -1})


def _check_frame(rows: Any, what: str) -> None:
    """Refuse frames with columns of other types than numbers."""
    refuse_names(list(rows.columns), what)
    for name, kind in rows.dtypes.items():
        if getattr(kind, "kind", "O") not in "fiub":
            raise InputError(
                f"{what} has something other than numbers in column {str(name)!r} ({kind}); drop or encode it."
            )


def _weights(weights: Any, rows: Any, what: str) -> list[Delayed]:
    """Return the weights of each partition."""
    if getattr(weights, "ndim", None) != 1 or not hasattr(weights, "to_delayed"):
        raise InputError(
            f"sample_weight of {what} is {type(weights).__name__}; expected a one-dimensional dask.array or a column of a "
            "dask.dataframe."
        )
    known = hasattr(weights, "chunks") and hasattr(rows, "chunks")
    if known and weights.shape == rows.shape[:1]:  # never so where lengths are not known, which are NaN
        weights = weights.rechunk((rows.chunks[0],))
    blocks = list(np.ravel(weights.to_delayed()))
    n = rows.npartitions if is_frame(rows) else rows.numblocks[0]
    if len(blocks) != n or (known and _differ(weights.chunks[0], rows.chunks[0])):
        raise InputError(
            f"sample_weight of {what} has {len(blocks)} partitions of other lengths than the {n} of the rows; expected one "
            "weight a row, partitioned alike."
        )
    return blocks


def _differ(some: tuple[float, ...], others: tuple[float, ...]) -> bool:
    """Return whether known lengths differ."""
    return any(a != b and not math.isnan(a + b) for a, b in zip(some, others, strict=True))
