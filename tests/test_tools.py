"""The tools that count lines, files and opens count what they say."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="the tools are not beside an installed package")


def tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look it up
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
    found = counting.traced(lambda: counting.SOSREP(length_scale=1.0).fit([[0.0], [1.0], [3.0]]))
    assert {"density/sosrep.py", "expansion.py"} < set(found)


def test_commands_open_each_table_once(tmp_path):
    counting = tool("files_of_a_fit")
    for arguments in counting.commands(tmp_path).values():
        with counting.opened() as counts:
            assert counting.run_command(*arguments) == 0
        assert [counts[os.path.realpath(table)] for table in arguments if isinstance(table, Path)] in ([1], [1, 1])


def test_bodies_of_functions_are_counted_without_signature_and_docstring(tmp_path):
    (tmp_path / "one.py").write_text(
        'def f(\n    a,\n):\n    """Do.\n\n    More.\n    """\n    b = a\n\n    # why\n    return (\n        b\n    )\n'
    )
    (tmp_path / "two.py").write_text("def g(a):\n    x, y = a\n    return x if y else [z for z in a]\n")
    house = tool("house")
    assert {body.place: (body.lines, body.names) for body in house.bodies(tmp_path)} == {
        "one.py:f": (4, 1),
        "two.py:g": (2, 3),
    }
    assert house.branches(tmp_path) == pytest.approx(1000 / 10)


def test_what_is_one_budget_inside_is_not_taken_one_by_one_again(tmp_path):
    (tmp_path / "one.py").write_text(
        "class A:\n    n_jobs: int\n    def f(self, *, verbose, memory_limit): ...\ndef g(n): ...\n"
    )
    house = tool("house")
    assert house.budget_parameters(tmp_path) == ["one.py:A n_jobs", "one.py:f memory_limit, verbose"]
    # Estimators, public functions, the checks of these parameters, and Budget itself; inside, a Budget is handed on.
    assert len(house.budget_parameters()) <= 50


def test_a_walk_counts_functions_of_the_library_and_calls_from_file_to_file():
    house = tool("house")
    from isopleth.core.p_values import normal_quantile

    found = house.walk(lambda: normal_quantile(0.95))
    assert found.named("normal_quantile") == 1
    assert len(found.runs) == 2
    assert found.moves == 1  # it checks the probability, in another file
