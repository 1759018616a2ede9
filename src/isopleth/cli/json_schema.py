"""The JSON objects that the commands print with --json: keys, their types and meanings; as JSON Schema with --json-schema.

A result declares its own keys (``Result.facts`` and ``Result.row_keys``); here stands which result a command prints and what it
adds, and the objects of commands that print none. The command line page is made from these tables too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from isopleth.results.keys import Fact, Key, object_schema
from isopleth.results.result import Result

# Keys of every object, and of every result.
_COMMON = {"result": Key("string", "kind of the result"), "isopleth": Key("string", "version")}
_NO_KEYS: dict[str, Key] = {}
_NO_OTHERS: dict[str, dict[str, Key]] = {}
_SUMMARY = {
    "summary": Key("list of string", "the finding in sentences"),
    "warnings": Key("list of string", "those of them that say that the answer may not hold for these data"),
}
_TABLE_ROWS = {
    "table_rows": Key("integer", "rows of the whole table; --top says of how many of them the first are printed")
}


class Printed(NamedTuple):
    """Output of a command: the place of the result's class, the keys that it adds, and what its rows are."""

    result: str = ""
    more: dict[str, Key] = _NO_KEYS
    more_of_rows: dict[str, Key] = _NO_KEYS
    rows: str = ""
    others: dict[str, dict[str, Key]] = (
        _NO_OTHERS  # by kind, keys of further objects of a command that prints an object a line
    )

    @property
    def declared(self) -> type[Result]:
        """The class of the result; it is loaded when a schema is asked for, and not before."""
        module, _, name = f"isopleth.tasks.{self.result}".rpartition(".")
        return getattr(import_module(module), name)

    @property
    def facts(self) -> dict[str, Fact]:
        """Keys that the result declares beside its table."""
        return self.declared.facts if self.result else {}

    @property
    def keys(self) -> dict[str, Key]:
        """Keys of the object."""
        if not self.result:
            return _COMMON | self.more
        declared = {name: fact.key for name, fact in self.facts.items()}
        return _COMMON | _SUMMARY | declared | self.more | _TABLE_ROWS | {"table": Key("list of object", self.rows)}

    @property
    def row_keys(self) -> dict[str, Key]:
        """Keys of the objects in its table."""
        return (self.declared.row_keys if self.result else {}) | self.more_of_rows


_FILE = {"out": Key("string", "file with the rows")}
_PAGE = {
    "row": Key("integer", "with a context: row at which something happened to a page; one object a line for each"),
    "row_time": Key("string or null", "its time, if rows have times"),
    "event": Key(
        "string",
        "opened, joins (another column, whose change is told), lasts (an incident that has become a change of the level), grows "
        "(a change three times as large as was last said, measured in the rows of a day), turned (a level to the other side of "
        "what is usual, where another page takes its place), or closed",
    ),
    "page": Key("integer", "number of the page, counted from 1"),
    "kind": Key("string", "level, given (given the other columns), spread, together, or incident"),
    "columns": Key("list of string", "columns that changed"),
    "direction": Key("integer", "1 for higher, more spread or more alike, -1 for the contrary"),
    "usual": Key("number or null", "what is usual in the context; of two columns their correlation"),
    "observed": Key("number or null", "what was observed in its place"),
    "times": Key("number or null", "observed over usual, of columns without negative cells"),
    "size": Key("number or null", "size in deviations; of a spread the ratio to the usual one"),
    "since": Key("integer", "row since which there is evidence"),
    "time": Key("string or null", "its time, if rows have times"),
    "until": Key("integer or null", "first row after the change, of a page that is closed"),
    "until_time": Key("string or null", "its time, if rows have times"),
    "turned": Key("integer or null", "page that took the place of one that turned"),
    "also": Key("list of string", "columns in which the same cause showed"),
}
_ABSENCE = {
    "row": Key("integer", "with a context: first row after a time without rows, longer than those of the reference"),
    "row_time": Key("string or null", "its time"),
    "event": Key("string", "absent"),
    "since": Key("integer", "row before that time"),
    "time": Key("string or null", "its time"),
    "seconds": Key("number", "seconds between the two rows"),
}
_ALARM = {
    "row": Key("integer", "row at which the alarm was raised, counted from 1; one object a line for each alarm"),
    "row_time": Key("string or null", "its time, if there is one column of times"),
    "first_row": Key("integer", "first row of its window"),
    "statistic": Key("number", "distance of the window from the reference"),
    "threshold": Key("number", "threshold of the distance"),
    "changes": Key("object", "how the columns changed that moved, in words"),
    "shift_given_others": Key(
        "object", "mean residual of each column that moved given the others, in units of its standard deviation"
    ),
}
_KNOWN = {
    "known": Key("integer", "number of known anomalies"),
    "known_among_least_likely": Key("integer", "of these, among as many least likely rows"),
    "known_flagged": Key("integer", "of these, flagged"),
    "plot": Key("string or null", "file with the picture; null without matplotlib"),
}
_FILES = {"before": Key("string", "file A"), "after": Key("string", "file B")}
_MACHINE = {
    "python": Key("string", "version of Python"),
    "executable": Key("string", "path of Python"),
    "platform": Key("string", "operating system"),
    "processors": Key("integer", "processors that this process may use"),
    "memory_bytes": Key("integer or null", "memory of the machine"),
    "blas": Key("list of string", "libraries for linear algebra, and their threads"),
    "threads": Key("object", "environment variables that limit threads"),
    "versions": Key("object", "versions of the libraries that isopleth needs; null where missing"),
    "optional": Key("object", "versions of optional libraries; null where not installed"),
    "gpu": Key("list of string", "GPUs that PyTorch sees"),
}
_MODEL = {
    "type": Key("string", "class of the model"),
    "model": Key("string", "file of the model"),
    "rows": Key("integer", "rows of the table"),
    "columns": Key("list of string", "columns that were used"),
}
_SCORED = {
    "rows": Key("integer", "rows of the table"),
    "answers": Key("list of string", "columns of the result"),
    "out": Key("string", "file of the result"),
    "unranked": Key("integer", "rows whose log density is minus infinity"),
}
_LEAST_LIKELY = "one object for each of the --top least likely rows"

# For each command what it prints.
SCHEMAS = {
    "anomalies": Printed("anomaly.result.Anomalies", rows=_LEAST_LIKELY),
    "changes": Printed("changes.result.ChangePoints", rows="one object for each change: its place, and"),
    "compare": Printed("two_sample.result.TwoSampleResult", _FILES, rows="one object for each of the --top columns"),
    "demo": Printed("anomaly.result.Anomalies", _KNOWN, rows=_LEAST_LIKELY),
    "cells": Printed(
        "cellwise.result.CellFindings", rows="the worst cell of each of the --top rows that have the worst ones"
    ),
    "describe": Printed("description.TableDescription", rows="one object for each column"),
    "doctor": Printed(more=_MACHINE),
    "expect": Printed("expected_values.Expectation", rows="one object for each other column"),
    "fill": Printed(
        "expected_values.FilledCells",
        {
            "out": Key("string", "file with the table"),
            "filled_cells": Key("string or null", "file of --filled"),
        },
        rows="one object for each column",
    ),
    "fit": Printed(more=_MODEL),
    "monitor": Printed(more=_ALARM, others={"page": _PAGE, "absence": _ABSENCE}),
    "prior": Printed("class_prior.result.ClassPriors", rows="one object for each class"),
    "sample": Printed("made_rows.result.MadeRows", _FILE, rows="empty: the rows are in the file"),
    "score": Printed(more=_SCORED),
}


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of the object that a command prints with --json; `monitor` prints one object a line."""
    printed = SCHEMAS[command]
    if printed.others:
        schema: dict[str, Any] = {"anyOf": [object_schema(each) for each in (printed.more, *printed.others.values())]}
    else:
        schema = object_schema(
            printed.keys, {name: fact.items for name, fact in printed.facts.items()} | {"table": printed.row_keys}
        )
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"isopleth {command} --json"}
    return dialect | schema
