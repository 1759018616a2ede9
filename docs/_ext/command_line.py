"""Directives with what the program says of itself: the help text of each command, and the keys of its JSON."""

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
        from isopleth.cli.commands import program

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


class JsonKeys(Directive):
    """Tables of the keys of the JSON objects that the commands print, or of one kind of object of one command.

    .. isopleth-json:: monitor page
    """

    optional_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Return the sections, or the table of the object that is named."""
        from isopleth.cli.json_schema import SCHEMAS

        if self.arguments:
            command, kind = self.arguments
            return [_table(SCHEMAS[command].others[kind])]
        sections = []
        for name, printed in SCHEMAS.items():
            keys, row = printed.keys, printed.row_keys
            section = nodes.section(ids=[f"json-{name}"], names=[f"json of {name}"])
            section += nodes.title(text=f"{name} --json")
            section += _table(keys)
            if row:
                section += nodes.paragraph(text="Each object in its table has:")
                section += _table(row)
            for kind, others in printed.others.items():
                section += nodes.paragraph(text=f"An object of the kind {kind} has:")
                section += _table(others)
            sections.append(section)
        return sections


def _table(keys: dict[str, Any]) -> nodes.table:
    """Return a table of keys, types and meanings."""
    table, group = nodes.table(), nodes.tgroup(cols=3)
    table += group
    group.extend(nodes.colspec(colwidth=width) for width in (22, 20, 58))
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += _row([nodes.Text("key"), nodes.Text("type"), nodes.Text("meaning")])
    for name, key in keys.items():
        body += _row([nodes.literal(text=name), nodes.Text(key.kind), nodes.Text(key.about)])
    return table


def _row(cells: list[nodes.Node]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        paragraph = nodes.paragraph()
        paragraph += cell
        entry += paragraph
        row += entry
    return row


def setup(app: Any) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("isopleth-help", CommandHelp)
    app.add_directive("isopleth-json", JsonKeys)
    return {"parallel_read_safe": True}
