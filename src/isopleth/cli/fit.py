"""``isopleth fit``: fit a model to a table that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import isopleth
from isopleth.cli.options import DENSITY_SIZE, MIXED_SIZE
from isopleth.cli.program import removed_if_refused, resumable, say
from isopleth.cli.run import Run, refuse_same, tell
from isopleth.core.budget import Budget
from isopleth.core.errors import Hint, InputError, TooLargeError, printable
from isopleth.density import SOSREP, Search
from isopleth.distributed import FileParts
from isopleth.distributed import fit as fit_parts
from isopleth.files.file_table import FileTable, refuse_odd_cells
from isopleth.files.read import Reader, Reading
from isopleth.files.source import table_fingerprint
from isopleth.files.stream import FileRows
from isopleth.io import save
from isopleth.io.checkpoint import Checkpoint
from isopleth.io.output_files import remove_leftovers
from isopleth.io.resume import Journal, partial_path, refuse_begun
from isopleth.kernels import get_kernel
from isopleth.results.text import counted
from isopleth.score import NystromKEF
from isopleth.score.ridge_selection import default_landmarks
from isopleth.score.spaces import SPACES

# A table has three densities, by what they are for.
_OTHERS = (
    "This density is for tables of any length: SOSREP().fit(X) in Python chooses coordinates too, and isopleth sample --save "
    "keeps the one that rows are drawn from."
)


def fit(
    run: Run,
    file: Path,
    kind: str,
    size: int | None,
    length_scale: float | None,
    chunk_rows: int | None,
    resume: bool,
) -> None:
    """Fit a model to a table in chunks and save it."""
    assert run.out is not None
    partial = partial_path(run.out)
    refuse_same({"FILE": file, "the partial file": partial})
    refuse_begun(partial, resume=resume)
    run.stage("reading")
    first = Reader(file, run.options).first()
    run.keep(first.schema, first)
    if not first.with_truth_as_numbers().is_plain:
        if run.options.bad_cells == "refuse":
            refuse_odd_cells(first)
        tell(first, gaps=False)
        if kind == "score":
            raise InputError(f"{file}: --kind score takes complete rows of numbers only", hint=_way_out(first))
        run.stage("fitting")
        model, n_rows = fit_mixed(file, first, run.options, size or MIXED_SIZE, length_scale, chunk_rows)
        run.stage("writing")
        save(model, run.out)
        _report(run, model, n_rows, first.names)
        return
    tell(first, gaps=False)
    rows = FileRows(file, run.options, progress=lambda share: run.stage("reading", share))
    run.stage("fitting")
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
        remove_leftovers(run.out)  # of runs that were killed
        parts = FileParts(rows, None, chunk_rows, Checkpoint(journal), lambda _, share: run.stage("fitting", share))
        with removed_if_refused(journal), _naming_options(size):
            model = fit_parts(estimator, parts)
        run.stage("writing")
        save(model, run.out)
        journal.remove()
    _report(run, model, rows.n_rows, rows.names)


def _report(run: Run, model: Any, rows: int, columns: list[str]) -> None:
    """Print what was fitted, and, of a density, that there are others."""
    name = type(model).__name__
    text = f"{name} of {counted(rows, 'row')} of {counted(len(columns), 'column')} in {printable(str(run.out))}"
    if isinstance(model, SOSREP):
        text += f"\n{_OTHERS}"
    run.report_of(text, "model", type=name, model=str(run.out), rows=rows, columns=columns)


def _way_out(table: FileTable) -> str | Hint:
    others = [str(column.name) for column in table.schema.columns if column.kind != "numeric"]
    if others:
        return Hint("leave out the words and times with {exclude}", exclude=others)
    return "fill the missing cells, or drop their rows"


def fit_mixed(
    file: Path, first: FileTable, options: Reading, size: int, length_scale: float | None, chunk_rows: int | None
) -> tuple[SOSREP, int]:
    """Fit a density to a random part of a table with words or missing cells, and return it with the number of rows read."""
    schema = replace(first.schema, left_out={}, n_columns=len(first.names))
    rows = FileRows(file, options.of_schema(schema), schema)
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
    return SOSREP(length_scale=length_scale or "leave_one_out", frame="scale").fit(kept.frame), n_rows


def _default_size(kind: str, columns: int) -> int:
    """Return the usual number of centres or landmarks for so many columns."""
    if kind == "density":
        return DENSITY_SIZE
    model = NystromKEF()
    space = SPACES[model.space](get_kernel(model.kernel).bind(columns), Budget.of(model))
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
