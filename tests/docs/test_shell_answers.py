"""What the pages show as the output of a command is what the command prints."""

from __future__ import annotations

import doctest
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from isopleth.cli.commands import program

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def shown() -> list[tuple[str, str, str]]:
    """Return page, command and output of each block that shows what a command prints for a table of the README."""
    found = []
    for page in sorted(DOCS.glob("*.rst")):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            command, _, output = textwrap.dedent(block).partition("\n")
            if command.startswith("$ isopleth ") and output.strip() and not output.startswith("$ "):
                found.append((page.name, command.removeprefix("$ isopleth "), output))
    return found


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    questions = pytest.importorskip("experiments.questions", reason="experiments are not beside an installed package")
    folder = tmp_path_factory.mktemp("tables")
    questions.write_tables(folder)
    return folder


@pytest.mark.parametrize(("page", "command", "output"), shown(), ids=lambda said: said[:40])
def test_commands_print_what_the_pages_show(page, command, output, tables, monkeypatch):
    monkeypatch.chdir(tables)
    printed = CliRunner().invoke(program, shlex.split(command)).stdout
    checker = doctest.OutputChecker()
    example = doctest.Example("", output)
    assert checker.check_output(output, printed, FLAGS), checker.output_difference(example, printed, FLAGS)
