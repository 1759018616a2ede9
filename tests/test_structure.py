"""Names of classes, and names that experiments and benchmarks import."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import isopleth

ROOT = Path(__file__).parents[1]
PACKAGE = Path(isopleth.__file__).parent


@cache
def tree_of(path):
    """Return the syntax tree of a file, which several tests walk."""
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_two_classes_have_one_name():
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    names = Counter(name for text in texts for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE))
    assert not {name for name, count in names.items() if count > 1}


def test_no_two_files_of_tests_have_one_name():
    """Folders without an `__init__.py` share their names: pytest collects the first of two such files, and the run ends."""
    files = [path for path in Path(__file__).parent.rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert not [name for name, count in Counter(path.name for path in files).items() if count > 1]


def test_experiments_and_benchmarks_import_what_there_is():
    for path in [*(ROOT / "experiments").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        found = re.findall(r"from isopleth\.([\w.]+) import (\([^)]*\)|.*)", path.read_text(encoding="utf-8"))
        for module, names in found:
            there = PACKAGE / module.replace(".", "/")
            files = [there.with_suffix(".py"), *there.glob("__init__.py*")]
            words = {word for file in files if file.exists() for word in re.findall(r"\w+", file.read_text())}
            for name in re.findall(r"(\w+)(?: as \w+)?(?=[,\n)]|$)", names.partition("#")[0]):
                assert name in words, (path.name, module, name)


def test_every_function_of_six_lines_or_more_has_a_sentence():
    """Methods that a base class describes under the same name, and functions inside others, need none of their own."""
    described, without = set(), []
    for path in PACKAGE.rglob("*.py"):
        for owner in ast.walk(tree_of(path)):
            for node in ast.iter_child_nodes(owner):
                if not isinstance(node, ast.FunctionDef) or isinstance(owner, ast.FunctionDef):
                    continue
                method = isinstance(owner, ast.ClassDef)
                if ast.get_docstring(node):
                    described |= {node.name} if method else set()
                elif node.end_lineno - node.lineno >= 5 and not node.name.startswith("__"):
                    without.append((path.relative_to(PACKAGE).as_posix(), node.name, method))
    assert not [(path, name) for path, name, method in without if not (method and name in described)]


def test_docstrings_begin_with_a_verb_or_a_noun():
    others = {
        "What",
        "How",
        "Whether",
        "Which",
        "Who",
        "Where",
        "When",
        "Why",
        "If",
        "With",
        "By",
        "Of",
        "In",
        "At",
        "To",
        "As",
    }
    others |= {"From", "Their", "Its", "Not", "It", "This", "These", "That", "So", "And", "But", "Or", "Everything"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                first = re.split(r"[ ,:.\n]", text, maxsplit=1)[0]
                assert first not in others, (path.relative_to(PACKAGE).as_posix(), getattr(node, "name", ""), first)


def test_no_module_of_densities_and_differences_imports_another_in_a_circle():
    """Not inside functions and for types, either: a file can be read before those that use it."""
    for package in ("density", "difference"):
        left = set()
        for path in (PACKAGE / package).glob("*.py"):
            nodes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
            modules = [str(node.module).split(".") for node in nodes]
            left |= {
                (path.stem, parts[2]) for parts in modules if parts[:2] == ["isopleth", package] and len(parts) > 2
            }
        assert len(left) > 10
        while outer := {pair for pair in left if pair[1] not in {a for a, _ in left}}:
            left -= outer
        assert not left
