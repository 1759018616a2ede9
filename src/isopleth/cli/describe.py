"""``isopleth describe``: say what the columns of a table are taken as, and what is odd about it."""

from __future__ import annotations

from pathlib import Path

from isopleth.cli.program import ShellWording
from isopleth.cli.run import Run
from isopleth.files.table_parts import read_files
from isopleth.tasks.description import TableDescription


def describe(run: Run, file: Path) -> None:
    """Describe a table."""
    run.stage("reading")
    found = TableDescription.of(read_files(file, run.options), ShellWording())
    run.stage("writing")
    run.write(found)
    run.answer(found)
