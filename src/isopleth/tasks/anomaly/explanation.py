"""Explanations: the cells that make a row unlikely, what would be usual there, and the kinds of evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isopleth.core.errors import InputError
from isopleth.results.charts import Chart, Series
from isopleth.results.keys import NUMBER, Fact, Key
from isopleth.results.result import Result
from isopleth.results.text import cell_text, counted
from isopleth.tables.cells import is_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PRINTED, _MOST_DRAWN, _MOST_BARS = 10, 4, 12
# Columns that explain a row.
COLUMNS_A_ROW = 3
# Cells are named from this share of the largest surprise of their row, and from so many nats.
_WORTH_SAYING, LEAST_NATS = 0.25, 1.0
# Nats of excess from which on a cell is unusual given the others.
_UNUSUAL = 2.0
_NEAR = 1e-8  # surprises that differ by less than this share of the largest, or of 1, are equal


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """Surprise of the cells of rows given the others, and what would be usual; result of :meth:`AnomalyDetector.explain`.

    Parameters
    ----------
    names : list of str
        Names of the d columns.
    values : ndarray of shape (n, d)
        The rows; in tables with words or times an array of objects, None for missing cells.
    excess : ndarray of shape (n, d)
        Surprisal of each cell given the others of its row less the mean of that under its law, in nats; 0 if less, and in gaps.
    rarity : ndarray of shape (n, d)
        The same by the frequencies of the column, whatever the rest of the row.
    usual : ndarray of shape (n, d)
        Median of the law of a number or time given the others of its row; the likeliest word.
    low, high : ndarray of shape (n, d)
        Its quantiles .05 and .95; the word again.
    scores : ndarray of shape (n,)
        Scores of the rows.
    evidence : dict of str to ndarray of shape (n,)
        Contribution of each kind of evidence to minus the score, in nats.
    telling : ndarray of shape (n, d), int, optional
        Column that tells most of a cell, for the cells that are named; -1 for none.

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
    excess: np.ndarray
    rarity: np.ndarray
    usual: np.ndarray
    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray
    evidence: dict[str, np.ndarray] = field(default_factory=dict)
    telling: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of rows explained."""
        return len(self.scores)

    def of_rare_kind(self, row: int) -> bool:
        """Tell whether the cells of a row fit each other and one is rare: no excess reaches 2 nats or half the largest rarity."""
        excess, rarity = (float(np.max(part[row], initial=0.0)) for part in (self.excess, self.rarity))
        return excess < min(_UNUSUAL, 0.5 * rarity)

    def surprise(self, row: int) -> np.ndarray:
        """Return what the cells of a row are named by, (d,): the sum of their excess and their rarity."""
        return np.asarray(self.excess[row] + self.rarity[row])

    def leading(self, row: int, k: int) -> np.ndarray:
        """Return the positions of at most `k` columns that are named as the reason of a row, the first one first."""
        surprise = self.surprise(row)
        order = falling(surprise)[:k]
        return order[surprise[order] >= max(LEAST_NATS, _WORTH_SAYING * float(surprise.max(initial=0.0)))]

    def top(self, k: int = 3) -> list[list[str]]:
        """Return the names of the columns that explain most.

        Parameters
        ----------
        k : int, default=3
            Largest number of columns for each row.

        Returns
        -------
        list of list of str
            For each row the columns with the largest sum of excess and rarity, the largest first. Columns below 1 nat
            and below a quarter of the largest are left out.
        """
        return [[self.names[j] for j in self.leading(i, k)] for i in range(len(self))]

    def leading_evidence(self) -> list[str]:
        """Return the kind of evidence that contributes most for each row.

        Returns
        -------
        list of str
            For each row "joint", "covariance" or "columns"; for a detector with ``novelty=True`` "density", "rank density",
            "rank neighbours", "new values" or "conditionals".
        """
        kinds = list(self.evidence)
        return [kinds[falling(adds)[0]] for adds in np.stack(list(self.evidence.values()), axis=1)]

    def describe(self, row: int, k: int = 3) -> str:
        """Return the leading columns of one row as a line of text.

        It reads ``price 999 (8 to 12 is usual for chair); town Oslo (Rome is usual)``, or, where every cell is usual given the
        others, ``a rare kind of row: price 400.73 (380 to 420 is usual for table); article table``.

        Parameters
        ----------
        row : int
            Position of the row among those explained.
        k : int, default=3
            Largest number of columns.

        Returns
        -------
        str
            "no column alone" if no cell has a surprise of a nat.

        Raises
        ------
        InputError
            If there is no such row.
        """
        i = self.position(row)
        cells = "; ".join(self._reason(i, j) for j in self.leading(i, k))
        if not cells:
            return "no column alone"
        return f"a rare kind of row: {cells}" if self.of_rare_kind(i) else cells

    def _reason(self, i: int, j: int) -> str:
        """Return a cell, and what is usual there given the others."""
        cell, usual = f"{self.names[j]} {cell_label(self.values[i, j])}", self._usual(i, j)
        told = -1 if self.telling is None else int(self.telling[i, j])
        given = f" for {self._given(i, told)}" if told >= 0 else ""
        if usual == cell_label(self.values[i, j]):
            return f"{cell} (usual{given})" if given else cell
        return f"{cell} ({usual} is usual{given})"

    def _given(self, i: int, j: int) -> str:
        """Return the cell that tells another one: a word that one column has by itself, all else with the name of its column."""
        cell = self.values[i, j]
        alone = isinstance(cell, str) and not (np.delete(self.values, j, axis=1) == cell).any()
        return cell_label(cell) if alone else f"{self.names[j]} {cell_label(cell)}"

    def _usual(self, i: int, j: int) -> str:
        """Return the values of a cell that are usual given the rest of the row."""
        if is_missing(self.usual[i, j]) or isinstance(self.usual[i, j], (str, bool, np.bool_)):
            return cell_label(self.usual[i, j])
        low, high = cell_label(self.low[i, j]), cell_label(self.high[i, j])
        if low == high or cell_label(self.values[i, j]) in (low, high):  # an end of the range is not what is usual
            return low if low == high else cell_label(self.usual[i, j])
        return f"{low} to {high}"

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
        """Return a row for each cell, row by row: its place, score, column, value, what is usual, and its surprise."""
        n, d = self.excess.shape
        return {
            "row": np.repeat(np.arange(n), d),
            "score": np.repeat(self.scores, d),
            "column": self.names * n,
            "value": self.values.ravel(),
            "usual": self.usual.ravel(),
            "low": self.low.ravel(),
            "high": self.high.ravel(),
            "excess": self.excess.ravel(),
            "rarity": self.rarity.ravel(),
        }

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows that were explained", len),
        "columns": Fact("list of string", "columns that were used", lambda found: found.names),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "row": Key("integer", "position of the row"),
        "score": Key(NUMBER, "higher is more normal"),
        "column": Key("string", "name of the column"),
        "value": Key("string, number, boolean or null", "the cell"),
        "usual": Key("string, number, boolean or null", "what is usual given the other cells of the row"),
        "low": Key("string, number, boolean or null", "least value that is usual"),
        "high": Key("string, number, boolean or null", "largest value that is usual"),
        "excess": Key(NUMBER, "how much the cell surprises given the others, in nats"),
        "rarity": Key(NUMBER, "how much it surprises by itself, in nats"),
    }

    def _sentences(self) -> list[str]:
        words = [
            f"{counted(len(self), 'row')} explained: the cells that do not fit the others of their row, or are rare."
        ]
        return words + [f"Row {i}: {self.describe(i)}." for i in range(min(len(self), _MOST_PRINTED))]

    def __str__(self) -> str:
        lines = [
            f"row {i}, score {self.scores[i]:.4g}: {self.describe(i)}" for i in range(min(len(self), _MOST_PRINTED))
        ]
        more = len(self) - len(lines)
        return "\n".join([*lines, f"and {more} more rows"] if more else lines)

    __repr__ = __str__

    def plot(self, ax: Axes | None = None, row: int = 0) -> Axes:
        """Draw the surprise of the cells of one row.

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
    """Return the surprise of the cells of one row that explain it."""
    surprise = explanation.surprise(row)
    chosen = falling(surprise)[:_MOST_BARS]
    chosen = chosen[surprise[chosen] > 0.0]
    moves = [_move(explanation.values[row][j], explanation.usual[row][j]) for j in chosen]
    names = [explanation.names[j] for j in chosen]
    series = [Series("", [], surprise[chosen].tolist(), "bars", "blue", moves, labels=moves)]
    about = "Value → what is usual given the others." if names else "No column alone makes the row unlikely."
    title = f"Row {row}, score {explanation.scores[row]:.4g}"
    return Chart(title, "surprise given the others and by itself, in nats", "", series, about, names=names)


def falling(values: np.ndarray) -> np.ndarray:
    """Return the places of values in falling order; those that are equal up to rounding keep their order."""
    order = np.argsort(-values, kind="stable")
    lower = -np.diff(values[order], prepend=values[order[:1]]) > _NEAR * max(
        1.0, float(np.abs(values).max(initial=0.0))
    )
    return order[np.lexsort([order, np.cumsum(lower)])]


def _move(value: Any, usual: Any) -> str:
    return " → ".join(cell_text(cell) or "missing" for cell in (value, usual))


def cell_label(cell: Any, number: Callable[[float], str] = cell_text) -> str:
    """Return a cell as text; `number` writes numbers."""
    if is_missing(cell):
        return "missing"
    return number(float(cell)) if isinstance(cell, Real) else cell_text(cell)
