"""``isopleth demo``: find known anomalies in an included table."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from isopleth.cli.anomalies import fit, judged
from isopleth.cli.run import Run
from isopleth.core.errors import printable
from isopleth.datasets import load_breast
from isopleth.files.file_table import FileTable
from isopleth.results.text import counted


def demo(run: Run) -> None:
    """Find the anomalies of a table where they are known."""
    if run.plot is None and find_spec("matplotlib") is not None:
        run.plot = Path("isopleth-demo.png")
        run.check()
    run.stage("reading")
    breast = load_breast()
    table = FileTable.of_array(breast.data, breast.feature_names, Path("breast"))
    run.stage("fitting")
    found = replace(judged(fit(table), table, run.places(len(table), None)), known=breast.labels == 1)
    run.stage("writing")
    run.write(found)
    known = int(breast.labels.sum())
    likely, flagged = int(breast.labels[found.order[:known]].sum()), int(breast.labels[found.flagged].sum())
    if run.as_json:
        counts = {"known": known, "known_among_least_likely": likely, "known_flagged": flagged}
        run.print_json(found.to_dict(known) | counts | {"plot": run.plot and str(run.plot)})
        return
    finding = (
        f"{likely} of the {known} known anomalies are among the {known} least likely rows (by chance: "
        f"{known * known / len(breast.labels):.1f}); {flagged} of them are among the "
        f"{counted(int(found.flagged.sum()), 'flagged row')}."
    )
    picture = "There is no picture: matplotlib is not installed."
    if run.plot is not None:
        picture = f"The picture is in {printable(str(run.plot))}."
    run.print(f"{breast.description}\n\n{found.text(known)}\n\n{finding}\n{picture}")
