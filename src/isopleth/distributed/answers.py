"""Fits to rows in parts, and answers of fitted models for the rows of a Dask collection, lazy and partition by partition."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as arrow
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isopleth.conditional import ConditionalDensity, DensityImputer
from isopleth.core.errors import InputError
from isopleth.core.parts import Parts
from isopleth.core.threads import processors_taken
from isopleth.density import SOSREP, RandomFeatureSOSREP
from isopleth.density.feature_sosrep import fit_parts as fit_features
from isopleth.density.sosrep import fit_parts as fit_density
from isopleth.difference import LSDD
from isopleth.difference.lsdd import fit_parts as fit_difference
from isopleth.distributed.batches import BatchParts, is_batches, numbers, reader, record_batches
from isopleth.distributed.row_sample import MAX_ROWS
from isopleth.distributed.sampled_tasks import fit_detector_to_frame, fit_sample
from isopleth.score import NystromKEF
from isopleth.score.nystrom import fit_parts as fit_score
from isopleth.tables.checks import given_names
from isopleth.tables.given import Given
from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.anomaly.fit_in_parts import fit_parts as fit_detector
from isopleth.tasks.changes.detector import ChangePointDetector
from isopleth.tasks.drift.monitor import DriftMonitor


def fit(
    estimator: Any,
    X: Any,
    Y: Any = None,
    *,
    sample_weight: Any = None,
    sample_weight_y: Any = None,
    max_rows: int = MAX_ROWS,
) -> Any:
    """Fit an estimator to rows that do not fit in memory.

    Parameters
    ----------
    estimator : estimator
        With its parameters: SOSREP with `landmarks`, RandomFeatureSOSREP, NystromKEF, LSDD and AnomalyDetector take sums over
        the rows, and each partition is processed by one thread if `n_jobs` is negative, the default. ConditionalDensity and
        DensityImputer are fitted to a sample of the rows, as :func:`sample` draws it, and DriftMonitor to the last rows.
    X : dask.array.Array of shape (n_samples, n_features), dask.dataframe.DataFrame, Parts or record batches of Arrow
        Rows. Whatever gives record batches is taken as :class:`BatchParts` describes. Dask collections are computed on the
        current client, or in threads of this process. They are read several times: persist them if they are slow to compute
        and the memory of the workers is large enough. Estimators that take a sample take Dask collections, whose frames may have
        words, times and missing cells, and so may a frame for AnomalyDetector.
    Y : the same, optional
        Rows of the second sample, for LSDD. For ConditionalDensity the target: a column of a ``dask.dataframe`` or a
        one-dimensional ``dask.array``, in the partitions of X, or the name of a column of X.
    sample_weight, sample_weight_y : dask.array.Array, dask.dataframe.Series or str, optional
        A weight for each row of `X` and of `Y`, in the same partitions; for record batches the name of their column. Not for
        `Parts`, which hold their weights.
    max_rows : int, default=100_000
        About how many rows an estimator that takes a sample is fitted to. Of fewer rows all are brought together, and the fit is
        that in memory. For AnomalyDetector the rows of a frame that decide what its columns are used as.

    Returns
    -------
    estimator
        The estimator itself, fitted. The documentation of the `fit_parts` of its class states how close this is to a fit in
        memory.

    Raises
    ------
    InputError
        If the estimator cannot be fitted to parts, or rows or parameters cannot be used; for cells, with column and partition.

    Examples
    --------
    >>> import dask.array as da
    >>> from isopleth import RandomFeatureSOSREP, distributed
    >>> X = da.random.default_rng(0).normal(size=(2000, 2), chunks=(500, 2))
    >>> model = distributed.fit(RandomFeatureSOSREP(n_frequencies=50, random_state=0), X)
    >>> model.score_samples([[0.0, 0.0]]).shape
    (1,)
    """
    if isinstance(estimator, LSDD):
        if Y is None:
            raise InputError("LSDD is fitted to two samples; pass Y as well.")
        return fit_difference(estimator, as_parts(X, sample_weight, "X"), as_parts(Y, sample_weight_y, "Y"))
    if isinstance(estimator, (ConditionalDensity, DensityImputer, DriftMonitor)):
        return fit_sample(estimator, X, Y, max_rows, weighted=sample_weight is not None or sample_weight_y is not None)
    if (fit_parts := _fit_of(estimator)) is None:
        raise InputError(_refusal(estimator))
    if Y is not None or sample_weight_y is not None:
        raise InputError(f"{type(estimator).__name__} is fitted to one sample; leave Y and sample_weight_y out.")
    if isinstance(estimator, AnomalyDetector) and sample_weight is not None:
        raise InputError("AnomalyDetector takes no weights, since copies of a row count once; leave sample_weight out.")
    if isinstance(estimator, AnomalyDetector) and hasattr(X, "__dask_graph__") and hasattr(X, "columns"):
        return fit_detector_to_frame(estimator, X, max_rows)
    return fit_parts(estimator, as_parts(X, sample_weight, "X"))


def _fit_of(estimator: Any) -> Callable[[Any, Parts], Any] | None:
    """Return the fit to parts of one sample of an estimator that is fitted by sums over its rows."""
    known: list[tuple[type, Callable[[Any, Parts], Any]]] = [
        (SOSREP, fit_density),
        (RandomFeatureSOSREP, fit_features),
        (NystromKEF, fit_score),
        (AnomalyDetector, fit_detector),
    ]
    return next((fit_parts for kind, fit_parts in known if isinstance(estimator, kind)), None)


def _refusal(estimator: Any) -> str:
    """Return why an estimator is not fitted to rows in parts, and what to do."""
    name = f"{type(estimator).__name__} is not fitted to rows in parts"
    if isinstance(estimator, ChangePointDetector):
        return (
            f"{name}: a series is one, and each of its rows is judged by those before it; pass its columns in memory, or means "
            "of hours or days of them."
        )
    return (
        f"{name}; use SOSREP with landmarks, RandomFeatureSOSREP, NystromKEF, LSDD, AnomalyDetector, ConditionalDensity, "
        "DensityImputer or DriftMonitor, or fit it to a sample in memory, such as that of isopleth.distributed.sample."
    )


def as_parts(rows: Any, weights: Any, what: str) -> Parts:
    """Return the parts of a Dask collection or of record batches, or parts as they are."""
    if isinstance(rows, Parts):
        if weights is not None:
            raise InputError(f"{what} has weights of its own; leave those of the call out.")
        return rows
    if hasattr(rows, "__dask_graph__"):
        from isopleth.distributed.dask_parts import DaskParts  # Dask is there if rows are its own

        return DaskParts(rows, weights, what)
    if is_batches(rows):
        return BatchParts(rows, weights=_named(weights))
    raise InputError(
        f"{what} is {type(rows).__name__}; expected a dask.array, a dask.dataframe, record batches of Arrow or Parts such as "
        "FileParts; rows in memory go to the estimator's own fit."
    )


def _named(weights: Any) -> str | None:
    """Return the name of the column of weights of record batches."""
    if weights is None or isinstance(weights, str):
        return weights
    raise InputError("the weights of record batches are one of their columns; pass its name.")


__all__ = ["decision_function", "difference", "grad_log_density", "p_values", "predict", "score_samples", "transform"]


def score_samples(model: Any, rows: Any) -> Any:
    """Return the log density of each row, or the score of an anomaly detector.

    Parameters
    ----------
    model : estimator
        A fitted model with a method `score_samples`.
    rows : dask.array.Array of shape (n_samples, n_features), dask.dataframe.DataFrame or record batches of Arrow
        Rows. Their number need not be known. Column names of a frame are compared with those at fit. Record batches may come
        from an iterator, a data set, a table, or whatever else :class:`BatchParts` takes; other columns are allowed.

    Returns
    -------
    dask.array.Array of shape (n_samples,), or iterator of pyarrow.RecordBatch
        Lazy: one task for each partition, and the graph holds the model as it is now. For record batches an iterator of them,
        each with a further column named after this function; one batch is in memory at a time.

    Raises
    ------
    InputError
        If the model has no such method or the rows are not a Dask collection. On computation, for rows that the model refuses,
        with their partition.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from isopleth import KDE, distributed
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = KDE().fit(rows)
    >>> answer = distributed.score_samples(model, da.from_array(rows, chunks=(40, 2)))
    >>> bool(np.allclose(answer.compute(), model.score_samples(rows)))
    True
    """
    return _answer(model, "score_samples", rows)


def grad_log_density(model: Any, rows: Any) -> Any:
    """Return the gradient of the log density at each row, as :func:`score_samples` does; shape (n_samples, n_features)."""
    return _answer(model, "grad_log_density", rows, wide=True)


def difference(model: Any, rows: Any) -> Any:
    """Return the difference of two densities at each row, by :class:`~isopleth.LSDD`, as :func:`score_samples` does."""
    return _answer(model, "difference", rows)


def decision_function(model: Any, rows: Any) -> Any:
    """Return scores by :class:`~isopleth.AnomalyDetector`, negative for anomalies, as :func:`score_samples` does."""
    return _answer(model, "decision_function", rows)


def p_values(model: Any, rows: Any) -> Any:
    """Return p-values of new rows by :class:`~isopleth.AnomalyDetector`, as :func:`score_samples` does."""
    return _answer(model, "p_values", rows)


def predict(model: Any, rows: Any) -> Any:
    """Return the model's prediction for each row, as :func:`score_samples` does.

    That of :class:`~isopleth.AnomalyDetector` is a whole number, that of :class:`~isopleth.ConditionalDensity` a cell of its
    target.
    """
    if isinstance(model, ConditionalDensity):
        check_is_fitted(model)
        classes = getattr(model, "classes_", None)
        return _answer(model, "predict", rows, dtype=np.float64 if classes is None else classes.dtype.type)
    return _answer(model, "predict", rows, dtype=np.int64)


def transform(model: Any, rows: Any) -> Any:
    """Return the rows with their missing cells filled, partition by partition, by a :class:`~isopleth.DensityImputer`.

    Parameters
    ----------
    model : DensityImputer
        Fitted, by :func:`fit` or in memory. Draws (``strategy="draw"``) have a seed of their own in each partition.
    rows : dask.dataframe.DataFrame or dask.array.Array of shape (n_samples, n_features)
        Rows with the columns of the fit.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array
        Lazy, with the partitions and the types of `rows`; the same cells as those of ``model.transform`` of all rows, but for
        draws.

    Raises
    ------
    InputError
        If the rows are not a Dask collection. On computation, for rows that the model refuses, with their partition.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from isopleth import DensityImputer, distributed
    >>> x = np.random.default_rng(0).normal(size=(300, 1))
    >>> table = np.hstack([x, 2 * x])
    >>> table[:3, 1] = np.nan
    >>> rows = da.from_array(table, chunks=(100, 2))
    >>> filled = distributed.transform(distributed.fit(DensityImputer(n_jobs=1), rows), rows)
    >>> int(np.isnan(filled.compute()).sum())
    0
    """
    if not isinstance(model, DensityImputer):
        raise InputError(f"{type(model).__name__} fills no cells; pass a fitted DensityImputer.")
    _check_rows(model, "transform", rows)
    from dask.delayed import delayed

    from isopleth.distributed.dask_parts import is_frame

    shared = delayed(copy.deepcopy(model), pure=False, traverse=False)
    if is_frame(rows):
        import dask.dataframe as dd

        # The oldest Dask that we support hands a delayed model to `map_partitions` unfinished.
        parts = [delayed(_filled)(part, shared, i) for i, part in enumerate(rows.to_delayed())]
        return dd.from_delayed(parts, meta=rows._meta, divisions=rows.divisions, verify_meta=False)
    rows = rows.rechunk({1: -1})
    return rows.map_blocks(_filled, model=shared, dtype=rows.dtype, meta=np.empty((0, 0), dtype=rows.dtype))


def _filled(rows: Any, model: Any, number: int = 0, block_id: tuple[int, ...] | None = None) -> Any:
    """Return one partition filled; draws of all partitions would else be by the same numbers."""
    if not len(rows):
        return rows
    number = block_id[0] if block_id is not None else number
    if model.strategy == "draw" and model.random_state is not None:
        model = copy.copy(model)
        first = check_random_state(copy.deepcopy(model.random_state)).randint(2**31)
        model.random_state = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([first, number])))
    try:
        with processors_taken():
            return model.transform(rows)
    except InputError as error:
        raise InputError(f"partition {number}: {error}") from error


def _answer(model: Any, method: str, rows: Any, wide: bool = False, dtype: type = np.float64) -> Any:
    """Ask a fitted model about rows in parts; the answer is as lazy as the rows."""
    if not callable(getattr(model, method, None)):
        raise InputError(f"{type(model).__name__} has no {method}; pass a fitted model that has.")
    if is_batches(rows):
        check_is_fitted(model)
        return _of_batches(model, method, rows, wide)
    _check_rows(model, method, rows)
    import dask.array as da  # Dask is there if rows are its own
    from dask.delayed import delayed

    from isopleth.distributed.dask_parts import is_frame

    # One node of the graph and not one a partition, of a copy: another fit before it is computed must not change the answer.
    shared = delayed(copy.deepcopy(model), pure=False, traverse=False)
    if is_frame(rows):
        shape = (np.nan, len(rows.columns)) if wide else (np.nan,)
        each = [delayed(_of)(part, shared, method, i) for i, part in enumerate(rows.to_delayed())]
        return da.concatenate([da.from_delayed(one, shape, dtype) for one in each], allow_unknown_chunksizes=True)
    rows = rows.rechunk({1: -1})
    layout = {} if wide else {"drop_axis": 1}
    meta: Any = np.empty((0, 0) if wide else 0, dtype=dtype)
    return rows.map_blocks(_of_block, model=shared, method=method, dtype=dtype, meta=meta, **layout)


def _check_rows(model: Any, method: str, rows: Any) -> None:
    """Refuse a model that is not fitted, and rows that are no Dask collection with its columns."""
    check_is_fitted(model)
    if not hasattr(rows, "__dask_graph__"):
        raise InputError(
            f"rows are {type(rows).__name__}, no Dask collection and no record batches; rows in memory go to the model's own "
            f"{method}, files to the command line: isopleth score MODEL FILE."
        )
    from isopleth.distributed.dask_parts import check_collection, is_frame

    check_collection(rows, "the table of rows")
    if rows.shape[1] != model.n_features_in_:  # before anything is computed
        raise InputError(f"rows have {rows.shape[1]} columns; expected {model.n_features_in_}, as at fit.")
    names = list(rows.columns) if is_frame(rows) else None
    Given(rows, "the table of rows", names).refuse_other_names(given_names(model))


def _of_batches(model: Any, method: str, rows: Any, wide: bool) -> Iterator[Any]:
    """Yield record batches with the answers as further columns; `wide` answers have a column for each column of the model."""
    names = getattr(model, "feature_names_in_", None)
    for number, batch in enumerate(record_batches(rows) if isinstance(rows, Iterator) else reader(rows)()):
        used = batch.schema.names if names is None else [str(name) for name in names]
        if len(used) != model.n_features_in_:
            raise InputError(f"a batch has {len(used)} columns; expected {model.n_features_in_}, as at fit.")
        if hasattr(model, "schema_"):  # words and gaps are read by the model itself
            table: Any = arrow.Table.from_batches([batch]).select(used)
        else:
            table = numbers(batch, used)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            found = _of(table, model, method, number, "batch")
        columns = {f"d_{name}": column for name, column in zip(used, found.T, strict=True)} if wide else {method: found}
        added = {name: arrow.array(np.ascontiguousarray(column)) for name, column in columns.items()}
        kept = dict(zip(batch.schema.names, batch.columns, strict=True))
        yield arrow.record_batch(kept | added)


def _of_block(rows: Any, model: Any, method: str, block_id: tuple[int, ...] | None = None) -> np.ndarray:
    return _of(rows, model, method, 0 if block_id is None else block_id[0])


def _of(rows: Any, model: Any, method: str, number: int, what: str = "partition") -> np.ndarray:
    """Return the answer for one partition, which may be empty: models refuse an array of no rows."""
    if not len(rows):
        wide = method == "grad_log_density"
        kind = np.int64 if method == "predict" and not isinstance(model, ConditionalDensity) else np.float64
        return np.empty(
            (0, model.n_features_in_) if wide else 0, dtype=getattr(model, "classes_", np.empty(0, kind)).dtype
        )
    try:
        with processors_taken():
            return np.asarray(getattr(model, method)(rows))
    except InputError as error:
        raise InputError(f"{what} {number}: {error}") from error
