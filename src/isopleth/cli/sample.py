"""``isopleth sample``: make new rows like those of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from isopleth.cli.given import values_of, warn_beyond
from isopleth.cli.options import SAMPLE_SIZE
from isopleth.cli.program import of_this_version, say
from isopleth.cli.run import Run, schema_of
from isopleth.core.errors import InputError, printable
from isopleth.density import KDE
from isopleth.density.base import DensityEstimator
from isopleth.files.file_table import FileTable
from isopleth.files.read import Reading
from isopleth.io import load
from isopleth.kernels.product import ProductLaplacian
from isopleth.results.text import counted
from isopleth.tables.relations import in_order, kept, relations_of
from isopleth.tasks import MadeRows, make_rows
from isopleth.tasks.description import broken_relations_of, relations_in_words

Density = TypeVar("Density", bound=DensityEstimator)

# Rows of a table with gaps that can be fitted in ten to twenty seconds, cubed. A row with a pattern of gaps of its own takes as
# long as ten others.
_CUBED_ROWS = 1e9
_OWN_PATTERN = 9.0


def sample(
    run: Run,
    file: Path | None,
    rows: int,
    seed: int,
    model: Path | None,
    size: int | None,
    given: list[str],
    complete: bool,
) -> None:
    """Make new rows like those of a table."""
    _refuse_unclear(run, file, model)
    run.stage("reading")
    if file is not None:
        table = run.read(file, gaps=False, cells=True)
        known = values_of(given, table.schema)
        warn_beyond(known, table)
        run.stage("fitting")
        density = fitted(KDE(ProductLaplacian(), length_scale="leave_one_out"), table, size, seed)
    else:
        density = load_density(model)  # type: ignore[arg-type]
        known = values_of(given, schema_of(density))
    run.stage("drawing")
    with of_this_version(model or Path("the model")):
        made = drawn(density, rows, seed, known, complete=complete)
        if file is not None:
            source = {name: table.data.column(name).to_pylist() for name in table.names}
            relations = relations_of(source)
            made = kept(made, [each for each in relations if each.result not in known])
            made = in_order(made, [each for each in relations if each.second or each.first not in known], source, seed)
            for words in relations_in_words(broken_relations_of(table)):
                say(f"{table.source}: {words}")
    run.stage("writing")
    run.write_rows(made, None if file is None else table)
    found = replace(MadeRows.of(made, None if file is None else table.data), given=known)
    run.write(found, model=density)
    if run.save_to:
        say("the saved density is a KDE, for drawing rows; isopleth fit makes a SOSREP, for scores of rows.")
    if run.as_json:
        run.print_json(found.to_dict(0) | {"out": str(run.out)})
    else:
        size_of_table = f"{counted(made.num_rows, 'row')} of {counted(made.num_columns, 'column')}"
        run.print("\n".join([f"{size_of_table} in {printable(str(run.out))}", *found.relations_in_words()]))


def _refuse_unclear(run: Run, file: Path | None, model: Path | None) -> None:
    """Refuse options that exclude each other."""
    if (file is None) == (model is None):
        raise InputError("name a table, FILE, or a fitted density, --model, and not both.")
    if model and run.save_to:
        raise InputError("--save and --model exclude each other: with --model nothing is fitted that could be saved.")
    if model and replace(run.options, bad_cells=Reading().bad_cells) != Reading():
        raise InputError("--model has its own columns; leave out the options of columns.")


def fitted(density: Density, table: FileTable, size: int | None, seed: int) -> Density:
    """Return a density fitted to a table, or to a random part of a long one."""
    return density.fit(_part_of(table, size, seed).frame)


def _part_of(table: FileTable, size: int | None, seed: int) -> FileTable:
    """Return a table, or a random part of a long one, and say so."""
    encoded = table.encoded()
    gaps = np.column_stack([np.isnan(encoded.numeric), encoded.codes < 0])
    n, most = len(gaps), size or _affordable(gaps)
    chosen = None
    if n > most:
        order = np.random.default_rng(seed).permutation(n)
        # Each column needs a known cell.
        rare = [int(order[np.argmin(gaps[order, j])]) for j in np.flatnonzero(gaps[order[:most]].all(axis=0))]
        chosen = np.unique([*order[:most].tolist(), *rare])
        say(f"the density is fitted to {len(chosen):,} of {counted(n, 'row')}, drawn at random; --size sets how many.")
    return table if chosen is None else table.take(chosen)


def _affordable(gaps: np.ndarray) -> int:
    """Return how many rows can be fitted in less than half a minute: rows with gaps take longer."""
    if not gaps.any():
        return SAMPLE_SIZE
    share = len(np.unique(np.packbits(gaps, axis=1), axis=0)) / len(gaps)
    return int((_CUBED_ROWS / (1.0 + _OWN_PATTERN * share)) ** (1 / 3))


def load_density(path: Path) -> DensityEstimator:
    """Load a fitted density from which rows can be drawn as their table records them."""
    density = load(path)
    if not isinstance(density, DensityEstimator) or not hasattr(density, "sample"):
        raise InputError(
            f"{path} holds a {type(density).__name__}, from which no rows can be drawn; use a density of "
            "isopleth sample --save, or a fitted SOSREP or KDE with kernel='gaussian' or ProductLaplacian()."
        )
    return density


def drawn(density: DensityEstimator, rows: int, seed: int, known: dict[str, Any], *, complete: bool) -> Any:
    """Return drawn rows as an Arrow table, with the known values in every row."""
    import narwhals as nw

    named = hasattr(density, "feature_names_in_")
    given = {name if named else int(name[1:]) - 1: value for name, value in known.items()}
    made = make_rows(density, rows, given or None, seed, complete, density.verbose)
    names = [f"x{j + 1}" for j in range(made.shape[1])]
    if isinstance(made, np.ndarray):
        names = list(map(str, getattr(density, "feature_names_in_", names)))
        return pa.table([pa.array(column.tolist(), from_pandas=True) for column in made.T], names)
    table = nw.from_native(made).to_arrow()
    return table if named else table.rename_columns(names)
