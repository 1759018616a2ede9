"""Evidence against the cells of a table: the excess of their laws, rules that they break, and forms of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.core.steps import NEARLY_ALL_IN_STEPS, recorded_step
from isopleth.core.threads import slices
from isopleth.tables.checks import CheckedRows
from isopleth.tables.rules import Exact, FoundRule, NotZero, Times, find_rules, judged_cells
from isopleth.tables.schema import in_table_order
from isopleth.tables.unread import UnreadCells
from isopleth.tasks.cellwise.word_forms import WordForms

# What each further broken rule of a cell adds, and most that count.
_FURTHER_RULE, _MOST_RULES = 0.1, 9
# Score of a cell that cannot be read, in nats: beyond those of all others.
_UNREAD = 30.0
# Rows whose scores are made at once.
_ROWS_AT_ONCE = 2**16


def in_encoded_order(table: CheckedRows, values: np.ndarray) -> np.ndarray:
    """Return answers for cells with their columns in the order of the encoded rows."""
    return values[:, table.order]


@dataclass(frozen=True)
class CellEvidence:
    """Rules that nearly all rows of a table keep and forms of its words, and what they and laws say of cells."""

    names: list[str]  # of the columns, in the order of the table
    rules: list[FoundRule]
    forms: WordForms
    # In which the numbers of equations are recorded: by the table of the fit, as a few other rows say too large ones.
    steps: dict[str, float]

    @classmethod
    def of(cls, names: list[str], table: CheckedRows) -> Self:
        """Find the rules and forms of a table."""
        cells = columns_of_rules(names, table)
        rules = find_rules(cells)
        in_equations = {name for each in rules if isinstance(each.rule, Exact) for name in each.rule.columns}
        numbers = {name: cells[name] for name in names if name in in_equations and not isinstance(cells[name], Times)}
        return cls(names, rules, WordForms.of(cells), {name: _step(values) for name, values in numbers.items()})

    def columns(self, table: CheckedRows) -> dict[str, Any]:
        """Return the columns as rules see them."""
        return columns_of_rules(self.names, table)

    @property
    def equations(self) -> list[Exact]:
        """Rules that are equations."""
        return [each.rule for each in self.rules if isinstance(each.rule, Exact)]

    def solved_for(self, rule: Exact, name: str, cells: dict[str, Any]) -> np.ndarray:
        """Return what an equation says of one of its columns, encoded, in the step in which numbers are recorded."""
        said, column = rule.solved_for(name, cells), cells[name]
        if isinstance(column, Times):
            return said - column.origin
        step = self.steps[name]
        return np.round(np.rint(said / step) * step, 9) if step else said

    def place(self, table: CheckedRows, name: str) -> int:
        """Return the place of a column among the encoded ones."""
        return int(np.flatnonzero(table.order == self.names.index(name))[0])

    def scores(self, table: CheckedRows, encoded: np.ndarray, unread: dict[int, UnreadCells]) -> np.ndarray:
        """Return the excess of cells and what broken rules and forms of words say, in the order of the table; NaN in gaps."""
        out = np.empty_like(encoded)
        for part in slices(len(out), _ROWS_AT_ONCE):
            some = table if len(out) <= _ROWS_AT_ONCE else table.take(part)
            out[part] = self.scores_of_read(some, encoded[part])
        for j, cells in unread.items():
            out[cells.rows, j] = _UNREAD
        return out

    def scores_of_read(self, table: CheckedRows, encoded: np.ndarray) -> np.ndarray:
        """Return the scores of cells that can be read, by the excess of encoded cells."""
        columns, excess = self.columns(table), self.excess(table, encoded)
        told = self._of_rules(columns, len(excess)) + self.forms.told(self.names, columns, len(excess))
        # In a constant column rules alone can speak.
        out = np.where(np.isnan(excess) & (told > 0.0), told, excess + told)
        out[in_table_order(table.missing, table.order)] = np.nan
        return out

    def excess(self, table: CheckedRows, encoded: np.ndarray) -> np.ndarray:
        """Return the excess of cells, in the order of the table; a result that an equation tells exactly has none."""
        excess, cells = in_table_order(encoded, table.order), self.columns(table)
        for rule in self.equations:
            if rule.result is None:
                continue
            kept, j = rule.judged(cells) & ~rule.breaks(cells), self.names.index(rule.result)
            excess[kept, j] = np.minimum(excess[kept, j], 0.0)
        excess[self.absent(table)] = np.nan  # the rule alone speaks against them
        return excess

    def _of_rules(self, cells: dict[str, Any], n: int) -> np.ndarray:
        """Return what broken rules say against cells: the rarest broken one most, and a little for each further one."""
        weight, count = np.zeros((n, len(self.names))), np.zeros((n, len(self.names)))
        place = {name: j for j, name in enumerate(self.names)}
        for found in self.rules:
            broken = np.flatnonzero(found.rule.breaks(cells))
            for name in found.rule.blamed:
                weight[broken, place[name]] = np.maximum(weight[broken, place[name]], found.weight)
                count[broken, place[name]] += 1.0
        return weight + _FURTHER_RULE * np.minimum(count, _MOST_RULES)

    def rules_in(self, table: CheckedRows) -> list[FoundRule]:
        """Return the rules with the rows of a table that break each."""
        cells = self.columns(table)
        return [FoundRule.of(found.rule, cells) for found in self.rules]

    def without_absent(self, table: CheckedRows, rows: np.ndarray) -> np.ndarray:
        """Return encoded rows with gaps where a 0 stands for a missing cell: it must not speak for or against other cells."""
        zeros = [found.rule.column for found in self.rules if isinstance(found.rule, NotZero)]
        out = rows.copy() if zeros else rows
        for k in (self.place(table, name) for name in zeros):
            out[out[:, k] == 0.0, k] = np.nan
        return out

    def absent(self, table: CheckedRows) -> np.ndarray:
        """Return a mask of the zeros that stand for missing cells, (n, d), in the order of the table."""
        found = np.isnan(self.without_absent(table, table.rows)) & ~table.missing
        return in_table_order(found, table.order)

    def computed(self, table: CheckedRows) -> dict[int, set[int]]:
        """Return the encoded columns that equations compute from each one; of equations of the same columns the first counts."""
        found: dict[int, set[int]] = {}
        for rule in self.equations:
            if rule.result is None:
                continue
            result, *parts = (self.place(table, name) for name in rule.columns)
            if not any(part in found.get(result, ()) for part in parts):
                for part in parts:
                    found.setdefault(part, set()).add(result)
        return found


def _step(values: np.ndarray) -> float:
    return recorded_step(np.unique(values[~np.isnan(values)]), share=NEARLY_ALL_IN_STEPS)


def columns_of_rules(names: list[str], table: CheckedRows) -> dict[str, Any]:
    """Return the columns as rules see them: numbers, words with their levels, and times; limits have no rules."""
    rows = table.rows
    if len(table.limits):
        rows = rows.copy()
        rows[:, table.limits.columns] = np.where(table.limits.mask, np.nan, rows[:, table.limits.columns])
    if table.columns is None:
        return {name: column for name, column in zip(names, rows.T, strict=True)}
    found: dict[str, Any] = {}
    for place, cells in zip(table.order, rows.T, strict=True):
        if (judged := judged_cells(table.columns.columns[place], cells)) is not None:
            found[names[place]] = judged
    return {name: found[name] for name in names if name in found}
