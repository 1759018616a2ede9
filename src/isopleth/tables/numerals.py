"""Writing of numbers in a table: which sign is the decimal one, and which signs stand between groups of digits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import Hint, InputError
from isopleth.core.progress import Progress
from isopleth.tables.amounts import BLANKS, INDIAN, core_of

# A group sign may also be a blank or an apostrophe, as in 1 234,50 and 1'234.50.
_SIGN = re.compile(f"[,{BLANKS}]")
_WITH_SIGNS = re.compile(rf"[-+]?[\d.,{BLANKS}]*\d[\d.,{BLANKS}]*(?:[eE][-+]?\d+)?", re.ASCII)

# A decimal point that separates no group of three digits; one that does, and of these a last digit that decimals leave out.
_POINT = re.compile(r"[-+]?\d*\.(?:\d{1,2}|\d{4,})", re.ASCII)
_POINT_OF_THREE = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
_UP_TO_THREE = re.compile(r"[-+]?\d{1,3}", re.ASCII)


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
        return f"[{'.' if self.decimal == ',' else ','}{BLANKS}]"

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
    cells: Iterable[tuple[int, int, str]],
    source: object,
    decimal: str | None = None,
    where: str = "line",
    delimiter: str = ",",
) -> Numerals:
    """Recognise how a table writes numbers by some cells, each with its line and the number of its column.

    Cells that contradict each other, or can all be read in two ways, are refused.
    """
    if decimal is not None:
        if decimal not in (".", ","):
            raise InputError("{parameter} is {value}; expected '.' or ','.", parameter="decimal", value=decimal)
        return Numerals(decimal, grouped=True)
    evidence = _first_of_each(cells, delimiter == ",")
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
            f"{source}, {where} {line}: {text!r} may be {re.sub('[.,]', '', text)} or {text.replace(',', '.')}",
            value=text,
            hint=Hint("say which sign is the decimal one with {decimal}", decimal=...),
        )
    return Numerals()


def _first_of_each(cells: Iterable[tuple[int, int, str]], commas_cut: bool) -> dict[str, tuple[int, str]]:
    """Return the first cell, with its line, for each kind of evidence that a column of numbers gives."""
    columns: dict[int, dict[str, int]] = {}  # the first line of each text, by column
    for line, column, cell in cells:
        if text := cell.strip():
            columns.setdefault(column, {}).setdefault(text, line)
    found: dict[str, tuple[int, str]] = {}
    with Progress("forms of numbers", len(columns), verbose=False) as tick:
        for lines in columns.values():
            for sign, (line, text) in _of_column(lines, commas_cut).items():
                found[sign] = min(found.get(sign, (line, text)), (line, text))
            tick()
    return found


def _of_column(lines: dict[str, int], commas_cut: bool) -> dict[str, tuple[int, str]]:
    """Return the evidence of one column; a column of words, or of lists such as 2,2, gives none.

    Where commas cut the line into cells (`commas_cut`), a decimal comma is in most cells of its column.
    """
    cores = {text: core for text in lines if _WITH_SIGNS.fullmatch(core := core_of(text))}
    if 2 * len(cores) < len(lines) - 1:  # the name of the column may be among the texts
        return {}
    with_commas = sum("," in core for core in cores.values())
    few = commas_cut and 2 * with_commas < len(cores)
    listed = few and hold_lists(cores.values())
    found: dict[str, list[tuple[int, str]]] = {}
    for text, core in cores.items():
        if _POINT.fullmatch(core):
            found.setdefault("point", []).append((lines[text], core))
        elif _SIGN.search(core) and not (listed and "," in core):
            for sign in _evidence(core):
                if not (sign == "," and few):
                    found.setdefault(sign, []).append((lines[text], core))
    if doubtful := _points_of_groups(list(cores.values())):
        found.setdefault("?", []).extend((lines[text], core) for text, core in cores.items() if core == doubtful)
    points, commas = len(found.get(".", ())) + len(found.get("point", ())), len(found.get(",", ()))
    if 0 < min(points, commas) <= _RARE * max(points, commas):  # a mistyped one
        for sign in (".", "point") if points < commas else (",",):
            found.pop(sign, None)
    return {sign: cells[0] for sign, cells in found.items()}


def _points_of_groups(cores: list[str]) -> str | None:
    """Return a number whose point may separate thousands, as in 7.700 beside 5.841 and 656.

    A program that writes 656 without decimals would write 7.7, and one that writes 7.700 would write 656.000.
    """
    points = [core for core in cores if "." in core]
    others = [core for core in cores if "." not in core]
    if not 0 < len(others) <= len(points) or not all(map(_POINT_OF_THREE.fullmatch, points)):
        return None
    small = all(map(_UP_TO_THREE.fullmatch, others))
    return min((core for core in points if core.endswith("0")), default=None) if small else None


# Largest share of numbers with the other decimal sign that are mistyped.
_RARE = 0.1
# Numbers in lists are so many times larger than the others if their commas are left out.
_LIST_RATIO = 20


def hold_lists(texts: Iterable[str]) -> bool:
    """Tell whether most texts with commas are lists of the others, as 516,710 is beside 516 and 710, and no grouped numbers."""
    whole = {text for text in texts if text.isdigit()}
    lists = [text for text in texts if "," in text]
    if not whole or not lists:
        return False
    if sum(whole.issuperset(text.split(",")) for text in lists) * 2 < len(lists):
        return False
    values = [int(text.replace(",", "")) for text in lists if text.replace(",", "").isdigit()]
    grouped = all(re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+", text) for text in lists)
    return not grouped or min(values) >= _LIST_RATIO * max(map(int, whole))


def _evidence(text: str) -> list[str]:
    """Return which decimal sign a number shows: "?" where its comma can be either, "blank" where blanks alone group digits."""
    if INDIAN.fullmatch(text):
        return ["."]
    signs = [sign for sign in (".", ",") if re.match(Numerals(sign, grouped=True).pattern, text)]
    if len(signs) < 2:
        return signs
    if "," not in text:
        return ["blank"]
    return [","] if re.match(r"[-+]?0,", text) else ["?"]  # no group of thousands is 0
