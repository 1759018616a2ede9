"""The layers that docs/architecture.rst shows, checked against the imports of the code."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

import isopleth

ROOT = Path(__file__).parents[1]
PACKAGE = Path(isopleth.__file__).parent


@pytest.fixture(scope="module")
def layers():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "_ext" / "architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def taken(layers):
    return layers.imports(PACKAGE)


def test_the_plan_lists_every_package_and_no_other(layers):
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(layers.packages()) == there - {"__init__", "__main__"}


def test_no_import_points_upwards_but_one(layers, taken):
    levels = layers.packages()
    wrong = {
        (name, other): files
        for (name, other), files in taken.items()
        if levels[other] >= levels[name] > 0
        and not ((name, other) in layers.LATE_IMPORTS and all(late for _, late in files))
    }
    assert not wrong


def test_shared_modules_import_shared_modules_only(layers, taken):
    levels = layers.packages()
    upwards = {pair: files for pair, files in taken.items() if levels[pair[0]] == 0 < levels[pair[1]]}
    assert not {
        pair for pair, files in upwards.items() if not (pair in layers.LATE_IMPORTS and all(late for _, late in files))
    }


def test_shared_modules_have_no_import_cycle(layers, taken):
    levels = layers.packages()
    left = {pair for pair in taken if levels[pair[0]] == 0}
    while ends := {b for _, b in left} - {a for a, _ in left}:
        left = {(a, b) for a, b in left if b not in ends}
    assert not left


def test_imports_are_seen_where_they_stand(layers, tmp_path):
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "one.py").write_text(f"from {tmp_path.name}.tasks.x import y\nimport {tmp_path.name}.io.z\n")
    (tmp_path / "kernels.py").write_text(f"def f():\n    from {tmp_path.name} import cli\n")
    assert layers.imports(tmp_path) == {
        ("cli", "tasks"): [("cli/one.py", False)],
        ("cli", "io"): [("cli/one.py", False)],
        ("kernels", "cli"): [("kernels.py", True)],
    }


def test_no_two_classes_have_one_name():
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    names = Counter(name for text in texts for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE))
    assert not {name for name, count in names.items() if count > 1}


def test_experiments_and_benchmarks_import_what_there_is():
    for path in [*(ROOT / "experiments").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        found = re.findall(r"from isopleth\.([\w.]+) import (\([^)]*\)|.*)", path.read_text(encoding="utf-8"))
        for module, names in found:
            there = PACKAGE / module.replace(".", "/")
            files = [there.with_suffix(".py"), *there.glob("__init__.py*")]
            words = {word for file in files if file.exists() for word in re.findall(r"\w+", file.read_text())}
            for name in re.findall(r"(\w+)(?: as \w+)?(?=[,\n)]|$)", names.partition("#")[0]):
                assert name in words, (path.name, module, name)
