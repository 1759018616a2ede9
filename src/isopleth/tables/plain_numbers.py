"""Numbers of columns of text that are written plainly: whole numbers stay exact, and none is rounded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import Hint, InputError
from isopleth.core.rows import ALL_INTEGERS
from isopleth.tables.numerals import Numerals, hold_lists
from isopleth.tables.text_column import known_words

FIRST_CELLS = 100  # cells that are looked at before all of them are
_MOST_DIGITS = 308  # numbers of more digits are infinite in float64, or nearly


def without_codes(cells: Any, missing: Iterable[str]) -> Any:
    """Return numbers with null in the place of those that mean a missing cell, however they are written: -999 as -999.0, too."""
    codes = []
    for word in missing:
        with suppress(ValueError):
            codes.append(float(word.replace(",", ".")))
    if not (codes := [code for code in codes if np.isfinite(code)]):
        return cells
    gone = compute.is_in(cells.cast(pa.float64(), safe=False), value_set=pa.array(codes, pa.float64()))
    return compute.if_else(gone, pa.scalar(None, cells.type), cells) if compute.any(gone).as_py() else cells


def numbers_beside_gaps(name: str, cells: Any, missing: Iterable[str], numerals: Numerals) -> Any:
    """Return whole numbers or floats where all cells but those that mean missing ones are numbers; None otherwise."""
    coded = any(re.search(r"\d", word) for word in missing)  # as -99, which is no number then
    found = None if coded else plain_numbers(name, cells, numerals)
    if found is not None:
        return found
    if not _begins_with_numbers(known_words(cells.slice(0, FIRST_CELLS), missing), numerals):
        return None
    known = known_words(cells, missing)
    found = None if known.null_count == len(known) else plain_numbers(name, known, numerals)
    return None if found is None else without_codes(found, missing)


def _begins_with_numbers(cells: Any, numerals: Numerals) -> bool:
    """Tell whether the first cells are numbers: a cast that fails takes long, since Arrow words an error for each cell."""
    try:
        numerals.plain_array(cells.slice(0, FIRST_CELLS)).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def plain_numbers(name: str, cells: Any, numerals: Numerals) -> Any:
    """Return whole numbers or floats, or None where some cell is no number."""
    if not _begins_with_numbers(cells, numerals):
        return None
    try:
        plain = numerals.plain_array(cells)
        found = plain.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    if numerals.grouped and numerals.decimal == "." and _are_lists(cells):
        return None
    if not compute.all(compute.equal(compute.floor(found), found), min_count=0).as_py():
        _refuse_rounded(name, plain, found)
        return found
    # Whole numbers stay exact, even those of more than 19 digits, so that they can be refused or taken as words.
    for whole in (pa.int64(), pa.uint64(), pa.decimal128(38, 0)):
        with suppress(pa.ArrowInvalid):
            plain.slice(0, FIRST_CELLS).cast(whole)
            if pa.types.is_decimal(whole) and not _all_digits(plain):
                return found
            return plain.cast(whole)
    return found


def _are_lists(cells: Any) -> bool:
    """Tell whether numbers with commas are lists of the others."""
    if not compute.any(compute.match_substring(cells, ",")).as_py():
        return False
    return hold_lists([text.strip() for text in compute.unique(cells).to_pylist() if text is not None])


def _refuse_rounded(name: str, cells: Any, numbers: Any) -> None:
    """Refuse a whole number beyond 2**53 among other numbers, which float64 would round."""
    values = np.asarray(numbers)
    for row in np.flatnonzero(np.abs(values) >= ALL_INTEGERS).tolist():
        word = cells[row].as_py().strip()
        digits = word.lstrip("+-")
        if digits.isdigit() and (len(digits) > _MOST_DIGITS or int(word) != int(values[row])):
            hint = Hint("subtract a constant first, or leave the column out with {exclude}", exclude=[name])
            raise rounded(name, row, word if len(digits) > _MOST_DIGITS else int(word), hint)


def rounded(
    name: Any, row: int, value: Any, hint: str | Hint = "subtract a constant first, or leave the column out"
) -> InputError:
    """Return the refusal of a whole number that float64 would round."""
    text = "{column} holds {value} in {row}, a whole number beyond 2**53 that float64 would round"
    return InputError(text, column=name, row=row, value=value, hint=hint)


def _all_digits(cells: Any) -> bool:
    return bool(compute.all(compute.match_substring_regex(cells, "^[-+]?[0-9]+$")).as_py())
