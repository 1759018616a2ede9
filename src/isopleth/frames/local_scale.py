"""Frame that gives columns the same spread between near rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from isopleth.frames.base import Frame
from isopleth.frames.linear import Scale, ScaleMap

# Most rows whose pairs are compared, evenly spaced in their order.
_ROWS = 512

# About how many pairs decide, at least, among normal rows of many columns.
_PAIRS = 100.0

# Rows nearer than the root mean squared distance over the root of this count as equal.
_EQUAL = 1e6

# Near rows are found in columns of equal spread first, then in those that result. More steps changed scores little.
_STEPS = 2

# Smallest scale over the standard deviation, before all are multiplied by one number.
_LEAST = 1e-3


@dataclass(frozen=True)
class LocalScale(Frame):
    r"""Frame that divides each column by its spread between near rows.

    Clusters that are round in some units of the columns are round in this frame, whatever the units are; standard deviations of
    whole columns include the distances between clusters. The squared scale of a column is proportional to its mean squared
    difference over pairs of rows with the weights :math:`\exp(-b\,|z - z'|^2 / m)`, where m is the mean squared distance and
    :math:`b = \log(n^2/200)` for n distinct rows. The geometric mean of the scales is that of the standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import LocalScale
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(300, 2)) + rng.integers(2, size=300)[:, None] * [8.0, 0.0]  # two round clusters
    >>> scale = LocalScale().fit(rows, np.ones(300)).scale
    >>> bool(rows[:, 0].std() > 4 * rows[:, 1].std()), bool(scale[0] < 2 * scale[1])
    (True, True)
    """

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> ScaleMap:
        whole = Scale().fit(rows, weights)
        chosen = np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int)
        z, share = whole.forward(rows[chosen]), weights[chosen] / weights[chosen].sum()
        factor = np.ones(rows.shape[1])
        for _ in range(_STEPS):
            squares = _squared_differences(z, z / factor, share)
            factor = np.maximum(np.sqrt(squares / squares.max()), _LEAST)
            factor /= np.exp(np.log(factor).mean())
        return ScaleMap(whole.shift, whole.scale * factor)


def _squared_differences(z: np.ndarray, inside: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the squared differences of each column of `z`, summed over pairs of rows that are near in `inside`."""
    distances = squareform(pdist(inside, "sqeuclidean"))
    mean = share @ distances @ share
    one_over_n = share @ np.exp(-_EQUAL / mean * distances) @ share  # for n distinct rows of equal weight
    sharpness = max(0.0, -2.0 * np.log(one_over_n) - np.log(2.0 * _PAIRS))
    pairs = np.exp(-sharpness / mean * distances) * share * share[:, None]
    np.fill_diagonal(pairs, 0.0)  # they cancel, but for the rounding errors of far rows
    return np.maximum(np.sum(pairs, axis=1) @ (z * z) - np.einsum("ij,ij->j", z, pairs @ z), 0.0)
