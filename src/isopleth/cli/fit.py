"""``isopleth fit``: a model of a table that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import isopleth
from isopleth.cli.columns import ColumnList
from isopleth.cli.messages import Stages, naming_columns, printable, resumable
from isopleth.cli.outputs import refuse_same
from isopleth.density import RandomFeatureSOSREP
from isopleth.distributed import FileParts
from isopleth.distributed import fit as fit_parts
from isopleth.distributed.checkpoint import Checkpoint
from isopleth.errors import InputError
from isopleth.io import check_target, open_rows, save
from isopleth.io.atomic import is_for_want_of_room, remove_leftovers
from isopleth.io.partial import partial_path, refuse_begun, table_stamp
from isopleth.score import NystromKEF

# Without click's own test of readability, which would speak before the sentences of the library.
_PATH = click.Path(path_type=Path, readable=False)
_SIZES = {"density": 500, "score": 300}


@click.command(short_help="Fit a model to a table and keep it in a file.")
@click.argument("file", type=_PATH)
@click.option("--out", required=True, metavar="MODEL", type=_PATH, help="Keep the fitted model in this file.")
@click.option(
    "--kind",
    type=click.Choice(list(_SIZES)),
    default="density",
    show_default=True,
    help="A density in random features, or its score at landmarks.",
)
@click.option("--columns", type=ColumnList(), help="Use these columns only.")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    help="Wave vectors of a density, or landmarks of a score: more are closer and slower.  "
    f"[default: {_SIZES['density']} or {_SIZES['score']}]",
)
@click.option(
    "--length-scale", type=click.FloatRange(min=0, min_open=True), help="Of all columns.  [default: by the data]"
)
@click.option("--chunk-rows", type=click.IntRange(min=1), help="Rows in memory at a time.  [default: those of 8 MiB]")
@click.option("--resume", is_flag=True, help="Go on where an interrupted run has stopped, if there was one.")
def fit(
    file: Path,
    out: Path,
    kind: str,
    columns: list[str] | None,
    size: int | None,
    length_scale: float | None,
    chunk_rows: int | None,
    resume: bool,
) -> None:
    """Fit a model to FILE, a table in .csv, .tsv, .parquet or .npy that may be larger than memory.

    The rows are gone through several times. Until the model is there, the sums of each pass lie in the folder MODEL.partial;
    with --resume an interrupted run gives the same bytes in the end. Detectors of anomalies are fitted in memory: isopleth
    anomalies --save.
    """
    folder = partial_path(out)
    refuse_same({"FILE": file, "--out": out, "the partial folder": folder})
    check_target(out)
    refuse_begun(folder, resume=resume)
    with Stages(["reading", "fitting", "writing"]) as stage:
        stage("reading")
        rows = open_rows(file, columns, progress=lambda share: stage("reading", share))
        stage("fitting")
        size = size or _SIZES[kind]
        estimator = _estimator(kind, size, length_scale)
        about = {
            "FILE": table_stamp(file),
            "--kind": kind,
            "--columns": ", ".join(rows.names),
            "--size": str(size),
            "--length-scale": str(length_scale),
            "--chunk-rows": str(chunk_rows or rows.chunk_rows),
            "version of isopleth": isopleth.__version__,
        }
        with Checkpoint(folder, about) as checkpoint:
            remove_leftovers(out)  # of runs that were killed
            parts = FileParts(rows, None, chunk_rows, checkpoint, lambda number, share: stage("fitting", share))
            with resumable(folder):
                with _vain_if_refused(checkpoint), naming_columns(rows.names):
                    model = fit_parts(estimator, parts)
                stage("writing")
                save(model, out)
            checkpoint.remove()
    width = len(rows.names)
    click.echo(
        f"{type(model).__name__} of {rows.n_rows:,} rows of {width} column{'s' * (width != 1)} in {printable(str(out))}"
    )


def _estimator(kind: str, size: int, length_scale: float | None) -> Any:
    """The same answer each time."""
    told: dict[str, Any] = {} if length_scale is None else {"length_scale": length_scale}
    if kind == "density":
        return RandomFeatureSOSREP(n_frequencies=size, random_state=0, **told)
    return NystromKEF(landmarks=size, random_state=0, **told)


@contextmanager
def _vain_if_refused(checkpoint: Checkpoint) -> Iterator[None]:
    """Leave nothing of a fit that is refused, as it would be again; what no room was left for can be gone on with."""
    try:
        yield
    except InputError as error:
        if not is_for_want_of_room(error):
            checkpoint.remove()
        raise
