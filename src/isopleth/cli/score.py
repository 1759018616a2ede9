"""``isopleth score``: what a model says of the rows of a table that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import numpy as np

import isopleth
from isopleth.cli.answers import Answers, answers_of
from isopleth.cli.columns import ColumnList, read_for_model
from isopleth.cli.messages import Stages, printable, resumable
from isopleth.cli.model_file import columns_at_fit, of_this_version
from isopleth.cli.outputs import refuse_same
from isopleth.io import open_rows
from isopleth.io.atomic import remove_leftovers
from isopleth.io.journal import Journal
from isopleth.io.partial import content_stamp, partial_path, refuse_begun, table_stamp
from isopleth.io.writing import TABLE_SUFFIXES, check_suffix, check_table_target, write_array, write_blocks

# Without click's own test of readability, which would speak before the sentences of the library.
_PATH = click.Path(path_type=Path, readable=False)
_SUFFIXES = (*TABLE_SUFFIXES, ".npy")


@click.command(short_help="Write what a model says of each row of a table.")
@click.argument("model", type=_PATH)
@click.argument("file", type=_PATH)
@click.option(
    "--out", required=True, metavar="RESULT", type=_PATH, help="Write row and answers there; .csv, .parquet or .npy."
)
@click.option("--columns", type=ColumnList(), help="Use these columns only.")
@click.option("--chunk-rows", type=click.IntRange(min=1), help="Rows in memory at a time.  [default: those of 8 MiB]")
@click.option("--resume", is_flag=True, help="Go on where an interrupted run has stopped, if there was one.")
def score(model: Path, file: Path, out: Path, columns: list[str] | None, chunk_rows: int | None, resume: bool) -> None:
    """Write what MODEL says of each row of FILE, a table in .csv, .tsv, .parquet or .npy that may be larger than memory.

    RESULT has a row for each: log_density of a density; score, p_value and label (1: flagged) of a detector; of a score its
    vector, with d_ before the names of the columns; difference of the densities of two samples. An .npy file has no names and
    no numbers of rows. Until all is there, answers lie in RESULT.partial; with --resume an interrupted run gives the same bytes
    in the end.
    """
    refuse_same({"MODEL": model, "FILE": file, "--out": out, "the partial file": partial_path(out)})
    check_table_target(out, _SUFFIXES)
    refuse_begun(partial_path(out), resume=resume)
    with Stages(["reading", "scoring", "writing"]) as stage:
        stage("reading")
        answers = answers_of(model)
        with of_this_version(model):
            expected = columns_at_fit(answers.model)
        read = partial(open_rows, progress=lambda share: stage("reading", share))
        rows = read_for_model(file, columns, *expected, read)
        size = chunk_rows or rows.chunk_rows
        about = {
            "MODEL": content_stamp(model),
            "FILE": table_stamp(file),
            "--columns": ", ".join(rows.names),
            "--chunk-rows": str(size),
            "version of isopleth": isopleth.__version__,
        }
        with Journal(partial_path(out), about, len(answers.names)) as journal:
            remove_leftovers(out)  # of runs that were killed
            with resumable(journal.path):
                stage("scoring")
                for chunk in rows.chunks(size, journal.n_rows):
                    journal.append(answers(chunk.values))
                    stage("scoring", journal.n_rows / rows.n_rows)
                stage("writing")
                _write(out, answers, journal)
            journal.remove()
    named = ", ".join(map(printable, answers.names[:6])) + ", ..." * (len(answers.names) > 6)
    click.echo(f"{rows.n_rows:,} row{'s' * (rows.n_rows != 1)}: {named} in {printable(str(out))}")


def _write(out: Path, answers: Answers, journal: Journal) -> None:
    if check_suffix(out, _SUFFIXES) == ".npy":
        write_array(out, (journal.n_rows, len(answers.names)), journal.blocks())
    else:
        write_blocks(out, _named(answers, journal))


def _named(answers: Answers, journal: Journal) -> Iterator[dict[str, np.ndarray]]:
    first = 1
    for block in journal.blocks():
        columns = {"row": np.arange(first, first + len(block))}
        for name, values in zip(answers.names, block.T, strict=True):
            columns[name] = values.astype(np.int64) if name in answers.whole else np.ascontiguousarray(values)
        yield columns
        first += len(block)
