"""``isopleth prior``: how large the share of each class is among rows without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import numpy as np

from isopleth.cli.columns import ColumnList, read_for_model
from isopleth.cli.messages import Stages, naming_columns, printable
from isopleth.cli.outputs import Outputs
from isopleth.errors import InputError
from isopleth.io import Table, read_names, read_table
from isopleth.io.labels import read_labels
from isopleth.io.selection import listed
from isopleth.io.writing import write_table
from isopleth.plotting import plot_class_priors, save_figure
from isopleth.tasks.class_prior.estimator import ClassPriorEstimator
from isopleth.tasks.class_prior.result import ClassPriors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PATH = click.Path(path_type=Path, readable=False)


@click.command(short_help="Estimate the shares of classes in a table without labels.")
@click.argument("train", type=_PATH)
@click.argument("test", type=_PATH)
@click.option("--target", required=True, metavar="COL", help="The column of TRAIN that names the class of each row.")
@click.option("--columns", type=ColumnList(), help="Use these columns only, besides the target.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence of each interval.")
@click.option("--out", type=_PATH, help="Write class, prior, lower and upper; .csv or .parquet.")
@click.option("--plot", type=_PATH, help="Draw the shares; .png, .svg or .pdf.")
def prior(
    train: Path, test: Path, target: str, columns: list[str] | None, level: float, out: Path | None, plot: Path | None
) -> None:
    """Estimate the share of each class among the rows of TEST from labelled rows in TRAIN.

    Both are tables in .csv, .tsv, .parquet, .npy or .npz. The classes may be numbers or words. What TEST has besides the
    columns of TRAIN is not read.
    """
    outputs = Outputs(rows=out, figure=plot)
    outputs.check({"TRAIN": train, "TEST": test})
    with Stages(["reading", "fitting", "estimating", "writing"]) as stage:
        stage("reading")
        labelled, classes = read_labelled(train, target, columns)
        table = read_for_model(test, None, len(labelled.names), labelled.names if labelled.named else None)
        stage("fitting")
        with naming_columns(labelled.names):
            estimator = ClassPriorEstimator(random_state=0).fit(labelled.values, classes)  # the same answer each time
        stage("estimating")
        priors = estimator.estimate(table.values, level)
        stage("writing")
        # Drawn first: what cannot be drawn leaves no other file behind an error.
        figure = cast("Figure", plot_class_priors(priors).figure) if plot else None
        if out:
            write_table(out, {name: np.array(column) for name, column in priors.to_dict().items()})
        if plot and figure is not None:
            save_figure(figure, plot)
    click.echo(report(priors, len(classes), labelled))


def read_labelled(path: Path, target: str, columns: list[str] | None) -> tuple[Table, np.ndarray]:
    """The columns to learn from, and the class of each row as it stands in the file.

    Raises
    ------
    InputError
        If the file cannot be read as such; the message says what is wrong, and where.
    """
    names = read_names(path)
    if names is None:
        names = read_table(path).names
    if target not in names:
        raise InputError(f"{path} has no column {target!r} (--target); it has {listed(names)}.")
    if columns is not None and target in columns:
        raise InputError(
            f"--columns names the target {target!r} too; the classes are not to be learned from themselves."
        )
    if len(names) == 1:
        raise InputError(f"{path} has no column besides the target {target!r}; there is nothing to learn from.")
    return read_table(path, columns, but=target), read_labels(path, target)


def report(priors: ClassPriors, labelled_rows: int, labelled: Table) -> str:
    """The text that a run prints."""
    width = len(labelled.names)
    head = (
        f"{priors.rows} row{'s' if priors.rows > 1 else ''} without labels, {labelled_rows} with; "
        f"{width} column{'s' if width > 1 else ''}"
    )
    numbers = zip(priors.classes.tolist(), priors.priors, priors.lower, priors.upper, strict=True)
    cells = [["share", f"{100 * priors.level:.6g}% interval", "class"]]
    cells += [[f"{share:.3f}", f"{low:.3f} to {high:.3f}", printable(str(name))] for name, share, low, high in numbers]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = "\n".join(f"{a.rjust(widths[0])}  {b.rjust(widths[1])}  {c}" for a, b, c in cells)
    meaning = (
        "share: of the rows without labels that belong to the class, if rows of a class are in both tables alike and every "
        "class is among the labels."
    )
    return f"{head}\n\n{table}\n\n{meaning}"
