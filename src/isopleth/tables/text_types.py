"""Types of text columns: numbers, and how the table writes them, truth values, times or words; and times as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from datetime import time as clock
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import Hint, InputError, Message, quoted
from isopleth.core.rows import ALL_INTEGERS
from isopleth.tables.amounts import BLANKS, CURRENCY, Amount, amount_of, is_below_detection
from isopleth.tables.dates import (
    CLOCK,
    MONTH_NAME,
    SLASHES,
    Moment,
    calendar_day,
    calendar_form,
    calendar_share,
    datetime_of,
    is_season,
    moment_of,
    order_of_days,
)
from isopleth.tables.numerals import Numerals, hold_lists
from isopleth.tables.unread import CensoredCells, UnreadCells

_FIRST = 100
_LEAST_MONTH = 100_000  # smallest whole number that may be a month or a day, as 202401 or 20240131
_MOST_DIGITS = 308  # numbers of more digits are infinite in float64, or nearly
# Least share of the known cells that are of one kind in a column of this kind. The others could not be read.
NEARLY_ALL = 0.8
# Different texts that are looked at before all of them are, and the least share of a kind among them.
_LOOKED_AT, _LIKELY = 500, 0.5
FEW_WORDS = 20  # distinct cells up to which words that repeat among numbers, as in 0, 1, 2 and 3+, are words like them
_RARE = 0.95  # least share of numbers beside which such words are rare, and said
_FEWEST_NUMBERS = 5  # distinct numbers beside limits such as <0.5; with fewer of them these are classes
# Quantiles of the plain numbers between which one with a unit is as usual as they are, and units that say another number.
_USUAL, _SCALES = (0.05, 0.95), {"%", "\u2030"}
_CODE = re.compile(r"[-+]?0[0-9]")


@dataclass(frozen=True, eq=False)
class TypedCells:
    """Column of text as numbers, truth values, times or words, and what was not read so."""

    values: Any  # Arrow array, null where a cell is missing, could not be read, or says a limit
    unread: UnreadCells | None = None
    censored: CensoredCells | None = None
    notes: tuple[Message, ...] = ()  # what was recognised, with rows
    texts: Texts | None = None  # the different words of a column of words


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
    found = _numbers_beside_gaps(name, cells, missing, numerals) if numbers else None
    if found is not None:
        return _as_days(name, found, wanted)
    if wanted == "time" and (counted := _numbers_beside_gaps(name, cells, missing, numerals)) is not None:
        instants = instants_of(counted)
        if instants is not None:
            return TypedCells(instants)
    texts = Texts.of(cells, missing, placeholders)
    orders = {} if day_first is None else day_first
    kinds = (("time", _times), ("numeric", _amounts), ("truth", _truth)) if texts.words else ()
    for kind, read in kinds:
        if wanted in (None, kind) and (numbers or kind != "numeric"):
            about = (name, texts, numerals, place, orders, missing, wanted is not None, detection_limit)
            column = read(_Column(*about))
            if column is not None:
                return column
    return TypedCells(texts.cells, notes=() if wanted == "categorical" else _alike(name, texts), texts=texts)


@dataclass(frozen=True, eq=False)
class Texts:
    """Different texts of a column, without blanks around them, and which of them each row holds."""

    cells: Any  # Arrow strings: those of the rows
    words: tuple[str, ...]  # the different ones, in the order of their first rows
    codes: np.ndarray  # (n,): index of the text of each row, -1 for a missing cell
    stand_ins: frozenset[str]  # texts that may stand for a missing cell

    @classmethod
    def of(cls, cells: Any, missing: Iterable[str], stand_ins: frozenset[str] = frozenset()) -> Self:
        """Find the different texts of Arrow strings, of which the words `missing` mean a missing cell."""
        chunks = [cells] if isinstance(cells, pa.Array) else cells.chunks
        encoded = pa.chunked_array(chunks, pa.string()).dictionary_encode().combine_chunks()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        words = known_words(encoded.dictionary, missing)
        if words.equals(encoded.dictionary):
            return cls(cells, tuple(words.to_pylist()), codes, stand_ins)
        texts = cls.of(words, (), stand_ins)  # some are missing cells, or equal but for blanks
        found = replace(texts, codes=np.append(texts.codes, -1)[codes])
        return replace(found, cells=found.taken(pa.array(texts.words, pa.string())))

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of rows that hold each text."""
        return np.bincount(self.codes + 1, minlength=len(self.words) + 1)[1:]

    @cached_property
    def placeholders(self) -> np.ndarray:
        """Mask of the texts that may stand for a missing cell."""
        return np.array([word in self.stand_ins for word in self.words], dtype=bool)

    def rows_with(self, mask: np.ndarray) -> np.ndarray:
        """Return the rows that hold one of some words."""
        return np.flatnonzero(np.append(mask, False)[self.codes])

    def first_row(self, word: int) -> int:
        """Return the first row that holds a word."""
        return int(np.argmax(self.codes == word))

    def taken(self, values: Any) -> Any:
        """Return the values of the words, an Arrow array, as those of the rows."""
        return values.take(pa.array(self.codes, mask=self.codes < 0))


@dataclass(frozen=True, eq=False)
class _Column:
    """Knowledge of a column that the rules of its kind use."""

    name: str
    texts: Texts
    numerals: Numerals
    place: Callable[[int], str]
    day_first: dict[str, bool]
    missing: Iterable[str]
    asked: bool  # whether the kind of the column is said
    detection_limit: float | None = None  # what words such as ND say

    def is_likely(self, test: Callable[[str], bool]) -> bool:
        """Tell whether so many of some words pass a test that all of them are worth it."""
        words = self.texts.words
        some = words[:: max(1, len(words) // _LOOKED_AT)]  # from all parts of the column
        return self.asked or sum(map(test, some)) >= _LIKELY * len(some)

    def known(self, read: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the masks of words that could not be read, and the share of the known cells that could."""
        strange = ~read & ~self.texts.placeholders
        count, bad = self.texts.counts[read].sum(), self.texts.counts[strange].sum()
        return strange, float(count / max(count + bad, 1))

    def result(self, values: Any, read: np.ndarray, kind: str, notes: Sequence[Message] = ()) -> TypedCells:
        """Return the values of the rows, with the words that could not be read and those that count as missing."""
        strange, _ = self.known(read)
        rows = self.texts.rows_with(strange)
        unread = None
        if len(rows):
            unread = UnreadCells(rows, tuple(self.texts.words[i] for i in self.texts.codes[rows]), kind, self.asked)
        standing = self.texts.placeholders & ~read
        if standing.any():
            words = sorted(self.texts.words[i] for i in np.flatnonzero(standing))
            row = int(self.texts.rows_with(standing)[0])
            text = f"{{column}}: {quoted(words)} among {kind} counts as missing, first in {{row}}."
            notes = [*notes, Message(text, column=self.name, row=row, value=words)]
        return TypedCells(self.texts.taken(values), unread, notes=tuple(notes))


def known_words(cells: Any, missing: Iterable[str]) -> Any:
    """Return Arrow strings without the blanks around them, null where they mean a missing cell."""
    cells = compute.utf8_trim_whitespace(cells)
    gone = compute.is_in(cells, value_set=pa.array(sorted(missing), pa.string()))
    return compute.if_else(gone, pa.scalar(None, pa.string()), cells) if compute.any(gone).as_py() else cells


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


def _numbers_beside_gaps(name: str, cells: Any, missing: Iterable[str], numerals: Numerals) -> Any:
    """Return whole numbers or floats where all cells but those that mean missing ones are numbers; None otherwise."""
    coded = any(re.search(r"\d", word) for word in missing)  # as -99, which is no number then
    found = None if coded else _numbers(name, cells, numerals)
    if found is not None:
        return found
    if not _begins_with_numbers(known_words(cells.slice(0, _FIRST), missing), numerals):
        return None
    known = known_words(cells, missing)
    found = None if known.null_count == len(known) else _numbers(name, known, numerals)
    return None if found is None else without_codes(found, missing)


def _begins_with_numbers(cells: Any, numerals: Numerals) -> bool:
    """Tell whether the first cells are numbers: a cast that fails takes long, since Arrow words an error for each cell."""
    try:
        numerals.plain_array(cells.slice(0, _FIRST)).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _numbers(name: str, cells: Any, numerals: Numerals) -> Any:
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
            plain.slice(0, _FIRST).cast(whole)
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


# ---- numbers ------------------------------------------------------------------------------------------------------------


def _amounts(column: _Column) -> TypedCells | None:
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
    stray = _with_a_stray_unit(amounts, read & ~limits, unit)
    read |= stray
    values, notes = _values(column, amounts, read & ~limits, unit)
    values = without_codes(values, column.missing)
    found = _as_days(column.name, values, "numeric" if column.asked or unit != ("", "") else None)
    kept = column.result(found.values, read, "numbers", [*notes, *found.notes])
    return replace(kept, censored=_censored(texts, amounts, limits)) if limits.any() else kept


def _as_words(column: _Column, strange: np.ndarray, share: float) -> TypedCells | None:
    """Return words with a sentence about those that are rare among a few numbers; None where they are not."""
    if share < _RARE:
        return None
    word = int(np.flatnonzero(strange)[0])
    row = column.texts.first_row(word)
    text = "{column} holds {value} in {row}, and nearly all other cells are numbers: the column is taken as categories"
    hint = Hint("{numeric} takes it as numbers", numeric=[column.name])
    note = Message(text, column=column.name, row=row, value=column.texts.words[word], hint=hint)
    return TypedCells(column.texts.cells, notes=(note,), texts=column.texts)


def _are_codes(column: _Column) -> bool:
    """Tell whether a number begins with 0 and another digit, as postcodes do."""
    return not column.asked and any(_CODE.match(word) and word.strip("+-").isdigit() for word in column.texts.words)


def _set_below_detection(amounts: list[Amount | None], column: _Column) -> None:
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
    """Return what stands before and behind most numbers of a column."""
    found: Counter[tuple[str, str]] = Counter()
    for amount, count in zip(amounts, counts.tolist(), strict=True):
        if amount is not None and not amount.side:
            found[amount.unit] += count
    return found.most_common(1)[0][0] if found else ("", "")


def _is_of(amount: Amount, unit: tuple[str, str]) -> bool:
    """Tell whether a number has the unit of its column; limits and 0 may have none."""
    return amount.unit == unit or (amount.unit == ("", "") and (bool(amount.side) or amount.value == 0.0))


def _with_a_stray_unit(amounts: Sequence[Amount | None], read: np.ndarray, unit: tuple[str, str]) -> np.ndarray:
    """Return a mask of the words of a column of plain numbers whose number is read without its unit.

    No other unit is in the column, and the number is in the middle of the plain ones, as it would not be in another unit.
    """
    units = [None if amount is None or amount.side else amount.unit for amount in amounts]
    stray = np.array([each not in (None, unit) for each in units], dtype=bool) & ~read
    known = [amount.value for amount, plain in zip(amounts, read, strict=True) if plain and amount is not None]
    others = {units[i] for i in np.flatnonzero(stray).tolist()}
    if unit != ("", "") or len(others) != 1 or _SCALES & set(*others) or len(known) < _FEWEST_NUMBERS:
        return np.zeros(len(read), dtype=bool)
    low, high = np.quantile(known, _USUAL)
    inside = [amount is not None and low <= amount.value <= high for amount in amounts]
    return stray & np.array(inside, dtype=bool)


def _values(
    column: _Column, amounts: Sequence[Amount | None], read: np.ndarray, unit: tuple[str, str]
) -> tuple[Any, list[Message]]:
    """Return the numbers of the words as an Arrow array, and a sentence about the first one that is not written plainly."""
    texts = column.texts
    words = pa.array([word if kept else None for word, kept in zip(texts.words, read, strict=True)], pa.string())
    with suppress(pa.ArrowInvalid):
        plain = _numbers(column.name, words.drop_null(), column.numerals)
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


def _as_days(name: str, values: Any, wanted: str | None) -> TypedCells:
    """Return whole numbers that are days, such as 20240131, or months, such as 202401, as times; other numbers as they are."""
    return TypedCells(values) if wanted is not None else days_of(name, values) or TypedCells(values)


# Seconds since 1970 of the years 1980 and 2100: as milliseconds they are other numbers.
_FIRST_INSTANT, _LAST_INSTANT = 315_532_800, 4_102_444_800


def instants_of(values: Any) -> Any:
    """Return the times in UTC that an Arrow array counts in seconds or milliseconds since 1970; None if it does not.

    All must be in the years 1980 to 2099 by one of these units.
    """
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return None
    counts = np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    known = counts[~np.isnan(counts)]
    for unit in (1, 1000):
        if len(known) and known.min() >= _FIRST_INSTANT * unit and known.max() < _LAST_INSTANT * unit:
            micro = np.rint(np.where(np.isnan(counts), 0.0, counts) * (1e6 / unit)).astype(np.int64)
            return pa.array(micro, pa.timestamp("us", "UTC"), mask=np.isnan(counts))
    return None


def days_of(name: str, values: Any, *, asked: bool = False) -> TypedCells | None:
    """Return times, and what is said of them, where nearly all numbers of an Arrow array are days or months; None for others.

    If days are `asked` for, few numbers are enough, and seconds or milliseconds since 1970 are times, too.
    """
    if asked and (instants := instants_of(values)) is not None:
        return TypedCells(instants)
    if pa.types.is_floating(values.type):  # gaps make floats of the whole numbers of a frame
        with suppress(pa.ArrowInvalid):
            whole = compute.if_else(compute.is_nan(values), None, values).cast(pa.int64())
            return days_of(name, whole, asked=asked)
        return None
    known = values.drop_null()
    first = known.slice(0, _FIRST)
    if not pa.types.is_integer(values.type) or not len(first) or compute.max(first).as_py() < _LEAST_MONTH:
        return None
    if not calendar_share(first.to_pylist()):
        return None
    counts = compute.value_counts(known)
    numbers, weights = counts.field("values").to_pylist(), counts.field("counts").to_numpy(zero_copy_only=False)
    days = [calendar_day(number) for number in numbers]
    read = np.array([day is not None for day in days], dtype=bool)
    form = calendar_form([number for number, day in zip(numbers, days, strict=True) if day is not None])
    if (form is None and not asked) or weights[read].sum() < NEARLY_ALL * weights.sum():
        return None
    times = pa.array(
        [None if day is None else datetime(day.year, day.month, day.day) for day in days], pa.timestamp("us")
    )
    found = times.take(compute.index_in(values, value_set=counts.field("values")))
    what = "days" if numbers[0] > 999_999 else "months"
    text = f"{{column}} holds {what} written as whole numbers, such as {{value}}, and is taken as times"
    hint = Hint("{numeric} takes them as numbers", numeric=[name])
    note = Message(text, column=name, value=known[0].as_py(), hint=hint)
    rows = np.flatnonzero(np.asarray(compute.and_(compute.is_null(found), compute.is_valid(values))))
    unread = (
        UnreadCells(rows, tuple(str(values[row].as_py()) for row in rows.tolist()), "times", asked)
        if len(rows)
        else None
    )
    return TypedCells(found, unread, notes=(note,))


# ---- truth values -------------------------------------------------------------------------------------------------------


def _truth(column: _Column) -> TypedCells | None:
    """Return truth values where nearly all cells are true or false; words that repeat beside them are words like them."""
    said = [{"true": True, "false": False}.get(word.lower()) for word in column.texts.words]
    read = np.array([value is not None for value in said], dtype=bool)
    if not column.asked and not read.any():
        return None
    strange, share = column.known(read)
    if not column.asked and (share < NEARLY_ALL or (column.texts.counts[strange] > 1).any()):
        return None
    return column.result(pa.array(said, pa.bool_()), read, "truth values")


# ---- times --------------------------------------------------------------------------------------------------------------


def _times(column: _Column) -> TypedCells | None:
    """Return times where nearly all cells are times in one form, None otherwise; two forms in one column are refused."""
    texts = column.texts
    if not column.is_likely(
        lambda word: (
            any(map(str.isdigit, word))  # most words are no times, and are soon known by this
            and any(moment_of(word, order) is not None for order in (None, True, False))
        )
    ):
        return None
    order = _order(column)
    moments = [moment_of(word, order) for word in texts.words]
    counts: Counter[tuple[str, bool]] = Counter()
    for moment, count in zip(moments, texts.counts.tolist(), strict=True):
        if moment is not None:
            counts[moment.kind] += count
    if not counts or _are_seasons(texts.words, moments):
        return None
    kind = counts.most_common(1)[0][0]
    read = np.array([moment is not None and moment.kind == kind for moment in moments], dtype=bool)
    _, share = column.known(read)
    if share < NEARLY_ALL and not column.asked:
        some = np.array([moment is not None for moment in moments], dtype=bool)
        if column.known(some)[1] < 1.0:
            return None
        firsts = {m.kind: texts.first_row(i) for i, m in reversed(list(enumerate(moments))) if m is not None}
        rows = sorted(firsts.values())
        raise _two_formats(column.name, [(row, texts.words[texts.codes[row]]) for row in rows], column.place)
    if kind[0] == SLASHES:
        column.day_first[column.name] = bool(order)
    found = [moment.value if kept and moment is not None else None for moment, kept in zip(moments, read, strict=True)]
    what = "times"
    if kind[0] == SLASHES and any(order_of_days(texts.words[i]) not in (None, order) for i in np.flatnonzero(~read)):
        what = f"dates with {'days before months' if order else 'months before days'}"
    return column.result(_arrow_times(found, kind), read, what)


def _arrow_times(values: Sequence[Any], kind: tuple[str, bool]) -> Any:
    """Return times as an Arrow array: of day, or moments with their common offset, or UTC if they have several."""
    form, zoned = kind
    if form == CLOCK:
        return pa.array(values, pa.time64("us"))
    offsets = {value.strftime("%z") for value in values if value is not None}
    offset = next(iter(offsets))
    zone = None if not zoned else f"{offset[:3]}:{offset[3:5]}" if len(offsets) == 1 and offset != "+0000" else "UTC"
    return pa.array(values, pa.timestamp("us", zone))


def _order(column: _Column) -> bool | None:
    """Return whether days come before months in dates with slashes: as is known, or as nearly all dates show."""
    known = column.day_first.get(column.name)
    if known is not None:
        return known
    votes: dict[bool, int] = {True: 0, False: 0}
    firsts: dict[bool, int] = {}
    for i, (word, count) in enumerate(zip(column.texts.words, column.texts.counts.tolist(), strict=True)):
        vote = order_of_days(word)
        if vote is not None:
            votes[vote] += count
            firsts.setdefault(vote, i)
    order = votes[True] > votes[False]
    if min(votes.values()) > (1.0 - NEARLY_ALL) * sum(votes.values()):
        rows = sorted(column.texts.first_row(i) for i in firsts.values())
        found = [(row, column.texts.words[column.texts.codes[row]]) for row in rows]
        raise _two_formats(column.name, found, column.place)
    return order if any(votes.values()) else None


def _are_seasons(words: Sequence[str], moments: Sequence[Moment | None]) -> bool:
    """Tell whether what looks like months are years that follow each other, as in 2011-12."""
    months = [
        word for word, moment in zip(words, moments, strict=True) if moment is not None and moment.form == "2024-01"
    ]
    return bool(months) and all(map(is_season, months))


def _two_formats(name: str, found: list[tuple[int, str]], place: Callable[[int], str]) -> InputError:
    """Return the error of a column with dates in two formats."""
    (row, word), (other_row, other) = found[:2]
    return InputError(
        f"column {name!r} has dates in two formats, {word!r} in {place(row)} and {other!r} in {place(other_row)}; write all of "
        "them as 2024-01-31, or leave the column out."
    )


def moment(word: str) -> datetime | None:
    """Return the time that a single word says; None if it is no time, or the day may be the month."""
    found = moment_of(word)
    if found is None:
        return None
    return as_datetime(found.value)


# ---- words --------------------------------------------------------------------------------------------------------------

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
    some = words[:: max(1, len(words) // _LOOKED_AT)]
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


# Units of a length of time, longest first, and the seconds that each has.
_UNITS = (("years", 31_556_952.0), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def as_datetime(cell: Any) -> datetime | None:
    """Return a date, time, datetime or ISO 8601 text as a datetime; None for anything else."""
    if isinstance(cell, str):
        found = moment_of(cell.strip())
        return datetime.fromisoformat(cell.strip()) if found is None else as_datetime(found.value)
    return datetime_of(cell) if isinstance(cell, (date, clock)) else None


def places_of_times(times: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return times on an axis, by their own clock if all have one offset, else in UTC, and whether they are in seconds."""
    if times.dtype.kind in "iuf":
        return times.astype(np.float64), False
    if times.dtype.kind == "M":
        return seconds_of(times), True
    moments = [as_datetime(cell) for cell in times.tolist()]
    if any(moment is None for moment in moments):
        return np.array([float(cell) for cell in times.tolist()]), False
    known = [moment for moment in moments if moment is not None]
    one_clock = len({moment.utcoffset() for moment in known}) <= 1
    own = [moment.replace(tzinfo=UTC) if one_clock or moment.tzinfo is None else moment for moment in known]
    return np.array([moment.timestamp() for moment in own]), True


def seconds_of(times: Any) -> np.ndarray:
    """Return datetime64 as seconds since 1970."""
    return np.asarray(times.astype("datetime64[us]").astype(np.int64) / 1e6)


def time_text(seconds: float) -> str:
    """Return seconds since 1970 as text."""
    text = str(np.datetime64(round(seconds * 1e6), "us")).replace("T", " ")
    return text.rstrip("0").removesuffix(".").removesuffix(" 00:00:00") if "." in text else text


def time_words(time: Any) -> str:
    """Return a time in the words of its table: datetime64 without a fraction of zeros, others as they are."""
    if isinstance(time, np.datetime64) and time.astype("datetime64[us]") != time:
        return str(time).replace("T", " ")
    return time_text(float(seconds_of(time))) if isinstance(time, np.datetime64) else str(time)


def length_text(seconds: float) -> str:
    """Return a length of time in the largest unit of which it has at least two."""
    name, unit = next(((name, unit) for name, unit in _UNITS if abs(seconds) >= 2.0 * unit), _UNITS[-1])
    number = f"{seconds / unit:.3g}"
    return f"{number} {name.removesuffix('s') if number == '1' else name}"
