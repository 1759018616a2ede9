"""Position in a stream whose rows are judged in their context: its evidence, incidents, open causes and pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from isopleth.tasks.drift.causes import NullModel
from isopleth.tasks.drift.open_causes import Cause
from isopleth.tasks.drift.page import Page
from isopleth.tasks.drift.stream_rows import StreamRows
from isopleth.tasks.drift.stream_times import ClockState


@dataclass(eq=False)
class Evidence:
    """Evidence of each likelihood ratio up to a row. A watch changes a copy in place."""

    sums: np.ndarray  # (k,): Shiryaev-Roberts sums
    walks: np.ndarray  # (k,): cumulative sums, which say since when
    starts: np.ndarray  # (k,): first row of the present evidence
    start_seconds: np.ndarray  # (k,): its time

    @classmethod
    def empty(cls, ratios: int, row: int) -> Self:
        """Return no evidence before a row."""
        return cls(np.zeros(ratios), np.zeros(ratios), np.full(ratios, row), np.full(ratios, np.nan))

    def copy(self) -> Self:
        """Return a copy, which may be changed in place."""
        return type(self)(self.sums.copy(), self.walks.copy(), self.starts.copy(), self.start_seconds.copy())

    def add(self, row: int, seconds: float, steps: np.ndarray, quiet: np.ndarray | None) -> None:
        """Add the log likelihood ratios of a row but those about which it says nothing, the `quiet` ones."""
        self.start_seconds[self.starts == row] = seconds
        sums, walks = (self.sums + 1.0) * np.exp(steps), self.walks + steps
        if quiet is not None:
            sums, walks = np.where(quiet, self.sums, sums), np.where(quiet, self.walks, walks)
        none = walks <= 0.0
        walks[none] = 0.0
        self.starts[none] = row + 1
        self.sums, self.walks = sums, walks

    def forget(self, mask: np.ndarray, row: int) -> None:
        """Begin the evidence of some likelihood ratios anew after a row."""
        self.sums[mask], self.walks[mask], self.starts[mask] = 0.0, 0.0, row + 1


@dataclass(eq=False)
class IncidentState:
    """Incidents of each column, and how they are judged. A watch changes a copy in place."""

    last: np.ndarray  # (d,): last row of an incident of each column
    starts: np.ndarray  # (d,): its first row
    base: np.ndarray  # (d,): level about which incidents are judged, and unit of the scores
    unit: np.ndarray

    @classmethod
    def empty(cls, columns: int) -> Self:
        """Return that no column has had an incident."""
        return cls(np.full(columns, -(10**9)), np.full(columns, -(10**9)), np.zeros(columns), np.ones(columns))

    def copy(self) -> Self:
        """Return a copy, which may be changed in place."""
        return type(self)(self.last.copy(), self.starts.copy(), self.base.copy(), self.unit.copy())


@dataclass(frozen=True, eq=False)
class CauseState:
    """Position in a stream. It is replaced and never changed in place."""

    n_rows: int
    evidence: Evidence
    incidents: IncidentState
    recent: StreamRows
    open: tuple[Cause, ...] = ()
    pages: tuple[Page, ...] = ()
    key: int = 0  # of the reference
    clock: ClockState = field(default_factory=ClockState)

    @property
    def alarms(self) -> int:
        """Number of pages so far."""
        return sum(page.number >= 0 for page in self.pages)

    @classmethod
    def empty(cls, model: NullModel, n_rows: int = 0) -> Self:
        """Return the state after `n_rows` rows, of which nothing is known."""
        d = model.dim
        return cls(n_rows, Evidence.empty(len(model.slope), n_rows), IncidentState.empty(d), StreamRows.empty(d))
