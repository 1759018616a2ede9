"""``isopleth fit``: fit a model to a table that need not fit in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import isopleth
from isopleth.cli.columns import open_numbers
from isopleth.cli.commands import DENSITY_SIZE
from isopleth.cli.messages import Stages, naming_columns, resumable
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import refuse_same
from isopleth.cli.text import counted
from isopleth.density import SOSREP, Search
from isopleth.distributed import FileParts
from isopleth.distributed import fit as fit_parts
from isopleth.distributed.files import Checkpoint
from isopleth.errors import InputError, TooLargeError, printable
from isopleth.io import check_target, save
from isopleth.io.files import is_for_want_of_room, remove_leftovers
from isopleth.io.resume import Journal, partial_path, refuse_begun, table_fingerprint
from isopleth.kernels import get_kernel
from isopleth.score import NystromKEF
from isopleth.score.ridge_selection import default_landmarks
from isopleth.score.spaces import SPACES


def fit(
    file: Path,
    out: Path,
    kind: str,
    options: TableOptions,
    size: int | None,
    length_scale: float | None,
    chunk_rows: int | None,
    resume: bool,
) -> None:
    """Fit a model to a table in chunks and save it."""
    partial = partial_path(out)
    refuse_same({"FILE": file, "--out": out, "the partial file": partial})
    check_target(out)
    refuse_begun(partial, resume=resume)
    with Stages(["reading", "fitting", "writing"]) as stage:
        stage("reading")
        rows = open_numbers(file, options, lambda share: stage("reading", share))
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
            with _removed_if_refused(journal), naming_columns(rows.names), _naming_options(size):
                model = fit_parts(estimator, parts)
            stage("writing")
            save(model, out)
            journal.remove()
    size_of_table = f"{counted(rows.n_rows, 'row')} of {counted(len(rows.names), 'column')}"
    click.echo(f"{type(model).__name__} of {size_of_table} in {printable(str(out))}")


def _default_size(kind: str, columns: int) -> int:
    if kind == "density":
        return DENSITY_SIZE
    model = NystromKEF()
    space = SPACES[model.space](get_kernel(model.kernel).bind(columns), model.memory_limit)
    return default_landmarks(space, columns)


@contextmanager
def _naming_options(size: int) -> Iterator[None]:
    """Translate refusals and warnings for Python callers into the options of this command."""
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        except TooLargeError as error:
            remedy = f"use --size {error.most} or less, or fewer --columns" if error.most else "use fewer --columns"
            raise InputError(
                f"--size {size} needs {error.needed / 2**20:,.0f} MiB of memory, more than the limit of "
                f"{error.limit / 2**20:,.0f} MiB; {remedy}."
            ) from error
    for warning in caught:
        text = str(warning.message).replace(", or give length_scale one number for each column", " first")
        warnings.warn(text, warning.category, stacklevel=3)


def _estimator(kind: str, size: int, length_scale: float | None) -> Any:
    """Return the estimator, with a fixed seed so that each run gives the same model."""
    if kind == "density":
        # The best scale for a few landmarks depends more on the shape of the data than any rule by deviations can know.
        return SOSREP(landmarks=size, length_scale=length_scale or Search("likelihood"))
    given: dict[str, Any] = {} if length_scale is None else {"length_scale": length_scale}
    return NystromKEF(landmarks=size, random_state=0, **given)


@contextmanager
def _removed_if_refused(journal: Journal) -> Iterator[None]:
    """Remove the partial file of a refused fit, which would be refused again, unless the disk was full."""
    try:
        yield
    except InputError as error:
        if not is_for_want_of_room(error):
            journal.remove()
        raise
