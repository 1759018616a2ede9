"""Measures of the difference of two samples: accuracy of a classifier, and changes of single columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import ks_2samp

from isopleth.difference.squared_l2 import normal_quantile
from isopleth.errors import InputError
from isopleth.operators.threads import ONE_BLAS_THREAD
from isopleth.tasks.class_prior.scores import Features, Fits, FoldSums, drawn_evenly, stratified_folds
from isopleth.tasks.two_sample.problem import TwoSampleProblem

_MOST_ROWS, _MOST_CENTERS = 5000, 300
FEWEST_ROWS = 5
# Ridge of the classifier over the trace of its covariance, times the root of an effective number of rows.
_RIDGE = 0.2


@dataclass(frozen=True)
class Separation:
    """Accuracy with which rows of two samples can be classified; see :meth:`TwoSampleResult.separation`.

    Parameters
    ----------
    accuracy : float
        Share of held-out rows that a classifier assigns to the right sample, with equal weights of the samples. 0.5 is guessing.
    low, high : float
        Confidence interval for the accuracy of this classifier on new rows.
    confidence_level : float
        Confidence of the interval.
    """

    accuracy: float
    low: float
    high: float
    confidence_level: float

    @property
    def share(self) -> float:
        """Lower bound of the share of one sample that would have to change to make the samples equal: 2 accuracy - 1."""
        return _share(self.accuracy)

    @property
    def share_low(self) -> float:
        """Lower confidence limit of that share; 0 if the interval of the accuracy contains 0.5."""
        return _share(self.low)

    @property
    def share_high(self) -> float:
        """Upper confidence limit of the share that this classifier shows; a better classifier may show more."""
        return _share(self.high)

    def __str__(self) -> str:
        level = f"{100.0 * self.confidence_level:.6g} % confidence"
        return (
            f"a row can be assigned to its sample with an accuracy of {self.accuracy:.1%} ({self.low:.1%} to {self.high:.1%}, "
            f"{level}; guessing has 50.0%), so at least {self.share_low:.1%} of one sample differ from the other"
        )

    @classmethod
    def of(cls, problem: TwoSampleProblem, confidence_level: Any) -> Self:
        """Classify held-out rows of the prepared samples.

        Raises
        ------
        InputError
            If a sample has too few rows for held-out rows, or the level is not between 0 and 1.
        """
        z = normal_quantile(confidence_level)
        if min(problem.sizes) < FEWEST_ROWS:
            raise InputError(
                f"the accuracy of telling the samples apart needs {FEWEST_ROWS} rows in each; "
                f"{'X' if problem.sizes[0] < FEWEST_ROWS else 'Y'} has {min(problem.sizes)}."
            )
        if len(problem.samples.rows) == 1:
            return cls(0.5, 0.5, 0.5, float(confidence_level))
        right, labels = held_out_answers(problem)
        counts = np.bincount(labels)
        shares = np.bincount(labels, right) / counts
        accuracy = float(shares.mean())
        # Add one right and one wrong row to each sample: no error among few rows does not mean an error rate of 0.
        shrunk = (shares * counts + 1.0) / (counts + 2.0)
        middle = float(shrunk.mean())
        # Each row is classified by fits to other rows, so the answers of two rows are correlated. If the samples are equal
        # this doubles the variance; if they do not overlap it adds nothing.
        dependence = 1.0 + 4.0 * middle * (1.0 - middle)
        half = 0.5 * z * float(np.sqrt(dependence * (shrunk * (1.0 - shrunk) / counts).sum()))
        low, high = min(middle - half, accuracy), max(middle + half, accuracy)
        return cls(accuracy, max(low, 0.0), min(high, 1.0), float(confidence_level))


def _share(accuracy: float) -> float:
    return max(0.0, 2.0 * accuracy - 1.0)


def held_out_answers(problem: TwoSampleProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each row is classified correctly by a fit without its fold (0.5 if undecided), and its sample.

    The classifier is the sign of the relative density difference of :class:`~isopleth.ClassPriorEstimator`, at equal shares.
    """
    rng = np.random.default_rng([problem.seed, 4])
    chosen = [rows[np.sort(rng.permutation(len(rows))[:_MOST_ROWS])] for rows in problem.given]
    counts = np.array([len(rows) for rows in chosen])
    labels = np.repeat([0, 1], counts)
    z = problem.enter(np.vstack(chosen))
    with ONE_BLAS_THREAD:  # the systems of the folds are small
        centers = np.unique(z[drawn_evenly(labels, _MOST_CENTERS, problem.seed)], axis=0)
        folds = stratified_folds(labels, problem.seed)
        alpha = _RIDGE * float(np.sqrt((1.0 / counts).sum())) / 2.0
        features = Features.of(centers, problem.memory_limit)
        fits = Fits.of(features, FoldSums.of(features, z, labels, folds), alpha)
        scores = fits.held_out(z, folds)
    margin = (scores[:, 1] - scores[:, 0]) * np.where(labels == 1, 1.0, -1.0)
    return np.where(margin == 0.0, 0.5, margin > 0.0), labels


def column_changes(problem: TwoSampleProblem) -> dict[str, np.ndarray]:
    """Return medians, quartile ranges and the share of changed values of each column, X before and Y after.

    The share is the largest difference of the two distribution functions (Kolmogorov and Smirnov's distance): at least this
    share of the values of one sample would have to change to give the column the distribution it has in the other one.
    """
    before, after = problem.given
    quartiles = [np.quantile(rows, [0.25, 0.5, 0.75], axis=0) for rows in (before, after)]
    share = [ks_2samp(one, two, method="asymp").statistic for one, two in zip(before.T, after.T, strict=True)]
    return {
        "share": np.array(share),
        "median_before": quartiles[0][1],
        "median_after": quartiles[1][1],
        "spread_before": quartiles[0][2] - quartiles[0][0],
        "spread_after": quartiles[1][2] - quartiles[1][0],
    }
