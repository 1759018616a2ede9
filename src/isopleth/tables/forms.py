"""Forms in which a column of text writes numbers, times and truth values, so that filled and made cells look like known ones.

A form is found from known cells and the values that were read from them, and checked: it must write the values back to the same
text. Where no form does so, values are written as Python and ISO 8601 write them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from isopleth.tables.dates import datetime_of

Form = Callable[[Any], str]
"""Function that writes a value as a cell."""

_MOST = 1000  # different known cells by which a form is found
_MOST_DECIMALS = 17  # more of them are digits of the binary number, not of the column


def form_of(texts: Iterable[str], values: Iterable[Any], *, day_first: bool | None = None) -> Form:
    """Return the form of the known cells of a column, given as texts and the values read from them.

    Numbers, Decimals, truth values, dates, datetimes (UTC or with their zone) and times of day have forms; other values are
    written by `str`.
    """
    pairs = _different(texts, values)
    kinds = {type(value) for _, value in pairs}
    if kinds == {bool}:
        return _truth_form(pairs)
    if kinds and all(issubclass(kind, (int, float, Decimal)) for kind in kinds):
        return _number_form(pairs)
    if kinds and all(issubclass(kind, (date, time)) for kind in kinds):
        return _time_form([(text, datetime_of(value)) for text, value in pairs], day_first)
    return plain


def plain(value: Any) -> str:
    """Write a value as Python does, times as ISO 8601 with a blank before the clock."""
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)


def _different(texts: Iterable[str], values: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return the first different texts with their values."""
    found: dict[str, Any] = {}
    for text, value in zip(texts, values, strict=True):
        if text is not None and value is not None and value == value:
            found.setdefault(text.strip(), value)
            if len(found) >= _MOST:
                break
    return list(found.items())


def _share(form: Form, pairs: Sequence[tuple[str, Any]]) -> float:
    """Return the share of known cells that a form writes as they are."""
    right = 0
    for text, value in pairs:
        with suppress(ValueError, ArithmeticError):
            right += form(value) == text
    return right / max(len(pairs), 1)


# ---- truth values -------------------------------------------------------------------------------------------------------


def _truth_form(pairs: Sequence[tuple[str, bool]]) -> Form:
    """Write truth values by the words of the column; a value without one as the other one is written."""
    words = {value: text for text, value in reversed(pairs)}
    for value in (True, False):
        other = words.get(not value, "")
        word = str(value)
        words.setdefault(value, word.upper() if other.isupper() else word if other.istitle() else word.lower())
    return lambda value: words[bool(value)]


# ---- numbers ------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"(?P<before>[^\d.,]*)(?P<digits>(?:\d|[.,](?=\d))(?:[\d.,'\u2019\s]*\d)?[.,]?)"
    r"(?:(?P<letter>[eE])(?P<sign>[-+]?)(?P<exponent>\d+))?(?P<after>\D*)",
)
_MINUS = "-\u2212\u2013"
_GROUPS = ("", ",", ".", " ", "\u00a0", "\u202f", "'", "\u2019")


@dataclass(frozen=True)
class _NumberForm:
    """Form of numbers: signs, digits, and what stands around them."""

    decimal: str  # sign before the decimals
    group: str  # sign between groups of three digits
    least: int  # decimals that every number has
    most: int  # decimals that a number may have
    before: str = ""  # what stands before every number, such as $
    after: str = ""  # what stands behind every number, such as %
    minus: tuple[str, str] = ("-", "")  # what marks a number below 0, before and behind it
    plus: str = ""  # what marks a number above 0
    letter: str = ""  # that begins an exponent
    signed: bool = True  # whether exponents above 0 have a sign
    width: int = 1  # digits of an exponent, or before the decimal sign, at least
    factor: Decimal = Decimal(1)  # value of what is written as 1

    def __call__(self, value: Any) -> str:
        exact = (value if isinstance(value, Decimal) else Decimal(repr(value))) / self.factor
        below = exact.is_signed() and exact != 0
        digits, exponent = abs(exact), ""
        if self.letter:
            power = digits.adjusted() if digits else 0
            mantissa = round(digits.scaleb(-power), self.most)
            if mantissa >= 10:
                power, mantissa = power + 1, mantissa / 10
            sign = "-" if power < 0 else "+" * self.signed
            digits, exponent = mantissa, f"{self.letter}{sign}{abs(power):0{self.width}d}"
        text = f"{round(digits, self.most):,f}"
        whole, _, part = text.partition(".")
        part = part.rstrip("0").ljust(self.least, "0")
        below = below and any(c in "123456789" for c in whole + part)
        whole = whole.replace(",", self.group if not self.letter else "")
        if not self.letter:
            whole = whole.zfill(self.width) if self.width else whole.removeprefix("0") if part else whole
        number = whole + (self.decimal + part if part else "") + exponent
        first, last = self.minus if below else (self.plus if exact > 0 else "", "")
        return f"{first}{self.before}{number}{self.after}{last}"


def exact(form: Form) -> Form:
    """Return the form with as many decimals as a number has; other forms than those of numbers as they are."""
    return replace(form, most=max(form.most, _MOST_DECIMALS)) if isinstance(form, _NumberForm) else form


def _number_form(pairs: Sequence[tuple[str, Any]]) -> Form:
    """Return the form that writes most known cells as they are."""
    found = [(match, value) for text, value in pairs if (match := _NUMBER.fullmatch(text))]
    if not found:
        return plain
    best: Form = plain
    most = 0.0
    forms: list[Form] = [*_number_forms(found), plain]
    for form in forms:
        if (share := _share(form, pairs)) > most:
            best, most = form, share
        if most == 1.0:
            break
    return best


def _number_forms(found: Sequence[tuple[re.Match[str], Any]]) -> Iterator[_NumberForm]:
    """Yield the forms that the known cells may have."""
    texts = "".join(match["digits"] for match, _ in found)
    for decimal in (".", ","):
        for group in (sign for sign in _GROUPS if sign != decimal and sign in texts):
            with suppress(ValueError, ArithmeticError):
                yield from _with_signs(found, decimal, group)


def _with_signs(found: Sequence[tuple[re.Match[str], Any]], decimal: str, group: str) -> Iterator[_NumberForm]:
    """Yield the forms in which matched numbers have their signs."""
    parts = []
    for match, value in found:
        digits = match["digits"].replace(group, "") if group else match["digits"]
        whole, _, part = digits.partition(decimal)
        parts.append((match, value, whole, part))
        if not (whole + part).isdigit():
            return
    above = [(m["before"], m["after"]) for m, value, _, _ in parts if value >= 0]
    below = [(m["before"], m["after"]) for m, value, _, _ in parts if value < 0]
    plus = "+" if above and all(before.startswith("+") for before, _ in above) else ""
    around = Counter(above or [(b.lstrip(_MINUS + "("), a.rstrip(_MINUS + ")")) for b, a in below]).most_common(1)[0][0]
    before, after = around[0].removeprefix(plus), around[1]
    match, value, whole, part = next((p for p in parts if p[1]), parts[0])
    written = Decimal(f"{whole or 0}.{part or 0}").scaleb(
        int(f"{match['sign']}{match['exponent']}") if match["letter"] else 0
    )
    exact = abs(value if isinstance(value, Decimal) else Decimal(repr(value)))
    factor = exact / written if written and abs(exact / written - 1) > Decimal("1e-12") else Decimal(1)
    lengths = [len(part) for *_, part in parts]
    form = _NumberForm(
        decimal, group, min(lengths), min(max(lengths), _MOST_DECIMALS), before, after, factor=factor, plus=plus
    )
    if below:
        first, last = Counter(below).most_common(1)[0][0]
        form = replace(form, minus=(first.removesuffix(before), last.removeprefix(after)))
    powers = [m for m, *_ in parts if m["letter"]]
    if powers:
        signed = all(m["sign"] for m in powers)
        form = replace(form, letter=powers[0]["letter"], signed=signed, width=min(len(m["exponent"]) for m in powers))
    elif any(len(whole) > 1 and whole.startswith("0") for _, _, whole, _ in parts):
        form = replace(form, width=min(len(whole) for _, _, whole, _ in parts))
    elif any(not whole for _, _, whole, _ in parts):
        form = replace(form, width=0)
    yield form
    if group == "" and len(set(lengths)) > 1:  # numbers that Python has written, such as 5.0 among 0.25
        yield replace(form, least=min(form.least, 1))


# ---- times --------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\d+|[AaPp]\.?[Mm]\b\.?|[^\W\d_]+|[\W_]")
_OFFSET = re.compile(r"(?<=\d)(?: ?)(?:Z|[-+]\d{2}(?::?\d{2})?)$")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _fraction(digits: int) -> Form:
    return lambda t: f"{t.microsecond:06d}000"[:digits]


def _name(part: str, case: Callable[[str], str], length: int | None) -> Form:
    return lambda t: case((_MONTHS[t.month - 1] if part == "m" else _DAYS[t.weekday()])[:length])


def _half(word: str) -> Form:
    return lambda t: word if t.hour < 12 else word.replace("A", "P").replace("a", "p")


def _fixed(text: str) -> Form:
    return lambda t: text


# Parts of a time that a number may say, those first that come first where a number may say several, and parts in words. Each
# has a name whose letters are the parts that it says.
_NUMBERED: dict[str, Form] = {
    "Y": lambda t: f"{t.year:04d}",
    "m": lambda t: f"{t.month:02d}",
    "d": lambda t: f"{t.day:02d}",
    "m1": lambda t: str(t.month),
    "d1": lambda t: str(t.day),
    "H": lambda t: f"{t.hour:02d}",
    "H1": lambda t: str(t.hour),
    "M": lambda t: f"{t.minute:02d}",
    "S": lambda t: f"{t.second:02d}",
    "H12": lambda t: f"{t.hour % 12 or 12:02d}",
    "H121": lambda t: str(t.hour % 12 or 12),
    "Y2": lambda t: f"{t.year % 100:02d}",
    "m3": lambda t: str((t.month + 2) // 3),
    "Ymd": lambda t: t.strftime("%Y%m%d"),
    "Ym": lambda t: t.strftime("%Y%m"),
    "HMS": lambda t: t.strftime("%H%M%S"),
    "HM": lambda t: t.strftime("%H%M"),
    "YmdHMS": lambda t: t.strftime("%Y%m%d%H%M%S"),
    "YmdHM": lambda t: t.strftime("%Y%m%d%H%M"),
    **{f"f{digits}": _fraction(digits) for digits in range(1, 10)},
}
_NAMED: dict[str, Form] = {
    f"{part}{case.__name__}{length}": _name(part, case, length)
    for part in "ma"
    for length in (3, None)
    for case in (str.title, str.lower, str.upper)
} | {f"p{word}": _half(word) for word in ("AM", "am", "a.m.", "A.M.", "Am")}


def _parts(name: str) -> set[str]:
    """Return the parts of a time that a field says, so that no part is written twice."""
    letters = re.sub(r"[0-9]", "", name)
    return set(letters) if name in _NUMBERED else {name[0]}


def _time_form(pairs: Sequence[tuple[str, datetime]], day_first: bool | None) -> Form:
    """Return the form of times: numbers and names of their parts between signs that are the same in every cell."""
    offsets = Counter(match[0] if (match := _OFFSET.search(text)) and ":" in text else "" for text, _ in pairs)
    offset = offsets.most_common(1)[0][0]
    cut = [
        (_TOKEN.findall(text.removesuffix(offset)), _of_offset(value, offset))
        for text, value in pairs
        if text.endswith(offset)
    ]
    lengths = Counter(len(tokens) for tokens, _ in cut)
    width = lengths.most_common(1)[0][0]
    alike = [(tokens, value) for tokens, value in cut if len(tokens) == width]
    fields = _fields(
        [[tokens[j] for tokens, _ in alike] for j in range(width)], [value for _, value in alike], day_first
    )
    if fields is None:
        return lambda value: plain(_of_offset(datetime_of(value), offset))
    return lambda value: "".join(field(_of_offset(datetime_of(value), offset)) for field in fields) + offset


def _of_offset(value: datetime, offset: str) -> datetime:
    """Return a time by the clock of an offset; one without a zone as it is."""
    if value.tzinfo is None:
        return value
    digits = re.sub(r"\D", "", offset).ljust(4, "0")
    minutes = 60 * int(digits[:2]) + int(digits[2:4])
    zone = timezone(timedelta(minutes=-minutes if "-" in offset else minutes)) if offset.strip(" Z") else UTC
    return value.astimezone(zone).replace(tzinfo=None) if offset else value.replace(tzinfo=None)


def _fields(columns: Sequence[Sequence[str]], values: Sequence[datetime], day_first: bool | None) -> list[Form] | None:
    """Return a field or a fixed text for each token; None where a token that differs from cell to cell is neither."""
    found: list[Form] = []
    used: set[str] = set()
    order = sorted(_NUMBERED, key=lambda name: not day_first or name not in ("Y", "d", "d1"))
    for tokens in columns:
        offered = {name: _NUMBERED[name] for name in order} if tokens[0].isdigit() else _NAMED
        said = next((name for name, field in offered.items() if _says(name, field, tokens, values, used)), None)
        if said is None and len(set(tokens)) > 1:
            return None
        found.append(_fixed(tokens[0]) if said is None else offered[said])
        used |= _parts(said) if said else set()
    return found if used else None


def _says(name: str, field: Form, tokens: Sequence[str], values: Sequence[datetime], used: set[str]) -> bool:
    """Tell whether a field says parts that no field before it says, and writes all tokens as they are."""
    return not _parts(name) & used and all(field(value) == token for token, value in zip(tokens, values, strict=True))
