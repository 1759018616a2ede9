"""Rows of a stream as they are judged, those that are kept, and their statistics by row number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from isopleth.tasks.drift.causes import MOST_LAGS, NullModel, least_in_run


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


class KeptRows:
    """The next rows of a stream and those kept from before, by their numbers in the stream, and the model of their scores."""

    def __init__(self, model: NullModel, recent: StreamRows, rows: StreamRows, n_rows: int) -> None:
        self.model, self.rows = model, recent.then(rows)
        self.first, self.next = n_rows - len(recent.scores), n_rows  # the first row that is kept, and the first new one
        self.missing = np.isnan(self.rows.scores)
        self.scores = np.where(self.missing, 0.0, self.rows.scores)

    @property
    def new(self) -> slice:
        """Places of the new rows."""
        return slice(self.next - self.first, len(self.scores))

    def between(self, first: int, last: int) -> slice:
        """Return the places of the rows from `first` to `last`."""
        return slice(first - self.first, last + 1 - self.first)

    def column(self, first: int, last: int, column: int) -> np.ndarray:
        """Return the scores of a column in the rows from `first` to `last` that are kept."""
        return self.scores[max(0, first - self.first) : last + 1 - self.first, column]

    def score(self, row: int, column: int) -> float:
        """Return a score; 0 if the cell is missing."""
        return float(self.scores[row - self.first, column])

    def time(self, row: int) -> float:
        """Return the time of a row; NaN if it is not known."""
        place = row - self.first
        return float(self.rows.seconds[place]) if 0 <= place < len(self.rows.seconds) else np.nan

    def innovations(self, first: int, last: int) -> np.ndarray:
        """Return what autoregressions leave of the scores of the rows from `first` to `last`."""
        lead, scores = self._with_lead(first, last)
        return self.model.innovations(scores)[lead:]

    def standard(self, first: int, last: int) -> np.ndarray:
        """Return the statistics of the rows from `first` to `last`."""
        lead, scores = self._with_lead(first, last)
        return self.model.standard(scores)[lead:]

    def steps(self) -> np.ndarray:
        """Return the log likelihood ratios (n, k) of the new rows."""
        lead, scores = self._with_lead(self.next, self.first + len(self.scores) - 1)
        return self.model.steps(scores, lead)

    def far(self) -> np.ndarray:
        """Return a mask (n, r, d) of the new rows that end runs of rows far from what is usual, as incidents are."""
        lead, scores = self._with_lead(self.next, self.first + len(self.scores) - 1)
        runs = [[least_in_run(z, run)[lead:] for z in scores.T] for run in self.model.runs]
        return np.asarray(np.moveaxis(np.array(runs), 2, 0) > self.model.bars)

    def _with_lead(self, first: int, last: int) -> tuple[int, np.ndarray]:
        """Return the scores of rows with those that autoregressions need before them, and the number of the latter."""
        place = first - self.first
        lead = min(place, MOST_LAGS)
        return lead, self.scores[place - lead : last + 1 - self.first]
