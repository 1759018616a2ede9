"""Types of text columns: numbers, and how the table writes them, booleans, times or words; and times as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as clock
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import Hint, InputError

# A group sign may also be a blank or an apostrophe, as in 1 234,50 and 1'234.50.
_BLANKS = "\u00a0\u202f '"
_SIGN = re.compile(f"[,{_BLANKS}]")
_WITH_SIGNS = re.compile(rf"[-+]?[\d.,{_BLANKS}]*\d[\d.,{_BLANKS}]*(?:[eE][-+]?\d+)?", re.ASCII)

# A decimal point that separates no group of three digits.
_POINT = re.compile(r"[-+]?\d*\.(?:\d{1,2}|\d{4,})", re.ASCII)


@dataclass(frozen=True)
class Numerals:
    """Writing of numbers."""

    decimal: str = "."  # decimal sign
    grouped: bool = False  # whether digits may stand in groups of three, as in 1,234.5 or 1.234,5

    @property
    def ordinary(self) -> bool:
        """Tell whether Python reads the numbers as they are."""
        return self.decimal == "." and not self.grouped

    @cached_property
    def _group(self) -> str:
        """Regular expression of a sign between groups of digits."""
        return f"[{'.' if self.decimal == ',' else ','}{_BLANKS}]"

    @cached_property
    def pattern(self) -> str:
        """Regular expression of a number, for Python and Arrow alike."""
        whole = rf"(?:[0-9]+|[0-9]{{1,3}}(?:{self._group}[0-9]{{3}})+)" if self.grouped else "[0-9]+"
        point = re.escape(self.decimal)
        return rf"^[-+]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?$"

    def plain(self, cell: str) -> str | None:
        """Return a number as Python writes it, None where digits and signs stand in another order, words as they are."""
        if self.ordinary:
            return cell
        text = cell.strip()
        if not re.match(self.pattern, text):
            return None if _WITH_SIGNS.fullmatch(text) else cell
        return re.sub(self._group, "", text).replace(",", ".")

    def plain_array(self, cells: Any) -> Any:
        """Return Arrow strings with numbers as Python writes them, if all cells are numbers."""
        if self.ordinary:
            return cells
        if not compute.all(compute.match_substring_regex(cells, self.pattern), min_count=0).as_py():
            raise pa.ArrowInvalid("a cell that is no number")
        return compute.replace_substring(compute.replace_substring_regex(cells, self._group, ""), ",", ".")


def written_number(text: str) -> bool:
    """Tell whether a text holds digits, and nothing else but a sign, signs between digits and an exponent."""
    return _WITH_SIGNS.fullmatch(text) is not None


def numerals_of(
    cells: Iterable[tuple[int, str]], source: object, decimal: str | None = None, where: str = "line"
) -> Numerals:
    """Recognise how a table writes numbers; cells that contradict each other, or can all be read in two ways, are refused."""
    if decimal is not None:
        if decimal not in (".", ","):
            raise InputError("{parameter} is {value}; expected '.' or ','.", parameter="decimal", value=decimal)
        return Numerals(decimal, grouped=True)
    evidence = _first_of_each(cells)
    if {".", ","} <= evidence.keys():
        (first, one), (second, other) = sorted([evidence["."], evidence[","]])
        raise InputError(
            f"{source}: {where} {first} has {one!r} and {where} {second} has {other!r}, which write numbers in two ways",
            value=[one, other],
            hint=Hint("correct one of them, or say {decimal}", decimal=...),
        )
    if "," in evidence:
        return Numerals(",", grouped=True)
    if "." in evidence or "blank" in evidence or {"point", "?"} <= evidence.keys():
        return Numerals(".", grouped=True)
    if "?" in evidence:
        line, text = evidence["?"]
        raise InputError(
            f"{source}, {where} {line}: {text!r} may be {text.replace(',', '')} or {text.replace(',', '.')}",
            value=text,
            hint=Hint("say which sign is the decimal one with {decimal}", decimal=...),
        )
    return Numerals()


def _first_of_each(cells: Iterable[tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """Return the first cell, with its line, for each kind of evidence that there is."""
    found: dict[str, tuple[int, str]] = {}
    seen: set[str] = set()
    for line, cell in cells:
        if cell in seen:
            continue
        seen.add(cell)
        text = cell.strip()
        if _POINT.fullmatch(text):
            found.setdefault("point", (line, text))
        elif _SIGN.search(text) and _WITH_SIGNS.fullmatch(text):
            for sign in _evidence(text):
                found.setdefault(sign, (line, text))
    return found


def _evidence(text: str) -> list[str]:
    """Return which decimal sign a number shows: "?" where its comma can be either, "blank" where blanks alone group digits."""
    signs = [sign for sign in (".", ",") if re.match(Numerals(sign, grouped=True).pattern, text)]
    if len(signs) < 2:
        return signs
    if "," not in text:
        return ["blank"]
    return [","] if re.match(r"[-+]?0,", text) else ["?"]  # no group of thousands is 0


_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[-+]\d{2}:?\d{2})?)?"
# Ways to write a date, by an example.
_DATES = {
    "2024-01-31": re.compile(r"\d{4}-\d{1,2}-\d{1,2}" + _TIME, re.ASCII),
    "2024/01/31": re.compile(r"\d{4}/\d{1,2}/\d{1,2}" + _TIME, re.ASCII),
    "31.01.2024": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}" + _TIME, re.ASCII),
    "31/01/2024": re.compile(r"\d{1,2}/\d{1,2}/\d{4}" + _TIME, re.ASCII),
}
_READ = {"2024/01/31": "%Y/%m/%d", "31.01.2024": "%d.%m.%Y", "31/01/2024": "%d/%m/%Y", "01/31/2024": "%m/%d/%Y"}
_ZONE = re.compile(r"(?:Z|[-+]\d{2}:?\d{2})$")
_FIRST = 100
_MOST_DIGITS = 308  # numbers of more digits are infinite in float64, or nearly
# First cells by which words are found to repeat, each so many times in the mean.
_SAMPLE, _REPEATED = 1000, 10
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")


def typed(
    name: str,
    cells: Any,
    missing: Iterable[str],
    numerals: Numerals,
    place: Callable[[int], str],
    day_first: dict[str, bool] | None = None,
    numbers: bool = True,
) -> Any:
    """Return a column of text as Arrow numbers, booleans, times or words.

    `place` names a row in messages; `day_first` has the order of days and months by column, and gets what the cells show.
    With `numbers` false, text that looks like numbers is words.
    """
    if numbers and not any(re.search(r"\d", word) for word in missing):  # otherwise -99 may be missing, and no number
        found = _numbers(name, cells, numerals)
        if found is not None:
            return found
    cells = _words(cells, missing)
    if cells.null_count == len(cells):
        return cells
    found = _numbers(name, cells, numerals) if numbers else None
    if found is not None:
        return without_codes(found, missing)
    found = _booleans(cells)
    return _times(name, cells, place, {} if day_first is None else day_first) if found is None else found


def _words(cells: Any, missing: Iterable[str]) -> Any:
    """Return cells without blanks around them, null where they mean a missing cell; words that repeat are looked at once."""
    first = cells.slice(0, _SAMPLE)
    if len(cells) > len(first) > _REPEATED * len(compute.unique(first)):
        words = compute.unique(cells)
        if without_missing(trimmed(words), missing).equals(words):
            return cells
    return without_missing(trimmed(cells), missing)


def trimmed(cells: Any) -> Any:
    """Return an Arrow array of strings without the blanks around them."""
    return compute.utf8_trim_whitespace(cells)


def without_missing(cells: Any, missing: Iterable[str]) -> Any:
    """Return strings with null in the place of the words that mean a missing cell."""
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


def _numbers(name: str, cells: Any, numerals: Numerals) -> Any:
    """Return whole numbers or floats, or None where some cell is no number."""
    try:
        # A cast that fails takes long, since Arrow words an error for each cell; so the first cells go first.
        numerals.plain_array(cells.slice(0, _FIRST)).cast(pa.float64())
        plain = numerals.plain_array(cells)
        found = plain.cast(pa.float64())
    except pa.ArrowInvalid:
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


def _refuse_rounded(name: str, cells: Any, numbers: Any) -> None:
    """Refuse a whole number beyond 2**53 among other numbers, which float64 would round."""
    values = np.asarray(numbers)
    for row in np.flatnonzero(np.abs(values) >= 2.0**53).tolist():
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


def _booleans(cells: Any) -> Any:
    for some in (cells.slice(0, _SAMPLE), cells):
        if not set(compute.unique(lower := compute.utf8_lower(some)).to_pylist()) <= {"true", "false", None}:
            return None
    return compute.equal(lower, "true")


def _times(name: str, cells: Any, place: Callable[[int], str], day_first: dict[str, bool]) -> Any:
    """Return times where all cells are dates in one format, and the words themselves otherwise."""
    first = cells.drop_null()[0].as_py()
    if _format(first) is None:
        return cells
    words = [word for word in compute.unique(cells).to_pylist() if word is not None]
    formats: dict[str, str] = {}
    for word in words:
        found = _format(word)
        if found is None:
            return cells
        formats.setdefault(found, word)
    where = {word: compute.index(cells, word).as_py() for word in formats.values()}
    if len(formats) > 1:
        raise _two_formats(name, sorted((where[word], word) for word in formats.values()), place)
    try:
        form = next(iter(formats))
        if form == "31/01/2024":
            order = _day_first(name, words, cells, place, day_first.get(name))
            if order is None:
                return cells
            day_first[name] = order
            form = "31/01/2024" if order else "01/31/2024"
        moments = [_parse(word, _READ[form]) for word in words] if form in _READ else [_iso(word) for word in words]
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        return cells  # 2024-02-31 is no date
    encoded = pa.chunked_array([cells.combine_chunks()]).combine_chunks().dictionary_encode()
    said = dict(zip(words, moments, strict=True))
    values = [said[word] for word in encoded.dictionary.to_pylist()]
    kind = pa.timestamp("us", _zone_of(name, values, words, place, cells))
    return pa.array(values, kind).take(encoded.indices)


def _zone_of(
    name: str, moments: list[datetime], words: list[str], place: Callable[[int], str], cells: Any
) -> str | None:
    """Return the zone of times: their common offset, or UTC if they have several; None if they have none."""
    offsets = {moment.strftime("%z") for moment in moments}
    if offsets == {""}:
        return None
    if "" in offsets:
        some = [next(word for word in words if bool(_ZONE.search(word[10:])) is has) for has in (True, False)]
        raise _two_formats(name, sorted((compute.index(cells, word).as_py(), word) for word in some), place)
    offset = next(iter(offsets))
    return f"{offset[:3]}:{offset[3:5]}" if len(offsets) == 1 and offset != "+0000" else "UTC"


def _format(word: str) -> str | None:
    return next((name for name, pattern in _DATES.items() if pattern.fullmatch(word)), None)


def _two_formats(name: str, found: list[tuple[int, str]], place: Callable[[int], str]) -> InputError:
    (row, word), (other_row, other) = found[:2]
    return InputError(
        f"column {name!r} has dates in two formats, {word!r} in {place(row)} and {other!r} in {place(other_row)}; write all of "
        "them as 2024-01-31, or leave the column out."
    )


def _day_first(name: str, words: list[str], cells: Any, place: Callable[[int], str], known: bool | None) -> bool | None:
    """Return whether days come before months; None where it is not clear which number is the day."""
    numbers = [tuple(map(int, word.split("/")[:2])) for word in words]
    day_first = next((word for word, (a, _) in zip(words, numbers, strict=True) if a > 12), None)
    month_first = next((word for word, (_, b) in zip(words, numbers, strict=True) if b > 12), None)
    if day_first and month_first:
        raise _two_formats(
            name, sorted((compute.index(cells, word).as_py(), word) for word in (day_first, month_first)), place
        )
    against = month_first if known else day_first
    if known is not None and against:
        order = "days before months" if known else "months before days"
        raise InputError(
            f"{{column}} holds {{value}} in {{row}}, and dates with {order} were expected",
            column=name,
            row=compute.index(cells, against).as_py(),
            value=against,
            hint="write dates as 2024-01-31",
        )
    return known if known is not None or not (day_first or month_first) else bool(day_first)


def moment(word: str) -> datetime | None:
    """Return the time that a single word says; None if it is no time, or the day may be the month."""
    form = _format(word)
    if form is None or form == "31/01/2024":
        return None
    try:
        if form == "2024-01-31":
            return _iso(word)
        return _parse(word, _READ[form])
    except ValueError:
        return None


def _parse(word: str, date: str) -> datetime:
    """Return the time that a word says; raise ValueError if it says none."""
    text = word.replace("T", " ")
    zone = _ZONE.search(text[10:])
    if zone:
        zoned = datetime.fromisoformat(f"2000-01-01 00:00{zone[0]}")
        return _parse(text[: -len(zone[0])], date).replace(tzinfo=zoned.tzinfo)
    for form in _CLOCKS:
        try:
            return datetime.strptime(text, date + form)
        except ValueError:
            continue
    raise ValueError(f"{word!r} is no date")


def _iso(word: str) -> datetime:
    try:
        return datetime.fromisoformat(word)
    except ValueError:  # one digit for a month or day
        return _parse(word, "%Y-%m-%d")


# Units of a length of time, longest first, and the seconds that each has.
_UNITS = (("years", 31_556_952.0), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def as_datetime(cell: Any) -> datetime | None:
    """Return a date, time, datetime or ISO 8601 text as a datetime; None for anything else."""
    if isinstance(cell, str):
        return datetime.fromisoformat(cell.strip())
    if isinstance(cell, datetime):
        return cell
    if isinstance(cell, clock):
        return datetime.combine(date(1970, 1, 1), cell)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    return None


def axis_of(times: np.ndarray) -> tuple[np.ndarray, bool]:
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
    return time_text(float(seconds_of(time))) if isinstance(time, np.datetime64) else str(time)


def length_text(seconds: float) -> str:
    """Return a length of time in the largest unit of which it has at least two."""
    name, unit = next(((name, unit) for name, unit in _UNITS if abs(seconds) >= 2.0 * unit), _UNITS[-1])
    number = f"{seconds / unit:.3g}"
    return f"{number} {name.removesuffix('s') if number == '1' else name}"
