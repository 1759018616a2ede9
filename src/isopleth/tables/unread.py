"""Cells of a column that could not be read, and cells that say a limit in the place of a value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from isopleth.core.errors import Hint, Message, listed
from isopleth.tables.amounts import is_below_detection

_SHOWN = 3  # cells of a column that a sentence shows
_MOST_WORDS = 3  # different words that an advice names
_OFTEN = 5  # cells with a word that stands for missing ones

Place = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class MarkedCells:
    """Some cells of a column, in ascending order of their rows."""

    rows: np.ndarray
    texts: tuple[str, ...]
    more: int = field(default=0, kw_only=True)

    def __len__(self) -> int:
        return len(self.rows) + self.more

    def at(self, places: np.ndarray) -> Self:
        """Return the cells at some places among them."""
        return replace(self, rows=self.rows[places], texts=tuple(self.texts[i] for i in places.tolist()))

    def take(self, rows: np.ndarray) -> Self:
        """Return the cells among chosen rows of the table."""
        place, hit = _found(self.rows, rows)
        return replace(self.at(place[hit]), rows=np.flatnonzero(hit), more=0)

    def first(self, most: int) -> Self:
        """Return the first cells, and how many others there are."""
        return replace(self.at(np.arange(len(self.rows))[:most]), more=self.more + len(self.rows[most:]))

    def below(self, other: Self | None, n_rows: int) -> Self:
        """Return the cells of a column of two tables, where those of the `other` one, of `n_rows` rows, come first."""
        moved = replace(self, rows=self.rows + n_rows)
        return moved if other is None else moved._behind(other)

    def _behind(self, other: Self) -> Self:
        """Return these cells behind those of an earlier table."""
        rows, texts = np.append(other.rows, self.rows), other.texts + self.texts
        return replace(self, rows=rows, texts=texts, more=other.more + self.more)


@dataclass(frozen=True, eq=False)
class UnreadCells(MarkedCells):
    """Cells of a column that are not of its kind: they count as missing.

    Parameters
    ----------
    rows : ndarray of int
        Their rows, counted from 0, in ascending order.
    texts : tuple of str
        What they hold.
    kind : str
        What the other cells are: "numbers", "times" or "truth values".
    asked : bool
        Whether the user or a fit says that the column is of this kind; otherwise nearly all other cells are.
    more : int
        Number of further cells of a long file of which only the first are kept.
    """

    kind: str
    asked: bool = False

    def from_row(self, row: int) -> Self:
        """Return the cells from a row on."""
        return self.at(np.flatnonzero(self.rows >= row))

    def without(self, texts: Collection[str]) -> Self:
        """Return the cells that hold other texts."""
        return self.at(np.flatnonzero([text not in texts for text in self.texts]))

    @property
    def wrong(self) -> Self:
        """The cells without those whose text has no digit and repeats, as "empty" does: such words stand for missing cells."""
        counts = Counter(self.texts)
        return self.at(np.flatnonzero([counts[text] < _OFTEN or any(map(str.isdigit, text)) for text in self.texts]))

    def shown(self, place: Place) -> str:
        """Return the first cells of different texts with their places."""
        firsts: dict[str, int] = {}
        for row, text in zip(self.rows.tolist(), self.texts, strict=True):
            if len(firsts) < _SHOWN:
                firsts.setdefault(text, row)
        cells = [f"{text!r} in {place(row)}" for text, row in firsts.items()]
        more = len(self) - len(cells)
        return ", ".join(cells) + (f" and {more:,} more such cell{'s' * (more > 1)}" if more else "")

    def packed(self) -> dict[str, Any]:
        """Return the cells as a dict that JSON can hold."""
        return {"rows": self.rows.tolist(), "texts": list(self.texts), "kind": self.kind, "asked": self.asked}

    @classmethod
    def unpacked(cls, held: Mapping[str, Any]) -> Self:
        """Return the cells of a dict that :meth:`packed` made."""
        return cls(np.array(held["rows"], dtype=np.intp), tuple(held["texts"]), held["kind"], held["asked"])


@dataclass(frozen=True, eq=False)
class CensoredCells(MarkedCells):
    """Cells that say a limit: the value is in an interval, as below a limit of detection (<0.5) or beyond a range (>2400).

    A likelihood takes F(upper) - F(lower) for it; `core/interval_cells.py` says who reads it.

    Parameters
    ----------
    rows : ndarray of int
        Their rows, counted from 0, in ascending order.
    texts : tuple of str
        What they hold.
    lower, upper : ndarray of float
        Ends of the interval of each cell: minus infinity and the limit, or the limit and infinity.
    more : int
        Number of further cells of a long file of which only the first are kept.
    declared : bool
        Whether the type of the column says that it holds intervals, so that nobody needs to be told.
    """

    lower: np.ndarray
    upper: np.ndarray
    declared: bool = False

    def at(self, places: np.ndarray) -> Self:
        """Return the cells at some places among them."""
        return replace(super().at(places), lower=self.lower[places], upper=self.upper[places])

    def _behind(self, other: Self) -> Self:
        """Return these cells behind those of an earlier table."""
        lower, upper = np.append(other.lower, self.lower), np.append(other.upper, self.upper)
        declared = self.declared and other.declared
        return replace(super()._behind(other), lower=lower, upper=upper, declared=declared)

    @property
    def limits(self) -> tuple[tuple[str, float], ...]:
        """Different limits, each with its side: ("below", 0.5) or ("above", 2400.0)."""
        below = {("below", end) for end in self.upper[np.isfinite(self.upper)].tolist()}
        return tuple(sorted(below | {("above", end) for end in self.lower[np.isfinite(self.lower)].tolist()}))

    def shown(self, place: Place) -> str:
        """Return the number of cells and the first one with its place."""
        others = f" and {len(self) - 1:,} more" if len(self) > 1 else ""
        return f"{self.texts[0]!r} in {place(int(self.rows[0]))}{others}"

    def packed(self) -> dict[str, Any]:
        """Return the cells as a dict that JSON can hold."""
        ends = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {"rows": self.rows.tolist(), "texts": list(self.texts)} | ends

    @classmethod
    def unpacked(cls, held: Mapping[str, Any]) -> Self:
        """Return the cells of a dict that :meth:`packed` made."""
        lower, upper = (np.array(held[name], dtype=np.float64) for name in ("lower", "upper"))
        return cls(np.array(held["rows"], dtype=np.intp), tuple(held["texts"]), lower, upper)


def _found(rows: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each chosen row its place among ascending rows, and a mask of those that are there."""
    chosen = np.asarray(chosen, dtype=np.intp)
    if not len(rows):
        return np.zeros(len(chosen), dtype=np.intp), np.zeros(len(chosen), dtype=bool)
    place = np.minimum(np.searchsorted(rows, chosen), len(rows) - 1)
    return place, rows[place] == chosen


@dataclass(frozen=True, eq=False)
class OddCells:
    """Cells of a table that are not as the others of their columns, by column."""

    unread: Mapping[Any, UnreadCells]
    censored: Mapping[Any, CensoredCells]

    def __len__(self) -> int:
        return len(self.unread) + len(self.censored)

    @property
    def rows(self) -> np.ndarray:
        """Rows that hold one of the cells, in ascending order."""
        found = [cells.rows for cells in self.unread.values()] + [cells.rows for cells in self.censored.values()]
        return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.intp)

    def take(self, rows: np.ndarray) -> Self:
        """Return the cells among chosen rows of the table."""
        unread = {name: cells.take(rows) for name, cells in self.unread.items()}
        censored = {name: limits.take(rows) for name, limits in self.censored.items()}
        return type(self)(
            {name: cells for name, cells in unread.items() if len(cells)},
            {name: limits for name, limits in censored.items() if len(limits)},
        )

    def of_columns(self, names: Mapping[Any, Any]) -> Self:
        """Return the cells of some columns, under the names that they are to have."""
        unread = {names[name]: cells for name, cells in self.unread.items() if name in names}
        censored = {names[name]: limits for name, limits in self.censored.items() if name in names}
        return type(self)(unread, censored)

    def first(self, most: int) -> Self:
        """Return the first cells of each column, and how many others there are."""
        unread = {name: cells.first(most) for name, cells in self.unread.items()}
        return type(self)(unread, {name: limits.first(most) for name, limits in self.censored.items()})

    def of_another_kind(self, known: Mapping[Any, int]) -> Self:
        """Return those of columns whose kind is said, but not shared by most cells; `known` counts cells that were read."""
        wrong = {name: cells for name, cells in self.unread.items() if cells.asked and len(cells) >= known[name]}
        return type(self)(wrong, {})

    def packed(self) -> dict[str, Any]:
        """Return the cells as a dict that JSON can hold."""
        return {
            "unread": {str(name): cells.packed() for name, cells in self.unread.items()},
            "censored": {str(name): cells.packed() for name, cells in self.censored.items()},
        }

    @classmethod
    def unpacked(cls, held: Mapping[str, Any]) -> Self:
        """Return the cells of a dict that :meth:`packed` made."""
        unread = {name: UnreadCells.unpacked(cells) for name, cells in held["unread"].items()}
        return cls(unread, {name: CensoredCells.unpacked(cells) for name, cells in held["censored"].items()})

    def notes(self, place: Place) -> list[Message]:
        """Return a sentence for each column: which of its cells count as missing."""
        head, others = self._head(place)
        said = [Message(f"{head}: its cells count as missing", hint="delete what is no row")] if head else []
        for name, cells in others.unread.items():
            count = f"{len(cells):,} cell{'s' * (len(cells) > 1)}"
            verb = "are" if len(cells) > 1 else "is"
            missing = f"count{'s' * (len(cells) == 1)} as missing: {cells.shown(place)}"
            kind = (
                cells.kind
                if len(cells) > 1
                else re.sub(r"^(dates|numbers|times|truth values)", lambda m: m[0][:-1], cells.kind)
            )
            text = f"{{column}}: {count} {verb} no {kind} and {missing}"
            how = f"correct {'them' if len(cells) > 1 else 'it'}"
            hint = Hint(f"{how}, or take the column as categories with {{categorical}}", categorical=[name])
            if any(map(is_below_detection, cells.texts)):
                way = "say the limit of the column with {detection_limits}, or take it as categories with {categorical}"
                hint = Hint(way, detection_limits=..., categorical=[name])
            said.append(Message(text, column=name, row=int(cells.rows[0]), value=cells.texts[0], hint=hint))
        for name, limits in self.censored.items():
            if limits.declared:
                continue
            count = f"{len(limits):,} cell{'s say limits' if len(limits) > 1 else ' says a limit'}"
            text = f"{{column}} holds numbers with limits: {count}, {limits.shown(place)}"
            hint = Hint("{categorical} takes the column as categories", categorical=[name])
            said.append(Message(text, column=name, row=int(limits.rows[0]), value=limits.texts[0], hint=hint))
        return said

    def _head(self, place: Place) -> tuple[str, Self]:
        """Return a sentence about first lines that hold the units of several columns or a second header, and the other cells."""
        depth = 0
        while True:
            here = [cells for cells in self.unread.values() if depth in cells.rows]
            if len(here) < 2 or 2 * len(here) < len(self.unread):
                break
            depth += 1
        if not depth:
            return "", self
        words = [repr(cells.texts[0]) for cells in self.unread.values() if cells.rows[0] == 0]
        where = place(0) if depth == 1 else f"{place(0)} to {place(depth - 1)}"
        verb = "holds" if depth == 1 else "hold"
        unread = {name: cells.from_row(depth) for name, cells in self.unread.items()}
        others = type(self)({name: cells for name, cells in unread.items() if len(cells)}, self.censored)
        return f"{where} {verb} units or a second header ({listed(words, 4)}) and no row", others


NO_ODD_CELLS = OddCells({}, {})


def behind(first: OddCells, second: OddCells, n_rows: int) -> OddCells:
    """Return the odd cells of two tables below each other, the first of which has `n_rows` rows."""
    unread = {name: cells.below(first.unread.get(name), n_rows) for name, cells in second.unread.items()}
    censored = {name: limits.below(first.censored.get(name), n_rows) for name, limits in second.censored.items()}
    return OddCells({**first.unread, **unread}, {**first.censored, **censored})


def refusal(found: Sequence[tuple[str, OddCells, Place]], *, categories: bool = True) -> Message | None:
    """Return the sentence about cells that could not be read in one table or several, with the ways out; None without any.

    Each table has its name, its cells, and its names for rows. With `categories`, the columns may be taken as categories.
    Cells that say a limit are not refused.
    """
    found = [(source, OddCells(cells.unread, {}), place) for source, cells, place in found if cells.unread]
    if not found:
        return None
    source, odd, _ = found[0]
    name = next(iter(odd.unread))
    first = odd.unread[name]
    about: dict[str, Any] = {"column": name, "row": int(first.rows[0]), "value": first.texts[0]}
    about["source"] = source if len(found) == 1 else None
    parts: list[str] = []
    left = []
    for source, cells, place in found:
        head, others = cells._head(place)
        said = [head] * bool(head) + _parts(others, place)
        parts += [f"{source}: {said[0]}" if len(found) > 1 else said[0], *said[1:]]
        left.append(others)
    if not any(map(len, left)):
        return Message("; ".join(dict.fromkeys(parts)), hint="delete what is no row", **about)
    end = _expected(first) if len(parts) == 1 else ""
    return Message("; ".join(dict.fromkeys(parts)) + end, hint=_advice(left, categories), **about)


_EXPECTED = {
    "numbers": "a number or an empty cell",
    "times": "a time such as 2024-01-31 12:00",
    "truth values": "a truth value or an empty cell",
}


def _expected(cells: UnreadCells) -> str:
    """Return what was expected in the place of cells of a single column."""
    if cells.kind.startswith("dates"):
        return f", and {cells.kind} were expected"
    return f"; expected {_EXPECTED[cells.kind]}" if cells.asked else f", and nearly all other cells are {cells.kind}"


def _parts(odd: OddCells, place: Place) -> list[str]:
    """Return what each column holds that is not of its kind."""
    alone = len(odd) == 1
    parts = []
    for name, cells in odd.unread.items():
        kind = "" if alone else f" ({cells.kind})"
        parts.append(f"column {str(name)!r}{kind} holds {cells.shown(place)}")
    return parts


def _advice(odd: Sequence[OddCells], categories: bool) -> Hint:
    """Return the ways out, in words that can be pasted into a shell."""
    unread = [cells for each in odd for cells in each.unread.values()]
    columns = list(dict.fromkeys(name for each in odd for name in each.unread))
    texts = [text for cells in unread for text in cells.texts]
    asked = any(cells.asked for cells in unread)
    words = list(dict.fromkeys(texts))
    if len(words) > _MOST_WORDS:
        words = [text for text, count in Counter(texts).items() if count >= _OFTEN and not any(map(str.isdigit, text))]
    settings: dict[str, Any] = {"bad_cells": "missing"}
    ways = ["correct them" if len(texts) > 1 else "correct it"] * bool(texts)
    ways.append("take them as missing with {bad_cells}" if len(texts) != 1 else "take it as missing with {bad_cells}")
    if 0 < len(words) <= _MOST_WORDS:
        ways[-1] += " or {missing}" if len(words) == len(set(texts)) else " (some of them with {missing})"
        settings["missing"] = words
    if any(map(is_below_detection, texts)):
        ways.append("say the limit of the column with {detection_limits}")
        settings["detection_limits"] = ...
    if asked:
        return Hint(" or ".join(ways), **settings)
    option = "categorical" if categories else "exclude"
    these = "the columns" if len(columns) > 1 else "the column"
    ways.append(
        f"take {these} as categories with {{categorical}}" if categories else f"leave {these} out with {{exclude}}"
    )
    settings[option] = [str(name) for name in columns]
    return Hint(f"{', '.join(ways[:-1])}, or {ways[-1]}", **settings)
