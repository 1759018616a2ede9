"""What a detector found in a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.io.tables import Table


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
    """

    table: Table
    scores: np.ndarray
    p_values: np.ndarray
    labels: np.ndarray

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
        return {
            "row": np.arange(1, len(self.scores) + 1),
            "score": self.scores,
            "p_value": self.p_values,
            "label": self.flagged.astype(np.int64),
        }
