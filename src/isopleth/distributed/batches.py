"""Record batches of Arrow as parts of the rows of a fit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as arrow

from isopleth.core.errors import Hint, InputError, meant, quoted
from isopleth.core.parts import Add, Parts, S, part_sums, rows_of_a_chunk


class BatchParts(Parts):
    """Rows in record batches of Arrow, read in one pass or in several.

    The rows are divided into parts of equal size, however they are divided into batches, so that a fit has the same bits as one
    to a file with these rows.

    Parameters
    ----------
    source : object
        A ``pyarrow.dataset.Dataset``, ``pyarrow.Table`` or anything else with ``to_batches()``; an object with the Arrow stream
        interface, such as a relation of DuckDB or a frame of Polars; a function without arguments that returns an iterator of
        batches, called once for each pass; or an iterator of batches. An iterator can be read once only: if a fit needs several
        passes, its rows are written to a temporary file first. Batches are ``pyarrow.RecordBatch``, or objects
        with an Arrow interface.
    columns : sequence of str, optional
        Columns to use, in this order; all by default.
    weights : str, optional
        Column with the weight of each row, which is not used otherwise.
    chunk_rows : int, optional
        Rows in a part; by default as many as fit 8 MiB, as for files.

    Raises
    ------
    InputError
        If there is no batch, a column is missing or holds no numbers, or the batches have different columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from isopleth import RandomFeatureSOSREP
    >>> from isopleth.distributed import BatchParts, fit
    >>> table = pa.table({"a": np.random.default_rng(0).normal(size=5000)})
    >>> parts = BatchParts(lambda: iter(table.to_batches(max_chunksize=700)))
    >>> model = fit(RandomFeatureSOSREP(n_frequencies=300, random_state=0), parts)
    >>> round(float(np.median(model.score_samples(table))), 1)  # that of a normal density is -1.1
    -1.2
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None = None,
        weights: str | None = None,
        chunk_rows: int | None = None,
    ) -> None:
        self._read = reader(source)
        first = next(iter(self._read()), None)
        if first is None:
            raise InputError("there is no batch of rows; pass at least one.")
        present = list(first.schema.names)
        self.weights = weights
        chosen = [name for name in present if name != weights] if columns is None else list(columns)
        missing = [name for name in [*chosen, *([] if weights is None else [weights])] if name not in present]
        if missing:
            lacking = f"the batches have no column {quoted(missing)}; they have {quoted(present)}."
            raise InputError(lacking, column=missing[0])
        text = [name for name in chosen if not is_numeric(first.schema.field(name).type)]
        if text:
            how = Hint("choose others with {columns}", columns=...)
            raise InputError(f"no numbers in column {quoted(text)} of the batches", column=text[0], hint=how)
        self.names: list[str] = chosen
        self.n_features = len(chosen)
        self.chunk_rows = chunk_rows or rows_of_a_chunk(len(chosen))

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return sums over all rows; see :meth:`isopleth.core.parts.Parts.sums`."""
        names = [*self.names, *([] if self.weights is None else [self.weights])]
        total, done = start(), 0
        for values in regrouped((numbers(batch, names) for batch in self._read()), self.chunk_rows):
            rows, weights = values[:, : self.n_features], None
            if self.weights is not None:
                rows, weights = np.ascontiguousarray(rows), values[:, -1]
            total = total.merge(part_sums(start, add, rows, weights, self.labels, f"rows from {done + 1} on"))
            done += len(values)
        return total


def numbers(batch: Any, names: Sequence[str]) -> np.ndarray:
    """Return columns of a record batch as float64 rows; NaN where a cell is missing."""
    missing = [name for name in names if name not in batch.schema.names]
    if missing:
        offered = meant(missing, batch.schema.names)
        text = f"a batch has no column {quoted(missing)}{offered}; all batches need the columns of the first one."
        raise InputError(text, column=missing[0])
    values = np.empty((batch.num_rows, len(names)))
    for j, name in enumerate(names):
        if not is_numeric(batch.schema.field(name).type):
            raise InputError(f"no numbers in column {name!r} of a batch; leave it out, or encode it.")
        values[:, j] = floats(batch.column(name))
    return values


def is_batches(source: Any) -> bool:
    """Tell whether `source` gives record batches, or may give them."""
    if isinstance(source, np.ndarray) or hasattr(source, "__dask_graph__"):
        return False
    interfaces = ("to_batches", "__arrow_c_stream__")
    return isinstance(source, Iterator) or callable(source) or any(hasattr(source, name) for name in interfaces)


def reader(source: Any) -> Callable[[], Iterator[Any]]:
    """Return a function that reads the record batches of a source from the first one on, as often as it is called."""
    if isinstance(source, Iterator):
        return _Spool(record_batches(source)).read
    if hasattr(source, "to_batches"):
        return lambda: record_batches(source.to_batches())
    if hasattr(source, "__arrow_c_stream__"):
        return lambda: record_batches([source])
    if callable(source):
        return lambda: record_batches(source())
    raise InputError(
        f"X is {type(source).__name__}; expected record batches of Arrow: an iterator of them, a function that returns one, a "
        "data set or a table."
    )


def record_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield record batches from objects with an Arrow interface; empty ones are left out."""
    for batch in batches:
        if isinstance(batch, arrow.RecordBatch):
            found: Iterable[Any] = [batch]
        elif hasattr(batch, "__arrow_c_stream__"):
            found = arrow.RecordBatchReader.from_stream(batch)
        elif hasattr(batch, "__arrow_c_array__"):
            found = [arrow.record_batch(batch)]
        else:
            raise InputError(f"a batch is {type(batch).__name__}; expected a pyarrow.RecordBatch or a frame.")
        yield from (one for one in found if one.num_rows)


class _Spool:
    """Batches of an iterator in a temporary file, from which they can be read several times."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches: Any = None
        first = next(batches, None)
        if first is None:
            return
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it is deleted with this object
        with arrow.ipc.new_file(file, first.schema) as writer:
            for batch in chain([first], batches):
                if not batch.schema.equals(first.schema):
                    raise InputError(
                        "the batches have different columns or types; give all of them those of the first one."
                    )
                writer.write_batch(batch)
        file.flush()
        self._batches = arrow.ipc.open_file(file)

    def read(self) -> Iterator[Any]:
        """Yield the batches from the first one on."""
        for k in range(0 if self._batches is None else self._batches.num_record_batches):
            yield self._batches.get_batch(k)


def is_numeric(kind: Any) -> bool:
    """Tell whether an Arrow type holds numbers: integers, floats, decimals, booleans, or nothing but missing cells."""
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def floats(column: Any) -> np.ndarray:
    """Return the numbers of a column, NaN for missing ones. Arrow casts booleans to floats only through integers."""
    from pyarrow import types

    for step in ("int8", "float64") if types.is_boolean(column.type) else ("float64",):
        column = column.cast(step, safe=False)
    return column.to_numpy(zero_copy_only=False)


def regrouped(pieces: Iterator[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Yield the rows of `pieces`, `size` at a time."""
    held: list[np.ndarray] = []
    count = 0
    for piece in pieces:
        left = piece
        while len(left):
            held.append(left[: size - count])
            left = left[size - count :]
            count += len(held[-1])
            if count == size:
                yield np.concatenate(held)
                held, count = [], 0
    if count:
        yield np.concatenate(held)
