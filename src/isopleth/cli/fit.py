"""``isopleth fit``: fit a model to a table that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import isopleth
from isopleth.cli.commands import DENSITY_SIZE, MIXED_SIZE, TableOptions
from isopleth.cli.messages import Stages, naming_columns, removed_if_refused, resumable, say
from isopleth.cli.outputs import about_run, keep_columns, print_json, refuse_same
from isopleth.cli.reading import chunk_reading, refuse_typos, tell
from isopleth.density import SOSREP, Search
from isopleth.distributed import FileParts
from isopleth.distributed import fit as fit_parts
from isopleth.distributed.files import Checkpoint
from isopleth.errors import Hint, InputError, TooLargeError, printable
from isopleth.io import save
from isopleth.io.resume import Journal, partial_path, refuse_begun, table_fingerprint
from isopleth.kernels import get_kernel
from isopleth.results.text import counted, wrapped
from isopleth.score import NystromKEF
from isopleth.score.ridge_selection import default_landmarks
from isopleth.score.spaces import SPACES
from isopleth.tables.output_files import check_target, remove_leftovers
from isopleth.tables.read import Reader, missing_words
from isopleth.tables.schema import Choices
from isopleth.tables.stream import FileRows
from isopleth.tables.table import FileTable


def fit(
    file: Path,
    out: Path,
    kind: str,
    options: TableOptions,
    size: int | None,
    length_scale: float | None,
    chunk_rows: int | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Fit a model to a table in chunks and save it."""
    partial = partial_path(out)
    refuse_same({"FILE": file, "--out": out, "the partial file": partial})
    check_target(out)
    refuse_begun(partial, resume=resume)
    with Stages(["reading", "fitting", "writing"]) as stage:
        stage("reading")
        first = Reader(file, chunk_reading(options)).first()
        keep_columns(first.schema)
        if not first.with_truth_as_numbers().is_plain:
            refuse_typos(first, options)
            tell(first, gaps=False)
            if kind == "score":
                raise InputError(f"{file}: --kind score takes complete rows of numbers only", hint=_way_out(first))
            stage("fitting")
            model, n_rows = fit_mixed(file, first, options, size or MIXED_SIZE, length_scale, chunk_rows)
            stage("writing")
            save(model, out)
            _report(model, n_rows, first.names, out, as_json)
            return
        tell(first, gaps=False)
        rows = FileRows(file, chunk_reading(options), progress=lambda share: stage("reading", share))
        stage("fitting")
        size = size or _default_size(kind, len(rows.names))
        estimator = _estimator(kind, size, length_scale)
        about = {
            "FILE": table_fingerprint(file),
            "--kind": kind,
            "--columns": ", ".join(rows.names),
            "--size": str(size),
            "--length-scale": str(length_scale),
            "--chunk-rows": str(chunk_rows or rows.chunk_rows),
            "version of isopleth": isopleth.__version__,
        }
        with resumable(partial), Journal(partial, about) as journal:
            remove_leftovers(out)  # of runs that were killed
            parts = FileParts(
                rows, None, chunk_rows, Checkpoint(journal), lambda number, share: stage("fitting", share)
            )
            with removed_if_refused(journal), naming_columns(rows.names), _naming_options(size):
                model = fit_parts(estimator, parts)
            stage("writing")
            save(model, out)
            journal.remove()
    _report(model, rows.n_rows, rows.names, out, as_json)


def _report(model: Any, rows: int, columns: list[str], out: Path, as_json: bool) -> None:
    name = type(model).__name__
    if as_json:
        print_json(about_run("model", type=name, model=str(out), rows=rows, columns=columns))
        return
    size_of_table = f"{counted(rows, 'row')} of {counted(len(columns), 'column')}"
    click.echo(wrapped(f"{name} of {size_of_table} in {printable(str(out))}"))


def _way_out(table: FileTable) -> str | Hint:
    others = [str(column.name) for column in table.schema.columns if column.kind != "numeric"]
    if others:
        return Hint("leave out the words and times with {exclude}", exclude=others)
    return "fill the missing cells, or drop their rows"


def fit_mixed(
    file: Path, first: FileTable, options: TableOptions, size: int, length_scale: float | None, chunk_rows: int | None
) -> tuple[SOSREP, int]:
    """Fit a density to a random part of a table with words or missing cells, and return it with the number of rows read."""
    how = replace(chunk_reading(options), exclude=(), choices=Choices(missing=missing_words(options.missing)))
    rows = FileRows(file, how, replace(first.schema, left_out={}, n_columns=len(first.names)))
    rng = np.random.default_rng(0)
    kept: FileTable | None = None
    keys = np.empty(0)
    n_rows = 0
    for table in rows.tables(chunk_rows or rows.chunk_rows):
        drawn = rng.uniform(size=len(table))
        n_rows += len(drawn)
        chosen = np.flatnonzero(drawn < (keys.max() if len(keys) == size else 1.0))
        kept = table.take(chosen) if kept is None else kept.followed_by(table.take(chosen))
        keys = np.concatenate([keys, drawn[chosen]])
        best = np.sort(np.argsort(keys, kind="stable")[:size])
        kept, keys = kept.take(best), keys[best]
    if n_rows > size:
        say(f"the density is fitted to {size:,} of {counted(n_rows, 'row')}, drawn at random; --size sets how many.")
    assert kept is not None
    with naming_columns(kept.names):
        return SOSREP(length_scale=length_scale or "leave_one_out", frame="scale").fit(kept.frame), n_rows


def _default_size(kind: str, columns: int) -> int:
    if kind == "density":
        return DENSITY_SIZE
    model = NystromKEF()
    space = SPACES[model.space](get_kernel(model.kernel).bind(columns), model.memory_limit)
    return default_landmarks(space, columns)


@contextmanager
def _naming_options(size: int) -> Iterator[None]:
    """Translate refusals of a size for Python callers into the options of this command."""
    try:
        yield
    except TooLargeError as error:
        remedy = f"use --size {error.most} or less, or fewer --columns" if error.most else "use fewer --columns"
        raise InputError(
            f"--size {size} needs {error.needed / 2**20:,.0f} MiB of memory, more than the limit of "
            f"{error.limit / 2**20:,.0f} MiB; {remedy}."
        ) from error


def _estimator(kind: str, size: int, length_scale: float | None) -> Any:
    """Return the estimator, with a fixed seed so that each run gives the same model."""
    if kind == "density":
        # The best scale for a few landmarks depends more on the shape of the data than any rule by deviations can know.
        return SOSREP(landmarks=size, length_scale=length_scale or Search("likelihood"), frame="scale")
    given: dict[str, Any] = {} if length_scale is None else {"length_scale": length_scale}
    return NystromKEF(landmarks=size, random_state=0, **given)
