"""Result of a search for anomalies: scores, p-values and flags of the rows of a table."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.results import Result, cell_text, counted
from isopleth.tasks.anomaly.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Anomalies(Result):
    """Scores, p-values and flags of the rows of a table; result of :meth:`AnomalyDetector.anomalies`.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    values : ndarray of shape (n, d)
        The rows, as numbers or as words and numbers.
    scores : ndarray of shape (n,)
        Higher is more normal.
    p_values : ndarray of shape (n,)
        p-values of the rows.
    labels : ndarray of shape (n,), int
        -1 for flagged rows, 1 for all others.
    certain : ndarray of shape (n,), bool
        Rows that are selected with control of the false discovery rate.
    fdr : float
        That false discovery rate.
    rule : str
        What a flag means, in a few words.
    places : dict of str to ndarray of shape (n,)
        Columns that say where the rows stand: by default "row", counted from 0.
    explanation : Explanation, optional
        Which columns make some rows unlikely.
    explained_rows : ndarray of shape (k,), int, optional
        Positions of those rows.
    drawn : tuple of ndarray and two lists of str, optional
        Columns of numbers for pictures, with missing cells filled, their names, and those of the names whose columns hold times,
        in seconds since 1970.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[7] = 9.0
    >>> found = AnomalyDetector(random_state=0).fit(X).anomalies(X)
    >>> int(found.order[0]), int(found.certain.sum())
    (7, 1)
    >>> print(found.to_dict()["summary"][0])
    10 of 300 rows are flagged: worth a look, as unlikely as the least likely thirtieth of ordinary rows.
    """

    names: list[str]
    values: np.ndarray
    scores: np.ndarray
    p_values: np.ndarray
    labels: np.ndarray
    certain: np.ndarray
    fdr: float
    rule: str
    places: dict[str, np.ndarray] = field(default_factory=dict)
    explanation: Explanation | None = None
    explained_rows: np.ndarray | None = None
    drawn: tuple[np.ndarray, list[str], list[str]] | None = None

    kind = "anomalies"

    def __len__(self) -> int:
        """Return the number of rows of the table."""
        return len(self.scores)

    def __repr__(self) -> str:
        return f"Anomalies({int(self.flagged.sum())} of {counted(len(self), 'row')} flagged)"

    @property
    def flagged(self) -> np.ndarray:
        """Mask of the flagged rows."""
        return self.labels < 0

    @cached_property
    def order(self) -> np.ndarray:
        """Positions of the rows, the least likely first; ties stay in the order of the table."""
        return np.argsort(self.scores, kind="stable")

    @property
    def where(self) -> dict[str, np.ndarray]:
        """Columns that say where the rows stand."""
        return self.places or {"row": np.arange(len(self))}

    def reasons(self) -> np.ndarray:
        """Return for each row the columns that explain it, as text; empty for rows that are not explained."""
        words = np.full(len(self), "", dtype=object)
        if self.explanation is not None and self.explained_rows is not None:
            words[self.explained_rows] = [_reason(self.explanation, i) for i in range(len(self.explained_rows))]
        return words

    def _columns(self) -> dict[str, Any]:
        """Return a row for each row of the table, the least likely first."""
        order = self.order
        found = {name: column[order] for name, column in self.where.items()} | {
            "score": self.scores[order],
            "pvalue": self.p_values[order],
            "flagged": self.flagged[order],
            "certain": self.certain[order],
        }
        return found if self.explanation is None else found | {"explained_by": self.reasons()[order]}

    def _facts(self) -> dict[str, Any]:
        return {
            "rows": len(self),
            "columns": self.names,
            "flagged": int(self.flagged.sum()),
            "certain": int(self.certain.sum()),
            "fdr": self.fdr,
            "rule": self.rule,
        }

    def _sentences(self) -> list[str]:
        flagged, certain = int(self.flagged.sum()), int(self.certain.sum())
        verb = "is" if flagged == 1 else "are"
        first = f"{flagged:,} of {counted(len(self), 'row')} {verb} flagged: {self.rule}."
        rate = f"at a false discovery rate of {self.fdr:.3g}"
        if not certain:
            return [first, f"None of them is certain {rate}: unusual rows of an ordinary table look like this, too."]
        which = "is an anomaly" if certain == 1 else "are anomalies"
        return [
            first,
            f"{counted(certain, 'row')} {which} {rate}, the share of ordinary rows expected among such rows.",
        ]

    def plot(self) -> Figure:
        """Draw the rows, the flagged ones ringed, and their scores; see :func:`isopleth.plotting.plot_anomalies`.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_anomalies

        names, numbers = self.numbers
        return plot_anomalies(numbers, names, self.scores, self.p_values, self.labels, times=self.times)

    @property
    def times(self) -> list[str]:
        """Names of the columns of :attr:`numbers` that hold times, in seconds since 1970."""
        return self.drawn[2] if self.drawn is not None else []

    @cached_property
    def numbers(self) -> tuple[list[str], np.ndarray]:
        """Names and values of the columns of numbers, NaN where a cell is missing."""
        if self.drawn is not None:
            return self.drawn[1], self.drawn[0]
        if self.values.dtype.kind == "f":
            return self.names, self.values
        found = {}
        for name, column in zip(self.names, self.values.T, strict=True):
            with suppress(TypeError, ValueError):
                found[name] = np.array([np.nan if cell is None else float(cell) for cell in column])
        return list(found), np.column_stack(list(found.values())) if found else np.empty((len(self), 0))


_COLUMNS_A_ROW = 3


def _reason(explanation: Explanation, row: int) -> str:
    """Return the columns that explain a row, with all digits of their values."""
    order = np.argsort(-explanation.rise[row], kind="stable")[:_COLUMNS_A_ROW]
    parts = [
        f"{explanation.names[j]}={cell_text(explanation.values[row, j])} (best {cell_text(explanation.best[row, j])}, "
        f"+{explanation.rise[row, j]:.3g})"
        for j in order
        if explanation.rise[row, j] > 0.0
    ]
    return "  ".join(parts) or "no column alone"
