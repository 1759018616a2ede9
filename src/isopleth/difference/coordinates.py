"""Linear coordinates of a density difference, in which columns that go together within the samples are uncorrelated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from isopleth.core.covariance import ledoit_wolf
from isopleth.core.scales import ScaledColumns, bounded
from isopleth.difference.grids import clipped, spread_within


@dataclass(frozen=True)
class BalancedColumns(ScaledColumns):
    r"""Map x -> z / scale with :math:`z_j = c\, s_j \sum_k (R^{-1/2})_{jk} (x_k - \text{shift}_k) / s_k`.

    R is the correlation matrix within the samples and s the standard deviations. The factor :math:`c = \det(R)^{1/2d}` makes the
    determinant 1, so that densities and their L2 distances in z are those in x.
    """

    unit: np.ndarray  # (d,): s
    mixing: np.ndarray  # (d, d): c times the symmetric inverse root of R

    def centre(self, X: np.ndarray) -> np.ndarray:
        """Return the coordinates z of rows, in the units of the columns."""
        with np.errstate(over="ignore"):
            return (bounded(super().centre(X) / self.unit) @ self.mixing) * self.unit

    def leave(self, Z: np.ndarray, fill: np.ndarray) -> np.ndarray:
        """Return points in the units of the data; `fill` is a row with the values of the dropped columns."""
        X = np.tile(fill, (len(Z), 1))
        X[:, self.keep] = np.linalg.solve(self.mixing, (Z * self.scale / self.unit).T).T * self.unit + self.shift
        return X

    def widths(self, scale: np.ndarray) -> np.ndarray:
        """Return the standard deviation along each column of the data of a kernel with length scales `scale` in z."""
        axes = np.linalg.solve(self.mixing, np.diag(scale / self.unit))
        return np.asarray(np.linalg.norm(axes, axis=1) * self.unit)

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Return length scales `values` in z as widths of the kernel by column of the data, NaN for dropped columns."""
        return super().by_column(self.widths(values))


# Smallest eigenvalue of correlations: rows that lie in a plane have no spread beside it, and their coordinates stay finite.
_LEAST_VARIANCE = 1e-8

# Range of a column less its means that is rounding, in units of its spread.
_ROUNDING = 1e-12


def balanced(
    frame: ScaledColumns, rows: np.ndarray, weights: np.ndarray, numbers: np.ndarray | None = None
) -> ScaledColumns:
    """Return coordinates in which the covariances within the samples, shrunk and averaged, have no correlations.

    Columns that are not in the mask `numbers`, those of categories, stay as they are. So do all columns if the shrinkage by
    Ledoit and Wolf's rule leaves no correlation.
    """
    centred = frame.centre(rows)
    unit, within, counts = _within(centred, weights)
    varying = within.any(axis=0) if numbers is None else within.any(axis=0) & numbers
    here = np.flatnonzero(varying)
    if len(here) < 2:
        return frame
    R, shrunk = ledoit_wolf(within[:, here], counts / counts.sum(), float(counts.sum()))
    if shrunk >= 1.0:
        return frame
    values, vectors = eigh(R)
    values = np.maximum(values, _LEAST_VARIANCE)
    mixing = np.eye(len(unit))
    mixing[np.ix_(here, here)] = ((vectors / np.sqrt(values)) @ vectors.T) * np.exp(0.5 * np.log(values).mean())
    return BalancedColumns(frame.keep, frame.shift, frame.scale, unit, mixing)


def _within(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the spread of columns, the rows of both samples less their means at unit deviation, and how often each counts.

    Far values are clipped, as for length scales. Columns that are constant in both samples are 0.
    """
    unit, parts, counts = spread_within(rows, weights), [], []
    unit[unit == 0.0] = 1.0  # coordinates of a word that no row has
    for weight in weights.T:
        own = weight > 0
        values = clipped(rows[own] / unit, weight[own])
        parts.append(values - weight[own] @ values / weight[own].sum())
        counts.append(weight[own])
    within, count = np.vstack(parts), np.concatenate(counts)
    within[:, np.ptp(within, axis=0) <= _ROUNDING] = 0.0
    size = np.sqrt(count @ within**2 / count.sum())
    return unit, within / np.where(size > 0.0, size, 1.0), count
