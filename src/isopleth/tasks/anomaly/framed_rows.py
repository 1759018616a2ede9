"""Rows as the evidence of a detector takes them: gaps of words as codes, and numbers of a size of about 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from isopleth.core.errors import InputError, quoted, warn_about_answer
from isopleth.core.scales import ScaledColumns, medians
from isopleth.core.threads import interruptible
from isopleth.tables.checks import CheckedRows, numbered_groups
from isopleth.tasks.anomaly.training_table import frame_of_constants


def with_gap_codes(rows: np.ndarray, gap_codes: np.ndarray) -> np.ndarray:
    """Return rows of numbers and codes with a code for missing words; NaN is the most frequent word, whose code is 0."""
    numeric = rows.shape[1] - len(gap_codes)
    gaps = np.isnan(rows[:, numeric:])
    if not gaps.any():
        return rows
    words = np.where(gaps, np.nan_to_num(gap_codes), rows[:, numeric:])
    return np.column_stack([rows[:, :numeric], words])


def numbers_of_codes(X: np.ndarray, gap_codes: np.ndarray) -> np.ndarray:
    """Return how many codes each column of words can have: words, unseen ones, and gaps where they count as a word."""
    words = X[:, X.shape[1] - len(gap_codes) :]
    return np.fmax(words.max(axis=0, initial=0.0), np.nan_to_num(gap_codes)) + 1.0


def warn_of_new_gaps(table: CheckedRows, gap_codes: np.ndarray) -> None:
    """Warn of missing words where no row of the fit lacked one."""
    if table.columns is None or not len(gap_codes):
        return
    new = np.isnan(table.rows[:, -len(gap_codes) :]).any(axis=0) & np.isnan(gap_codes)
    if names := [name for name, is_new in zip(table.columns.categorical_names, new, strict=True) if is_new]:
        warn_about_answer(
            f"words are missing in {quoted(names)}, where no row of the fit lacks one; they count as the most frequent word."
        )


def frame_of(X: np.ndarray, keep: np.ndarray, numeric: int) -> ScaledColumns:
    """Return the frame of the columns in `keep`: the first `numeric` get a size of about 1, and codes stay as they are."""
    if np.isnan(X).any() or numeric < X.shape[1]:
        shift = np.where(keep, np.nanmedian(np.where(keep, X, 0.0), axis=0), 0.0)
        shift[numeric:] = 0.0
        frame = ScaledColumns(keep, shift[keep], np.ones(int(keep.sum())))
    else:
        frame = interruptible(100.0 * X.size, ScaledColumns.centred, X, keep)
    size = np.abs(frame.centre(X))
    # Columns are scaled to numbers of a size about 1, so that squares neither over- nor underflow.
    middle = np.nanmedian(size, axis=0) if np.isnan(size).any() else medians(size)
    scale = np.where(middle > 0.0, middle, np.nanmax(size, axis=0))
    scale = np.where(scale > 0.0, scale, frame_of_constants(frame.shift))
    scale[int(frame.keep[:numeric].sum()) :] = 1.0
    return frame.scaled(scale)


def checked_groups(groups: Any, n: int, novelty: bool) -> np.ndarray | None:
    """Return the numbers of the groups of `n` rows; InputError if a label is missing or there is only one group."""
    if groups is None:
        return None
    if not novelty:
        raise InputError("groups are used with novelty=True only: without it all rows are judged by small samples.")
    (numbers,) = numbered_groups([groups], [n])
    if numbers.max() == 0:
        raise InputError("groups has one label only; expected at least two groups.")
    return numbers
