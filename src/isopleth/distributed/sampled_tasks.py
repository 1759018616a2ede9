"""Tasks that are fitted to a sample of the rows of Dask collections, or to the last of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from isopleth.conditional import ConditionalDensity
from isopleth.core.errors import DataWarning, InputError, meant, warn_user, whole_number
from isopleth.core.parts import Add, Parts, S
from isopleth.distributed.row_sample import MAX_ROWS, TableBlocks, blocks_of, drawn_rows, last_rows
from isopleth.tables.cells import TRUTH
from isopleth.tables.checks import enter
from isopleth.tables.given import Given
from isopleth.tables.schema import Schema
from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.anomaly.fit_in_parts import fit_parts
from isopleth.tasks.drift.monitor import DriftMonitor
from isopleth.tasks.two_sample.result import TwoSampleResult
from isopleth.tasks.two_sample.testing import two_sample_test as test_in_memory


def fit_sample(estimator: Any, X: Any, y: Any, max_rows: int, *, weighted: bool = False) -> Any:
    """Fit an estimator to a sample of the rows of Dask collections, a monitor to the last of them."""
    most, name = whole_number("max_rows", max_rows), type(estimator).__name__
    if weighted:
        raise InputError(f"{name} is fitted to a sample of the rows, which has no weights; leave sample_weight out.")
    if not hasattr(X, "__dask_graph__"):
        raise InputError(
            f"X is {type(X).__name__}; {name} takes a dask.array or a dask.dataframe here, and rows in memory by its own fit."
        )
    tables = [X] if y is None else list(_with_target(X, y))
    if isinstance(estimator, DriftMonitor):
        if y is not None:
            raise InputError("DriftMonitor is fitted to one sample, its reference; leave Y out.")
        rows, n = last_rows(blocks_of(tables, "X"), most)
        _warn_of_sample("X", n, len(rows[0]), "the last rows")
        return estimator.fit(rows[0])
    if isinstance(estimator, ConditionalDensity) != (y is not None):
        known = "leave Y out" if y is not None else "pass the target as Y, such as the name of a column"
        raise InputError(f"{name} is fitted to {'one table' if y is not None else 'rows and a target'}; {known}.")
    rows, n = drawn_rows(blocks_of(tables, "X"), most)
    _warn_of_sample("X", n, len(rows[0]), "rows drawn by what they hold")
    return estimator.fit(*rows)


class _CodedBlocks(Parts):
    """Blocks of a Dask frame with words, times and gaps as parts of coded rows, by the columns of a sample."""

    def __init__(self, blocks: TableBlocks, columns: AnomalyDetector, names: list[str]) -> None:
        self.names, self.n_features = names, len(names)
        self._blocks, self._columns = blocks, columns

    def sums(self, start: Callable[[], S], add: Add[S]) -> S:
        """Return sums over all rows; see :meth:`isopleth.core.parts.Parts.sums`."""
        return self._blocks.total(_coded_sums, self._columns, start, add)


def _coded_sums(block: list[Any], number: int, columns: AnomalyDetector, start: Callable[[], S], add: Add[S]) -> S:
    """Return the sums over the coded rows of a block; words that the sample lacks count as one."""
    if not len(block[0]):
        return start()
    return add(start(), _coded(columns, block[0]), None)


def fit_detector_to_frame(detector: AnomalyDetector, X: Any, max_rows: int) -> AnomalyDetector:
    """Fit a detector to a Dask frame with columns of all kinds: what each is used as is decided by a sample of the rows."""
    blocks, most = blocks_of([X], "X"), whole_number("max_rows", max_rows)
    if detector.novelty:
        raise InputError(
            "novelty=True is fitted to a reference in memory; pass a part of the rows as an array or frame."
        )
    rows, n = drawn_rows(blocks, most)
    if n <= most:
        return detector.fit(rows[0])
    columns = clone(detector)
    schema = enter(columns, rows[0], reset=True, min_samples=2).columns
    if schema is None:
        return fit_parts(detector, _CodedBlocks(blocks, columns, list(rows[0].columns)))
    columns.schema_ = schema = blocks.total(_known_cells, columns).schema(schema)
    return fit_parts(detector, _CodedBlocks(blocks, columns, list(map(str, schema.names))), schema)


@dataclass
class _KnownCells:
    """Words of the columns of all rows with their counts, and the earliest time of each column of numbers and times."""

    words: list[Counter[str]]
    least: np.ndarray

    def merge(self, other: _KnownCells) -> _KnownCells:
        """Add the cells of other rows."""
        words = [mine + theirs for mine, theirs in zip(self.words, other.words, strict=True)]
        return _KnownCells(words, np.fmin(self.least, other.least))

    def schema(self, of_sample: Schema) -> Schema:
        """Return the columns of a sample as all rows have them: words by their frequency, times from the earliest one on."""
        least = dict(zip(of_sample.numeric_names, self.least.tolist(), strict=False))
        words = dict(zip(of_sample.categorical_names, self.words, strict=True))
        columns = []
        for column in of_sample.columns:
            name = str(column.name)
            if column.kind == "time" and np.isfinite(least[name]):
                column = replace(column, origin=column.origin + least[name])
            elif column.kind == "categorical" and column.levels != TRUTH and (found := words[name]):
                order = sorted(sorted(found), key=found.__getitem__, reverse=True)
                rare = [word for word in column.levels if word not in found]
                column = replace(column, levels=(*order, *rare), constant=column.constant and len(order) == 1)
            columns.append(column)
        return replace(of_sample, columns=tuple(columns))


def _known_cells(block: list[Any], number: int, columns: AnomalyDetector) -> _KnownCells:
    """Return the words of a block, those that the sample lacks among them, and its earliest times."""
    schema: Schema = columns.schema_
    counters: list[Counter[str]] = [Counter() for _ in schema.categorical_names]
    numeric = len(schema.numeric_names)
    if not len(block[0]):
        return _KnownCells(counters, np.full(numeric, np.nan))
    rows, frame = _coded(columns, block[0]), Given.of(block[0]).frame
    for name, codes, levels, counter in zip(
        schema.categorical_names, rows[:, numeric:].T, schema.levels, counters, strict=True
    ):
        counts = np.bincount(codes[~np.isnan(codes)].astype(np.intp), minlength=len(levels))
        counter.update({word: int(count) for word, count in zip(levels, counts, strict=False) if count})
        new = np.flatnonzero(codes == len(levels))
        counter.update(map(str, frame.get_column(name)[new.tolist()].to_list()) if len(new) else ())
    with np.errstate(all="ignore"):
        least = np.fmin.reduce(rows[:, :numeric], initial=np.inf)
    return _KnownCells(counters, np.where(np.isinf(least), np.nan, least))


def _coded(columns: AnomalyDetector, rows: Any) -> np.ndarray:
    """Return rows as numbers and codes, in silence: words that the sample lacks count as one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return enter(columns, rows).rows


def _with_target(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and target as collections; the target may be a column of the rows, by its name."""
    if not isinstance(y, str):
        return X, y
    names = list(getattr(X, "columns", ()))
    if y not in names:
        text = f"X has no column {y!r}, which is to be the target{meant([y], names)}; name one of its columns."
        raise InputError(text, column=y)
    return X[[name for name in X.columns if name != y]], X[y]


def _warn_of_sample(what: str, n: int, used: int, which: str) -> None:
    if used < n:
        warn_user(f"{what} has {n:,} rows, of which {used:,} are used: {which}. A larger max_rows takes more.")


def two_sample_test(X: Any, Y: Any, *, max_rows: int = MAX_ROWS, **options: Any) -> TwoSampleResult:
    """Test whether two Dask collections are from one distribution.

    Parameters
    ----------
    X, Y : dask.dataframe.DataFrame or dask.array.Array
        Rows of the two samples, as for :func:`isopleth.two_sample_test`; one of them may be in memory.
    max_rows : int, default=100_000
        About how many rows of each are compared, drawn as by :func:`sample`. Of fewer rows all are brought together, and the
        answer is that of the test in memory.
    **options
        Keywords of :func:`isopleth.two_sample_test`, except `groups`, whose rows a sample would tear apart.

    Returns
    -------
    TwoSampleResult
        Its rows are those of the samples.

    Raises
    ------
    InputError
        As the test in memory, and for `groups`.

    Warns
    -----
    DataWarning
        If rows were drawn, with their number.

    Examples
    --------
    >>> import dask.array as da
    >>> from isopleth import distributed
    >>> rng = da.random.default_rng(0)
    >>> X, Y = rng.normal(size=(300, 2), chunks=(100, 2)), rng.normal(1.0, size=(200, 2), chunks=(100, 2))
    >>> distributed.two_sample_test(X, Y, n_resamples=99, random_state=0).pvalue
    0.01
    """
    most = whole_number("max_rows", max_rows)
    if options.get("groups") is not None:
        raise InputError(
            "groups are permuted as a whole, and a sample of rows tears them apart; test one row a group, such as its mean, or "
            "compare frames in memory.",
            parameter="groups",
        )
    samples = []
    for number, (what, table) in enumerate((("X", X), ("Y", Y))):
        rows, n = drawn_rows(blocks_of([table], what), most, number)
        _warn_of_sample(what, n, len(rows[0]), "rows drawn by what they hold")
        samples.append(rows[0])
    return test_in_memory(*samples, **options)
