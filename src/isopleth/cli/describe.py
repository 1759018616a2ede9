"""``isopleth describe``: say what the columns of a table are taken as, and what is odd about it."""

from __future__ import annotations

from pathlib import Path

from isopleth.cli.commands import TableOptions
from isopleth.cli.messages import Stages
from isopleth.cli.outputs import Outputs, answer
from isopleth.tables.read import read_table
from isopleth.tasks.description import TableDescription


def describe(file: Path, options: TableOptions, report: Path | None, as_json: bool) -> None:
    """Describe a table."""
    outputs = Outputs(page=report)
    outputs.check(FILE=file)
    with Stages(["reading", "writing"]) as stage:
        stage("reading")
        table = read_table(file, **options.reading(), warn=False)
        found = TableDescription.of(table)
        stage("writing")
        outputs.write(found, sources=[file])
    answer(found, as_json, None)
