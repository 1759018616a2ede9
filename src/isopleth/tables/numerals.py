"""Number format of a text table: the decimal sign, and the sign between groups of three digits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from isopleth.errors import Hint, InputError

# A group sign may also be a blank or an apostrophe, as in 1 234,50 and 1'234.50.
_BLANKS = "\u00a0\u202f '"
_SIGN = re.compile(f"[,{_BLANKS}]")
_WITH_SIGNS = re.compile(rf"[-+]?[\d.,{_BLANKS}]*\d[\d.,{_BLANKS}]*(?:[eE][-+]?\d+)?", re.ASCII)

# A decimal point that separates no group of three digits.
_POINT = re.compile(r"[-+]?\d*\.(?:\d{1,2}|\d{4,})", re.ASCII)


@dataclass(frozen=True)
class Numerals:
    """Writing of numbers.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal sign.
    grouped : bool
        Whether digits may stand in groups of three, as in 1,234.5 or 1.234,5.

    Examples
    --------
    >>> Numerals(",", True).plain("-1.234,50"), Numerals(",", True).plain("1.5")
    ('-1234.50', None)
    """

    decimal: str = "."
    grouped: bool = False

    @property
    def ordinary(self) -> bool:
        """True if Python reads the numbers as they are."""
        return self.decimal == "." and not self.grouped

    @cached_property
    def pattern(self) -> str:
        """Regular expression of a number, for Python and Arrow alike."""
        group = f"[{'.' if self.decimal == ',' else ','}{_BLANKS}]"
        whole = rf"(?:[0-9]+|[0-9]{{1,3}}(?:{group}[0-9]{{3}})+)" if self.grouped else "[0-9]+"
        point = re.escape(self.decimal)
        return rf"^[-+]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?$"

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def plain(self, cell: str) -> str | None:
        """Return a number as Python writes it; None where digits and signs stand in another order.

        Words are returned as they are.
        """
        if self.ordinary:
            return cell
        text = cell.strip()
        if not self._compiled.match(text):
            return None if _WITH_SIGNS.fullmatch(text) else cell
        return re.sub(rf"[{'.' if self.decimal == ',' else ','}{_BLANKS}]", "", text).replace(",", ".")

    def plain_array(self, cells: Any) -> Any:
        """Return Arrow strings with numbers as Python writes them, if all cells are numbers.

        Raises
        ------
        pyarrow.ArrowInvalid
            If some cell is none.
        """
        if self.ordinary:
            return cells
        import pyarrow as pa
        import pyarrow.compute as compute

        if not compute.all(compute.match_substring_regex(cells, self.pattern), min_count=0).as_py():
            raise pa.ArrowInvalid("a cell that is no number")
        group = f"[{'.' if self.decimal == ',' else ','}{_BLANKS}]"
        bare = compute.replace_substring_regex(cells, group, "")
        return compute.replace_substring(bare, ",", ".")


def numerals_of(
    cells: Iterable[tuple[int, str]], source: object, decimal: str | None = None, where: str = "line"
) -> Numerals:
    """Recognise how a table writes numbers by some of its cells.

    Parameters
    ----------
    cells : iterable of (int, str)
        Cells, each with its line.
    source : object
        The file, for messages.
    decimal : {".", ","}, optional
        The decimal sign, if it is known.
    where : str, default="line"
        What the numbers of the cells count, for messages.

    Returns
    -------
    Numerals

    Raises
    ------
    InputError
        If cells contradict each other ("1,5" and "1,234.5"), or if all can be read in two ways ("1,234").
    """
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
