"""Adapters for river: anomalies and drift in a stream of dicts."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa

from isopleth.core.errors import InputError, require
from isopleth.tasks.anomaly.detector import AnomalyDetector
from isopleth.tasks.drift.monitor import DriftMonitor

require("river", "adapters", "isopleth.adapters.RiverAnomalyDetector")

from river import base

# Times its size to which a reference is extended before it is refused.
_MOST = 8


class RiverAnomalyDetector(base.AnomalyDetector):
    """Anomaly scores by :class:`~isopleth.AnomalyDetector`, fitted again after every window of a stream.

    Rows are dicts. A feature that a row lacks is a missing cell; one that no row of the last window had is left out until the
    next fit. Features may be numbers, words and truth values.

    Parameters
    ----------
    window_size : int, default=250
        Number of rows to which a detector is fitted. Until there are as many, every score is 0.
    n_estimators : int, default=100
        As in :class:`~isopleth.AnomalyDetector`.
    seed : int, optional
        Seed of the fits.

    See Also
    --------
    AnomalyDetector : What the scores and p-values are.

    Notes
    -----
    The score of a row is 1 - p, where p is its conformal p-value: under the distribution of the last window, a score above 1 - a
    has about the probability a. So ``anomaly.ThresholdFilter(detector, 0.99)`` calls about 1 % of ordinary rows anomalies. The
    largest score is 1 - 1/(window_size + 1).

    Examples
    --------
    >>> from isopleth.adapters import RiverAnomalyDetector  # doctest: +SKIP
    >>> detector = RiverAnomalyDetector(window_size=100, seed=0)  # doctest: +SKIP
    >>> for row in stream:  # doctest: +SKIP
    ...     score = detector.score_one(row)
    ...     detector.learn_one(row)
    """

    def __init__(self, window_size: int = 250, n_estimators: int = 100, seed: int | None = None) -> None:
        self.window_size = window_size
        self.n_estimators = n_estimators
        self.seed = seed
        self._rows: deque[dict[Any, Any]] = deque(maxlen=window_size)
        self._detector: AnomalyDetector | None = None
        self._names: list[Any] = []

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Keep a row, and fit to the rows kept if these are a window.

        Parameters
        ----------
        x : dict
            Features.
        """
        self._rows.append(dict(x))
        if len(self._rows) < self.window_size:
            return
        rows = list(self._rows)
        self._names = sorted({name for row in rows for name in row}, key=str)
        detector = AnomalyDetector(n_estimators=self.n_estimators, random_state=self.seed, n_jobs=1)
        self._detector = detector.fit(_table(rows, self._names))
        self._rows.clear()

    def score_one(self, x: dict[Any, Any]) -> float:
        """Return the score of a row.

        Parameters
        ----------
        x : dict
            Features.

        Returns
        -------
        float
            One less the p-value of the row; 0 before the first fit.
        """
        if self._detector is None or not any(name in x for name in self._names):
            return 0.0
        return 1.0 - float(np.asarray(self._detector.p_values(_table([x], self._names)))[0])


class RiverDriftDetector(base.DriftDetector):
    """Drift by :class:`~isopleth.DriftMonitor`, of one value or of whole rows.

    The first rows are the reference. After an alarm, the rows that follow are a new reference. A reference that cannot be used,
    such as one with too few rows that depend on each other, is extended to twice, four and eight times its size.

    Parameters
    ----------
    reference_size : int, default=500
        Number of rows of the reference; ten windows or more.
    window : int, default=50
        As in :class:`~isopleth.DriftMonitor`: rows that are compared with the reference.
    expected_run_length : float, default=10000
        As in :class:`~isopleth.DriftMonitor`: mean number of rows until a false alarm.
    seed : int, optional
        Seed of the simulations that calibrate the monitor.

    Attributes
    ----------
    drift_detected : bool
        Whether the last row raised an alarm.

    See Also
    --------
    DriftMonitor : What is compared, and how the threshold is found.

    Examples
    --------
    >>> from isopleth.adapters import RiverDriftDetector  # doctest: +SKIP
    >>> detector = RiverDriftDetector(reference_size=200, window=20, expected_run_length=1000, seed=0)  # doctest: +SKIP
    >>> for row in stream:  # doctest: +SKIP
    ...     detector.update(row)
    ...     if detector.drift_detected:
    ...         print("the stream has changed")
    """

    _drift_detected: bool

    def __init__(
        self,
        reference_size: int = 500,
        window: int = 50,
        expected_run_length: float = 10_000,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.reference_size = reference_size
        self.window = window
        self.expected_run_length = expected_run_length
        self.seed = seed
        self._start()

    def _start(self) -> None:
        self._rows: list[dict[Any, Any]] = []
        self._wanted = self.reference_size
        self._monitor: DriftMonitor | None = None

    def _reset(self) -> None:
        super()._reset()
        self._start()

    def update(self, x: Any) -> None:
        """Take one row.

        Parameters
        ----------
        x : number or dict
            A value, or the features of a row.

        Raises
        ------
        InputError
            If not even eight times `reference_size` rows can be used as a reference, or a row lacks a feature of the reference.
        """
        if self._drift_detected:
            self._reset()
        row = dict(x) if isinstance(x, dict) else {"x": x}
        if self._monitor is not None:
            absent = [name for name in self._names if name not in row]
            if absent:
                raise InputError(
                    f"the row has no feature {absent[0]!r}, which the reference has; write None where it is missing."
                )
            self._drift_detected = len(self._monitor.update(_table([row], self._names))) > 0
            return
        self._rows.append(row)
        if len(self._rows) >= self._wanted:
            self._fit()

    def _fit(self) -> None:
        """Fit to the reference, or ask for twice as many rows."""
        self._names = sorted({name for row in self._rows for name in row}, key=str)
        monitor = DriftMonitor(
            window=self.window, expected_run_length=self.expected_run_length, random_state=self.seed, n_jobs=1
        )
        try:
            self._monitor = monitor.fit(_table(self._rows, self._names))
        except InputError:
            if self._wanted >= _MOST * self.reference_size:
                raise
            self._wanted *= 2
        else:
            self._rows = []


def _table(rows: list[dict[Any, Any]], names: list[Any]) -> pa.Table:
    """Return rows as a table with these columns; what a row lacks is missing."""
    return pa.table({str(name): pa.array([_plain(row.get(name)) for row in rows]) for name in names})


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as one of Python, and NaN as None."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else value
