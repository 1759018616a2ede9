r"""Causes of a drift in a stream of scores: level, spread, dependence, columns given the others, and incidents, one page each.

Evidence for a kind of change is a Shiryaev-Roberts sum of likelihood ratios :math:`e^{l s - \psi}`, s a statistic of a row. The
weighted sum over all kinds, less the number of rows, is a martingale without a change, so that the mean number of rows until it
reaches A is at least A, without simulations (Pollak 1985).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtri

from isopleth.core.covariance import ledoit_wolf

# Slopes l of the likelihood ratios, in standard deviations a row: of levels, and of all other kinds.
_SLOPES, _OTHER_SLOPES = (0.1, 0.25, 0.6), (0.1, 0.3)
KINDS = ("level", "given", "spread", "together")
# Shares of the evidence; those of kinds that a stream of one column does not have go to the others.
_SHARES = (0.35, 0.25, 0.2, 0.2)
# Largest order of an autoregression, and bounds of the scores that it and the evidence see.
_MOST_LAGS, _LARGEST_SCORE, _LARGEST_STATISTIC = 6, 3.5, 3.0
# Standard errors of the mean of the reference that evidence loses a row. A whole one would make false pages less than half as
# frequent as asked for, since the sums pass their bar with steps to spare.
_DOUBT = 0.1
# Rows of one sign that make an incident, the share of the false pages that incidents may take, and their quantiles.
RUN, _SHARE_OF_INCIDENTS, _TAIL = 3, 0.1, (0.8, 0.9, 0.95)
_LEAST_TAIL = 0.05
# Least score of an incident, beyond the lowest and highest ranks in a context: a jump of every day at one minute reaches these.
_LEAST_BAR = 3.0
# Days whose rows say how much scores vary after a level has changed.
DAYS_KEPT = 7
_FEWEST_BLOCKS, _FEWEST_AFTER = 12, 96


def autoregression(scores: np.ndarray) -> np.ndarray:
    """Return coefficients of the scores before each one, by least squares; their number by Schwarz's criterion."""
    z = np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)
    n = len(z) - _MOST_LAGS
    lags = np.column_stack([z[_MOST_LAGS - k : len(z) - k] for k in range(1, _MOST_LAGS + 1)])
    best, found = np.inf, np.zeros(0)
    for order in range(_MOST_LAGS + 1):
        slopes = np.linalg.lstsq(lags[:, :order], z[_MOST_LAGS:], rcond=None)[0]
        left = float(((z[_MOST_LAGS:] - lags[:, :order] @ slopes) ** 2).mean())
        cost = n * np.log(max(left, np.finfo(np.float64).tiny)) + order * np.log(n)
        if cost < best:
            best, found = cost, slopes
    return found


@dataclass(frozen=True, eq=False)
class CauseModel:
    """What the scores of a reference say of a stream without a change."""

    run_length: float
    per_day: int
    slopes: tuple[np.ndarray, ...]  # autoregression of each column
    knots: tuple[np.ndarray, ...]  # sorted innovations of each column
    given: np.ndarray  # (d, d): maps innovations to residuals given the other columns; (d, 0) of a single column
    mean: np.ndarray  # (s,): mean and deviation of each statistic
    deviation: np.ndarray
    bars: np.ndarray  # (d,): least score of an incident
    # Of each likelihood ratio: its statistic, kind, columns, slope, what it loses a row, and the logarithm of its share.
    statistic: np.ndarray
    kind: np.ndarray
    columns: np.ndarray  # (k, 2): the second is that of a pair, and otherwise the first again
    slope: np.ndarray
    loss: np.ndarray
    log_share: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, run_length: float, per_day: int) -> Self:
        """Learn from the scores of a reference (n, d), in the order of its rows."""
        d = scores.shape[1]
        slopes = tuple(autoregression(column) for column in scores.T)
        left = np.column_stack([_innovations(z, a) for z, a in zip(scores.T, slopes, strict=True)])
        knots = tuple(np.sort(column) for column in left.T)
        e = _normal(left, knots)
        given = _given(e) if d > 1 else np.empty((d, 0))
        statistics = _statistics(e, given)
        mean, deviation = statistics.mean(axis=0), np.maximum(statistics.std(axis=0), np.finfo(np.float64).tiny)
        standard = (statistics - mean) / deviation
        bars = np.array([_bar(z, run_length, d) for z in scores.T])
        ratios = _ratios(standard, d, per_day)
        return cls(float(run_length), per_day, slopes, knots, given, mean, deviation, bars, *ratios)

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.knots)

    def steps(self, scores: np.ndarray, before: int) -> np.ndarray:
        """Return the log likelihood ratios of rows that follow the first `before` scores."""
        left = np.column_stack([_innovations(z, a) for z, a in zip(scores.T, self.slopes, strict=True)])[before:]
        standard = (_statistics(_normal(left, self.knots), self.given) - self.mean) / self.deviation
        return np.asarray(standard[:, self.statistic] * self.slope - self.loss)


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
    # The mean of a statistic over the reference errs, too.
    doubt = _DOUBT * np.sqrt(f / len(standard))
    loss = np.maximum(f * seen, f * slope**2 / 2.0) + np.abs(slope) * doubt
    counts = np.bincount(kind, minlength=4)
    shares = np.where(counts > 0, _SHARES, 0.0)
    share = (shares / shares.sum() / np.maximum(counts, 1))[kind]
    return statistic, kind, columns[statistic], slope, loss, np.log(share)


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


def least_in_run(z: np.ndarray) -> np.ndarray:
    """Return the least size of the last three scores if all are of one sign, and otherwise 0 or less."""
    before = np.stack([np.concatenate([np.zeros(min(k, len(z))), z[: max(len(z) - k, 0)]]) for k in range(RUN)])
    return np.asarray(np.maximum(before.min(axis=0), -before.max(axis=0)))


def _bar(z: np.ndarray, run_length: float, d: int) -> float:
    """Return the score that three rows in a row exceed as rarely as asked, by an exponential tail."""
    q = np.quantile(least_in_run(z), _TAIL)
    tail = max(q[2] - q[1], q[1] - q[0], _LEAST_TAIL) / np.log(2.0)
    return max(float(q[1] + tail * np.log(_SHARE_OF_INCIDENTS * run_length * d * 2.0)), _LEAST_BAR)


@dataclass(frozen=True, eq=False)
class Page:
    """A cause: what changed, in which columns, and since when.

    Rows are counted from 0. `closed` is the row at which evidence for it had ceased; -1 while it is open.
    """

    row: int
    start: int
    kind: str
    columns: tuple[int, ...]
    direction: int
    last: int
    closed: int = -1
    also: tuple[int, ...] = ()
    seconds: float = np.nan  # time of its start, in seconds since 1970; NaN if it is not known


@dataclass(frozen=True, eq=False)
class Cause:
    """Open cause of a page: muted until it has had no evidence for `hold` rows."""

    page: int
    kind: int
    columns: tuple[int, int]
    start: int
    row: int
    hold: int
    until: int


@dataclass(frozen=True, eq=False)
class CauseState:
    """Position in a stream. It is replaced and never changed in place."""

    n_rows: int
    log_sums: np.ndarray  # (k,): logarithms of the Shiryaev-Roberts sums
    walks: np.ndarray  # (k,): cumulative sums, which say since when
    starts: np.ndarray  # (k,): first row of the present evidence
    recent: np.ndarray  # (h, d): last scores
    incidents: np.ndarray  # (d,): last row of an incident of each column
    base: np.ndarray  # (d,): level about which incidents are judged, and unit of the scores
    unit: np.ndarray
    open: tuple[Cause, ...]
    pages: tuple[Page, ...]
    seconds: np.ndarray  # (h,): times of the last rows, in seconds since 1970; NaN without times
    key: int = 0  # of the reference

    @property
    def alarms(self) -> int:
        """Number of pages so far."""
        return len(self.pages)

    @classmethod
    def empty(cls, model: CauseModel) -> Self:
        """Return the state before the first row."""
        k, d = len(model.slope), model.dim
        return cls(
            0,
            np.full(k, -np.inf),
            np.zeros(k),
            np.zeros(k, dtype=np.intp),
            np.empty((0, d)),
            np.full(d, -(10**9)),
            np.zeros(d),
            np.ones(d),
            (),
            (),
            np.empty(0),
        )


class CauseWatch:
    """One pass over the next rows of a stream."""

    def __init__(self, model: CauseModel, state: CauseState, scores: np.ndarray, seconds: np.ndarray) -> None:
        self._model, self._first, self._key = model, state.n_rows, state.key
        self._seconds = np.concatenate([state.seconds, seconds])
        self._offset = state.n_rows - len(state.recent)
        self._missing = np.isnan(scores)
        self._scores = np.vstack([state.recent, np.where(self._missing, 0.0, scores)])
        before = len(state.recent)
        self._steps = model.steps(self._scores, before)
        self._runs = np.column_stack([least_in_run(z) for z in self._scores.T])[before:]
        self._log_sums, self._walks, self._starts = state.log_sums.copy(), state.walks.copy(), state.starts.copy()
        self._incidents, self._base, self._unit = state.incidents.copy(), state.base.copy(), state.unit.copy()
        self._open, self._pages = list(state.open), list(state.pages)
        self._brief, self._near = max(12, model.per_day // 24), max(2, model.per_day // 8)

    def run(self) -> CauseState:
        """Take in all rows, and return the state after them."""
        touches = [(self._model.columns == j).any(axis=1) for j in range(self._model.dim)]
        for i, step in enumerate(self._steps):
            t = self._first + i
            self._wait(i)
            self._close(t)
            quiet = self._unknown(i, touches)
            for j in range(self._model.dim):
                self._judge_incident(t, j, float(self._runs[i, j]))
                if t - self._incidents[j] < RUN + 2:
                    quiet |= touches[j]
            self._add(t, np.where(quiet, 0.0, step), quiet)
            self._judge_drift(t)
        rows = self._first + len(self._steps)
        kept = DAYS_KEPT * self._model.per_day + _MOST_LAGS
        return CauseState(
            rows,
            self._log_sums,
            self._walks,
            self._starts,
            self._scores[-kept:].copy(),
            self._incidents,
            self._base,
            self._unit,
            tuple(self._open),
            tuple(self._pages),
            self._seconds[-kept:].copy(),
            self._key,
        )

    def _wait(self, i: int) -> None:
        """Let open causes of columns that are missing in a row wait for a row more: a gap is no end of a change."""
        for k, cause in enumerate(self._open):
            if self._missing[i, list(cause.columns)].any():
                self._open[k] = replace(cause, until=cause.until + 1)

    def _unknown(self, i: int, touches: list[np.ndarray]) -> np.ndarray:
        """Return the likelihood ratios about which a row says nothing, since a cell is missing: a gap is no lack of spread."""
        quiet = np.zeros(len(self._model.kind), dtype=bool)
        for j in np.flatnonzero(self._missing[i]):
            quiet |= touches[j] | (self._model.kind == 1)
        return quiet

    def _time(self, row: int) -> float:
        place = row - self._offset
        return float(self._seconds[place]) if 0 <= place < len(self._seconds) else np.nan

    def _close(self, t: int) -> None:
        """Close the causes for which no more evidence has come; their columns are watched as before again."""
        for cause in [cause for cause in self._open if t > cause.until]:
            self._open.remove(cause)
            self._pages[cause.page] = replace(self._pages[cause.page], closed=t)
            if cause.kind < 3:
                self._base[cause.columns[0]], self._unit[cause.columns[0]] = 0.0, 1.0

    def _add(self, t: int, step: np.ndarray, quiet: np.ndarray) -> None:
        self._log_sums = np.where(quiet, self._log_sums, np.logaddexp(self._log_sums, 0.0) + step)
        walks = self._walks + step
        none = walks <= 0.0
        self._walks = np.where(none, 0.0, walks)
        self._starts[none] = t + 1

    def _change_of(self, column: int) -> Cause | None:
        """Return the open cause after which incidents of a column are judged anew."""
        return next((cause for cause in self._open if cause.kind < 3 and cause.columns[0] == column), None)

    def _judge_incident(self, t: int, j: int, run: float) -> None:
        """Open a page if three rows in a row are far on one side of a column's level."""
        change, day = self._change_of(j), self._model.per_day
        if change is not None and t % max(1, day // 24) == 0:
            self._settle(t, j, change)
        bar = self._model.bars[j]
        if change is not None:
            z = (
                self._scores[max(0, t - RUN + 1 - self._offset) : t + 1 - self._offset, j] - self._base[j]
            ) / self._unit[j]
            run = float(max(z.min(), -z.max())) if len(z) == RUN else 0.0
        if run <= bar:
            return
        if t - self._incidents[j] > self._brief and not (change is not None and t - change.row <= day):
            sign = int(np.sign(self._scores[t - self._offset, j] - self._base[j]))
            near = [
                k
                for k, page in enumerate(self._pages)
                if t - (page.last if page.kind == "incident" else page.row) <= self._brief
            ]
            if near:
                self._join(near[-1], (j,), t)
            else:
                self._pages.append(Page(t, t - RUN + 1, "incident", (j,), sign, t, seconds=self._time(t - RUN + 1)))
        self._incidents[j] = t
        for k in range(max(0, len(self._pages) - 3), len(self._pages)):
            page = self._pages[k]
            if page.kind == "incident" and j in page.columns + page.also and t - page.last <= self._brief:
                self._pages[k] = replace(page, last=t, closed=t)

    def _settle(self, t: int, j: int, change: Cause) -> None:
        """Let incidents of a column be judged about its new level, and in units of how much it varies now."""
        day, model = self._model.per_day, self._model
        end = t + 1 - self._offset
        self._base[j] = np.median(self._scores[max(0, max(change.start, t - day) - self._offset) : end, j])
        since = self._scores[max(0, max(change.start, t - DAYS_KEPT * day) - self._offset) : end, j]
        if len(since) >= min(day, _FEWEST_AFTER):
            bar = _bar(since - np.median(since), model.run_length, model.dim)
            self._unit[j] = max(1.0, bar / model.bars[j])
        else:
            self._unit[j] = 2.0

    def _join(self, k: int, columns: tuple[int, ...], t: int) -> None:
        """Add columns to a page; a cause that shows in several columns has one."""
        page = self._pages[k]
        fresh = tuple(dict.fromkeys(c for c in columns if c not in page.columns + page.also))
        self._pages[k] = replace(page, also=page.also + fresh, last=t)

    def _muted_by(self, cause: Cause) -> np.ndarray:
        """Return the likelihood ratios that an open cause explains.

        Any change moves the regressions on other columns. A level or a spread that changed changes everything of its column.
        """
        kind, columns = self._model.kind, self._model.columns
        own = (kind == cause.kind) & (columns == cause.columns).all(axis=1)
        shared = (columns == cause.columns[0]).any(axis=1)
        return np.asarray(own | (kind == 1) | (shared if cause.kind < 3 else own))

    def _judge_drift(self, t: int) -> None:
        """Open a page if the evidence for kinds of change that no open cause explains is enough."""
        model, evidence = self._model, self._log_sums + self._model.log_share
        bar = np.log(model.run_length)
        masks = [self._muted_by(cause) for cause in self._open]
        muted = np.logical_or.reduce(masks) if masks else np.zeros(len(evidence), dtype=bool)
        if muted.any() and np.logaddexp.reduce(evidence[muted]) >= bar:
            best = np.flatnonzero(muted)[np.argmax(evidence[muted])]
            for k, (cause, mask) in enumerate(zip(self._open, masks, strict=True)):
                if mask[best]:
                    self._open[k] = replace(cause, until=t + cause.hold)
                    self._forget(mask, t)
        free = ~muted
        if not free.any() or np.logaddexp.reduce(evidence[free]) < bar:
            return
        best = int(np.flatnonzero(free)[np.argmax(evidence[free])])
        kind, start = int(model.kind[best]), int(self._starts[best])
        one, other = (int(c) for c in model.columns[best])
        hold = max(model.per_day, 3 * (t - start))
        place = self._page_of(t, start)
        if place is None:
            named = (one,) if one == other else (one, other)
            sign = int(np.sign(model.slope[best]))
            self._pages.append(Page(t, start, KINDS[kind], named, sign, t, seconds=self._time(start)))
            place = len(self._pages) - 1
        else:
            self._join(place, (one, other), t)
        cause = Cause(place, kind, (one, other), start, t, hold, t + hold)
        self._open.append(cause)
        self._forget(self._muted_by(cause), t)

    def _page_of(self, t: int, start: int) -> int | None:
        """Return the page of the last day that the same cause opened: it began at about the same row, or came just before."""
        day, near = self._model.per_day, self._near
        for k in range(len(self._pages) - 1, -1, -1):
            page = self._pages[k]
            recent = abs(page.start - start) <= near or t - page.row <= near
            if t - page.row <= day and (recent or (page.kind == "incident" and t - page.last <= near)):
                return k
        return None

    def _forget(self, mask: np.ndarray, t: int) -> None:
        self._log_sums[mask], self._walks[mask], self._starts[mask] = -np.inf, 0.0, t + 1
