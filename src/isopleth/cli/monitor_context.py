"""Contexts of ``isopleth monitor``: which one is taken, and how pages are printed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click
import numpy as np

from isopleth.cli.program import say
from isopleth.core.errors import printable
from isopleth.files.file_table import FileTable
from isopleth.results.text import wrapped
from isopleth.tasks.drift.causes import Page
from isopleth.tasks.drift.pages import DriftPages, time_text

# A reference of fewer days does not show how days differ, so that its times are no context unless asked for.
_FEWEST_DAYS = 7.0
_SECONDS = 86400.0


def chosen_context(table: FileTable, asked: tuple[str, ...]) -> list[str] | None:
    """Return the columns of the context: those asked for, or the one column of times of a reference of a week or more."""
    if asked:
        return None if asked == ("none",) else list(asked)
    given = click.get_current_context().get_parameter_source
    windows = any(given(name) == click.core.ParameterSource.COMMANDLINE for name in ("window", "ignore_missing"))
    numbers = [column for column in table.schema.columns if column.kind != "categorical"]
    times = [j for j, column in enumerate(numbers) if column.kind == "time"]
    words = len(numbers) < len(table.schema.columns)
    if windows or words or len(times) != 1 or len(numbers) < 2 or table.choices.time_columns:
        return None
    seconds = table.encoded().rows[:, times[0]]
    known = seconds[~np.isnan(seconds)]
    if not len(known) or np.ptp(known) < _FEWEST_DAYS * _SECONDS:
        return None
    name = str(numbers[times[0]].name)
    say(f"judged by hour and weekday of {name!r}; --context none compares windows of rows instead.")
    return [name]


def print_pages(pages: DriftPages, as_json: bool) -> None:
    """Print pages that were opened and closed at once, for a reader that waits for them."""
    pages = replace(pages, counted_from=1)
    events = [(page.row, "opened", page) for page in pages.opened]
    events += [(page.closed, "closed", page) for page in pages.closed if page.kind != "incident"]
    for row, event, page in sorted(events, key=lambda each: each[0]):
        if as_json:
            click.echo(json.dumps(as_object(pages, row, event, page)))
        else:
            verb = "" if event == "opened" else "no more evidence: "
            click.echo(wrapped(f"row {row + 1}: {verb}{printable(pages.words(page))}"))


def as_object(pages: DriftPages, row: int, event: str, page: Page) -> dict[str, Any]:
    """Return what happened to a page as one JSON object."""
    return {
        "row": row + 1,
        "event": event,
        "kind": page.kind,
        "columns": [pages.names[j] for j in page.columns],
        "direction": page.direction,
        "since": page.start + 1,
        "time": time_text(page) or None,
        "also": [pages.names[j] for j in page.also],
    }
