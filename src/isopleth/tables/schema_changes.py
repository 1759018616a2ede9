"""Common columns of two tables, and how the schema changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from isopleth.core.errors import InputError, listed, quoted
from isopleth.tables.cells import TRUTH
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema

_KINDS = {"numeric": "numbers", "categorical": "words", "time": "times"}
_TRUTH_VALUES = "truth values"
# Similarity of two names, between 0 and 1, from which one column is suggested to be the other one renamed.
_SIMILAR = 0.75


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
    renamed : tuple of pair of str
        Columns that only one table has, with names alike and values of one kind: perhaps one column that was renamed.
    """

    common: list[Any]
    changes: tuple[ColumnChange, ...]
    renamed: tuple[tuple[str, str], ...] = ()

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
        words = [self.description, *([renaming(self.renamed)] if self.renamed else []), compared]
        return f"Change of schema: {'; '.join(words)}."


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
        With `common`, `changes`, `renamed` and `sentence`.

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
    common = [change.column for change in changes if change not in changed]
    pairs = []
    for kind in dict.fromkeys(one.values()):
        only = [[n for n in held if n not in other and held[n] == kind] for held, other in ((one, two), (two, one))]
        pairs += similar_names(only[0], only[1])
    found = SchemaComparison(common, tuple(changed), tuple(pairs))
    if not common:
        words = "; ".join([found.description, *([renaming(pairs)] if pairs else [])])
        raise InputError(
            f"no common column is left to compare: {words}; give the columns to compare the same names and kinds."
        )
    return found


def similar_names(one: Sequence[Any], two: Sequence[Any]) -> list[tuple[str, str]]:
    """Return pairs of similar names, perhaps renamed columns; names with different digits are columns of one series."""
    left = {str(name).casefold(): str(name) for name in two}
    pairs = []
    for name in map(str, one):
        candidates = [key for key in left if _digits(key) == _digits(name)]
        near = get_close_matches(name.casefold(), candidates, n=1, cutoff=_SIMILAR)
        pairs += [(name, left.pop(key)) for key in near]
    return pairs


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def renaming(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the suggestion that columns were renamed, in words."""
    return f"perhaps {listed([f'{one!r} was renamed to {other!r}' for one, other in pairs])}"


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
