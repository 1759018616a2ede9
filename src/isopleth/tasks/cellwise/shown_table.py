"""Cells of a judged table, and what would be usual there, as they are shown: in large tables when they are asked for."""

from __future__ import annotations

import numpy as np

from isopleth.results.result import ShownCells
from isopleth.tables.checks import CheckedRows
from isopleth.tables.intervals import interval_text
from isopleth.tasks.cellwise.evidence import in_encoded_order
from isopleth.tasks.cellwise.model import CellModel, JudgedTable, is_large
from isopleth.tasks.cellwise.usual_cells import UsualCells


def values_as_shown(rows: JudgedTable) -> np.ndarray | ShownCells:
    """Return the cells of a table, those that say a limit or cannot be read as text."""
    values = _with_texts(cells_as_shown(rows.table, rows.table.rows), rows.table)
    if not rows.unread:
        return values
    out = np.asarray(values).astype(object)
    for j, cells in rows.unread.items():
        out[cells.rows, j] = cells.texts
    return out


def usual_as_shown(model: CellModel, table: CheckedRows, told: UsualCells) -> list[np.ndarray | ShownCells]:
    """Return the low end, the middle and the high end of what is usual."""
    schema = table.columns
    if not is_large(len(table.rows)):
        whole = told.of_rows(np.arange(len(table.rows)))
        shown = [cells_as_shown(table, in_encoded_order(table, part)) for part in whole]
        return [_within_limits(model, part, table) for part in shown]

    def cells(k: int) -> ShownCells:
        def take(rows: np.ndarray) -> np.ndarray:
            found = in_encoded_order(table, told.of_rows(rows)[k])
            return np.asarray(_within_limits(model, found if schema is None else schema.shown(found), table))

        def take_at(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            return _some_cells(model, table, columns, told.at(rows, columns)[k])

        kind = object if len(table.limits.columns) or (schema and not schema.only_numbers) else np.float64
        return ShownCells(told.shape, kind, take, take_at)

    return [cells(k) for k in range(3)]


def cells_as_shown(table: CheckedRows, rows: np.ndarray) -> np.ndarray | ShownCells:
    """Return encoded rows as cells in the order of the table."""
    schema = table.columns
    if schema is None:
        return rows.copy()
    if schema.only_numbers or not is_large(len(rows)):
        return schema.shown(rows)
    return ShownCells(rows.shape, object, lambda some: schema.shown(rows[some]))


def _some_cells(model: CellModel, table: CheckedRows, columns: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return encoded cells of some columns as they are shown."""
    rows = np.full((len(found), table.rows.shape[1]), np.nan)
    rows[np.arange(len(found)), columns] = found
    encoded = in_encoded_order(table, rows)
    shown = encoded if table.columns is None else table.columns.shown(encoded)
    return np.asarray(_within_limits(model, shown, table))[np.arange(len(found)), columns]


def _within_limits(model: CellModel, shown: np.ndarray | ShownCells, table: CheckedRows) -> np.ndarray | ShownCells:
    """Return shown values with the text of a limit in the place of the point that stands for it."""
    if not len(model.limits.columns):
        return shown
    values = np.asarray(shown)
    for j in model.limits.columns.tolist():
        _, lower, upper = model.limits.of(j)
        for low, high in sorted(set(zip(lower.tolist(), upper.tolist(), strict=True))):
            point, place = model.points.at(j, low, high), table.order[j]
            cells = values[:, place].tolist()
            same = np.array([isinstance(v, float) and abs(v - point) <= 1e-9 * abs(point) for v in cells])
            if same.any():
                values = values.astype(object) if values.dtype != object else values
                values[same, place] = interval_text(low, high)
    return values


def _with_texts(shown: np.ndarray | ShownCells, table: CheckedRows) -> np.ndarray | ShownCells:
    """Return shown cells with the text of those that say a limit."""
    if not len(table.limits.columns):
        return shown
    values = np.asarray(shown)
    for j in table.limits.columns.tolist():
        where, low, high = table.limits.of(j)
        values = values.astype(object) if values.dtype != object else values
        values[where, table.order[j]] = [interval_text(*ends) for ends in zip(low, high, strict=True)]
    return values
