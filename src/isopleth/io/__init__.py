"""Files: tables read as a whole or in chunks, fitted models, and results that are written whole or not at all.

Readers and writers are imported when they are first used: checking a path needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isopleth.io.frames import Frame
    from isopleth.io.models import load, save
    from isopleth.io.tables import FileRows, Table, open_rows, read_frame, read_frame_chunks, read_names, read_table
    from isopleth.tables.files import atomic_write, check_target

__all__ = [
    "FileRows",
    "Frame",
    "Table",
    "atomic_write",
    "check_target",
    "load",
    "open_rows",
    "read_frame",
    "read_frame_chunks",
    "read_names",
    "read_table",
    "save",
]

# The module that defines each name of __all__.
_DEFINED_IN = {
    "FileRows": "isopleth.io.tables",
    "Frame": "isopleth.io.frames",
    "Table": "isopleth.io.tables",
    "atomic_write": "isopleth.tables.files",
    "check_target": "isopleth.tables.files",
    "load": "isopleth.io.models",
    "open_rows": "isopleth.io.tables",
    "read_frame": "isopleth.io.tables",
    "read_frame_chunks": "isopleth.io.tables",
    "read_names": "isopleth.io.tables",
    "read_table": "isopleth.io.tables",
    "save": "isopleth.io.models",
}

if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first asked for (PEP 562)."""
        if name not in _DEFINED_IN:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_DEFINED_IN[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
