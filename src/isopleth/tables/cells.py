"""Cells of a table as numbers, words or times, column by column, from frames of any library or arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import InputError, Message
from isopleth.core.rows import ALL_INTEGERS
from isopleth.tables.intervals import read_intervals
from isopleth.tables.numerals import Numerals, numerals_of, written_number
from isopleth.tables.plain_numbers import rounded
from isopleth.tables.text_column import Texts, TypedCells
from isopleth.tables.text_times import days_of
from isopleth.tables.text_types import typed
from isopleth.tables.time_text import moment
from isopleth.tables.unread import NO_ODD_CELLS, CensoredCells, OddCells, UnreadCells, behind
from isopleth.tables.usual_types import holds_intervals

# What spreadsheets write in cells whose formula has no value.
SPREADSHEET_ERRORS = frozenset({"#N/A", "#NA", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"})

# Cells of text that count as missing.
MISSING_WORDS = SPREADSHEET_ERRORS | {"", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "Null", "<NA>", "NaT"}

# Words that count as missing as well, in columns where nearly all other cells are numbers, times or truth values.
MISSING_NUMBERS = frozenset({"-", "--", ".", "none", "None", "unknown", "missing", "NAN"})

MISSING_IN_NUMBERS = MISSING_WORDS | MISSING_NUMBERS

# Cells that count as missing in frames and in files of typed cells, which have missing cells of their own: NA is a word there.
NO_WORD = frozenset({""})

# A number that begins with 0 and another digit is a code, such as a postcode: as a number it would lose its zeros.
_CODE = r"^\s*[-+]?0[0-9]+(?:[.,][0-9]*)?\s*$"

_LIMIT = r"^\s*(?:[<>]=?|\x{2264}|\x{2265})\s*[-+]?[0-9.,]*[0-9]"

TRUTH = ("False", "True")
_TRUTH_WORDS = {"false": 0, "0": 0, "0.0": 0, "true": 1, "1": 1, "1.0": 1}

_SAMPLED = 500  # cells of a column of text by which the decimal sign is recognised

# Types of cells that are numbers, words, truth values or times.
_KNOWN = (str, bool, int, float, Decimal, date, time, timedelta, np.generic)

# Methods of Cells that read columns, by their type in narwhals; cells of other types are objects.
_READERS: dict[type, str] = {
    nw.Float64: "_of_numbers",  # and all other numbers
    nw.Boolean: "_of_truth",
    nw.Date: "_of_times",
    nw.Datetime: "_of_times",
    nw.Categorical: "_of_categories",
    nw.Enum: "_of_categories",
    nw.Struct: "_of_intervals",
    nw.String: "_of_strings",
}

Place = Callable[[int], str]


def row_of(row: int) -> str:
    """Return where a row of a frame or array stands, for messages."""
    return f"row {row}"


@dataclass(frozen=True)
class TextRule:
    """Rule by which the text of a column is read."""

    missing: frozenset[str] = NO_WORD  # words that mean a missing cell
    numerals: Numerals | None = None  # how numbers are written; None takes words as words
    day_first: bool | None = None  # whether days come before months, if that is known
    wanted: str | None = None  # "numeric", "categorical", "time" or "truth", if the kind of the column is known


@dataclass
class SourceTable:
    """Frame or array that is read column by column."""

    names: list[Any]  # of the columns: text in a frame, numbers in an array
    n: int  # number of rows
    read: Callable[[Any], Any]  # returns a column by its name
    named: bool  # whether it is a frame
    typed: bool  # whether text is words, since a reader has looked for numbers and times in it
    odd: OddCells = NO_ODD_CELLS  # what the reader could not read, or says a limit
    # Cells by which the kind of their column was decided; they are not read again to be encoded.
    held: dict[Any, Cells] = field(default_factory=dict)

    def numerals(self, numeric: Iterable[Any]) -> Numerals:
        """Recognise how the text of `numeric` columns writes numbers."""
        texts = []
        for j, name in enumerate(() if self.typed else numeric):
            column = self.read(name)
            if column.dtype in (nw.String, nw.Object):
                cells = enumerate(column.head(_SAMPLED).to_list())
                texts += [(i, j, cell) for i, cell in cells if isinstance(cell, str)]
        return numerals_of(texts, "X", where="row") if texts else Numerals()

    def cells(self, name: Any, rule: TextRule) -> Cells:
        """Return the cells of a column."""
        column = self.read(name)
        if isinstance(column, np.ndarray):
            return Cells.of_array(name, column, rule.missing)
        read = Cells.of(name, column, replace(rule, numerals=None) if self.typed else rule)
        unread, censored = self.odd.unread.get(name), self.odd.censored.get(name)
        return read if unread is None and censored is None else replace(read, unread=unread, censored=censored)


@dataclass(frozen=True)
class Cells:
    """Cells of a column."""

    name: Any  # column
    form: str  # whole numbers, numbers, seconds (since 1970, or midnight), or codes of `words`
    values: np.ndarray  # (n,): NaN, or the code -1, where a cell is missing
    words: tuple[str, ...] = ()  # distinct words
    levels: tuple[str, ...] | None = None  # words that the type of the column declares: truth values and categories
    zone: str | None = None  # time zone of times, which then are instants
    exact: list[int | None] | None = None  # whole numbers, where float64 does not hold one of them
    day_first: bool | None = None  # whether days come before months, as in 31/01/2024
    clock: bool = False  # whether times are times of day
    mixed: bool = False  # whether some of the words were numbers, and others text
    other: str | None = None  # type of cells that are neither numbers, words, truth values nor times
    unread: UnreadCells | None = None  # cells that are not of the kind of the column
    censored: CensoredCells | None = None  # cells that say a limit in the place of a number
    notes: tuple[Message, ...] = ()  # what was recognised
    known: int = field(init=False)  # number of cells that are not missing
    is_odd: bool = field(init=False)  # whether some cells could not be read, or say a limit

    @classmethod
    def of(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read a column of a frame."""
        kind = nw.Float64 if column.dtype.is_numeric() else type(column.dtype)
        read: Callable[..., Self] = getattr(cls, _READERS.get(kind, "_of_objects"))
        return read(name, column, rule)

    @classmethod
    def of_array(cls, name: Any, column: np.ndarray, missing: frozenset[str]) -> Self:
        """Read a column of an array."""
        if column.dtype.kind in "iu":
            if len(column) and max(int(column.max()), -int(column.min())) >= ALL_INTEGERS:
                return cls._of_large(name, column.tolist())
            return cls(name, "whole", column.astype(np.float64))
        if column.dtype.kind == "f":
            return cls(name, "real", column.astype(np.float64))
        if column.dtype.kind == "M":
            seconds = column.astype("datetime64[us]").astype(np.float64) * 1e-6
            return cls(name, "time", np.where(np.isnat(column), np.nan, seconds))
        return cls.of_list(name, column.tolist(), TextRule(missing))

    @classmethod
    def _of_numbers(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read numbers, or days that are written as such; whole ones stay exact where float64 does not hold them."""
        dtype = column.dtype
        if rule.numerals is not None and rule.wanted in (None, "time"):
            days = days_of(name, column.to_arrow(), asked=rule.wanted == "time")
            if days is not None:
                return cls._of_typed(name, days, rule)
        values = _floats(column)
        form = "whole" if dtype.is_integer() else "real"
        if dtype.is_float() or not (np.abs(values) >= ALL_INTEGERS).any():
            return cls(name, form, values)
        cells = [None if is_missing(cell) else cell for cell in column.to_list()]
        if dtype.is_integer() or all(cell is None or cell == cell.to_integral_value() for cell in cells):
            return cls._of_large(name, [None if cell is None else int(cell) for cell in cells])
        return cls(name, form, values)

    @classmethod
    def _of_large(cls, name: Any, cells: list[int | None]) -> Self:
        values = np.array([np.nan if cell is None else float(cell) for cell in cells])
        lost = any(cell is not None and int(float(cell)) != cell for cell in cells)
        return cls(name, "whole", values, exact=cells if lost else None)

    @classmethod
    def _of_truth(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read truth values."""
        codes = np.nan_to_num(_floats(column), nan=-1.0)
        return cls(name, "text", codes.astype(np.intp), TRUTH, TRUTH)

    @classmethod
    def _of_times(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read dates, and dates with times."""
        stamps = (column.cast(nw.Datetime("us")) if column.dtype == nw.Date else column).dt.timestamp("us")
        return cls(name, "time", _floats(stamps) * 1e-6, zone=getattr(column.dtype, "time_zone", None))

    @classmethod
    def _of_categories(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read cells of a type that declares words; other categories than texts are words, too."""
        dtype = column.dtype
        levels = tuple(map(str, dtype.categories)) if dtype == nw.Enum else ()
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):  # categories of several types
            if column.to_arrow().type.value_type in (pa.string(), pa.large_string(), pa.string_view()):
                return replace(cls._of_strings(name, column, TextRule(rule.missing)), levels=levels)
        return cls.of_words(name, [word_of(cell) for cell in column.to_list()], rule.missing, levels)

    @classmethod
    def _of_intervals(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read intervals; other records are objects."""
        if not holds_intervals(column.dtype):
            return cls._of_objects(name, column, rule)
        values, limits = read_intervals(name, column)
        return cls(name, "real", values, censored=limits)

    @classmethod
    def of_words(
        cls, name: Any, cells: Iterable[Any], missing: frozenset[str], levels: tuple[str, ...] | None = None
    ) -> Self:
        """Read words; blanks around them do not count, and None is a missing cell."""
        cells = list(cells)
        # Of the distinct cells, since most columns of words have few: a million cells take a fifth of the time.
        stripped = {cell: None if cell is None else cell.strip() for cell in dict.fromkeys(cells)}
        words = tuple(word for word in dict.fromkeys(stripped.values()) if word is not None and word not in missing)
        place = dict(zip(words, range(len(words)), strict=True))
        codes = {cell: -1 if word is None else place.get(word, -1) for cell, word in stripped.items()}
        return cls(name, "text", np.fromiter(map(codes.__getitem__, cells), np.intp, len(cells)), words, levels)

    @classmethod
    def _of_strings(cls, name: Any, column: Any, rule: TextRule, *, numbers: bool = False) -> Self:
        """Read text; what looks like numbers is words, unless `numbers` are looked for or wanted, or a cell says a limit.

        Libraries of frames read a column of a file as text if one of its cells is <0.5, and nothing but numbers has limits.
        """
        cells = column.to_arrow().cast(pa.string())
        if rule.numerals is None:
            texts = Texts.of(cells, rule.missing)
            return cls(name, "text", texts.codes, texts.words)
        order = {} if rule.day_first is None else {name: rule.day_first}
        how: dict[str, Any] = {"wanted": rule.wanted, "placeholders": MISSING_NUMBERS}
        numbers = numbers or rule.wanted == "numeric" or (rule.wanted is None and say_limits(cells))
        found = typed(name, cells, rule.missing, rule.numerals, row_of, order, numbers, **how)
        return replace(cls._of_typed(name, found, rule), day_first=order.get(name))

    @classmethod
    def _of_typed(cls, name: Any, found: TypedCells, rule: TextRule) -> Self:
        """Return cells whose text has been read."""
        if found.texts is not None:
            return cls(name, "text", found.texts.codes, found.texts.words, notes=found.notes)
        values = pa.chunked_array([found.values]) if isinstance(found.values, pa.Array) else found.values
        read = cls.of(name, nw.from_native(values, series_only=True), TextRule(rule.missing))
        return replace(read, unread=found.unread, censored=found.censored, notes=found.notes)

    @classmethod
    def _of_objects(cls, name: Any, column: Any, rule: TextRule) -> Self:
        """Read a column of Python objects."""
        return cls.of_list(name, column.to_list(), rule)

    @classmethod
    def of_list(cls, name: Any, cells: list[Any], rule: TextRule) -> Self:
        """Read Python objects by the types of those that are not missing."""
        cells = [None if is_missing(cell) else cell for cell in cells]
        known = [cell for cell in cells if cell is not None]
        first = known[0] if known else None
        if isinstance(first, timedelta):
            return cls(name, "real", np.array([np.nan if c is None else c.total_seconds() for c in cells], dtype=float))
        if isinstance(first, (date, time)):
            seconds = np.array([_clock(cell) for cell in cells], dtype=float)
            return cls(name, "time", seconds, zone=_zone(name, known), clock=all(isinstance(c, time) for c in known))
        if known and all(isinstance(cell, (bool, np.bool_)) for cell in known):
            codes = [-1 if cell is None else int(cell) for cell in cells]
            return cls(name, "text", np.array(codes, dtype=np.intp), TRUTH, TRUTH)
        if known and all(isinstance(cell, (int, Decimal)) and cell == int(cell) for cell in known):
            return cls._of_large(name, [None if cell is None else int(cell) for cell in cells])
        if not any(isinstance(cell, (str, bool, np.bool_)) for cell in known):
            with suppress(TypeError, ValueError):
                numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
                lost = any(isinstance(cell, int) and int(float(cell)) != cell for cell in known)
                return cls._of_large(name, cells) if lost else cls(name, "real", numbers)
        return cls._of_mixed(name, cells, known, rule)

    @classmethod
    def _of_mixed(cls, name: Any, cells: list[Any], known: list[Any], rule: TextRule) -> Self:
        """Read objects of several types as words, or as numbers or times where nearly all of them say such."""
        texts = [word_of(cell) for cell in cells]
        other = next((type(cell).__name__ for cell in known if not isinstance(cell, _KNOWN)), None)
        mixed = len({isinstance(cell, str) for cell in known if not isinstance(cell, bool)}) > 1
        if rule.numerals is not None and known and other is None:
            with suppress(UnicodeEncodeError):  # a lone surrogate is no text for Arrow, and no number
                column = nw.from_native(pa.chunked_array([pa.array(texts, pa.string())]), series_only=True)
                return replace(cls._of_strings(name, column, rule, numbers=mixed), mixed=mixed)
        return replace(cls.of_words(name, texts, rule.missing), mixed=mixed, other=other)

    def __post_init__(self) -> None:
        known = (self.values >= 0).sum() if self.form == "text" else np.isfinite(self.values).sum()
        object.__setattr__(self, "known", int(known))
        object.__setattr__(self, "is_odd", self.unread is not None or self.censored is not None)

    @cached_property
    def code(self) -> str | None:
        """First word that is a code, such as a postcode."""
        return next((word for word in self.words if re.match(_CODE, word)), None)

    @property
    def is_truth(self) -> bool:
        """Tell whether the type of the column declares truth values."""
        return self.levels == TRUTH

    def as_words(self) -> Self:
        """Return the cells as words."""
        if self.form == "text":
            return self
        if self.exact is not None:
            return self.of_words(self.name, [None if v is None else str(v) for v in self.exact], frozenset())
        return self.of_words(
            self.name, [None if np.isnan(v) else number_word(v) for v in self.values.tolist()], frozenset()
        )

    def texts(self) -> list[str | None]:
        """Return the cells as a list of words."""
        words = self.as_words()
        return [None if code < 0 else words.words[code] for code in words.values.tolist()]

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of cells that hold each word."""
        return np.bincount(self.values + 1, minlength=len(self.words) + 1)[1:]

    def row_with(self, word: str) -> int:
        """Return the first row that holds a word."""
        return int(np.argmax(self.values == self.words.index(word)))

    def numbers(self, missing: frozenset[str] | None = None) -> np.ndarray:
        """Return cells as numbers; the words `missing`, the usual ones if None, mean missing ones."""
        if self.form == "text":
            if self.is_truth:
                return np.where(self.values < 0, np.nan, self.values)
            gaps = MISSING_IN_NUMBERS if missing is None else missing
            numbers = np.array([self._number(word, gaps) for word in self.words], dtype=float)
            return np.append(numbers, np.nan)[self.values]
        if self.exact is not None:
            row = next(i for i, v in enumerate(self.exact) if v is not None and int(float(v)) != v)
            raise rounded(self.name, row, self.exact[row])
        if np.isinf(self.values).any():
            row = int(np.argmax(np.isinf(self.values)))
            raise InputError(
                "{column} holds infinity in {row}",
                column=self.name,
                row=row,
                value=float(self.values[row]),
                hint="replace it by a number, or empty the cell",
            )
        return self.values

    def _number(self, word: str, missing: frozenset[str]) -> float:
        """Return a word as a number, NaN if it means a missing cell."""
        if word in missing:
            return np.nan
        value = parsed_number(word)
        if value is None:
            raise InputError(
                "{column} holds {value} in {row}; expected a number or an empty cell.",
                column=self.name,
                row=self.row_with(word),
                value=word,
            )
        return value

    def times(self, zone: str | None) -> np.ndarray:
        """Return cells as seconds since 1970, for a column of instants if `zone` is given."""
        if self.form != "time":
            if not self.known:
                return np.full(len(self.values), np.nan)
            words = self.as_words()
            wrong = next((word for word in words.words if moment(word) is None), words.words[0])
            raise InputError(
                "{column} holds {value} in {row}; expected a time such as 2024-01-31 12:00.",
                column=self.name,
                row=words.row_with(wrong),
                value=wrong,
            )
        if self.known and (self.zone is None) != (zone is None):
            has, had = ("no time zone", f"the zone {zone}") if self.zone is None else (f"the zone {self.zone}", "none")
            raise InputError(
                f"{{column}} holds times with {has}, and had {had} at fit; give all times a zone, or none.",
                column=self.name,
            )
        return self.values

    def codes(self, levels: Sequence[str]) -> np.ndarray:
        """Return indices in `levels`, their number for other words, and -1 for missing cells."""
        words = self.as_words()
        if tuple(levels) == TRUTH:
            known: dict[str, int] = _TRUTH_WORDS
            codes = [known.get(word.lower(), -2) for word in words.words]
            if -2 in codes:
                word = words.words[codes.index(-2)]
                raise InputError(
                    "{column} holds {value} in {row}; expected a truth value.",
                    column=self.name,
                    row=words.row_with(word),
                    value=word,
                )
        else:
            place = {word: i for i, word in enumerate(levels)}
            numbers = {parsed_number(level): i for i, level in enumerate(levels)} if self.form != "text" else {}
            codes = [
                place.get(word, numbers.get(parsed_number(word), len(levels)) if numbers else len(levels))
                for word in words.words
            ]
        return np.append(np.array(codes, dtype=np.intp), -1)[words.values]


def odd_cells_of(columns: Iterable[Cells]) -> OddCells:
    """Return the cells of columns that could not be read, or say a limit."""
    columns = list(columns)
    unread = {cells.name: cells.unread for cells in columns if cells.unread is not None}
    return OddCells(unread, {cells.name: cells.censored for cells in columns if cells.censored is not None})


def joined(cells: Sequence[Cells]) -> Cells:
    """Return the cells of a column of several tables below each other, in a form that holds all of them."""
    below = _joined(cells)
    if below.form == "text" and not below.is_truth:
        return below
    odd, n_rows = NO_ODD_CELLS, 0
    for each in cells:
        odd, n_rows = behind(odd, odd_cells_of([each]), n_rows), n_rows + len(each.values)
    name = below.name
    return replace(below, unread=odd.unread.get(name), censored=odd.censored.get(name))


def _joined(cells: Sequence[Cells]) -> Cells:
    """Return the cells of several tables in a form that holds all of them."""
    known = [each for each in cells if each.known] or cells[:1]
    forms = {each.form for each in known}
    name = cells[0].name
    if forms <= {"whole", "real"} or forms == {"time"}:
        if len({each.zone is None for each in known}) > 1:
            raise InputError(
                "{column} holds times with a time zone in one table and without in the other; give all times a zone, or none.",
                column=name,
            )
        form = "time" if forms == {"time"} else "real" if "real" in forms else "whole"
        parts = [each.values if each.form in forms else np.full(len(each.values), np.nan) for each in cells]
        exact = (
            [v for each in cells for v in (each.exact or _whole(each.values))] if any(e.exact for e in known) else None
        )
        return Cells(
            name,
            form,
            np.concatenate(parts).astype(np.float64),
            zone=known[0].zone,
            exact=exact,
            day_first=known[0].day_first,
            clock=all(each.clock for each in known),
        )
    if any(each.is_truth for each in known) and all(map(_may_be_truth, known)):
        return Cells(name, "text", np.concatenate([each.codes(TRUTH) for each in cells]), TRUTH, TRUTH)
    declared = tuple(dict.fromkeys(word for each in known for word in each.levels or ()))
    levels = declared if any(each.levels is not None for each in known) else None
    words = Cells.of_words(name, [text for each in cells for text in each.texts()], frozenset(), levels)
    other = next((each.other for each in known if each.other), None)
    return replace(words, mixed=any(each.mixed for each in known), other=other)


def _whole(values: np.ndarray) -> list[int | None]:
    return [None if np.isnan(v) else int(v) for v in values.tolist()]


def _may_be_truth(cells: Cells) -> bool:
    return {word.lower() for word in cells.as_words().words} <= _TRUTH_WORDS.keys()


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or the NA of pandas, which cannot be compared with itself."""
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)


def _zone(name: Any, times: Iterable[Any]) -> str | None:
    """Return the zone of times, which is UTC if they have several, or refuse times with and without one."""
    zones = {getattr(cell, "tzinfo", None) for cell in times}
    if None in zones and len(zones) > 1:
        raise InputError("{column} holds times with and without a time zone; give all of them one.", column=name)
    return "UTC" if len(zones) > 1 else None if None in zones else str(zones.pop())


def _floats(column: Any) -> np.ndarray:
    """Return the numbers of a column of a frame, NaN for missing ones; large whole numbers are rounded."""
    arrow = column.to_arrow()
    return np.array(arrow.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def word_of(cell: Any) -> str | None:
    """Return a cell as a word. Numbers are words such as 1 and 2.5, whatever their type."""
    if is_missing(cell):
        return None
    if isinstance(cell, (float, np.floating)) and np.isfinite(cell):
        return number_word(float(cell))
    return str(cell)


def number_word(value: float) -> str:
    """Return a number as a word, whole numbers without a point."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def looking_like_numbers(words: Iterable[str]) -> list[str]:
    """Return the words that are numbers in some notation: digits with signs among them."""
    digits = (word for word in words if any(map(str.isdigit, word)))
    return [word for word in digits if parsed_number(word) is not None or written_number(word)]


def is_code(text: str) -> bool:
    """Tell whether a text is a number that begins with 0 and another digit, which is a code such as a postcode."""
    return re.match(_CODE, text) is not None


def say_limits(cells: Any) -> bool:
    """Tell whether one of the Arrow strings says a limit, such as <0.5."""
    return bool(compute.any(compute.match_substring_regex(cells, _LIMIT)).as_py())


def hold_codes(cells: Any) -> bool:
    """Tell whether one of the Arrow strings is a code."""
    return bool(compute.any(compute.match_substring_regex(cells, _CODE)).as_py())


def parsed_number(text: str) -> float | None:
    """Return the finite number in a text, or None. Text with underscores, which Python would accept, is none."""
    if text[:1].isalpha() or "_" in text:  # words: an exception for each of many would take long
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _clock(cell: Any) -> float:
    """Return seconds since 1970 of a date or date and time, since midnight of a time of day; NaN for a missing cell."""
    if cell is None:
        return np.nan
    if isinstance(cell, time):
        return cell.hour * 3600.0 + cell.minute * 60.0 + cell.second + cell.microsecond * 1e-6
    if not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    moment = cell if cell.tzinfo is not None else cell.replace(tzinfo=UTC)
    return (moment - _EPOCH) / timedelta(microseconds=1) * 1e-6
