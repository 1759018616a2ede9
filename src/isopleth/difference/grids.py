"""Length scales and ridges to choose from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isopleth.density.length_scales import deviations
from isopleth.errors import InputError

ALPHAS = 10.0 ** np.arange(-3.0, 4.25, 0.5)
"""Ridges over the volume of the kernel."""


def factors(dim: int) -> np.ndarray:
    """Multiples of the standard deviations: distances between rows grow with the root of the dimension."""
    return math.sqrt(dim) * 2.0 ** np.arange(-3.5, 1.75, 0.5)


def _spread(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Standard deviations within the samples, pooled: those of all rows together would grow with the very difference.

    Columns that are constant in both samples have no other than the latter.
    """
    within = np.array([deviations(rows[w > 0], w[w > 0]) for w in weights.T])
    share = np.sqrt(weights.sum(axis=0) / weights.sum())
    pooled = np.hypot(*(within * share[:, None]))
    return np.where(pooled > 0, pooled, deviations(rows, weights.sum(axis=1)))


def length_scales(
    given: Any, rows: np.ndarray, weights: np.ndarray, keep: np.ndarray, names: list[str]
) -> tuple[np.ndarray, bool]:
    """Candidates of shape (k, d) for the kept columns of the centred `rows`, and whether there is something to choose.

    `weights` has one column a sample.

    Raises
    ------
    InputError
        If `given` is not a number, one a column, or a table of candidates, all positive.
    """
    if given is None:
        spread = _spread(rows, weights)
        bad = ~(np.isfinite(spread) & (spread > 1e-150) & (spread < 1e150))
        if bad.any():
            name = names[np.flatnonzero(keep)[np.argmax(bad)]]
            raise InputError(f"{name} is of a size that leaves no length scale; rescale it to numbers nearer to 1.")
        return factors(rows.shape[1])[:, None] * spread, True
    expected = f"expected None, a number, one for each of {len(keep)} columns, or a table with one candidate a row"
    try:
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"length_scale = {given!r}: {expected}.") from error
    shape = table.shape
    if (
        table.ndim > 2
        or not table.size
        or (table.ndim and shape[-1] != len(keep) and (table.ndim == 1 or shape[1] != 1))
    ):
        raise InputError(f"length_scale has shape {shape}; {expected}.")
    table = np.broadcast_to(np.atleast_2d(table), (shape[0] if table.ndim == 2 else 1, len(keep)))
    if not ((np.isfinite(table) & (table > 0)) | (np.isnan(table) & ~keep)).all():
        raise InputError(f"length_scale = {given!r}: expected positive, finite numbers in the units of the columns.")
    return table[:, keep], len(table) > 1


def ridges(given: Any) -> tuple[np.ndarray, bool]:
    """Candidates for alpha, and whether there is something to choose.

    Raises
    ------
    InputError
        If `given` is neither a number nor a sequence of numbers, none negative.
    """
    if given is None:
        return ALPHAS, True
    try:
        alphas = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"alpha = {given!r}: expected None, a number or a sequence of numbers.") from error
    if alphas.ndim != 1 or not alphas.size or not (np.isfinite(alphas) & (alphas >= 0)).all():
        raise InputError(f"alpha = {given!r}: expected None, a number or a sequence of numbers, finite and >= 0.")
    return alphas, len(alphas) > 1
