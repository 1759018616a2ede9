"""Rows without a known cell, of which fits and answers make no use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator

from isopleth.core.errors import InputError, warn_user
from isopleth.core.parameters import column_labels
from isopleth.tables.checks import CheckedRows
from isopleth.tables.given import Given


def without_empty_rows(estimator: BaseEstimator, given: Given, table: CheckedRows, least: int = 2) -> CheckedRows:
    """Return the rows of a fit that have a known cell, and warn of the others; complete numbers that are left have no schema.

    Rows of weight 0 that have gaps are left out too, since they count for nothing and must not make a table one with gaps.
    """
    empty, counted = empty_rows(table), table.weights > 0.0
    if empty[counted].all() and counted.any():
        raise InputError("no row of X with a positive weight has a known cell; expected at least two.")
    if n := int((empty & counted).sum()):
        warn_user(f"rows without a known cell are left out: {n}.")
    drop = empty | (table.missing.any(axis=1) & ~counted)
    if not drop.any():
        return table
    table = replace(table, rows=table.rows[~drop], weights=table.weights[~drop], limits=table.limits.take(~drop))
    given.refuse_few(len(table.rows), least)
    if not len(table.limits) and not table.missing.any():
        return as_numbers(estimator, given, table)
    return table


def as_numbers(estimator: BaseEstimator, given: Given, table: CheckedRows) -> CheckedRows:
    """Return a table without gaps as :func:`enter` returns the same table if it has no empty rows: numbers have no schema."""
    columns = table.columns
    if columns is None:
        return table
    read = is_read(given)
    if not columns.only_numbers or not (read or (given.only_numbers and not columns.left_out)):
        return table
    estimator.__dict__.pop("schema_", None)
    if read:
        names = list(columns.names)
        estimator.n_features_in_ = len(names)
        estimator._column_labels = column_labels(names, len(names))
        estimator.__dict__.pop("feature_names_in_", None)
        if columns.named:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
    return replace(table, columns=None)


def is_read(given: Given) -> bool:
    """Tell whether a table has been read by :func:`isopleth.read_table`."""
    from isopleth.tables.schema import Attached

    return given.frame is not None and Attached.of(given) is not None


def warn_of_empty_rows(table: CheckedRows) -> None:
    """Warn of rows of a question that say nothing."""
    if n := int(empty_rows(table).sum()):
        warn_user(f"rows without a known cell say nothing, and have the log density 0: {n}.")


def empty_rows(table: CheckedRows) -> np.ndarray:
    """Return the mask of the rows of which no cell is known, not even as an interval."""
    limited = np.zeros(len(table.rows), dtype=bool)
    limited[table.limits.rows] = True
    return np.asarray(table.missing.all(axis=1) & ~limited)
