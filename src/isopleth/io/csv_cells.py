"""What the cells of a text file turn out to be, when all rows have been seen: words, decimal commas, rounded integers."""

from __future__ import annotations

import warnings
from pathlib import Path

from isopleth.errors import DataWarning, InputError
from isopleth.io.selection import listed, refuse_text
from isopleth.io.text_column import Column, cut, has_decimal_comma


def look_at(path: Path, columns: list[Column], *, chosen: bool) -> None:
    """Refuse words and warn of rounding.

    Raises
    ------
    InputError
        If a column has cells that are no numbers.
    """
    _refuse_words(path, columns, chosen=chosen)
    _warn_of_rounding(path, columns)


def _refuse_words(path: Path, columns: list[Column], *, chosen: bool) -> None:
    """Mostly words is a column that was not meant; mostly numbers is a cell that went wrong."""
    text = [column for column in columns if column.words and column.words >= column.kinds["number"]]
    numeric = [column.name for column in columns if column not in text]
    refuse_text(path, [column.name for column in text], numeric, chosen=chosen, hint=_hint_at_commas(text))
    for column in columns:
        if column.words:
            line, cell = column.first_word
            hint = " (decimals are written with a point)" if has_decimal_comma(cell) else ""
            others = f" and {column.words - 1} more" if column.words > 1 else ""
            raise InputError(
                f"{path}, line {line}: {cut(cell)}{others} in the numeric column {column.name!r} "
                f"{'are not numbers' if others else 'is not a number'}{hint}; correct it, or choose other columns with "
                "--columns."
            )


def _hint_at_commas(text: list[Column]) -> str:
    found = [column.first_word for column in text if has_decimal_comma(column.first_word[1])]
    return f" (line {found[0][0]} has {cut(found[0][1])}: decimals are written with a point)" if found else ""


def _warn_of_rounding(path: Path, columns: list[Column]) -> None:
    rounded = [column.name for column in columns if column.rounded]
    if rounded:
        warnings.warn(
            f"{path}: integers beyond 2**53 in {listed(rounded)} are rounded, so that different ones may become equal; "
            "subtract a constant from them first, or use other columns with --columns.",
            DataWarning,
            stacklevel=6,
        )
