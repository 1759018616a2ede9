"""``isopleth score``: compute a model's answers for a table that need not fit in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import isopleth
from isopleth.cli.messages import of_this_version, removed_if_refused, resumable, say
from isopleth.cli.models import Answers, answers_of, takes_gaps
from isopleth.cli.run import Run, refuse_same, schema_of, warn_without_names
from isopleth.errors import listed, printable
from isopleth.io.resume import Journal, content_fingerprint, partial_path, refuse_begun, table_fingerprint
from isopleth.results.text import counted
from isopleth.tables.output_files import remove_leftovers
from isopleth.tables.read import Reading
from isopleth.tables.stream import FileRows
from isopleth.tables.table import FileTable
from isopleth.tables.write import write_array, write_blocks


def score(run: Run, model: Path, file: Path, chunk_rows: int | None, resume: bool) -> None:
    """Write the answers of a model for each row of a table."""
    assert run.out is not None
    kept = partial_path(run.out)
    refuse_same({**run.inputs, "the partial file": kept})
    refuse_begun(kept, resume=resume)
    run.stage("reading")
    answers = answers_of(model)
    rows, gaps = open_rows(file, run.options, answers, lambda share: run.stage("reading", share))
    size = chunk_rows or rows.chunk_rows
    about = {
        "MODEL": content_fingerprint(model),
        "FILE": table_fingerprint(file),
        "--columns": ", ".join(rows.names),
        "--chunk-rows": str(size),
        "version of isopleth": isopleth.__version__,
    }
    with resumable(kept), Journal(kept, about) as journal:
        remove_leftovers(run.out)  # of runs that were killed
        run.stage("scoring")
        done = rows_done(journal)
        with removed_if_refused(journal):
            for chunk in rows.tables(size, done):
                done += len(chunk)
                journal.append(str(done), _answered(answers, chunk, gaps))
                run.stage("scoring", None if gaps else done / rows.n_rows)
        run.stage("writing")
        _write(run, answers, journal)
        unranked = _unranked(answers, journal)
        journal.remove()
    if rows.unseen:
        counts = ", ".join(f"{name!r} ({count:,})" for name, count in rows.unseen.items())
        say(
            f"words that no row of the fit had, by column and number of cells: {counts}; they count as one more category."
        )
    text = f"{counted(rows.n_rows, 'row')}: {printable(listed(answers.names))} in {printable(str(run.out))}"
    if unranked:
        limit = "the range of the density" + " or its bounds" * answers.bounded
        verb = "is" if unranked == 1 else "are"
        text += f"\n{counted(unranked, 'row')} {verb} beyond {limit}: log_density is -inf and does not rank them"
    about_rows = {"rows": rows.n_rows, "answers": answers.names, "out": str(run.out), "unranked": unranked}
    run.report_of(text, "scores", **about_rows)


def _unranked(answers: Answers, journal: Journal) -> int:
    """Return the number of rows whose log density is minus infinity."""
    if answers.names != ["log_density"]:
        return 0
    return sum(int(np.isneginf(block["answers"]).sum()) for block in _blocks(journal))


def _write(run: Run, answers: Answers, journal: Journal) -> None:
    assert run.out is not None
    if run.out.suffix.lower() == ".npy":
        write_array(run.out, (rows_done(journal), len(answers.names)), (block["answers"] for block in _blocks(journal)))
    else:
        write_blocks(run.out, _named(run, answers, journal))


def _named(run: Run, answers: Answers, journal: Journal) -> Iterator[dict[str, np.ndarray]]:
    first = 1
    for block in _blocks(journal):
        values = block["answers"]
        columns = run.places(len(values), block.get("lines"), first)
        for name, column in zip(answers.names, values.T, strict=True):
            columns[name] = column.astype(np.int64) if name in answers.whole else np.ascontiguousarray(column)
        yield columns
        first += len(values)


def open_rows(
    path: Path, options: Reading, answers: Answers, progress: Callable[[float], None]
) -> tuple[FileRows, bool]:
    """Open the columns of a model, to be read in chunks, and tell whether they may have words and gaps."""
    with of_this_version(answers.source):
        schema, gaps = schema_of(answers.model), takes_gaps(answers.model)
    rows = FileRows(path, options.of_schema(schema), schema if gaps else None, progress, min_rows=1)
    warn_without_names(rows.file)
    return rows, gaps


def _answered(answers: Answers, chunk: FileTable, gaps: bool) -> dict[str, np.ndarray]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="words that were not among")  # they are counted, and said once
        warnings.filterwarnings(
            "ignore", message="X does not have valid feature names"
        )  # they were matched by name before
        kept = {"answers": answers(chunk.frame if gaps else chunk.values)}
    return kept if chunk.lines is None else kept | {"lines": chunk.lines}


def rows_done(journal: Journal) -> int:
    """Return the number of rows whose answers are kept: the key of the last record."""
    return int(journal.keys[-1]) if journal.keys else 0


def _blocks(journal: Journal) -> Iterator[dict[str, np.ndarray]]:
    for key in journal.keys:
        found = journal.read(key)
        if found is not None:
            yield found
