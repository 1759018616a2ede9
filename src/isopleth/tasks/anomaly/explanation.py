"""Explanations: the columns and the kinds of evidence that make a row unlikely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isopleth.core.budget import Budget
from isopleth.core.errors import InputError
from isopleth.results.charts import Chart, Series
from isopleth.results.keys import NUMBER, Fact, Key
from isopleth.results.result import Result
from isopleth.results.text import cell_text as shown_number
from isopleth.results.text import counted, in_words
from isopleth.tables.cells import is_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isopleth.tasks.anomaly.pooled_rule import PooledRule
    from isopleth.tasks.anomaly.reference_rule import ReferenceRule
    from isopleth.tasks.anomaly.training_table import WithConstants

_MOST_PRINTED, _MOST_DRAWN, _MOST_BARS, _WORTH_SAYING = 10, 4, 12, 0.1
_NEAR = 1e-8  # surprises and rises that differ by less than this share of the largest, or of 1, are equal


@dataclass(frozen=True, eq=False)
class Together:
    """Columns (n, d) that explain a row only together, their values in the `best` training row, and the `rise` of the score."""

    columns: np.ndarray
    best: np.ndarray
    rise: np.ndarray


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
    together : Together, optional
        Few columns that explain a row together, where no value alone would make it an ordinary one.

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
    together: Together | None = None

    def __len__(self) -> int:
        """Return the number of rows explained."""
        return len(self.scores)

    def _leading(self, row: int, k: int) -> np.ndarray:
        """Return at most `k` columns of a row: those that explain it together, then those with the largest positive rise."""
        joint = self.joint(row)
        order = falling(self.rise[row])
        order = order[(self.rise[row, order] > 0.0) & ~np.isin(order, joint)]
        return np.append(joint, order)[:k]

    def joint(self, row: int) -> np.ndarray:
        """Return the positions of the columns that explain a row only together; none for most rows."""
        return np.flatnonzero(self.together.columns[row]) if self.together is not None else np.empty(0, dtype=np.intp)

    def top(self, k: int = 3) -> list[list[str]]:
        """Return the names of the columns that explain most.

        Parameters
        ----------
        k : int, default=3
            Largest number of columns for each row.

        Returns
        -------
        list of list of str
            For each row the columns that explain it only together, if there are such, and then those with the largest
            positive rise, the largest first.
        """
        return [[self.names[j] for j in self._leading(i, k)] for i in range(len(self))]

    def leading_evidence(self) -> list[str]:
        """Return the kind of evidence that contributes most for each row.

        Returns
        -------
        list of str
            For each row "joint", "covariance" or "columns"; for a detector with ``novelty=True`` "density", "rank density",
            "rank neighbours" or "conditionals".
        """
        kinds = list(self.evidence)
        return [kinds[falling(adds)[0]] for adds in np.stack(list(self.evidence.values()), axis=1)]

    def describe(self, row: int, k: int = 3) -> str:
        """Return the leading columns of one row as a line of text.

        It reads ``price 999 (20 to 31 would be usual given the rest, 85 % of the surprise); town Oslo (Rome, 12 %)``, or, where
        no value alone would make the row an ordinary one and a few do together, ``price 999 and total 1998 together (24.5 and
        49 would be usual given the rest, 98 % of the surprise)``. The surprise of a row is minus its score, and the share is
        what the best values would take away.

        Parameters
        ----------
        row : int
            Position of the row among those explained.
        k : int, default=3
            Largest number of columns.

        Returns
        -------
        str
            Semicolons between columns, of which those with less than a tenth of the largest rise are left out; "no column
            alone" if none has a positive rise.

        Raises
        ------
        InputError
            If there is no such row.
        """
        i = self.position(row)
        joint = self.joint(i)
        if self.together is not None and len(joint):
            cells = in_words([f"{self.names[j]} {cell_text(self.values[i, j])}" for j in joint])
            usual = in_words([cell_text(self.together.best[i, j]) for j in joint])
            return f"{cells} together {self._reason(usual, float(self.together.rise[i]), i)}"
        parts = [
            f"{self.names[j]} {cell_text(self.values[i, j])} "
            f"{self._reason(self._usual(i, j), float(self.rise[i, j]), i, brief=place > 0)}"
            for place, j in enumerate(self._leading(i, k))
            if self.rise[i, j] >= _WORTH_SAYING * self.rise[i].max()
        ]
        return "; ".join(parts) or "no column alone"

    def _reason(self, usual: str, rise: float, i: int, *, brief: bool = False) -> str:
        """Return the values that would be usual, and the part of the surprise of a row that they would take away."""
        surprise = -float(self.scores[i])
        share = f"{min(rise / surprise, 1.0) if surprise > 0.0 else 1.0:.0%}".replace("%", " %")
        return f"({usual}, {share})" if brief else f"({usual} would be usual given the rest, {share} of the surprise)"

    def _usual(self, i: int, j: int) -> str:
        """Return the values of a cell that are usual given the rest of the row."""
        if is_missing(self.best[i, j]) or isinstance(self.best[i, j], (str, bool, np.bool_)):
            return cell_text(self.best[i, j])
        low, high = cell_text(self.low[i, j]), cell_text(self.high[i, j])
        return low if low == high else f"{low} to {high}"

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

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows that were explained", len),
        "columns": Fact("list of string", "columns that were used", lambda found: found.names),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "row": Key("integer", "position of the row"),
        "score": Key(NUMBER, "higher is more normal"),
        "column": Key("string", "name of the column"),
        "value": Key("string, number, boolean or null", "the cell"),
        "best": Key("string, number, boolean or null", "the value with which the row would be most likely"),
        "rise": Key(NUMBER, "by how much the score would rise"),
    }

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
    chosen = falling(rise)[:_MOST_BARS]
    chosen = chosen[rise[chosen] > 0.0]
    moves = [_move(explanation.values[row][j], explanation.best[row][j]) for j in chosen]
    names, rises = [explanation.names[j] for j in chosen], rise[chosen].tolist()
    if explanation.together is not None and len(joint := explanation.joint(row)):
        names.insert(0, " and ".join(explanation.names[j] for j in joint))
        moves.insert(0, ", ".join(_move(explanation.values[row][j], explanation.together.best[row][j]) for j in joint))
        rises.insert(0, float(explanation.together.rise[row]))
    series = [Series("", [], rises, "bars", "blue", moves, labels=moves)]
    about = "Value → best value." if names else "No column alone makes the row less unlikely."
    title = f"Row {row}, score {explanation.scores[row]:.4g}"
    return Chart(title, "rise of the score", "", series, about, names=names)


def falling(values: np.ndarray) -> np.ndarray:
    """Return the places of values in falling order; those that are equal up to rounding keep their order."""
    order = np.argsort(-values, kind="stable")
    lower = -np.diff(values[order], prepend=values[order[:1]]) > _NEAR * max(
        1.0, float(np.abs(values).max(initial=0.0))
    )
    return order[np.lexsort([order, np.cumsum(lower)])]


def _move(value: Any, best: Any) -> str:
    return " → ".join(shown_number(cell) or "missing" for cell in (value, best))


def cell_text(cell: Any, number: Callable[[float], str] = shown_number) -> str:
    """Return a cell as text; `number` writes numbers."""
    if is_missing(cell):
        return "missing"
    return number(float(cell)) if isinstance(cell, Real) else shown_number(cell)


_USUAL = 1.0  # nats below the best score up to which a value is usual
MOST_VALUES = 64  # largest number of values of a column that are tried
MOST_ROWS = 16  # rows at once, so that their distances stay in the processor's cache
# Columns that may explain a row together.
_MOST_TOGETHER = 4
# Training rows whose values are tried together, and those in which each cell of a row is tried by itself.
WHOLE_ROWS, _BASES = 64, 8


@dataclass(frozen=True)
class Counterfactuals:
    """Values that are tried in the cells of each column."""

    # (k, d): values of each column, rising; in columns with fewer than k distinct values, the last one is repeated
    values: np.ndarray
    rows: np.ndarray  # (m, d): rows, whose values are tried together

    @classmethod
    def of(cls, X: np.ndarray, n_numeric: int, rows: np.ndarray) -> Counterfactuals:
        """Choose values of each column among the rows, including both extremes; others would mean nothing for counts or codes."""
        columns = [_spread_out(np.sort(column[~np.isnan(column)])) for column in X.T[:n_numeric]]
        columns += [_most_frequent(codes) for codes in X.T[n_numeric:]]
        most = max(map(len, columns))
        return cls(np.stack([np.pad(column, (0, most - len(column)), mode="edge") for column in columns], axis=1), rows)

    @property
    def counts(self) -> np.ndarray:
        """Number of distinct values of each column."""
        return 1 + (np.diff(self.values, axis=0) > 0.0).sum(axis=0)


def _most_frequent(codes: np.ndarray) -> np.ndarray:
    distinct, counts = np.unique(codes, return_counts=True)
    return np.sort(distinct[np.argsort(-counts, kind="stable")[:MOST_VALUES]])


def _spread_out(ordered: np.ndarray) -> np.ndarray:
    """Return at most so many of the values of a column, from the smallest to the largest."""
    distinct = np.unique(ordered)
    if not len(distinct):  # a column without any value, which is left out
        return np.zeros(1)
    if len(distinct) <= MOST_VALUES:
        return distinct
    return np.unique(ordered[np.linspace(0, len(ordered) - 1, MOST_VALUES).round().astype(int)])


def best_counterfactuals(
    rule: PooledRule | ReferenceRule | WithConstants,
    rows: np.ndarray,
    known: np.ndarray,
    tried: Counterfactuals,
    budget: Budget,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gain of the score by the best value of each cell, 0 if none gains, and its index, both (n, d)."""
    distinct = np.arange(len(tried.values)) < tried.counts[:, None]

    def best(part: slice) -> tuple[np.ndarray, np.ndarray]:
        surprise = rule.counterfactual_surprise(rows[part], known[part], tried.values)
        after = np.where(distinct, surprise[:, :, 1:], np.inf)
        least, k = after.min(axis=2, keepdims=True), np.arange(after.shape[2])
        near = _NEAR * np.maximum(1.0, least)
        place = (after <= least + near).argmax(axis=2)
        worse, where = ~(after <= least + _USUAL + near), place[:, :, None]
        low = np.where(worse & (k < where), k, -1).max(axis=2) + 1
        high = np.where(worse & (k > where), k, len(k)).min(axis=2) - 1
        gain = surprise[:, :, :1] - least
        return np.where(gain > near, gain, 0.0)[:, :, 0], np.stack([place, low, high])

    parts = budget.blocks(len(rows), rule.counterfactual_bytes(len(tried.values)), MOST_ROWS)
    found = budget.map("values that explain rows", best, parts)
    return np.concatenate([rise for rise, _ in found]), np.concatenate([places for _, places in found], axis=1)


def joint_counterfactuals(
    rule: PooledRule | ReferenceRule | WithConstants,
    rows: np.ndarray,
    known: np.ndarray,
    tried: np.ndarray,
    rise: np.ndarray,
    most: float,
    budget: Budget,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find few cells whose change brings a row's surprise down to `most` together; return cells, training row and gain.

    Cells come in the order of the surprise that they cause in ordinary rows, since beside another wrong one a cell may gain
    nothing.
    """
    n, d = rows.shape
    mask, place, gain = np.zeros((n, d), dtype=bool), np.zeros(n, dtype=np.intp), np.zeros(n)

    def surprise(some: np.ndarray, number: int) -> np.ndarray:
        return rule.surprises(some, np.full(len(some), number), budget).sum(axis=1)

    own = rule.surprises(rows, known, budget).sum(axis=1)
    bases = tried[np.linspace(0, len(tried) - 1, min(len(tried), _BASES)).round().astype(int)]
    most += _NEAR * max(1.0, abs(most))
    for i in np.flatnonzero((own - rise.max(axis=1, initial=0.0) > most) & (d > 1)):
        each = np.repeat(bases[None], d, axis=0)  # one cell of the row in an ordinary one
        each[np.arange(d), :, np.arange(d)] = rows[i, :, None]
        found = surprise(np.concatenate([bases, each.reshape(-1, d)]), known[i]).reshape(1 + d, -1)
        order = falling(np.median(found[1:] - found[0], axis=1))[:_MOST_TOGETHER]
        sets = [order[:k] for k in range(2, len(order) + 1)]
        moved = np.tile(rows[i], (len(sets), len(tried), 1))
        for cells, some in zip(moved, sets, strict=True):
            cells[:, some] = tried[:, some]
        after = surprise(moved.reshape(-1, d), known[i]).reshape(len(sets), -1)
        enough = np.flatnonzero(after.min(axis=1) <= most)
        if len(enough):
            first, least = enough[0], after[enough[0]].min()
            mask[i, sets[first]], gain[i] = True, own[i] - least
            place[i] = (after[first] <= least + _NEAR * max(1.0, least)).argmax()
    return mask, place, gain
