"""Rows that have no score, and columns that one length scale does not suit."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator

from isopleth.errors import DataWarning, InputError
from isopleth.validation import column_names

SMALLEST = 1e-305
"""Half the range of a column, and its inverse the largest: beyond, distances overflow, or scores do."""

UNLIKE, ENOUGH_ROWS = 5.0, 20
"""Ratio of spreads at which the loss begins to hear of the narrow columns alone; of fewer rows it may be chance."""


def refuse_without_score(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Refuse distinct `rows` whose score is not defined, or is no number.

    Raises
    ------
    InputError
        For fewer than two, constant columns, and columns of a size near the ends of double precision.
    """
    if len(rows) < 2:
        raise InputError(
            f"X has {len(rows)} distinct row of positive weight (n_samples = 1 once merged); a score needs at least two."
        )
    names = column_names(estimator)
    low, high = rows.min(axis=0), rows.max(axis=0)
    constant = low == high
    if constant.any():
        listed = ", ".join(names[j] for j in np.flatnonzero(constant)[:8])
        raise InputError(f"constant columns have no score: {listed}; drop them first.")
    half = 0.5 * high - 0.5 * low
    wild = (half < SMALLEST) | (half > 1.0 / SMALLEST)
    if wild.any():
        j = int(np.argmax(wild))
        raise InputError(
            f"{names[j]} spans twice {half[j]:.1e}, which leaves no numbers for its length scale or its score; rescale it to "
            f"numbers nearer to 1."
        )


def warn_of_unlike_columns(estimator: BaseEstimator, rows: np.ndarray) -> None:
    """Warn of columns of unlike spread where all get one length scale."""
    if len(rows) < ENOUGH_ROWS:
        return
    ordered, cut = np.sort(rows.T, axis=1), len(rows) // 20  # a far row makes no column wide
    spread = ordered[:, -1 - cut] - ordered[:, cut]
    least, most = int(np.argmin(np.where(spread > 0.0, spread, np.inf))), int(np.argmax(spread))
    if spread[most] > UNLIKE * spread[least] > 0.0:
        names = column_names(estimator)
        warnings.warn(
            f"{names[most]} spreads {spread[most] / spread[least]:.3g} times as far as {names[least]}, and all columns get one "
            f"length scale; standardise the columns, or give length_scale one number a column.",
            DataWarning,
            stacklevel=6,
        )
