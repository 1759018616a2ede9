"""Adapter for skchange: change points as a change detector."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isopleth.core.errors import require
from isopleth.tasks.changes.detector import ChangePointDetector

require("skchange", "adapters", "isopleth.adapters.SkchangeAdapter")

from skchange.detectors import BaseChangeDetector
from skchange.utils.validation import validate_data


class SkchangeAdapter(BaseChangeDetector):
    """Change points by :class:`~isopleth.ChangePointDetector`, as a change detector of skchange.

    Parameters
    ----------
    detector : ChangePointDetector, optional
        Detector to adapt. By default ``ChangePointDetector()``.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns at fit.
    n_samples_in_ : int
        Length of the series at fit.

    See Also
    --------
    ChangePointDetector : What counts as a change, and the false alarm rate.

    Notes
    -----
    Nothing is learned in :meth:`fit`: as with skchange's own detectors, :meth:`predict` finds the changes of the series that it
    is given. skchange counts as we do: a change point is the first step of a segment.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.adapters import SkchangeAdapter  # doctest: +SKIP
    >>> series = np.random.default_rng(0).normal(size=(200, 1)) + 5.0 * (np.arange(200) >= 120)[:, None]
    >>> SkchangeAdapter().fit_predict(series)  # doctest: +SKIP
    array([120])
    """

    def __init__(self, detector: ChangePointDetector | None = None) -> None:
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check a series.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Series.
        y : ignored
            Present for the interface.

        Returns
        -------
        self
        """
        validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the first step after each change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Series.

        Returns
        -------
        ndarray of shape (n_changes,), int
            Ascending.
        """
        check_is_fitted(self, "n_samples_in_")
        rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_min_samples=2)
        return self._found(rows)["changepoints"]

    def predict_all(self, X: Any) -> dict[str, np.ndarray]:
        """Return the changes with their kinds and p-values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Series.

        Returns
        -------
        dict of str to ndarray
            "changepoints", "kinds", "p_values", and "intervals" of shape (n_changes, 2).
        """
        check_is_fitted(self, "n_samples_in_")
        return self._found(validate_data(self, X, reset=False, dtype=np.float64, ensure_min_samples=2))

    def _found(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Fit the detector to the rows, and return its answers."""
        detector = ChangePointDetector() if self.detector is None else clone(self.detector)
        detector.fit(rows)
        return {
            "changepoints": np.asarray(detector.change_points_, dtype=np.int64),
            "kinds": np.asarray(detector.kinds_),
            "p_values": np.asarray(detector.p_values_),
            "intervals": np.asarray(detector.intervals_),
        }
