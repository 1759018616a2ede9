"""Explanations: the columns and the kinds of evidence that make a row unlikely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from isopleth.errors import InputError
from isopleth.results.charts import Chart, Series
from isopleth.results.result import Result
from isopleth.results.text import cell_text as shown_number
from isopleth.results.text import counted
from isopleth.tables.cells import is_missing
from isopleth.tasks.anomaly.table import Limits, blocks, map_blocks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PRINTED, _MOST_DRAWN, _MOST_BARS = 10, 4, 12


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """Gain in score of each row if one of its cells had another value; result of :meth:`AnomalyDetector.explain`.

    Parameters
    ----------
    names : list of str
        Names of the d columns.
    values : ndarray of shape (n, d)
        The rows; in tables with words or times an array of objects, None for missing cells.
    rise : ndarray of shape (n, d)
        Gain of the score of a row if only this column has its best value, in nats; 0 if nothing is gained.
    best : ndarray of shape (n, d)
        The best value; the row's own value if nothing is gained, and the value at fit in columns that were constant.
    low, high : ndarray of shape (n, d)
        The values around the best one that have a score within 1 nat of its: those that are usual given the rest of the row.
        They mean nothing for words.
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
    low: np.ndarray
    high: np.ndarray
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
            For each row "joint", "covariance" or "columns"; for a detector with ``novelty=True`` "density", "rank density"
            or "rank neighbours".
        """
        kinds = list(self.evidence)
        strongest = np.argmax(np.stack(list(self.evidence.values()), axis=1), axis=1)
        return [kinds[k] for k in strongest]

    def describe(self, row: int, k: int = 3) -> str:
        """Return the leading columns of one row as a line of text.

        It reads ``price 999 (20 to 31 would be usual given the rest, 85 % of the surprise)``. The surprise of a row is minus its
        score, and the share is what the best value would take away.

        Parameters
        ----------
        row : int
            Position of the row among those explained.
        k : int, default=3
            Largest number of columns.

        Returns
        -------
        str
            Semicolons between columns; "no column alone" if none has a positive rise.

        Raises
        ------
        InputError
            If there is no such row.
        """
        i = self.position(row)
        parts = [
            f"{self.names[j]} {cell_text(self.values[i, j])} ({self._usual(i, j)} would be usual given the rest, "
            f"{self._share(i, j):.0%} of the surprise)".replace("%", " %")
            for j in self._leading(i, k)
        ]
        return "; ".join(parts) or "no column alone"

    def _usual(self, i: int, j: int) -> str:
        """Return the values of a cell that are usual given the rest of the row."""
        if is_missing(self.best[i, j]) or isinstance(self.best[i, j], (str, bool, np.bool_)):
            return cell_text(self.best[i, j])
        low, high = cell_text(self.low[i, j]), cell_text(self.high[i, j])
        return low if low == high else f"{low} to {high}"

    def _share(self, i: int, j: int) -> float:
        """Return the part of the surprise of a row that the best value of a cell would take away."""
        surprise = -float(self.scores[i])
        return min(float(self.rise[i, j]) / surprise, 1.0) if surprise > 0.0 else 1.0

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

    kind = "explanation"
    title = "Explanation"

    def _charts(self) -> list[Chart]:
        return [reasons_chart(self, row) for row in range(min(len(self), _MOST_DRAWN))]

    def _columns(self) -> dict[str, Any]:
        """Return a row for each cell, row by row: "row" (position), "score", "column" (name), "value", "best" and "rise"."""
        n, d = self.rise.shape
        return {
            "row": np.repeat(np.arange(n), d),
            "score": np.repeat(self.scores, d),
            "column": self.names * n,
            "value": self.values.ravel(),
            "best": self.best.ravel(),
            "rise": self.rise.ravel(),
        }

    def _facts(self) -> dict[str, Any]:
        return {"rows": len(self), "columns": self.names}

    def _sentences(self) -> list[str]:
        words = [f"{counted(len(self), 'row')} explained: the columns whose value alone costs the score most."]
        return words + [f"Row {i}: {self.describe(i)}." for i in range(min(len(self), _MOST_PRINTED))]

    def __str__(self) -> str:
        lines = [
            f"row {i}, score {self.scores[i]:.4g}: {self.describe(i)}" for i in range(min(len(self), _MOST_PRINTED))
        ]
        more = len(self) - len(lines)
        return "\n".join([*lines, f"and {more} more rows"] if more else lines)

    __repr__ = __str__

    def plot(self, ax: Axes | None = None, row: int = 0) -> Axes:
        """Draw the rises of one row.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw in; by default those of a new figure.
        row : int, default=0
            Position of the row among those explained.

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
        from isopleth.results.figures import draw

        return draw([reasons_chart(self, self.position(row))], ax)


def reasons_chart(explanation: Explanation, row: int) -> Chart:
    """Return the rise of the score of one row by each column that explains it."""
    rise = np.asarray(explanation.rise)[row]
    chosen = np.argsort(-rise, kind="stable")[:_MOST_BARS]
    chosen = chosen[rise[chosen] > 0.0]
    pairs = [(explanation.values[row][j], explanation.best[row][j]) for j in chosen]
    moves = [" → ".join(shown_number(cell) or "missing" for cell in pair) for pair in pairs]
    series = [Series("", [], rise[chosen], "bars", "blue", moves, labels=moves)]
    names = [explanation.names[j] for j in chosen]
    about = "Value → best value." if len(chosen) else "No column alone makes the row less unlikely."
    title = f"Row {row}, score {explanation.scores[row]:.4g}"
    return Chart(title, "rise of the score", "", series, about, names=names)


def cell_text(cell: Any, number: Callable[[float], str] = shown_number) -> str:
    """Return a cell as text; `number` writes numbers."""
    if is_missing(cell):
        return "missing"
    return number(float(cell)) if isinstance(cell, Real) else shown_number(cell)


_USUAL = 1.0  # nats below the best score up to which a value is usual
MOST_VALUES = 64  # largest number of values of a column that are tried
MOST_ROWS = 16  # rows at once, so that their distances stay in the processor's cache


@dataclass(frozen=True)
class Counterfactuals:
    """Values that are tried in the cells of each column."""

    # (k, d): values of each column, rising; in columns with fewer than k distinct values, the last one is repeated
    values: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, n_numeric: int) -> Counterfactuals:
        """Choose values of each column among the rows of `X`, including the least and the greatest of the numbers.

        All distinct values if there are at most MOST_VALUES, else quantiles that are values of rows, or the most frequent
        categories. Values between them are not tried: in a column of counts or codes they are not meaningful.
        """
        columns = [_spread_out(np.sort(column[~np.isnan(column)])) for column in X.T[:n_numeric]]
        columns += [_most_frequent(codes) for codes in X.T[n_numeric:]]
        most = max(map(len, columns))
        return cls(np.stack([np.pad(column, (0, most - len(column)), mode="edge") for column in columns], axis=1))

    @property
    def counts(self) -> np.ndarray:
        """Number of distinct values of each column."""
        return 1 + (np.diff(self.values, axis=0) > 0.0).sum(axis=0)


class CounterfactualRule(Protocol):
    """Rule that scores rows and their counterfactuals."""

    def counterfactual_surprise(self, rows: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the total surprise of rows as they are and with each value in each cell, of shape (n, d, 1 + k)."""

    def counterfactual_bytes(self, values: int) -> float:
        """Return the scratch memory of :meth:`counterfactual_surprise` for one row and this number of values."""


def _most_frequent(codes: np.ndarray) -> np.ndarray:
    distinct, counts = np.unique(codes, return_counts=True)
    return np.sort(distinct[np.argsort(-counts, kind="stable")[:MOST_VALUES]])


def _spread_out(ordered: np.ndarray) -> np.ndarray:
    distinct = np.unique(ordered)
    if not len(distinct):  # a column without any value, which is left out
        return np.zeros(1)
    if len(distinct) <= MOST_VALUES:
        return distinct
    return np.unique(ordered[np.linspace(0, len(ordered) - 1, MOST_VALUES).round().astype(int)])


def best_counterfactuals(
    rule: CounterfactualRule, rows: np.ndarray, known: np.ndarray, tried: Counterfactuals, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best value of each cell, and the values beside it that are nearly as good.

    Returns the gain of the score in nats, 0 if no value gains anything, and the index of the best value, both of shape (n,
    d).
    """
    distinct = np.arange(len(tried.values)) < tried.counts[:, None]

    def best(part: slice) -> tuple[np.ndarray, np.ndarray]:
        surprise = rule.counterfactual_surprise(rows[part], known[part], tried.values)
        after = np.where(distinct, surprise[:, :, 1:], np.inf)
        least, place, k = after.min(axis=2, keepdims=True), after.argmin(axis=2), np.arange(after.shape[2])
        worse, where = ~(after <= least + _USUAL), place[:, :, None]
        low = np.where(worse & (k < where), k, -1).max(axis=2) + 1
        high = np.where(worse & (k > where), k, len(k)).min(axis=2) - 1
        return np.maximum(surprise[:, :, 0] - least[:, :, 0], 0.0), np.stack([place, low, high])

    parts = blocks(len(rows), rule.counterfactual_bytes(len(tried.values)), limits, MOST_ROWS)
    found = map_blocks("values that explain rows", best, parts, limits)
    return np.concatenate([rise for rise, _ in found]), np.concatenate([places for _, places in found], axis=1)
