"""Pages of a stream in their order: which are told, what happens to them, and which of them a cause joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isopleth.tasks.drift.page import Page, PageEvent
from isopleth.tasks.drift.stream_rows import KeptRows


class PageLog:
    """All pages of a stream so far, and what happened to them in some rows.

    Changes of less than `least` are not told: their pages have no number, and nothing that happens to them is an event.
    """

    def __init__(self, rows: KeptRows, pages: Sequence[Page], least: float) -> None:
        day = rows.model.per_day
        self.pages, self.events = list(pages), list[PageEvent]()
        # Rows that part two incidents, that part two causes, and after which an incident is a change.
        self.brief, self.near, self.lasting = max(12, day // 24), max(2, day // 8), max(12, day // 8)
        self._rows, self._day, self._least, self._most_recent = rows, day, least, 3 * rows.model.dim
        self._incidents = {k for k, page in enumerate(self.pages) if _is_open_incident(page)}

    @property
    def has_open_incident(self) -> bool:
        """True if the page of an incident is open."""
        return bool(self._incidents)

    def put(self, k: int, page: Page) -> None:
        """Change what is known of a page, without an event."""
        self.pages[k] = page
        if _is_open_incident(page):
            self._incidents.add(k)
        else:
            self._incidents.discard(k)

    def open(self, t: int, page: Page) -> None:
        """Add a page, and tell it if it is large enough."""
        self.pages.append(page)
        self.tell(t, "opened", len(self.pages) - 1, page)

    def tell(self, t: int, event: str, k: int, page: Page) -> None:
        """Change a page, and keep what happened to it; one that was too small to be told is opened when it is large enough."""
        seconds = self._rows.time(t)
        if page.number < 0 and event != "closed" and self.is_large(page):
            told = sum(other.number >= 0 for other in self.pages)
            page, event = replace(page, number=told, row=t, row_seconds=seconds), "opened"
        self.put(k, page)
        if page.number >= 0:
            self.events.append(PageEvent(t, event, page.number, page, seconds))

    def update(self, t: int, k: int, page: Page) -> None:
        """Change what is known of a page, which is told if it was too small before and is not now."""
        self.put(k, page)
        if page.number < 0:
            self.tell(t, "opened", k, page)

    def close(self, t: int, k: int, page: Page, event: str = "closed") -> None:
        """Close a page at a row."""
        self.tell(t, event, k, replace(page, closed=t, closed_seconds=self._rows.time(t)))

    def join(self, t: int, k: int, columns: tuple[int, ...], change: Page) -> None:
        """Add columns to a page, and tell their change: a cause that shows in several columns has one page.

        Further incidents of the columns of a page say nothing new, and a change of another kind does.
        """
        page = self.pages[k]
        fresh = tuple(dict.fromkeys(c for c in columns if c not in page.columns + page.also))
        self.put(k, replace(page, also=page.also + fresh))
        if fresh or change.kind != "incident":
            joins = replace(change, number=page.number)
            self.events.append(PageEvent(t, "joins", page.number, joins, self._rows.time(t)))

    def is_large(self, page: Page) -> bool:
        """Tell whether a change is large enough to be told: as a share of what is usual, else in deviations."""
        if page.kind == "together":
            size = page.size
        elif page.kind == "spread":
            size = page.size - 1.0
        else:
            size = page.times - 1.0 if np.isfinite(page.times) else page.size
        return not np.isfinite(size) or abs(size) >= self._least

    def is_told(self, k: int) -> bool:
        """Tell whether a page is open and large enough to be told."""
        return self.pages[k].number >= 0 and self.pages[k].closed < 0

    @property
    def _recent(self) -> range:
        return range(max(0, len(self.pages) - self._most_recent), len(self.pages))

    def open_incidents(self) -> list[int]:
        """Return the numbers of the recent pages of incidents that are open."""
        return [k for k in self._recent if _is_open_incident(self.pages[k])]

    def incident_of(self, t: int, column: int) -> int | None:
        """Return the number of the page of the present incident of a column, if it has one."""
        for k in reversed(self.open_incidents()):
            page = self.pages[k]
            if column in page.columns + page.also and t - page.last <= self.brief:
                return k
        return None

    def joined_by_incident(self, t: int) -> int | None:
        """Return the number of the page, if there is one, that was just opened, so that an incident joins it."""
        for k in reversed(self._recent):
            page = self.pages[k]
            if t - (page.last if page.kind == "incident" else page.row) <= self.brief and self.is_told(k):
                return k
        return None

    def joined_by_change(self, t: int, start: int) -> int | None:
        """Return the page of the last day that the same cause opened: it began at about the same row, or came just before."""
        for k in range(len(self.pages) - 1, -1, -1):
            page = self.pages[k]
            recent = abs(page.start - start) <= self.near or t - page.row <= self.near
            recent = recent or (page.kind == "incident" and t - page.last <= self.near)
            after = page.closed >= 0 and start - page.until > self.brief
            if page.number >= 0 and t - page.row <= self._day and recent and not after:
                return k
        return None


def _is_open_incident(page: Page) -> bool:
    return page.kind == "incident" and page.closed < 0


def ended(page: Page, until: int, seconds: float) -> Page:
    """Return a page with the end of its change, which is not before its start; rows may come late."""
    later = max(seconds, page.seconds) if np.isfinite(seconds) and np.isfinite(page.seconds) else seconds
    return replace(page, until=until, until_seconds=later)
