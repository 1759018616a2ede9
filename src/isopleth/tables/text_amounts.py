"""Columns of text that hold numbers with units, signs and limits of detection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.core.errors import Hint, Message, quoted
from isopleth.core.rows import ALL_INTEGERS
from isopleth.tables.amounts import Amount, amount_of, is_below_detection, unit_factor
from isopleth.tables.numerals import Numerals, hold_lists
from isopleth.tables.plain_numbers import plain_numbers, without_codes
from isopleth.tables.text_column import NEARLY_ALL, TextColumn, Texts, TypedCells
from isopleth.tables.text_times import as_days
from isopleth.tables.unread import CensoredCells

FEW_WORDS = 20  # distinct cells up to which words that repeat among numbers, as in 0, 1, 2 and 3+, are words like them
_RARE = 0.95  # least share of numbers beside which such words are rare, and said
_FEWEST_NUMBERS = 5  # distinct numbers beside limits such as <0.5; with fewer of them these are classes
# Quantiles between which a number is as usual as the others of its column, and units that say another number.
_USUAL, _SCALES = (0.05, 0.95), {"%", "\u2030"}
_CODE = re.compile(r"[-+]?0[0-9]")


def read_amounts(column: TextColumn) -> TypedCells | None:
    """Return numbers where nearly all cells are numbers, with units and limits; None otherwise."""
    texts, decimal = column.texts, column.numerals.decimal
    if not column.is_likely(lambda word: amount_of(word, decimal) is not None) or _are_codes(column):
        return None
    amounts = [amount_of(word, decimal) for word in texts.words]
    if decimal == "." and any("," in word for word in texts.words) and hold_lists(texts.words):
        if not column.asked:
            return None
        amounts = [None if "," in word else amount for word, amount in zip(texts.words, amounts, strict=True)]
    _set_below_detection(amounts, column)
    unit = _unit(amounts, texts.counts)
    amounts, converted = _in_one_unit(amounts, unit)
    read = np.array([amount is not None and _is_of(amount, unit) for amount in amounts], dtype=bool)
    limits = np.array([amount is not None and bool(amount.side) for amount in amounts], dtype=bool) & read
    strange, share = column.known(read)
    if not column.asked:
        few = len(texts.words) <= FEW_WORDS and (texts.counts[strange] > 1).any()
        classes = limits.any() and (read & ~limits).sum() < _FEWEST_NUMBERS
        if share < NEARLY_ALL or classes or (read & ~limits).sum() < 2:
            return None
        if few:
            return _as_words(column, strange, share)
    stray = _without_the_unit(amounts, read & ~limits, unit)
    read |= stray
    values, notes = _values(column, amounts, read & ~limits, unit)
    notes += _notes_of_units(column, amounts, converted, stray, unit)
    values = without_codes(values, column.missing)
    found = as_days(column.name, values, "numeric" if column.asked or unit != ("", "") else None)
    kept = column.result(found.values, read, "numbers", [*notes, *found.notes])
    return replace(kept, censored=_censored(texts, amounts, limits)) if limits.any() else kept


def _as_words(column: TextColumn, strange: np.ndarray, share: float) -> TypedCells | None:
    """Return words with a sentence about those that are rare among a few numbers; None where they are not."""
    if share < _RARE:
        return None
    word = int(np.flatnonzero(strange)[0])
    row = column.texts.first_row(word)
    text = "{column} holds {value} in {row}, and nearly all other cells are numbers: the column is taken as categories"
    hint = Hint("{numeric} takes it as numbers", numeric=[column.name])
    note = Message(text, column=column.name, row=row, value=column.texts.words[word], hint=hint)
    return TypedCells(column.texts.cells, notes=(note,), texts=column.texts)


def _are_codes(column: TextColumn) -> bool:
    """Tell whether a number begins with 0 and another digit, as postcodes do."""
    return not column.asked and any(_CODE.match(word) and word.strip("+-").isdigit() for word in column.texts.words)


def _set_below_detection(amounts: list[Amount | None], column: TextColumn) -> None:
    """Give words such as BDL the limit that the user says, or that the other cells of the column say, if it is one."""
    below = {amount.value for amount in amounts if amount is not None and amount.side == "below"}
    if column.detection_limit is not None:
        below = {column.detection_limit}
    if len(below) == 1:
        limit = Amount(below.pop(), side="below")
        for i, word in enumerate(column.texts.words):
            if amounts[i] is None and is_below_detection(word):
                amounts[i] = limit


def _unit(amounts: Sequence[Amount | None], counts: np.ndarray) -> tuple[str, str]:
    """Return what stands before and behind most numbers of a column; of equally many the last by the alphabet.

    The order of the rows decides nothing, and a unit comes before none.
    """
    found: Counter[tuple[str, str]] = Counter()
    for amount, count in zip(amounts, counts.tolist(), strict=True):
        if amount is not None and not amount.side:
            found[amount.unit] += count
    return max(found, key=lambda unit: (found[unit], unit), default=("", ""))


def _is_of(amount: Amount, unit: tuple[str, str]) -> bool:
    """Tell whether a number has the unit of its column; limits and 0 may have none."""
    return amount.unit == unit or (amount.unit == ("", "") and (bool(amount.side) or amount.value == 0.0))


def _in_one_unit(amounts: Sequence[Amount | None], unit: tuple[str, str]) -> tuple[list[Amount | None], np.ndarray]:
    """Return amounts in the unit of their column where theirs differs by a prefix, and a mask of these."""
    out, converted = list(amounts), np.zeros(len(amounts), dtype=bool)
    for i, amount in enumerate(amounts):
        if amount is None or not all((amount.after, unit[1])) or amount.unit == unit or amount.before != unit[0]:
            continue
        factor = unit_factor(amount.after, unit[1])
        if factor is not None:
            out[i], converted[i] = (
                replace(amount, value=float(f"{amount.value * factor:.15g}"), after=unit[1]),
                factor != 1.0,
            )
    return out, converted


def _without_the_unit(amounts: Sequence[Amount | None], read: np.ndarray, unit: tuple[str, str]) -> np.ndarray:
    """Return a mask of the words whose number is read though it has not the unit of its column.

    These are numbers without a unit, or with the only unit in a column of plain numbers. They have to be in the middle of the
    others, as they would not be in another unit, or in their range where most of them are in the middle.
    """
    known = np.array([amount.value for amount, kept in zip(amounts, read, strict=True) if kept and amount is not None])
    units = [None if amount is None or amount.side else amount.unit for amount in amounts]
    stray = np.array([each not in (None, unit) for each in units], dtype=bool) & ~read
    others = {units[i] for i in np.flatnonzero(stray).tolist()}
    if unit != ("", ""):
        stray &= np.array([each == ("", "") for each in units], dtype=bool)
    elif len(others) != 1 or _SCALES & set(*others):
        return np.zeros(len(read), dtype=bool)
    if _SCALES & set(unit) or len(known) < _FEWEST_NUMBERS or not stray.any():
        return np.zeros(len(read), dtype=bool)
    values = np.array([np.nan if amount is None else amount.value for amount in amounts])
    low, high = np.quantile(known, _USUAL)
    usual = (values >= low) & (values <= high)
    if 2 * (usual & stray).sum() > stray.sum():
        usual = (values >= known.min()) & (values <= known.max())
    return np.asarray(stray & usual)


def _notes_of_units(
    column: TextColumn,
    amounts: Sequence[Amount | None],
    converted: np.ndarray,
    stray: np.ndarray,
    unit: tuple[str, str],
) -> list[Message]:
    """Return sentences about numbers in a column with a unit that have another one, or none."""
    said = " ".join(filter(None, unit))
    notes = []
    for mask, text in (
        (converted, f"is converted to {{shown:.15g}} {said}"),
        (
            stray if said else stray & False,
            f"is read as the number {{shown:.15g}}, on the assumption that it is in {said}, too",
        ),
    ):
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            amount, more = amounts[first], int(column.texts.counts[mask].sum()) - 1
            others = f", and so {'are' if more > 1 else 'is'} {more:,} more" if more else ""
            how = text.format(shown=float("nan") if amount is None else amount.value)
            row, word = column.texts.first_row(first), column.texts.words[first]
            notes.append(Message(f"{{column}}: {{value}} {how}{others}.", column=column.name, row=row, value=word))
    return notes


def _values(
    column: TextColumn, amounts: Sequence[Amount | None], read: np.ndarray, unit: tuple[str, str]
) -> tuple[Any, list[Message]]:
    """Return the numbers of the words as an Arrow array, and a sentence about the first one that is not written plainly."""
    texts = column.texts
    words = pa.array([word if kept else None for word, kept in zip(texts.words, read, strict=True)], pa.string())
    with suppress(pa.ArrowInvalid):
        plain = plain_numbers(column.name, words.drop_null(), column.numerals)
        if plain is not None:
            place = np.cumsum(read) - 1
            return plain.take(pa.array(place, mask=~read)), []
    numbers = np.array(
        [amount.value if kept and amount is not None else np.nan for amount, kept in zip(amounts, read, strict=True)]
    )
    values = pa.array(numbers, from_pandas=True)
    if np.all(np.mod(numbers[read], 1.0) == 0.0) and np.abs(numbers[read]).max(initial=0.0) < ALL_INTEGERS:
        values = values.cast(pa.int64())
    odd = next((i for i in np.flatnonzero(read).tolist() if _is_decorated(texts.words[i], column.numerals)), None)
    if odd is None:
        return values, []
    shown, amount = values[odd].as_py(), amounts[odd]
    stray = [] if amount is None or any(unit) else [each for each in amount.unit if each]
    text = f"{{column}}: {{value}} is read as the number {shown!r}" + (
        f", without {quoted([u for u in unit if u])}."
        if any(unit)
        else f", on the assumption that the numbers without a unit are in {quoted(stray)}, too."
        if stray
        else "."
    )
    return values, [Message(text, column=column.name, row=texts.first_row(odd), value=texts.words[odd])]


def _is_decorated(word: str, numerals: Numerals) -> bool:
    return re.match(numerals.pattern, word) is None


def _censored(texts: Texts, amounts: Sequence[Amount | None], limits: np.ndarray) -> CensoredCells:
    """Return the cells that say a limit, with their intervals."""
    rows = texts.rows_with(limits)
    cells = [amounts[i] for i in texts.codes[rows].tolist()]
    below = np.array([amount is not None and amount.side == "below" for amount in cells], dtype=bool)
    values = np.array([amount.value for amount in cells if amount is not None])
    words = tuple(texts.words[i] for i in texts.codes[rows])
    return CensoredCells(rows, words, np.where(below, -np.inf, values), np.where(below, values, np.inf))
