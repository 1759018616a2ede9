"""What a version promises to keep, read from the code: public names, parameters, fields, options, and keys of JSON."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import click

from isopleth.cli.commands import program
from isopleth.cli.json_schema import SCHEMAS
from isopleth.results import Result

FOLDER = Path(__file__).parent
# Packages of which every public name is kept; the last ones need libraries that may not be there.
PACKAGES = (
    *(
        "",
        "conditional",
        "datasets",
        "density",
        "difference",
        "frames",
        "io",
        "kernels",
        "results",
        "sampling",
        "score",
    ),
    *("tasks", "distributed", "torch"),
)


def names() -> dict[str, dict[str, list[str]]]:
    """Return the parameters, methods and attributes of each public name of the packages that can be imported."""
    found = {}
    for package in PACKAGES:
        try:
            module = importlib.import_module(f"isopleth.{package}".rstrip("."))
        except ImportError:
            continue
        for name in sorted(vars(module).get("__all__", dir(module))):
            value = getattr(module, name)
            if name[0] != "_" and _is_ours(value):
                found[f"{package}.{name}".lstrip(".")] = of_name(value)
    return found


def of_name(value: Any) -> dict[str, list[str]]:
    """Return what is kept of a class or function: parameters, methods with theirs, attributes and fields."""
    is_result = inspect.isclass(value) and issubclass(value, Result)  # which tasks make, and users do not
    kept = {"parameters": [] if is_result else _parameters(value)}
    if not inspect.isclass(value):
        return kept
    for name in sorted(dir(value)):
        method = getattr(value, name, None)
        if name[0] == "_" or not callable(method) or not _is_ours(method):
            continue
        if not (is_result and inspect.ismethod(method)):
            kept[f"{name}()"] = _parameters(method)
    kept["attributes"] = sorted(_documented(value) or _fields(value))
    return kept


def _is_ours(method: Any) -> bool:
    return str(getattr(method, "__module__", "")).startswith("isopleth")


def _parameters(value: Any) -> list[str]:
    """Return the names of the parameters, in order; none where a builtin does not tell."""
    try:
        return [name for name in inspect.signature(value).parameters if name[0] != "_" and name != "self"]
    except (TypeError, ValueError):
        return []


def _documented(value: type) -> list[str]:
    """Return the names beneath "Attributes" of a docstring."""
    section = re.search(
        r"^Attributes\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", inspect.getdoc(value) or "", re.MULTILINE | re.DOTALL
    )
    lines = re.findall(r"^(\w[\w, ]*) :", section.group(1), re.MULTILINE) if section else []
    return [name for line in lines for name in line.split(", ")]


def _fields(value: type) -> list[str]:
    """Return the public fields of a data class or named tuple."""
    fields = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    return [name for name in (*fields, *getattr(value, "_fields", ())) if name[0] != "_"]


def options() -> dict[str, list[str]]:
    """Return the names of options and arguments of each command."""
    return {
        name: sorted({word for option in command.params for word in _words(option)})
        for name, command in sorted(program.commands.items())
    }


def _words(option: click.Parameter) -> list[str]:
    """Return the words of an option, and a name in capitals for an argument."""
    if isinstance(option, click.Argument):
        return [str(option.name).upper()]
    return [*option.opts, *option.secondary_opts]


def json_keys() -> dict[str, dict[str, str]]:
    """Return the types of the keys of each command's JSON and of the dictionary of each result; those of rows after a dot."""
    found = {}
    for command, printed in SCHEMAS.items():
        keys = {name: key.kind for name, key in printed.keys.items()}
        inside = {name: fact.items for name, fact in printed.facts.items() if fact.items} | {"table": printed.row_keys}
        found[f"isopleth {command} --json"] = keys | _dotted(inside | printed.others)
    for result in _results():
        facts = {name: fact.kind for name, fact in result.facts.items()}
        inside = {name: fact.items for name, fact in result.facts.items() if fact.items} | {"table": result.row_keys}
        found[f"{result.__name__}.to_dict()"] = facts | _dotted(inside)
    return found


def _dotted(inside: dict[str, Any]) -> dict[str, str]:
    """Return the types of the keys of objects inside a list, named by both."""
    return {f"{outer}.{name}": key.kind for outer, keys in inside.items() for name, key in keys.items()}


def _results() -> list[type[Result]]:
    """Return the results of all tasks, by name."""
    for file in (Path(inspect.getfile(Result)).parents[1] / "tasks").rglob("*.py"):
        parts = file.with_suffix("").parts
        importlib.import_module(".".join(parts[parts.index("isopleth") :]).removesuffix(".__init__"))
    left, found = [Result], {}
    while left:
        for child in left.pop().__subclasses__():
            left.append(child)
            if child.__module__.startswith("isopleth.") and child.facts:
                found[child.__name__] = child
    return [found[name] for name in sorted(found)]
