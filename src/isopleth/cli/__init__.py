"""The command line."""

from __future__ import annotations

from isopleth.cli.process import main

__all__ = ["main"]
