"""Adapter for sktime: change points as a detector."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from isopleth.core.errors import require
from isopleth.tasks.changes.detector import ChangePointDetector

require("sktime", "adapters", "isopleth.adapters.SktimeAdapter")

import pandas as pd
from sktime.detection.base import BaseDetector


class SktimeAdapter(BaseDetector):
    """Change points by :class:`~isopleth.ChangePointDetector`, as a detector of sktime.

    Parameters
    ----------
    detector : ChangePointDetector, optional
        Detector to adapt. By default ``ChangePointDetector()``.

    See Also
    --------
    ChangePointDetector : What counts as a change, and the false alarm rate.

    Notes
    -----
    Nothing is learned in ``fit``: as with sktime's own detectors, ``predict`` finds the changes of the series that it is given.
    Its column ``ilocs`` holds the first step after each change. ``predict_scores`` says more about each: ``kind``, ``pvalue``,
    and ``earliest`` and ``latest``, the ends of a 90 % interval of the first step. The index of the series is not used: steps
    count as equally spaced. Missing values are taken as :class:`~isopleth.ChangePointDetector` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.adapters import SktimeAdapter  # doctest: +SKIP
    >>> series = np.random.default_rng(0).normal(size=(200, 1)) + 5.0 * (np.arange(200) >= 120)[:, None]
    >>> SktimeAdapter().fit_predict(series)  # doctest: +SKIP
       ilocs
    0    120
    """

    _tags = {  # noqa: RUF012 (sktime's own form)
        "authors": "isopleth developers",
        "maintainers": "isopleth developers",
        "task": "change_point_detection",
        "learning_type": "unsupervised",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "fit_is_empty": True,
    }

    def __init__(self, detector: ChangePointDetector | None = None) -> None:
        self.detector = detector
        super().__init__()

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the first step after each change."""
        return pd.DataFrame({"ilocs": np.asarray(self._fitted(X).change_points_, dtype=np.int64)})

    def _predict_scores(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return kind, p-value and interval of each change."""
        found = self._fitted(X)
        intervals = np.asarray(found.intervals_, dtype=np.int64).reshape(-1, 2)
        return pd.DataFrame(
            {
                "kind": np.asarray(found.kinds_, dtype=object),
                "pvalue": np.asarray(found.p_values_, dtype=float),
                "earliest": intervals[:, 0],
                "latest": intervals[:, 1],
            }
        )

    def _fitted(self, X: pd.DataFrame) -> ChangePointDetector:
        detector = ChangePointDetector() if self.detector is None else clone(self.detector)
        return detector.fit(X.reset_index(drop=True))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's own checks.

        Parameters
        ----------
        parameter_set : str, default="default"
            Not used: there is one list.

        Returns
        -------
        list of dict
            Detectors with a seed.
        """
        return [{"detector": ChangePointDetector(false_alarm_rate=rate, random_state=0)} for rate in (0.05, 0.2)]
