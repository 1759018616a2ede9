"""The command line."""

from __future__ import annotations

from isopleth.cli.program import program


def main() -> None:
    """Run the command line and exit: 0 when done, 2 when the input is wrong."""
    program(prog_name="isopleth")


__all__ = ["main", "program"]
