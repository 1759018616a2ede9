"""Types of text columns: numbers, truth values, times or words, and words that look like numbers or times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.core.errors import Message
from isopleth.tables.amounts import BLANKS, CURRENCY
from isopleth.tables.dates import MONTH_NAME
from isopleth.tables.numerals import Numerals
from isopleth.tables.plain_numbers import numbers_beside_gaps
from isopleth.tables.text_amounts import read_amounts
from isopleth.tables.text_column import LOOKED_AT, NEARLY_ALL, TextColumn, Texts, TypedCells
from isopleth.tables.text_times import as_days, instants_of, read_times


def typed(
    name: str,
    cells: Any,
    missing: Iterable[str],
    numerals: Numerals,
    place: Callable[[int], str],
    day_first: dict[str, bool] | None = None,
    numbers: bool = True,
    *,
    wanted: str | None = None,
    placeholders: frozenset[str] = frozenset(),
    detection_limit: float | None = None,
) -> TypedCells:
    """Return a column of text as Arrow numbers, booleans, times or words.

    A column of which nearly all cells are of one kind is of this kind; so is one that is `wanted` as "numeric", "time" or
    "truth". One that is wanted as "categorical" holds numbers if all cells are numbers, and words otherwise. With `numbers`
    false, text that looks like numbers is words. `place` names a row in messages; `day_first` has the order of days and months
    by column, and gets what the cells show; `placeholders` count as missing beside numbers and times. Words such as ND say that
    the number is below the `detection_limit`.
    """
    numbers = numbers and wanted in (None, "numeric", "categorical")
    found = numbers_beside_gaps(name, cells, missing, numerals) if numbers else None
    if found is not None:
        return as_days(name, found, wanted)
    if wanted == "time" and (counted := numbers_beside_gaps(name, cells, missing, numerals)) is not None:
        instants = instants_of(counted)
        if instants is not None:
            return TypedCells(instants)
    texts = Texts.of(cells, missing, placeholders)
    orders = {} if day_first is None else day_first
    kinds = (("time", read_times), ("numeric", read_amounts), ("truth", _truth)) if texts.words else ()
    for kind, read in kinds:
        if wanted in (None, kind) and (numbers or kind != "numeric"):
            about = (name, texts, numerals, place, orders, missing, wanted is not None, detection_limit)
            column = read(TextColumn(*about))
            if column is not None:
                return column
    return TypedCells(texts.cells, notes=() if wanted == "categorical" else _alike(name, texts), texts=texts)


def _truth(column: TextColumn) -> TypedCells | None:
    """Return truth values where nearly all cells are true or false; words that repeat beside them are words like them."""
    said = [{"true": True, "false": False}.get(word.lower()) for word in column.texts.words]
    read = np.array([value is not None for value in said], dtype=bool)
    if not column.asked and not read.any():
        return None
    strange, share = column.known(read)
    if not column.asked and (share < NEARLY_ALL or (column.texts.counts[strange] > 1).any()):
        return None
    return column.result(pa.array(said, pa.bool_()), read, "truth values")


# Single letters beside digits are names, as in 3A, and four numbers between points are an address.
_AMOUNT_LIKE = re.compile(
    rf"(?![-+]?0\d)(?!\d+\.\d+\.\d+\.\d+$)[-+(]?{CURRENCY}? ?"
    rf"(?:\d{{1,3}}(?:[.,{BLANKS}]\d{{2,3}})+(?:[.,]\d+)?|\d*[.,]?\d+|\d+(?:,\d+)+)"
    r"\)?(?: ?[%$€£¥₹°]| [^\W\d_]{1,4}|[^\W\d_]{2,4})?-?"
)
_DAY_LIKE = re.compile(
    r"\d{1,4}([/.-])\d{1,2}\1\d{1,4}(?:[ T,]+\d.*)?"
    rf"|\d{{1,2}}[ -]?{MONTH_NAME}\.?[ -]?(?:\d{{2}}|\d{{4}})?|{MONTH_NAME}[ -]\d{{1,2}}(?:,? \d{{4}})?",
    re.IGNORECASE,
)
# 25:10 is no time of a day.
_LENGTH_LIKE = re.compile(r"\d{1,4}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?")
_PATTERNS = {"dates or times": _DAY_LIKE, "lengths of time": _LENGTH_LIKE, "numbers": _AMOUNT_LIKE}


def looks_like(words: Sequence[str]) -> str | None:
    """Return what words look like that people read as numbers or times, though they are read as words; None for others."""
    some = words[:: max(1, len(words) // LOOKED_AT)]
    for what, pattern in _PATTERNS.items():
        fitting = sum(pattern.fullmatch(word) is not None for word in some)
        if len(some) > 1 and fitting >= NEARLY_ALL * len(some):
            return what
    return None


def _alike(name: str, texts: Texts) -> tuple[Message, ...]:
    """Return a sentence about words that look like numbers or times."""
    known = [word for word in texts.words if word not in texts.stand_ins]
    what = looks_like(known)
    odd = next((word for word in known if not word.isdigit()), None)
    if what is None or odd is None:
        return ()
    how = "as times, write them as 2024-01-31 or 2024-01-31 13:45"
    if what == "lengths of time":
        how = "as numbers, write them in one unit, such as minutes"
    elif what == "numbers":
        what = (
            "numbers with a sign or unit"
            if any(not re.fullmatch(r"[\d.,]+", word) for word in known)
            else "lists of numbers"
        )
        how = "as numbers, write one number in a cell, and all in the same way"
    text = f"{{column}} is taken as words that look like {what}, such as {{value}}"
    return (Message(text, column=name, value=odd, hint=f"to use them {how}"),)
