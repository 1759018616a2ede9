"""Types of options, options that several commands share, and sizes that their help states. Importing this module is fast."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from isopleth.core.errors import InputError


class ColumnList(click.ParamType):
    """Option type of names separated by commas; a name that holds a comma is quoted as in a CSV file."""

    name = "a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names in `value`."""
        try:
            names = next(csv.reader([value], skipinitialspace=True), [])
        except csv.Error:
            self.fail(f"{value!r} is no list of names: quote a name that holds a line break.", param, ctx)
        return [name.strip() for name in names if name.strip()]


class WordList(ColumnList):
    """Option type of words separated by commas, which keeps what was typed: it may be one word with a comma, as 46,3O is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the words in `value`."""
        return TypedWords(super().convert(value, param, ctx), value.strip())


class TypedWords(list[str]):
    """Words of an option, and `typed`, the text that was typed for them."""

    def __init__(self, words: list[str], typed: str) -> None:
        super().__init__(words)
        self.typed = typed


class WholeNumber(click.IntRange):
    """Option type of whole numbers of at least `min`, refused in these words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number of at least {self.min}.", param, ctx)


class Number(click.FloatRange):
    """Option type of numbers from `min`, or above it, and below or up to `max` if there is one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            most = "" if self.max is None else f" and {'below' if self.max_open else 'at most'} {self.max}"
            least = "above" if self.min_open else "of at least"
            self.fail(f"{value!r} is not a number {least} {self.min}{most}.", param, ctx)


# Flagged rows that --explain explains at most: a model can flag every row of a large file, which would take hours to explain.
MOST_FLAGGED = 1000

# Default of --size for densities of `isopleth fit`.
DENSITY_SIZE = 500

# Default of --size for densities of tables with words or missing cells.
MIXED_SIZE = 1000

# Most rows that `isopleth expect` and `fill` fit the law of a column to.
LAW_SIZE = 5000

# Most rows that `isopleth sample` fits a density to.
SAMPLE_SIZE = 2000

# Without click's own check for readability, which would come before the sentences of the library.
PATH = click.Path(path_type=Path, readable=False)


def file_option(*names: str, **how: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that adds an option whose value is a file; the last of the names is its help."""
    return click.option(*names[:-1], type=PATH, help=names[-1], **how)


def given_option(what: str, **how: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that adds --given, whose parts may stand in one option or in several."""
    return click.option(
        "--given",
        type=ColumnList(),
        multiple=True,
        callback=lambda ctx, param, values: [part for parts in values for part in parts],
        metavar="COL=VALUE,...",
        help=f"{what}, one a column, as in price=3.5,colour=red; no ranges; repeatable. Quote a part that holds a comma.",
        **how,
    )


def _renames(parts: list[str]) -> dict[str, str]:
    """Return the names of --rename by those that they replace."""
    pairs = [part.rpartition("=") for part in parts]
    if wrong := next(
        (part for part, (old, _, new) in zip(parts, pairs, strict=True) if not old or not new.strip()), None
    ):
        raise InputError(f"--rename has {wrong!r}; write a column and its new name, as in --rename 3=price.")
    return {old.strip(): new.strip() for old, _, new in pairs}


def _detection_limits(parts: list[str]) -> dict[str, float]:
    """Return the numbers of --detection-limits by their columns."""
    found = {}
    for part in parts:
        name, _, value = part.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            text = f"--detection-limits has {part!r}; write a column and a number, as in --detection-limits lead=0.5."
            raise InputError(text) from None
    return found


_TABLE_OPTIONS = [
    click.option("--exclude", type=ColumnList(), help="Leave these columns out."),
    click.option("--id", "identifiers", type=ColumnList(), help="These columns identify rows: leave them out."),
    click.option("--keep-id", "keep_identifiers", is_flag=True, help="Use columns that look like identifiers, too."),
    click.option("--categorical", type=ColumnList(), help="Take these columns as categories."),
    click.option("--numeric", type=ColumnList(), help="Take these columns as numbers."),
    click.option(
        "--missing", type=WordList(), help="Words that mean a missing cell.  [default: NA, N/A, NaN, null, ?, ...]"
    ),
    click.option("--decimal", type=click.Choice([".", ","]), help="Decimal sign of text files.  [default: recognised]"),
    click.option(
        "--rename",
        type=ColumnList(),
        callback=lambda ctx, param, parts: None if parts is None else _renames(parts),
        metavar="OLD=NEW,...",
        help="Other names of columns; OLD is a name, or a number from 1 where several columns have one name.",
    ),
    click.option(
        "--detection-limits",
        type=ColumnList(),
        callback=lambda ctx, param, parts: None if parts is None else _detection_limits(parts),
        metavar="COLUMN=NUMBER,...",
        help="What ND, BDL and the like say in these columns.  [default: the limit that other cells of the column say]",
    ),
    click.option("--sheet", metavar="NAME|NUMBER", help="Sheet of a workbook.  [default: the first visible one]"),
    click.option("--time-columns", type=ColumnList(), help="Take these columns as times."),
    click.option("--encoding", help="Encoding of text files, such as latin-1, or auto.  [default: UTF-8]"),
    click.option(
        "--max-unpacked",
        type=WholeNumber(min=1),
        metavar="BYTES",
        help="Refuse packed files that are larger when they are unpacked, and tables that take more.  [default: 1 GiB]",
    ),
]


def table_options(columns: str, about: str, bad_cells: str = "refuse") -> Callable[[Callable], Callable]:
    """Return a decorator that adds the options of every command that reads a table; `bad_cells` is a default."""

    def added(function: Callable) -> Callable:
        first: list[Any] = [
            click.option(columns, "columns", type=ColumnList(), help=about),
            _bad_cells_option(bad_cells),
        ]
        for option in reversed([*first, *_TABLE_OPTIONS]):
            function = option(function)
        return function

    return added


def _bad_cells_option(default: str) -> Callable[[Callable], Callable]:
    """Return the option for cells that cannot be read."""
    return click.option(
        "--bad-cells",
        type=click.Choice(["refuse", "missing"]),
        default=default,
        show_default=True,
        help="What becomes of cells that are not of the kind of their column, such as 46,3O among numbers: the table is refused "
        "and they are named, or they are named and count as missing. Limits such as <0.5 are no such cells.",
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object in the place of text.")

report_option = file_option(
    "--report",
    "Write a page with the result, a table to sort and pictures to zoom; .html, one file that needs no network.",
)

row_numbers_option = click.option(
    "--row-numbers",
    is_flag=True,
    help="Also write the row number, counted from 1, next to the line number; files without lines always have row numbers.",
)

ignore_missing_option = click.option(
    "--ignore-missing", is_flag=True, help="Do not count a different share of missing cells as a difference."
)

raw_text_option = click.option(
    "--raw-text",
    is_flag=True,
    help="Write names and words to .csv as they are, without ' before those that a spreadsheet would run as a formula.",
)


size_option = click.option(
    "--size",
    type=WholeNumber(min=10),
    help=f"Fit the density to so many rows of FILE, drawn at random.  [default: {SAMPLE_SIZE:,}, and at most 1,000 "
    "of a table with gaps]",
)

law_size_option = click.option(
    "--size",
    type=WholeNumber(min=10),
    help=f"Fit the law of each column to so many rows of FILE, drawn by what they hold.  [default: {LAW_SIZE:,}]",
)

confidence_option = click.option(
    "--confidence-level",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Confidence of each interval.",
)
