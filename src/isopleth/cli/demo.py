"""``isopleth demo``: find known anomalies in an included table."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import click
from click.core import ParameterSource

from isopleth.cli.anomalies import fit, judged
from isopleth.cli.messages import Stages
from isopleth.cli.outputs import Outputs, print_json, say_on_output
from isopleth.datasets import load_breast
from isopleth.errors import printable
from isopleth.results.text import counted
from isopleth.tables.table import FileTable


def demo(plot: Path, as_json: bool) -> None:
    """Find the anomalies of a table where they are known."""
    drawn = _is_to_be_drawn()
    outputs = Outputs(figure=plot if drawn else None)
    outputs.check()
    with Stages(["reading", "fitting", "writing"]) as stage:
        stage("reading")
        breast = load_breast()
        table = FileTable.of_array(breast.data, breast.feature_names, Path("breast"))
        stage("fitting")
        found = replace(judged(fit(table), table), known=breast.labels == 1)
        stage("writing")
        outputs.write(found)
    known = int(breast.labels.sum())
    likely, flagged = int(breast.labels[found.order[:known]].sum()), int(breast.labels[found.flagged].sum())
    if as_json:
        counts = {"known": known, "known_among_least_likely": likely, "known_flagged": flagged}
        print_json(found.to_dict(known) | counts | {"plot": str(plot) if drawn else None})
        return
    finding = (
        f"{likely} of the {known} known anomalies are among the {known} least likely rows (by chance: "
        f"{known * known / len(breast.labels):.1f}); {flagged} of them are among the "
        f"{counted(int(found.flagged.sum()), 'flagged row')}."
    )
    picture = (
        f"The picture is in {printable(str(plot))}." if drawn else "There is no picture: matplotlib is not installed."
    )
    say_on_output(f"{breast.description}\n\n{found.text(known)}\n\n{finding}\n{picture}")


def _is_to_be_drawn() -> bool:
    """Return whether matplotlib is installed, or the user has asked for the picture and is to be told that it is not."""
    asked = click.get_current_context().get_parameter_source("plot") is not ParameterSource.DEFAULT
    return asked or find_spec("matplotlib") is not None
