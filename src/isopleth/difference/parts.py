"""Density differences of rows in parts: a first pass draws a sample of rows, one or two more compute the sums."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from isopleth.difference.lsdd import LSDD
from isopleth.difference.samples import TwoSamples, enter_both
from isopleth.difference.statistics import DifferenceStatistics
from isopleth.entry import varying_columns
from isopleth.errors import InputError
from isopleth.parts import Parts, take_columns

# Distinct rows of each sample that the first pass draws.
SAMPLE = 10_000


def fit_parts(estimator: LSDD, X: Parts, Y: Parts) -> LSDD:
    """Fit a density difference to rows in parts, of which only sums are kept.

    The first pass draws up to 10,000 distinct rows of each sample. They determine which columns vary, the centres (unless
    `centers` is an array) and the candidate length scales. If there is more than one length scale or ridge, the second pass
    computes the sums for cross-validation. The last pass computes the sums at the chosen length scale. If centres, length
    scale and ridge are given, the coefficients are those of ``estimator.fit`` to all rows up to rounding.

    Parameters
    ----------
    estimator : LSDD
        Estimator to fit; its `cv` is a number.
    X, Y : Parts
        Rows of the two samples, of the same columns.

    Returns
    -------
    LSDD
        `estimator`; its ``level_set``, which needs rows, raises an error.

    Raises
    ------
    InputError
        As ``estimator.partial_fit``, and if the samples have different columns.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import LSDD
    >>> from isopleth.difference.parts import fit_parts
    >>> from isopleth.parts import ArrayParts
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(3000, 1)), rng.normal(1.0, size=(2000, 1))
    >>> change = LSDD(length_scale=0.7, alpha=1.0, centers=np.linspace(-3, 4, 8)[:, None])
    >>> here = fit_parts(change, ArrayParts(before, part_rows=1000), ArrayParts(after)).dual_coef_
    >>> bool(np.allclose(here, change.fit(before, after).dual_coef_, rtol=1e-10))
    True
    """
    estimator._validate_params()
    estimator._forget()
    if X.labels != Y.labels:
        raise InputError(
            f"Y has the columns {', '.join(Y.labels)}; expected those of X in their order: {', '.join(X.labels)}."
        )
    seed = int(check_random_state(estimator.random_state).randint(2**31))
    drawn = [_drawn(parts, name, seed) for parts, name in ((X, "X"), (Y, "Y"))]
    (x, weight_x), (y, weight_y) = drawn
    samples = TwoSamples.of(*enter_both(estimator, x, y, weight_x, weight_y))
    take_columns(estimator, X)
    decisions, _ = estimator._decide(samples, varying_columns(estimator, samples.rows))
    folds = estimator._folds(decisions.searched)

    def summed(scales: np.ndarray, moments: bool) -> DifferenceStatistics:
        start = partial(decisions.statistics, folds, estimator.memory_limit, estimator.n_jobs, scales, moments)
        sums = [parts.sums(start, partial(_add, sample)) for sample, parts in enumerate((X, Y))]
        return sums[0].merge(sums[1])

    if not decisions.searched:
        running = summed(_wanted(decisions.scales[0], decisions.near(None)), True)
        estimator._solve_at(decisions, running, estimator._search(decisions, running))
        return estimator
    found = estimator._search(decisions, summed(decisions.scales, False))
    estimator._solve_at(decisions, summed(_wanted(decisions.scale(found), decisions.near(found)), True), found)
    return estimator


def _drawn(parts: Parts, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows, weights = parts.sample(SAMPLE, seed)
    if not len(rows):
        raise InputError(f"{name} has no rows of positive weight; a difference needs both samples.")
    return rows, weights


def _wanted(scale: np.ndarray, near: np.ndarray) -> np.ndarray:
    return np.unique(np.stack([scale, near]), axis=0)


def _add(sample: int, sums: DifferenceStatistics, rows: np.ndarray, weights: np.ndarray | None) -> DifferenceStatistics:
    return sums.accumulate(sample, rows, weights)
