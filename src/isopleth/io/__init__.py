"""Files: tables in, models in and out, and writing that is whole or not at all."""

from __future__ import annotations

from isopleth.io.atomic import atomic_write, check_target
from isopleth.io.models import load, save
from isopleth.io.tables import Table, read_names, read_table

__all__ = ["Table", "atomic_write", "check_target", "load", "read_names", "read_table", "save"]
