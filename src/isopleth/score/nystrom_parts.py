"""NystromKEF over rows in parts: a sample to decide by, and one pass for the sums."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from isopleth._namespace import HOST
from isopleth.errors import InputError
from isopleth.frame import Frame
from isopleth.parts import Parts, take_columns
from isopleth.score.nystrom import NystromKEF
from isopleth.score.nystrom_folds import NystromFolds

SAMPLE = 10_000
"""Distinct rows that are looked at first."""


def fit_parts(estimator: NystromKEF, parts: Parts) -> NystromKEF:
    """Fit the score to rows in parts, of which no more than sums is kept.

    The first pass draws up to 10,000 distinct rows, which decide the landmarks (where `landmarks` is no array), the length scale
    (where it is a rule), the base measure and the unit of losses. The second pass has the sums. With landmarks, length scale
    and regulariser given, the score is that of ``estimator.fit`` to all rows, but for rounding.

    Parameters
    ----------
    estimator : NystromKEF
        What is to be fitted.
    parts : Parts
        The rows.

    Returns
    -------
    NystromKEF
        `estimator`, without ``grad_log_density_`` and ``weights_``, which have a number a row.

    Raises
    ------
    InputError
        For what ``estimator.fit`` refuses in the rows that are looked at first.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import NystromKEF, Tikhonov
    >>> from isopleth.parts import ArrayParts
    >>> from isopleth.score.nystrom_parts import fit_parts
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> score = NystromKEF(regularizer=Tikhonov(alpha=1e-3), landmarks=X[:30], length_scale=1.5)
    >>> here = fit_parts(score, ArrayParts(X, part_rows=1000)).dual_coef_
    >>> bool(np.allclose(here, score.fit(X).dual_coef_, rtol=1e-6))
    True
    """
    estimator._validate_params()
    estimator._forget()
    take_columns(estimator, parts)
    rows, weights = parts.sample(SAMPLE, int(check_random_state(estimator.random_state).randint(2**31)))
    if not len(rows):
        raise InputError("X has no rows of positive weight; a score needs at least two that differ.")
    settled = estimator._settle_frame(rows, weights, HOST)
    start = partial(estimator._sums_of_none(*settled, weights), merged=True)
    sums = parts.sums(start, partial(_add, estimator._frame))
    estimator._centers = sums.landmarks
    estimator._solve(sums)
    return estimator


def _add(frame: Frame, sums: NystromFolds, rows: np.ndarray, weights: np.ndarray | None) -> NystromFolds:
    return sums.accumulate(frame.enter(rows), weights)
