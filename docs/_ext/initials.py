"""Initials at the start of a reference: "A. Author" is a name and not the first item of a list."""

from __future__ import annotations

import re
from typing import Any

_REFERENCE = re.compile(r"^(\s*\.\. \[\d+\] )(?=[A-Z]\. )")


def _escape(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [_REFERENCE.sub(r"\1\\", line) for line in lines]


def setup(app: Any) -> dict[str, bool]:
    """Before numpydoc reads the docstrings."""
    app.connect("autodoc-process-docstring", _escape, priority=400)
    return {"parallel_read_safe": True}
