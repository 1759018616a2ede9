"""The JSON objects that the commands print with --json: keys, their types and meanings; as JSON Schema with --json-schema.

The command line page is made from these tables too. Types are those of JSON; "number or null" is null where a number is missing
or infinite. Keys of `OPTIONAL` depend on the table or on options.
"""

from __future__ import annotations

from typing import Any

_NUMBER = "number or null"
# Keys of every object.
COMMON = {
    "result": ("string", "kind of the result"),
    "isopleth": ("string", "version"),
}
_SUMMARY = {"summary": ("list of string", "the finding in sentences")}
_PLACE = {
    "line": ("integer", "line of a text file on which the row begins, counted from 1"),
    "row": ("integer", "number of the row, counted from 1: in files without lines, and with --row-numbers"),
}
_JUDGED = {
    **_SUMMARY,
    "rows": ("integer", "rows of the table"),
    "columns": ("list of string", "columns that were used"),
    "flagged": ("integer", "number of flagged rows"),
    "certain": ("integer", "number of rows selected at the false discovery rate"),
    "fdr": ("number", "that rate"),
    "rule": ("string", "what a flag means"),
    "rows_before_gap": (
        "integer",
        "least likely rows that a gap in the scores sets apart from all others; 0 without a gap",
    ),
    "pvalue_resolution": ("number", "smallest p-value that the rows can show; no p-value is smaller"),
    "decided_by": (
        "string or null",
        "column that alone makes nearly all certain rows unlikely, where many new rows are certain",
    ),
    "certified_rows": (
        "integer or null",
        "with --reference: rows of the list that the summary names; 0 if every limit is 0",
    ),
    "certified_anomalies": ("integer or null", "lower limit on the number of anomalies in this list"),
    "confidence": ("number or null", "confidence of these limits, of all lists together"),
    "table": ("list of object", "one object for each of the --top least likely rows"),
}
_JUDGED_ROW = {
    **_PLACE,
    "score": (_NUMBER, "higher is more normal"),
    "pvalue": (_NUMBER, "p-value of the row"),
    "flagged": ("boolean", "whether the row is flagged"),
    "certain": ("boolean", "whether it is selected at the false discovery rate"),
    "at_least": ("integer", "lower limit on the number of anomalies up to this row; with --reference"),
    "explained_by": ("string", "columns that make the row unlikely; with --explain or --report"),
}
_CHANGED_COLUMN = {
    "column": ("string", "name of the column"),
    "share": (_NUMBER, "share of the values that differ, about"),
    "share_low": (_NUMBER, "lower limit of the share, of an interval of 95 %"),
    "share_high": (_NUMBER, "upper limit"),
    "median_before": (_NUMBER, "median in A"),
    "median_after": (_NUMBER, "median in B"),
    "spread_before": (_NUMBER, "quartile distance in A"),
    "spread_after": (_NUMBER, "quartile distance in B"),
    "pvalue": ("number", "p-value of the column alone, adjusted for the number of columns"),
    "pvalue_given_others": ("number", "p-value of the column given the other columns, adjusted likewise"),
    "shift_given_others": (_NUMBER, "move of the column in standard deviations of what the other columns leave open"),
    "given_others": ("string", "the change given the other columns in words"),
    "statistic": (_NUMBER, "score of the column alone"),
    "level": ("string or null", "word whose share changed most, of a column of words"),
    "level_before": (_NUMBER, "its share in A"),
    "level_after": (_NUMBER, "its share in B"),
    "time_before": ("string or null", "median time in A, of a column of times"),
    "time_after": ("string or null", "median time in B"),
    "missing_before": ("number", "share of missing cells in A"),
    "missing_after": ("number", "share of missing cells in B"),
    "description": ("string", "the change in words"),
}

# For each command the keys of its object, and those of the objects in its table.
SCHEMAS: dict[str, tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]] = {
    "anomalies": (COMMON | _JUDGED, _JUDGED_ROW),
    "changes": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "steps of the series"),
            "columns": ("integer", "columns of the series"),
            "changes": ("integer", "number of changes"),
            "table": ("list of object", "one object for each change: its place, and"),
        },
        {
            **_PLACE,
            "time": ("string or number", "time of the step, if the series has times"),
            "earliest": ("integer", "lower limit of a 90 % interval for the place, counted like the place"),
            "latest": ("integer", "upper limit"),
            "kind": ("string", "level, incident (both ends), slope, scatter, shape, frequency or relation"),
            "pvalue": (_NUMBER, "about the least false alarm rate at which it would be reported"),
            "columns": ("string", "columns in which it was seen"),
            "state": ("integer", "state of the part after it; parts that are alike have the same one"),
            "before": (_NUMBER, "mean before; before_NAME for several columns"),
            "after": (_NUMBER, "mean after; after_NAME for several columns"),
        },
    ),
    "compare": (
        COMMON
        | _SUMMARY
        | {
            "schema_changes": (
                "list of object",
                "columns that only one table has or whose kind changed: column, before, after",
            ),
            "set_aside": ("object", "columns that were not compared, and why"),
            "shared_rows": ("list of integer", "rows of A that are also in B, and of B that are also in A"),
            "telling_rows": ("list of object", "up to twenty rows that tell the tables apart, with their values"),
            "pvalue": ("number", "p-value of the test"),
            "statistic": (_NUMBER, "its statistic"),
            "rows": ("list of integer", "rows of A and B"),
            "columns": ("list of string", "columns that were compared"),
            "n_resamples": ("integer", "number of permutations"),
            "rows_permuted_as_one": ("integer", "rows of a group"),
            "rows_permuted": ("integer", "rows that the permutations use"),
            "kernel_scores": ("object", "the eleven scores by their names"),
            "relations": (
                "list of list",
                "pairs of columns whose relation differs, of which neither differs by itself",
            ),
            "changed_groups": (
                "list of object",
                "groups of rows in which columns changed more than elsewhere: column, group, pvalue, before, after, elsewhere",
            ),
            "tolerance": (_NUMBER, "share of --tolerance; null without"),
            "against_tolerance": (
                "object",
                "with --tolerance: for each column more, less or open, as is shown of the share of its values that differ",
            ),
            "separation": ("object or null", "accuracy of a classifier with its interval; null for too few rows"),
            "before": ("string", "file A"),
            "after": ("string", "file B"),
            "table": ("list of object", "one object for each of the --top columns"),
        },
        _CHANGED_COLUMN,
    ),
    "demo": (
        COMMON
        | _JUDGED
        | {
            "known": ("integer", "number of known anomalies"),
            "known_among_least_likely": ("integer", "of these, among as many least likely rows"),
            "known_flagged": ("integer", "of these, flagged"),
            "plot": ("string or null", "file with the picture; null without matplotlib"),
        },
        _JUDGED_ROW,
    ),
    "cells": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "rows of the table"),
            "columns": ("list of string", "columns that were used"),
            "flagged_cells": ("integer", "number of flagged cells"),
            "flagged_rows": ("integer", "number of rows that hold one"),
            "rules": ("list of object", "rules that nearly all rows keep"),
            "table": ("list of object", "the worst cell of each of the --top rows that have the worst ones"),
        },
        {
            **_PLACE,
            "column": ("string", "column of the cell"),
            "value": ("string, number, boolean or null", "the cell"),
            "usual": (
                "string, number, boolean or null",
                "median of its law given the other cells, or the likeliest word",
            ),
            "low": ("string, number, boolean or null", "10 % quantile of the law, or the likeliest word"),
            "high": ("string, number, boolean or null", "90 % quantile"),
            "excess": ("number", "surprisal less its expectation, and what broken rules add, in nats"),
            "flagged": ("boolean", "whether the cell is flagged"),
            "against": (
                "string",
                "broken rules and other cells that speak against it; empty for rows that are not explained",
            ),
        },
    ),
    "describe": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "rows of the table"),
            "repeated_rows": ("integer", "rows that are equal to an earlier one"),
            "repeats": ("object", "where such rows stand, and where the earlier one stands; the first 1,000"),
            "codes": ("object", "for each column, a value that looks like a code for missing cells, and its rows"),
            "broken_relations": ("object", "products and sums that nearly all rows keep, and where the others stand"),
            "table": ("list of object", "one object for each column"),
        },
        {
            "column": ("string", "name of the column"),
            "taken as": ("string", "number, category, time, or left out: and why"),
            "distinct": ("integer", "distinct values"),
            "missing": ("integer", "missing cells"),
        },
    ),
    "doctor": (
        COMMON
        | {
            "python": ("string", "version of Python"),
            "executable": ("string", "path of Python"),
            "platform": ("string", "operating system"),
            "processors": ("integer", "processors that this process may use"),
            "memory_bytes": ("integer or null", "memory of the machine"),
            "blas": ("list of string", "libraries for linear algebra, and their threads"),
            "threads": ("object", "environment variables that limit threads"),
            "versions": ("object", "versions of the libraries that isopleth needs; null where missing"),
            "optional": ("object", "versions of optional libraries; null where not installed"),
            "gpu": ("list of string", "GPUs that PyTorch sees"),
        },
        {},
    ),
    "expect": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "rows of the table"),
            "given": ("object", "the given values"),
            "confidence_level": ("number", "confidence of each interval"),
            "probabilities": ("object", "for each column of words, their probabilities"),
            "table": ("list of object", "one object for each other column"),
        },
        {
            "column": ("string", "name of the column"),
            "expected": ("string, number or boolean", "median of numbers and times, likeliest word"),
            "low": ("string, number or null", "lower limit of numbers and times"),
            "high": ("string, number or null", "upper limit"),
            "probability": (_NUMBER, "probability of the likeliest word"),
        },
    ),
    "fill": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "rows of the table"),
            "filled": ("integer", "cells that were filled"),
            "left": ("list of string", "columns with gaps that are not used"),
            "out": ("string", "file with the table"),
            "table": ("list of object", "one object for each column"),
        },
        {
            "column": ("string", "name of the column"),
            "filled": ("integer", "cells that were filled"),
            "share": ("number", "share of the rows"),
        },
    ),
    "fit": (
        COMMON
        | {
            "type": ("string", "class of the model"),
            "model": ("string", "file of the model"),
            "rows": ("integer", "rows of the table"),
            "columns": ("list of string", "columns that were used"),
        },
        {},
    ),
    "monitor": (
        {
            "row": ("integer", "row at which the alarm was raised, counted from 1; one object a line for each alarm"),
            "first_row": ("integer", "first row of its window"),
            "statistic": ("number", "distance of the window from the reference"),
            "threshold": ("number", "threshold of the distance"),
            "changes": ("object", "how the columns changed that moved, in words"),
        },
        {
            "row": ("integer", "with a context: row at which a page was opened or closed; one object a line for each"),
            "event": ("string", "opened or closed"),
            "kind": ("string", "level, given (given the other columns), spread, together, or incident"),
            "columns": ("list of string", "columns that changed"),
            "direction": ("integer", "1 for higher, more spread or more alike, -1 for the contrary"),
            "since": ("integer", "row since which there is evidence"),
            "time": ("string or null", "its time, if rows have times"),
            "also": ("list of string", "columns in which the same cause showed"),
        },
    ),
    "prior": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "rows without labels"),
            "classes": ("list", "classes, as they are in the file"),
            "confidence_level": ("number", "confidence of each interval"),
            "population": ("boolean", "whether the intervals are for the population that the rows were drawn from"),
            "table": ("list of object", "one object for each class"),
        },
        {
            "class": ("string, number or boolean", "the class"),
            "prior": ("number", "its share"),
            "lower": ("number", "lower limit"),
            "upper": ("number", "upper limit"),
        },
    ),
    "sample": (
        COMMON
        | _SUMMARY
        | {
            "rows": ("integer", "number of made rows"),
            "given": ("object", "values of --given, which every made row has"),
            "columns": ("list of string", "their columns"),
            "rows_of_the_table": ("integer or null", "rows of FILE; null with --model"),
            "distance": ("object", "share of the values of each column that differs from FILE; empty with --given"),
            "relations": (
                "object",
                "relations that hold in all or nearly all rows of FILE, and the made rows that break each",
            ),
            "out": ("string", "file with the rows"),
            "table": ("list of object", "empty: the rows are in the file"),
        },
        {},
    ),
    "score": (
        COMMON
        | {
            "rows": ("integer", "rows of the table"),
            "answers": ("list of string", "columns of the result"),
            "out": ("string", "file of the result"),
            "unranked": ("integer", "rows whose log density is minus infinity"),
        },
        {},
    ),
}

_KIND_OR_NULL = ("string or null", "what the column holds there, or why it is left out; null where it is not there")
# Keys of the objects in lists beside the table.
_ITEMS = {
    "rules": {
        "rule": ("string", "the rule in words"),
        "rows": ("integer", "rows that it judges"),
        "broken": ("list", "lines (or rows) that break it"),
    },
    "schema_changes": {"column": ("string", "name of the column"), "before": _KIND_OR_NULL, "after": _KIND_OR_NULL},
}

# Keys that depend on the table or on options: those of rows, and of columns of other kinds than numbers.
OPTIONAL = frozenset(
    {"line", "row", "time", "at_least", "explained_by", "before", "after", "pvalue", "earliest", "latest", "columns"}
    | {key for key in _CHANGED_COLUMN if key.startswith(("level", "time_", "missing_")) or key == "description"}
)


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of the object that a command prints with --json; `monitor` prints one object a line."""
    top, row = SCHEMAS[command]
    schema = _object(top, frozenset())
    if row and "table" in top:
        schema["properties"]["table"]["items"] = _object(row, OPTIONAL)
    elif row:  # an object of one kind or of the other
        schema = {"anyOf": [schema, _object(row, frozenset())]}
    for name in _ITEMS.keys() & top.keys() if "properties" in schema else ():
        schema["properties"][name]["items"] = _object(_ITEMS[name], frozenset())
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"isopleth {command} --json"}
    return dialect | schema


def _object(keys: dict[str, tuple[str, str]], optional: frozenset[str]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these keys."""
    properties = {key: _type(kind) | {"description": about} for key, (kind, about) in keys.items()}
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    found["required"] = [key for key in keys if key not in optional]
    if {"before", "after"} <= keys.keys() & optional:
        found["patternProperties"] = {"^(before|after)_": {"type": ["number", "null"]}}
    return found


def _type(kind: str) -> dict[str, Any]:
    """Return the type of a key as JSON Schema: "list of string", "number or null", "string, number or boolean"."""
    if kind.startswith("list"):
        inner = kind.removeprefix("list").removeprefix(" of ")
        return {"type": "array"} | ({"items": _type(inner)} if inner else {})
    kinds = kind.replace(", ", " or ").split(" or ")
    return {"type": kinds if len(kinds) > 1 else kinds[0]}
