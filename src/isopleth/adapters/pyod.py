"""Adapter with the attributes and signs of PyOD."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import Array, namespace
from isopleth.tasks.anomaly.detector import AnomalyDetector


class PyODAdapter(BaseEstimator):
    """An anomaly detector in PyOD's conventions: higher scores and label 1 for anomalies.

    Arrays are in the library and on the device of the rows, as for :class:`AnomalyDetector`.

    Parameters
    ----------
    detector : AnomalyDetector, optional
        Detector to adapt; its `contamination` sets the threshold. By default ``AnomalyDetector()``.

    Attributes
    ----------
    detector_ : AnomalyDetector
        The fitted detector.
    decision_scores_ : array of shape (n_samples,)
        Scores of the training rows, each judged without itself.
    threshold_ : float
        Scores above it are anomalies.
    labels_ : array of shape (n_samples,), int
        1 for training rows above the threshold, 0 for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> from isopleth.adapters import PyODAdapter
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = PyODAdapter(AnomalyDetector(contamination=0.05, random_state=0)).fit(X)
    >>> clf.predict([[0.0, 0.0], [9.0, 9.0]])
    array([0, 1])
    """

    def __init__(self, detector: AnomalyDetector | None = None) -> None:
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the detector.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present for the interface.

        Returns
        -------
        self
        """
        detector = AnomalyDetector() if self.detector is None else clone(self.detector)
        self.detector_ = detector.fit(X)
        self.decision_scores_ = -detector.training_scores_
        self.threshold_ = -detector.offset_
        self.labels_ = self._labels(self.decision_scores_)
        return self

    def _labels(self, scores: Array) -> Array:
        xp = namespace(scores)
        return xp.astype(scores > self.threshold_, xp.int64)

    def decision_function(self, X: Any) -> Array:
        """Return the anomaly score of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Higher for less likely rows.
        """
        check_is_fitted(self)
        return -self.detector_.score_samples(X)

    def predict(self, X: Any) -> Array:
        """Return the label of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,), int
            1 above the threshold, 0 for the others.
        """
        return self._labels(self.decision_function(X))
