"""Explanations: the columns and the kinds of evidence that make a row unlikely."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PRINTED = 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Gain in score of each row if one of its cells had another value; result of :meth:`AnomalyDetector.explain`.

    Parameters
    ----------
    names : list of str
        Names of the d columns.
    values : ndarray of shape (n, d)
        The rows.
    rise : ndarray of shape (n, d)
        Gain of the score of a row if only this column has its best value, in nats; 0 if nothing is gained.
    best : ndarray of shape (n, d)
        The best value; the row's own value if nothing is gained, and the value at fit in columns that were constant.
    scores : ndarray of shape (n,)
        Scores of the rows as they are.
    evidence : dict of str to ndarray of shape (n,)
        Contribution of each kind of evidence to minus the score, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[7, 1] = 9.0
    >>> explanation = AnomalyDetector(random_state=0).fit(X).explain(X[7:8])
    >>> explanation.top(k=1)
    [['column 1']]
    """

    names: list[str]
    values: np.ndarray
    rise: np.ndarray
    best: np.ndarray
    scores: np.ndarray
    evidence: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of rows explained."""
        return len(self.scores)

    def _leading(self, row: int, k: int) -> np.ndarray:
        """Return the at most `k` columns of a row with the largest positive rise."""
        order = np.argsort(-self.rise[row], kind="stable")[:k]
        return order[self.rise[row, order] > 0.0]

    def top(self, k: int = 3) -> list[list[str]]:
        """Return the names of the columns that explain most.

        Parameters
        ----------
        k : int, default=3
            Largest number of columns for each row.

        Returns
        -------
        list of list of str
            For each row the columns with the largest positive rise, the largest first.
        """
        return [[self.names[j] for j in self._leading(i, k)] for i in range(len(self))]

    def leading_evidence(self) -> list[str]:
        """Return the kind of evidence that contributes most for each row.

        Returns
        -------
        list of str
            For each row "joint", "covariance" or "columns"; "density" for a detector with ``novelty=True``.
        """
        kinds = list(self.evidence)
        strongest = np.argmax(np.stack(list(self.evidence.values()), axis=1), axis=1)
        return [kinds[k] for k in strongest]

    def describe(self, row: int, k: int = 3) -> str:
        """Return the leading columns of one row as a line of text, ``name=value (best 3.2, +14.1)``.

        Parameters
        ----------
        row : int
            Position of the row among those explained.
        k : int, default=3
            Largest number of columns.

        Returns
        -------
        str
            Two spaces between columns; "no column alone" if none has a positive rise.

        Raises
        ------
        InputError
            If there is no such row.
        """
        i = self.position(row)
        parts = [
            f"{self.names[j]}={self.values[i, j]:.4g} (best {self.best[i, j]:.4g}, +{self.rise[i, j]:.3g})"
            for j in self._leading(i, k)
        ]
        return "  ".join(parts) or "no column alone"

    def position(self, row: int) -> int:
        """Return `row` counted from the start; negative numbers count from the end.

        Raises
        ------
        InputError
            If there is no such row.
        """
        n = len(self)
        if isinstance(row, bool) or not isinstance(row, Integral) or not -n <= row < n:
            raise InputError(f"row = {row!r}: expected the position of one of the {n} rows explained, 0 to {n - 1}.")
        return int(row) % n

    def to_dict(self) -> dict[str, Any]:
        """Return one line for each cell, row by row, for ``pandas.DataFrame`` and ``polars.DataFrame``.

        Returns
        -------
        dict
            Columns "row" (position, int), "score", "column" (name), "value", "best" and "rise", n d entries each.
        """
        n, d = self.rise.shape
        return {
            "row": np.repeat(np.arange(n), d),
            "score": np.repeat(self.scores, d),
            "column": self.names * n,
            "value": self.values.ravel(),
            "best": self.best.ravel(),
            "rise": self.rise.ravel(),
        }

    def __str__(self) -> str:
        lines = [
            f"row {i}, score {self.scores[i]:.4g}: {self.describe(i)}" for i in range(min(len(self), _MOST_PRINTED))
        ]
        more = len(self) - len(lines)
        return "\n".join([*lines, f"and {more} more rows"] if more else lines)

    __repr__ = __str__

    def plot(self, row: int = 0, ax: Axes | None = None) -> Axes:
        """Draw the rises of one row.

        Parameters
        ----------
        row : int, default=0
            Position of the row among those explained.
        ax : matplotlib Axes, optional
            Axes to draw in; by default those of a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InputError
            If there is no such row.
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.plotting import plot_explanation

        return plot_explanation(self, row, ax)
