"""Kind of a column: numbers, categories or times; or why it is left out, as an identifier or free text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.core.errors import Hint, InputError, Message, quoted
from isopleth.tables.cells import (
    MISSING_IN_NUMBERS,
    MISSING_WORDS,
    NO_WORD,
    TRUTH,
    Cells,
    TextRule,
    is_code,
    looking_like_numbers,
    number_word,
    parsed_number,
)
from isopleth.tables.text_amounts import FEW_WORDS
from isopleth.tables.text_column import NEARLY_ALL
from isopleth.tables.text_times import days_of
from isopleth.tables.text_types import looks_like

_FEWEST_UNSORTED = 100  # rows below which numbers one apart, but not in order, can be the levels of an experiment
_FEWEST = 10  # rows below which distinct values are no sign of an identifier
_LONG = 25  # mean characters of a cell from which distinct texts are free text
_DISTINCT = 0.8  # least share of distinct cells of free text
_REPEATED = 0.05  # largest share of repeated values of an identifier, since rows may be there twice; one may always be
_ID_NAME = re.compile(r"(^|[_\W])(id|ids|uid|uuid|guid|key|index|idx|no|nr|number|num|code|rownum)$", re.I)
# Names that libraries give the column without a name in which a table has the labels of its rows.
_NO_NAME = re.compile(r"unnamed: ?0|\.\.\.1|", re.I)
_ID_CASE = re.compile(r"(?<=[a-z])(Id|ID|Uuid|UUID|Key|No|Nr)$")
_MEASURED_NAME = re.compile(r"year|month|week|day|date|time|hour|minute|second|age|stamp|epoch", re.I)


@dataclass(frozen=True)
class Column:
    """Kind and encoding of a column of a table.

    Parameters
    ----------
    name : str or int
        Name in a frame, number in an array.
    kind : {"numeric", "categorical", "time"}
        A time is encoded as seconds since `origin`.
    levels : tuple of str
        Words of a categorical column, the most frequent one first. Truth values are ``("False", "True")``, and no others can
        occur.
    origin : float
        The first time, in seconds since 1970 (UTC, or the clock of the table where that has no zone).
    zone : str, optional
        Time zone of times, which then are instants.
    day_first : bool, optional
        Whether the dates were written with days before months, as in 31/01/2024; later tables are read so.
    constant : bool
        Whether all cells hold one word, so that the column is used only where another one in a later table matters.
    unread : tuple of str
        Cells of the fit that are not of this kind and count as missing; they do so in later tables too.
    limits : tuple of (str, float)
        Limits that cells of the fit say in the place of a number: ("below", 0.5) for <0.5, ("above", 2400.0) for >2400. The
        cells themselves are in the table: :attr:`isopleth.tables.schema.EncodedTable.limits`.
    clock : bool
        Whether the times are times of day.
    """

    name: str | int
    kind: str
    levels: tuple[str, ...] = ()
    origin: float = 0.0
    zone: str | None = None
    day_first: bool | None = None
    constant: bool = False
    unread: tuple[str, ...] = ()
    limits: tuple[tuple[str, float], ...] = ()
    clock: bool = False

    @property
    def is_words(self) -> bool:
        """Tell whether its cells are words, whatever they look like; truth values are read as such."""
        return self.kind == "categorical" and self.levels != TRUTH

    @property
    def wanted(self) -> str:
        """Kind as which its text is read in later tables."""
        if self.kind == "categorical":
            return "truth" if self.levels == TRUTH else "categorical"
        return self.kind

    @property
    def size(self) -> int:
        """Number of categories: one more than the words, for new ones, but truth values are two."""
        return len(self.levels) + (self.levels != TRUTH)


@dataclass(frozen=True)
class KindRule:
    """Decide the kind of a column: `wanted` is what the user says of it, and `named` whether the table is a frame.

    `missing` are the words that mean a missing cell if the user names them. `read` tells whether the table is that of a file,
    and `written` whether the file is a text, in which everything is words. A `first` column that is `unnamed`, or has a name that
    libraries give, may hold the labels of the rows.
    """

    wanted: str | None
    keep_identifiers: bool
    named: bool
    missing: frozenset[str] | None = None
    written: bool = False
    read: bool = False
    first: bool = False
    unnamed: bool = False

    def __call__(self, cells: Cells, notes: list[Message]) -> Column | str:
        """Return the column, or the reason why it is left out."""
        if cells.known == 0:
            if cells.form in ("whole", "real"):
                cells.numbers(self.missing)  # which refuses infinite cells: they are no gaps
            return "no value" if cells.censored is None else Column(cells.name, "numeric")
        if self.wanted == "categorical":
            return _category(cells)
        if cells.other is not None and self.named:
            return f"values of type {cells.other}"
        if self.wanted == "numeric" or (not self.named and cells.form != "text"):
            cells.numbers(self.missing)
            return Column(cells.name, "numeric")
        if self.wanted == "time":
            return _time(cells, cells.times(cells.zone))
        if not self.named:
            word = cells.words[cells.values[cells.values >= 0][0]]
            raise InputError(
                "{column} of the array holds {value} in {row}",
                column=cells.name,
                row=cells.row_with(word),
                value=word,
                hint="name it in categorical, or pass a data frame",
            )
        if cells.form == "time":
            return _time(cells, cells.values)
        if cells.form in ("whole", "real"):
            return self._number(cells, notes)
        return self._words(cells, notes)

    def _number(self, cells: Cells, notes: list[Message]) -> Column | str:
        labels = self.first and (self.unnamed or has_no_name(cells.name))
        if not self.keep_identifiers and _is_identifier(cells, notes, labels):
            return "identifier"
        cells.numbers()
        return Column(cells.name, "numeric")

    def _words(self, cells: Cells, notes: list[Message]) -> Column | str:
        """Decide the kind of a column of words, which may be categories, free text, identifiers or numbers."""
        if cells.levels is not None:  # declared: truth values and categories
            return _category(cells)
        counts = cells.counts
        code, written = cells.code, self.written or cells.mixed
        if written and code is None and (found := self._as_numbers(cells, notes)) is not None:
            return self._number(found, notes)
        numbers = [] if written else [w for w in cells.words if w not in MISSING_IN_NUMBERS]
        alike = looking_like_numbers(numbers)
        few = len(numbers) <= FEW_WORDS and len(alike) < len(numbers)  # as 0, 1, 2 and 3+
        numbers = alike if len(alike) >= NEARLY_ALL * len(numbers) and not few else []
        self._note_words(cells, code or next(iter(numbers), None), notes)
        if cells.known >= _FEWEST:
            length = np.fromiter(map(len, cells.words), float) @ counts / cells.known
            distinct = len(cells.words)
            if distinct >= _DISTINCT * cells.known and length >= _LONG and any(" " in word for word in cells.words):
                return "free text"
            if not self.keep_identifiers and _nearly_unique(cells.known, distinct):
                if numbers and code is None:
                    return "text that looks like numbers"
                if code is None and (what := looks_like(cells.words)):
                    return f"{what} that are not read"
                _note_repeats(cells, cells.words[int(counts.argmax())], distinct, notes)
                return "identifier"
        return _category(cells)

    def _as_numbers(self, cells: Cells, notes: list[Message]) -> Cells | None:
        """Return numbers where all words are numbers or stand for missing ones, as if another table holds only the latter."""
        strange = [word for word in cells.words if parsed_number(word) is None]
        missing = MISSING_IN_NUMBERS if self.missing is None else self.missing
        if len(strange) == len(cells.words) or not missing.issuperset(strange):
            return None
        if strange:
            text = f"{{column}}: {quoted(sorted(strange))} among numbers counts as missing."
            notes.append(Message(text, column=cells.name, value=sorted(strange)))
        numbers = cells.numbers(missing)
        whole = np.all(np.mod(numbers[np.isfinite(numbers)], 1.0) == 0.0)
        return Cells(cells.name, "whole" if whole else "real", numbers)

    def _note_words(self, cells: Cells, number: str | None, notes: list[Message]) -> None:
        """Say that a column of words holds text that looks like a `number`, or words that often mean missing cells."""
        said = sorted((MISSING_WORDS - NO_WORD).intersection(cells.words))
        if said and self.missing is None:
            text = f"{{column}} holds {quoted(said)}, which {'is a word' if len(said) == 1 else 'are words'} there"
            hint = (
                Hint("name missing cells in {missing}", missing=said)
                if self.read
                else "leave missing cells empty (None)"
            )
            notes.append(Message(text, column=cells.name, value=said, hint=hint))
        if number is None:
            return
        why = "{value}, which begins with 0" if is_code(number) else "text that looks like numbers, such as {value}"
        hint = (
            Hint("numbers are taken with {numeric}", numeric=[cells.name])
            if self.read
            else "convert it if it holds numbers"
        )
        text = f"{{column}} holds {why}, so it is taken as words"
        notes.append(Message(text, column=cells.name, value=number, hint=hint))


def _category(cells: Cells) -> Column:
    """Return a categorical column, with declared levels that do not occur after those that do."""
    words = cells if cells.form == "text" else cells.as_words()
    counts = dict(zip(words.words, words.counts.tolist(), strict=True))
    found = sorted(word for word in counts if counts[word])
    found.sort(key=counts.__getitem__, reverse=True)  # words of one count stay in alphabetical order
    if len(found) == 1 and words.known == len(words.values):
        return Column(words.name, "categorical", (found[0],), constant=True)
    if words.levels == TRUTH:
        return Column(words.name, "categorical", TRUTH)
    return Column(words.name, "categorical", tuple(found + [w for w in words.levels or () if not counts.get(w)]))


def _nearly_unique(known: int, distinct: int) -> bool:
    return known - distinct <= max(1, _REPEATED * known)


def has_no_name(name: Any) -> bool:
    """Tell whether a library has named a column that has no name in its file."""
    return isinstance(name, str) and _NO_NAME.fullmatch(name) is not None


def _is_identifier(cells: Cells, notes: list[Message], labels: bool = False) -> bool:
    """Tell whether whole numbers count the rows, or are nearly all distinct and named as an identifier or beyond 2**53.

    A few cells may be missing, repeated or wrong. Labels of rows, which have no name, rise or are nearly all distinct.
    """
    rows = np.flatnonzero(np.isfinite(cells.values))
    n, values = len(cells.values), cells.values[rows]
    if n < _FEWEST or n - len(rows) > _REPEATED * n or (np.mod(values, 1.0) != 0.0).any():
        return False
    name = str(cells.name)
    distinct = len(set(cells.exact) - {None}) if cells.exact else len(np.unique(values))
    unique = _nearly_unique(len(values), distinct)
    if labels and (unique or _nearly_all(np.diff(values) > 0.0)):
        return True
    countable = unique and cells.form == "whole" and not _MEASURED_NAME.search(name)
    # Many numbers one apart in another order are those of records; from 0 or 1 on they can be ranks, which are data.
    counts = countable and (
        _nearly_all(np.diff(values) == np.diff(rows))
        or (n >= _FEWEST_UNSORTED and values.min() > 1.0 and _nearly_all(np.diff(np.unique(values)) == 1.0))
    )
    # Nobody measures more digits than float64 has.
    long = cells.exact is not None and not _MEASURED_NAME.search(name)
    if not counts and not (unique and (long or _ID_NAME.search(name) or _ID_CASE.search(name))):
        return False
    if distinct < len(values):
        order, times = np.unique(values, return_counts=True)
        _note_repeats(cells, number_word(float(order[times.argmax()])), distinct, notes)
    return True


def _nearly_all(mask: np.ndarray) -> bool:
    return bool(mask.mean() >= 1.0 - _REPEATED)


def is_identifier(name: Any, column: Any) -> bool:
    """Tell whether a column of a frame holds whole numbers that number the rows, or are named as an identifier."""
    return bool(column.dtype.is_integer()) and _is_identifier(Cells.of(name, column, TextRule()), [], has_no_name(name))


def is_days(column: Any) -> bool:
    """Tell whether a column of a frame holds whole numbers that are days or months, such as 20240131."""
    return bool(column.dtype.is_integer()) and days_of(column.name, column.to_arrow()) is not None


def _note_repeats(cells: Cells, word: str, distinct: int, notes: list[Message]) -> None:
    """Say that an identifier repeats, if it does."""
    if distinct < cells.known:
        notes.append(
            Message(
                f"{{column}} is taken as an identifier, though {cells.known - distinct} of its values repeat, such as {{value}}",
                column=cells.name,
                value=word,
                hint="look for rows that are there twice",
            )
        )


def _time(cells: Cells, seconds: np.ndarray) -> Column:
    origin = float(seconds[np.isfinite(seconds)].min())
    return Column(cells.name, "time", origin=origin, zone=cells.zone, day_first=cells.day_first, clock=cells.clock)
