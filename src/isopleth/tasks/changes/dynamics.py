"""Dynamics of a series: the scores of an autoregression, whose means move where its coefficients or its variance change."""

from __future__ import annotations

import numpy as np

from isopleth.tasks.changes.embedding import Blocks, in_units_of_steps, means_over_parts

# Lags of the autoregression, and standard deviations at which innovations and lags are clipped.
_LAGS, _FARTHEST = 10, 4.0
# Rows for each lag, so that no autoregression is fitted by chance; and ridge of the lags, relative to their mean variance.
_ROWS_A_LAG, _RIDGE = 10, 1e-8


def scores(column: np.ndarray) -> np.ndarray:
    r"""Return the scores of an autoregression of ten lags that is fitted to a whole column, of shape (T, 11).

    The scores of the coefficients are :math:`e_t L^{-1} x_{t-1}`, with innovations :math:`e_t` in standard units and lags
    whitened by the Cholesky factor L of their covariance; that of the variance is :math:`\sqrt{|e_t|}`, less its mean. They have
    mean 0 over the series, and another mean in parts of it whose dynamics differ (Nyblom 1989). No part needs a fit of its own.
    """
    windows = np.lib.stride_tricks.sliding_window_view(column, _LAGS + 1)
    lags, target = windows[:, :-1] - column.mean(), windows[:, -1] - column.mean()
    covariance = lags.T @ lags / len(lags)
    covariance += (_RIDGE * np.trace(covariance) / _LAGS + 1e-300) * np.eye(_LAGS)
    white = np.linalg.solve(np.linalg.cholesky(covariance), lags.T).T
    innovations = target - white @ (white.T @ target) / len(white)
    innovations = innovations / max(float(np.sqrt(np.mean(innovations**2))), 1e-300)
    clipped = np.clip(innovations, -_FARTHEST, _FARTHEST)
    sizes = np.sqrt(np.abs(clipped))
    rows = np.column_stack([clipped[:, None] * np.clip(white, -_FARTHEST, _FARTHEST), sizes - sizes.mean()])
    return np.concatenate([np.zeros((_LAGS, _LAGS + 1)), rows])


def mean_scores(values: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Average the scores of the columns over the parts of blocks, with twice the weight of a lag of the embedding."""
    if len(values) < _ROWS_A_LAG * _LAGS:
        return np.zeros((blocks.count * blocks.parts, 1))
    means = means_over_parts(np.concatenate([scores(column) for column in values.T], axis=1), blocks)
    return in_units_of_steps(means, blocks.parts, 2.0)
