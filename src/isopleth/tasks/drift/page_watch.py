"""One pass over the rows of a stream: pages of causes are opened, joined, and closed when the change has ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from isopleth.tasks.drift.causes import (
    GIVEN,
    KINDS,
    LEAST_SLOPE,
    MOST_LAGS,
    TOGETHER,
    NullModel,
    incident_bars,
    least_in_run,
)
from isopleth.tasks.drift.stream_times import ClockState

# Days whose rows say how much scores vary after a level has changed, and what a page reports of a change.
DAYS_KEPT = 7
_FEWEST_AFTER = 96
# Deviation of a normal law over the median distance from its median.
_DEVIATION = 1.4826
# Deviation of the square of a normal score.
_ROOT = 2.0**0.5
# Normal scores that vary by less than this are equal but for rounding.
_CONSTANT = 1e-9
# Logarithm of the likelihood ratio of a change that has ended to one that goes on from which its page is closed. No further
# evidence is not enough: a weak change may give none for as long as it took to find. The size at which it was found is too large
# by chance.
_SURE_OF_THE_END, _TOO_LARGE = float(np.log(100.0)), 1.25
# A change is said again if it is so many times as large in the rows of a day as was last said. Less than one deviation counts as
# one: the size of a weak change is known by chance only.
_GROWN, _LEAST_SAID = 3.0, 1.0
# Slope of a level that is considered for its start, over the largest one of the evidence.
_LARGER = 2.0


@dataclass(frozen=True, eq=False)
class Page:
    """A cause: what changed, in which columns, by how much, and since when.

    Rows are counted from 0. `closed` is the row at which the end of the change was certain; -1 while it is open. The change of a
    page without a number is smaller than what is to be told.
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
    usual: float = np.nan  # what is usual in the context, in units of the column; the correlation of two columns
    observed: float = np.nan  # what was observed in its place
    times: float = np.nan  # observed over usual, of columns without negative cells
    size: float = np.nan  # of a level in deviations, of a spread over the usual one
    until: int = -1  # first row after the change of its columns; -1 while they are changed or if that is not known
    until_seconds: float = np.nan
    changed: int = -1  # row at which an incident that went on became a change of the level; -1 if it did not
    of_rows: int = 0  # rows whose mean is `observed`, of a column of small counts; 0 of other columns and incidents
    number: int = -1  # number of the page among those that were told, from 0
    row_seconds: float = np.nan  # times of `row` and `closed`
    closed_seconds: float = np.nan
    turned: int = -1  # number of the page that took its place, as the level turned to the other side of what is usual


class PageEvent(NamedTuple):
    """Event of a page at a row, and the state of the page after it."""

    row: int
    # "opened"; "joins" where another column joins; "lasts" for an incident that has become a change; "grows"; "turned" to the
    # other side; "closed"
    event: str
    number: int  # number of the page, from 0
    page: Page  # of an event "joins" the change of the column that joins
    seconds: float = np.nan  # time of the row


@dataclass(frozen=True, eq=False)
class Cause:
    """Open cause of a page: muted until it has had no evidence for `hold` rows, and rows say that it has ended."""

    page: int
    kind: int
    columns: tuple[int, int]
    statistic: int
    start: int
    row: int
    hold: int
    until: int  # row after which its end is looked for
    last: int  # last row of evidence
    sign: int  # direction of the change of its statistic
    mean: float = np.nan  # size of the change of its statistic
    against: float = 0.0  # log likelihood ratio of a change that ended at `end` to one that goes on
    end: int = -1
    end_seconds: float = np.nan
    said: Page | None = None  # its change as it was last said

    @property
    def named(self) -> tuple[int, ...]:
        """Columns that its page names."""
        return self.columns[: 1 + (self.kind == TOGETHER)]


@dataclass(frozen=True, eq=False)
class StreamRows:
    """Rows of a stream as they are judged."""

    scores: np.ndarray  # (n, d): scores given the contexts; NaN where a cell is missing
    cells: np.ndarray  # (n, d)
    usual: np.ndarray  # (n, d): medians of the contexts, means of columns of small counts
    seconds: np.ndarray  # (n,): times in seconds since 1970; NaN without times

    @classmethod
    def empty(cls, columns: int) -> Self:
        """Return no rows."""
        none = np.empty((0, columns))
        return cls(none, none, none, np.empty(0))

    def then(self, rows: StreamRows) -> Self:
        """Return these rows and more."""
        return type(self)(*(np.concatenate([getattr(self, name), getattr(rows, name)]) for name in vars(self)))

    def last(self, count: int) -> Self:
        """Return the last rows, as copies."""
        return type(self)(*(each[max(0, len(each) - count) :].copy() for each in vars(self).values()))


@dataclass(frozen=True, eq=False)
class CauseState:
    """Position in a stream. It is replaced and never changed in place."""

    n_rows: int
    sums: np.ndarray  # (k,): Shiryaev-Roberts sums
    walks: np.ndarray  # (k,): cumulative sums, which say since when
    starts: np.ndarray  # (k,): first row of the present evidence
    start_seconds: np.ndarray  # (k,): its time
    recent: StreamRows
    incidents: np.ndarray  # (d,): last row of an incident of each column
    incident_starts: np.ndarray  # (d,): its first row
    base: np.ndarray  # (d,): level about which incidents are judged, and unit of the scores
    unit: np.ndarray
    open: tuple[Cause, ...]
    pages: tuple[Page, ...]
    key: int = 0  # of the reference
    clock: ClockState = field(default_factory=ClockState)

    @property
    def alarms(self) -> int:
        """Number of pages so far."""
        return sum(page.number >= 0 for page in self.pages)

    @classmethod
    def empty(cls, model: NullModel) -> Self:
        """Return the state before the first row."""
        k, d = len(model.slope), model.dim
        return cls(
            0,
            np.zeros(k),
            np.zeros(k),
            np.zeros(k, dtype=np.intp),
            np.full(k, np.nan),
            StreamRows.empty(d),
            np.full(d, -(10**9)),
            np.full(d, -(10**9)),
            np.zeros(d),
            np.ones(d),
            (),
            (),
        )


@dataclass(frozen=True, eq=False)
class _Masks:
    """Likelihood ratios that the open causes explain, those that are evidence for each, and the shares of both and of others."""

    of_causes: list[np.ndarray]
    evidence: list[np.ndarray]
    muted: np.ndarray
    muted_share: np.ndarray
    free_share: np.ndarray


class CauseWatch:
    """One pass over the next rows of a stream."""

    def __init__(
        self,
        model: NullModel,
        state: CauseState,
        rows: StreamRows,
        positive: np.ndarray,
        counts: np.ndarray,
        least: float = 0.0,
    ) -> None:
        before, self._least = len(state.recent.scores), least
        self._model, self._first, self._before = model, state.n_rows, state
        self._positive, self._counts = positive, counts
        self._rows, self._offset, self._count = state.recent.then(rows), state.n_rows - before, len(rows.scores)
        self._missing = np.isnan(self._rows.scores)
        self._scores = np.where(self._missing, 0.0, self._rows.scores)
        lead = max(0, before - MOST_LAGS)
        self._steps = model.steps(self._scores[lead:], before - lead)
        runs = [[least_in_run(z, run)[before - lead :] for z in self._scores[lead:].T] for run in model.runs]
        self._over = np.moveaxis(np.array(runs), 2, 0) > model.bars  # (n, r, d)
        self._touches = [(model.columns == j).any(axis=1) for j in range(model.dim)]
        self._sums, self._walks, self._starts = state.sums.copy(), state.walks.copy(), state.starts.copy()
        self._start_seconds = state.start_seconds.copy()
        self._incidents, self._base, self._unit = state.incidents.copy(), state.base.copy(), state.unit.copy()
        self._incident_starts = state.incident_starts.copy()
        self._open, self._pages, self.events = list(state.open), list(state.pages), list[PageEvent]()
        self._last_incident, day = int(self._incidents.max()), model.per_day
        # Rows that part two incidents, that part two causes, and after which an incident is a change.
        self._brief, self._near, self._lasting = max(12, day // 24), max(2, day // 8), max(12, day // 8)
        self._mask()

    def run(self) -> CauseState:
        """Take in all rows, and return the state after them."""
        gaps = np.any(self._missing[len(self._missing) - self._count :], axis=1).tolist()
        over, beside = np.any(self._over, axis=(1, 2)).tolist(), self._model.runs[0] + 2
        for i in range(self._count):
            t = self._first + i
            if self._open or self._unfinished:
                self._look_for_ends(t)
                self._wait(t)
                self._close(t)
            quiet: np.ndarray | None = self._unknown(t) if gaps[i] else None
            if self._changed and t % max(1, self._model.per_day // 24) == 0:
                self._settle_all(t)
            if over[i]:
                for j in np.flatnonzero(self._over[i].any(axis=0)):
                    self._judge_incident(t, int(j), np.flatnonzero(self._over[i, :, j]))
            if t - self._last_incident < beside:
                for j in np.flatnonzero(t - self._incidents < beside):
                    quiet = self._touches[j] if quiet is None else quiet | self._touches[j]
            self._add(i, t, quiet)
            self._judge_drift(t)
        kept = DAYS_KEPT * self._model.per_day + MOST_LAGS
        return CauseState(
            self._first + self._count,
            self._sums,
            self._walks,
            self._starts,
            self._start_seconds,
            self._rows.last(kept),
            self._incidents,
            self._incident_starts,
            self._base,
            self._unit,
            tuple(self._open),
            tuple(self._pages),
            self._before.key,
            self._before.clock,
        )

    def _mask(self) -> None:
        """Keep what follows from the open causes and pages, which change seldom."""
        share = np.exp(self._model.log_share)
        of_causes = [self._muted_by(cause) for cause in self._open]
        muted = np.logical_or.reduce(of_causes) if of_causes else np.zeros(len(share), dtype=bool)
        evidence = [self._muted_by(cause, given=False) for cause in self._open]
        self._masks = _Masks(of_causes, evidence, muted, np.where(muted, share, 0.0), np.where(muted, 0.0, share))
        self._changed = any(cause.kind < TOGETHER for cause in self._open)
        self._unfinished = any(page.kind == "incident" and page.closed < 0 for page in self._pages)

    def _tell(self, t: int, event: str, k: int, page: Page) -> None:
        """Change a page, and keep what happened to it; one that was too small to be told is opened when it is large enough."""
        if page.number < 0 and event != "closed" and self._is_large(page):
            told = sum(other.number >= 0 for other in self._pages)
            page, event = replace(page, number=told, row=t, row_seconds=self._time(t)), "opened"
        self._pages[k] = page
        if page.number >= 0:
            self.events.append(PageEvent(t, event, page.number, page, self._time(t)))
        self._mask()

    def _update(self, t: int, k: int, page: Page) -> None:
        """Change what is known of a page, which is told if it was too small before and is not now."""
        self._pages[k] = page
        if page.number < 0:
            self._tell(t, "opened", k, page)

    def _is_large(self, page: Page) -> bool:
        """Tell whether a change is large enough to be told: as a share of what is usual, else in deviations."""
        if page.kind == "together":
            size = page.size
        elif page.kind == "spread":
            size = page.size - 1.0
        else:
            size = page.times - 1.0 if np.isfinite(page.times) else page.size
        return not np.isfinite(size) or abs(size) >= self._least

    def _wait(self, t: int) -> None:
        """Let open causes of columns that are missing in a row wait for a row more: a gap is no end of a change."""
        gaps = self._missing[t - self._offset]
        if gaps.any():
            for k, cause in enumerate(self._open):
                if gaps[list(cause.columns)].any():
                    self._open[k] = replace(cause, until=cause.until + 1)

    def _unknown(self, t: int) -> np.ndarray:
        """Return the likelihood ratios about which a row says nothing, since a cell is missing: a gap is no lack of spread."""
        quiet = np.zeros(len(self._model.kind), dtype=bool)
        for j in np.flatnonzero(self._missing[t - self._offset]):
            quiet |= self._touches[j] | (self._model.kind == GIVEN)
        return quiet

    def _time(self, row: int) -> float:
        place = row - self._offset
        return float(self._rows.seconds[place]) if 0 <= place < len(self._rows.seconds) else np.nan

    def _close(self, t: int) -> None:
        """Close the causes and incidents for which no more evidence has come; their columns are watched as before again."""
        for cause in [cause for cause in self._open if t > cause.until]:
            if cause.against >= _SURE_OF_THE_END:
                self._end(cause, t, cause.end, cause.end_seconds)
        for k in range(max(0, len(self._pages) - 3 * self._model.dim), len(self._pages)):
            page = self._pages[k]
            # More evidence about its level makes it a page of a change, and comes within a day if ever.
            levels = [each for each in self._open if each.page == k and KINDS[each.kind] == "level"]
            of_level = any(each.named == page.columns for each in levels)
            patience = self._model.per_day if of_level else self._brief
            if page.kind == "incident" and page.closed < 0 and t - page.last > patience:
                until = page.last + 1
                ended = replace(page, until=until, until_seconds=_not_before(page, self._time(until)))
                self._tell(t, "closed", k, replace(ended, closed=t, closed_seconds=self._time(t)))

    def _end(self, cause: Cause, t: int, until: int, seconds: float, turned: int = -1) -> None:
        """Watch the columns of a cause as before again, and close its page if it was the last cause of what the page names.

        Other columns, which joined the page, do not keep it open. If the level `turned`, the page of this number takes the place
        of its page.
        """
        self._open.remove(cause)
        page = self._pages[cause.page]
        if cause.kind < TOGETHER:
            self._base[cause.columns[0]], self._unit[cause.columns[0]] = 0.0, 1.0
        if page.closed < 0 and cause.named == page.columns:
            ended = replace(page, until=until, until_seconds=_not_before(page, seconds), turned=turned)
            page = self._pages[cause.page] = ended
            if not self._has_cause(cause.page):
                page = replace(page, closed=t, closed_seconds=self._time(t))
                self._tell(t, "closed" if page.turned < 0 else "turned", cause.page, page)
        self._mask()

    def _has_cause(self, k: int) -> bool:
        """Tell whether a cause of the columns that a page names is open."""
        return any(cause.page == k and cause.named == self._pages[k].columns for cause in self._open)

    def _sized_cause(self, cause: Cause, t: int) -> Cause:
        """Return a cause with the size of its change in its last rows, from which its end is looked for.

        They are those of a day, and more where evidence is rare.
        """
        day = self._model.per_day
        count = max(day, min(DAYS_KEPT * day, 4 * (t - cause.last)))
        values = self._standard(max(cause.start, t - count + 1), t)[:, cause.statistic]
        mean = max(cause.sign * float(values.mean()) / _TOO_LARGE, self._least_slope(cause) / 2.0)
        return replace(cause, last=t, until=t + cause.hold, mean=mean, against=0.0, end=t + 1, end_seconds=np.nan)

    def _least_slope(self, cause: Cause) -> float:
        return float(np.abs(self._model.slope[self._model.statistic == cause.statistic]).min())

    def _look_for_ends(self, t: int) -> None:
        """Weigh in the rows of the last hour whether a change has ended: by a cumulative sum, which says since when."""
        step = max(1, self._model.per_day // 24)
        for k, cause in enumerate(self._open):
            if t > cause.last and (t - cause.last) % step == 0:
                self._open[k] = self._weighed(cause, t - step + 1, t)

    def _weighed(self, cause: Cause, first: int, last: int) -> Cause:
        """Return a cause with what more rows say of its end; a missing cell says nothing."""
        values = self._standard(first, last)[:, cause.statistic] * cause.sign
        missing = self._missing[first - self._offset : last + 1 - self._offset][:, list(cause.columns)].any(axis=1)
        variance = (LEAST_SLOPE / self._least_slope(cause)) ** 2  # of sums of many rows, over their number
        losses = np.where(missing, 0.0, cause.mean * (cause.mean / 2.0 - values) / variance)
        walk = np.cumsum(np.concatenate([[cause.against], losses]))
        against = walk - np.minimum(np.minimum.accumulate(walk), 0.0)
        usual = np.flatnonzero(against == 0.0)
        if len(usual):
            end = first + int(usual[-1])
            cause = replace(cause, end=end, end_seconds=self._time(end))
        return replace(cause, against=float(against[-1]))

    def _add(self, i: int, t: int, quiet: np.ndarray | None) -> None:
        fresh = self._starts == t
        if fresh.any():
            self._start_seconds[fresh] = self._time(t)
        steps = self._steps[i] - self._model.aging * (t - self._starts)
        sums, walks = (self._sums + 1.0) * np.exp(steps), self._walks + steps
        if quiet is not None:
            sums, walks = np.where(quiet, self._sums, sums), np.where(quiet, self._walks, walks)
        none = walks <= 0.0
        walks[none] = 0.0
        self._starts[none] = t + 1
        self._sums, self._walks = sums, walks

    def _change_of(self, column: int) -> Cause | None:
        """Return the open cause after which incidents of a column are judged anew."""
        return next((each for each in self._open if each.kind < TOGETHER and each.columns[0] == column), None)

    def _recent_page(self, t: int, j: int) -> int | None:
        """Return the number of the page of the present incident of a column, if it has one."""
        for k in range(len(self._pages) - 1, max(-1, len(self._pages) - 1 - 3 * self._model.dim), -1):
            page = self._pages[k]
            known = page.kind == "incident" and page.closed < 0 and j in page.columns + page.also
            if known and t - page.last <= self._brief:
                return k
        return None

    def _judge_incident(self, t: int, j: int, over: np.ndarray) -> None:
        """Open a page where runs of rows (numbers of them) are far from what is usual, and from a level that has changed."""
        change, model = self._change_of(j), self._model
        if change is not None:
            over = np.array([r for r in over if self._beyond_change(t, j, r)], dtype=np.intp)
        if not len(over):
            return
        told = change is not None and t - change.row <= model.per_day and self._is_told(change.page)
        if t - self._incidents[j] > self._brief and not told:
            self._incident_starts[j] = t - model.runs[over[0]] + 1
            self._open_incident(t, j, model.runs[over[0]])
        self._incidents[j] = self._last_incident = t
        k = self._recent_page(t, j)
        if k is not None:
            page = self._with_extreme(replace(self._pages[k], last=t), t, j)
            self._update(t, k, page)
            if change is None and j == page.columns[0] and t - page.start >= self._lasting:
                self._become_level(t, k)
        own = k is not None and j == self._pages[k].columns[0]
        start = int(self._incident_starts[j])
        if change is None and not own and t - start >= self._lasting:
            # It had joined a page: the evidence of a drift does not count its rows, so that no other page would tell it.
            cause = self._level_cause(t, len(self._pages), j, start, int(np.sign(self._scores[t - self._offset, j])))
            self._add_cause(t, cause, self._time(start), joins=True)
            self._settle(t, j, cause)

    def _is_told(self, k: int) -> bool:
        """Tell whether a page is open and large enough to be told."""
        return self._pages[k].number >= 0 and self._pages[k].closed < 0

    def _beyond_change(self, t: int, j: int, r: int) -> bool:
        """Tell whether a run of rows is far out by the level that has changed, too."""
        z = self._scores[max(0, t - self._model.runs[r] + 1 - self._offset) : t + 1 - self._offset, j]
        new = (z - self._base[j]) / self._unit[j]
        return max(min(z.min(), new.min()), min(-z.max(), -new.max())) > self._model.bars[r, j]

    def _open_incident(self, t: int, j: int, run: int) -> None:
        """Open a page of a run of rows, or let the column join one that was just opened."""
        near = [
            k
            for k, page in enumerate(
                self._pages[-3 * self._model.dim :], max(0, len(self._pages) - 3 * self._model.dim)
            )
            if t - (page.last if page.kind == "incident" else page.row) <= self._brief and self._is_told(k)
        ]
        start, sign = t - run + 1, int(np.sign(self._scores[t - self._offset, j] - self._base[j]))
        page = Page(t, start, "incident", (j,), sign, t, seconds=self._time(start))
        for row in range(start, t + 1):
            page = self._with_extreme(page, row, j)
        if near:
            self._join(t, near[-1], (j,), page)
            self._pages[near[-1]] = replace(self._pages[near[-1]], last=t)
            return
        self._pages.append(page)
        self._tell(t, "opened", len(self._pages) - 1, page)

    def _with_extreme(self, page: Page, t: int, j: int) -> Page:
        """Return the page of an incident with the cell that is farthest from what is usual."""
        place = t - self._offset
        size = float(self._scores[place, j] - self._base[j]) if place >= 0 else 0.0
        if j != page.columns[0] or (np.isfinite(page.size) and size * page.direction <= page.size * page.direction):
            return page
        return self._sized(page, self._rows.cells[place, j], self._rows.usual[place, j], size)

    def _sized(self, page: Page, observed: float, usual: float, size: float, of_rows: int = 0) -> Page:
        ratio = self._positive[page.columns[0]] and usual > 0.0
        times = float(observed / usual) if ratio else np.nan
        return replace(page, observed=float(observed), usual=float(usual), times=times, size=size, of_rows=of_rows)

    def _become_level(self, t: int, number: int) -> None:
        """Make a page of an incident that goes on one of a level, which mutes what it explains."""
        page = self._pages[number]
        cause = self._level_cause(t, number, page.columns[0], page.start, page.direction)
        self._open.append(cause)
        self._forget(self._muted_by(cause), t)
        self._settle(t, page.columns[0], cause)
        self._last(t, number, cause)

    def _level_cause(self, t: int, number: int, j: int, start: int, sign: int) -> Cause:
        """Return the cause of an incident of a column that has become a change of the level."""
        model = self._model
        ratio = int(np.flatnonzero((model.kind == 0) & (model.columns[:, 0] == j))[0])
        hold = max(model.per_day, 3 * (t - start))
        about = number, 0, (j, j), int(model.statistic[ratio]), start, t, hold, t + hold, t, sign
        return self._sized_cause(Cause(*about), t)

    def _last(self, t: int, number: int, cause: Cause) -> None:
        """Make a page of an incident one of the change that it turned out to be."""
        page = self._measured(replace(self._pages[number], kind=KINDS[cause.kind], changed=t), cause, t)
        self._open[self._open.index(cause)] = replace(cause, said=page)
        self._tell(t, "lasts", number, page)

    def _settle_all(self, t: int) -> None:
        for cause in self._open:
            if cause.kind < TOGETHER and cause is self._change_of(cause.columns[0]):
                self._settle(t, cause.columns[0], cause)

    def _settle(self, t: int, j: int, change: Cause) -> None:
        """Let incidents of a column be judged about its new level, and in units of how much it varies now."""
        day, model = self._model.per_day, self._model
        end = t + 1 - self._offset
        self._base[j] = np.median(self._scores[max(0, max(change.start, t - day) - self._offset) : end, j])
        since = self._scores[max(0, max(change.start, t - DAYS_KEPT * day) - self._offset) : end, j]
        if len(since) >= min(day, _FEWEST_AFTER):
            bars = incident_bars(since - np.median(since), model.run_length, model.dim, model.runs)
            self._unit[j] = max(1.0, float((bars / model.bars[:, j]).max()))
        else:
            self._unit[j] = 2.0

    def _join(self, t: int, k: int, columns: tuple[int, ...], change: Page) -> None:
        """Add columns to a page, and tell their change: a cause that shows in several columns has one page.

        Further incidents of the columns of a page say nothing new, and a change of another kind does.
        """
        page = self._pages[k]
        fresh = tuple(dict.fromkeys(c for c in columns if c not in page.columns + page.also))
        self._pages[k] = replace(page, also=page.also + fresh)
        if fresh or change.kind != "incident":
            self.events.append(PageEvent(t, "joins", page.number, replace(change, number=page.number), self._time(t)))

    def _muted_by(self, cause: Cause, *, given: bool = True) -> np.ndarray:
        """Return the likelihood ratios that an open cause explains; those of other columns `given` the rest say nothing of it.

        Any change moves the regressions on other columns. A level or a spread that changed changes everything of its column, but
        a higher level does not explain that the column is lower than usual later.
        """
        model, columns = self._model, cause.columns
        own = (model.kind == cause.kind) & (model.columns == columns).all(axis=1)
        if cause.kind < TOGETHER:
            own = (model.columns == columns[0]).any(axis=1)
        if KINDS[cause.kind] == "level":
            own = own & ~self._contrary(cause)
        return np.asarray(own | (model.kind == GIVEN) if given else own)

    def _contrary(self, cause: Cause) -> np.ndarray:
        """Return the likelihood ratios of a level on the other side of what is usual."""
        model = self._model
        return np.asarray(
            (model.kind == 0) & (model.columns[:, 0] == cause.columns[0]) & (model.slope * cause.sign < 0.0)
        )

    def _judge_drift(self, t: int) -> None:
        """Open a page if the evidence for kinds of change that no open cause explains is enough."""
        model, masks = self._model, self._masks
        if self._open and self._sums @ masks.muted_share >= model.bar:
            self._go_on(t)
        if self._sums @ masks.free_share < model.bar:
            return
        best = int(np.argmax(self._sums * masks.free_share))
        turned = [cause for cause in self._open if KINDS[cause.kind] == "level" and self._contrary(cause)[best]]
        self._open_cause(t, best, joins=not turned)
        for cause in turned:
            page = self._pages[-1]
            self._end(cause, t, page.start, page.seconds, page.number)

    def _open_cause(self, t: int, best: int, *, joins: bool) -> None:
        """Open a page for the evidence of a likelihood ratio, or let it join the page of the same cause."""
        model, since, seconds = self._model, int(self._starts[best]), float(self._start_seconds[best])
        best = self._level_or_spread(t, best)
        start, sign = self._onset(t, best, since), int(np.sign(model.slope[best]))
        one, other = (int(c) for c in model.columns[best])
        hold, kind = max(model.per_day, 3 * (t - since)), int(model.kind[best])
        about = len(self._pages), kind, (one, other), int(model.statistic[best]), start, t, hold, t + hold, start, sign
        seconds = self._time(start) if start >= self._offset else seconds
        self._add_cause(t, self._sized_cause(Cause(*about), t), seconds, joins=joins)

    def _add_cause(self, t: int, cause: Cause, seconds: float, *, joins: bool) -> None:
        """Open a page for a cause, the time of whose start is given, or let it join the page of the same cause."""
        page = Page(t, cause.start, KINDS[cause.kind], cause.named, cause.sign, t, seconds=seconds)
        page = self._measured(page, cause, t)
        joined = self._page_of(t, cause.start) if joins and self._is_large(page) else None
        number = cause.page if joined is None else joined
        self._open.append(replace(cause, page=number, said=page))
        self._forget(self._muted_by(cause), t)
        if joined is None:
            self._pages.append(page)
            self._tell(t, "opened", number, page)
        else:
            self._join(t, number, cause.columns, page)
        self._mask()

    def _go_on(self, t: int) -> None:
        """Keep the causes open for which more evidence has come, and measure them anew."""
        best, masks = int(np.argmax(self._sums * self._masks.muted_share)), self._masks
        if not any(mask[best] for mask in masks.evidence):
            self._forget(masks.muted & (self._model.kind == GIVEN), t)
        explaining = [cause for cause, mask in zip(self._open, masks.evidence, strict=True) if mask[best]]
        if explaining and all(self._pages[cause.page].closed >= 0 for cause in explaining):
            # They had joined a page that is closed: what goes on has a page of its own.
            for cause in explaining:
                self._end(cause, t, t, self._time(t))
            self._open_cause(t, best, joins=True)
            return
        for k, (mask, evidence) in enumerate(zip(masks.of_causes, masks.evidence, strict=True)):
            if evidence[best]:
                cause = self._open[k] = self._sized_cause(self._open[k], t)
                self._measure_again(t, cause, int(self._starts[best]), float(self._start_seconds[best]))
                self._tell_growth(t, k)
                self._forget(mask, t)

    def _measure_again(self, t: int, cause: Cause, since: int, seconds: float) -> None:
        """Measure the page of a cause for which there is more evidence since a row."""
        page, own = self._pages[cause.page], cause.columns[0]
        if page.kind == KINDS[cause.kind] and page.columns == cause.named:  # and not one that joined the page
            if page.number < 0:  # too small so far: the rows since then may say more than all
                page, cause = replace(page, start=since, seconds=seconds), replace(cause, start=since)
            page = replace(page, last=t, until=-1, until_seconds=np.nan)
            self._update(t, cause.page, self._measured(page, cause, t))
        elif page.kind == "incident" and page.columns == (own,) and t - page.start >= self._lasting:
            self._last(t, cause.page, cause)

    def _tell_growth(self, t: int, k: int) -> None:
        """Tell that the change of an open cause is several times as large as was last said.

        That of a column that joined a page has a page of its own then, unless it is one given the other columns, which grows
        with any change of these.
        """
        cause = self._open[k]
        page, said = self._pages[cause.page], cause.said
        own = page.kind == KINDS[cause.kind] and page.columns == cause.named
        if own and (page.number < 0 or page.row == t):
            self._open[k] = replace(cause, said=page)
            return
        if said is None or (not own and cause.kind == GIVEN):
            return
        now = self._measured(page if own else replace(said, row=t, last=t), cause, t, days=1)
        if not _extent(now) >= _GROWN * max(_extent(said), _LEAST_SAID):
            return
        if own:
            self._tell(t, "grows", cause.page, now)
        else:
            self._pages.append(now)
            self._tell(t, "opened", len(self._pages) - 1, now)
        self._open[k] = replace(cause, page=cause.page if own else len(self._pages) - 1, said=now)
        self._mask()

    def _measured(self, page: Page, cause: Cause, t: int, days: int = DAYS_KEPT) -> Page:
        """Return a page with the size of its change in the rows since its start, at most those of some days."""
        first = max(cause.start, t + 1 - days * self._model.per_day, self._offset) - self._offset
        rows, (j, other) = slice(first, t + 1 - self._offset), cause.columns
        known = ~self._missing[rows][:, [j, other]].any(axis=1)
        if not known.any():
            return page
        if cause.kind == TOGETHER:
            return self._with_correlation(page, rows, known)
        z = self._scores[rows][known]
        cells, usual = (each[rows][known, j] for each in (self._rows.cells, self._rows.usual))
        middle = np.median(z, axis=0)
        size = {
            "level": middle[j],
            "given": self._model.residual(middle)[j] if self._model.dim > 1 else middle[j],
            "spread": self._spread(rows, known, j, page.direction),
        }[KINDS[cause.kind]]
        if self._counts[j]:  # medians of small counts are often equal before and after
            both = ~np.isnan(usual)
            now, before = (float(each[both].mean()) if both.any() else np.nan for each in (cells, usual))
            return self._sized(page, now, before, float(size), int(both.sum()))
        if page.kind == "spread":
            return replace(page, size=float(size))
        return self._sized(page, float(np.median(cells)), float(np.nanmedian(usual)), float(size))

    def _spread(self, rows: slice, known: np.ndarray, j: int, direction: int) -> float:
        """Return the spread of a column over the usual one: of its scores, or of what the rows before leave open of them.

        The evidence is of the latter, as a column that follows itself may jump from row to row with the spread that it had.
        """
        z = self._scores[rows][known, j]
        lead = max(0, rows.start - MOST_LAGS)
        e = self._model.innovations(self._scores[lead : rows.stop])[rows.start - lead :][known, j]
        whole = _DEVIATION * float(np.median(np.abs(z - np.median(z)))) / float(self._model.spread[j])
        return max(direction * whole, direction * float(np.sqrt(np.mean(e**2)))) * direction

    def _with_correlation(self, page: Page, rows: slice, known: np.ndarray) -> Page:
        """Return a page of two columns with their correlation in the reference and now."""
        one, other = page.columns[0], page.columns[-1]
        lead = max(0, rows.start - MOST_LAGS)
        e = self._model.innovations(self._scores[lead : rows.stop])[rows.start - lead :][known][:, [one, other]]
        if len(e) < 3 or not (e.std(axis=0) > _CONSTANT).all():
            return page
        observed, usual = float(np.corrcoef(e.T)[0, 1]), float(self._model.correlation[one, other])
        return replace(page, usual=usual, observed=observed, size=observed - usual)

    def _onset(self, t: int, best: int, since: int) -> int:
        """Return the row since which any slope of the change is most likely; evidence for a small one begins long before.

        So does that for the largest slope of a level if the change is larger: half of the slope in the rows before is enough.
        """
        model = self._model
        if since < self._offset:
            return since
        statistic, sign = model.statistic[best], np.sign(model.slope[best])
        alike = (model.statistic == statistic) & (np.sign(model.slope) == sign)
        slopes, losses = model.slope[alike], model.loss[alike]
        if model.kind[best] <= GIVEN:  # a few rows far out are no start of a spread
            largest = int(np.argmax(np.abs(slopes)))
            slopes = np.append(slopes, _LARGER * slopes[largest])
            losses = np.append(losses, _LARGER**2 * losses[largest])
        rows = self._standard(since, t)[::-1, [statistic]]
        gains = np.cumsum(rows * slopes - losses, axis=0)
        return t - int(np.argmax(gains.max(axis=1)))

    def _level_or_spread(self, t: int, best: int) -> int:
        """Return the likelihood ratio that names a change: of a level in the place of a spread if that explains more.

        Rows far from what is usual on one side are far from it at all.
        """
        model = self._model
        if KINDS[model.kind[best]] != "spread":
            return best
        rows = self._standard(max(int(self._starts[best]), self._offset), t)
        levels = np.flatnonzero((model.kind == 0) & (model.columns[:, 0] == model.columns[best, 0]))
        level, square = rows[:, model.statistic[levels[0]]].mean(), 1.0 + _ROOT * rows[:, model.statistic[best]].mean()
        if level**2 <= square - 1.0 - np.log(max(square, np.finfo(np.float64).tiny)):  # gains of normal laws, twice
            return best
        return int(levels[np.argmax(np.sign(level) * model.slope[levels])])

    def _standard(self, first: int, last: int) -> np.ndarray:
        """Return the statistics of rows of the stream that are still kept."""
        lead = max(0, first - self._offset - MOST_LAGS)
        return self._model.standard(self._scores[lead : last + 1 - self._offset])[first - self._offset - lead :]

    def _page_of(self, t: int, start: int) -> int | None:
        """Return the page of the last day that the same cause opened: it began at about the same row, or came just before."""
        day, near = self._model.per_day, self._near
        for k in range(len(self._pages) - 1, -1, -1):
            page = self._pages[k]
            recent = abs(page.start - start) <= near or t - page.row <= near
            recent = recent or (page.kind == "incident" and t - page.last <= near)
            after = page.closed >= 0 and start - page.until > self._brief
            if page.number >= 0 and t - page.row <= day and recent and not after:
                return k
        return None

    def _forget(self, mask: np.ndarray, t: int) -> None:
        self._sums[mask], self._walks[mask], self._starts[mask] = 0.0, 0.0, t + 1


def _extent(page: Page) -> float:
    """Return the size of a change in its direction: of a spread what it has more or less than the usual one."""
    return (page.size - float(page.kind == "spread")) * page.direction


def _not_before(page: Page, seconds: float) -> float:
    """Return the time of the end of a page, which is not before its start; rows may come late."""
    return max(seconds, page.seconds) if np.isfinite(seconds) and np.isfinite(page.seconds) else seconds
