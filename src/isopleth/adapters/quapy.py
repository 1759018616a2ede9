"""Adapter for QuaPy: class shares as a quantifier with confidence regions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isopleth.core.errors import InputError, require
from isopleth.tasks.class_prior.estimator import ClassPriorEstimator
from isopleth.tasks.class_prior.result import ClassPriors

require("quapy", "adapters", "isopleth.adapters.QuaPyAdapter")

from quapy.method.base import BaseQuantifier
from quapy.method.confidence import ConfidenceRegionABC, WithConfidenceABC


class QuaPyAdapter(BaseQuantifier, WithConfidenceABC):
    """Class shares by :class:`~isopleth.ClassPriorEstimator`, as a quantifier of QuaPy.

    It can be evaluated under QuaPy's protocols, tuned by ``GridSearchQ`` and be a member of an ``Ensemble``.

    Parameters
    ----------
    estimator : ClassPriorEstimator, optional
        Estimator to adapt. By default ``ClassPriorEstimator()``.

    Attributes
    ----------
    estimator_ : ClassPriorEstimator
        The fitted estimator.
    classes_ : array of shape (K,)
        The classes, in the order of the shares.

    See Also
    --------
    ClassPriorEstimator : What is estimated, and how.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.adapters import QuaPyAdapter  # doctest: +SKIP
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 3)) + 2.0 * y[:, None]
    >>> quantifier = QuaPyAdapter().fit(X, y)  # doctest: +SKIP
    >>> shares, region = quantifier.predict_conf(rng.normal(size=(200, 3)))  # doctest: +SKIP
    """

    def __init__(self, estimator: ClassPriorEstimator | None = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a copy of the estimator.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Labelled rows.
        y : array-like of shape (n_samples,)
            Class of each row.

        Returns
        -------
        self
        """
        estimator = ClassPriorEstimator() if self.estimator is None else clone(self.estimator)
        self.estimator_ = estimator.fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the share of each class among the rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            Unlabelled rows.

        Returns
        -------
        ndarray of shape (K,)
            Shares; their sum is 1.
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.estimate(X).priors)

    def predict_conf(self, instances: Any, confidence_level: float = 0.95) -> tuple[np.ndarray, ShareIntervals]:
        """Return the share of each class among the rows, and a confidence region.

        Parameters
        ----------
        instances : array-like or data frame of shape (n, n_features)
            Unlabelled rows.
        confidence_level : float, default=0.95
            Confidence level of the interval of each share.

        Returns
        -------
        shares : ndarray of shape (K,)
            Shares.
        region : ShareIntervals
            An interval for each share among these rows.
        """
        check_is_fitted(self, "estimator_")
        priors = self.estimator_.estimate(instances, confidence_level)
        return np.asarray(priors.priors), ShareIntervals(priors)


class ShareIntervals(ConfidenceRegionABC):
    """Intervals of :class:`~isopleth.tasks.ClassPriors`, as a confidence region of QuaPy.

    The region is the product of the intervals. Each has the confidence level; all together have less with three classes or more.

    Parameters
    ----------
    priors : ClassPriors
        The estimated shares with their intervals.
    """

    def __init__(self, priors: ClassPriors) -> None:
        self.priors = priors

    @property
    def samples(self) -> np.ndarray:
        """Refuse: the intervals are computed from means and covariances, without samples of shares."""
        raise InputError("these intervals are computed without resampling, so there are no samples of shares.")

    def point_estimate(self) -> np.ndarray:
        """Return the estimated shares, of shape (K,)."""
        return np.asarray(self.priors.priors)

    def coverage(self, true_value: Any) -> float:
        """Return the proportion of vectors of shares inside the region.

        Parameters
        ----------
        true_value : array-like of shape (K,) or (m, K)
            Vectors of shares.

        Returns
        -------
        float
            Between 0 and 1.
        """
        shares = np.atleast_2d(true_value)
        lower, upper = np.asarray(self.priors.lower), np.asarray(self.priors.upper)
        return float(np.mean(((shares >= lower) & (shares <= upper)).all(axis=1)))

    def __repr__(self) -> str:
        return f"ShareIntervals({self.priors!r})"
