"""Chunks of files and record batches of Arrow as parts of the rows, and checkpoints from which an interrupted fit continues."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as arrow

from isopleth.core.errors import Hint, InputError, quoted
from isopleth.core.parts import Add, Parts, S, part_sums
from isopleth.files.read import Reading
from isopleth.files.stream import FileRows, rows_of_a_chunk
from isopleth.io.resume import Journal


class FileParts(Parts):
    """Rows of a table in a file that need not fit in memory, read chunk by chunk.

    Parameters
    ----------
    path : path-like or FileRows
        A .csv, .tsv, .parquet or .npy file of numbers, or its rows that were opened before.
    columns : sequence of str, optional
        Columns to read, in this order; all by default.
    chunk_rows : int, optional
        Rows in a chunk; by default as many as fit 8 MiB.
    checkpoint : Checkpoint, optional
        Keeps the sums of passes, for a fit that may be interrupted.
    progress : callable, optional
        Called with the number of the pass, counted from 1, and the share of its rows that has been read.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`isopleth.read_table`, and for cells that are no finite numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from isopleth import RandomFeatureSOSREP
    >>> from isopleth.distributed import FileParts, fit
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "rows.npy"
    >>> np.save(path, np.random.default_rng(0).normal(size=(5000, 2)))
    >>> model = fit(RandomFeatureSOSREP(n_frequencies=50, random_state=0), FileParts(path))
    >>> model.score_samples([[0.0, 0.0], [9.0, 9.0]]).round(1)
    array([-2.5, -inf])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | FileRows,
        columns: Sequence[str] | None = None,
        chunk_rows: int | None = None,
        checkpoint: Checkpoint | None = None,
        progress: Callable[[int, float], None] = lambda *_: None,
    ) -> None:
        self.rows = path if isinstance(path, FileRows) else FileRows(path, Reading(columns=columns))
        self.chunk_rows = chunk_rows or self.rows.chunk_rows
        self.checkpoint, self.progress = checkpoint, progress
        self.names = self.rows.names if self.rows.named else None
        self.n_features = len(self.rows.names)
        self._passes = 0

    @property
    def labels(self) -> list[str]:
        """Names of the columns in messages; those of a file without names are x1, x2, ..."""
        return [repr(name) for name in self.rows.names]

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return the sums of a pass over the parts; see :meth:`isopleth.core.parts.Parts.sums`."""
        self._passes += 1
        kept = self.checkpoint.next_pass() if self.checkpoint else None
        total, done = kept.begun(start) if kept else (start(), 0)
        n_rows = self.rows.n_rows
        self.progress(self._passes, done / n_rows)
        for table in self.rows.tables(self.chunk_rows, done):
            part = part_sums(start, add, table.encoded().rows, None, self.labels, f"rows from {done + 1} on")
            total = total.merge(part)
            done += len(table)
            if kept:
                kept.keep(total, done, whole=done == n_rows)
            self.progress(self._passes, done / n_rows)
        return total


_PACKAGE = __name__.partition(".")[0]


def state_of(sums: Any) -> dict[str, np.ndarray]:
    """Return all arrays and numbers that an object of this library holds, by the path that leads to each."""
    found: dict[str, np.ndarray] = {}
    _collect(sums, "", found)
    return found


def _collect(value: Any, path: str, found: dict[str, np.ndarray]) -> None:
    if _is_number(value):
        found[path] = np.asarray(value)
    elif not _is_constant(value):
        for name, part in _parts(value, path):
            _collect(part, f"{path}.{name}" if path else name, found)


def restored(fresh: Any, state: dict[str, np.ndarray]) -> Any:
    """Return sums with the arrays and numbers of `state` instead of their own."""
    out = _replaced(fresh, "", state)
    if state_of(out).keys() != state.keys():
        raise KeyError("sums of another kind")
    return out


def _replaced(value: Any, path: str, state: dict[str, np.ndarray]) -> Any:
    """Return `value` with its numbers replaced. Unchanged parts stay the same objects, since saved models depend on identity."""
    if _is_number(value):
        kept = state[path]
        if _same(kept, np.asarray(value)):
            return value
        return kept if isinstance(value, np.ndarray) else type(value)(kept.item())
    if _is_constant(value):
        return value
    old = dict(_parts(value, path))
    parts = {name: _replaced(part, f"{path}.{name}" if path else name, state) for name, part in old.items()}
    if all(parts[name] is part for name, part in old.items()):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(*parts.values()) if hasattr(value, "_fields") else type(value)(parts.values())
    out = copy(value) if _is_frozen(value) else value
    vars(out).update(parts)
    return out


def _parts(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(str(place), part) for place, part in enumerate(value)]
    if type(value).__module__.partition(".")[0] == _PACKAGE and hasattr(value, "__dict__"):
        return list(vars(value).items())
    raise TypeError(f"a {type(value).__name__} at {path or 'the top'} cannot be kept as arrays")


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.ndarray, np.generic))


def _same(some: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are equal to the last bit, including the sign of zeros."""
    return (some.shape, some.dtype, some.tobytes()) == (other.shape, other.dtype, other.tobytes())


def _is_constant(value: Any) -> bool:
    return value is None or isinstance(value, (str, type, slice, range))


def _is_frozen(value: Any) -> bool:
    return getattr(getattr(type(value), "__dataclass_params__", None), "frozen", False)


# Key of the number of rows of a pass; no attribute has this name.
_ROWS = "number of rows"


# Seconds between two savings of an unfinished pass.
SECONDS = 60.0


class Checkpoint:
    """Sums of passes over rows in a :class:`~isopleth.io.resume.Journal`; a repeated fit asks for the same ones in order."""

    def __init__(self, journal: Journal, seconds: float = SECONDS) -> None:
        self._journal, self._seconds, self._passes = journal, seconds, 0

    def next_pass(self) -> KeptPass:
        """Return the pass that comes next."""
        self._passes += 1
        return KeptPass(self._journal, f"pass {self._passes}", self._seconds)


class KeptPass:
    """One pass: its sums so far, and the number of rows they cover."""

    def __init__(self, journal: Journal, key: str, seconds: float) -> None:
        self._journal, self._key, self._seconds = journal, key, seconds
        self._due = time.monotonic() + seconds

    def begun(self, start: Callable[[], S]) -> tuple[S, int]:
        """Return the sums that were kept and the number of rows they cover, or new sums of no rows."""
        state = self._journal.read(self._key)
        if state is None:
            return start(), 0
        rows = int(state.pop(_ROWS))
        return restored(start(), state), rows

    def keep(self, sums: Any, rows: int, *, whole: bool) -> None:
        """Keep sums of the first `rows` rows, if it is time to, or if the pass is complete (`whole`)."""
        if whole or time.monotonic() >= self._due:
            self._journal.append(self._key, {_ROWS: np.asarray(rows), **state_of(sums)})
            self._due = time.monotonic() + self._seconds


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
        text = f"a batch has no column {quoted(missing)}; all batches need the columns of the first one."
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
