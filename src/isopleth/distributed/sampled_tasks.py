"""Tasks that are fitted to a sample of the rows of Dask collections, or to the last of them."""

from __future__ import annotations

from typing import Any

from isopleth.conditional import ConditionalDensity
from isopleth.core.errors import InputError, warn_user, whole_number
from isopleth.distributed.row_sample import MAX_ROWS, blocks_of, drawn_rows, last_rows
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


def _with_target(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and target as collections; the target may be a column of the rows, by its name."""
    if not isinstance(y, str):
        return X, y
    if y not in list(getattr(X, "columns", ())):
        raise InputError(f"X has no column {y!r}, which is to be the target; name one of its columns.", column=y)
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
