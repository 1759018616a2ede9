"""Fit estimators to rows in parts, in files or on a cluster."""

from __future__ import annotations

from typing import Any

from isopleth.density import SOSREP, RandomFeatureSOSREP
from isopleth.density.feature_sosrep import fit_parts as fit_features
from isopleth.density.landmarks import fit_parts as fit_density
from isopleth.difference import LSDD
from isopleth.difference.lsdd import fit_parts as fit_difference
from isopleth.distributed.batches import BatchParts, is_batches
from isopleth.errors import InputError
from isopleth.parts import Parts
from isopleth.score import NystromKEF
from isopleth.score.nystrom import fit_parts as fit_score


def fit(estimator: Any, X: Any, Y: Any = None, *, sample_weight: Any = None, sample_weight_y: Any = None) -> Any:
    """Fit an estimator to rows that do not fit in memory.

    Parameters
    ----------
    estimator : SOSREP with `landmarks`, RandomFeatureSOSREP, NystromKEF or LSDD
        The estimator with its parameters. If `n_jobs` is negative, the default, each partition is processed by one thread.
    X : dask.array.Array of shape (n_samples, n_features), dask.dataframe.DataFrame, Parts or record batches of Arrow
        Rows. Whatever gives record batches is taken as :class:`BatchParts` describes. Dask collections are computed on the
        current client, or in threads of this process. They are read several times: persist them if they are slow to compute
        and the memory of the workers is large enough.
    Y : the same, optional
        Rows of the second sample, for LSDD.
    sample_weight, sample_weight_y : dask.array.Array, dask.dataframe.Series or str, optional
        A weight for each row of `X` and of `Y`, in the same partitions; for record batches the name of their column. Not for
        `Parts`, which hold their weights.

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
    if Y is not None or sample_weight_y is not None:
        raise InputError(f"{type(estimator).__name__} is fitted to one sample; leave Y and sample_weight_y out.")
    if isinstance(estimator, SOSREP):
        return fit_density(estimator, as_parts(X, sample_weight, "X"))
    if isinstance(estimator, RandomFeatureSOSREP):
        return fit_features(estimator, as_parts(X, sample_weight, "X"))
    if isinstance(estimator, NystromKEF):
        return fit_score(estimator, as_parts(X, sample_weight, "X"))
    raise InputError(
        f"{type(estimator).__name__} is not fitted to rows in parts; use SOSREP with landmarks, RandomFeatureSOSREP, NystromKEF "
        "or LSDD, or fit it to a sample in memory."
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
