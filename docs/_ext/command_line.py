"""Directive `isopleth-help`: a section with the help text of each command, made by the program itself."""

from __future__ import annotations

from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive

_WIDTH = 80


class CommandHelp(Directive):
    """Sections, one for each command, with what `--help` prints at 80 columns."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        from isopleth.cli.program import program

        width = {"terminal_width": _WIDTH, "max_content_width": _WIDTH}
        parent = click.Context(program, info_name="isopleth", **width, **program.context_settings)
        sections = []
        for name, command in sorted(program.commands.items()):
            context = click.Context(command, info_name=name, parent=parent, **width)
            text = command.get_help(context)
            section = nodes.section(ids=[f"isopleth-{name}"], names=[f"isopleth {name}"])
            section += nodes.title(text=f"isopleth {name}")
            section += nodes.literal_block(text, text, language="none")
            sections.append(section)
        return sections


def setup(app: Any) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("isopleth-help", CommandHelp)
    return {"parallel_read_safe": True}
