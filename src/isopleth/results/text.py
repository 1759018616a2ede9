"""Words, numbers and tables as text."""

from __future__ import annotations

import math
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.core.errors import printable

if TYPE_CHECKING:
    from isopleth.results.result import ShownTable

# The last column of a table is not folded to less.
_NARROWEST = 20


def aligned(cells: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return rows of cells, the first the header, as an aligned table.

    If a line is longer than `width`, by default that of the terminal, the last cell is folded. If that leaves it less than 20
    characters, columns before it are left out and named below.
    """
    if width is None:
        width = _terminal_width()
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    if width is not None and len(widths) > 2 and _needed(widths) > width:
        return _without_columns(cells, widths, width)
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    lines = []
    for row in cells:
        first, *more = _folded(row[-1], None if width is None else max(width - indent, _NARROWEST))
        before = [" " * (size - width_of(cell)) + cell for cell, size in zip(row[:-1], widths, strict=False)]
        lines.append("  ".join([*before, first]))
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
    """Return text with lines broken between words at `width`, by default that of the terminal, unlimited without one."""
    width = _terminal_width() if width is None else width
    if width is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _broken(line, width))


def width_of(text: str) -> int:
    """Return the columns of a terminal that `text` takes: two for wide letters, none for marks that combine with a letter."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.category(letter) in ("Mn", "Me", "Cf") for letter in text)


def _broken(line: str, width: int) -> list[str]:
    """Return a line as lines of at most `width` columns, broken between words, and within a word that is longer than a line."""
    if width_of(line) <= width:
        return [line]
    lines = [""]
    for word in line.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if width_of(joined) <= width:
            lines[-1] = joined
            continue
        lines.append(word)
        while width_of(lines[-1]) > width and not lines[-1].isascii():  # scripts without blanks between words
            fits = max(k for k in range(1, len(lines[-1])) if width_of(lines[-1][:k]) <= width)
            lines[-1:] = [lines[-1][:fits], lines[-1][fits:]]
    return [one for one in lines if one] or [""]


def _terminal_width() -> int | None:
    """Return the characters of a line of the terminal; None where the output is a file or a pipe."""
    # Not by the variable COLUMNS alone: an interactive Python sets it for the programs that it starts, whose output it reads.
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _folded(text: str, width: int | None) -> list[str]:
    """Return a cell as lines of at most `width` characters, broken at double blanks where there are any."""
    if width is None or width_of(text) <= width:
        return [text]
    lines = [""]
    for piece in text.split("  "):
        joined = f"{lines[-1]}  {piece}" if lines[-1] else piece
        if width_of(joined) <= width:
            lines[-1] = joined
        else:
            lines += _broken(piece, width)
    return [line for line in lines if line] or [""]


def table_text(table: ShownTable, most: int | None) -> str:
    """Return the first rows of a table for a terminal; of columns of computed numbers, four digits."""
    names = [name for name in table.brief or list(table.columns)]
    if not len(table) or most == 0:
        return ""
    columns = [_cells_text(table.columns[name][:most], name in table.computed) for name in names]
    return aligned([names, *zip(*columns, strict=True)])


def _cells_text(column: Any, computed: bool) -> list[str]:
    """Return the cells of a column: computed numbers with four digits, but whole ones as they are, since they are places."""
    cells = [python_value(cell) for cell in column]
    if not computed:
        return [printable(cell_text(cell)) for cell in cells]
    parts = [isinstance(cell, float) and cell == cell and not cell.is_integer() for cell in cells]
    return [f"{cell:.4g}" if part else printable(cell_text(cell)) for cell, part in zip(cells, parts, strict=True)]


def python_value(cell: Any) -> Any:
    """Return a scalar of NumPy as an object of Python: times with digits below a microsecond as text, which would be integers."""
    if not hasattr(cell, "item"):
        return cell
    value = cell.item()
    return str(cell).replace("T", " ") if type(cell).__name__ == "datetime64" and isinstance(value, int) else value


def cell_text(cell: Any) -> str:
    """Return a cell of a table as short text: numbers with six digits, nothing for what is missing."""
    cell = python_value(cell)
    if cell is None or cell == "":
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float):
        if math.isnan(cell):
            return ""
        return f"{cell:.0f}" if cell.is_integer() and abs(cell) < 1e15 else f"{cell:.6g}"
    return str(cell).removesuffix(" 00:00:00") if isinstance(cell, datetime) else str(cell)


def place_text(where: Mapping[str, Any], row: int) -> str:
    """Return where a row stands, as in "line 7": `where` are the columns that say so."""
    return ", ".join(f"{name} {column[row]}" for name, column in where.items())


def in_words(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list in a sentence: "a, b and c", or "a, b and 7 more"."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 row" and "1,234 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ordinal(number: int) -> str:
    """Return a number as an ordinal, as in "1st", "62nd" and "1,111th"."""
    teens = 10 <= number % 100 < 20
    return f"{number:,}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


# Smaller p-values are not printed: no model of a tail is right that far out.
LEAST_P = 1e-6

# p-values below this part of one row of the table are not printed; a fitted tail reaches a little beyond the rows.
_PART_OF_A_ROW = 0.1


def pvalue_text(p: float, resolution: float = LEAST_P) -> str:
    """Return a p-value with its sign for a sentence, `<=` where it is the smallest that the data can show."""
    return f"= {p:.3g}" if p > resolution else f"<= {resolution:.3g}"


def resolution_of(rows: int) -> float:
    """Return the smallest p-value that so many rows show by a fitted tail: less than a tenth of one row is not claimed."""
    return max(LEAST_P, _PART_OF_A_ROW / rows)


# Words of a column that are shown with their shares, and the least share that is shown.
_MOST_WORDS, _LEAST_SHOWN = 3, 0.0005
# Times farther apart are shown without the clock.
_DAYS = np.timedelta64(3, "D")


def shares_text(shares: Mapping[Any, float]) -> str:
    """Return the likeliest words with their probabilities; those that round to nothing are left out."""
    first = [f"{word} {share:.1%}" for word, share in shares.items() if share >= _LEAST_SHOWN]
    rest = sum(list(shares.values())[_MOST_WORDS:])
    return ", ".join(first[:_MOST_WORDS] + [f"others {rest:.1%}"] * (len(first) > _MOST_WORDS)).replace("%", " %")


def times_text(times: Sequence[Any]) -> list[str]:
    """Return times as text, without the clock if they are more than a few days apart."""
    stamps = [np.datetime64(time.replace(tzinfo=None) if hasattr(time, "tzinfo") else time, "s") for time in times]
    unit = "D" if max(stamps) - min(stamps) > _DAYS else "s"
    return [str(stamp.astype(f"datetime64[{unit}]")).replace("T", " ") for stamp in stamps]
