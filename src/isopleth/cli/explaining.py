"""Why rows are unlikely: for those that a run shows and, where it writes a file, for those that are flagged."""

from __future__ import annotations

from dataclasses import replace

from isopleth.cli.findings import Findings
from isopleth.cli.messages import say
from isopleth.cli.model_file import matched_columns
from isopleth.tasks.anomaly.detector import AnomalyDetector

# A model can flag every row of a large file, which would take hours to explain.
MOST_FLAGGED = 1000


def explained(detector: AnomalyDetector, findings: Findings, top: int, *, flagged: bool) -> Findings:
    """The findings, with an explanation of their least likely rows.

    Parameters
    ----------
    detector : AnomalyDetector
        Who judged the rows.
    findings : Findings
        What it found.
    top : int
        How many rows are shown; these are explained.
    flagged : bool
        Whether to explain flagged rows too, the MOST_FLAGGED least likely ones.

    Returns
    -------
    Findings
        Those of before, and what explains them.
    """
    found = int(findings.flagged.sum())
    # Flagged rows are the least likely ones, so that the first in this order are all that is wanted; a detector takes no
    # fewer rows than one.
    rows = findings.order[: max(top, min(found, MOST_FLAGGED) if flagged else 0, 1)]
    if flagged and len(rows) < found:
        say(f"of {found:,} flagged rows the {len(rows):,} least likely are explained; a larger --top explains more.")
    with matched_columns():
        explanation = detector.explain(findings.table.values[rows])
    return replace(findings, explanation=replace(explanation, names=findings.table.names), explained_rows=rows)
