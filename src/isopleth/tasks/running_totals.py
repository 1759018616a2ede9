"""Running totals, such as a meter or a counter of requests: columns that never fall but for resets, and their increments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isopleth.core.errors import quoted, warn_user

# Fewest increments above 0, and their least share of all steps: a few levels one above the other are no total.
_LEAST, _LEAST_SHARE = 20, 0.1
# Share of the value before, below which a fall is a reset of the counter, and largest share of steps with one.
_RESET, _RESETS = 0.5, 0.01
# Share of the range that counts as equal.
_ROUNDING = 1e-9
# Least autocorrelation of the increments of a total. Errors of measured values lower it to -.5, those of increments do not.
_MEASURED = -0.25
# Least relative deviation of the increments: a line up to rounding is no total with increments to compare.
_VARIES = 1e-3


def is_running_total(column: np.ndarray) -> bool:
    """Tell whether the known values of a column, NaN where there are none, never fall but for resets, and rise by what varies."""
    known = column[~np.isnan(column)]
    if len(known) <= _LEAST or not known[0] >= 0.0 or not known.min() >= 0.0:
        return False
    steps = np.diff(known)
    falls = np.flatnonzero(steps < -_ROUNDING * np.ptp(known))
    if len(falls) > _RESETS * len(steps) or (known[falls + 1] > _RESET * known[falls]).any():
        return False
    rises = np.delete(steps, falls)
    if np.sum(rises > 0.0) < max(_LEAST, _LEAST_SHARE * len(rises)):
        return False
    around = rises - rises.mean()
    power = float(around @ around)
    varies = power > len(rises) * (_VARIES * rises.mean()) ** 2
    return bool(varies and float(around[1:] @ around[:-1]) > _MEASURED * power)


def increments(column: np.ndarray) -> np.ndarray:
    """Return the rise of a total at each step, NaN at the first one, beside gaps and at resets."""
    rises = np.diff(column, prepend=np.nan)
    fell = rises < -_ROUNDING * np.nanmax(np.abs(column))
    return np.where(fell, np.nan, np.maximum(rises, 0.0))


def warn_of_totals(names: Sequence[Any], *, left_out: bool) -> None:
    """Warn a monitor of running totals in its reference, and say whether they are left out."""
    one = len(names) == 1
    are, them = ("is a running total", "it is") if one else ("are running totals", "they are")
    text = f"{quoted(names)} {are}, and all later rows are beyond the reference"
    hint = f"give {'its' if one else 'their'} increments to watch them"
    warn_user(f"{text}: {them} left out" if left_out else text, hint=hint)
