"""Findings of a detector in a table: explained, as columns of a file, and as text."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from scipy.special import ndtri

from isopleth.cli.commands import MOST_FLAGGED
from isopleth.cli.messages import say
from isopleth.cli.mixed import rows_of, some_rows
from isopleth.cli.models import matched_columns
from isopleth.cli.text import ColumnNumbers, aligned, counted, places, pvalue_text, shortened
from isopleth.errors import DataWarning, printable
from isopleth.io.tables import Table
from isopleth.length_scales import robust_z
from isopleth.results import shown_cells
from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.anomaly.explanation import Explanation, better, cell_text
from isopleth.tasks.anomaly.result import Anomalies


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
    certain : ndarray of shape (n,), bool
        Rows selected with control of the false discovery rate.
    explanation : Explanation, optional
        Explanation of some of the rows, with the column names of the table.
    explained_rows : ndarray of shape (k,), optional
        Positions of those rows, the least likely first.
    row_numbers : bool, default=False
        Whether rows of text files are numbered beside their lines.
    rows_behind : int, optional
        Number of rows that the p-values are estimated from.
    known : ndarray of shape (n,), bool, optional
        Rows that are known to be anomalies, for the picture.
    """

    table: Table
    scores: np.ndarray
    p_values: np.ndarray
    labels: np.ndarray
    certain: np.ndarray
    explanation: Explanation | None = None
    explained_rows: np.ndarray | None = None
    row_numbers: bool = False
    rows_behind: int | None = None
    known: np.ndarray | None = None

    @property
    def flagged(self) -> np.ndarray:
        """Mask of the flagged rows."""
        return self.labels < 0

    @property
    def order(self) -> np.ndarray:
        """Positions of the rows, the least likely first; ties stay in the order of the table."""
        return np.argsort(self.scores, kind="stable")

    def places(self) -> dict[str, np.ndarray]:
        """Return the columns that say where the rows stand in the file."""
        return places(len(self.scores), self.table.lines, row_numbers=self.row_numbers)

    def result(self, fdr: float, rule: str) -> Anomalies:
        """Return the findings as a result with a table, JSON and a page."""
        cells, names = shown_cells(rows_of(self.table), self.table.values, self.table.names)
        found = (names, cells, self.scores, self.p_values, self.labels, self.certain, fdr, rule)
        return Anomalies(*found, self.places(), self.explanation, self.explained_rows)

    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns of a file of results."""
        columns = self.places() | {
            "score": self.scores,
            "pvalue": self.p_values,
            "label": self.flagged.astype(np.int64),
            "certain": self.certain.astype(np.int64),
        }
        return columns if self.explanation is None else columns | self._reasons(self.explanation)

    def _reasons(self, explanation: Explanation) -> dict[str, np.ndarray]:
        """Return for each row the column that explains most, its best value and the rise; empty where no column does."""
        first = explanation.rise.argmax(axis=1)
        each = np.arange(len(explanation))
        rises = explanation.rise[each, first]
        rows, positive = self.explained_rows, rises > 0.0
        names = np.full(len(self.scores), "", dtype=object)
        names[rows] = np.where(positive, np.array(explanation.names, dtype=object)[first], "")
        rise = np.full(len(self.scores), np.nan)
        rise[rows] = rises
        if self.table.values.dtype == object:
            best = np.full(len(self.scores), "", dtype=object)
            found = [cell_text(cell, repr) for cell in explanation.best[each, first]]
            best[rows] = np.where(positive, np.array(found, dtype=object), "")
        else:
            best = np.full(len(self.scores), np.nan)
            best[rows] = np.where(positive, explanation.best[each, first], np.nan)
        return {"explained_by": names, "best": best, "rise": rise}


def explained(detector: AnomalyDetector, findings: Findings, top: int, *, flagged: bool) -> Findings:
    """Return the findings with an explanation of their least likely rows.

    Parameters
    ----------
    detector : AnomalyDetector
        Detector that scored the rows.
    findings : Findings
        Its findings.
    top : int
        Number of rows to show; these are explained.
    flagged : bool
        Whether to explain flagged rows too, the MOST_FLAGGED least likely ones.

    Returns
    -------
    Findings
        The findings, with an explanation.
    """
    found = int(findings.flagged.sum())
    # Flagged rows are the least likely ones, so they come first in this order. A detector needs at least one row.
    rows = findings.order[: max(top, min(found, MOST_FLAGGED) if flagged else 0, 1)]
    if flagged and len(rows) < found:
        say(f"of {found:,} flagged rows the {len(rows):,} least likely are explained; a larger --top explains more.")
    with matched_columns(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # which was shown when the rows were scored
        explanation = detector.explain(some_rows(findings.table, rows))
    return replace(findings, explanation=replace(explanation, names=findings.table.names), explained_rows=rows)


_COLUMNS_A_ROW = 3
_MEANING_OF_RISE = (
    "explained by: the columns whose value alone costs the row most; with the best value in its place, the score would rise "
    "by what follows the plus sign."
)


def report_text(findings: Findings, top: int, rule: str, meaning: str) -> str:
    """Return the text that a run prints.

    Parameters
    ----------
    findings : Findings
        The findings.
    top : int
        Number of rows to show.
    rule : str
        Rule by which rows are flagged.
    meaning : str
        Sentence that says what a p-value means.

    Returns
    -------
    str
        A header, the table of the least likely rows, and the meaning of its p-values.
    """
    shown = findings.order[:top]
    parts = [_header(findings, rule)]
    if len(shown):
        parts.append(aligned(_cells(findings, shown)))
    parts.append(meaning)
    if findings.explanation is not None and len(shown):
        parts[-1] += "\n" + _MEANING_OF_RISE
    return "\n\n".join(parts)


def _header(findings: Findings, rule: str) -> str:
    names, flagged = findings.table.names, int(findings.flagged.sum())
    size = f"{counted(len(findings.scores), 'row')}, {counted(len(names), 'column')}"
    return f"{size} ({shortened(names)}): {flagged} flagged ({rule})"


def _cells(findings: Findings, shown: np.ndarray) -> list[list[str]]:
    """Return a header and a line for each shown row."""
    where = findings.places()
    last = "most extreme columns" if findings.explanation is None else "explained by"
    cells = [["rank", *where, "score", "p-value", "flag", last]]
    reasons = (
        _extremes(findings, shown)
        if findings.explanation is None
        else _described(findings, findings.explanation, shown)
    )
    for rank, (i, reason) in enumerate(zip(shown, reasons, strict=True), start=1):
        numbers = [f"{findings.scores[i]:.4g}", pvalue_text(findings.p_values[i], findings.rows_behind)]
        cells.append(
            [
                str(rank),
                *(str(column[i]) for column in where.values()),
                *numbers,
                "**" if findings.certain[i] else "*" if findings.flagged[i] else "",
                reason,
            ]
        )
    return cells


def _extremes(findings: Findings, shown: np.ndarray) -> list[str]:
    table = findings.table
    names = [printable(name) for name in table.names]
    texts = [_texts(column) for column in table.values.T]
    z = deviations(table.values, shown)
    return [
        "  ".join(
            f"{names[j]}={cell_text(row[j], texts[j])}" for j in np.argsort(-deviation, kind="stable")[:_COLUMNS_A_ROW]
        )
        for row, deviation in zip(table.values[shown], z, strict=True)
    ]


def deviations(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return how extreme the cells of some rows are: in robust deviations; for words, the deviation of a normal law as rare."""
    out = np.zeros((len(rows), values.shape[1]))
    for j, column in enumerate(values.T):
        numbers = column if column.dtype != object else _numbers(column)
        if numbers is None:
            words, place, counts = np.unique([str(cell) for cell in column], return_inverse=True, return_counts=True)
            share = counts[place.ravel()][rows] / len(column)
            out[:, j] = ndtri(1.0 - 0.5 * share) if len(words) > 1 else 0.0
        else:
            known = numbers[np.isfinite(numbers)]
            z = robust_z(numbers[rows, None], known[:, None])[:, 0]
            out[:, j] = np.nan_to_num(np.abs(z))
    return out


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """Return a column of objects as numbers; None if it holds words."""
    kinds = {type(cell) for cell in column if cell is not None}
    if not kinds or any(issubclass(kind, str) for kind in kinds):
        return None
    if any(issubclass(kind, datetime) for kind in kinds):
        return np.array([np.nan if cell is None else cell.timestamp() for cell in column])
    return np.array([np.nan if cell is None else cell for cell in column], dtype=np.float64)


def _texts(column: np.ndarray) -> Callable[[float], str]:
    """Return the function that writes the numbers of a column."""
    if column.dtype == object:
        column = np.array([cell for cell in column if isinstance(cell, float)])
    return ColumnNumbers(column).text


def _described(findings: Findings, explanation: Explanation, shown: np.ndarray) -> list[str]:
    """Return the explanations of the shown rows, which are the first of the explained rows."""
    texts = [_texts(column) for column in findings.table.values.T]
    names = [printable(name) for name in explanation.names]
    out = []
    for k in range(len(shown)):
        order = np.argsort(-explanation.rise[k], kind="stable")[:_COLUMNS_A_ROW]
        parts = [
            f"{names[j]}={cell_text(explanation.values[k, j], texts[j])} ({better(explanation.best[k, j], texts[j])}, "
            f"+{explanation.rise[k, j]:.3g})"
            for j in order
            if explanation.rise[k, j] > 0.0
        ]
        out.append("  ".join(parts) or "no column alone")
    return out
