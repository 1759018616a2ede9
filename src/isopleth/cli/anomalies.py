"""``isopleth anomalies``: which rows of a table are unlikely."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click
import numpy as np

from isopleth.cli.answers import judged
from isopleth.cli.columns import ColumnList, read_for_model
from isopleth.cli.explaining import MOST_FLAGGED, explained
from isopleth.cli.findings import Findings
from isopleth.cli.messages import Stages, naming_columns
from isopleth.cli.model_file import columns_at_fit, load_detector, matched_columns, of_this_version
from isopleth.cli.outputs import Outputs
from isopleth.cli.report import report
from isopleth.errors import InputError
from isopleth.io import Table, read_table
from isopleth.tasks.anomaly.detector import AnomalyDetector

# Without click's own test of readability, which would speak before the sentences of the library.
_PATH = click.Path(path_type=Path, readable=False)


@click.command(short_help="Show the least likely rows of a table.")
@click.argument("file", type=_PATH)
@click.option(
    "--out", type=_PATH, help="Write row, score, p_value and label (1: flagged) of every row; .csv or .parquet."
)
@click.option("--columns", type=ColumnList(), help="Use these columns only.")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True, help="Show so many rows.")
@click.option("--save", "save_to", metavar="MODEL", type=_PATH, help="Keep the fitted model in this file.")
@click.option("--model", metavar="MODEL", type=_PATH, help="Score the rows with this model instead of fitting one.")
@click.option("--plot", type=_PATH, help="Draw the anomalies; .png, .svg or .pdf.")
@click.option(
    "--explain",
    is_flag=True,
    help="Say for the rows shown which columns make them unlikely; --out says it for flagged rows too, in columns "
    f"explained_by, best and rise (at most {MOST_FLAGGED:,}).",
)
def anomalies(
    file: Path,
    out: Path | None,
    columns: list[str] | None,
    top: int,
    save_to: Path | None,
    model: Path | None,
    plot: Path | None,
    explain: bool,
) -> None:
    """Show the least likely rows of FILE, a table in .csv, .tsv, .parquet, .npy or .npz.

    Without --model, each row is judged by the other rows of FILE. With --model, the rows are new, and are judged by
    those that the model was fitted on.
    """
    if save_to and model:
        raise InputError("--save and --model exclude each other: with --model nothing is fitted that could be saved.")
    outputs = Outputs(out, save_to, plot)
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
        outputs.write(findings, detector)
    click.echo(report(findings, top, *wording))


def fit(table: Table) -> AnomalyDetector:
    """A detector fitted to a table, that knows the names of its columns where the file has them."""
    with naming_columns(table.names):
        detector = AnomalyDetector(random_state=0).fit(table.values)  # the same answer each time
    if table.named:
        # A data frame would bring them along, but none of the packages that have one is needed otherwise.
        detector.feature_names_in_ = np.array(table.names, dtype=object)
    return detector


def training_findings(detector: AnomalyDetector, table: Table) -> Findings:
    """What the detector found in the table it was fitted to."""
    return Findings(table, detector.training_scores_, detector.p_values_, detector.training_labels_)


def score(detector: AnomalyDetector, table: Table) -> Findings:
    """What the detector says of new rows."""
    with matched_columns():
        scores, p_values, flagged = judged(detector, table.values)
    return Findings(table, scores, p_values, np.where(flagged, -1, 1))


def wording_of_training(detector: AnomalyDetector, findings: Findings) -> tuple[str, str]:
    """The rule by which rows of the table itself are flagged, and how sure that is or what it would take."""
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
    """The rule by which new rows are flagged, and how sure that is."""
    return (
        f"score below {detector.offset_:.4g}",
        "p-value: a row that comes from where the rows of the model came from has p <= t with a probability "
        "of at most about 2t (in simulation about t), whatever t is.",
    )
