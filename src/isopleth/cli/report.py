"""Findings as text for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isopleth.cli.findings import Findings
from isopleth.cli.messages import printable
from isopleth.io.deviations import robust_z
from isopleth.tasks.anomaly.explanation import Explanation

_COLUMNS_A_ROW = 3
_COLUMNS_IN_HEADER = 6
_MEANING_OF_RISE = (
    "explained by: the columns whose value alone costs the row most; with the best value in its place, the score would rise "
    "by what follows the plus sign."
)


def report(findings: Findings, top: int, rule: str, meaning: str) -> str:
    """The text that a run prints.

    Parameters
    ----------
    findings : Findings
        What was found.
    top : int
        How many rows to show.
    rule : str
        By which rule rows are flagged.
    meaning : str
        What a p-value means, in a sentence.

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
    names = [printable(name) for name in findings.table.names]
    rows, flagged = len(findings.scores), int(findings.flagged.sum())
    listed = ", ".join(names[:_COLUMNS_IN_HEADER]) + (", ..." if len(names) > _COLUMNS_IN_HEADER else "")
    return f"{rows} row{_s(rows)}, {len(names)} column{_s(len(names))} ({listed}): {flagged} flagged ({rule})"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _cells(findings: Findings, shown: np.ndarray) -> list[list[str]]:
    """A header and a line for each shown row; text files also get the line at which an editor finds the row."""
    lines = findings.table.lines
    place = ["row"] if lines is None else ["row", "line"]
    last = "most extreme columns" if findings.explanation is None else "explained by"
    cells = [["rank", *place, "score", "p-value", "flag", last]]
    reasons = _extremes(findings, shown) if findings.explanation is None else _described(findings.explanation, shown)
    for rank, (i, reason) in enumerate(zip(shown, reasons, strict=True), start=1):
        where = [str(i + 1)] if lines is None else [str(i + 1), str(lines[i])]
        numbers = [f"{findings.scores[i]:.4g}", f"{findings.p_values[i]:.3g}"]
        cells.append([str(rank), *where, *numbers, "*" if findings.flagged[i] else "", reason])
    return cells


def _extremes(findings: Findings, shown: np.ndarray) -> list[str]:
    table = findings.table
    names = [printable(name) for name in table.names]
    z = np.abs(robust_z(table.values[shown], table.values))
    return [
        "  ".join(f"{names[j]}={row[j]:.4g}" for j in np.argsort(-deviation, kind="stable")[:_COLUMNS_A_ROW])
        for row, deviation in zip(table.values[shown], z, strict=True)
    ]


def _described(explanation: Explanation, shown: np.ndarray) -> list[str]:
    """The rows that are explained begin with those that are shown, in the same order."""
    return [printable(explanation.describe(k, _COLUMNS_A_ROW)) for k in range(len(shown))]


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart: numbers to the right, the last one to the left."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join([*(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=False)), line[-1]])
        for line in cells
    )
