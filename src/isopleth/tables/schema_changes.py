"""Common columns of two tables, and how the schema changed between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isopleth.errors import InputError, quoted
from isopleth.tables.cells import TRUTH
from isopleth.tables.schema import Column, Schema

_KINDS = {"numeric": "numbers", "categorical": "words", "time": "times"}
_TRUTH_VALUES = "truth values"


@dataclass(frozen=True)
class ColumnChange:
    """Change of a column between two tables.

    Parameters
    ----------
    column : str or int
        Name of the column, in an array its number.
    before, after : str or None
        "numbers", "words", "truth values", "times", "times with a zone", or the reason why a table leaves the column out; None
        where the table does not have it.
    """

    column: Any
    before: str | None
    after: str | None


@dataclass(frozen=True)
class SchemaComparison:
    """Result of :func:`compare_schemas`.

    Parameters
    ----------
    common : list of str or int
        Columns that both tables have and that hold values of one kind: in the order of the first table, those that it leaves
        out last.
    changes : tuple of ColumnChange
        The other columns: those of the first table, then those that only the second one has.
    """

    common: list[Any]
    changes: tuple[ColumnChange, ...]

    @property
    def description(self) -> str:
        """The changes in words; empty without any."""
        alike: dict[tuple[bool, bool, str], list[ColumnChange]] = {}
        for change in self.changes:
            one_sided = change.before is None or change.after is None
            kinds = "" if one_sided else f"{change.before}, {change.after}"
            alike.setdefault((change.before is None, change.after is None, kinds), []).append(change)
        return "; ".join(map(_in_words, alike.values()))

    @property
    def sentence(self) -> str:
        """The changes and what is compared, as a sentence; empty without any change."""
        if not self.changes:
            return ""
        count = len(self.common)
        compared = "the common column is compared" if count == 1 else f"the {count} common columns are compared"
        return f"Change of schema: {self.description}; {compared}."


def compare_schemas(before: Schema, after: Schema) -> SchemaComparison:
    """Find the columns that two tables can be compared in, and report the others as changes of the schema.

    Truth values go with numbers (as 0 and 1) and with words. A column that a table leaves out, such as an identifier or one
    without values, has no kind of its own there, so that it is common: the rows of both tables decide together what it is.

    Parameters
    ----------
    before, after : Schema
        Schemas of the two tables, each decided from its own rows: ``Schema.of(frame)``, or ``read_table(path).schema``.

    Returns
    -------
    SchemaComparison
        With `common`, `changes` and `sentence`.

    Raises
    ------
    InputError
        If no common column is left.

    Examples
    --------
    >>> import pandas as pd
    >>> from isopleth.tables.schema import Schema
    >>> from isopleth.tables.schema_changes import compare_schemas
    >>> before = pd.DataFrame({"price": [1.5, 2.5], "size": [36, 38], "colour": ["red", "blue"]})
    >>> after = pd.DataFrame({"size": ["S", "M"], "price": [1.0, 2.0]})
    >>> found = compare_schemas(Schema.of(before), Schema.of(after))
    >>> found.common
    ['price']
    >>> found.changes[0]
    ColumnChange(column='size', before='numbers', after='words')
    """
    one, two = _kinds(before), _kinds(after)
    changes = [ColumnChange(n, one.get(n), two.get(n)) for n in (*one, *(n for n in two if n not in one))]
    changed = [change for change in changes if not _go_together(change)]
    found = SchemaComparison([change.column for change in changes if change not in changed], tuple(changed))
    if not found.common:
        raise InputError(
            f"no common column is left to compare: {found.description}; give the columns to compare the same names and kinds."
        )
    return found


def _kinds(schema: Schema) -> dict[Any, str]:
    """Return what each column holds, or why it is left out."""
    left_out = {name: "words" if why == "free text" else why for name, why in schema.left_out.items()}
    return {column.name: _kind(column) for column in schema.columns} | left_out


def _kind(column: Column) -> str:
    if column.levels == TRUTH:
        return _TRUTH_VALUES
    return _KINDS[column.kind] + (" with a zone" if column.zone is not None else "")


def _go_together(change: ColumnChange) -> bool:
    """Tell whether both tables have the column, and not in two kinds of which neither can be read as the other."""
    if change.before is None or change.after is None:
        return False
    known = {change.before, change.after} & {*_KINDS.values(), _TRUTH_VALUES, "times with a zone"}
    apart = known - {_TRUTH_VALUES}
    return len(known) < 2 or (_TRUTH_VALUES in known and apart <= {"numbers", "words"})


def _in_words(changes: list[ColumnChange]) -> str:
    """Return changes of the same kind in words."""
    named, one = quoted(change.column for change in changes), changes[0]
    if one.before is None or one.after is None:
        return f"only the {'first' if one.after is None else 'second'} table has {named}"
    verb = "hold" if len(changes) > 1 else "holds"
    return f"{named} {verb} {one.before} in the first table and {one.after} in the second"
