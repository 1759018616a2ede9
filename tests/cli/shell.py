"""Run commands in this process, and what their tests ask of a run. A file of tests binds the name of its command by `partial`."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from isopleth.cli.commands import program


def run(*arguments: object, rows: str | bytes | None = None) -> Result:
    """Run a command; `rows` are its standard input. It does not say how far it is, as it would on a slow machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isopleth.cli.program.IN_LOG", math.inf)
        return CliRunner().invoke(
            program, [*map(str, arguments)], input=rows, prog_name="isopleth", catch_exceptions=False
        )


def fine(*arguments: object, **given: Any) -> Result:
    """Run a command that has to succeed."""
    result = run(*arguments, **given)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: object, **given: Any) -> str:
    """The one line that a wrong input gives."""
    result = run(*arguments, **given)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith("isopleth: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def found(*arguments: object) -> dict[str, Any]:
    """What a run says as JSON."""
    return json.loads(fine(*arguments, "--json").stdout)


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a header."""
    with open(path, newline="") as lines:
        return list(csv.DictReader(lines))
