"""What all drift monitors do with the rows of a stream."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from isopleth.errors import InputError
from isopleth.operators.threads import ONE_BLAS_THREAD, slices
from isopleth.progress import Progress, ReportsProgress
from isopleth.tables.cells import in_memory
from isopleth.tables.checks import TakesKinds, enter
from isopleth.tasks.drift.alarms import DriftAlarms, ReferenceColumns

# Rows that are processed together, so that memory does not grow with the rows of a call.
_AT_ONCE = 1024


class StreamMonitor(ReportsProgress, TakesKinds, BaseEstimator):
    """Base class of drift monitors; a subclass has `window` and `verbose`, and a fit sets the attributes below."""

    window: int
    verbose: bool | int
    threshold_: float
    state_: Any
    _key: int
    _columns: ReferenceColumns

    @abstractmethod
    def _take_in(self, state: Any, X: np.ndarray) -> tuple[Any, np.ndarray, list[np.ndarray]]:
        """Return the state after the rows `X`, the statistic at each, and the windows that raised alarms."""

    def _alarms(self, given: Any) -> DriftAlarms:
        """Process the next rows of the stream, and return their alarms."""
        check_is_fitted(self, "threshold_")
        X = self._rows_of_stream(given)
        state = self.state_
        if getattr(state, "key", None) != self._key:
            raise InputError("state_ is not of this monitor with this reference; assign one that it has had since fit.")
        first, parts, windows = state.n_rows, [], []
        with ONE_BLAS_THREAD, Progress("rows of the stream", len(X), self.verbose) as tick:
            for part in slices(len(X), _AT_ONCE):
                state, statistic, found = self._take_in(state, X[part])
                parts.append(statistic)
                windows += found
                tick(len(statistic))
        self.state_ = state
        columns = tuple(self._columns.changes(window) for window in windows)
        return DriftAlarms(first, np.concatenate(parts), self.threshold_, int(self.window), columns).like(given)

    def _rows_of_stream(self, X: Any) -> np.ndarray:
        """Check the next rows of a stream; refuse a batch without any, which is often a query that went wrong."""
        X = in_memory(X)
        shape = getattr(X, "shape", None) or (len(X) if hasattr(X, "__len__") else None,)
        if shape[0] == 0:
            raise InputError("X has no rows; expected one or more rows of the stream. Do not pass on empty batches.")
        return enter(self, X, missing=True).rows
