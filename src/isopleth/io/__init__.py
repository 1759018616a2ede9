"""Files: tables in, as a whole or in chunks, models in and out, and writing that is whole or not at all."""

from __future__ import annotations

from isopleth.io.atomic import atomic_write, check_target
from isopleth.io.chunks import FileRows, open_rows
from isopleth.io.models import load, save
from isopleth.io.tables import Table, read_names, read_table

__all__ = [
    "FileRows",
    "Table",
    "atomic_write",
    "check_target",
    "load",
    "open_rows",
    "read_names",
    "read_table",
    "save",
]
