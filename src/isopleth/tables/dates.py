"""Dates, months, quarters, weeks, instants and times of day as people write them, one cell at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache

from isopleth.tables.zones import zone_named

# Names of the months in English, German, French and Spanish, by their first letters.
_MONTHS = (
    "jan january januar jänner janv janvier ene enero",
    "feb february februar fev fév févr février febrero",
    "mar march mär mrz märz mars marzo",
    "apr april avr avril abr abril",
    "may mai mayo",
    "jun june juni juin junio",
    "jul july juli juil juillet julio",
    "aug august août aou ago agosto",
    "sep sept september septembre septiembre",
    "oct october okt oktober octobre octubre",
    "nov november novembre noviembre",
    "dec december dez dezember déc décembre dic diciembre",
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
# Pattern of the name of a month, of any language above.
MONTH_NAME = "(?:" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + ")"
_NAME = r"(?P<name>[^\W\d_]{3,10})\.?"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\.?,? +)?"
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?(?:\s?(?P<half>[ap])\.?m\.?)?",
    re.ASCII | re.I,
)
_HALF = re.compile(r"(?P<hour>\d{1,2})(?P<minute>)(?P<second>)(?P<fraction>)\s?(?P<half>[ap])\.?m\.?", re.ASCII | re.I)
_PIVOT = 69  # two digits below it are years of this century, as POSIX has it


@dataclass(frozen=True)
class _DateForm:
    """Way to write a date, known by an example."""

    example: str
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str]], date]


def _named(match: re.Match[str]) -> int:
    """Return the number of the month that a match names."""
    number = _MONTH_OF.get(match["name"].lower())
    if number is None:
        raise ValueError(f"{match['name']!r} is no month")
    return number


def _year(digits: str) -> int:
    return int(digits) if len(digits) > 2 else int(digits) + (2000 if int(digits) < _PIVOT else 1900)


def _numbered(match: re.Match[str]) -> date:
    return date(int(match["y"]), int(match["m"]), int(match["d"]))


def _by_name(match: re.Match[str]) -> date:
    return date(_year(match["y"]), _named(match), int(match["d"]))


def _first_of_month(match: re.Match[str]) -> date:
    month = int(match["m"]) if "m" in match.groupdict() else _named(match)
    return date(int(match["y"]), month, 1)


def _quarter(match: re.Match[str]) -> date:
    return date(int(match["y"]), 3 * int(match["q"]) - 2, 1)


def _week(match: re.Match[str]) -> date:
    return date.fromisocalendar(int(match["y"]), int(match["w"]), int(match["d"] or 1))


def _form(example: str, pattern: str, read: Callable[[re.Match[str]], date]) -> _DateForm:
    return _DateForm(example, re.compile(pattern, re.I), read)


_Y, _M, _D = r"(?P<y>[0-9]{4})", r"(?P<m>[0-9]{1,2})", r"(?P<d>[0-9]{1,2})"
SLASHES = "31/01/2024"  # the form in which the day may be the month
FORMS = {
    form.example: form
    for form in (
        _form("2024-01-31", f"{_Y}-{_M}-{_D}", _numbered),
        _form("2024/01/31", f"{_Y}/{_M}/{_D}", _numbered),
        _form("31.01.2024", rf"{_D}\.{_M}\.{_Y}", _numbered),
        _form("31.01.24", rf"{_D}\.{_M}\.(?P<y>[0-9]{{2}})", lambda m: date(_year(m["y"]), int(m["m"]), int(m["d"]))),
        _form(SLASHES, rf"{_D}(?P<sign>[/-]){_M}(?P=sign){_Y}", _numbered),
        _form("20240131", r"(?P<y>[0-9]{4})(?P<m>[0-9]{2})(?P<d>[0-9]{2})", _numbered),
        _form(
            "31 Jan 2024", rf"{_WEEKDAY}{_D}\.?(?:st|nd|rd|th)?[ -]?{_NAME}[ ,-]*(?P<y>[0-9]{{4}}|[0-9]{{2}})", _by_name
        ),
        _form("31/Jan/2024", f"{_D}/{_NAME}/{_Y}", _by_name),  # of access logs
        _form("Jan 31, 2024", rf"{_WEEKDAY}{_NAME} ?{_D}(?:st|nd|rd|th)?,? +{_Y}", _by_name),
        _form("2024-Jan-31", rf"{_Y}[ -]{_NAME}[ -]{_D}", _by_name),
        _form("2024-01", rf"{_Y}[-/](?P<m>[0-9]{{2}})", _first_of_month),
        _form("2024M01", rf"{_Y}[- ]?M{_M}", _first_of_month),
        _form("01/2024", rf"{_M}[/.-]{_Y}", _first_of_month),
        _form("Jan 2024", rf"{_NAME}[ ,/-]*{_Y}", _first_of_month),
        _form("2024 Jan", rf"{_Y}[ /-]?{_NAME}", _first_of_month),
        _form("2024Q1", rf"{_Y}[- ]?Q(?P<q>[1-4])", _quarter),
        _form("Q1 2024", rf"Q(?P<q>[1-4])[ /-]?{_Y}", _quarter),
        _form("2024-W05", rf"{_Y}-?W(?P<w>[0-9]{{2}})(?:-?(?P<d>[1-7]))?", _week),
    )
}
CLOCK = "13:45"  # the form of times of day alone
# Access logs have a colon between the day and the time of day: 31/Jan/2024:13:45:00 +0100.
_CUT = re.compile(r"(?:(?<=[0-9A-Za-z.])(?:T|,? +)|(?<=[a-z.]/[0-9]{4}):)(?=\d{1,2}(?::| ?[ap]\.?m))", re.I)
# Zones by the letters of which everybody means the same, and those of North America as in e-mail (RFC 5322).
_HOURS = {
    **dict.fromkeys(("Z", "UTC", "GMT", "WET"), 0),
    **{"CET": 1, "WEST": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11},
    **{"NZST": 12, "NZDT": 13, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7},
}
_ZONE = re.compile(
    r"(?P<offset>(?: ?(?:UTC|GMT))? ?[-+]\d{2}(?::?\d{2})?)?(?:\s?\[(?P<inside>[A-Za-z_+/-]+)\])?"
    r"(?P<letters>\s?(?:Z|[A-Z]{3,4}))?(?P<place>\s[A-Z][A-Za-z_]+/[A-Za-z_+/-]+)?$"
)


@dataclass(frozen=True)
class Moment:
    """Time that a cell says, and the form in which it is written."""

    form: str  # example of the date, or CLOCK
    value: datetime | time
    zoned: bool = False

    @property
    def kind(self) -> tuple[str, bool]:
        """Properties that all times of a column share."""
        return self.form, self.zoned


def moment_of(text: str, day_first: bool | None = None) -> Moment | None:
    """Return the time that a cell says, None for other text; where the day may be the month, as `day_first` says."""
    if not any(c.isdigit() for c in text[:12]):
        return None
    try:
        return _moment(text, day_first)
    except (ValueError, OverflowError):
        return None


def form_of(text: str) -> str | None:
    """Return the form in which a time is written, whatever the order of day and month."""
    found = moment_of(text, True) or moment_of(text, False)
    return None if found is None else found.form


def _moment(text: str, day_first: bool | None) -> Moment | None:
    """Return the moment that a text says, None if it says none."""
    if _CLOCK.match(text) or _HALF.match(text):
        clock, zone = _clock_and_zone(text)
        return None if clock is None or zone is not None else Moment(CLOCK, clock)
    cut = _CUT.search(text)
    day, rest = (text[: cut.start()], text[cut.end() :]) if cut else (text, "")
    for form in FORMS.values():
        match = form.pattern.fullmatch(day)
        if match is None:
            continue
        found = _day(form, match, day_first)
        if found is None:
            return None
        if not rest:
            return Moment(form.example, datetime(found.year, found.month, found.day))
        clock, zone = _clock_and_zone(rest)
        if clock is None:
            return None
        value = datetime.combine(found, clock)
        return Moment(form.example, value if zone is None else _in_zone(value, zone), zone is not None)
    return None


def _day(form: _DateForm, match: re.Match[str], day_first: bool | None) -> date | None:
    """Return the day of a match; of dates with slashes in the order that is given."""
    if form.example != SLASHES:
        return form.read(match)
    if day_first is None:
        return None
    day, month = (match["d"], match["m"]) if day_first else (match["m"], match["d"])
    return date(int(match["y"]), int(month), int(day))


def _clock_and_zone(text: str) -> tuple[time | None, tzinfo | None]:
    """Return the time of day and the zone behind it; no time where the text says none."""
    match = _HALF.match(text) or _CLOCK.match(text)
    if match is None:
        return None, None
    rest = text[match.end() :]
    zone = _zone(rest) if rest.strip() else None
    if rest.strip() and zone is None:
        return None, None
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            return None, None
        hour = hour % 12 + 12 * (match["half"].lower() == "p")
    micro = int((match["fraction"] or "0").ljust(6, "0")[:6])
    return time(hour, int(match["minute"] or 0), int(match["second"] or 0), micro), zone


@lru_cache(maxsize=256)
def _zone(text: str) -> tzinfo | None:
    """Return the zone that stands behind a time; None where it is unknown, or its letters mean several zones."""
    match = _ZONE.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    if match["offset"]:
        digits = re.sub(r"[^-+\d]", "", match["offset"])
        minutes = 60 * int(digits[1:3]) + int(digits[3:5] or 0)
        return timezone(timedelta(minutes=-minutes if digits[0] == "-" else minutes))
    letters = (match["letters"] or "").strip()
    if letters:
        return timezone(timedelta(hours=_HOURS[letters])) if letters in _HOURS else None
    return zone_named((match["inside"] or match["place"]).strip())


def _in_zone(value: datetime, zone: tzinfo) -> datetime:
    """Return a time of a zone, whose offset is fixed there."""
    aware = value.replace(tzinfo=zone)
    offset = aware.utcoffset()
    return aware if offset is None else value.replace(tzinfo=timezone(offset) if offset else UTC)


def datetime_of(value: date | time) -> datetime:
    """Return a date or a time of day as a datetime."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, time):
        return datetime.combine(date(1970, 1, 1), value)
    return datetime(value.year, value.month, value.day)


def order_of_days(text: str) -> bool | None:
    """Return whether the day comes first in a date with slashes; None where it is not clear or no such date."""
    match = FORMS[SLASHES].pattern.match(text)
    if match is None:
        return None
    first, second = int(match["d"]), int(match["m"])
    return True if first > 12 else False if second > 12 else None


_SEASON = re.compile(r"([0-9]{4})[-/]([0-9]{2})")


def is_season(text: str) -> bool:
    """Tell whether two years follow each other, as in 2011-12, which is no December if all cells are so."""
    match = _SEASON.fullmatch(text)
    return match is not None and (int(match[1]) + 1) % 100 == int(match[2])


_FORMS_OF_DIGITS = (("20240131", 18000101, 22991231, 5), ("202401", 180001, 229912, 6))


def calendar_form(days: list[int]) -> str | None:
    """Return the form in which distinct whole numbers are days ("20240131") or months ("202401"); None for too few of them.

    Of eight digits chosen at random one in thirty is a day of these centuries, and of six digits one in eight is a month.
    """
    for form, low, high, fewest in _FORMS_OF_DIGITS:
        if len(days) >= fewest and all(low <= day <= high for day in days):
            return form if form == "20240131" or len({day // 100 for day in days}) > 1 else None
    return None


def calendar_share(values: list[int]) -> bool:
    """Tell whether most whole numbers are days or months."""
    return bool(values) and 2 * sum(calendar_day(value) is not None for value in values) >= len(values)


def calendar_day(value: int) -> date | None:
    """Return the day that a whole number such as 20240131 or 202401 means; None if it means none of these centuries."""
    if not any(low <= value <= high for _, low, high, _ in _FORMS_OF_DIGITS):
        return None
    year, month, day = (
        (value // 10_000, value // 100 % 100, value % 100) if value > 999_999 else (*divmod(value, 100), 1)
    )
    try:
        return date(year, month, day)
    except ValueError:
        return None
