"""One run of a command: what it reads and says of it, the files that it writes, and the text or JSON that it prints."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import click
import numpy as np
import pyarrow as pa

from isopleth.cli.program import ShellWording, Stages, say
from isopleth.core.errors import Hint, InputError, quoted, warn_user
from isopleth.files.file_table import FileTable, refuse_odd_cells, together
from isopleth.files.new_cells import as_written, limits_as_written
from isopleth.files.read import Reader, Reading
from isopleth.files.table_parts import read_files
from isopleth.files.write import FRAME_SUFFIXES, TABLE_SUFFIXES, check_table_target, write_blocks, write_frame
from isopleth.io.output_files import check_target
from isopleth.results import Result
from isopleth.results.result import plain
from isopleth.results.text import wrapped
from isopleth.tables.alike_words import alike_in_words, alike_words
from isopleth.tables.cells import hold_codes
from isopleth.tables.schema import Schema
from isopleth.tables.schema_changes import SchemaComparison, compare_schemas

# What --out may be, by what a command writes there; a model has any name.
_BLOCK = 65_536  # rows that are written at once
_SUFFIXES = {"table": TABLE_SUFFIXES, "frame": FRAME_SUFFIXES, "answers": (*TABLE_SUFFIXES, ".npy")}


@dataclass(eq=False)
class Run:
    """Run of a command, with the options that many commands share: those of reading, and of what is written."""

    arguments: list[str]  # of the shell
    inputs: dict[str, Path | None]  # files to read, by the names that messages give them
    stage: Stages
    writes: str  # what --out is: "table", "frame", "answers" or "model"
    options: Reading
    out: Path | None = None
    save_to: Path | None = None
    plot: Path | None = None
    report: Path | None = None
    raw_text: bool = False
    row_numbers: bool = False
    as_json: bool = False
    used: dict[str, str] = field(default_factory=dict)  # how the columns that were read are used, for the page
    tables: list[FileTable] = field(default_factory=list)  # what was read, for the page
    sources: dict[str, FileTable] = field(
        default_factory=dict
    )  # tables, by the parameter of an estimator that takes them

    @classmethod
    def of(cls, ctx: click.Context, reads: Mapping[str, str], stage: Stages, writes: str) -> tuple[Self, dict]:
        """Return the run of a command, whose outputs are checked, and the options that are its own."""
        own = dict(ctx.params)
        how = {name: own.pop(name) for name in [part.name for part in fields(Reading)] if name in own}
        shared = {name: own.pop(name) for name in [part.name for part in fields(cls)] if name in own}
        shown = {
            p.name: p.opts[0] if isinstance(p, click.Option) else p.human_readable_name for p in ctx.command.params
        }
        inputs = {shown[name]: ctx.params[name] for name in reads}
        reading = Reading(**{name: value for name, value in how.items() if value is not None})
        if sum(kind in ("file", "files") and ctx.params[name] is not None for name, kind in reads.items()) > 1:
            reading = replace(reading, rename_each=False)
        run = cls([str(ctx.command.name), *ctx.obj], inputs, stage, writes, reading, **shared)
        run.check()
        return run, own

    def check(self) -> None:
        """Raise InputError or MissingExtraError before the work if a file cannot be written or is another one of the run."""
        outputs = {"--out": self.out, "--save": self.save_to, "--plot": self.plot, "--report": self.report}
        # One input after the other: a table may be compared with itself.
        for name, path in (self.inputs or {"": None}).items():
            refuse_same({name: path, **outputs})
        if self.out and self.writes in _SUFFIXES:
            check_table_target(self.out, _SUFFIXES[self.writes])
        elif self.out:
            check_target(self.out)
        if self.save_to:
            check_target(self.save_to)
        if self.plot:
            from isopleth.results.figures import check_figure_target

            check_figure_target(self.plot)
        if self.report:
            from isopleth.results.page import check_report_target

            check_report_target(self.report)

    def read(
        self,
        path: Path,
        *,
        labels: Mapping[str, str] = MappingProxyType({}),
        gaps: bool = True,
        constants: bool = False,
        cells: bool = False,
    ) -> FileTable:
        """Read a table and say what each column was taken as; with `gaps`, how many cells are missing too.

        `labels` are columns with classes or groups, and the parameters of the command that name them; `constants` says whether
        columns of one word are used, and `cells` whether the table keeps its cells as they stand.
        """
        with _naming_labels(labels):
            table = read_files(path, replace(self.options, labels=list(labels)), 2, cells=cells)
        if constants:
            table = table.using(table.schema.with_constants())
        self.keep(table.schema, table)
        tell(table, gaps=gaps)
        return table

    def read_two(
        self, a: Path, b: Path, labels: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[FileTable, FileTable, SchemaComparison]:
        """Read the common columns of two tables, whose rows together decide what each is used as, and how the schema changed."""
        with _naming_labels(labels):
            how = replace(self.options, labels=list(labels), bad_cells="missing")
            first, second = (read_files(path, how) for path in (a, b))
            if codes := _codes_of_one(first, second):
                how = replace(how, written_as_words=codes)
                first, second = (read_files(path, how) for path in (a, b))
        if self.options.bad_cells == "refuse":
            refuse_odd_cells(first, second)
        names, others = first.data.column_names, second.data.column_names
        by_name = first.named and second.named
        if not by_name and len(names) != len(others):
            hint = Hint("choose the same ones with {columns}", columns=...)
            raise InputError(f"{a} has {len(names)} columns and {b} has {len(others)}", parameter="columns", hint=hint)
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
        self.keep(schema, first.using(schema), second.using(schema))
        if schema.left_out:
            say(f"{a} and {b}: {schema.summary(len(first) + len(second))}")
        for note in dict.fromkeys(note.render(ShellWording()) for note in [*first.notes, *second.notes]):
            say(note)
        for words in _alike_words(first, second, schema):
            say(words)
        if not by_name:
            first, second = replace(first, named=False), replace(second, named=False)
        return first.using(schema), second.using(schema), found

    def read_for(
        self,
        path: Path,
        schema: Schema,
        *,
        cells: bool = False,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> FileTable:
        """Read the columns of a schema, such as that which a model was fitted on, as what they are there, of one file or many.

        `cells` says whether the table keeps its cells as they stand; `labels` are as for :meth:`read`.
        """
        with _naming_labels(labels):
            how = replace(self.options.of_schema(schema), labels=list(labels))
            table = read_files(path, how, cells=cells, then=match_by_position)
        self.keep(table.schema, table)
        tell(table)
        return table

    def keep(self, schema: Schema, *tables: FileTable) -> None:
        """Keep how the columns of tables are used, for the page: their kinds, why others are left out, and what is odd."""
        self.used |= {str(column.name): str(column.kind) for column in schema.columns}
        self.used |= {str(name): f"left out: {why}" for name, why in schema.left_out.items()}
        self.tables += tables
        self.sources |= dict(zip("XY", tables, strict=False))
        if tables[0].labels:
            self.sources["y"] = tables[0]

    def located(self, error: InputError) -> InputError:
        """Return an error about rows or labels with their file and column, which the estimator does not know."""
        message, table = error.message, self.sources.get(error.parameter or "")
        if table is None or message.source is not None:
            return error
        of_labels = f"column {next(iter(table.labels))!r}" if error.parameter == "y" else error.parameter
        return InputError(replace(message, parameter=of_labels).located(table.source))

    def write_rows(
        self,
        rows: Any,
        like: FileTable | None,
        known: Mapping[str, np.ndarray] = MappingProxyType({}),
        ends: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write an Arrow table as the file of `like` is written, and say where that has no names of columns.

        `known` cells are written as they stand there, and columns of `ends` as those that they are ends of.
        """
        assert self.out is not None
        if like is None:
            write_frame(self.out, rows, raw_text=self.raw_text)
            return
        text = self.out.suffix.lower() in (".csv", ".tsv")
        written = as_written(like, rows, known, ends, text=text)
        numbers = [name for name in written.column_names if like.data.column(ends.get(name, name)).type != pa.string()]
        header = None if like.header is None else dict(zip(like.data.column_names, like.header, strict=True))
        names = None if header is None else [header.get(name, name) for name in written.column_names]
        write_frame(
            self.out,
            written,
            raw_text=self.raw_text,
            like=like.dialect,
            numbers=numbers if header is not None else [],
            header=names,
            limits={} if text else limits_as_written(like, known),
        )
        if not like.named and self.out.suffix != ".npy":
            say(f"{like.source} names no columns; {self.out} names them {quoted(rows.column_names)}.")

    def write(
        self,
        result: Result,
        columns: Mapping[str, Any] | None = None,
        model: Any = None,
        notes: Sequence[str] = (),
        paged: Result | None = None,
    ) -> None:
        """Write the requested files of a result, each completely or not at all; `columns` are those of --out."""
        # Draw first, so that an error in drawing leaves no other files.
        axes: Any = result.plot() if self.plot else None
        if self.out and columns is not None:
            self.write_columns(self.out, columns)
        if self.save_to:
            from isopleth.io import save

            save(model, self.save_to)
        if self.plot:
            from isopleth.results.figures import save_figure

            save_figure(axes, self.plot)
        if self.report:
            from isopleth.results.page import Context, write_report

            files = ", ".join(str(path) for path in self.inputs.values() if path)
            command = shlex.join(["isopleth", *self.arguments])
            write_report(paged or result, self.report, Context(command, files, self.used, [*notes, *self._odd()]))

    def write_columns(self, path: Path, columns: Mapping[str, Any]) -> None:
        """Write columns of equal length as a table."""
        check_table_target(path)
        write_blocks(path, self._blocks(columns), raw_text=self.raw_text)

    def _blocks(self, columns: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield columns in blocks of rows, as they are written, and show the share that is."""
        n = len(next(iter(columns.values())))
        for first in range(0, max(n, 1), _BLOCK):
            self.stage("writing", first / max(n, 1))
            yield {name: column[first : first + _BLOCK] for name, column in columns.items()}

    def _odd(self) -> list[str]:
        """Return what is odd about the tables that were read."""
        from isopleth.tasks.description import TableDescription

        found = [(table.source, TableDescription.of(table, ShellWording()).odd()) for table in self.tables]
        return [f"{source}: {' '.join(words)}" for source, words in found if words]

    def answer(self, result: Result, most: int | None = None, **more: Any) -> None:
        """Print a result as text, or as one JSON object with further keys."""
        if self.as_json:
            self.print_json(result.to_dict(most) | more)
        else:
            self.print(result.text(most))

    def report_of(self, text: str, result: str, **values: Any) -> None:
        """Print what a command without a result class has done: a sentence, or its JSON."""
        import isopleth

        if self.as_json:
            self.print_json({"result": result, "isopleth": isopleth.__version__, **values})
        else:
            self.print(text)

    def print(self, text: str) -> None:
        """Print lines, broken between words to the width of the terminal."""
        self.stage.end()
        click.echo(wrapped(text))

    def print_json(self, values: Mapping[str, Any]) -> None:
        """Print one JSON object. A number that is missing or infinite is null."""
        self.stage.end()
        click.echo(json.dumps(plain(dict(values)), ensure_ascii=False, allow_nan=False))

    def places_of(self, table: FileTable) -> dict[str, np.ndarray]:
        """Return the columns that say where the rows of a table stand, with their files where several are one table."""
        if table.files is None:
            return self.places(len(table), table.lines)
        starts = np.maximum.accumulate(
            np.where(np.append(True, table.files[1:] != table.files[:-1]), np.arange(len(table)), 0)
        )
        rows = {"row": np.arange(len(table)) - starts + 1}
        return {"file": table.files} | (rows if table.lines is None else {"line": table.lines})

    def places(self, n_rows: int, lines: np.ndarray | None, first: int = 1) -> dict[str, np.ndarray]:
        """Return the columns that say where rows stand: "line" for text files, "row", counted from 1, for others."""
        rows = {"row": np.arange(first, first + n_rows)}
        if lines is None:
            return rows
        return {"line": lines} | (rows if self.row_numbers else {})


def _codes_of_one(first: FileTable, second: FileTable) -> list[str]:
    """Return the columns that hold codes, such as 02116, in one table and only numbers in the other: codes are words in both."""
    kinds = [{str(column.name): column.kind for column in table.schema.columns} for table in (first, second)]
    found = []
    for one, two in ((first, kinds[1]), (second, kinds[0])):
        for name in one.data.column_names:
            cells = one.data.column(name)
            if two.get(name) == "numeric" and pa.types.is_string(cells.type) and hold_codes(cells):
                found.append(name)
    return found


def _alike_words(first: FileTable, second: FileTable, schema: Schema) -> list[str]:
    """Return a sentence about each column of words that one table writes in one way and the other in another."""
    said = []
    for name in [str(column.name) for column in schema.columns if column.is_words]:
        words = [each.data.column(name).unique().drop_null().cast(pa.string()).to_pylist() for each in (first, second)]
        if pairs := alike_words(*words):
            said.append(
                alike_in_words(name, pairs, f" of which {first.source} has the first and {second.source} the second")
            )
    return said


def refuse_same(files: Mapping[str, Path | None]) -> None:
    """Refuse two options that name one file."""
    seen: dict[str, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise InputError(f"{name} {path} is the same file as {seen[place]}; give it another name.")
        seen[place] = name


@contextmanager
def _naming_labels(options: Mapping[str, str]) -> Iterator[None]:
    """Name the option of a command where an error of the block names the parameter `labels`."""
    try:
        yield
    except InputError as error:
        if error.parameter != "labels":
            raise
        raise InputError(replace(error.message, parameter=options[str(error.column)])) from None


def schema_of(model: Any) -> Schema:
    """Return the schema of the table that a model was fitted to; numbers where it was fitted to an array."""
    kept = getattr(model, "schema_", None)
    if kept is not None:
        return kept
    names = getattr(model, "feature_names_in_", None)
    plain_names = [f"x{j + 1}" for j in range(int(model.n_features_in_))] if names is None else list(map(str, names))
    return Schema.of_numbers(plain_names, names is not None)


def match_by_position(reader: Reader) -> None:
    """Match the columns of a file without names to those of a model by position, and say so; refuse it if some hold words."""
    schema = reader.how.schema
    if schema is None or reader.named or not schema.named:
        return
    names = quoted(map(str, schema.names))
    if not schema.only_numbers:
        raise InputError(f"{reader.source} names no columns; add a header with those of the model: {names}.")
    text = f"{reader.source} names no columns; they are taken to be {names}, in this order."
    warn_user(text)


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
        say(note.render(ShellWording()))
