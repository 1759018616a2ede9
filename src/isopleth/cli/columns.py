"""Read the columns of a table that a command uses, or that a model needs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isopleth.cli.messages import naming_columns, say
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import keep_columns
from isopleth.errors import DataWarning, Hint, InputError, Message
from isopleth.io import FileRows, Frame, Table, open_rows, read_frame, read_frame_chunks, read_names, read_table
from isopleth.io.parquet_file import floats
from isopleth.io.source import Block, MissingCells, choice, listed
from isopleth.results.text import counted
from isopleth.tables.cells import MISSING_WORDS
from isopleth.tables.schema import Schema

T = TypeVar("T", Table, FileRows)

# Rows of a file larger than memory by which the kinds of its columns are decided.
_FIRST_ROWS = 100_000

# Columns that an advice names in full.
_MOST_ADVISED = 6

# From here on, float64 holds only some of the integers.
_ALL_INTEGERS = 2.0**53


def read_numbers(path: Path, options: TableOptions, *, but: str | None = None, min_rows: int = 2) -> Table:
    """Read the columns of a table that a command uses, and say what is left out.

    Parameters
    ----------
    path : Path
        The table.
    options : TableOptions
        Columns and kinds that the user chose.
    but : str, optional
        A column that is used in another way, as the classes of the rows.
    min_rows : int, default=2
        Fewer rows than this are refused.

    Returns
    -------
    Table
        Finite numbers, from the columns that are no identifiers.

    Raises
    ------
    InputError
        If the file cannot be read, or columns with words or times are left: the commands take numbers only.
    """
    frame = _frame(path, options, but, min_rows)
    if isinstance(frame.data, np.ndarray):
        return read_table(path, frame.names, min_rows=min_rows)
    infinite = [name for name, column in zip(frame.names, frame.data.columns, strict=True) if _is_infinite(column)]
    if infinite:
        read_table(path, infinite, min_rows=1, decimal=options.decimal)  # which names the lines
    kinds, names = _numeric_columns(path, frame, options)
    values = kinds.encode(frame.data, _missing(options)).numeric
    cells = MissingCells(len(names))
    cells.add(Block(values, frame.lines))
    cells.refuse(path, names)
    rounded = [n for n, column in zip(names, values.T, strict=True) if np.abs(column).max() >= _ALL_INTEGERS]
    if rounded and frame.lines is not None:
        read_table(path, rounded, min_rows=min_rows, decimal=options.decimal)  # which warns of rounded integers
    return Table(values, names, frame.named, path, frame.lines)


@dataclass(frozen=True)
class KindTable:
    """Columns of a file that a command uses, of all kinds, with missing cells.

    Parameters
    ----------
    data : pyarrow.Table or ndarray
        The rows; an array for files of arrays.
    names : list of str
        Names of the columns.
    kinds : Schema
        What they are used as; others are left out.
    frame : Frame
        The table as it was read.
    """

    data: Any
    names: list[str]
    kinds: Schema
    frame: Frame

    def fit(self, estimator: Any, rows: np.ndarray | None = None) -> Any:
        """Fit a density to the table, or to some of its rows, with these kinds."""
        data = self.data
        if rows is not None:
            data = data[rows] if isinstance(data, np.ndarray) else data.take(rows)
        estimator._decided_columns = self.kinds
        try:
            with naming_columns(self.names):
                return estimator.fit(data)
        finally:
            estimator.__dict__.pop("_decided_columns", None)


def mixed_columns(path: Path, options: TableOptions) -> KindTable | None:
    """Return the first rows of a table if they have words, times or missing cells; None for complete rows of numbers.

    Identifiers are left out of both, and truth values are numbers where there are no other words.
    """
    frame = _frame(path, options, None, 1, _FIRST_ROWS, truth_values=True)
    data = frame.data
    if isinstance(data, np.ndarray):
        words = [frame.names.index(name) for name in options.categorical or []]
        if not words and not np.isnan(data).any():
            return None
        return KindTable(data, frame.names, Schema.of(data, categorical=words), frame)
    try:
        kinds = _decided(path, frame, options)
    except InputError:  # refused in the same words where complete rows of numbers are read
        return None
    gaps = any(data.column(str(column.name)).null_count for column in kinds.columns)
    if not gaps and all(column.kind == "numeric" for column in kinds.columns):
        return None
    _refuse_typos(path, frame, kinds, options)
    _say_kinds(frame, kinds)
    return KindTable(data, frame.names, kinds, frame)


def read_kinds(
    path: Path, options: TableOptions, *, min_rows: int = 2, most: int | None = None, silent: bool = False
) -> KindTable:
    """Read the columns of a table that a command uses, words, times and missing cells included; say what is left out.

    Parameters
    ----------
    path : Path
        The table.
    options : TableOptions
        Columns and kinds that the user chose.
    min_rows : int, default=2
        Fewer rows than this are refused.
    most : int, optional
        Read the first rows only.
    silent : bool, default=False
        Whether the caller says what is left out.

    Raises
    ------
    InputError
        If the file cannot be read, or no column is left.
    """
    frame = _frame(path, options, None, min_rows, most, truth_values=True)
    data = frame.data
    if isinstance(data, np.ndarray):
        words = [frame.names.index(name) for name in options.categorical or []]
        kinds = Schema.of(data, categorical=words)
    else:
        kinds = _decided(path, frame, options)
        _refuse_typos(path, frame, kinds, options)
        if not silent:
            _say_kinds(frame, kinds)
    return KindTable(data, frame.names, kinds, frame)


def read_two_kinds(a: Path, b: Path, options: TableOptions, *, by_name: bool) -> tuple[KindTable, KindTable]:
    """Read two tables whose columns are compared; the rows of both decide what the columns hold.

    Parameters
    ----------
    a, b : Path
        The tables.
    options : TableOptions
        Columns and kinds that the user chose.
    by_name : bool
        Whether columns are matched by name, and not by position.

    Raises
    ------
    InputError
        If a file cannot be read, or they do not have the same number of columns.
    """
    frames = [_frame(path, options, None, 1, truth_values=True) for path in (a, b)]
    names = frames[0].names
    if len(names) != len(frames[1].names):
        raise InputError(
            f"{a} has {len(names)} columns and {b} has {len(frames[1].names)}; choose the same ones with --columns."
        )
    if any(isinstance(frame.data, np.ndarray) for frame in frames):
        numbers = [(path, frame, _as_array(path, frame)) for path, frame in zip((a, b), frames, strict=True)]
        first, second = (KindTable(data, frame.names, Schema.of(data), frame) for _, frame, data in numbers)
        return first, second
    data = [frame.data.select(names) if by_name else frame.data.rename_columns(names) for frame in frames]
    one, two = (replace(frame, data=table, names=names) for frame, table in zip(frames, data, strict=True))
    kinds = _decided(a, one, options, two)
    for path, frame in ((a, one), (b, two)):
        _refuse_typos(path, frame, kinds, options)
    return KindTable(one.data, frames[0].names, kinds, one), KindTable(two.data, frames[1].names, kinds, two)


def _as_array(path: Path, frame: Frame) -> np.ndarray:
    if isinstance(frame.data, np.ndarray):
        return frame.data
    try:
        return Schema.of_numbers(list(frame.names), True).encode(frame.data).numeric
    except InputError as error:
        raise error.located(path, frame.place) from None


@dataclass(eq=False)
class KindRows:
    """Rows of a table for a density of columns of all kinds, read in chunks.

    Parameters
    ----------
    path : Path
        The table.
    kinds : Schema
        The columns of the density.
    options : TableOptions
        Missing words and decimal sign.

    Attributes
    ----------
    n_rows : int
        Rows that were read so far.
    unseen : Counter
        How many cells of each column hold words that no training row had.
    """

    path: Path
    kinds: Schema
    options: TableOptions
    n_rows: int = 0
    unseen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        names = [str(name) for name in self.kinds.names] if self.kinds.named else None
        present = None if names is None else read_names(self.path)
        if names is not None and present is not None:
            refuse_mismatch(self.path, names, present, chosen=False)
        how: dict[str, Any] = {"missing": self.options.missing, "decimal": self.options.decimal}
        self._first = read_frame(self.path, names, min_rows=1, most=_FIRST_ROWS, **how)
        if names is not None and not self._first.named:
            raise InputError(f"{self.path} names no columns; add a header with those of the model: {listed(names)}.")
        if names is None and len(self._first.names) != self.kinds.n_columns:
            raise InputError(
                f"{self.path}: {len(self._first.names)} columns where the model was fitted on {self.kinds.n_columns}; make a "
                "table with these columns."
            )
        self._how = how

    @property
    def names(self) -> list[str]:
        """Names of the columns in the file."""
        return self._first.names

    @property
    def chunk_rows(self) -> int:
        """Rows of 8 MiB of numbers."""
        return max(1, 2**20 // len(self.names))

    def frames(self, size: int) -> Iterator[Frame]:
        """Yield the rows as they are in the file, `size` at a time."""
        return read_frame_chunks(self.path, self._first, size, **self._how)

    def chunks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Yield encoded rows, `size` at a time, from row `start` on, a multiple of `size`."""
        self.n_rows = 0
        for frame in self.frames(size):
            self.n_rows += len(frame.data)
            if self.n_rows <= start:
                continue
            data = frame.data
            if not self.kinds.named and not isinstance(data, np.ndarray):
                data = np.column_stack([floats(column) for column in data.columns])
            try:
                encoded = self.kinds.encode(data, _missing(self.options))
            except InputError as error:
                raise error.located(self.path, frame.place) from None
            self.unseen.update({str(name): count for name, count in encoded.unseen.items()})
            codes = np.where(encoded.codes < 0, np.nan, encoded.codes)
            yield Block(np.column_stack([encoded.numeric, codes]), frame.lines)


def open_numbers(path: Path, options: TableOptions, progress: Callable[[float], None]) -> FileRows:
    """Open the columns of a table that a command uses, to be read in chunks; its first rows show their kinds.

    Raises
    ------
    InputError
        As :func:`read_numbers`.
    """
    frame = _frame(path, options, None, 1, _FIRST_ROWS)
    names = frame.names
    if not isinstance(frame.data, np.ndarray):
        _, names = _numeric_columns(path, frame, options)
    # All columns of a file are not named: then an index without a name is recognised.
    chosen = None if options.columns is None and names == (read_names(path) or names) else names
    return open_rows(path, chosen, progress=progress, decimal=options.decimal)


def _frame(
    path: Path,
    options: TableOptions,
    but: str | None,
    min_rows: int,
    most: int | None = None,
    *,
    truth_values: bool = False,
) -> Frame:
    exclude = [*(options.exclude or []), *([] if but is None else [but])]
    frame = read_frame(
        path,
        options.columns,
        exclude=exclude,
        missing=options.missing,
        decimal=options.decimal,
        min_rows=min_rows,
        most=most,
    )
    for option, names in (
        ("--id", options.identifiers),
        ("--categorical", options.categorical),
        ("--numeric", options.numeric),
    ):
        unknown = [name for name in names or [] if name not in frame.names]
        if unknown:
            raise InputError(f"{path} has no column {listed(unknown)} ({option}); it has {listed(frame.names)}.")
    if not isinstance(frame.data, np.ndarray):
        return frame if truth_values else _booleans_as_numbers(frame, options.categorical or [])
    left_out = options.identifiers or []
    kept = [j for j, name in enumerate(frame.names) if name not in left_out]
    return Frame(frame.data[:, kept], [frame.names[j] for j in kept], False, frame.source)


def _booleans_as_numbers(frame: Frame, categorical: Sequence[str]) -> Frame:
    data = frame.data
    for j, name in enumerate(frame.names):
        if str(data.schema.field(name).type) == "bool" and name not in categorical:
            data = data.set_column(j, name, data.column(name).cast("int8"))
    return replace(frame, data=data)


def _missing(options: TableOptions) -> frozenset[str]:
    return MISSING_WORDS if options.missing is None else frozenset({"", *options.missing})


def _numeric_columns(path: Path, frame: Frame, options: TableOptions) -> tuple[Schema, list[str]]:
    """Decide the kinds of the columns, refuse words and times, and say if anything is left out or was recognised."""
    kinds = _decided(path, frame, options)
    names = _numeric_names(path, frame, kinds, options)
    _say_kinds(frame, kinds)
    return kinds, names


def _decided(path: Path, frame: Frame, options: TableOptions, also: Frame | None = None) -> Schema:
    """Decide the kinds of the columns of a file, or of two files with the same columns together."""
    try:
        kinds = Schema.of(
            frame.data,
            categorical=options.categorical or (),
            numeric=options.numeric or (),
            identifiers=options.identifiers or (),
            # A column that is asked for by name is wanted.
            keep_identifiers=options.keep_identifiers or options.columns is not None,
            missing=_missing(options),
            also=None if also is None else also.data,
        )
    except InputError as error:
        if also is None:
            raise error.located(path, frame.place) from None
        place = partial(_place_in_two, frame, also)
        raise error.located(None, place) from None
    keep_columns(kinds)
    return kinds


def _place_in_two(first: Frame, second: Frame, row: int) -> str:
    """Return where a row of two tables, one below the other, stands in the files."""
    rows = len(first.data)
    frame, row = (first, row) if row < rows else (second, row - rows)
    return f"{frame.place(row)} of {frame.source}"


def _say_kinds(frame: Frame, kinds: Schema) -> None:
    notes = [*frame.notes, *kinds.notes]
    if kinds.left_out or notes:
        say(f"{frame.source}: {kinds.summary(len(frame.data))}")
    for note in notes:
        say(note.located(None, frame.place) if isinstance(note, Message) else note)


def _refuse_typos(path: Path, frame: Frame, kinds: Schema, options: TableOptions) -> None:
    """Refuse words in columns of which nearly all cells are numbers, unless the user takes them as categories."""
    for column in kinds.columns:
        name = str(column.name)
        if column.kind != "categorical" or name in (options.categorical or []):
            continue
        note = next((note for note in kinds.notes if note.column == column.name and note.row is not None), None)
        if note:
            advice = "correct it, name it with {missing}, or take the column as categories with {categorical}"
            how = Hint(advice, missing=[note.value], categorical=[name])
            text = "{column} holds {value} in {row}, and nearly all other cells are numbers"
            raise InputError(replace(note, text=text, hint=how).located(path, frame.place))


def _numeric_names(path: Path, frame: Frame, kinds: Schema, options: TableOptions) -> list[str]:
    """Return the names of the columns that are used; refuse words and times."""
    text = [str(column.name) for column in kinds.columns if column.kind != "numeric"]
    for name in text:
        if name not in (options.categorical or []) and _is_mostly_numbers(frame.data.column(name)):
            read_table(path, [name], min_rows=1, decimal=options.decimal)  # which names the line
    numbers = [str(column.name) for column in kinds.columns if column.kind == "numeric"]
    if text:
        raise _words_refused(text, numbers).located(path)
    return numbers


def _words_refused(text: list[str], numbers: list[str]) -> InputError:
    """Return why columns of words or times cannot be used, and the shorter way to do without them."""
    several = len(text) > 1
    if not numbers:
        columns = f"all {len(text)} columns hold" if several else f"the only column, {text[0]!r}, holds"
        return InputError(f"{columns} words or times; a table of numbers is needed.", column=text[0])
    subject = f"no numbers in column{'s' if several else ''} {listed(text, most=4)}"
    if len(numbers) < len(text) and len(numbers) <= _MOST_ADVISED:
        how = Hint("choose the numbers with {columns}", columns=choice(numbers))
    elif len(text) <= _MOST_ADVISED:
        how = Hint(f"leave {'them' if several else 'it'} out with {{exclude}}", exclude=choice(text))
    else:
        how = Hint("choose columns of numbers, such as {columns}", columns=choice(numbers[:2]))
    return InputError(subject, column=text[0], hint=how)


def _is_infinite(cells: Any) -> bool:
    import pyarrow.compute as compute

    return str(cells.type) == "double" and bool(compute.any(compute.is_inf(cells)).as_py())


def _is_mostly_numbers(cells: Any) -> bool:
    import pyarrow.compute as compute

    if str(cells.type) not in ("string", "large_string"):
        return False
    numbers = compute.match_substring_regex(cells, r"^[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?$")
    return 2 * (compute.sum(numbers).as_py() or 0) > len(cells) - cells.null_count


def read_for_model(
    path: Path,
    options: TableOptions,
    expected: int,
    known: list[str] | None,
    read: Callable[..., T] = read_table,  # type: ignore[assignment]
) -> T:
    """Read the columns that a model was fitted on, in its order: by name where both have names, else by position.

    Parameters
    ----------
    path : Path
        The table.
    options : TableOptions
        Columns chosen by the user, and the decimal sign; the kinds of the columns are those of the model.
    expected : int
        Number of columns of the model.
    known : list of str, optional
        Names of the columns of the model.
    read : callable
        :func:`~isopleth.io.read_table` or :func:`~isopleth.io.open_rows`.

    Raises
    ------
    InputError
        If they are not there; the message names those missing and those left over.
    """
    present, columns = read_names(path), options.columns
    read = partial(read, decimal=options.decimal)
    if known is None or present is None:
        return _read_by_position(path, columns, expected, known, read)
    refuse_mismatch(path, known, present if columns is None else columns, chosen=columns is not None)
    return read(path, known, min_rows=1)


def refuse_mismatch(path: Path, names: list[str], offered: Sequence[str], *, chosen: bool) -> None:
    """Refuse missing columns. Other columns of the file are ignored; others that were chosen by name are refused."""
    there, known = set(offered), set(names)
    missing = [name for name in names if name not in there]
    extra = [name for name in offered if name not in known]
    if not missing and not (extra and chosen):
        return
    where = "--columns" if chosen else str(path)
    if not missing:
        raise InputError(
            f"{where} names {listed(extra, most=4)}, which the model was not fitted on; its columns are {listed(names)}."
        )
    if len(missing) == len(names):
        raise InputError(
            f"{where} has none of the columns that the model was fitted on, {listed(names)}; give a table with these columns."
        )
    others = f", and has {listed(extra, most=4)}, which the model does not know" if extra else ""
    raise InputError(
        f"{where} lacks {listed(missing)} of the columns that the model was fitted on{others}; add or rename columns."
    )


def _read_by_position(
    path: Path, columns: Sequence[str] | None, expected: int, known: list[str] | None, read: Callable[..., T]
) -> T:
    table = read(path, columns, min_rows=1)
    if len(table.names) != expected:
        needed = f"the {expected} columns" if expected > 1 else "the one column"
        # Of too few columns there is nothing to choose.
        advice = f"choose {needed} with --columns" if len(table.names) > expected else f"give a table with {needed}"
        raise InputError(
            f"{path}: {counted(len(table.names), 'column')} where the model was fitted on {expected}; {advice}."
        )
    if known is not None:
        warnings.warn(
            f"{path} names no columns; they are taken to be {listed(known)}, in this order.", DataWarning, stacklevel=2
        )
    return table
