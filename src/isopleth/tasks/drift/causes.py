r"""Evidence for causes of a drift in a stream of scores: level, spread, dependence, columns given the others, and incidents.

Evidence for a kind of change is a Shiryaev-Roberts sum of likelihood ratios :math:`e^{l s - \psi}`, s a statistic of a row. The
weighted sum over all kinds, less the number of rows, is a martingale without a change, so that the mean number of rows until it
reaches A is at least A, without simulations (Pollak 1985).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from isopleth.core.covariance import ledoit_wolf

# Slopes l of the likelihood ratios, in standard deviations a row: of levels, and of all other kinds.
LEAST_SLOPE = 0.1
_SLOPES, _OTHER_SLOPES = (LEAST_SLOPE, 0.25, 0.6), (LEAST_SLOPE, 0.3)
KINDS = ("level", "given", "spread", "together")
GIVEN, TOGETHER = 1, 3
# Shares of the evidence; those of kinds that a stream of one column does not have go to the others.
_SHARES = (0.35, 0.25, 0.2, 0.2)
# Largest order of an autoregression, and bounds of the scores that it and the evidence see.
MOST_LAGS, _LARGEST_SCORE, _LARGEST_STATISTIC = 6, 3.5, 3.0
# Numbers of rows of one sign that make an incident; of rows that are rarer than these a day, such as hours, one is enough if it
# is far out.
_RUNS, _RARE, _SHORT_RUNS = (3,), 96, (2, 1)
# The share of the false pages that incidents may take, and quantiles of their tail.
_SHARE_OF_INCIDENTS, _TAIL = 0.1, (0.8, 0.9, 0.95)
_LEAST_TAIL = 0.05
# Shares of single rows beyond the quantiles of their tail.
_TAIL_OF_ONE = (0.1, 0.05, 0.01)
# Least score of an incident, beyond the lowest and highest ranks in a context: a jump of every day at one minute reaches these.
_LEAST_BAR = 3.0
_FEWEST_BLOCKS = 12


def autoregression(scores: np.ndarray) -> np.ndarray:
    """Return coefficients of the scores before each one, by least squares; their number by Schwarz's criterion."""
    z = np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)
    n = len(z) - MOST_LAGS
    lags = np.column_stack([z[MOST_LAGS - k : len(z) - k] for k in range(1, MOST_LAGS + 1)])
    best, found = np.inf, np.zeros(0)
    for order in range(MOST_LAGS + 1):
        slopes = np.linalg.lstsq(lags[:, :order], z[MOST_LAGS:], rcond=None)[0]
        left = float(((z[MOST_LAGS:] - lags[:, :order] @ slopes) ** 2).mean())
        cost = n * np.log(max(left, np.finfo(np.float64).tiny)) + order * np.log(n)
        if cost < best:
            best, found = cost, slopes
    return found


@dataclass(frozen=True, eq=False)
class NullModel:
    """Law of the scores of a stream without a change, estimated from a reference."""

    run_length: float
    per_day: int
    slopes: tuple[np.ndarray, ...]  # autoregression of each column
    knots: tuple[np.ndarray, ...]  # sorted innovations of each column
    given: np.ndarray  # (d, d): maps innovations to residuals given the other columns; (d, 0) of a single column
    mean: np.ndarray  # (s,): mean and deviation of each statistic
    deviation: np.ndarray
    spread: np.ndarray  # (d,): spread of the scores of each column, by their median distance from the median
    correlation: np.ndarray  # (d, d): of the innovations
    runs: tuple[int, ...]  # numbers of rows of one sign that make an incident, the most first
    bars: np.ndarray  # (r, d): least score of an incident of each
    # Of each likelihood ratio: its statistic, kind, columns, slope, what it loses a row, and the logarithm of its share.
    statistic: np.ndarray
    kind: np.ndarray
    columns: np.ndarray  # (k, 2): the second is that of a pair, and otherwise the first again
    slope: np.ndarray
    loss: np.ndarray
    aging: np.ndarray  # what it loses besides, for each row that its evidence is old
    log_share: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, run_length: float, per_day: int, pace: float) -> Self:
        """Learn from the scores of a reference (n, d), in the order of its rows, which follow each other at a `pace` a day."""
        d = scores.shape[1]
        slopes = tuple(autoregression(column) for column in scores.T)
        left = np.column_stack([_innovations(z, a) for z, a in zip(scores.T, slopes, strict=True)])
        knots = tuple(np.sort(column) for column in left.T)
        e = _normal(left, knots)
        given = _given(e) if d > 1 else np.empty((d, 0))
        statistics = _statistics(e, given)
        mean, deviation = statistics.mean(axis=0), np.maximum(statistics.std(axis=0), np.finfo(np.float64).tiny)
        standard = (statistics - mean) / deviation
        spread = 1.4826 * np.median(np.abs(scores - np.median(scores, axis=0)), axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        runs = _RUNS if pace >= _RARE else _SHORT_RUNS
        bars = np.column_stack([incident_bars(z, run_length, d, runs) for z in scores.T])
        about = slopes, knots, given, mean, deviation, spread, np.atleast_2d(np.corrcoef(e.T)), runs, bars
        return cls(float(run_length), per_day, *about, *_ratios(standard, d, per_day))

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.knots)

    @property
    def bar(self) -> float:
        """Evidence of a page."""
        return self.run_length

    def innovations(self, scores: np.ndarray) -> np.ndarray:
        """Return what autoregressions leave of scores (n, d), as normal scores."""
        left = np.column_stack([_innovations(z, a) for z, a in zip(scores.T, self.slopes, strict=True)])
        return _normal(left, self.knots)

    def standard(self, scores: np.ndarray) -> np.ndarray:
        """Return the statistics of rows, of mean 0 and variance 1 at the reference."""
        return np.asarray((_statistics(self.innovations(scores), self.given) - self.mean) / self.deviation)

    def residual(self, scores: np.ndarray) -> np.ndarray:
        """Return the residuals (d,) of scores of one row given each other, in units of what the others leave open."""
        return np.asarray(scores @ self.given)

    def steps(self, scores: np.ndarray, before: int) -> np.ndarray:
        """Return the log likelihood ratios of rows that follow the first `before` scores."""
        return np.asarray(self.standard(scores)[before:, self.statistic] * self.slope - self.loss)


def _innovations(z: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return what an autoregression leaves of each column of normal scores."""
    z = np.clip(z, -_LARGEST_SCORE, _LARGEST_SCORE)
    out = z.copy()
    for lag, slope in enumerate(slopes, 1):
        out[lag:] -= slope * z[:-lag]
    return out


def _normal(left: np.ndarray, knots: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return normal scores of innovations among those of the reference."""
    out = np.empty(left.shape)
    for j, known in enumerate(knots):
        rank = np.searchsorted(known, left[:, j], "left") + np.searchsorted(known, left[:, j], "right") + 1.0
        out[:, j] = np.clip(ndtri(rank / (2.0 * len(known) + 2.0)), -_LARGEST_STATISTIC, _LARGEST_STATISTIC)
    return out


def _given(e: np.ndarray) -> np.ndarray:
    """Return the matrix that maps innovations to residuals of each given the others, of variance 1."""
    correlation, _ = ledoit_wolf(e, np.full(len(e), 1.0 / len(e)), float(len(e)))
    precision = np.linalg.inv(correlation)
    return np.asarray(precision / np.sqrt(np.diag(precision)))


def _statistics(e: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the statistics of rows: levels, levels given the others, spreads, and products of pairs."""
    one, other = np.triu_indices(e.shape[1], 1)
    # Row by row: sums of a matrix product depend on the number of rows.
    residuals = np.matmul(e[:, None, :], given)[:, 0]
    residuals = np.clip(residuals, -_LARGEST_STATISTIC, _LARGEST_STATISTIC)
    return np.hstack([e, residuals, (e**2 - 1.0) / np.sqrt(2.0), e[:, one] * e[:, other]])


def _ratios(standard: np.ndarray, d: int, per_day: int) -> tuple[np.ndarray, ...]:
    """Return the likelihood ratios of all statistics, given their values of mean 0 and variance 1 at the reference."""
    one, other = np.triu_indices(d, 1)
    alone, given = np.arange(d), np.arange(d if d > 1 else 0)
    columns = np.stack(
        [np.concatenate([alone, given, alone, one]), np.concatenate([alone, given, alone, other])], axis=1
    )
    kinds = np.repeat(np.arange(4), [d, len(given), d, len(one)])
    factor = _long_run_variances(standard, per_day)
    slopes = [np.outer(sizes, [1.0, -1.0]).ravel() for sizes in (_SLOPES, _OTHER_SLOPES)]
    count = np.array([len(slopes[int(kind > 1)]) for kind in kinds])
    statistic = np.repeat(np.arange(len(kinds)), count)
    slope = np.concatenate([slopes[int(kind > 1)] for kind in kinds]) / np.sqrt(factor[statistic])
    kind, f = kinds[statistic], factor[statistic]
    seen = np.log(np.mean(np.exp(standard[:, statistic] * slope), axis=0))
    loss = np.maximum(f * seen, f * slope**2 / 2.0)
    # The mean of n rows of the reference errs, too: the sum of t rows has the variance f t (1 + t / n) about it.
    aging = f * slope**2 / len(standard)
    counts = np.bincount(kind, minlength=4)
    shares = np.where(counts > 0, _SHARES, 0.0)
    share = (shares / shares.sum() / np.maximum(counts, 1))[kind]
    return statistic, kind, columns[statistic], slope, loss, aging, np.log(share)


def _long_run_variances(standard: np.ndarray, per_day: int) -> np.ndarray:
    """Return the largest robust variance of sums over blocks of rows, over their number: what the autoregression left."""
    out = np.ones(standard.shape[1])
    for size in (4, 12, max(24, per_day // 6), max(48, per_day // 2)):
        blocks = len(standard) // size
        if blocks < _FEWEST_BLOCKS:
            break
        sums = standard[: blocks * size].reshape(blocks, size, -1).sum(axis=1) / np.sqrt(size)
        low, high = np.quantile(sums, (0.2, 0.8), axis=0)
        out = np.maximum(out, ((high - low) / (2.0 * ndtri(0.8))) ** 2)
    return out


def least_in_run(z: np.ndarray, run: int) -> np.ndarray:
    """Return the least size of the last `run` scores if all are of one sign, and otherwise 0 or less."""
    before = np.stack([np.concatenate([np.zeros(min(k, len(z))), z[: max(len(z) - k, 0)]]) for k in range(run)])
    return np.asarray(np.maximum(before.min(axis=0), -before.max(axis=0)))


def incident_bars(z: np.ndarray, run_length: float, d: int, runs: tuple[int, ...]) -> np.ndarray:
    """Return the scores (r,) that runs of rows of one of d columns exceed as rarely as asked, by exponential tails."""
    bars = [_bar_of_one(z, run_length, d) if run == 1 else _bar_of_several(z, run_length, d, run) for run in runs]
    return np.maximum(bars, _LEAST_BAR)


def _bar_of_several(z: np.ndarray, run_length: float, d: int, run: int) -> float:
    q = np.quantile(least_in_run(z, run), _TAIL)
    tail = max(q[2] - q[1], q[1] - q[0], _LEAST_TAIL) / np.log(2.0)
    return float(q[1] + tail * np.log(_SHARE_OF_INCIDENTS * run_length * d * 2.0))


def _bar_of_one(z: np.ndarray, run_length: float, d: int) -> float:
    """Return the bar of single rows; one in twenty is beyond all rows of its context, where the tail is another."""
    shares = np.array(_TAIL_OF_ONE)
    q = np.quantile(np.abs(z), 1.0 - shares)
    tail = max(float((np.diff(q) / np.log(shares[:-1] / shares[1:])).max()), _LEAST_TAIL)
    return float(q[1] + tail * np.log(shares[1] * run_length * d / _SHARE_OF_INCIDENTS))
