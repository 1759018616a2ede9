"""Words of a table that look like far more frequent words of their column: which ones, and how much that says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.tables.rules import Words
from isopleth.tables.spelling import case_forms, meant_words


@dataclass(frozen=True, eq=False)
class WordForms:
    """Words that may be wrong forms of others, by the name of the column and the code of the word."""

    meant: dict[str, dict[int, list[int]]]  # codes of the words that it may be, the most frequent first
    nats: dict[
        str, np.ndarray
    ]  # (k + 1,): what a form that differs in case or spaces only says; 0 for gaps and new words

    @classmethod
    def of(cls, cells: Mapping[str, Any]) -> Self:
        """Look for the forms among the words of a table; one adds the logarithm of the rows of the other over its own."""
        meant, nats = {}, {}
        for name, words in cells.items():
            if isinstance(words, Words):
                counts = np.bincount(words.codes[words.known], minlength=len(words.levels))
                meant[name] = meant_words(words.levels, counts)
                nats[name] = np.zeros(len(words.levels))
                for code, right in case_forms(words.levels, counts).items():
                    nats[name][code] = np.log(counts[right] / counts[code])
        return cls(meant, nats)

    def told(self, names: Sequence[str], cells: Mapping[str, Any], n: int) -> np.ndarray:
        """Return what the forms say against each cell, in nats, (n, d)."""
        out = np.zeros((n, len(names)))
        for name, nats in self.nats.items():
            out[:, names.index(name)] = nats[cells[name].codes]
        return out

    def __contains__(self, cell: tuple[str, int]) -> bool:
        """Return whether a word of a column, by its code, may be another one."""
        name, code = cell
        return code in self.meant.get(name, {})
