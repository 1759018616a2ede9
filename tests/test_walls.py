"""The packages of the library (``tools/walls.py``), checked against the imports of the code."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not (ROOT / "tools").exists(), reason="the tools are not beside an installed package")

# Imports that still stand against a wall. The list may only shrink.
STANDING: set[str] = set()


def module(folder, name):
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found  # its dataclasses look it up
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def walls():
    return module("tools", "walls")


def test_every_folder_is_in_the_list_of_packages_and_every_package_is_there(walls):
    there = {path.stem for path in walls.SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    there |= {f"tasks/{path.parent.name}" for path in (walls.SOURCE / "tasks").glob("*/__init__.py")}
    plan = {package.path for package in walls.PACKAGES}
    assert there - {"__init__", "__main__"} == plan


def test_no_import_stands_against_a_wall_but_those_of_the_list(walls):
    found = {str(one) for one in walls.against()}
    assert not found - STANDING, "use a declared name of the package, or change the list of packages with a reason"
    assert not STANDING - found, "these imports are gone: take them off the list"


def test_packages_use_each_other_in_one_direction(walls):
    packages = {package.path: package for package in walls.PACKAGES}
    left = {
        (a, b)
        for a, package in packages.items()
        for pattern in (*package.uses, *package.declared)
        for b in packages
        if (a != b and b == pattern) or (pattern.endswith("/*") and b.startswith(pattern[:-1]))
    }
    while ends := {b for _, b in left} - {a for a, _ in left}:
        left = {(a, b) for a, b in left if b not in ends}
    assert not left
    assert not packages["core"].uses + packages["core"].declared


def test_every_package_has_tests_of_its_own_and_three_things_to_do_first(walls):
    for package in walls.PACKAGES:
        assert len(package.first) == 3, package.path
        assert (ROOT / package.tests).exists(), package.path


def test_an_import_against_a_wall_is_seen_wherever_it_stands(walls, tmp_path):
    (tmp_path / "cli").mkdir()
    (tmp_path / "density").mkdir()
    (tmp_path / "kernels.py").write_text(f"def f():\n    from {tmp_path.name} import cli\n")
    (tmp_path / "cli" / "one.py").write_text(
        f"from {tmp_path.name}.density import A\nfrom {tmp_path.name}.density.stack import B\nimport {tmp_path.name}.io.z\n"
    )
    for name in ("cli", "density"):
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "density" / "two.py").write_text(f"from {tmp_path.name}.kernels.base import C\n")
    assert list(map(str, walls.against(tmp_path))) == [
        "cli/one.py: from density.stack import B",
        "kernels.py: from cli import ",
    ]


def test_the_picture_has_every_package_and_each_has_a_page(walls, tmp_path):
    pytest.importorskip("matplotlib")
    pictures = module("docs/_ext", "architecture")
    words = {text.get_text() for text in pictures.draw().axes[0].texts}
    assert {package.path for package in walls.PACKAGES if "/" not in package.path} <= words
    pictures.write_pages(tmp_path)
    assert "``core``" in (tmp_path / "score.rst").read_text()
    assert "tests/tasks/drift" in (tmp_path / "tasks_drift.rst").read_text()
    assert len(list(tmp_path.iterdir())) == 1 + len(walls.PACKAGES)
