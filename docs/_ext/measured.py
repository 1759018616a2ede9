"""Directive for results of experiments: shows the file, and says by which command and which version they were obtained.

    .. measured:: cells_results.txt

`figures.json` holds the command, the version and the processor seconds of each file, and the reason if it was not measured again
with this minor version; tools/figures.py runs the commands and writes both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.directives.code import LiteralInclude

RECORDS = "figures.json"


def said(record: dict[str, Any]) -> str:
    """Return the version and the cost of a run in words."""
    words = f"Measured with version {record['version']}"
    if record.get("reason"):
        words += f" and not again, because {record['reason']}"
    if record["cpu_seconds"] is None:
        return f"{words}."
    minutes = record["cpu_seconds"] / 60.0
    cost = f"{minutes:.0f} minutes" if minutes >= 2.0 else f"{record['cpu_seconds']:.0f} seconds"
    return f"{words}, in {cost} of a processor."


class Measured(LiteralInclude):
    """The file, and beneath it how it was obtained."""

    def run(self) -> list[nodes.Node]:
        """Return the block and the sentence."""
        self.options.setdefault("language", "none")
        return [*super().run(), *_sentence(self, Path(self.arguments[0]).name)]


def _sentence(directive: LiteralInclude, name: str) -> list[nodes.Node]:
    """Return the sentence on how a file was obtained."""
    record = json.loads((Path(directive.env.srcdir) / RECORDS).read_text(encoding="utf-8"))[name]
    paragraph = nodes.paragraph(classes=["measured"])
    if record["command"]:
        paragraph += nodes.literal(text=record["command"])
        paragraph += nodes.Text(": ")
    words = said(record)
    paragraph += nodes.Text(words if not record["command"] else words[0].lower() + words[1:])
    return [paragraph]


def setup(app: Any) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
