"""Numbers as the commands print them: no digits that say nothing, and none too few to tell two values apart."""

from __future__ import annotations

import numpy as np

# Smaller p-values are not printed: no model of a tail is right that far out.
LEAST_P = 1e-6

# p-values below this part of one row of the table are not printed; a fitted tail reaches a little beyond the rows.
_PART_OF_A_ROW = 0.1

# Most decimals of a column whose numbers are printed with all of them, as money is.
_DECIMALS = 4

# Least and most significant digits of other numbers; 17 tell all numbers of float64 apart.
_DIGITS = range(4, 18)

# From here on, whole numbers are printed with an exponent.
_WHOLE = 1e15


class ColumnNumbers:
    """Numbers of one column as text.

    Columns of whole numbers, and of numbers with few decimals, are printed with all of these. Of other columns a number has
    as many significant digits as tell it apart from the next smaller and the next larger one, and four at least.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The column.

    Examples
    --------
    >>> ColumnNumbers(np.array([99999.0, 100000.0])).text(100000.0)
    '100000'
    >>> ColumnNumbers(np.array([23.1, 4.25])).text(23.1)
    '23.10'
    >>> ColumnNumbers(np.array([1.00000123, 1.00000234, 7.77777777])).text(1.00000123)
    '1.000001'
    """

    def __init__(self, values: np.ndarray) -> None:
        self._known = np.unique(values[np.isfinite(values)])
        self._decimals = next((d for d in range(_DECIMALS + 1) if _has_decimals(self._known, d)), None)

    def text(self, value: float) -> str:
        """Return a number of the column, or one to compare with it, as text."""
        if self._decimals is not None and _has_decimals(np.array([value]), self._decimals):
            return f"{value:.{self._decimals}f}"
        place = int(np.searchsorted(self._known, value))
        others = [v for v in self._known[max(0, place - 1) : place + 2].tolist() if v != value]
        for digits in _DIGITS:
            text = significant(value, digits)
            if all(significant(other, digits) != text for other in others):
                break
        return text

    def statistic(self, value: float) -> str:
        """Return a median or a spread of the column as text."""
        if self._decimals is not None and _has_decimals(np.array([value]), self._decimals):
            return f"{value:.{self._decimals}f}"
        return significant(value, _DIGITS[0])


def significant(value: float, digits: int) -> str:
    """Return a number with so many significant digits, and with all digits before the point.

    Examples
    --------
    >>> significant(123456.7, 4), significant(0.00123456, 4), significant(1.5, 4), significant(1e-9, 4)
    ('123457', '0.001235', '1.5', '1e-09')
    """
    short = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in short and abs(value) < _WHOLE else short


def _has_decimals(values: np.ndarray, decimals: int) -> bool:
    if not np.isfinite(values).all() or (np.abs(values) >= _WHOLE).any():
        return False
    return bool((np.round(values, decimals) == values).all())


def p_value(p: float, rows: int | None = None) -> str:
    """Return a p-value as text, not smaller than the data can show.

    Parameters
    ----------
    p : float
        The p-value.
    rows : int, optional
        Number of rows that it is estimated from, by a fitted tail. Less than a tenth of one row is not claimed.

    Examples
    --------
    >>> p_value(0.01234), p_value(1e-9), p_value(1e-9, rows=100)
    ('0.0123', '< 1e-6', '< 0.001')
    """
    least = LEAST_P if rows is None else max(LEAST_P, _PART_OF_A_ROW / rows)
    if p >= least:
        return f"{p:.3g}"
    return "< 1e-6" if least == LEAST_P else f"< {least:.1g}"
