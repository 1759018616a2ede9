"""Measures of the difference of two samples: accuracy of a classifier, and changes of single columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isopleth.core.errors import InputError
from isopleth.core.p_values import normal_quantile
from isopleth.core.threads import ONE_BLAS_THREAD
from isopleth.tasks.classifier import FOLDS, Fits, FoldMoments, SpanFeatures, balanced_subsample, stratified_folds
from isopleth.tasks.column_changes import Share, changes, share_that_differs, summaries
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
        shown = "so single rows do not tell the samples apart"
        if self.share_low > 0.0:
            about, least = 100.0 * self.share, 100.0 * self.share_low
            shown = f"so about {about:.3g} % of one sample (at least {least:.1f} %) differ from the other"
        return (
            f"a row can be assigned to its sample with an accuracy of {100 * self.accuracy:.1f} % "
            f"({100 * self.low:.1f} % to {100 * self.high:.1f} %, {level}; guessing has 50 %), {shown}"
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
        if problem.groups is not None and min(len(np.unique(names)) for names in problem.groups) < 2:
            raise InputError("the accuracy of telling the samples apart needs rows of two groups in each.")
        if not problem.varying.any():
            return cls(0.5, 0.5, 0.5, float(confidence_level))
        right, labels, groups = held_out_answers(problem)
        counts = np.bincount(labels)
        shares = np.bincount(labels, right) / counts
        accuracy = float(shares.mean())
        # Add one right and one wrong row to each sample: no error among few rows does not mean an error rate of 0.
        shrunk = (shares * counts + 1.0) / (counts + 2.0)
        middle = float(shrunk.mean())
        # Each row is classified by fits to other rows, so the answers of two rows are correlated. If the samples are equal
        # this doubles the variance; if they do not overlap it adds nothing.
        dependence = 1.0 + 4.0 * middle * (1.0 - middle)
        noise = shrunk * (1.0 - shrunk) / counts
        if groups is not None:
            noise = np.maximum(noise, _noise_of_groups(right - shares[labels], labels, groups, counts))
        half = 0.5 * z * float(np.sqrt(dependence * noise.sum()))
        low, high = min(middle - half, accuracy), max(middle + half, accuracy)
        return cls(accuracy, max(low, 0.0), min(high, 1.0), float(confidence_level))


def _noise_of_groups(rest: np.ndarray, labels: np.ndarray, groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the variance of the mean of each sample if the rows of a group depend on each other."""
    place = np.unique(groups, return_inverse=True)[1]
    out = []
    for sample, count in enumerate(counts):
        own = labels == sample
        sums, size = np.bincount(place[own], rest[own]), len(np.unique(place[own]))
        out.append((sums**2).sum() / count**2 * size / max(size - 1, 1))
    return np.array(out)


def _share(accuracy: float) -> float:
    return max(0.0, 2.0 * accuracy - 1.0)


def held_out_answers(problem: TwoSampleProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return whether a fit without its fold classifies each row (.5 if undecided) at equal shares, its sample and group."""
    # The order of the samples, and of the rows by what they hold, does not depend on how they were given.
    first, second = problem.samples.order
    places = [problem.drawn(sample, _MOST_ROWS, 4) for sample in (first, second)]
    counts = np.array([len(place) for place in places])
    labels = np.repeat([0, 1], counts)
    complete = problem.complete
    z = problem.enter(np.vstack([complete[first][places[0]], complete[second][places[1]]]))
    # Several coordinates of one column count as one column.
    z = z * (z.shape[1] / sum(problem.varying[block].any() for block in problem.blocks))
    groups = None
    if problem.groups is not None:
        groups = np.concatenate([problem.groups[first][places[0]], problem.groups[second][places[1]]])
    with ONE_BLAS_THREAD:  # the systems of the folds are small
        centers = np.unique(z[balanced_subsample(labels, _MOST_CENTERS, problem.seed)], axis=0)
        folds = (
            stratified_folds(labels, problem.seed) if groups is None else folds_of_groups(labels, groups, problem.seed)
        )
        alpha = _RIDGE * float(np.sqrt((1.0 / counts).sum())) / 2.0
        features = SpanFeatures.of(centers, problem.budget)
        fits = Fits.of(features, FoldMoments.of(features, z, labels, folds), alpha)
        scores = fits.held_out(z, folds)
    margin = (scores[:, 1] - scores[:, 0]) * np.where(labels == 1, 1.0, -1.0)
    return np.where(margin == 0.0, 0.5, margin > 0.0), labels, groups


def folds_of_groups(labels: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
    """Return folds that divide no group and have rows of both samples outside each fold."""
    rng, folds = np.random.default_rng([seed, 6]), np.empty(len(labels), dtype=np.intp)
    names, place = np.unique(groups, return_inverse=True)
    shares = np.stack([np.bincount(place, labels == sample, len(names)) for sample in (0, 1)])
    order = np.lexsort([rng.random(len(names)), shares[1] > 0.0, shares[0] > 0.0])
    count = max(2, min(FOLDS, int((shares > 0.0).sum(axis=1).min())))
    folds_of_groups = np.empty(len(names), dtype=np.intp)
    folds_of_groups[order] = np.arange(len(names)) % count
    folds[:] = folds_of_groups[place]
    return folds


def shares_that_differ(problem: TwoSampleProblem, z: float) -> list[Share]:
    """Return the share of the cells of each column that would have to change, in the order of the columns."""
    before, after = (summaries(problem.encoding, rows) for rows in problem.all_tables)
    compared = problem.encoding.compared
    return [share_that_differs(one, two, compared=compared, z=z) for one, two in zip(before, after, strict=True)]


def column_changes(problem: TwoSampleProblem) -> dict[str, Any]:
    """Return how each column changed, X before and Y after, in the order of the columns."""
    before, after = (summaries(problem.encoding, rows) for rows in problem.all_tables)
    return changes(problem.encoding, before, after)
