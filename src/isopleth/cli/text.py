"""Text that commands print: aligned tables, counts, and short lists of names."""

from __future__ import annotations

import os
import shutil
import sys
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
        Characters of a line; the last cell of a longer row is folded. By default the width of the terminal, and
        no limit where the output is none.

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
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    lines = []
    for row in cells:
        first, *more = _folded(row[-1], None if width is None else max(width - indent, _NARROWEST))
        lines.append("  ".join([*(cell.rjust(size) for cell, size in zip(row[:-1], widths, strict=False)), first]))
        lines += [" " * indent + line for line in more]
    return "\n".join(lines)


def _terminal_width() -> int | None:
    """Return the characters of a line of the terminal; None where the output is a file or a pipe."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
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
            lines += [piece[i : i + width] for i in range(0, len(piece), width)]
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
