"""Result of a search for wrong cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from isopleth.core.errors import listed
from isopleth.results.charts import Chart, Series
from isopleth.results.keys import PLACE, Fact, Key
from isopleth.results.result import MOST_ROWS, Result, ShownCells, ShownTable
from isopleth.results.text import cell_text, counted, place_text
from isopleth.tables.rules import FoundRule
from isopleth.tasks.cellwise.margins import flagged_cells, margins, worst_cells
from isopleth.tasks.cellwise.shifted import Shift, shifted_rows

# Cells of which it is said what speaks against them, and rows that a sentence lists.
MOST_EXPLAINED, _MOST_PLACES = 200, 8
# Share of the rows up to which those that repeat an earlier one are named: in other tables rows repeat.
_SHARE_REPEATS = 0.02
# Rows and columns of a picture.
_DRAWN_ROWS, _DRAWN_COLUMNS = 15, 9


@dataclass(frozen=True, eq=False, repr=False)
class CellFindings(Result):
    """Cells that do not fit the other cells of their rows; result of :meth:`CellwiseDetector.cells`.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    scores, excess : ndarray of shape (n, d)
        Score of each cell in nats, NaN where it is missing, and the part that its law says; the rest is of broken rules.
    bounds : ndarray of shape (n, d)
        Score from which on each cell is flagged.
    values, usual, low, high : ndarray or ShownCells of shape (n, d)
        The cells, and what would be usual: median and 5 and 95 % quantiles of the law of a number, the likeliest word. Cells of
        large tables that hold more than numbers are made when they are asked for.
    rules : list of FoundRule
        Rules that nearly all rows keep, and the rows that break each.
    where : dict of str to ndarray of shape (n,)
        Columns that say where the rows stand, by default "row", counted from 0.
    repeats : dict of int to int
        Rows that repeat an earlier one, which equal columns do not explain, and that one.
    repairs : dict of (int, int) to str
        Why a flagged cell is certain to be wrong, and `usual` to be right, by row and column: these are replaced by
        :meth:`CellwiseDetector.repaired`.
    unclear : dict of (int, int) to str
        Why a flagged cell stays of which it is not clear what it should hold, by row and column.
    mistakes : dict of int to str
        Rows that one mistake explains, such as two cells that are swapped, and that mistake.
    written : str
        Sentence about the files that hold the repaired table and the list of changes.
    against : list of str
        What speaks against the cells in `order`, the first ones: mistakes, broken rules and other columns.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import CellwiseDetector
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> table = np.column_stack([x, 2.0 * x])
    >>> table[3, 1] = -table[3, 1] + 3.0
    >>> found = CellwiseDetector(random_state=0).fit(table).cells()
    >>> int(found.where["row"][found.order[0]])
    3
    """

    names: list[str]
    scores: np.ndarray
    bounds: np.ndarray
    excess: np.ndarray
    values: np.ndarray | ShownCells
    usual: np.ndarray | ShownCells
    low: np.ndarray | ShownCells
    high: np.ndarray | ShownCells
    rules: list[FoundRule] = field(default_factory=list)
    where: dict[str, np.ndarray] = field(default_factory=dict)
    repeats: dict[int, int] = field(default_factory=dict)
    repairs: dict[tuple[int, int], str] = field(default_factory=dict)
    unclear: dict[tuple[int, int], str] = field(default_factory=dict)
    mistakes: dict[int, str] = field(default_factory=dict)
    written: str = ""
    against: list[str] = field(default_factory=list)

    kind = "cells"
    title = "Wrong cells"

    def __post_init__(self) -> None:
        vars(self)["where"] = self.where or {"row": np.arange(len(self))}

    def __len__(self) -> int:
        """Return the number of rows of the table."""
        return len(self.scores)

    def __repr__(self) -> str:
        return f"CellFindings({int(self.flagged.sum())} of {self.scores.size:,} cells flagged)"

    @cached_property
    def flagged(self) -> np.ndarray:
        """Mask of the flagged cells, of shape (n, d)."""
        return flagged_cells(self.scores, self.excess, self.bounds)

    @cached_property
    def shifts(self) -> dict[int, Shift]:
        """Rows whose cells fit when they are moved by one column, as by a comma in a name."""
        found = shifted_rows(self.names, self.values, self.flagged)
        return {shift.row: shift for shift in found if shift.row not in self.mistakes}

    @cached_property
    def _worst(self) -> tuple[np.ndarray, np.ndarray]:
        return worst_cells(self.scores, self.bounds)

    @property
    def worst(self) -> np.ndarray:
        """Column of the worst cell of each row, of shape (n,), by how far it is beyond its bound."""
        return self._worst[0]

    @cached_property
    def order(self) -> np.ndarray:
        """Rows, that with the worst cell first; ties stay in the order of the table."""
        return np.argsort(-self._worst[1], kind="stable")

    def explained(
        self, columns_against: Callable[[int, int], Sequence[str]], meant: Callable[[int, int], str | None]
    ) -> Self:
        """Return the result with what speaks against the worst cells of the flagged rows, and of the first ten.

        `meant` says which word a cell looks like, if any.
        """
        count = max(int(self.flagged.any(axis=1).sum()), 10)
        said = [self._reason(int(i), columns_against, meant) for i in self.order[: min(count, MOST_EXPLAINED)]]
        return replace(self, against=said)

    def _reason(
        self, i: int, columns_against: Callable[[int, int], Sequence[str]], meant: Callable[[int, int], str | None]
    ) -> str:
        """Return what the worst cell of a row looks like, the broken rules about it, and the columns that speak against it."""
        j = int(self.worst[i])
        if self._worst[1][i] == -np.inf:
            return ""
        if i in self.shifts:
            return str(self.shifts[i])
        broken = [str(found.rule) for found in self.rules if self.names[j] in found.rule.columns and i in found.broken]
        open_why = self.unclear.get((i, j), "")
        if np.isnan(self.excess[i, j]):  # the law knows no such cell
            return self.repairs.get((i, j), open_why or "cannot be read")
        why = self.mistakes.get(i, self.repairs.get((i, j), open_why))
        others = [] if self.excess[i, j] <= 0.0 else columns_against(i, j)[:2]
        told = [f"{name} {cell_text(self.values[i, self.names.index(name)])}" for name in others]
        word = meant(i, j)
        looks = [] if word is None else [f"looks like {word!r}"]
        said = [*looks, *(f"not {rule}" for rule in broken[:2])]
        return "; ".join([*([] if not why or why in said else [why]), *said, *([] if i in self.mistakes else told)])

    def _at(self, places: np.ndarray, cells: np.ndarray | ShownCells) -> np.ndarray:
        columns = self.worst[places]
        return cells.at(places, columns) if isinstance(cells, ShownCells) else cells[places, columns]

    def _of_rows(self, rows: np.ndarray) -> dict[str, Any]:
        """Return the table of the worst cell of some rows."""
        said = dict(zip(self.order[: len(self.against)].tolist(), self.against, strict=True))
        shown = {name: self._at(rows, cells) for name, cells in (("value", self.values), ("usual", self.usual))}
        ranges = {name: self._at(rows, cells) for name, cells in (("low", self.low), ("high", self.high))}
        return (
            {name: column[rows] for name, column in self.where.items()}
            | {"column": np.array(self.names, dtype=object)[self.worst[rows]]}
            | shown
            | ranges
            | {
                "excess": np.nan_to_num(self.scores[rows, self.worst[rows]].astype(np.float64)),
                "flagged": self.flagged[rows, self.worst[rows]],
                "repairable": np.array(
                    [cell in self.repairs for cell in zip(rows.tolist(), self.worst[rows].tolist(), strict=True)],
                    dtype=bool,
                ),
                "against": np.array([said.get(int(i), "") for i in rows], dtype=object),
            }
        )

    def columns_of_rows(self, rows: np.ndarray | None = None) -> dict[str, Any]:
        """Return the worst cell of some rows of the table as columns; of all, that with the worst cell first, by default."""
        return self._of_rows(self.order if rows is None else rows)

    def _columns(self) -> dict[str, Any]:
        return self.columns_of_rows()

    def _first_rows(self, most: int | None) -> tuple[dict[str, Any], int]:
        return self._of_rows(self.order[:most]), len(self)

    def changes(self) -> dict[str, Any]:
        """Return the cells that :meth:`CellwiseDetector.repaired` replaces, as columns.

        Returns
        -------
        dict of str to ndarray or list
            Where the row stands, as in `where`; "column", "old", "new", and "reason", why the new cell is clear enough.
        """
        cells = sorted(self.repairs)
        rows, columns = np.array(cells, dtype=np.intp).reshape(-1, 2).T
        return {name: column[rows] for name, column in self.where.items()} | {
            "column": [self.names[j] for j in columns],
            "old": [self.values[cell] for cell in cells],
            "new": [self.usual[cell] for cell in cells],
            "reason": [self.repairs[cell] for cell in cells],
        }

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows of the table", len),
        "columns": Fact("list of string", "columns that were used", lambda found: found.names),
        "flagged_cells": Fact("integer", "number of flagged cells", lambda found: int(found.flagged.sum())),
        "flagged_rows": Fact(
            "integer", "number of rows that hold one", lambda found: int(found.flagged.any(axis=1).sum())
        ),
        "repairable_cells": Fact(
            "integer",
            "flagged cells for which it is clear enough what they should hold: a repaired table has it",
            lambda found: len(found.repairs),
        ),
        "mistakes": Fact(
            "list of object",
            "rows that one mistake explains",
            lambda found: [
                {"place": found._places(np.array([i]))[0], "mistake": said}
                for i, said in sorted(found.mistakes.items())
            ],
            {
                "place": Key("integer, number, string or null", "line (or row)"),
                "mistake": Key("string", "the mistake in words, such as: x and z are swapped"),
            },
        ),
        "shifted": Fact(
            "list of object",
            "rows whose cells fit when they are moved by one column",
            lambda found: [
                {"place": found._places(np.array([i]))[0], "from": shift.column, "to": shift.to}
                for i, shift in found.shifts.items()
            ],
            {
                "place": Key("integer, number, string or null", "line (or row)"),
                "from": Key("string", "first column whose cell belongs elsewhere"),
                "to": Key("string", "left or right: where the cells belong"),
            },
        ),
        "repeated": Fact(
            "list",
            "lines (or rows) that repeat an earlier one",
            lambda found: found._places(np.array(list(found.repeats), dtype=int)),
        ),
        "rules": Fact(
            "list of object",
            "rules that nearly all rows keep",
            lambda found: found.rules_as_records(),
            {
                "rule": Key("string", "the rule in words"),
                "rows": Key("integer", "rows that it is about"),
                "broken": Key("list", "lines (or rows) in which it does not hold"),
            },
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = PLACE | {
        "column": Key("string", "column of the cell"),
        "value": Key("string, number, boolean or null", "the cell"),
        "usual": Key(
            "string, number, boolean or null", "median of its law given the other cells, or the likeliest word"
        ),
        "low": Key("string, number, boolean or null", "5 % quantile of the law, or the likeliest word"),
        "high": Key("string, number, boolean or null", "95 % quantile"),
        "excess": Key("number", "surprisal less its expectation, and what broken rules add, in nats"),
        "flagged": Key("boolean", "whether the cell is flagged"),
        "repairable": Key("boolean", "whether a repaired table has the usual cell in its place"),
        "against": Key(
            "string", "broken rules and other cells that speak against it; empty for rows that are not explained"
        ),
    }

    def rules_as_records(self) -> list[dict[str, Any]]:
        """Return the rules in words, each with the rows that it judges and where it is broken."""
        return [
            {"rule": str(found.rule), "rows": found.rows_about, "broken": self._places(found.exceptions)}
            for found in self.rules
        ]

    def _places(self, rows: np.ndarray) -> list[Any]:
        column = next(iter(self.where.values()))
        return [column[i] for i in rows]

    def _sentences(self) -> list[str]:
        rows, cells = int(self.flagged.any(axis=1).sum()), int(self.flagged.sum())
        if not cells:
            said = [
                f"No cell of {counted(len(self), 'row')} is beyond its bound: all cells fit the others of their rows."
            ]
        else:
            verb = "does" if cells == 1 else "do"
            said = [
                f"{counted(cells, 'cell')} in {counted(rows, 'row')} of {len(self):,} {verb} not fit the other cells of the row.",
                *self._worst_ones(),
                *self._mistakes_in_words(),
                *self._repairs_in_words(cells),
            ]
        said += [self.written] * bool(self.written)
        return [*said, *self._of_whole_rows(), *self.rules_in_words()]

    def _of_whole_rows(self) -> list[str]:
        """Return sentences about rows that are shifted, and about those that repeat an earlier one."""
        name = next(iter(self.where))
        said = [
            f"{name.capitalize()} {self._places(np.array([i]))[0]} is {shift}; a separator too many or too few may be in it."
            for i, shift in list(self.shifts.items())[:_MOST_PLACES]
        ]
        if 0 < len(self.repeats) <= _SHARE_REPEATS * len(self):
            verb = "repeats" if len(self.repeats) == 1 else "repeat"
            again, first = (self._places(np.array(list(rows))) for rows in (self.repeats, self.repeats.values()))
            pairs = [f"{name} {one} (as {other})" for one, other in zip(again, first, strict=True)]
            said.append(f"{counted(len(pairs), 'row')} {verb} an earlier one: {listed(pairs, _MOST_PLACES)}.")
        return said

    def _mistakes_in_words(self) -> list[str]:
        """Return a sentence about the mistakes that explain rows, the most frequent one first."""
        rows_of: dict[str, list[int]] = {}
        for i, said in sorted(self.mistakes.items()):
            rows_of.setdefault(said, []).append(i)
        if not rows_of:
            return []
        first = sorted(rows_of, key=lambda said: (-len(rows_of[said]), rows_of[said]))
        name, parts = next(iter(self.where)), []
        for said in first[:_MOST_PLACES]:
            places = [str(place) for place in self._places(np.array(rows_of[said]))]
            parts.append(f"{said} in {name}{'s' * (len(places) > 1)} {listed(places, _MOST_PLACES)}")
        more = f"; and {counted(len(first) - len(parts), 'other mistake')}" if len(first) > len(parts) else ""
        verb = "One mistake explains" if len(self.mistakes) == 1 else "Mistakes explain"
        return [f"{verb} {counted(len(self.mistakes), 'row')}: {'; '.join(parts)}{more}."]

    def _repairs_in_words(self, cells: int) -> list[str]:
        """Return a sentence about how many flagged cells a repaired table replaces."""
        certain, left = len(self.repairs), cells - len(self.repairs)
        if not left:
            return ["What should stand there is clear enough to replace all of them in a repaired table."]
        unclear, (be, stay) = len(self.unclear), ("is", "stays") if left == 1 else ("are", "stay")
        rare = left - unclear
        which = f"{unclear:,}" if unclear < cells else "it" if cells == 1 else "they"
        what = f"it is not clear what {which} should hold"
        if not unclear:
            said = f"{rare:,} {be} only rare beside the others of the row, and {stay} in a repaired table"
        elif not rare:
            said = f"{what[0].upper()}{what[1:]}: {'it stays' if left == 1 else 'they stay'} in a repaired table"
        else:
            only = "is" if rare == 1 else "are"
            said = f"{rare:,} {only} only rare beside the others of the row, and {what}: all {left:,} stay in a repaired table"
        replaced = f"; the other {certain:,} {'is' if certain == 1 else 'are'} replaced" if certain else ""
        return [f"{said}{replaced}."]

    def _worst_ones(self) -> list[str]:
        """Return a sentence about the worst cell."""
        i = int(self.order[0])
        j = int(self.worst[i])
        place = place_text(self.where, i)
        usual = self.usual_text(i, j)
        return [f"The worst one is {self.names[j]} {cell_text(self.values[i, j])} in {place}: {usual}."]

    def usual_text(self, i: int, j: int) -> str:
        """Return in words what would be usual in the place of a cell."""
        low, high = self.low[i, j], self.high[i, j]
        if low is None or low != low:
            return "nothing tells what is usual"
        if low == high or (isinstance(low, str) and isinstance(high, str)):
            return f"{cell_text(low)} is usual"
        return f"{cell_text(low)} to {cell_text(high)} is usual"

    def rules_in_words(self) -> list[str]:
        """Return a sentence about each rule that most rows keep and some break, and one about all equations and others kept."""
        name = next(iter(self.where))
        broken = [found for found in self.rules if len(found.exceptions)]
        said = []
        for found in sorted(broken, key=lambda each: len(each.exceptions)):
            places = listed([str(place) for place in self._places(found.exceptions)], _MOST_PLACES)
            which = name if len(found.exceptions) == 1 else f"{name}s"
            said.append(f"{found.rule} in {found.kept_in}; not in {which} {places}.")
        whole = [str(found.rule) for found in self.rules if not len(found.exceptions) and len(found.rule.columns) > 1]
        if whole:
            said.append(f"In all rows: {listed(whole, 5)}.")
        return said

    def _tables(self) -> list[ShownTable]:
        first = self.order[:MOST_ROWS]
        columns = self._of_rows(first)
        columns["usual"] = [self.usual_text(int(i), int(self.worst[i])).removesuffix(" is usual") for i in first]
        del columns["low"], columns["high"]
        columns["flagged"] = np.where(columns["repairable"], "repairable", np.where(columns["flagged"], "flagged", ""))
        del columns["repairable"]
        tables = [ShownTable("Rows with the worst cells", columns, len(self), computed=frozenset({"excess"}))]
        if self.rules:
            tables.append(
                ShownTable(
                    "Rules that nearly all rows keep",
                    {
                        "rule": [str(found.rule) for found in self.rules],
                        "rows": [found.rows_about for found in self.rules],
                        "broken": [len(found.exceptions) for found in self.rules],
                    },
                )
            )
        return tables

    def _draw(self, ax: Any) -> Any:
        """Draw the rows with the worst cells as a table, cells beyond their bounds shaded, and what would be usual."""
        from isopleth.results.figures import draw_cells

        rows = self.order[: min(max(int(self.flagged.any(axis=1).sum()), 3), _DRAWN_ROWS)]
        # The columns of the worst cells first, and the others in their order as far as there is room.
        columns = list(dict.fromkeys([*self.worst[rows].tolist(), *range(len(self.names))]))
        columns = sorted(columns[:_DRAWN_COLUMNS])
        texts = [
            [
                str(self._places(np.array([i]))[0]),
                *(cell_text(self.values[i, j]) for j in columns),
                self._usual_of(int(i)),
            ]
            for i in rows
        ]
        margin = margins(self.scores[rows], self.bounds[rows])
        beyond = np.where(self.flagged[rows], 0.4 + 0.06 * np.clip(margin, 0.0, 10.0), 0.0)[:, columns]
        shades = np.pad(beyond, [(0, 0), (1, 1)])
        names = [next(iter(self.where)), *(self.names[j] for j in columns), "usual"]
        return draw_cells(self._sentences()[0], names, texts, shades, ax)

    def _usual_of(self, i: int) -> str:
        """Return what would be usual in the place of the worst cell of a row, with its column."""
        j = int(self.worst[i])
        return f"{self.names[j]}: {self.usual_text(i, j).removesuffix(' is usual')}"

    def _charts(self) -> list[Chart]:
        """Return by how much the worst cells are beyond their bounds, by rank."""
        first = self.order[: min(MOST_ROWS, len(self))]
        beyond = self._worst[1][first]
        first, beyond = first[np.isfinite(beyond)], beyond[np.isfinite(beyond)]
        if not len(first):
            return []
        labels = [f"{self.names[self.worst[i]]}, {place}" for i, place in zip(first, self._places(first), strict=True)]
        flagged = beyond > 0.0
        series = [
            Series(
                name, np.flatnonzero(mask) + 1, beyond[mask], "dots", colour, [labels[i] for i in np.flatnonzero(mask)]
            )
            for name, mask, colour in (("flagged", flagged, "vermillion"), ("not flagged", ~flagged, "blue"))
            if mask.any()
        ]
        return [Chart(self._sentences()[0], "rank of the row", "nats beyond the bound", series)]

    def _bounds_in_words(self) -> str:
        """Return the bounds in nats, which differ by column and word."""
        known = self.bounds[~np.isnan(self.scores)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        return f"{low:.3g} nats" if low == high else f"{low:.3g} to {high:.3g} nats, by column and word"

    def _notes(self) -> list[str]:
        return [
            "excess: surprisal of the cell given the others of its row less its expectation, in nats; broken rules add to it.",
            "usual: median and 5 to 95 % of the law of a number given the other cells, or the likeliest word.",
            "repairable: a repaired table has the usual cell in its place.",
            "against: mistakes, broken rules, and the cells without which this one would be less surprising.",
            f"A cell is flagged from a bound on: {self._bounds_in_words()}. It is no error rate: right cells are flagged too.",
            "Rows are in the order of how far their worst cell is beyond its bound, and not of excess alone.",
        ]
