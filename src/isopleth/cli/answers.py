"""Answer of a command: text, or JSON with --json, and the page of --report."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from isopleth.report import Context
    from isopleth.results import Result
    from isopleth.tables.schema import Schema

# Where the context of a run keeps its arguments, and how columns were used.
_ARGUMENTS, _COLUMNS = "isopleth.arguments", "isopleth.columns"


def keep_arguments(ctx: click.Context, arguments: list[str]) -> None:
    """Keep the arguments of a run, for the page that says how it was made."""
    ctx.meta[_ARGUMENTS] = list(arguments)


def command_line() -> str:
    """Return the command of this run, as it can be typed in a shell."""
    context = click.get_current_context(silent=True)
    return shlex.join(["isopleth", *(context.meta.get(_ARGUMENTS, []) if context else [])])


def keep_columns(kinds: Schema) -> None:
    """Keep how the columns of a table are used: their kinds, and why others are left out."""
    context = click.get_current_context(silent=True)
    if context is not None:
        used = {str(column.name): str(column.kind) for column in kinds.columns}
        out = {str(name): f"left out: {why}" for name, why in kinds.left_out.items()}
        context.meta[_COLUMNS] = context.meta.get(_COLUMNS, {}) | used | out


def check_report(report: Path | None) -> None:
    """Check before the work that the page can be written."""
    if report:
        from isopleth.report import check_report_target

        check_report_target(report)


def write_page(result: Result, report: Path, files: list[Path], **more: Any) -> None:
    """Write the page of a result, with the command, the files and how columns were used."""
    from isopleth.report import write_report

    write_report(result, report, page_context(files, **more))


def page_context(files: list[Path], **more: Any) -> Context:
    """Return what a page says about this run."""
    from isopleth.report import Context

    context = click.get_current_context(silent=True)
    used = context.meta.get(_COLUMNS, {}) if context else {}
    return Context(command_line(), ", ".join(map(str, files)), used, **more)


def answer(text: str, result: Result, as_json: bool, most: int | None = None, **more: Any) -> None:
    """Print the text of a run, or its result as one JSON object."""
    if as_json:
        print_json(result.to_dict(most) | more)
    else:
        from isopleth.cli.text import wrapped

        click.echo(wrapped(text))


def print_json(values: Mapping[str, Any]) -> None:
    """Print one JSON object. A number that is missing or infinite is null."""
    from isopleth.results import plain

    click.echo(json.dumps(plain(dict(values)), ensure_ascii=False, allow_nan=False))


def about_run(result: str, **values: Any) -> dict[str, Any]:
    """Return what a command without a result class prints as JSON."""
    from isopleth.results import own_version

    return {"result": result, "isopleth": own_version(), **values}
