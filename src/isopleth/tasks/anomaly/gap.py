"""Gap in the scores: how many of the least likely rows stand apart from all others."""

from __future__ import annotations

import numpy as np
from scipy.stats import f as f_law

# Rows behind which a gap is looked for, at least; rows behind these that it is compared with; level of the test.
_PLACES, _BEHIND, _CLEAR = 20, 20, 0.05
# Least width of a gap, as a share of the mean product: the difference of scores between a row and rows e times as rare.
# Behind many rows the F test finds gaps that are far smaller than those that follow one another among the first rows.
_WIDE = 0.25


def rows_before_gap(scores: np.ndarray, flagged: int) -> int:
    """Return how many of the least likely rows a gap sets apart, 0 if there is no clear one.

    The clearest gap is found, and the rows behind it are searched for another one, as if the others were not there: far rows
    are far from each other, too, and only the last gap has all of them before it. At least the flagged rows are tried.
    """
    ordered, found = np.sort(scores), 0
    while more := _clearest(ordered[found:], max(flagged - found, _PLACES)):
        found += more
    return found


def _clearest(ordered: np.ndarray, places: int) -> int:
    r"""Return the place of the clearest gap in rising scores, 0 if none is clear.

    The gap behind the i-th row, times i, has one exponential law for every i where scores fall off exponentially, as those
    of ordinary rows nearly do. Each product is compared with the mean of the next ones by an F test; p counts once a place.
    The gap has to be wide beside this mean, too.
    """
    last = min(places + _BEHIND, len(ordered) - 1)
    places = min(places, last - 1)
    if places < 1:
        return 0
    gaps = np.diff(ordered[: last + 1])
    steps = gaps * np.arange(1, last + 1)
    tried = np.arange(1, places + 1)
    rest = np.cumsum(steps[::-1])[::-1][1 : places + 1] / (last - tried)
    ratio = np.full(places, np.inf)
    np.divide(steps[:places], rest, out=ratio, where=rest > 0.0)
    wide = (gaps[:places] > 0.0) & (gaps[:places] >= _WIDE * rest)
    p = np.where(wide, places * f_law.sf(ratio, 2, 2 * (last - tried)), 1.0)
    return int(p.argmin()) + 1 if p.min() < _CLEAR else 0
