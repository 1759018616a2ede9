"""Numbers as people write them: with brackets, signs behind them, currencies, units, multiples, or a limit such as <0.5."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# Signs between groups of digits, besides the comma or point.
BLANKS = "\u00a0\u2009\u202f '\u2019"
_MINUS = r"\-\u2212\u2013"
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|SGD|HKD|KRW|TRY|RUB|ILS"
CURRENCY = rf"(?:[A-Z]{{0,2}}[$\u20ac\u00a3\u00a5\u20b9]|{_CODES}|Rs\.?)"
# Prefixes of units as powers of ten, and the units that take them.
_PREFIXES = {"p": -12, "n": -9, "u": -6, "m": -3, "c": -2, "d": -1, "": 0, "h": 2, "k": 3, "M": 6, "G": 9}
_PREFIXED = re.compile(
    rf"(?P<prefix>[{''.join(_PREFIXES)}]?)(?P<base>g|m|l|L|mol|eq|s|A|V|W|Wh|J|cal|Pa|bar|Hz|Bq|Sv|Gy|S|\u03a9)"
)
# A unit is one short word, or one such as km/h and m2; longer words stand apart from their number.
_UNIT = (
    r"(?:[%\u2030]|\u00b0? ?[A-Za-z\u00b5\u03bc\u03a9]{1,4}(?:/[A-Za-z]{1,4})?[23\u00b2\u00b3]?|\u00b0|[A-Za-z]{5,12})"
)
_MULTIPLES = {"k": 1e3, "K": 1e3, "M": 1e6, "mn": 1e6, "Mio": 1e6, "B": 1e9, "bn": 1e9}
_DECORATED = re.compile(
    rf"(?P<limit>[<>]=?|[\u2264\u2265])?\s*(?P<open>\()?\s*(?P<sign>[+{_MINUS}])?\s*(?P<before>{CURRENCY})?\s*"
    rf"(?P<late>[+{_MINUS}])?(?P<core>[0-9.,{BLANKS}]*[0-9][.,]?(?:[eE][-+]?[0-9]+)?)"
    rf"(?P<gap>\s*)(?P<after>{CURRENCY}|{_UNIT})?(?P<trail>[{_MINUS}])?\s*(?P<close>\))?"
)
INDIAN = re.compile(r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?")
_CODE = re.compile(r"0[0-9]")  # 007 is a code, and no number
_BELOW = re.compile(
    r"(?:<? ?)(?:bdl|b\.d\.l\.|lod|loq|bql|blq|dl|mdl|nd|n\.d\.|not detected|below detection(?: limit)?)", re.I
)


@dataclass(frozen=True)
class Amount:
    """Number in a cell: its value, what stands beside it, and the side on which it is a limit."""

    value: float
    before: str = ""
    after: str = ""
    side: str = ""  # "below" for <0.5, "above" for >2400

    @property
    def unit(self) -> tuple[str, str]:
        """Signs before and behind the number, which all cells of a column share."""
        return self.before, self.after


def core_of(text: str) -> str:
    """Return the digits and signs of an amount, by which its decimal sign is recognised; other text as it is."""
    found = _DECORATED.fullmatch(text)
    return text if found is None else found["core"]


@lru_cache(maxsize=8)
def _plain(decimal: str) -> re.Pattern:
    """Return the pattern of digits in groups with a decimal sign."""
    group, point = f"[{'.' if decimal == ',' else ','}{BLANKS}]", re.escape(decimal)
    whole = rf"(?:[0-9]+|[0-9]{{1,3}}(?:{group}[0-9]{{3}})+)"
    return re.compile(rf"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?")


def amount_of(text: str, decimal: str = ".") -> Amount | None:
    """Return the number that a cell says with certainty, None for other text."""
    found = _DECORATED.fullmatch(text)
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    if sum(bool(found[name]) for name in ("open", "sign", "late", "trail")) > 1 or (
        found["before"] and found["after"] and found["after"] not in _MULTIPLES
    ):
        return None
    core = found["core"]
    if decimal == "." and INDIAN.fullmatch(core):
        digits = core.replace(",", "")
    elif _plain(decimal).fullmatch(core):
        digits = re.sub(f"[{'.' if decimal == ',' else ','}{BLANKS}]", "", core).replace(",", ".")
    else:
        return None
    after = found["after"] or ""
    long = len(after) > 4 and after.isalpha()
    if (long and not found["gap"]) or (after and _CODE.match(digits)):
        return None
    if found["after"] and after not in _MULTIPLES and core[-1] in ".,":  # in 85,l the unit is a digit that was misread
        return None
    minus = found["open"] or found["trail"] or (found["sign"] or found["late"] or "+") != "+"
    value = float(digits) * _MULTIPLES.get(after, 1.0)
    side = "" if not found["limit"] else "below" if found["limit"][0] in "<\u2264" else "above"
    return Amount(-value if minus else value, found["before"] or "", "" if after in _MULTIPLES else after.strip(), side)


def unit_factor(unit: str, other: str) -> float | None:
    """Return how many of another unit one of a unit is, if prefixes alone differ, as in mg and kg; None otherwise."""
    found, parts = 0, [re.split("/", each.replace("\u00b5", "u").replace("\u03bc", "u")) for each in (unit, other)]
    if len(parts[0]) != len(parts[1]):
        return None
    for k, (one, two) in enumerate(zip(*parts, strict=True)):
        if one == two:
            continue
        first, second = _PREFIXED.fullmatch(one), _PREFIXED.fullmatch(two)
        if first is None or second is None or first["base"].replace("l", "L") != second["base"].replace("l", "L"):
            return None
        found += (_PREFIXES[first["prefix"]] - _PREFIXES[second["prefix"]]) * (-1) ** k
    return 10.0**found


def is_below_detection(text: str) -> bool:
    """Tell whether a word says that a measured value is below a limit of detection."""
    return bool(_BELOW.fullmatch(text))
