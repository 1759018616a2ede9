"""Result of drawing new rows like those of a table, beside that table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import ks_2samp

from isopleth.results.charts import Chart, compared
from isopleth.results.keys import Fact
from isopleth.results.result import MOST_ROWS, Result, ShownTable, shown
from isopleth.results.text import cell_text, counted, in_words
from isopleth.tables.cells import is_missing
from isopleth.tables.relations import Relation, numbers_of, relations_of, times_of
from isopleth.tables.time_text import seconds_of

_MOST_HISTOGRAMS, _MOST_COLUMNS = 6, 24


@dataclass(frozen=True, eq=False, repr=False)
class MadeRows(Result):
    """New rows, and the table that they are like.

    Parameters
    ----------
    made : mapping of str to sequence of length n
        Columns of the new rows: numbers, words or times, None or NaN where a cell is missing.
    source : mapping of str to sequence of length m
        The same columns of the table, or an empty mapping if it is not at hand.
    given : mapping of str to value, optional
        Values that some columns have in every new row. Such rows are not compared with the distributions of the table.

    Examples
    --------
    >>> found = MadeRows({"age": [31.0, 44.0], "city": ["Rome", "Oslo"]}, {"age": [30.0, 45.0, 52.0], "city": ["Rome"] * 3})
    >>> print(found.to_dict()["summary"][0])
    2 rows were made, like those of a table of 3 rows.
    >>> found.distance["city"]
    0.5
    """

    made: Mapping[str, Sequence[Any]]
    source: Mapping[str, Sequence[Any]]
    given: Mapping[str, Any] = field(default_factory=dict)

    kind = "made_rows"
    title = "Made rows"

    @classmethod
    def of(cls, made: Any, source: Any = None) -> Self:
        """Take the columns of data frames of any library; the table may be an array. Tables of the result are like `made`."""
        import narwhals as nw

        if isinstance(source, np.ndarray):
            names = nw.from_native(made, eager_only=True).columns
            return cls.of(made, nw.from_dict(dict(zip(names, source.T, strict=True)), backend="pyarrow").to_native())
        columns = []
        for table in (made, source):
            frame = None if table is None else nw.from_native(table, eager_only=True)
            columns.append({} if frame is None else {str(name): frame[name].to_list() for name in frame.columns})
        kept = {name: cells for name, cells in columns[1].items() if name in columns[0]}
        return cls(columns[0], kept).like(made)

    def __len__(self) -> int:
        """Return the number of new rows."""
        return max((len(column) for column in self.made.values()), default=0)

    def __repr__(self) -> str:
        return f"MadeRows({counted(len(self), 'row')} of {counted(len(self.made), 'column')})"

    def known_cells(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the known cells of a column in the table and in the new rows: numbers, datetime64, or others as objects."""
        both = [
            [cell for cell in columns.get(column, ()) if not is_missing(cell)] for columns in (self.source, self.made)
        ]
        numbers = all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cells in both for cell in cells)
        times = not numbers and all(isinstance(cell, date) for cells in both for cell in cells)
        kind: Any = float if numbers else "datetime64[us]" if times else object
        if times:
            both = [[_without_zone(cell) for cell in cells] for cells in both]
        one, two = (np.array(cells, dtype=kind) for cells in both)
        return one, two

    @cached_property
    def distance(self) -> dict[str, float]:
        """Share of the known cells of each column that would have to change to give it the distribution in the table.

        For numbers and times it is the largest difference of the two distribution functions (Kolmogorov and Smirnov's distance),
        for others the total variation distance.
        """
        found = {}
        for name in () if self.given else self.source:
            one, two = self.known_cells(name)
            if not len(one) or not len(two):
                continue
            if one.dtype == object:
                words = sorted({str(cell) for cell in [*one, *two]})
                shares = [np.array([np.mean(cells.astype(str) == word) for word in words]) for cells in (one, two)]
                found[name] = float(0.5 * np.abs(shares[0] - shares[1]).sum())
            else:
                one, two = (seconds_of(cells) if cells.dtype.kind == "M" else cells for cells in (one, two))
                found[name] = float(ks_2samp(one, two, method="asymp").statistic)
        return found

    @cached_property
    def relations(self) -> dict[Relation, int]:
        """Relations of numbers that hold in the table, but for a few rows, and the number of new rows in which each does not."""
        made = numbers_of(self.made) | times_of(self.made)
        found = relations_of(self.source)
        parts = {relation: {relation.result, relation.first, relation.second} - {None} for relation in found}
        return {relation: relation.broken(made) for relation in found if parts[relation] <= made.keys()}

    @property
    def rows_of_the_table(self) -> int:
        """Rows of the table that they are like; 0 without one."""
        return max((len(column) for column in self.source.values()), default=0)

    def _columns(self) -> dict[str, Any]:
        return dict(self.made)

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "number of made rows", len),
        "given": Fact("object", "values of --given, which every made row has", lambda found: dict(found.given)),
        "columns": Fact("list of string", "their columns", lambda found: list(found.made)),
        "rows_of_the_table": Fact(
            "integer or null", "rows of FILE; null with --model", lambda found: found.rows_of_the_table or None
        ),
        "distance": Fact(
            "object",
            "share of the values of each column that differs from FILE; empty with --given",
            lambda found: found.distance,
        ),
        "relations": Fact(
            "object",
            "relations that hold in all or nearly all rows of FILE, and the made rows that break each",
            lambda found: {str(relation): count for relation, count in found.relations.items()},
        ),
    }

    def _sentences(self) -> list[str]:
        rows = self.rows_of_the_table
        first = f"{counted(len(self), 'row')} {'was' if len(self) == 1 else 'were'} made"
        if self.given:
            first += f" with {in_words([f'{name} = {cell_text(value)}' for name, value in self.given.items()])}"
        if not rows:
            return [f"{first}."]
        words = [f"{first}, like those of a table of {counted(rows, 'row')}."]
        if self.distance:
            name = max(self.distance, key=lambda one: self.distance[one])
            words.append(
                f"The column that differs most from the table is {name}: {self.distance[name]:.1%} of its values."
            )
            # Kolmogorov and Smirnov's quantile of 95 %.
            chance = min(1.0, 1.36 * float(np.sqrt(1.0 / len(self) + 1.0 / rows)))
            words.append(f"By chance alone a column of numbers differs by up to {chance:.1%}, in 19 of 20 columns.")
        return [
            *words,
            *self.relations_in_words(),
            "The rows do not protect the people in the table: extreme values and rare words may be those of the table.",
        ]

    def relations_in_words(self) -> list[str]:
        """Return which relations of the table the new rows keep, and which they break."""
        kept = [str(relation) for relation, count in self.relations.items() if not count]
        broken = [f"{relation} in {counted(count, 'row')}" for relation, count in self.relations.items() if count]
        said = [f"Kept, as in all or nearly all rows of the table: {in_words(kept)}."] * bool(kept)
        return said + [f"Broken, and in no or few rows of the table: {in_words(broken)}."] * bool(broken)

    def _tables(self) -> list[ShownTable]:
        first = {name: self.made[name][:MOST_ROWS] for name in list(self.made)[:_MOST_COLUMNS]}
        made, share = ShownTable("Made rows", first, len(self)), "share that differs"
        distances = {"column": list(self.distance), share: list(self.distance.values())}
        meaning = f"{share}: least share of the known cells that would have to change to be as those of the table are."
        title = "How much each column differs from the table"
        return [made, *([shown(title, distances, legend={share: meaning})] if self.distance else [])]

    def _charts(self) -> list[Chart]:
        charts = []
        for name in sorted(self.distance, key=lambda column: -self.distance[column])[:_MOST_HISTOGRAMS]:
            chart = compared(name, self.known_cells(name), ("table", "made rows"))
            if chart is not None:
                charts.append(replace(chart, title=f"{name}: {self.distance[name]:.1%} of the values differ"))
        return charts


def _without_zone(cell: date) -> date:
    return cell.astimezone(UTC).replace(tzinfo=None) if isinstance(cell, datetime) and cell.tzinfo else cell
