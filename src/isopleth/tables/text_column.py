"""Column of text: its different texts, and what it is read as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from isopleth.core.errors import Message, quoted
from isopleth.tables.numerals import Numerals
from isopleth.tables.unread import CensoredCells, UnreadCells

# Least share of the known cells that are of one kind in a column of this kind. The others could not be read.
NEARLY_ALL = 0.8
# Different texts that are looked at before all of them are, and the least share of a kind among them.
LOOKED_AT, _LIKELY = 500, 0.5


@dataclass(frozen=True, eq=False)
class TypedCells:
    """Column of text as numbers, truth values, times or words, and what was not read so."""

    values: Any  # Arrow array, null where a cell is missing, could not be read, or says a limit
    unread: UnreadCells | None = None
    censored: CensoredCells | None = None
    notes: tuple[Message, ...] = ()  # what was recognised, with rows
    texts: Texts | None = None  # the different words of a column of words


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
class TextColumn:
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
        some = words[:: max(1, len(words) // LOOKED_AT)]  # from all parts of the column
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
