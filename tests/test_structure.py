"""The house as its page tells it, held against the imports of the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import isopleth

ROOT = Path(__file__).parents[1]
PACKAGE = Path(isopleth.__file__).parent


@pytest.fixture(scope="module")
def house():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("house", ROOT / "docs" / "_ext" / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def taken(house):
    return house.imports(PACKAGE)


def test_every_room_of_the_package_is_in_the_plan_and_no_other(house):
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(house.rooms()) == there - {"__init__"}


def test_no_import_runs_up_but_for_pictures(house, taken):
    floors = house.rooms()
    wrong = {
        (room, other): files
        for (room, other), files in taken.items()
        if floors[other] >= floors[room] > 0 and not ((room, other) in house.STAIRS and all(late for _, late in files))
    }
    assert not wrong


def test_the_cellar_stands_on_nothing_but_itself(house, taken):
    floors = house.rooms()
    assert not {pair for pair in taken if floors[pair[0]] == 0 < floors[pair[1]]}


def test_no_room_of_the_cellar_needs_one_that_needs_it(house, taken):
    floors = house.rooms()
    left = {pair for pair in taken if floors[pair[0]] == 0}
    while ends := {b for _, b in left} - {a for a, _ in left}:
        left = {(a, b) for a, b in left if b not in ends}
    assert not left


def test_imports_are_seen_where_they_stand(house, tmp_path):
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "one.py").write_text(f"from {tmp_path.name}.tasks.x import y\nimport {tmp_path.name}.io.z\n")
    (tmp_path / "kernels.py").write_text(f"def f():\n    from {tmp_path.name} import cli\n")
    assert house.imports(tmp_path) == {
        ("cli", "tasks"): [("cli/one.py", False)],
        ("cli", "io"): [("cli/one.py", False)],
        ("kernels", "cli"): [("kernels.py", True)],
    }
