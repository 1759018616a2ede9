"""One pass over the rows of a stream: pages of causes are opened, joined, and closed when the change has ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isopleth.tasks.drift.cause_state import CauseState
from isopleth.tasks.drift.causes import GIVEN, KINDS, MOST_LAGS, NullModel
from isopleth.tasks.drift.change_sizes import ChangeSizes, extent
from isopleth.tasks.drift.incidents import Incidents, LastingIncident
from isopleth.tasks.drift.open_causes import DAYS_KEPT, Cause, OpenCauses, contrary, muted_by, touching
from isopleth.tasks.drift.page import Page, PageEvent
from isopleth.tasks.drift.page_log import PageLog, ended
from isopleth.tasks.drift.stream_rows import KeptRows, StreamRows

# A change is said again if it is so many times as large in the rows of a day as was last said. Less than one deviation counts as
# one: the size of a weak change is known by chance only.
_GROWN, _LEAST_SAID = 3.0, 1.0


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
        self._model, self._before, self._count = model, state, len(rows.scores)
        self._rows = KeptRows(model, state.recent, rows, state.n_rows)
        self._sizes = ChangeSizes(self._rows, positive, counts)
        self._log, self._causes = PageLog(self._rows, state.pages, least), OpenCauses(self._rows, state.open)
        self._incidents = Incidents(self._rows, state.incidents, self._log, self._sizes)
        self._evidence, self._steps = state.evidence.copy(), self._rows.steps()
        self._touching, self._given = [touching(model, j) for j in range(model.dim)], model.kind == GIVEN

    @property
    def events(self) -> list[PageEvent]:
        """Events of pages in these rows."""
        return self._log.events

    def run(self) -> CauseState:
        """Take in all rows, and return the state after them."""
        gaps = np.any(self._rows.missing[self._rows.new], axis=1).tolist()
        first, hour = self._before.n_rows, max(1, self._model.per_day // 24)
        for i, t in enumerate(range(first, first + self._count)):
            if len(self._causes) or self._log.has_open_incident:
                self._causes.take_in(t)
                self._close(t)
            if self._causes.of_one_column and t % hour == 0:
                self._settle(t)
            for j, runs in self._incidents.far(t):
                lasting = self._incidents.judge(t, j, runs, self._causes.change_of(j))
                if lasting is not None:
                    self._become_level(t, lasting)
            steps = self._steps[i] - self._model.aging * (t - self._evidence.starts)
            self._evidence.add(t, self._rows.time(t), steps, self._quiet(t, gap=gaps[i]))
            self._judge_drift(t)
        return replace(
            self._before,
            n_rows=first + self._count,
            evidence=self._evidence,
            incidents=self._incidents.state,
            recent=self._rows.rows.last(DAYS_KEPT * self._model.per_day + MOST_LAGS),
            open=tuple(self._causes),
            pages=tuple(self._log.pages),
        )

    def _quiet(self, t: int, *, gap: bool) -> np.ndarray | None:
        """Return the likelihood ratios about which a row says nothing: of a column that is missing, or in an incident.

        A gap is no lack of spread, and where a column is missing no other one can be compared with what it lets expect.
        """
        columns, quiet = self._incidents.beside(t), None
        if gap:
            columns, quiet = columns + np.flatnonzero(self._rows.missing[t - self._rows.first]).tolist(), self._given
        for j in columns:
            quiet = self._touching[j] if quiet is None else quiet | self._touching[j]
        return quiet

    def _close(self, t: int) -> None:
        """Close the causes and incidents for which no more evidence has come; their columns are watched as before again."""
        for cause in self._causes.ended(t):
            self._end(cause, t, cause.end, cause.end_seconds)
        for k in self._log.open_incidents():
            page = self._log.pages[k]
            # More evidence about its level makes it a page of a change, and comes within a day if ever.
            of_level = any(cause.is_level for cause in self._causes.of_page(k, page.columns))
            if t - page.last > (self._model.per_day if of_level else self._log.brief):
                until = page.last + 1
                self._log.close(t, k, ended(page, until, self._rows.time(until)))

    def _end(self, cause: Cause, t: int, until: int, seconds: float, turned: int = -1) -> None:
        """Watch the columns of a cause as before again, and close its page if it was the last cause of what the page names.

        Other columns, which joined the page, do not keep it open. If the level `turned`, the page of this number takes the place
        of its page.
        """
        self._causes.remove(cause)
        if cause.of_one_column:
            self._incidents.unsettle(cause)
        page = self._log.pages[cause.page]
        if page.closed < 0 and cause.named == page.columns:
            page = replace(ended(page, until, seconds), turned=turned)
            self._log.put(cause.page, page)
            if not self._causes.of_page(cause.page, page.columns):
                self._log.close(t, cause.page, page, "closed" if turned < 0 else "turned")

    def _settle(self, t: int) -> None:
        """Let incidents be judged about the present levels of columns that have changed."""
        for cause in self._causes:
            if cause.of_one_column and cause is self._causes.change_of(cause.columns[0]):
                self._incidents.settle(t, cause)

    def _become_level(self, t: int, incident: LastingIncident) -> None:
        """Take an incident that goes on for a change of the level, which mutes what it explains."""
        model, j, page = self._model, incident.column, incident.page
        ratio = int(np.flatnonzero((model.kind == 0) & (model.columns[:, 0] == j))[0])
        cause = self._cause(t, ratio, incident.start, incident.sign, since=incident.start, last=t)
        if page is None:
            # It had joined a page: the evidence of a drift does not count its rows, so that no other page would tell it.
            self._add(t, cause, self._rows.time(incident.start), joins=True)
            self._incidents.settle(t, cause)
        else:
            cause = replace(cause, page=page)
            self._causes.add(cause)
            self._evidence.forget(muted_by(model, cause), t)
            self._incidents.settle(t, cause)
            self._last(t, cause)

    def _last(self, t: int, cause: Cause) -> Cause:
        """Make a page of an incident one of the change that it turned out to be, and return the cause of it."""
        page = replace(self._log.pages[cause.page], kind=KINDS[cause.kind], changed=t)
        page = self._sizes.measured(page, cause, t)
        self._log.tell(t, "lasts", cause.page, page)
        return self._causes.exchange(cause, replace(cause, said=page))

    def _judge_drift(self, t: int) -> None:
        """Open a page if the evidence for kinds of change that no open cause explains is enough."""
        model, sums, explained = self._model, self._evidence.sums, self._causes.explained
        if len(self._causes) and sums @ explained.muted_share >= model.bar:
            self._go_on(t)
        if sums @ explained.free_share < model.bar:
            return
        best = int(np.argmax(sums * explained.free_share))
        turned = [cause for cause in self._causes if cause.is_level and contrary(model, cause)[best]]
        self._open(t, best, joins=not turned)
        for cause in turned:
            page = self._log.pages[-1]
            self._end(cause, t, page.start, page.seconds, page.number)

    def _cause(self, t: int, ratio: int, start: int, sign: int, *, since: int, last: int) -> Cause:
        """Return a cause of a page of its own for the evidence of a likelihood ratio that has come since a row."""
        model = self._model
        one, other = (int(c) for c in model.columns[ratio])
        cause = Cause(
            page=len(self._log.pages),
            kind=int(model.kind[ratio]),
            columns=(one, other),
            statistic=int(model.statistic[ratio]),
            start=start,
            row=t,
            hold=max(model.per_day, 3 * (t - since)),
            until=t,  # set with its size
            last=last,
            sign=sign,
        )
        return self._causes.sized(cause, t)

    def _open(self, t: int, best: int, *, joins: bool) -> None:
        """Open a page for the evidence of a likelihood ratio, or let it join the page of the same cause."""
        since, seconds = int(self._evidence.starts[best]), float(self._evidence.start_seconds[best])
        best = self._sizes.level_or_spread(t, best, since)
        start, sign = self._sizes.onset(t, best, since), int(np.sign(self._model.slope[best]))
        seconds = self._rows.time(start) if start >= self._rows.first else seconds
        self._add(t, self._cause(t, best, start, sign, since=since, last=start), seconds, joins=joins)

    def _add(self, t: int, cause: Cause, seconds: float, *, joins: bool) -> None:
        """Open a page for a cause, the time of whose start is given, or let it join the page of the same cause."""
        page = Page(t, cause.start, KINDS[cause.kind], cause.named, cause.sign, t, seconds=seconds)
        page = self._sizes.measured(page, cause, t)
        joined = self._log.joined_by_change(t, cause.start) if joins and self._log.is_large(page) else None
        self._causes.add(replace(cause, page=cause.page if joined is None else joined, said=page))
        self._evidence.forget(muted_by(self._model, cause), t)
        if joined is None:
            self._log.open(t, page)
        else:
            self._log.join(t, joined, cause.columns, page)

    def _go_on(self, t: int) -> None:
        """Keep the causes open for which more evidence has come, and measure them anew."""
        evidence, explained, causes = self._evidence, self._causes.explained, tuple(self._causes)
        best = int(np.argmax(evidence.sums * explained.muted_share))
        explaining = [cause for cause, mask in zip(causes, explained.evidence, strict=True) if mask[best]]
        if not explaining:
            evidence.forget(explained.muted & self._given, t)
        elif all(self._log.pages[cause.page].closed >= 0 for cause in explaining):
            # They had joined a page that is closed: what goes on has a page of its own.
            for cause in explaining:
                self._end(cause, t, t, self._rows.time(t))
            self._open(t, best, joins=True)
        else:
            for cause, mask in zip(causes, explained.of_causes, strict=True):
                if cause in explaining:
                    self._measure_again(t, cause, int(evidence.starts[best]), float(evidence.start_seconds[best]))
                    evidence.forget(mask, t)

    def _measure_again(self, t: int, cause: Cause, since: int, seconds: float) -> None:
        """Measure a cause and its page for which there is more evidence since a row, and tell its growth."""
        cause = self._causes.exchange(cause, self._causes.sized(cause, t))
        page, own = self._log.pages[cause.page], cause.columns[0]
        if page.kind == KINDS[cause.kind] and page.columns == cause.named:  # and not one that joined the page
            measured = cause
            if page.number < 0:  # too small so far: the rows since then may say more than all
                page, measured = replace(page, start=since, seconds=seconds), replace(cause, start=since)
            page = replace(page, last=t, until=-1, until_seconds=np.nan)
            self._log.update(t, cause.page, self._sizes.measured(page, measured, t))
        elif page.kind == "incident" and page.columns == (own,) and t - page.start >= self._log.lasting:
            cause = self._last(t, cause)
        self._tell_growth(t, cause)

    def _tell_growth(self, t: int, cause: Cause) -> None:
        """Tell that the change of an open cause is several times as large as was last said.

        That of a column that joined a page has a page of its own then, unless it is one given the other columns, which grows
        with any change of these.
        """
        page, said = self._log.pages[cause.page], cause.said
        own = page.kind == KINDS[cause.kind] and page.columns == cause.named
        if own and (page.number < 0 or page.row == t):
            self._causes.exchange(cause, replace(cause, said=page))
            return
        if said is None or (not own and cause.kind == GIVEN):
            return
        now = self._sizes.measured(page if own else replace(said, row=t, last=t), cause, t, days=1)
        if not extent(now) >= _GROWN * max(extent(said), _LEAST_SAID):
            return
        if own:
            self._log.tell(t, "grows", cause.page, now)
        else:
            self._log.open(t, now)
        self._causes.exchange(cause, replace(cause, page=cause.page if own else len(self._log.pages) - 1, said=now))
