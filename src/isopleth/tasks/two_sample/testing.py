"""Test whether two samples are from one distribution."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from isopleth.backend import frame_names
from isopleth.difference.samples import TwoSamples
from isopleth.entry import check_memory_limit, column_names, plain_names
from isopleth.errors import InputError, listed
from isopleth.operators import DEFAULT_MEMORY_LIMIT
from isopleth.operators.threads import DEFAULT_N_JOBS, ONE_BLAS_THREAD, effective_n_jobs
from isopleth.tasks.two_sample.permutation import p_value
from isopleth.tasks.two_sample.problem import TwoSampleProblem
from isopleth.tasks.two_sample.result import TwoSampleResult


class TwoSampleTest(BaseEstimator):
    """Bears the names and the number of columns while rows are checked; scikit-learn's messages call it by its name."""


def _samples(columns: BaseEstimator, X: Any, Y: Any) -> TwoSamples:
    """Checked rows; their columns have the same names in the same order, or one of the samples has no names.

    scikit-learn would say so of a fit and what was seen later, would not look at names that are numbers, and would warn where
    one has no names.
    """
    x, y = frame_names(X), frame_names(Y)
    if x is not None and y is not None and x != y:
        lacks = [(name, [n for n in one if n not in other]) for name, one, other in (("Y", x, y), ("X", y, x))]
        missing = [f"{name} lacks {listed([repr(str(n)) for n in names])}" for name, names in lacks if names]
        if missing:
            raise InputError(f"{' and '.join(missing)}; choose columns that both have.")
        if len(x) == len(y):
            raise InputError("X and Y have the same columns in another order; pass Y[list(X.columns)].")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (has|does not have valid) feature names")
        # In lexical order, so that the permutations of the values of a first column do not depend on the other columns.
        return TwoSamples.of(columns, X, Y, None, None, lexical=True)


def _check_count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} = {value!r}: expected a whole number, at least 1.")
    return int(value)


def two_sample_test(
    X: Any,
    Y: Any,
    *,
    n_permutations: int = 999,
    centers: int = 150,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    n_jobs: int | None = DEFAULT_N_JOBS,
    random_state: Any = None,
) -> TwoSampleResult:
    r"""Test whether two samples are from one distribution, against any difference of densities.

    Nine statistics are compared under permuted labels. Eight are LSDD's dual estimate of the squared L2 distance,
    :math:`h^\top M h` with h the difference of the samples' means of functions around centres [1]_: Gaussians of six length
    scales, one of them with two ridges, and products of Laplace functions. The ninth is the largest difference of mean and
    spread of a single column. Each is replaced by the normal score of its rank among all label vectors, and the largest score
    counts. Centres, length scales and units of the columns come from the rows of both samples together, so the p-value is
    exact: if the samples are from one distribution, P(pvalue <= a) <= a for every a, for any sizes, dimension and ties, and
    P(pvalue <= a) = a up to ties where a (1 + n_permutations) is whole.

    Parameters
    ----------
    X, Y : array-like or data frame of shape (n, n_features) and (n', n_features)
        Rows of the two samples, independent of each other; at least one each. Columns are matched by position; where both have
        names, these must be the same in the same order.
    n_permutations : int, default=999
        Random permutations of the labels. The smallest p-value is 1 / (1 + n_permutations).
    centers : int, default=150
        At most so many distinct rows, drawn from both samples together, are centres.
    memory_limit : float, default=2**30
        Bytes that matrices and scratch may take together, beside the rows themselves.
    n_jobs : int or None, default=-1
        Threads; -1 is all processors, None is one or what joblib.parallel_config says.
    random_state : int, RandomState or None
        Seed of the permutations, the centres and the groups.

    Returns
    -------
    TwoSampleResult
        With `statistic`, `pvalue`, `witness`, `separation()`, `changes()`, `confidence_interval()` and `plot()`.

    Raises
    ------
    InputError
        For rows that cannot be used, samples with different columns, and parameters out of range.

    Notes
    -----
    From 8,000 rows in both samples together, groups of equal size within each sample, drawn at random, are permuted and not
    single rows: about 4,000 groups, more where the smaller sample would have fewer than 200 otherwise. Groups are as exchangeable
    as rows, so the p-value stays exact. Fewer than one row in 200 is left out because it fills no group. Of a larger sample at
    most 20,000 rows, or a hundred times as many as the other one has, are used, drawn at random: more do not add one percent.

    Samples may be tensors, or arrays of another library: the test is computed in NumPy, and its result holds NumPy's arrays.

    References
    ----------
    .. [1] M. Sugiyama, T. Kanamori, T. Suzuki, M. C. du Plessis, S. Liu, I. Takeuchi, "Density-difference estimation", NIPS
       2012.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(200, 3)), rng.normal(size=(150, 3))
    >>> after[:, 1] *= 2.0
    >>> result = two_sample_test(before, after, random_state=0)
    >>> result.pvalue
    0.001
    >>> result.witness.columns()
    ['column 1']
    """
    permutations, most = _check_count(n_permutations, "n_permutations"), _check_count(centers, "centers")
    check_memory_limit(memory_limit)
    effective_n_jobs(n_jobs)
    columns = TwoSampleTest()
    samples = _samples(columns, X, Y)
    seed = int(check_random_state(random_state).randint(2**31))
    labels = column_names(columns)
    problem = TwoSampleProblem(samples, labels, permutations, most, seed, memory_limit, n_jobs)
    names, sizes = plain_names(columns), problem.sizes
    scale = np.full(len(labels), np.nan)
    if len(samples.rows) == 1:  # equal rows only: nothing to tell apart
        return TwoSampleResult(0.0, 1.0, sizes, names, permutations, 1, scale, {}, problem, 0)
    with ONE_BLAS_THREAD:
        scores = problem.scores
    statistics = scores.max(axis=0)
    best = int(np.argmax(scores[:-1, 0]))
    scale[problem.varying] = problem.column_units.scale * problem.kernels[best][0].length_scale
    return TwoSampleResult(
        float(statistics[0]),
        p_value(statistics),
        sizes,
        names,
        permutations,
        problem.units.group,
        scale,
        dict(zip(problem.score_names, scores[:, 0].tolist(), strict=True)),
        problem,
        best,
    )
