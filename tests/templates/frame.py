"""Template of a frame. Copy this file to where you need it, and replace what is marked `todo`.

It is a complete frame, a logarithmic map of positive columns, so that each method shows a formula that is right.
``tests/frames/contract.py`` has what every frame must keep: `check_frame` checks a frame that takes all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth import InputError
from isopleth.frames import ColumnMap, Frame


@dataclass(frozen=True)
class FrameTemplateMap(ColumnMap):
    r"""todo: formula of the map, :math:`z = \log(1 + x/c)`.

    todo: If a coordinate depends on several columns, inherit from `FrameMap`, whose docstrings say what to define.

    Parameters
    ----------
    unit : array of shape (d,)
        todo: what :meth:`FrameTemplate.fit` has found; arrays and numbers only, so that models with the map can be saved.
    """

    unit: np.ndarray

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.unit)

    def forward(self, X: np.ndarray) -> np.ndarray:
        """todo: T(x)."""
        return np.log1p(X / self.unit)

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        """todo: the rows x with T(x) = z."""
        return self.unit * np.expm1(Z)

    def log_slopes(self, X: np.ndarray) -> np.ndarray:
        """todo: log t_j'(x_j) of each cell, which defines the log-volume and the products with T'."""
        return -np.log(self.unit + X)

    def log_slope_gradients(self, X: np.ndarray) -> np.ndarray:
        """todo: the derivative of log t_j'(x_j)."""
        return -1.0 / (self.unit + X)

    def log_slope_curvatures(self, X: np.ndarray) -> np.ndarray:
        """todo: its second derivative; leave it out if scores must not be fitted in this frame."""
        return 1.0 / (self.unit + X) ** 2

    def take(self, columns: np.ndarray) -> FrameTemplateMap:
        """todo: the map of some of the columns."""
        return FrameTemplateMap(self.unit[columns])


@dataclass(frozen=True)
class FrameTemplate(Frame):
    """todo: what the frame is good for.

    Parameters
    ----------
    factor : float, default=1.0
        todo: parameters of the rule. Here c is this factor of the mean of each column.
    """

    factor: float = 1.0

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> FrameTemplateMap:
        """todo: find the parameters of the map. A row of weight 2 must count as two rows."""
        if (rows < 0.0).any():
            i, j = np.argwhere(rows < 0.0)[0]
            raise InputError(f"row {i} has {rows[i, j]!r} in column {j}; expected nonnegative numbers.")
        return FrameTemplateMap(self.factor * (weights / weights.sum()) @ rows)
