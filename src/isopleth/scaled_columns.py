"""Columns shifted and scaled, so that the length scale in their coordinates is 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

# Coordinates are limited to this, so that no square of them overflows.
FARTHEST = 1e150


def bounded(z: np.ndarray) -> np.ndarray:
    """Limit coordinates, in the memory of `z`, so that no square overflows."""
    return np.clip(z, -FARTHEST, FARTHEST, out=z)


def medians(X: np.ndarray) -> np.ndarray:
    """Return the median of each column, bit for bit that of np.median, which is several times slower."""
    half = len(X) // 2
    ordered = np.partition(X.T, half, axis=1)
    upper = ordered[:, half].copy()  # a copy, so that `ordered` can be freed
    return upper if len(X) % 2 else 0.5 * ordered[:, :half].max(axis=1) + 0.5 * upper


def deviations(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted standard deviation of each column, for numbers of any size."""
    share = weights / weights.sum()
    largest = np.abs(rows).max(axis=0)  # squares of the numbers themselves may over- or underflow
    unit = rows / np.where(largest > 0.0, largest, 1.0)
    return np.asarray(largest * np.sqrt(share @ (unit - share @ unit) ** 2))


@dataclass(frozen=True)
class ScaledColumns:
    """Map x -> (x - shift) / scale of the columns that vary."""

    keep: np.ndarray  # (n_features,): mask of the columns that vary; constant ones have no density and are dropped
    # (d,): centre of the kept columns. Far from the centre, squared distances by products lose digits
    shift: np.ndarray
    scale: np.ndarray  # (d,): length scale of each kept column, in the units of the data

    @classmethod
    def centred(cls, X: np.ndarray, keep: np.ndarray) -> Self:
        """Return the frame of the kept columns at unit scale about their median, which a single far row hardly changes."""
        shift = medians(X[:, keep])
        return cls(keep, shift, np.ones(len(shift)))

    def scaled(self, scale: np.ndarray) -> ScaledColumns:
        """Return the frame with the same centre and another length scale."""
        return ScaledColumns(self.keep, self.shift, scale)

    def take(self, columns: np.ndarray) -> ScaledColumns:
        """Return the frame of some of the columns of the data."""
        place = (np.cumsum(self.keep) - 1)[columns]
        kept = place[self.keep[columns]]
        return ScaledColumns(self.keep[columns], self.shift[kept], self.scale[kept])

    @property
    def dim(self) -> int:
        """Number of kept columns."""
        return int(self.shift.shape[0])

    @property
    def log_volume(self) -> float:
        """Sum of the logarithms of the scales, which log densities in the units of the data lose."""
        return math.fsum(np.log(self.scale))

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Return `values` of the kept columns as one for each column of the data, NaN for dropped columns."""
        out = np.full(len(self.keep), np.nan)
        out[self.keep] = values
        return out

    def centre(self, X: np.ndarray) -> np.ndarray:
        """Return the kept columns less their centre, in the units of the data."""
        return X[:, self.keep] - self.shift

    def enter(self, X: np.ndarray) -> np.ndarray:
        """Return points in frame coordinates, limited so that no square overflows."""
        with np.errstate(over="ignore"):
            return bounded(self.centre(X) / self.scale)

    def leave(self, Z: np.ndarray, fill: np.ndarray) -> np.ndarray:
        """Return points in the units of the data; `fill` is a row with the values of the dropped columns."""
        X = np.tile(fill, (len(Z), 1))
        X[:, self.keep] = Z * self.scale + self.shift
        return X
