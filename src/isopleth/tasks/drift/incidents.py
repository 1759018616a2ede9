"""Incidents of a stream: runs of rows that are far from what is usual, or from a level that has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from isopleth.tasks.drift.cause_state import IncidentState
from isopleth.tasks.drift.causes import incident_bars
from isopleth.tasks.drift.change_sizes import ChangeSizes
from isopleth.tasks.drift.open_causes import DAYS_KEPT, Cause
from isopleth.tasks.drift.page import Page
from isopleth.tasks.drift.page_log import PageLog
from isopleth.tasks.drift.stream_rows import KeptRows

# Fewest rows after a change of the level that say how much scores vary, if a day has more.
_FEWEST_AFTER = 96


class LastingIncident(NamedTuple):
    """Incident of a column that has become a change of the level."""

    column: int
    start: int
    sign: int
    page: int | None  # number of its own page; None if it had joined another one


class Incidents:
    """Incidents of the columns in the next rows of a stream, whose pages are opened and extended in a log."""

    def __init__(self, rows: KeptRows, state: IncidentState, log: PageLog, sizes: ChangeSizes) -> None:
        self._rows, self._model, self._log, self._sizes = rows, rows.model, log, sizes
        self.state = state.copy()
        self._far = rows.far()
        self._any_far = np.any(self._far, axis=(1, 2)).tolist()
        self._last, self._beside = int(state.last.max()), self._model.runs[0] + 2

    def far(self, t: int) -> list[tuple[int, np.ndarray]]:
        """Return the columns of which runs of rows that end at a row are far from what is usual, and the numbers of the runs."""
        i = t - self._rows.next
        if not self._any_far[i]:
            return []
        return [(int(j), np.flatnonzero(self._far[i, :, j])) for j in np.flatnonzero(self._far[i].any(axis=0))]

    def beside(self, t: int) -> list[int]:
        """Return the columns with an incident in the rows just before, about which a row says nothing else."""
        return np.flatnonzero(t - self.state.last < self._beside).tolist() if t - self._last < self._beside else []

    def judge(self, t: int, j: int, runs: np.ndarray, change: Cause | None) -> LastingIncident | None:
        """Open or extend the page of an incident of a column whose level has changed, if it has; return it if it lasts.

        `runs` are the numbers of the runs of rows that are far from what is usual.
        """
        if change is not None:
            runs = np.array([r for r in runs if self._beyond_change(t, j, r)], dtype=np.intp)
        if not len(runs):
            return None
        told = change is not None and t - change.row <= self._model.per_day and self._log.is_told(change.page)
        if t - self.state.last[j] > self._log.brief and not told:
            self.state.starts[j] = t - self._model.runs[runs[0]] + 1
            self._open(t, j, self._model.runs[runs[0]])
        self.state.last[j] = self._last = t
        k = self._log.incident_of(t, j)
        if k is not None:
            self._log.update(t, k, replace(self._with_extreme(self._log.pages[k], t, j), last=t))
        return self._lasting(t, j, k) if change is None else None

    def _lasting(self, t: int, j: int, k: int | None) -> LastingIncident | None:
        """Return an incident of a column, which has this page or has joined it, if it has become a change of the level."""
        if k is not None and j == self._log.pages[k].columns[0]:
            page = self._log.pages[k]
            incident = LastingIncident(j, page.start, page.direction, k)
        else:
            sign = int(np.sign(self._rows.score(t, j)))
            incident = LastingIncident(j, int(self.state.starts[j]), sign, None)
        return incident if t - incident.start >= self._log.lasting else None

    def _beyond_change(self, t: int, j: int, r: int) -> bool:
        """Tell whether a run of rows is far out by the level that has changed, too."""
        z = self._rows.column(t - self._model.runs[r] + 1, t, j)
        new = (z - self.state.base[j]) / self.state.unit[j]
        return max(min(z.min(), new.min()), min(-z.max(), -new.max())) > self._model.bars[r, j]

    def _open(self, t: int, j: int, run: int) -> None:
        """Open a page of a run of rows, or let the column join one that was just opened."""
        joined = self._log.joined_by_incident(t)
        start, sign = t - run + 1, int(np.sign(self._rows.score(t, j) - self.state.base[j]))
        page = Page(t, start, "incident", (j,), sign, t, seconds=self._rows.time(start))
        for row in range(start, t + 1):
            page = self._with_extreme(page, row, j)
        if joined is None:
            self._log.open(t, page)
        else:
            self._log.join(t, joined, (j,), page)
            self._log.put(joined, replace(self._log.pages[joined], last=t))

    def _with_extreme(self, page: Page, t: int, j: int) -> Page:
        return self._sizes.with_extreme(page, t, j, self.state.base[j])

    def settle(self, t: int, change: Cause) -> None:
        """Let incidents of a column be judged about its new level, and in units of how much it varies now."""
        day, model, j = self._model.per_day, self._model, change.columns[0]
        self.state.base[j] = np.median(self._rows.column(max(change.start, t - day), t, j))
        since = self._rows.column(max(change.start, t - DAYS_KEPT * day), t, j)
        if len(since) >= min(day, _FEWEST_AFTER):
            bars = incident_bars(since - np.median(since), model.run_length, model.dim, model.runs)
            self.state.unit[j] = max(1.0, float((bars / model.bars[:, j]).max()))
        else:
            self.state.unit[j] = 2.0

    def unsettle(self, change: Cause) -> None:
        """Let incidents of a column be judged about what is usual again."""
        self.state.base[change.columns[0]], self.state.unit[change.columns[0]] = 0.0, 1.0
