"""``isopleth anomalies``: find the least likely rows of a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from isopleth.cli.many_rows import SomeRows, is_read_in_parts, judged_in_parts, refuse_with_patterns, rising_clocks
from isopleth.cli.options import MOST_FLAGGED
from isopleth.cli.program import of_this_version, say
from isopleth.cli.run import Run, schema_of
from isopleth.core.errors import DataWarning, Hint, InputError, listed, warn_user
from isopleth.files.file_table import FileTable
from isopleth.files.new_cells import form_of_column
from isopleth.io import load
from isopleth.results.result import ShownCells
from isopleth.tables.cells import is_missing
from isopleth.tables.checks import TIMES_APART, times_apart
from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.anomaly.explanation import COLUMNS_A_ROW, cell_label
from isopleth.tasks.anomaly.result import Anomalies, with_fields
from isopleth.tasks.cellwise.flagged_rows import cells_of_flagged, forget_reasons
from isopleth.tasks.description import broken_relations_of, relations_in_words


def anomalies(
    run: Run,
    file: Path,
    contamination: float | None,
    fdr: float,
    reference: Path | None,
    top: int,
    model: Path | None,
    explain: bool,
) -> None:
    """Find the least likely rows of a table and report them."""
    if run.save_to and model:
        raise InputError("--save and --model exclude each other: with --model nothing is fitted that could be saved.")
    for name, given in (("--contamination", contamination), ("--reference", reference)):
        if model and given is not None:
            raise InputError(f"{name} and --model exclude each other: the model has its own threshold and reference.")
    explains = explain or run.report is not None  # a page explains the rows that it shows first
    as_text = explain and run.out is not None and run.out.suffix.lower() == ".csv"
    run.stage("reading")
    refuse_with_patterns(file, reference=reference, plot=run.plot, report=run.report)
    table: FileTable | SomeRows
    with of_this_version(model) if model else nullcontext():
        if model:
            detector = load_detector(model)
            table = run.read_for(file, schema_of(detector), cells=as_text)
            found = judged(detector, table, run.places_of(table), fdr)
        elif reference or run.plot or run.report or not is_read_in_parts(file):
            detector, table = fitted(run, file, reference, contamination, as_text)
            run.stage("scoring")
            found = judged(detector, table, run.places(len(table), table.lines), fdr)
        else:
            detector, table, found = judged_in_parts(
                run, file, contamination, fdr, top, explain and run.out is not None
            )
        # No density sees that a total is not price times quantity where every one of the three is usual.
        for words in relations_in_words(broken_relations_of(table)):
            say(f"{file if isinstance(table, SomeRows) else table.source}: {words}")
        if explains:
            run.stage("explaining")
        if not model and not reference:
            found = with_cells(detector, table, found, keep_laws=explains)
        if explains:
            found = explained(detector, table, found, top, flagged=explain and run.out is not None)
    run.stage("writing")
    shown = found if explain else with_fields(found, explanation=None, explained_rows=None)
    run.write(shown, columns(shown, table), detector, paged=found)
    run.answer(found if run.as_json else shown, top)


def fitted(
    run: Run, file: Path, reference: Path | None, contamination: float | None, as_text: bool
) -> tuple[AnomalyDetector, FileTable]:
    """Return a detector fitted to a file, or to a reference for the rows of the file, and the table of the file."""
    first = table = run.read(reference or file, constants=True, cells=as_text)
    if reference:
        first, table = without_times_apart(run, first, run.read_for(file, first.schema, cells=as_text))
    elif run.save_to and (rising := rising_clocks(run, table)):
        run.used |= {name: "left out: rises from row to row" for name in rising}
        first = table = table.using(table.schema.without(rising, "rises from row to row"))
    run.stage("fitting")
    run.sources["X"] = first  # the table that errors of the fit are about
    detector = fit(first, contamination, novelty=reference is not None)
    run.sources["X"] = table
    return detector, table


def without_times_apart(run: Run, reference: FileTable, table: FileTable) -> tuple[FileTable, FileTable]:
    """Leave out columns of times that are all beyond those of the reference: they would make every row unlikely."""
    schema = reference.schema
    found = times_apart(schema, reference.encoded().numeric, table.encoded().numeric, touching=False)
    apart = [str(name) for name in found.values() if name not in run.options.time_columns]
    if not apart or len(apart) == len(schema.columns):
        return reference, table
    names = listed([f"{name!r} ({TIMES_APART})" for name in apart])
    warn_user(f"columns left out: {names}", hint=Hint("{time_columns} uses them", time_columns=apart))
    schema = schema.without(apart, TIMES_APART)
    run.used |= {name: f"left out: {TIMES_APART}" for name in apart}
    return reference.using(schema), table.using(schema)


def load_detector(path: Path) -> AnomalyDetector:
    """Load a fitted detector from a file."""
    detector = load(path)
    if not isinstance(detector, AnomalyDetector):
        raise InputError(
            f"{path} holds a {type(detector).__name__}; a detector written by isopleth anomalies --save is needed "
            "(isopleth score takes other models)."
        )
    if not hasattr(detector, "offset_"):
        raise InputError(
            f"{path} holds a detector that is not fitted; one written by isopleth anomalies --save is needed."
        )
    return detector


def fit(table: FileTable, contamination: float | None = None, *, novelty: bool = False) -> AnomalyDetector:
    """Return a detector fitted to a table, with the names of its columns if the file has them."""
    share = "auto" if contamination is None else contamination
    detector = AnomalyDetector(contamination=share, novelty=novelty, random_state=0)
    return detector.fit(table.frame)


def judged(detector: AnomalyDetector, table: FileTable, where: dict[str, np.ndarray], fdr: float = 0.1) -> Anomalies:
    """Return the anomalies of a table, with their places in the file."""
    found = detector.anomalies(table.frame, fdr)
    if (by := found.decided_by) is not None:
        found = with_fields(found, decided_by=type(by)(table.names[found.names.index(by.name)], *by[1:]))
    return with_fields(found, names=table.names, values=cells_of(table), where=where)


def cells_of(table: FileTable) -> Any:
    """Return the cells of a table as they are shown, made when they are asked for; numbers stay an array."""
    if table.schema.only_numbers and not len(table.odd):
        return table.values

    def shown(rows: np.ndarray) -> np.ndarray:
        some = table.take(rows)
        return some.with_limits(some.values)

    return ShownCells(table.shape, object, shown)


def with_cells(
    detector: AnomalyDetector, table: FileTable | SomeRows, found: Anomalies, *, keep_laws: bool
) -> Anomalies:
    """Return the anomalies with sentences about the cells of flagged rows; `keep_laws` if the detector explains rows later."""
    flagged = found.order[found.flagged[found.order]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # they were shown when all rows were judged
        sentences = cells_of_flagged(detector, table, flagged, found.where)
    if not keep_laws:
        forget_reasons(detector)
    return with_fields(found, of_cells=sentences)


def explained(
    detector: AnomalyDetector, table: FileTable | SomeRows, found: Anomalies, top: int, *, flagged: bool
) -> Anomalies:
    """Return the anomalies with an explanation of the `top` least likely rows and, if asked for, of all flagged ones."""
    count = int(found.flagged.sum())
    # Flagged rows are the least likely ones, so they come first in this order. A detector needs at least one row.
    rows = found.order[: max(top, min(count, MOST_FLAGGED) if flagged else 0, 1)]
    if flagged and len(rows) < count:
        say(f"of {count:,} flagged rows the {len(rows):,} least likely are explained; a larger --top explains more.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # they were shown when all rows were judged
        explanation = detector.explain((some := table.take(rows)).frame)
    explanation = replace(explanation, names=table.names, values=some.with_limits(explanation.values))
    return with_fields(found, explanation=explanation, explained_rows=rows)


def columns(found: Anomalies, table: FileTable | SomeRows | None = None) -> dict[str, np.ndarray]:
    """Return the columns of --out, in the order of the table; usual values as the cells of a `table` of text are written."""
    judged = {"score": found.scores, "pvalue": found.p_values}
    judged |= {"label": found.flagged.astype(np.int64), "certain": found.certain.astype(np.int64)}
    if found.at_least is not None:
        judged["at_least"] = np.empty_like(found.at_least)
        judged["at_least"][found.order] = found.at_least
    out = found.where | judged
    if found.explanation is None or found.explained_rows is None:
        return out
    why = found.explanation
    words, written = found.values.dtype == object, _written(table)
    cells = {"explained_by": "", "usual": "" if words else np.nan, "excess": np.nan}
    reasons = {
        name: np.full(len(found), empty, dtype=object if empty == "" else float) for name, empty in cells.items()
    }
    for i, row in enumerate(found.explained_rows):
        leading = why.leading(i, 1 if not why.of_rare_kind(i) else COLUMNS_A_ROW)
        if len(leading) == 0:
            continue
        j = int(leading[0])
        reasons["explained_by"][row] = " and ".join(why.names[k] for k in leading)
        reasons["excess"][row] = why.excess[i, j]
        reasons["usual"][row] = written(why.names[j], why.usual[i, j]) if words else why.usual[i, j]
    return out | reasons


def _written(table: FileTable | SomeRows | None) -> Callable[[str, Any], str]:
    """Return a function that writes a number, word or time as the cells of its column are written, if they are text."""
    if not isinstance(table, FileTable) or table.header is None:
        return lambda name, value: cell_label(value, repr)
    form = cache(partial(form_of_column, table))

    def written(name: str, value: Any) -> str:
        if is_missing(value) or isinstance(value, str):
            return cell_label(value, repr)
        value = value.astype("datetime64[us]") if isinstance(value, np.datetime64) else value
        return form(name)(value.item() if isinstance(value, np.generic) else value)

    return written
