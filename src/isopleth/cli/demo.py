"""``isopleth demo``: find known anomalies in an included table."""

from __future__ import annotations

from pathlib import Path

import click

from isopleth.cli.anomalies import fit, training_findings, wording_of_training
from isopleth.cli.findings import report
from isopleth.cli.messages import Stages
from isopleth.cli.outputs import Outputs
from isopleth.datasets import load_breast
from isopleth.errors import printable
from isopleth.io import Table


def demo(plot: Path) -> None:
    """Find the anomalies of a table where they are known."""
    outputs = Outputs(figure=plot)
    outputs.check({})
    with Stages(["reading", "fitting", "writing"]) as stage:
        stage("reading")
        breast = load_breast()
        table = Table(breast.data, breast.feature_names, named=True, source=Path("breast"))
        stage("fitting")
        detector = fit(table)
        findings = training_findings(detector, table)
        stage("writing")
        outputs.write(findings, detector)
    known = int(breast.labels.sum())
    found = int(breast.labels[findings.order[:known]].sum())
    chance = known * known / len(breast.labels)
    click.echo(breast.description + "\n")
    click.echo(report(findings, known, *wording_of_training(detector, findings)) + "\n")
    click.echo(
        f"{found} of the {known} known anomalies are among the {known} least likely rows (by chance: {chance:.1f})."
    )
    click.echo(f"The picture is in {printable(str(plot))}.")
