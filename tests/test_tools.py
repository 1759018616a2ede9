"""The tools that count lines, files and opens count what they say."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="the tools are not beside an installed package")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_of_code_are_those_with_tokens_outside_docstrings():
    source = (
        '"""Subject.\n\nMore.\n"""\n\nx = """a\nb"""  # two lines of code\n"""Why."""\n# comment\n'
        'def f():\n    """Do."""\n    return 1\n'
    )
    assert tool("size").counted(source) == {"code": 4, "docstrings": 6, "files": 1}


def test_every_open_of_a_file_is_counted_by_its_real_path(tmp_path, monkeypatch):
    counting = tool("files_of_a_fit")
    (tmp_path / "t").write_text("x")
    monkeypatch.chdir(tmp_path)
    with counting.opened() as counts:
        Path("t").read_text()
        os.close(os.open("t", os.O_RDONLY))
    Path("t").read_text()
    assert counts[os.path.realpath("t")] == 2
    found = counting.traced(lambda: counting.isopleth.SOSREP(length_scale=1.0).fit([[0.0], [1.0], [3.0]]))
    assert {"density/sosrep.py", "expansion.py"} < set(found)


def test_commands_open_each_table_once(tmp_path):
    counting = tool("files_of_a_fit")
    for arguments in counting.commands(tmp_path).values():
        with counting.opened() as counts:
            assert counting.run_command(*arguments) == 0
        assert [counts[os.path.realpath(table)] for table in arguments if isinstance(table, Path)] in ([1], [1, 1])
