"""What a detector found in a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.io.tables import Table
from isopleth.tasks.anomaly.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Findings:
    """Scores, p-values and flags of the rows of a table.

    Parameters
    ----------
    table : Table
        The rows.
    scores : ndarray of shape (n,)
        Higher is more normal.
    p_values : ndarray of shape (n,)
        p-values of the rows.
    labels : ndarray of shape (n,)
        -1 for flagged rows, 1 for all others.
    explanation : Explanation, optional
        Which columns make some of the rows unlikely, by the names of the table.
    explained_rows : ndarray of shape (k,), optional
        Positions of those rows, the least likely first.
    """

    table: Table
    scores: np.ndarray
    p_values: np.ndarray
    labels: np.ndarray
    explanation: Explanation | None = None
    explained_rows: np.ndarray | None = None

    @property
    def flagged(self) -> np.ndarray:
        """Which rows are flagged."""
        return self.labels < 0

    @property
    def order(self) -> np.ndarray:
        """Positions of the rows, the least likely first; ties stay in the order of the table."""
        return np.argsort(self.scores, kind="stable")

    def columns(self) -> dict[str, np.ndarray]:
        """The columns that a file of results has."""
        columns = {
            "row": np.arange(1, len(self.scores) + 1),
            "score": self.scores,
            "p_value": self.p_values,
            "label": self.flagged.astype(np.int64),
        }
        return columns if self.explanation is None else columns | self._reasons(self.explanation)

    def _reasons(self, explanation: Explanation) -> dict[str, np.ndarray]:
        """For each row the column that explains most, its best value and the rise; nothing where no column does."""
        first = explanation.rise.argmax(axis=1)
        each = np.arange(len(explanation))
        rises = explanation.rise[each, first]
        rows, positive = self.explained_rows, rises > 0.0
        names = np.full(len(self.scores), "", dtype=object)
        names[rows] = np.where(positive, np.array(explanation.names, dtype=object)[first], "")
        best, rise = np.full((2, len(self.scores)), np.nan)
        best[rows] = np.where(positive, explanation.best[each, first], np.nan)
        rise[rows] = rises
        return {"explained_by": names, "best": best, "rise": rise}
