"""Key in the JSON of a result: its type, its meaning and its value, said in one place.

A result declares its keys; its dictionary, the schema that the commands print and the page about the command line are made from
the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

# Type of a number that is null where it is missing or infinite.
NUMBER = "number or null"


class Key(NamedTuple):
    """A key of a table's rows: its type in JSON, its meaning, and whether it depends on the table or on options."""

    kind: str
    about: str
    optional: bool = False


class Fact(NamedTuple):
    """A key beside the table: its type in JSON, its meaning, its value for a result, and the keys of the objects in it."""

    kind: str
    about: str
    value: Callable[[Any], Any]
    items: dict[str, Key] | None = None

    @property
    def key(self) -> Key:
        """The key without its value."""
        return Key(self.kind, self.about)


# Where a row stands: columns of tables whose rows are rows of a file.
PLACE = {
    "line": Key("integer", "line of a text file on which the row begins, counted from 1", optional=True),
    "row": Key(
        "integer", "number of the row, counted from 1: in files without lines, and with --row-numbers", optional=True
    ),
}


def object_schema(keys: dict[str, Key], items: Mapping[str, dict[str, Key] | None] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of an object with these keys; `items` are the keys of the objects in its lists."""
    properties = {name: _type(key.kind) | {"description": key.about} for name, key in keys.items()}
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    for name in (items or {}).keys() & properties.keys():
        if within := (items or {})[name]:
            properties[name]["items"] = object_schema(within)
    found["required"] = [name for name, key in keys.items() if not key.optional]
    if "before" in keys and keys["before"].optional:
        found["patternProperties"] = {"^(before|after)_": {"type": ["number", "null"]}}
    return found


def _type(kind: str) -> dict[str, Any]:
    """Return the type of a key as JSON Schema: "list of string", "number or null", "string, number or boolean"."""
    if kind.startswith("list"):
        inner = kind.removeprefix("list").removeprefix(" of ")
        return {"type": "array"} | ({"items": _type(inner)} if inner else {})
    kinds = kind.replace(", ", " or ").split(" or ")
    return {"type": kinds if len(kinds) > 1 else kinds[0]}
