"""Two samples as one set of distinct rows with two weights each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from isopleth.backend import to_numpy
from isopleth.entry import check_rows, check_weights, on_host
from isopleth.errors import InputError
from isopleth.operators.threads import interruptible
from isopleth.rows import distinct_rows, merge_rows

_T = TypeVar("_T")
_MOST_UNITS = 1e8


def speaking_of(name: str, instead_of: str, check: Callable[[], _T]) -> _T:
    """What `check` answers; where it refuses, its sentence calls `instead_of` by the `name` that the user knows.

    A sentence that speaks of neither begins with the name.
    """
    try:
        return check()
    except (ValueError, TypeError) as error:
        message, found = re.subn(rf"\b{instead_of}\b", name, str(error), count=1)  # columns may have that name too
        if not found:
            message = f"{name}: {message}"
        raise (InputError if isinstance(error, ValueError) else TypeError)(message) from error


@dataclass(frozen=True)
class TwoSamples:
    """Distinct rows of both samples, in an order that depends on the order of neither rows nor columns.

    Parameters
    ----------
    rows : array of shape (m, n_features)
        Rows that have a positive weight in one of the samples.
    weights : array of shape (m, 2)
        How often each row was drawn, in the first and in the second sample.
    place : array of shape (n + n',)
        Where each row of the samples, one below the other, went; -1 for weight 0.
    given : array of shape (n + n',)
        The weights of these rows.
    split : int
        n, the rows of the first sample as they came.
    """

    rows: np.ndarray
    weights: np.ndarray
    place: np.ndarray
    given: np.ndarray
    split: int

    @classmethod
    def of(cls, estimator: BaseEstimator, X: Any, Y: Any, weight_x: Any, weight_y: Any, lexical: bool = False) -> Self:
        """Checked input; `lexical` asks for distinct rows in lexical order, which depends on the order of the columns.

        Raises
        ------
        InputError, TypeError
            For rows and weights that cannot be used, by the name of the sample, and for samples with different columns.
        """
        X, Y = on_host(X, "X"), on_host(Y, "Y")
        weight_x, weight_y = on_host(weight_x, "sample_weight_x"), on_host(weight_y, "sample_weight_y")
        x = speaking_of("X", "X", lambda: check_rows(estimator, X, reset=True))
        y = speaking_of("Y", "X", lambda: check_rows(estimator, Y, reset=False))
        given_x = speaking_of("sample_weight_x", "sample_weight", lambda: check_weights(weight_x, len(x)))
        given_y = speaking_of("sample_weight_y", "sample_weight", lambda: check_weights(weight_y, len(y)))
        together = np.concatenate([given_x, given_y])
        both = np.vstack([x, y])
        merge = merge_rows if lexical else distinct_rows
        rows, _, place = interruptible(100.0 * both.size, merge, both, together)
        weights = np.zeros((len(rows), 2))
        for sample, part in enumerate((slice(0, len(x)), slice(len(x), None))):
            counted = place[part] >= 0
            weights[:, sample] = np.bincount(place[part][counted], together[part][counted], minlength=len(rows))
            total, distinct = weights[:, sample].sum(), np.count_nonzero(weights[:, sample])
            if total < distinct:  # weights of sum 1 are shares, not counts
                weights[:, sample] *= distinct / total
        return cls(rows, weights, place, together, len(x))

    @property
    def counts(self) -> np.ndarray:
        """Sizes of the samples: sums of their weights."""
        return self.weights.sum(axis=0)

    @property
    def contrast(self) -> np.ndarray:
        """What each row adds to the mean over the first sample and, in the second column, over the second one."""
        return self.weights / self.counts

    @property
    def units(self) -> np.ndarray:
        """Draws that can be told apart when samples are split, a row and sample: weights rounded up."""
        shrink = min(1.0, _MOST_UNITS / float(self.weights.sum()))
        return np.ceil(self.weights * shrink * (1.0 - 1e-12)).astype(np.int64)

    @property
    def order(self) -> tuple[int, int]:
        """The samples in an order that does not depend on which of them was called X."""
        differ = self.weights[:, 0] != self.weights[:, 1]
        i = int(np.argmax(differ))
        return (0, 1) if self.weights[i, 0] >= self.weights[i, 1] else (1, 0)


def split_at_random(samples: TwoSamples, folds: int, seed: int) -> np.ndarray:
    """Weights by row, sample and fold: copies of a row are split like other draws, at random and without a look at values.

    Copies kept together would be seen by one fold only, and copies spread evenly would make all folds agree: either way
    held-out estimates of data with repeated rows would be biased.
    """
    out = np.zeros((*samples.weights.shape, folds))
    rng = np.random.default_rng(seed)
    for sample in samples.order:
        left = samples.units[:, sample]
        each = samples.weights[:, sample] / np.maximum(left, 1)
        total = int(left.sum())
        for fold in range(folds):
            size = total // folds + (fold < total % folds)
            drawn = rng.multivariate_hypergeometric(left, size, method="marginals")
            out[:, sample, fold] = drawn * each
            left = left - drawn
    return out


def split_as_given(samples: TwoSamples, cv: Any) -> np.ndarray:
    """Weights by row, sample and fold for folds named by the user, one label a row and sample.

    Raises
    ------
    InputError
        If there is not one label a row, or a fold lacks one of the samples.
    """
    sizes = (samples.split, len(samples.place) - samples.split)
    labels = [np.asarray(to_numpy(part)) for part in cv]
    if len(labels) != 2 or any(part.shape != (size,) for part, size in zip(labels, sizes, strict=True)):
        raise InputError(
            f"cv: expected a number of folds, or two arrays with the fold of each row of X ({sizes[0]},) and Y ({sizes[1]},)."
        )
    names, fold = np.unique(np.concatenate(labels), return_inverse=True)
    out = np.zeros((*samples.weights.shape, len(names)))
    sample = (np.arange(len(samples.place)) >= samples.split).astype(int)
    counted = samples.place >= 0
    np.add.at(out, (samples.place[counted], sample[counted], fold.ravel()[counted]), samples.given[counted])
    out *= (samples.counts / out.sum(axis=(0, 2)))[None, :, None]
    bad = (out.sum(axis=0) == 0).any(axis=0)
    if bad.any():
        raise InputError(f"cv: fold {names[np.argmax(bad)]} has no rows of one of the samples; every fold needs both.")
    return out
