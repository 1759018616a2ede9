"""How sure: p-values from held-out scores, and the one threshold that follows from them."""

from __future__ import annotations

import math

import numpy as np


def cross_conformal(held_out: list[np.ndarray], scores: list[np.ndarray]) -> np.ndarray:
    r"""Cross-conformal p-values, (1 + C)/(n + 1) for C held-out rows at least as extreme, each under its own fold's
    fit.

    Where no rows repeat, :math:`p_k = (1 + C_k)/(n_k + 1)` is exact for a row exchangeable with those of fold k. A
    weighted mean of exact p-values is one up to a factor of 2 (Vovk and Wang 2020), and the mean of the K folds with
    weights n_k + 1 is (K + C)/(n + K), so

    .. math:: P(p \le t) \le 2t + 2(1 - t)(K - 1)/(n + K).

    Parameters
    ----------
    held_out : list of arrays of shape (n_k,)
        Anomaly scores of the rows of each fold under the fit to the other folds.
    scores : list of arrays of shape (m,)
        Anomaly scores of new rows under the same fits.

    Returns
    -------
    ndarray of shape (m,)
    """
    count = np.zeros(len(scores[0]))
    for own, new in zip(held_out, scores, strict=True):
        count += len(own) - np.searchsorted(np.sort(own), new, side="left")
    return (1.0 + count) / (1.0 + sum(map(len, held_out)))


# The upper half of the scores up to this share is taken to be of ordinary rows.
ORDINARY = 0.125
HEAVIEST = 50.0  # shapes beyond it would overflow and say no more
# Asymptotic variance of Pickands' estimate at shape 0, times n: 3 / (4 log(2)^4) for each of the n/8 rows in the last quantile.
SHAPE_VARIANCE = 3.0 / (4.0 * math.log(2.0) ** 4) / ORDINARY


def _upper(scores: np.ndarray, share: float) -> float:
    return float(np.quantile(scores, 1.0 - share, method="higher"))


def tail_p_values(scores: np.ndarray) -> np.ndarray:
    r"""p-values of training rows: the share of rows as extreme, and beyond the ordinary ones a fitted tail.

    Ranks alone are uniform over the rows that they are taken among, whatever those hold, so no test of them can
    reject. Beyond the most extreme eighth the p-value is instead that of a generalised Pareto tail through the
    quantiles at 1/2, 1/4 and 1/8 (Pickands 1975), with one standard error added to the shape, and a shape of at least
    0: the log density of a Gaussian and of a power law both have exponential tails, which is the shape 0. Rows among
    the most extreme eighth have no influence on the law that judges them. Where that is no smaller than the rank, the
    rank stands, which changes nothing about what can be rejected.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Held-out anomaly scores, higher for the less likely.

    Returns
    -------
    ndarray of shape (n,)
        In (0, 1]; approximate, and conservative where more than an eighth of the rows are anomalies.
    """
    n = len(scores)
    ordered = np.sort(scores)
    p = (n - np.searchsorted(ordered, scores, side="left")) / n
    half, quarter, eighth = (_upper(scores, share) for share in (4 * ORDINARY, 2 * ORDINARY, ORDINARY))
    near, far = quarter - half, eighth - quarter
    if near <= 0.0 or far <= 0.0:  # ties: there is no tail to fit
        return p
    shape = min(max(0.0, math.log2(far / near) + math.sqrt(SHAPE_VARIANCE / n)), HEAVIEST)
    beyond = scores > eighth
    excess = scores[beyond] - eighth
    if shape == 0.0:
        # The mean slope over both octaves: their ratio says that the tail is no heavier than exponential.
        tail = np.exp(-excess * 2 * math.log(2.0) / (near + far))
    else:
        tail = (1.0 + excess * (2.0**shape - 1.0) / (2.0**shape * far)) ** (-1.0 / shape)
    p[beyond] = np.minimum(p[beyond], np.maximum(ORDINARY * tail, np.finfo(float).tiny))
    return p


def benjamini_hochberg(p_values: np.ndarray, rate: float) -> float:
    """Largest p-value rejected at false discovery rate `rate`; 0 where none is."""
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / len(ordered))
    return float(ordered[passed[-1]]) if len(passed) else 0.0
