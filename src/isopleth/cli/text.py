"""Text that commands print: aligned tables, counts, short lists of names, and numbers with the digits that matter."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

import numpy as np

from isopleth.errors import printable

# The last column of a table is not folded to less.
_NARROWEST = 20

# Names of columns that a header lists.
_NAMES = 6


def aligned(cells: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return rows of cells as an aligned table.

    Parameters
    ----------
    cells : sequence of sequence of str
        The rows, the header first; all have the same number of cells.
    width : int, optional
        Characters of a line; the last cell of a longer row is folded. If the other columns leave less than 20 characters for it,
        columns before it are left out, the last one first, and a line below the table names them. By default the width of the
        terminal, and no limit where the output is none.

    Returns
    -------
    str
        One line a row, columns two spaces apart: numbers to the right, the last column to the left.

    Examples
    --------
    >>> print(aligned([["row", "name"], ["10", "a"], ["2", "long"]]))
    row  name
     10  a
      2  long
    """
    if width is None:
        width = _terminal_width()
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if width is not None and len(widths) > 2 and _needed(widths) > width:
        return _without_columns(cells, widths, width)
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    lines = []
    for row in cells:
        first, *more = _folded(row[-1], None if width is None else max(width - indent, _NARROWEST))
        lines.append("  ".join([*(cell.rjust(size) for cell, size in zip(row[:-1], widths, strict=False)), first]))
        lines += [" " * indent + line for line in more]
    return "\n".join(lines)


def _without_columns(cells: Sequence[Sequence[str]], widths: list[int], width: int) -> str:
    """Return a table without the columns before the last one for which a line has no room."""
    last = len(widths) - 1
    kept = last
    while kept > 1 and _needed([*widths[:kept], widths[last]]) > width:
        kept -= 1
    table = aligned([[*row[:kept], row[last]] for row in cells], max(width, _needed([*widths[:kept], widths[last]])))
    left_out = ", ".join(cells[0][kept:last])
    return f"{table}\n{wrapped(f'No room for: {left_out}. A wider terminal or --json shows them.', width)}"


def _needed(widths: list[int]) -> int:
    """Return the characters of a line whose last cell is folded as far as possible."""
    return sum(widths[:-1]) + 2 * (len(widths) - 1) + min(_NARROWEST, widths[-1])


def wrapped(text: str, width: int | None = None) -> str:
    """Return text whose lines are broken between words where they are longer than a line of the terminal.

    Parameters
    ----------
    text : str
        Lines; those that are short enough, such as rows of a table, stay as they are.
    width : int, optional
        Characters of a line; by default the width of the terminal, and no limit where the output is none.
    """
    width = _terminal_width() if width is None else width
    if width is None:
        return text
    lines = [
        [line] if len(line) <= width else textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    ]
    return "\n".join(piece for pieces in lines for piece in pieces)


def _terminal_width() -> int | None:
    """Return the characters of a line of the terminal; None where the output is a file or a pipe."""
    # Not by the variable COLUMNS alone: an interactive Python sets it for the programs that it starts, whose output it reads.
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _folded(text: str, width: int | None) -> list[str]:
    """Return a cell as lines of at most `width` characters, broken at double blanks where there are any."""
    if width is None or len(text) <= width:
        return [text]
    lines = [""]
    for piece in text.split("  "):
        joined = f"{lines[-1]}  {piece}" if lines[-1] else piece
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines += textwrap.wrap(piece, width, break_on_hyphens=False)
    return [line for line in lines if line] or [""]


def places(n_rows: int, lines: np.ndarray | None, *, row_numbers: bool, first: int = 1) -> dict[str, np.ndarray]:
    """Return the columns that say where rows stand in their file.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    lines : ndarray of shape (n_rows,), optional
        For text files, the line on which each row begins, counted from 1.
    row_numbers : bool
        Whether to number the rows of text files, too.
    first : int, default=1
        Number of the first of these rows. Rows of a file are counted from 1.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        ``line`` for text files, with ``row`` beside it if asked for; ``row`` for files without lines.

    Examples
    --------
    >>> places(2, np.array([2, 4]), row_numbers=True)
    {'line': array([2, 4]), 'row': array([1, 2])}
    """
    rows = {"row": np.arange(first, first + n_rows)}
    if lines is None:
        return rows
    return {"line": lines} | (rows if row_numbers else {})


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 row" and "1,234 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortened(names: Sequence[str]) -> str:
    """Return the first names of columns for a header, with ", ..." where there are more."""
    return ", ".join(map(printable, names[:_NAMES])) + ", ..." * (len(names) > _NAMES)


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


def pvalue_text(p: float, rows: int | None = None) -> str:
    """Return a p-value as text, not smaller than the data can show.

    Parameters
    ----------
    p : float
        The p-value.
    rows : int, optional
        Number of rows that it is estimated from, by a fitted tail. Less than a tenth of one row is not claimed.

    Examples
    --------
    >>> pvalue_text(0.01234), pvalue_text(1e-9), pvalue_text(1e-9, rows=100)
    ('0.0123', '< 1e-6', '< 0.001')
    """
    least = LEAST_P if rows is None else max(LEAST_P, _PART_OF_A_ROW / rows)
    if p >= least:
        return f"{p:.3g}"
    return "< 1e-6" if least == LEAST_P else f"< {least:.1g}"
