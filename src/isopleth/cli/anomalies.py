"""``isopleth anomalies``: find the least likely rows of a table."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from isopleth.cli.answers import answer, write_page
from isopleth.cli.findings import Findings, explained, report_text
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.mixed import MixedTable, read_for_detector, read_mixed, rows_of
from isopleth.cli.models import judged, load_detector, matched_columns, of_this_version
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import Outputs, numbers_of
from isopleth.cli.text import counted
from isopleth.errors import InputError
from isopleth.io import Table
from isopleth.tasks.anomaly.detector import AnomalyDetector

_WORTH_A_LOOK = "worth a look"


def anomalies(
    file: Path,
    out: Path | None,
    contamination: float | None,
    fdr: float,
    reference: Path | None,
    options: TableOptions,
    top: int,
    save_to: Path | None,
    model: Path | None,
    plot: Path | None,
    explain: bool,
    row_numbers: bool,
    raw_text: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Find the least likely rows of a table and report them."""
    if save_to and model:
        raise InputError("--save and --model exclude each other: with --model nothing is fitted that could be saved.")
    for name, given in (("--contamination", contamination), ("--reference", reference)):
        if model and given is not None:
            raise InputError(f"{name} and --model exclude each other: the model has its own threshold and reference.")
    outputs = Outputs(out, save_to, plot, raw_text, report)
    outputs.check({"FILE": file, "--model": model, "--reference": reference})
    with Stages(
        ["reading", "fitting", "scoring", *["explaining"] * (explain or report is not None), "writing"]
    ) as stage:
        stage("reading")
        if model:
            detector = load_detector(model)
            with of_this_version(model):
                table = read_for_detector(file, options, detector)
            stage("scoring")
            with of_this_version(model):
                findings = score(detector, table, fdr)
        elif reference:
            ordinary = read_mixed(reference, options)
            stage("fitting")
            detector = fit(ordinary, contamination, novelty=True)
            table = read_for_detector(file, options, detector)
            stage("scoring")
            findings = score(detector, table, fdr)
        else:
            table = read_mixed(file, options)
            stage("fitting")
            detector = fit(table, contamination)
            findings = training_findings(detector, table, fdr)
        # A page explains the rows that it shows first.
        if explain or report:
            stage("explaining")
            with of_this_version(model) if model else nullcontext():
                findings = explained(detector, findings, top, flagged=explain and out is not None)
        stage("writing")
        findings = replace(findings, row_numbers=row_numbers)
        outputs.write(findings if explain else replace(findings, explanation=None, explained_rows=None), detector)
        found = findings.result(fdr, detector.rule)
        if report:
            with suppress(InputError):  # a table of words has no numbers to draw
                found = replace(found, drawn=numbers_of(findings.table, detector))
            write_page(found, report, [path for path in (file, reference, model) if path])
    rule = rule_of_flags(detector)
    shown = findings if explain else replace(findings, explanation=None, explained_rows=None)
    text = report_text(shown, top, rule, meaning(findings, rule, fdr, new=bool(model or reference)))
    answer(text, found, as_json, top)


def fit(table: Table, contamination: float | None = None, *, novelty: bool = False) -> AnomalyDetector:
    """Return a detector fitted to a table, with the names of its columns if the file has them."""
    share = "auto" if contamination is None else contamination
    detector = AnomalyDetector(contamination=share, novelty=novelty, random_state=0)
    if isinstance(table, MixedTable) and table.read:
        return table.read.fit(detector)
    with naming_columns(table.names):
        detector.fit(table.values)
    if table.named:
        # A data frame would carry the names, but no library that has one is needed otherwise.
        detector.feature_names_in_ = np.array(table.names, dtype=object)
    return detector


def training_findings(detector: AnomalyDetector, table: Table, fdr: float = 0.1) -> Findings:
    """Return the findings of a detector in the table it was fitted to."""
    return Findings(
        table,
        detector.training_scores_,
        detector.p_values_,
        detector.training_labels_,
        detector.select(fdr=fdr),
        rows_behind=len(detector.p_values_),
    )


def score(detector: AnomalyDetector, table: Table, fdr: float) -> Findings:
    """Return the findings of a detector in new rows."""
    with matched_columns():
        scores, p_values, flagged = judged(detector, rows_of(table))
        certain = detector.select(rows_of(table), fdr=fdr)
    behind = len(detector.p_values_)
    return Findings(table, scores, p_values, np.where(flagged, -1, 1), certain, rows_behind=behind)


def rule_of_flags(detector: AnomalyDetector) -> str:
    """Return the meaning of a flag in a few words."""
    if detector.contamination == "auto":
        return _WORTH_A_LOOK
    return f"the least likely {float(detector.contamination):.3g} of the fitted rows"


def meaning(findings: Findings, rule: str, fdr: float, *, new: bool) -> str:
    """Return sentences on what the marks and the p-values of a report mean."""
    certain = int(findings.certain.sum())
    first = f"{rule}, as unlikely as the least likely thirtieth of ordinary rows" if rule == _WORTH_A_LOOK else rule
    marks = f"*: {first}.  **: certain at a false discovery rate of {fdr:.3g} ({counted(certain, 'row')})."
    if new:
        return marks + (
            "\np-value: among new rows like those of the reference, a share of about t or less has a p-value up to t, for any t."
        )
    return marks + (
        "\np-value: the share of rows as unlikely, continued by a fitted tail beyond the most extreme eighth and so approximate."
    )
