"""Adapter for PyOD: anomalies as a detector of PyOD."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isopleth.core.arrays import to_numpy
from isopleth.core.errors import require
from isopleth.tasks.anomaly.detector import AnomalyDetector

require("pyod", "adapters", "isopleth.adapters.PyODAdapter")

from pyod.models.base import BaseDetector


class PyODAdapter(BaseDetector):
    """Anomalies by :class:`~isopleth.AnomalyDetector`, as a detector of PyOD: higher scores and label 1 for anomalies.

    Probabilities, confidences, rejection and ranks are those of PyOD's own base class. Tensors are taken, and answers are arrays
    of NumPy, as PyOD's are.

    Parameters
    ----------
    contamination : float, default=0.1
        Share of the training rows above the threshold, in (0, 0.5]; or a thresholder of PyThresh. It takes the place of the
        detector's.
    detector : AnomalyDetector, optional
        Detector to adapt. By default ``AnomalyDetector()``.

    Attributes
    ----------
    detector_ : AnomalyDetector
        The fitted detector.
    decision_scores_ : ndarray of shape (n_samples,)
        Scores of the training rows, each judged without itself.
    threshold_ : float
        Scores above it are anomalies.
    labels_ : ndarray of shape (n_samples,), int
        1 for training rows above the threshold, 0 for the others.

    See Also
    --------
    AnomalyDetector : What the scores are, p-values, and flags that need no share of anomalies.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> from isopleth.adapters import PyODAdapter  # doctest: +SKIP
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> clf = PyODAdapter(0.05, AnomalyDetector(random_state=0)).fit(X)  # doctest: +SKIP
    >>> clf.predict(np.array([[0.0, 0.0], [9.0, 9.0]]))  # doctest: +SKIP
    array([0, 1])
    """

    def __init__(self, contamination: Any = 0.1, detector: AnomalyDetector | None = None) -> None:
        super().__init__(contamination=contamination)
        self.detector = detector

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the detector.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            PyOD warns where it is given.

        Returns
        -------
        self
        """
        detector = AnomalyDetector() if self.detector is None else clone(self.detector)
        share = float(self.contamination) if isinstance(self.contamination, (float, int)) else "auto"
        self.detector_ = detector.set_params(contamination=share).fit(X)
        self._set_n_classes(y)
        self.decision_scores_ = -to_numpy(self.detector_.training_scores_)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the anomaly score of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Higher for less likely rows.
        """
        check_is_fitted(self, "detector_")
        return -to_numpy(self.detector_.score_samples(X))
