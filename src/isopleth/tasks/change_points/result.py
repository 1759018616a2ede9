"""The changes of a series, as a table and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class ChangePoints:
    """Changes of a series.

    Parameters
    ----------
    places : ndarray of shape (m,), int
        First steps of what is new, ascending; the first step of the series is number 0.
    kinds : ndarray of shape (m,), str
        What changed: "level", "slope", "scatter", "frequency", "relation" (between columns), or "shape" for what is none of
        these.
    scores : ndarray of shape (T,)
        The score curve; NaN at the ends, where a window would leave the series.
    series : ndarray of shape (T, d)
        The series.
    p_values : ndarray of shape (m,), optional
        The least false alarm rates at which each change would be reported.
    columns : list of tuple of int, optional
        The columns in which each change was seen.
    """

    places: np.ndarray
    kinds: np.ndarray
    scores: np.ndarray = field(repr=False)
    series: np.ndarray = field(repr=False)
    p_values: np.ndarray | None = field(default=None, repr=False)
    columns: list[tuple[int, ...]] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        found = ", ".join(f"{place} ({kind})" for place, kind in zip(self.places, self.kinds, strict=True))
        return f"ChangePoints({found or 'none'})"

    def table(self) -> dict[str, np.ndarray]:
        """Columns of numbers and words, a row a change.

        These are ``change``, ``kind``, ``score``, ``p_value``, ``columns``, and ``before`` and ``after``, means of the
        segments beside each change.

        The means have a column a column of the series, numbered if these are several.
        """
        bounds = np.concatenate([[0], self.places, [len(self.series)]]).astype(int)
        means = np.array([np.nanmean(self.series[a:b], axis=0) for a, b in pairwise(bounds)])
        out = {"change": self.places, "kind": self.kinds, "score": self.scores[self.places]}
        if self.p_values is not None:
            out["p_value"] = self.p_values
        if self.columns is not None:
            out["columns"] = np.array([", ".join(map(str, some)) for some in self.columns], dtype=object)
        for j in range(self.series.shape[1]):
            label = "" if self.series.shape[1] == 1 else f"_{j}"
            out |= {f"before{label}": means[:-1, j], f"after{label}": means[1:, j]}
        return out

    def plot(self) -> Figure:
        """Draw the series with its changes, and the score curve; see :func:`isopleth.plotting.plot_change_points`."""
        from isopleth.plotting import plot_change_points

        return plot_change_points(self)
