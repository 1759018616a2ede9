"""``isopleth score``: compute a model's answers for a table that need not fit in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import isopleth
from isopleth.cli.program import of_this_version, removed_if_refused, resumable, say
from isopleth.cli.run import Run, match_by_position, refuse_same, schema_of
from isopleth.core.errors import InputError, listed, printable
from isopleth.files.file_table import FileTable
from isopleth.files.read import Reading
from isopleth.files.source import table_fingerprint
from isopleth.files.stream import FileRows
from isopleth.files.write import write_array, write_blocks
from isopleth.io import load
from isopleth.io.output_files import remove_leftovers
from isopleth.io.resume import Journal, content_fingerprint, partial_path, refuse_begun
from isopleth.results.text import counted
from isopleth.tasks.anomaly.detector import AnomalyDetector

# Rows that are answered at once: the bar moves after each.
_AT_ONCE = 10_000


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
                before = done

                def show(part: int, before: int = before) -> None:
                    run.stage("scoring", rows.file.share_of(before + part) if gaps else (before + part) / rows.n_rows)

                done += len(chunk)
                journal.append(str(done), _answered(answers, chunk, gaps, show))
        run.stage("writing")
        _write(run, answers, journal)
        unranked = _unranked(answers, journal)
        journal.remove()
    for note in rows.odd.notes(rows.source) if gaps else ():
        say(note)
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
    """Write the answers that have been computed as an array or a table."""
    assert run.out is not None
    if run.out.suffix.lower() == ".npy":
        write_array(run.out, (rows_done(journal), len(answers.names)), (block["answers"] for block in _blocks(journal)))
    else:
        write_blocks(run.out, _named(run, answers, journal))


def _named(run: Run, answers: Answers, journal: Journal) -> Iterator[dict[str, np.ndarray]]:
    """Yield the answers in blocks of named columns, with the places of their rows."""
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
    match_by_position(rows.file)
    return rows, gaps


def _answered(answers: Answers, chunk: FileTable, gaps: bool, show: Callable[[int], None]) -> dict[str, np.ndarray]:
    """Return the answers about the rows of a chunk, and their lines; `show` is told how many rows have theirs."""
    found = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="words that were not among")  # they are counted, and said once
        warnings.filterwarnings(
            "ignore", message="X does not have valid feature names"
        )  # they were matched by name before
        for first in range(0, len(chunk), _AT_ONCE):
            part = chunk.take(np.arange(first, min(first + _AT_ONCE, len(chunk))))
            found.append(answers(part.frame if gaps else part.values))
            show(first + len(part))
    kept = {"answers": np.vstack(found)}
    return kept if chunk.lines is None else kept | {"lines": chunk.lines}


def rows_done(journal: Journal) -> int:
    """Return the number of rows whose answers are kept: the key of the last record."""
    return int(journal.keys[-1]) if journal.keys else 0


def _blocks(journal: Journal) -> Iterator[dict[str, np.ndarray]]:
    for key in journal.keys:
        found = journal.read(key)
        if found is not None:
            yield found


@dataclass(frozen=True, eq=False)
class Answers:
    """Model, and the numbers it computes for a row."""

    source: Path  # file of the model
    model: Any  # fitted
    names: list[str]  # names of the numbers
    whole: frozenset[str]  # names of those that are whole numbers
    _answer: Callable[[Any], list[np.ndarray]]

    @property
    def bounded(self) -> bool:
        """True for a density with bounds, on and beyond which it is 0."""
        return getattr(_last_step(self.model)[0], "bounds", None) is not None

    def __call__(self, rows: Any) -> np.ndarray:
        """Return the answers for `rows`, an array of shape (n, number of names)."""
        with of_this_version(self.source):
            return np.column_stack(self._answer(rows))


def answers_of(path: Path) -> Answers:
    """Load a model from a file, with the function that computes its answers for rows."""
    model = load(path)
    with of_this_version(path):
        try:
            check_is_fitted(model)
        except NotFittedError:
            raise InputError(
                f"{path} holds a {type(model).__name__} that is not fitted; fit it before it is saved."
            ) from None
        return _of_kind(path, model)


def takes_gaps(model: Any) -> bool:
    """Return whether a model answers for rows with missing cells, and for words if it was fitted to a table with words."""
    return not isinstance(model, Pipeline) and bool(get_tags(model).input_tags.allow_nan)


def _of_kind(path: Path, model: Any) -> Answers:
    """Return what a model answers, by its kind."""
    last, entered = _last_step(model)
    if isinstance(last, AnomalyDetector):
        names = ["score", "pvalue", "label"]
        return Answers(path, model, names, frozenset({"label"}), lambda rows: list(judged(last, entered(rows))))
    if hasattr(last, "score_samples"):
        from isopleth.density.base import DensityEstimator  # here, since most commands need no density

        what = "log_density" if isinstance(last, DensityEstimator) else "score"
        return Answers(path, model, [what], frozenset(), lambda rows: [last.score_samples(entered(rows))])
    if hasattr(model, "grad_log_density"):
        names = [f"d_{name}" for name in schema_of(model).names]
        return Answers(path, model, names, frozenset(), lambda rows: [model.grad_log_density(rows)])
    if hasattr(model, "difference"):
        return Answers(path, model, ["difference"], frozenset(), lambda rows: [model.difference(rows)])
    raise InputError(
        f"{path} holds a {type(model).__name__}, which says nothing of single rows; use a density, a score, a difference, a "
        "detector, or a pipeline that ends in a density or a detector."
    )


def _last_step(model: Any) -> tuple[Any, Callable[[np.ndarray], Any]]:
    """Return the last step of a pipeline, and the transformation of rows before it."""
    if not isinstance(model, Pipeline):
        return model, lambda rows: rows
    return model[-1], model[:-1].transform if len(model) > 1 else lambda rows: rows


def judged(detector: AnomalyDetector, rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores and p-values of new rows, and the mask of flagged rows."""
    scores = detector.score_samples(rows)
    return scores, detector.p_values(rows), scores - detector.offset_ < 0.0
