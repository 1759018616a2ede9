"""New rows that are certain in bulk: the table differs from the reference as a whole, often by one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from isopleth.tasks.anomaly.explanation import Explanation

# Shares of new rows that are certain from which the table differs as a whole, and a column is looked for that decides.
MANY, SOME = 0.5, 0.1
# Certain rows, drawn evenly, whose columns are looked at; fewest of them; share of them that a column decides.
_DRAWN, _FEWEST, _NEARLY_ALL = 32, 10, 0.9


class DecidingColumn(NamedTuple):
    """Column that alone makes nearly all certain rows unlikely, and how many of the rows that were looked at."""

    name: str
    rows: int
    of: int


def rows_to_explain(certain: np.ndarray) -> np.ndarray:
    """Return positions of certain rows, spread over the table, from which a deciding column is found; none if few are certain."""
    rows = np.flatnonzero(certain)
    if len(rows) < max(_FEWEST, SOME * len(certain)):
        return rows[:0]
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), _DRAWN)).round().astype(int)]


def deciding_column(explanation: Explanation, names: list[str]) -> DecidingColumn | None:
    """Return the column with the largest surprise in nearly all rows of an explanation, by its name; None without one."""
    surprise = np.stack([explanation.surprise(i) for i in range(len(explanation))])
    alone = surprise.max(axis=1) > 0.0
    count = np.bincount(surprise.argmax(axis=1)[alone], minlength=len(names))
    j = int(count.argmax())
    if count[j] < _NEARLY_ALL * len(explanation):
        return None
    return DecidingColumn(names[j], int(count[j]), len(explanation))


def sentences(certain: np.ndarray, column: DecidingColumn | None) -> list[str]:
    """Return what is said before all else where most rows are certain, or one column decides; nothing for other tables."""
    number, n = int(certain.sum()), len(certain)
    said = []
    if number > MANY * n:
        said.append(
            f"{number:,} of {n:,} new rows are certain: the table differs from the reference as a whole, so that its single "
            "rows say little; two_sample_test (isopleth compare) says in what."
        )
    if column is not None:
        said.append(
            f"Column {column.name!r} alone decides: it explains {column.rows} of {column.of} certain rows that were looked at. "
            "If it only repeats which table a row is from, as dates and counters do, or holds a wrong cell in the reference, "
            "fit without it (--exclude)."
        )
    return said
