"""The frame of the data: shifted and scaled by column, so that inside one length scale, 1, serves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

FARTHEST = 1e150


def bounded(z: np.ndarray) -> np.ndarray:
    """Coordinates none of which is so large that its square overflows, in the memory of `z`."""
    return np.clip(z, -FARTHEST, FARTHEST, out=z)


def _medians(X: np.ndarray) -> np.ndarray:
    """Of each column, to the bit those of np.median: one order statistic is found several times as fast as its three at once."""
    half = len(X) // 2
    ordered = np.partition(X.T, half, axis=1)
    upper = ordered[:, half].copy()  # and not the whole of it
    return upper if len(X) % 2 else 0.5 * ordered[:, :half].max(axis=1) + 0.5 * upper


@dataclass(frozen=True)
class Frame:
    """The map x -> (x - shift) / scale of the columns that are kept.

    Parameters
    ----------
    keep : array of shape (n_features,), bool
        Columns that vary; constant ones say nothing and have no density.
    shift : array of shape (d,)
        Centre of the kept columns. Squared distances by products lose digits off-centre.
    scale : array of shape (d,)
        Length scale of each kept column, in the units of the data.
    """

    keep: np.ndarray
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def centred(cls, X: np.ndarray, keep: np.ndarray) -> Self:
        """Frame of the kept columns at unit scale, about their median, which one far row cannot take from the others."""
        shift = _medians(X[:, keep])
        return cls(keep, shift, np.ones(len(shift)))

    def scaled(self, scale: np.ndarray) -> Frame:
        """The same centre with another length scale."""
        return Frame(self.keep, self.shift, scale)

    @property
    def dim(self) -> int:
        """Number of kept columns."""
        return int(self.shift.shape[0])

    @property
    def log_volume(self) -> float:
        """What log densities pay for the scaling."""
        return math.fsum(np.log(self.scale))

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """`values` of the kept columns as one a column of the data, NaN for those that were dropped."""
        out = np.full(len(self.keep), np.nan)
        out[self.keep] = values
        return out

    def centre(self, X: np.ndarray) -> np.ndarray:
        """Kept columns about their centre, in the units of the data."""
        return X[:, self.keep] - self.shift

    def enter(self, X: np.ndarray) -> np.ndarray:
        """Points in frame coordinates, none so far that its square overflows."""
        with np.errstate(over="ignore"):
            return bounded(self.centre(X) / self.scale)

    def leave(self, Z: np.ndarray, fill: np.ndarray) -> np.ndarray:
        """Points in the units of the data; `fill` has a row with the values of the columns that were dropped."""
        X = np.tile(fill, (len(Z), 1))
        X[:, self.keep] = Z * self.scale + self.shift
        return X
