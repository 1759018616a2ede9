"""``isopleth fit``: fit a model to a table that need not fit in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import isopleth
from isopleth.cli.columns import KindRows, KindTable, mixed_columns, open_numbers
from isopleth.cli.commands import DENSITY_SIZE, MIXED_SIZE
from isopleth.cli.messages import Stages, naming_columns, removed_if_refused, resumable, say
from isopleth.cli.options import TableOptions
from isopleth.cli.outputs import about_run, print_json, refuse_same
from isopleth.density import SOSREP, Search
from isopleth.distributed import FileParts
from isopleth.distributed import fit as fit_parts
from isopleth.distributed.files import Checkpoint
from isopleth.errors import Hint, InputError, TooLargeError, printable
from isopleth.io import check_target, save
from isopleth.io.resume import Journal, partial_path, refuse_begun, table_fingerprint
from isopleth.kernels import get_kernel
from isopleth.results.text import counted, wrapped
from isopleth.score import NystromKEF
from isopleth.score.ridge_selection import default_landmarks
from isopleth.score.spaces import SPACES
from isopleth.tables.files import remove_leftovers


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
        mixed = mixed_columns(file, options)
        if mixed is not None:
            if kind == "score":
                text = f"{file}: --kind score takes complete rows of numbers only"
                raise InputError(text, hint=_way_out(mixed))
            stage("fitting")
            model, n_rows = fit_mixed(mixed, options, size or MIXED_SIZE, length_scale, chunk_rows)
            stage("writing")
            save(model, out)
            _report(model, n_rows, [str(column.name) for column in mixed.kinds.columns], out, as_json)
            return
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


def _way_out(table: KindTable) -> str | Hint:
    others = [str(column.name) for column in table.kinds.columns if column.kind != "numeric"]
    if others:
        return Hint("leave out the words and times with {exclude}", exclude=others)
    return "fill the missing cells, or drop their rows"


def fit_mixed(
    table: KindTable, options: TableOptions, size: int, length_scale: float | None, chunk_rows: int | None
) -> tuple[SOSREP, int]:
    """Fit a density to a random part of a table with words or missing cells, and return it with the number of rows read."""
    rows = KindRows(table.frame.source, table.kinds, options)
    rng = np.random.default_rng(0)
    kept: Any = None
    keys = np.empty(0)
    n_rows = 0
    for frame in rows.frames(chunk_rows or rows.chunk_rows):
        drawn = rng.uniform(size=len(frame.data))
        n_rows += len(drawn)
        chosen = np.flatnonzero(drawn < (keys.max() if len(keys) == size else 1.0))
        new = frame.data[chosen] if isinstance(frame.data, np.ndarray) else frame.data.take(chosen)
        kept = new if kept is None else _joined(kept, new)
        keys = np.concatenate([keys, drawn[chosen]])
        best = np.sort(np.argsort(keys, kind="stable")[:size])
        kept, keys = (kept[best] if isinstance(kept, np.ndarray) else kept.take(best)), keys[best]
    if n_rows > size:
        say(f"the density is fitted to {size:,} of {counted(n_rows, 'row')}, drawn at random; --size sets how many.")
    kinds = table.kinds
    if kinds.named:  # other columns were not read
        kinds = replace(kinds, left_out={}, n_columns=len(kinds.columns))
    model = replace(table, data=kept, kinds=kinds).fit(
        SOSREP(length_scale=length_scale or "leave_one_out", frame="scale")
    )
    return model, n_rows


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, other])
    import pyarrow as pa

    return pa.concat_tables([one, other]).combine_chunks()


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
        return SOSREP(landmarks=size, length_scale=length_scale or Search("likelihood"), frame="scale")
    given: dict[str, Any] = {} if length_scale is None else {"length_scale": length_scale}
    return NystromKEF(landmarks=size, random_state=0, **given)
