"""Result of a search for anomalies: scores, p-values and flags of the rows of a table."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from isopleth.results.charts import Chart, ShownTable
from isopleth.results.result import MOST_ROWS, Result
from isopleth.results.text import LEAST_P, counted, pvalue_text
from isopleth.results.views import extreme_columns
from isopleth.tasks.anomaly.charts import charts, values_text
from isopleth.tasks.anomaly.explanation import Explanation

# Columns that explain a row, and columns of values that a page shows.
_COLUMNS_A_ROW, _MOST_COLUMNS = 3, 24


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
    where : dict of str to ndarray of shape (n,)
        Columns that say where the rows stand: by default "row", counted from 0.
    explanation : Explanation, optional
        Which columns make some rows unlikely.
    explained_rows : ndarray of shape (k,), int, optional
        Positions of those rows.
    drawn : tuple of ndarray and two lists of str, optional
        Columns of numbers for pictures, with missing cells filled, their names, and those of the names whose columns hold times,
        in seconds since 1970.
    resolution : float, default=1e-6
        Smallest p-value that the rows can show; smaller ones become it.
    known : ndarray of shape (n,), bool, optional
        Rows that are known to be anomalies, which pictures mark.

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
    where: dict[str, np.ndarray] = field(default_factory=dict)
    explanation: Explanation | None = None
    explained_rows: np.ndarray | None = None
    drawn: tuple[np.ndarray, list[str], list[str]] | None = None
    resolution: float = LEAST_P
    known: np.ndarray | None = None

    def __post_init__(self) -> None:
        vars(self)["p_values"] = np.maximum(self.p_values, self.resolution)
        vars(self)["where"] = self.where or {"row": np.arange(len(self))}

    kind = "anomalies"
    title = "Anomalies"

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

    def reasons(self) -> np.ndarray:
        """Return for each row the columns that explain it, as text; empty for rows that are not explained."""
        words = np.full(len(self), "", dtype=object)
        if self.explanation is not None and self.explained_rows is not None:
            words[self.explained_rows] = [
                self.explanation.describe(i, _COLUMNS_A_ROW) for i in range(len(self.explained_rows))
            ]
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
            "pvalue_resolution": self.resolution,
        }

    def _sentences(self) -> list[str]:
        flagged, certain = int(self.flagged.sum()), int(self.certain.sum())
        verb = "is" if flagged == 1 else "are"
        first = f"{flagged:,} of {counted(len(self), 'row')} {verb} flagged: {self.rule}."
        rate = f"at a false discovery rate of {self.fdr:.3g}"
        if not certain:
            second = f"None of them is certain {rate}: unusual rows of an ordinary table look like this, too."
            return [first, second, *self._least_likely()]
        which = "is an anomaly" if certain == 1 else "are anomalies"
        return [
            first,
            f"{counted(certain, 'row')} {which} {rate}, the share of ordinary rows expected among such rows.",
            *self._least_likely(),
        ]

    def _least_likely(self) -> list[str]:
        row = int(self.order[0])
        place = ", ".join(f"{name} {column[row]}" for name, column in self.where.items())
        reason = self.reasons()[row] or values_text(self, np.array([row]))[0]
        words = f"The least likely one is {place} (score {self.scores[row]:.4g}, p {self.pvalue_text(row)})"
        return [f"{words}: {reason.replace('  ', ', ')}."]

    def _tables(self) -> list[ShownTable]:
        """Return the least likely rows: rank, place, score, p-value, flag, why, and the values of the row."""
        first = self.order[:MOST_ROWS]
        where = {name: column[first] for name, column in self.where.items()}
        flags = np.where(self.certain, "certain", np.where(self.flagged, "flagged", ""))[first]
        why = "most extreme values" if self.explanation is None else "explained by"
        reasons = values_text(self, first, _COLUMNS_A_ROW) if self.explanation is None else self.reasons()[first]
        columns: dict[str, Any] = {"rank": np.arange(1, len(first) + 1)} | where | {"score": self.scores[first]}
        columns |= {"pvalue": self.p_values[first], "flag": flags, why: reasons}
        brief = list(columns)
        chosen = self._telling_columns()
        for j in chosen:
            name = self.names[j] if self.names[j] not in columns else f"{self.names[j]} (column)"
            columns[name] = self.values[first, j]
        about = f"{len(chosen)} of {len(self.names)} columns are shown." if len(chosen) < len(self.names) else ""
        computed = frozenset({"score", "pvalue"})
        return [ShownTable("The least likely rows", columns, len(self), about, computed, brief)]

    def _telling_columns(self) -> list[int]:
        """Return the columns to show, in the order of the table; of many, those in which flagged rows deviate most."""
        if len(self.names) <= _MOST_COLUMNS:
            return list(range(len(self.names)))
        names, numbers = self.numbers
        marked = self.order[: max(10, int(self.flagged.sum()))]
        first = [self.names.index(names[j]) for j in extreme_columns(numbers, marked)[:_MOST_COLUMNS]]
        return sorted(first or range(_MOST_COLUMNS))

    def _charts(self) -> list[Chart]:
        return charts(self)

    def _notes(self) -> list[str]:
        notes = [
            "score: higher is more normal.",
            "pvalue: the share of ordinary rows that are at least as unlikely; small values are unusual. It is not smaller than "
            f"{self.resolution:.3g}, which is what these rows can show.",
            f"flagged: {self.rule}.",
            f"certain: selected so that about {self.fdr:.3g} of the selected rows are expected to be ordinary.",
        ]
        return notes + [
            "explained by: with the best value in its place, the score of the row would rise by the number after the plus sign."
        ] * (self.explanation is not None)

    def _used(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "number") if self.values.dtype.kind == "f" else {}

    def pvalue_text(self, row: int) -> str:
        """Return a p-value with its sign: "= 0.01", or "<= 0.001" where the rows show no smaller ones."""
        return pvalue_text(self.p_values[row], self.resolution)

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
