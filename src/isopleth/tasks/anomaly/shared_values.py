"""Values that several unlikely rows share: rows of one large town, which no other row is like, are one observation of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isopleth.core.budget import Budget
from isopleth.core.rows import sample_places
from isopleth.results.text import cell_text
from isopleth.tasks.anomaly.training_table import NEW, TrainingTable, WithConstants

if TYPE_CHECKING:
    from isopleth.tasks.anomaly.pooled_rule import PooledRule
    from isopleth.tasks.anomaly.reference_rule import ReferenceRule

# Fewest unlikely rows of a value, and their least share of all rows of it, for the value to decide about these rows.
_FEWEST, _SHARE = 5, 0.5
# Share of the rows before a gap that have a value, for a sentence to name it; rows among which the value is counted.
_NAMED, _COMPARED = 0.8, 20_000


@dataclass(frozen=True)
class SharedValues:
    """Values of single columns that most of their rows, and several, are unlikely by; and what stands in their place.

    Tail shares judge rows as independent. Rows with one far value in common are far together, for one reason. They are judged
    once more without the value: by the other columns, with a gap, or the most frequent word, in the place of the value.
    """

    columns: np.ndarray  # (k,): column of each value
    values: np.ndarray  # (k,): the values, in the frame of the rule
    instead: np.ndarray  # (k,): what replaces each

    @classmethod
    def of(cls, table: TrainingTable, unlikely: np.ndarray) -> Self:
        """Find the values among distinct training rows, `unlikely` being a mask of these rows."""
        found: list[tuple[int, float, float]] = []
        numeric = table.categories.n_numeric
        for j in range(table.rows.shape[1]) if unlikely.sum() >= _FEWEST else ():
            x = table.rows[:, j]
            values, counts = _counted(x[unlikely], table.copies[unlikely])
            for value in values[counts >= _FEWEST]:
                if counts[values == value][0] >= _SHARE * table.copies[x == value].sum():
                    word = float(np.argmax(table.categories.weights[j - numeric])) if j >= numeric else np.nan
                    found.append((j, float(value), word))
        columns, values, instead = np.array(found, dtype=np.float64).reshape(-1, 3).T
        return cls(columns.astype(np.intp), values, instead)

    def scores(
        self, rule: PooledRule | ReferenceRule | WithConstants, rows: np.ndarray, scores: np.ndarray, budget: Budget
    ) -> np.ndarray:
        """Return the scores of rows without such values, where these are higher."""
        held = rows[:, self.columns] == self.values
        some = np.flatnonzero(held.any(axis=1))
        if not len(some):
            return scores
        without = rows[some]
        for column, instead, has in zip(self.columns, self.instead, held[some].T, strict=True):
            without[has, column] = instead
        out = scores.copy()
        found = -rule.surprises(without, np.full(len(some), NEW), budget).sum(axis=1)
        out[some] = np.maximum(scores[some], found)
        return out


def _counted(x: np.ndarray, copies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct known values and the number of rows of each."""
    known = ~np.isnan(x)
    values, place = np.unique(x[known], return_inverse=True)
    return values, np.bincount(place, weights=copies[known], minlength=len(values))


def sentence(names: list[str], values: Any, rows: np.ndarray) -> list[str]:
    """Return the sentence on the value that nearly all of some rows, the first of a list, and few other rows have."""
    if len(rows) < _FEWEST:
        return []
    cells, others = values[rows], values[sample_places(len(values), _COMPARED)]
    for j, name in enumerate(names):
        word, count = Counter(cell_text(cell) for cell in cells[:, j]).most_common(1)[0]
        value = next(cell for cell in cells[:, j] if cell_text(cell) == word)
        share = np.mean([cell == value for cell in others[:, j]])
        if count >= _NAMED * len(rows) and share * len(values) * _SHARE <= count:
            which = f"All {count:,}" if count == len(rows) else f"{count:,} of them"
            return [
                f"{which} have {name} {word}, as hardly any other row: that is one reason, and not as many anomalies."
            ]
    return []
