"""The part of a season that changes: the phases at which the cycles before and after a change differ most."""

from __future__ import annotations

import numpy as np

# Standard errors by which a phase has to differ, and share of the largest difference.
_SURE, _SHARE = 4.0, 0.5
# Fewest cycles on either side.
_CYCLES = 2.0
# Largest share of a cycle that is a part of it.
_MOST = 0.75


def changed_part(before: np.ndarray, after: np.ndarray, period: int) -> tuple[int, int, float] | None:
    """Return first phase, last phase and mean difference of the part of a cycle that changes most.

    `before` and `after` are one column on either side of a change, NaN where it is unknown; phases are counted from the first
    step of `before`. None if there are too few cycles, no phase differs surely, or nearly all do.
    """
    if min(len(before), len(after)) < _CYCLES * period or period < 3:
        return None
    phases = np.arange(len(before) + len(after)) % period
    means, errors = zip(
        *(
            _of_phases(column, own, period)
            for column, own in ((before, phases[: len(before)]), (after, phases[len(before) :]))
        ),
        strict=True,
    )
    difference, error = means[1] - means[0], np.sqrt(errors[0] ** 2 + errors[1] ** 2)
    if not np.isfinite(difference).all():
        return None
    sizes = np.abs(difference)
    peak = int(np.argmax(sizes - _SURE * error))
    differs = (sizes > _SURE * error) & (sizes >= _SHARE * sizes[peak]) & (difference * difference[peak] > 0.0)
    if not differs[peak] or differs.mean() > _MOST:
        return None
    first = last = peak
    while differs[(first - 1) % period]:
        first -= 1
    while differs[(last + 1) % period]:
        last += 1
    part = np.arange(first, last + 1) % period
    return int(part[0]), int(part[-1]), float(difference[part].mean())


def _of_phases(column: np.ndarray, phases: np.ndarray, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of the phases and their standard errors, by the scatter about all of them."""
    known = ~np.isnan(column)
    counts = np.bincount(phases[known], minlength=period)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(phases[known], column[known], period) / counts
        rest = column[known] - means[phases[known]]
        spread = float(np.sqrt(rest @ rest / max(int(known.sum()) - period, 1)))
        return means, spread / np.sqrt(counts)
