"""Open causes of pages: which evidence they explain, and whether their changes have ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isopleth.tasks.drift.causes import GIVEN, KINDS, LEAST_SLOPE, TOGETHER, NullModel
from isopleth.tasks.drift.page import Page
from isopleth.tasks.drift.stream_rows import KeptRows

# Days whose rows say how large a change is.
DAYS_KEPT = 7
# Logarithm of the likelihood ratio of a change that has ended to one that goes on from which its page is closed. No further
# evidence is not enough: a weak change may give none for as long as it took to find. The size at which it was found is too large
# by chance.
_SURE_OF_THE_END, _TOO_LARGE = float(np.log(100.0)), 1.25


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

    @property
    def is_level(self) -> bool:
        """True for a change of the level of a column."""
        return KINDS[self.kind] == "level"

    @property
    def of_one_column(self) -> bool:
        """True for a change of one column."""
        return self.kind < TOGETHER


class OpenCauses:
    """Causes that are open at a row, in the order in which they were opened."""

    def __init__(self, rows: KeptRows, causes: Sequence[Cause]) -> None:
        self._rows, self._model, self._causes = rows, rows.model, list(causes)
        self._explain()

    def __len__(self) -> int:
        return len(self._causes)

    def __iter__(self) -> Iterator[Cause]:
        return iter(tuple(self._causes))

    def add(self, cause: Cause) -> None:
        """Add a cause."""
        self._causes.append(cause)
        self._explain()

    def remove(self, cause: Cause) -> None:
        """Remove a cause, whose evidence counts again."""
        self._causes.remove(cause)
        self._explain()

    def exchange(self, cause: Cause, other: Cause) -> Cause:
        """Put what is known now of a cause in its place, and return it."""
        self._causes[self._causes.index(cause)] = other
        return other

    def _explain(self) -> None:
        """Keep what the causes explain, which changes seldom."""
        self.explained = Explained.of(self._model, self._causes)
        self.of_one_column = any(cause.of_one_column for cause in self._causes)

    def change_of(self, column: int) -> Cause | None:
        """Return the cause after which incidents of a column are judged anew."""
        return next((each for each in self._causes if each.of_one_column and each.columns[0] == column), None)

    def of_page(self, number: int, columns: tuple[int, ...]) -> list[Cause]:
        """Return the causes of the columns that a page names."""
        return [cause for cause in self._causes if cause.page == number and cause.named == columns]

    def sized(self, cause: Cause, t: int) -> Cause:
        """Return a cause with the size of its change in its last rows, from which its end is looked for.

        They are those of a day, and more where evidence is rare.
        """
        day = self._model.per_day
        count = max(day, min(DAYS_KEPT * day, 4 * (t - cause.last)))
        values = self._rows.standard(max(cause.start, t - count + 1), t)[:, cause.statistic]
        mean = max(cause.sign * float(values.mean()) / _TOO_LARGE, self._least_slope(cause) / 2.0)
        return replace(cause, last=t, until=t + cause.hold, mean=mean, against=0.0, end=t + 1, end_seconds=np.nan)

    def _least_slope(self, cause: Cause) -> float:
        return float(np.abs(self._model.slope[self._model.statistic == cause.statistic]).min())

    def take_in(self, t: int) -> None:
        """Weigh in the rows of the last hour whether changes have ended: by cumulative sums, which say since when.

        Causes of columns that are missing in a row wait for a row more: a gap is no end of a change.
        """
        step, gaps = max(1, self._model.per_day // 24), self._rows.missing[t - self._rows.first]
        if gaps.any():
            self._causes = [
                replace(cause, until=cause.until + 1) if gaps[list(cause.columns)].any() else cause
                for cause in self._causes
            ]
        for k, cause in enumerate(self._causes):
            if t > cause.last and (t - cause.last) % step == 0:
                self._causes[k] = self._weighed(cause, t - step + 1, t)

    def _weighed(self, cause: Cause, first: int, last: int) -> Cause:
        """Return a cause with what more rows say of its end; a missing cell says nothing."""
        rows = self._rows
        values = rows.standard(first, last)[:, cause.statistic] * cause.sign
        missing = rows.missing[rows.between(first, last)][:, list(cause.columns)].any(axis=1)
        variance = (LEAST_SLOPE / self._least_slope(cause)) ** 2  # of sums of many rows, over their number
        losses = np.where(missing, 0.0, cause.mean * (cause.mean / 2.0 - values) / variance)
        walk = np.cumsum(np.concatenate([[cause.against], losses]))
        against = walk - np.minimum(np.minimum.accumulate(walk), 0.0)
        usual = np.flatnonzero(against == 0.0)
        if len(usual):
            end = first + int(usual[-1])
            cause = replace(cause, end=end, end_seconds=rows.time(end))
        return replace(cause, against=float(against[-1]))

    def ended(self, t: int) -> list[Cause]:
        """Return the causes whose changes have ended: no more evidence has come, and rows say so."""
        return [cause for cause in self._causes if t > cause.until and cause.against >= _SURE_OF_THE_END]


@dataclass(frozen=True, eq=False)
class Explained:
    """Likelihood ratios that the open causes explain, those that are evidence for each, and the shares of both and of others."""

    of_causes: list[np.ndarray]
    evidence: list[np.ndarray]
    muted: np.ndarray
    muted_share: np.ndarray
    free_share: np.ndarray

    @classmethod
    def of(cls, model: NullModel, causes: Sequence[Cause]) -> Self:
        """Return what causes explain."""
        share = np.exp(model.log_share)
        of_causes = [muted_by(model, cause) for cause in causes]
        muted = np.logical_or.reduce(of_causes) if of_causes else np.zeros(len(share), dtype=bool)
        evidence = [muted_by(model, cause, given=False) for cause in causes]
        return cls(of_causes, evidence, muted, np.where(muted, share, 0.0), np.where(muted, 0.0, share))


def muted_by(model: NullModel, cause: Cause, *, given: bool = True) -> np.ndarray:
    """Return the likelihood ratios that an open cause explains; those of other columns `given` the rest say nothing of it.

    Any change moves the regressions on other columns. A level or a spread that changed changes everything of its column, but
    a higher level does not explain that the column is lower than usual later.
    """
    columns = cause.columns
    own = (model.kind == cause.kind) & (model.columns == columns).all(axis=1)
    if cause.of_one_column:
        own = touching(model, columns[0])
    if cause.is_level:
        own = own & ~contrary(model, cause)
    return np.asarray(own | (model.kind == GIVEN) if given else own)


def contrary(model: NullModel, cause: Cause) -> np.ndarray:
    """Return the likelihood ratios of a level on the other side of what is usual."""
    return np.asarray((model.kind == 0) & (model.columns[:, 0] == cause.columns[0]) & (model.slope * cause.sign < 0.0))


def touching(model: NullModel, column: int) -> np.ndarray:
    """Return the likelihood ratios of a column, alone or with another one."""
    return np.asarray((model.columns == column).any(axis=1))
