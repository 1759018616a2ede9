"""Content of a table, and what is odd in it: gaps, repeated rows, codes, and exact relations of columns that a few rows break."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa

from isopleth.core.errors import Message, Wording, listed
from isopleth.core.interval_laws import PowerNormal
from isopleth.core.rows import first_equal
from isopleth.results.keys import Fact, Key
from isopleth.results.result import Result
from isopleth.results.text import cell_text, counted, in_words
from isopleth.tables.alike_words import alike_in_words, alike_words
from isopleth.tables.coded_cells import displayed_cells
from isopleth.tables.relations import broken_relations
from isopleth.tables.rules import find_rules, judged_cells
from isopleth.tables.schema import EncodedTable, Schema
from isopleth.tables.unread import CensoredCells

# What is said where none of what is looked for is found.
_NOTHING = (
    "No cell is missing, and there are no repeated rows beyond chance, no columns of one value, no codes of missing cells and no "
    "relations that a few rows break. Single values are not judged here: isopleth cells looks for wrong ones."
)


class PlacedRows(Protocol):
    """Rows as numbers and codes, their schema, and where they stand."""

    @property
    def schema(self) -> Schema:
        """Schema: the use of each column."""

    def encoded(self) -> EncodedTable:
        """Return its columns as numbers and codes."""

    def place(self, row: int) -> str:
        """Return where a row stands."""


class ReadTable(PlacedRows, Protocol):
    """Table that was read, as by :func:`isopleth.read_table`: its cells, its schema, and where its rows stand."""

    @property
    def data(self) -> Any:
        """All columns, as a ``pyarrow.Table``."""

    @property
    def source(self) -> Any:
        """File of the table."""

    @property
    def notes(self) -> Sequence[Message]:
        """Sentences on the table."""

    def __len__(self) -> int: ...


def broken_relations_of(table: PlacedRows, encoded: EncodedTable | None = None) -> dict[str, list[str]]:
    """Return products and sums of columns that hold in nearly all rows of a table, and where the rows stand that break each."""
    encoded = table.encoded() if encoded is None else encoded
    cells = zip(table.schema.measured, encoded.numeric.T, strict=True)
    found = broken_relations({str(column.name): values for column, values in cells if column.kind == "numeric"})
    return {str(relation): [table.place(int(row)) for row in rows] for relation, rows in found.items()}


@dataclass(frozen=True)
class KeptRelation:
    """Relation of columns that all or nearly all rows keep."""

    relation: str
    rows: int  # that it is about
    broken: list[str]  # where the rows stand in which it does not hold
    kept_in: str  # how many rows keep it, in words


def several_columns(table: ReadTable, encoded: EncodedTable) -> list[KeptRelation]:
    """Return relations of columns that nearly all rows keep."""
    columns = [*table.schema.measured, *table.schema.worded]
    cells: dict[str, Any] = {}
    for column, values in zip(columns, [*encoded.numeric.T, *encoded.codes.T], strict=True):
        if (judged := judged_cells(column, values)) is not None:
            cells[str(column.name)] = judged
    return [
        KeptRelation(
            str(found.rule), found.rows_about, [table.place(int(row)) for row in found.exceptions], found.kept_in
        )
        for found in find_rules(cells, several=True)
    ]


def relations_in_words(broken: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence about each relation that nearly all rows keep."""
    return [
        f"{relation} in nearly all rows, but not in {listed(list(places))}: one of these numbers may be wrong."
        for relation, places in broken.items()
    ]


# Numbers that often stand for a missing cell.
_CODES = tuple(sign * value for value in (9.0, 99.0, 999.0, 9999.0, 99999.0) for sign in (-1.0, 1.0)) + (-1.0,)
# Share of rows with other values from which a column nearly names the rows.
_NEARLY_UNIQUE = 0.95
_FEWEST = 10
# Other values of a column below which one that is far from them is no sign of a code.
_FEWEST_OTHERS = 3
# Repeated rows that are kept, and that a sentence names.
_MOST_REPEATS, _SHOWN_REPEATS = 1000, 5
# Times the number by chance from which repeated rows are odd: columns of few values repeat, and so does a single one.
_BEYOND_CHANCE = 2.0
# Relations, and rows that break one, that a sentence names.
_SHOWN_BROKEN = 8
_KINDS = {"numeric": "number", "categorical": "category", "time": "time"}


@dataclass(frozen=True)
class LimitsOfColumn:
    """Cells of a column that say a limit: how many, which limits, the mean of the column, and the mean of these cells.

    The means are by a law that is fitted to the intervals (``core/interval_laws.py``).
    """

    cells: int
    limits: list[str]
    mean: float
    mean_within: float

    @classmethod
    def of(cls, cells: CensoredCells, known: np.ndarray) -> Self:
        """Describe the cells of a column with these known numbers."""
        low, high = np.append(known, cells.lower), np.append(known, cells.upper)
        within = PowerNormal.fit(low, high, np.ones(len(low))).means(cells.lower, cells.upper)
        mean = float(np.append(known, within).mean())
        return cls(len(cells), list(dict.fromkeys(cells.texts)), mean, float(within.mean()))

    def in_words(self, name: str, n_rows: int) -> str:
        """Return a sentence about the cells."""
        share = f"{self.cells / n_rows:.1%}".replace("%", " %")
        return (
            f"{counted(self.cells, 'cell')} of {name} ({share}) say a limit, {in_words(self.limits[:5])}: the mean of the column "
            f"is {self.mean:.4g} and that of these cells {self.mean_within:.4g}, if numbers go on beyond a limit as before it."
        )


@dataclass(frozen=True, eq=False, repr=False)
class TableDescription(Result):
    """Description of a table: what it holds, and what is odd about it.

    Parameters
    ----------
    source : str
        Name of the table.
    n_rows, repeated : int
        Number of rows, and of those that are equal to an earlier one in the columns that are used.
    repeats : dict of str to str
        Where the rows that repeat an earlier one stand, and where that one stands; the first 1,000 of them.
    names, taken : list of str
        Columns, and what each is taken as: "number", "category", "time", or "left out: " and why.
    missing, distinct : ndarray of shape (d,), int
        Missing cells, and distinct values, of each column.
    codes : dict of str to tuple of float and int
        Value that looks like a code for missing cells, by column, and how often it occurs.
    broken : dict of str to list of str
        Products and sums of columns that hold in nearly all rows, and where the rows stand that break each.
    relations : list of KeptRelation
        Relations of columns that all or nearly all rows keep, the rows that each is about, and where the others stand.
    notes : list of str
        What was noticed when the kinds were decided.
    limits : dict of str to LimitsOfColumn
        Cells of each column that say a limit, such as <0.5, and means that count them.
    ends : dict of str to tuple of two
        Least and largest number or time of each column of these.
    zeros : dict of str to int
        Cells that are 0, of each column of numbers.
    alike_by_chance : float
        Pairs of rows that would be equal if the columns were independent; more than twice as many repeated rows are odd.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import isopleth
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "t.csv"
    >>> _ = path.write_text("a,b\\n" + "".join(f"{i % 7},x\\n" for i in range(12)))
    >>> found = TableDescription.of(isopleth.read_table(path, warn=False))
    >>> found.repeated, found.repeats["line 9"], found.odd()[0]
    (5, 'line 2', 'One value only: b.')
    >>> folder.cleanup()
    """

    source: str
    n_rows: int
    repeated: int
    repeats: dict[str, str]
    names: list[str]
    taken: list[str]
    missing: np.ndarray
    distinct: np.ndarray
    codes: dict[str, tuple[float, int]]
    broken: dict[str, list[str]]
    relations: list[KeptRelation]
    notes: list[str]
    limits: dict[str, LimitsOfColumn] = field(default_factory=dict)
    ends: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    zeros: dict[str, int] = field(default_factory=dict)
    alike_by_chance: float = 0.0

    kind = "description"
    title = "What the table holds"

    @classmethod
    def of(cls, table: ReadTable, wording: Wording = Wording()) -> Self:  # noqa: B008 - without state
        """Describe a table that was read by :func:`isopleth.read_table`; `wording` names parameters in its notes."""
        kinds = {str(column.name): _KINDS[column.kind] for column in table.schema.columns}
        kinds |= {str(name): f"left out: {why}" for name, why in table.schema.left_out.items()}
        names = [name for name in table.data.column_names if name in kinds]
        encoded = table.encoded()
        odd = {str(name): cells for name, cells in encoded.odd.censored.items()}
        data = table.data.select(names)
        codes, distinct = _codes(data, [name for name in names if not kinds[name].startswith("left out")], odd)
        first = first_equal(codes)
        again = np.flatnonzero(first != np.arange(len(table)))
        numbers = zip(table.schema.numeric_names, encoded.numeric.T, strict=True)
        values = {name: cells[~np.isnan(cells)] for name, cells in numbers if kinds[name] == "number"}
        found = {name: _code(column) for name, column in values.items()}
        known = {code[0] for code in found.values() if code is not None}
        found |= {name: _code(column, known) for name, column in values.items() if found[name] is None}
        limits = {name: LimitsOfColumn.of(cells, values[name]) for name, cells in odd.items() if name in values}
        return cls(
            str(table.source),
            len(table),
            len(again),
            {table.place(int(row)): table.place(int(first[row])) for row in again[:_MOST_REPEATS]},
            names,
            [kinds[name] for name in names],
            np.array([column.null_count for column in data.columns])
            - [limits[name].cells if name in limits else 0 for name in names],
            distinct,
            {name: code for name, code in found.items() if code is not None},
            broken_relations_of(table, encoded),
            several_columns(table, encoded),
            [*(note.render(wording) for note in table.notes), *_alike(data, kinds)],
            limits,
            _ends(table.schema, encoded),
            {name: int(np.count_nonzero(column == 0.0)) for name, column in values.items()},
            _alike_by_chance(codes),
        )

    def odd(self) -> list[str]:
        """Return what is odd about the table, as sentences; none where nothing is."""
        verb = "repeat" if self.repeated > 1 else "repeats"
        of_rows = f"{self.repeated:,} of {counted(self.n_rows, 'row')} {verb}"
        places = [f"{place} (as {first})" for place, first in list(self.repeats.items())[:_SHOWN_REPEATS]]
        more = f" and {self.repeated - len(places):,} more" if self.repeated > len(places) else ""
        rows = [f"{of_rows} an earlier one in the columns that are used: {', '.join(places)}{more}."]
        said = rows * (self.repeated > _BEYOND_CHANCE * self.alike_by_chance)
        known = self.n_rows - self.missing
        unique = (self.distinct >= _NEARLY_UNIQUE * known) & (known >= _FEWEST)
        groups = (
            ("No value at all", self.distinct == 0),
            ("One value only", self.distinct == 1),
            (
                "Nearly every row has a word or number of its own",
                unique & [t not in ("number", "time") for t in self.taken],
            ),
        )
        for words, mask in groups:
            if mask.any():
                said.append(
                    f"{words}: {in_words([name for name, held in zip(self.names, mask, strict=True) if held])}."
                )
        order = [j for j in np.argsort(-self.missing, kind="stable") if self.missing[j]]
        gaps = [f"{self.names[j]} {self.missing[j] / self.n_rows:.1%}".replace("%", " %") for j in order]
        said += [f"Missing cells: {in_words(gaps)}."] * bool(gaps)
        said += [found.in_words(name, self.n_rows) for name, found in self.limits.items()]
        for name, (value, count) in self.codes.items():
            word = cell_text(value)
            said.append(
                f"{name} holds {word} in {counted(count, 'row')}, beyond all its other values: if it stands for a missing cell, "
                f"name it in missing (--missing {word})."
            )
        said += [
            f"{each.relation} in {each.kept_in}; not in {listed(each.broken, _SHOWN_BROKEN)}."
            for each in self.relations
            if each.broken and each.relation not in self.broken
        ]
        return said + relations_in_words(self.broken) + self.notes

    def _columns(self) -> dict[str, Any]:
        least, largest = ([self.ends.get(name, (None, None))[side] for name in self.names] for side in (0, 1))
        return {
            "column": self.names,
            "taken as": self.taken,
            "distinct": self.distinct,
            "missing": self.missing,
            "zeros": np.array([self.zeros.get(name) for name in self.names], dtype=object),
            "least": np.array(least, dtype=object),
            "largest": np.array(largest, dtype=object),
        }

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows of the table", lambda found: found.n_rows),
        "repeated_rows": Fact("integer", "rows that are equal to an earlier one", lambda found: found.repeated),
        "repeats": Fact(
            "object",
            "where such rows stand, and where the earlier one stands; the first 1,000",
            lambda found: found.repeats,
        ),
        "codes": Fact(
            "object",
            "for each column, a value that looks like a code for missing cells, and its rows",
            lambda found: {name: {"value": value, "rows": count} for name, (value, count) in found.codes.items()},
        ),
        "limits": Fact(
            "object",
            "for each column with cells such as <0.5: their number, the limits, the mean of the column, and of these cells",
            lambda found: {name: asdict(limits) for name, limits in found.limits.items()},
        ),
        "broken_relations": Fact(
            "object",
            "products and sums that nearly all rows keep, and where the others stand",
            lambda found: found.broken,
        ),
        "relations": Fact(
            "list of object",
            "relations of columns that all or nearly all rows keep",
            lambda found: [
                {"relation": each.relation, "rows": each.rows, "broken": each.broken} for each in found.relations
            ],
            {
                "relation": Key("string", "the relation in words"),
                "rows": Key("integer", "rows that it is about"),
                "broken": Key("list of string", "where the rows stand in which it does not hold"),
            },
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "column": Key("string", "name of the column"),
        "taken as": Key("string", "number, category, time, or left out: and why"),
        "distinct": Key("integer", "distinct values"),
        "missing": Key("integer", "missing cells"),
        "zeros": Key("integer or null", "cells that are 0, of a column of numbers"),
        "least": Key("string, number or null", "least number or time"),
        "largest": Key("string, number or null", "largest number or time"),
    }

    def _sentences(self) -> list[str]:
        first = f"{self.source} has {counted(self.n_rows, 'row')} of {counted(len(self.names), 'column')}."
        kept = [each.relation for each in self.relations if not each.broken]
        said = [f"In all rows: {listed(kept, _SHOWN_BROKEN)}."] * bool(kept)
        return [first, *said, *(self.odd() or [_NOTHING]), *self._cells()]

    def _cells(self) -> list[str]:
        """Return a sentence about the command that finds wrong cells, where some may be wrong."""
        wrong = self.codes or self.broken or any(each.broken for each in self.relations)
        return [
            "isopleth cells finds the cells that do not fit their rows, and says what would be usual there."
        ] * bool(wrong)

    def _notes(self) -> list[str]:
        return [
            "taken as: what the commands use the column as, or why it is left out; --categorical, --numeric, --time-columns and "
            "--keep-id say otherwise."
        ]


def _codes(data: pa.Table, used: Collection[str], odd: Mapping[str, CensoredCells]) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each cell of the columns that are used, equal for equal cells, and the distinct cells of all columns.

    The column of the most distinct cells comes first, by which most rows differ.
    """
    distinct, columns = [], {}
    for name, column in zip(data.column_names, data.columns, strict=True):
        encoded = column.combine_chunks().dictionary_encode()
        distinct.append(len(encoded.dictionary))
        if name in used:
            columns[name] = np.array(encoded.indices.fill_null(-1), dtype=np.int32)
        if name in used and name in odd:  # one limit is not another, and none is a missing cell
            columns[name][odd[name].rows] = -2 - np.unique(odd[name].texts, return_inverse=True)[1]
    order = sorted(columns, key=lambda name: -int(columns[name].max(initial=-1)))
    return np.column_stack([columns[name] for name in order]), np.array(distinct)


def _ends(schema: Schema, encoded: EncodedTable) -> dict[str, tuple[Any, Any]]:
    """Return the least and largest cell of each column of numbers and times."""
    found = {}
    for column, cells in zip(schema.measured, encoded.numeric.T, strict=True):
        known = cells[~np.isnan(cells)]
        if len(known):
            least, largest = displayed_cells(column, np.array([known.min(), known.max()]))
            found[str(column.name)] = (least, largest)
    return found


def _alike(data: pa.Table, kinds: Mapping[str, str]) -> list[str]:
    """Return a sentence about each column of words in which some look like each other."""
    said = []
    for name in data.column_names:
        column = data.column(name)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        words = column.unique().drop_null().to_pylist() if is_text and kinds[name] == "category" else []
        if pairs := alike_words(words):
            said.append(alike_in_words(name, pairs, ""))
    return said


def _alike_by_chance(codes: np.ndarray) -> float:
    """Return the expected number of pairs of equal rows (n, d) if the columns were independent."""
    pairs = 0.5 * len(codes) * (len(codes) - 1.0)
    alike = pairs
    for column in codes.T:
        counts = np.bincount(column - column.min())
        alike *= 0.5 * float(counts @ (counts - 1.0)) / max(pairs, 1.0)
    return alike


def _code(values: np.ndarray, known: Collection[float] = ()) -> tuple[float, int] | None:
    """Return an extreme value and its count if it is a usual code for missing cells, far from the others or `known`."""
    for value in (values.min(initial=np.inf), values.max(initial=-np.inf)):
        if value not in _CODES:
            continue
        rest = values[values != value]
        if len(np.unique(rest)) < _FEWEST_OTHERS:
            continue
        far = np.abs(rest - value).min() > max(float(np.ptp(rest)), abs(float(value)) / 10.0)
        if far or value in known:
            return float(value), len(values) - len(rest)
    return None
