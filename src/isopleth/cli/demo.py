"""``isopleth demo``: find known anomalies in an included table."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import click
from click.core import ParameterSource

from isopleth.cli.anomalies import fit, meaning, rule_of_flags, training_findings
from isopleth.cli.answers import print_json
from isopleth.cli.findings import report_text
from isopleth.cli.messages import Stages
from isopleth.cli.outputs import Outputs
from isopleth.cli.text import counted, wrapped
from isopleth.datasets import load_breast
from isopleth.errors import printable
from isopleth.io import Table


def demo(plot: Path, as_json: bool) -> None:
    """Find the anomalies of a table where they are known."""
    drawn = _is_to_be_drawn()
    outputs = Outputs(figure=plot if drawn else None)
    outputs.check({})
    with Stages(["reading", "fitting", "writing"]) as stage:
        stage("reading")
        breast = load_breast()
        table = Table(breast.data, breast.feature_names, named=True, source=Path("breast"))
        stage("fitting")
        detector = fit(table)
        findings = replace(training_findings(detector, table), known=breast.labels == 1)
        stage("writing")
        outputs.write(findings, detector)
    known = int(breast.labels.sum())
    found = int(breast.labels[findings.order[:known]].sum())
    chance = known * known / len(breast.labels)
    flagged = int(breast.labels[findings.flagged].sum())
    if as_json:
        counts = {
            "known": known,
            "known_among_least_likely": found,
            "known_flagged": flagged,
            "plot": str(plot) if drawn else None,
        }
        print_json(findings.result(0.1, detector.rule).to_dict(known) | counts)
        return
    rule = rule_of_flags(detector)
    text = report_text(findings, known, rule, meaning(findings, rule, 0.1, new=False))
    finding = (
        f"{found} of the {known} known anomalies are among the {known} least likely rows (by chance: {chance:.1f}); {flagged} of "
        f"them are among the {counted(int(findings.flagged.sum()), 'flagged row')}."
    )
    picture = (
        f"The picture is in {printable(str(plot))}." if drawn else "There is no picture: pip install 'isopleth[plot]'."
    )
    click.echo(wrapped(f"{breast.description}\n\n{text}\n\n{finding}\n{picture}"))


def _is_to_be_drawn() -> bool:
    """Return whether matplotlib is installed, or the user has asked for the picture and is to be told that it is not."""
    asked = click.get_current_context().get_parameter_source("plot") is not ParameterSource.DEFAULT
    return asked or find_spec("matplotlib") is not None
