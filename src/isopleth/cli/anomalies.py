"""``isopleth anomalies``: find the least likely rows of a table."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from isopleth.cli.columns import read_for_model
from isopleth.cli.findings import Findings, explained, report
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.models import columns_at_fit, judged, load_detector, matched_columns, of_this_version
from isopleth.cli.outputs import Outputs
from isopleth.errors import InputError
from isopleth.io import Table, read_table
from isopleth.tasks.anomaly.detector import AnomalyDetector


def anomalies(
    file: Path,
    out: Path | None,
    columns: list[str] | None,
    top: int,
    save_to: Path | None,
    model: Path | None,
    plot: Path | None,
    explain: bool,
    row_numbers: bool,
    raw_text: bool,
) -> None:
    """Find the least likely rows of a table and report them."""
    if save_to and model:
        raise InputError("--save and --model exclude each other: with --model nothing is fitted that could be saved.")
    outputs = Outputs(out, save_to, plot, raw_text)
    outputs.check({"FILE": file, "--model": model})
    with Stages(["reading", "fitting", "scoring", *["explaining"] * explain, "writing"]) as stage:
        stage("reading")
        if model:
            detector = load_detector(model)
            with of_this_version(model):
                expected = columns_at_fit(detector)
            table = read_for_model(file, columns, *expected)
            stage("scoring")
            with of_this_version(model):
                findings, wording = score(detector, table), wording_of_new(detector)
        else:
            table = read_table(file, columns)
            stage("fitting")
            detector = fit(table)
            findings = training_findings(detector, table)
            wording = wording_of_training(detector, findings)
        if explain:
            stage("explaining")
            with of_this_version(model) if model else nullcontext():
                findings = explained(detector, findings, top, flagged=out is not None)
        stage("writing")
        findings = replace(findings, row_numbers=row_numbers)
        outputs.write(findings, detector)
    click.echo(report(findings, top, *wording))


def fit(table: Table) -> AnomalyDetector:
    """Return a detector fitted to a table, with the names of its columns where the file has them."""
    with naming_columns(table.names):
        detector = AnomalyDetector(random_state=0).fit(table.values)  # the same answer each time
    if table.named:
        # A data frame would bring them along, but none of the packages that have one is needed otherwise.
        detector.feature_names_in_ = np.array(table.names, dtype=object)
    return detector


def training_findings(detector: AnomalyDetector, table: Table) -> Findings:
    """Return the findings of a detector in the table it was fitted to."""
    return Findings(table, detector.training_scores_, detector.p_values_, detector.training_labels_)


def score(detector: AnomalyDetector, table: Table) -> Findings:
    """Return the findings of a detector in new rows."""
    with matched_columns():
        scores, p_values, flagged = judged(detector, table.values)
    return Findings(table, scores, p_values, np.where(flagged, -1, 1))


def wording_of_training(detector: AnomalyDetector, findings: Findings) -> tuple[str, str]:
    """Return the rule that flags rows of the fitted table, and a sentence on its certainty."""
    rate, n = detector.false_discovery_rate, len(findings.scores)
    meaning = (
        "p-value: the share of rows as unlikely, continued by a fitted tail beyond the most extreme eighth and so "
        "approximate"
    )
    if findings.flagged.any():
        sureness = (
            f"; of flagged rows about {rate:.0%} may be ordinary ones, more where the columns have heavy tails or few "
            "distinct values."
        )
    else:
        sureness = (
            f".\nNo row is flagged: among {n} rows the least likely would have to have a p-value below {rate / n:.2g}, "
            f"or the two least likely below {2 * rate / n:.2g}, and so on."
        )
    return f"false discovery rate {rate:.0%}", meaning + sureness


def wording_of_new(detector: AnomalyDetector) -> tuple[str, str]:
    """Return the rule that flags new rows, and a sentence on its certainty."""
    return (
        f"score below {detector.offset_:.4g}",
        "p-value: a row that comes from where the rows of the model came from has p <= t with a probability "
        "of at most about 2t (in simulation about t), whatever t is.",
    )
