"""Read the tables of a command, and say what was recognised and left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.commands import TableOptions
from isopleth.cli.messages import say
from isopleth.cli.outputs import keep_columns
from isopleth.errors import DataWarning, Hint, InputError, quoted
from isopleth.tables.read import Reading, missing_words, read_table
from isopleth.tables.schema import Choices, Schema
from isopleth.tables.schema_changes import SchemaComparison, compare_schemas
from isopleth.tables.table import FileTable, together


@contextmanager
def naming_labels(option: str) -> Iterator[None]:
    """Name the option of a command where an error of the block names the parameter `labels`."""
    try:
        yield
    except InputError as error:
        if error.parameter != "labels":
            raise
        raise InputError(replace(error.message, parameter=option)) from None


def read(
    path: Path, options: TableOptions, *, min_rows: int = 2, labels: Sequence[str] = (), gaps: bool = True
) -> FileTable:
    """Read a table and say what each column was taken as; with `gaps`, how many cells are missing too."""
    table = read_table(path, **options.reading(), labels=labels, min_rows=min_rows, warn=False)
    refuse_typos(table, options)
    keep_columns(table.schema, table)
    tell(table, gaps=gaps)
    return table


def read_two(
    a: Path, b: Path, options: TableOptions, labels: Sequence[str] = ()
) -> tuple[FileTable, FileTable, SchemaComparison]:
    """Read the common columns of two tables, whose rows together decide what each is used as, and how the schema changed."""
    first, second = (read_table(path, **options.reading(), labels=labels, warn=False) for path in (a, b))
    names, others = first.data.column_names, second.data.column_names
    by_name = first.named and second.named
    if not by_name and len(names) != len(others):
        hint = Hint("choose the same ones with {columns}", columns=...)
        raise InputError(f"{a} has {len(names)} columns and {b} has {len(others)}", parameter="columns", hint=hint)
    for table in (first, second):
        refuse_typos(table, options)
    if not by_name:
        own = second.schema.renamed(dict(zip(others, names, strict=True)))
        second = replace(second, data=second.data.rename_columns(names), schema=own)
    try:
        found = compare_schemas(first.schema, second.schema)
    except InputError as error:
        raise error.located(f"{a} and {b}") from None
    common = [name for name in names if name in found.common]
    first, second = first.select(common), second.select(common)
    schema = together((first, second))
    keep_columns(schema, first.using(schema), second.using(schema))
    if schema.left_out:
        say(f"{a} and {b}: {schema.summary(len(first) + len(second))}")
    for note in dict.fromkeys(map(str, [*first.notes, *second.notes])):
        say(note)
    if not by_name:
        first, second = replace(first, named=False), replace(second, named=False)
    return first.using(schema), second.using(schema), found


def schema_of(model: Any) -> Schema:
    """Return the schema of the table that a model was fitted to; numbers where it was fitted to an array."""
    kept = getattr(model, "schema_", None)
    if kept is not None:
        return kept
    names = getattr(model, "feature_names_in_", None)
    plain = [f"x{j + 1}" for j in range(int(model.n_features_in_))] if names is None else list(map(str, names))
    return Schema.of_numbers(plain, names is not None)


def read_for(path: Path, options: TableOptions, model: Any) -> FileTable:
    """Read the columns that a model was fitted on, as what they were there."""
    table = read_table(path, **reading_for(path, options, model), warn=False)
    warn_without_names(table, path)
    tell(table)
    return table


def reading_for(path: Path, options: TableOptions, model: Any) -> dict[str, Any]:
    """Return how the columns of a model are read from a file."""
    kept = {"missing": options.missing, "decimal": options.decimal, "encoding": options.encoding}
    return {**kept, "max_unpacked": options.max_unpacked, "columns": options.columns, "schema": schema_of(model)}


def warn_without_names(table: FileTable, path: Path) -> None:
    """Warn that columns are matched by position, since the file has no names; words are not matched so."""
    if table.named or not table.schema.named:
        return
    if not table.schema.only_numbers:
        raise InputError(f"{path} names no columns; add a header with those of the model: {quoted(table.names)}.")
    warnings.warn(
        f"{path} names no columns; they are taken to be {quoted(table.names)}, in this order.",
        DataWarning,
        stacklevel=2,
    )


def chunk_reading(options: TableOptions) -> Reading:
    """Return how the tables of a command are read in chunks."""
    choices = Choices(
        tuple(options.categorical or ()),
        tuple(options.numeric or ()),
        tuple(options.time_columns or ()),
        (),
        tuple(options.identifiers or ()),
        options.keep_identifiers or options.columns is not None,
        missing_words(options.missing),
    )
    return Reading(
        options.columns,
        options.exclude or (),
        (),
        choices.missing,
        options.decimal,
        options.encoding,
        None,
        choices,
        options.max_unpacked,
    )


def refuse_typos(table: FileTable, options: TableOptions) -> None:
    """Refuse words in columns of which nearly all cells are numbers, unless the user takes them as categories."""
    taken = [column.name for column in table.schema.columns if column.kind == "categorical"]
    for note in table.schema.notes:
        if note.column in taken and note.column not in (options.categorical or []) and note.row is not None:
            text = note.text.partition(": the column")[0]
            hint = Hint(
                "correct it, name it with {missing}, or take the column as categories with {categorical}",
                missing=[note.value],
                categorical=[note.column],
            )
            raise InputError(replace(note, text=text, hint=hint).located(table.source, table.place))


def tell(table: FileTable, *, gaps: bool = True) -> None:
    """Say what was left out and recognised and, with `gaps`, what columns there are and how many cells are missing."""
    counts = table.missing.sum(axis=0) if gaps else np.zeros(1)
    if counts.any() or table.schema.left_out or table.notes or (gaps and not table.schema.only_numbers):
        one = (counts > 0).sum() == 1
        where = f"of {table.names[counts.argmax()]}" if one else f"in {(counts > 0).sum()} columns"
        cells = "missing cell" if counts.sum() == 1 else "missing cells"
        lost = f"; {counts.sum():,} {cells} {where}" if counts.any() else ""
        say(f"{table.source}: {table.schema.summary(len(table))}{lost}")
    for note in table.notes:
        say(note)
