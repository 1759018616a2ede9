"""What a command gives out: its files, checked before the work and written after it, and text, JSON and pages."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isopleth.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from isopleth.results import Result
    from isopleth.tables.schema import Schema
    from isopleth.tables.table import FileTable

# Where the context of a run keeps its arguments, and how columns were used.
_ARGUMENTS, _COLUMNS = "isopleth.arguments", "isopleth.columns"
_TABLES = "isopleth.tables"


@dataclass(frozen=True)
class Outputs:
    """Paths of the files to write, None for those that are not requested, and whether text in CSV is left as it is."""

    rows: Path | None = None
    model: Path | None = None
    figure: Path | None = None
    raw_text: bool = False
    page: Path | None = None

    def check(self, **inputs: Path | None) -> None:
        """Raise InputError or MissingExtraError before the work if a file cannot be written or is another one of the run."""
        outputs = {"--out": self.rows, "--save": self.model, "--plot": self.figure, "--report": self.page}
        for name, path in (inputs or {"": None}).items():  # one after the other: a table may be compared with itself
            refuse_same({name: path, **outputs})
        if self.rows:
            from isopleth.tables.write import check_table_target

            check_table_target(self.rows)
        if self.model:
            from isopleth.tables.output_files import check_target

            check_target(self.model)
        if self.figure:
            from isopleth.results.figures import check_figure_target

            check_figure_target(self.figure)
        if self.page:
            from isopleth.results.page import check_report_target

            check_report_target(self.page)

    def write(
        self,
        result: Result,
        columns: Mapping[str, Any] | None = None,
        model: Any = None,
        sources: Iterable[Path | None] = (),
        notes: Iterable[str] = (),
        paged: Result | None = None,
    ) -> None:
        """Write the requested files of a result, each completely or not at all; `columns` are those of --out."""
        # Draw first, so that an error in drawing leaves no other files.
        axes: Any = result.plot() if self.figure else None
        if self.rows and columns is not None:
            from isopleth.tables.write import write_table

            write_table(self.rows, columns, raw_text=self.raw_text)
        if self.model:
            from isopleth.io import save

            save(model, self.model)
        if self.figure:
            from isopleth.results.figures import save_figure

            save_figure(axes, self.figure)
        if self.page:
            from isopleth.results.page import Context, write_report

            files = ", ".join(str(path) for path in sources if path)
            write_report(paged or result, self.page, Context(command_line(), files, _used(), [*notes, *_odd()]))


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


def keep_arguments(ctx: click.Context, arguments: list[str]) -> None:
    """Keep the arguments of a run, for the page that says how it was made."""
    ctx.meta[_ARGUMENTS] = list(arguments)


def command_line() -> str:
    """Return the command of this run, as it can be typed in a shell."""
    context = click.get_current_context(silent=True)
    return shlex.join(["isopleth", *(context.meta.get(_ARGUMENTS, []) if context else [])])


def keep_columns(kinds: Schema, *tables: FileTable) -> None:
    """Keep how the columns of tables are used, for the page: their kinds, why others are left out, and what is odd."""
    context = click.get_current_context(silent=True)
    if context is not None:
        used = {str(column.name): str(column.kind) for column in kinds.columns}
        out = {str(name): f"left out: {why}" for name, why in kinds.left_out.items()}
        context.meta[_COLUMNS] = _used() | used | out
        context.meta[_TABLES] = [*context.meta.get(_TABLES, []), *tables]


def _odd() -> list[str]:
    """Return what is odd about the tables of the run."""
    from isopleth.tasks.description import TableDescription

    context = click.get_current_context(silent=True)
    tables = context.meta.get(_TABLES, []) if context else []
    found = [(table.source, TableDescription.of(table).odd()) for table in tables]
    return [f"{source}: {' '.join(words)}" for source, words in found if words]


def _used() -> dict[str, str]:
    context = click.get_current_context(silent=True)
    return context.meta.get(_COLUMNS, {}) if context else {}


def answer(result: Result, as_json: bool, most: int | None, **more: Any) -> None:
    """Print a result as text, or as one JSON object with further keys."""
    if as_json:
        print_json(result.to_dict(most) | more)
    else:
        say_on_output(result.text(most))


def say_on_output(text: str) -> None:
    """Print lines, broken between words to the width of the terminal."""
    from isopleth.results.text import wrapped

    click.echo(wrapped(text))


def print_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object. A number that is missing or infinite is null."""
    from isopleth.results.result import plain

    click.echo(json.dumps(plain(dict(values)), ensure_ascii=False, allow_nan=False))


def about_run(result: str, **values: Any) -> dict[str, Any]:
    """Return what a command without a result class prints as JSON."""
    import isopleth

    return {"result": result, "isopleth": isopleth.__version__, **values}


def places(n_rows: int, lines: np.ndarray | None, *, row_numbers: bool, first: int = 1) -> dict[str, np.ndarray]:
    """Return the columns that say where rows stand in their file: "line" for text files, "row", counted from 1, for others."""
    import numpy as np

    rows = {"row": np.arange(first, first + n_rows)}
    if lines is None:
        return rows
    return {"line": lines} | (rows if row_numbers else {})
