"""Columns that differ between the reference of a monitor and a window of its stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import kstwobign

# Quantiles that are kept of each column of the reference.
_MOST_QUANTILES = 1001
_LEVEL = 0.01


@dataclass(frozen=True, eq=False)
class ReferenceColumns:
    """Distribution functions of the columns of a reference.

    Parameters
    ----------
    quantiles : array of shape (q, d)
        Sorted values of each column, at most 1,001 of them at equal steps.
    rows : int
        Rows of the reference.
    """

    quantiles: np.ndarray
    rows: int

    @classmethod
    def of(cls, X: np.ndarray) -> Self:
        """Keep the quantiles of the rows of `X`."""
        ordered = np.sort(X, axis=0)
        steps = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MOST_QUANTILES)).round().astype(int))
        return cls(ordered[steps], len(X))

    def changes(self, window: np.ndarray, names: list[str]) -> dict[str, Any]:
        """Compare a window of rows with the reference, column by column, the largest change first.

        Returns
        -------
        dict
            "column", "share" (the largest difference of the two distribution functions: at least this share of the values
            would have to change back), "median_before", "median_after", "spread_before", "spread_after" (from the first
            quartile to the third) and "moved" (whether the share is beyond what chance gives any of the columns in one of
            100 windows).
        """
        share = np.array([_distance(one, two) for one, two in zip(self.quantiles.T, window.T, strict=True)])
        size = self.rows * len(window) / (self.rows + len(window))
        moved = kstwobign.sf(np.sqrt(size) * share) * len(share) <= _LEVEL
        before, after = (np.quantile(rows, [0.25, 0.5, 0.75], axis=0) for rows in (self.quantiles, window))
        table = {
            "share": share,
            "median_before": before[1],
            "median_after": after[1],
            "spread_before": before[2] - before[0],
            "spread_after": after[2] - after[0],
            "moved": moved,
        }
        order = np.argsort(-share, kind="stable")
        return {"column": [names[j] for j in order]} | {key: values[order] for key, values in table.items()}


def _distance(one: np.ndarray, two: np.ndarray) -> float:
    """Largest difference of two empirical distribution functions; `one` is sorted."""
    two = np.sort(two)
    places = np.concatenate([one, two])
    shares = [np.searchsorted(each, places, side="right") / len(each) for each in (one, two)]
    return float(np.abs(shares[0] - shares[1]).max())
