"""Options that several commands share. Importing this module is fast; it imports no numerical library."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import click


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


@dataclass(frozen=True)
class TableOptions:
    """Options for reading the tables of a command.

    Parameters
    ----------
    columns : list of str, optional
        Columns to use; all by default.
    exclude, identifiers : list of str, optional
        Columns to leave out.
    keep_identifiers : bool
        Whether columns that look like identifiers are used.
    categorical, numeric : list of str, optional
        Columns of these kinds, whatever they look like.
    missing : list of str, optional
        Words that mean a missing cell.
    decimal : str, optional
        Decimal sign of text files.
    time_columns : list of str, optional
        Columns that hold times.
    encoding : str, optional
        Encoding of text files.
    max_unpacked : int, optional
        Bytes that a packed file may have when it is unpacked.
    """

    columns: list[str] | None = None
    exclude: list[str] | None = None
    identifiers: list[str] | None = None
    keep_identifiers: bool = False
    categorical: list[str] | None = None
    numeric: list[str] | None = None
    missing: list[str] | None = None
    decimal: str | None = None
    time_columns: list[str] | None = None
    encoding: str | None = None
    max_unpacked: int | None = None

    def reading(self) -> dict[str, Any]:
        """Return the options as parameters of :func:`isopleth.read_table`."""
        lists = ("exclude", "identifiers", "categorical", "numeric", "time_columns")
        return {field.name: getattr(self, field.name) or () for field in fields(self) if field.name in lists} | {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in lists
        }

    @classmethod
    def gathered(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a command with those of its tables as one, `options`, if it has them."""
        names = {field.name for field in fields(cls)}
        if not names <= parameters.keys():
            return dict(parameters)
        others = {name: value for name, value in parameters.items() if name not in names}
        return others | {"options": cls(**{name: parameters[name] for name in names})}
