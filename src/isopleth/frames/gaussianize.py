"""Gaussianization: marginal maps and whitening in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.errors import InputError
from isopleth.frames.base import Frame, FrameMap
from isopleth.frames.compose import ComposedMap
from isopleth.frames.linear import RIDGE, Whiten
from isopleth.frames.marginal import Marginal

# Columns of inner layers have unit deviation, except directions in which the rows do not vary. These are not stretched further.
_LEAST_DEVIATION = 0.1


@dataclass(frozen=True)
class Gaussianize(Frame):
    """Frame in which rows are approximately standard normal: :class:`Marginal` and then :class:`Whiten`, several times.

    With one layer ("gp1"), conditional and marginal densities of normal kernels keep closed forms; with more they do not.
    The map of k layers is the :class:`ComposedMap` of 2 k maps, of which the first 2 j are the map of j layers.

    Parameters
    ----------
    layers : int, default=1
        Number of times.
    ridge : float, default=1e-14
        Ridge of :class:`Whiten`.

    Raises
    ------
    InputError
        If `layers` is not a positive integer.

    References
    ----------
    .. [1] V. Laparra, G. Camps-Valls and J. Malo, "Iterative Gaussianization: from ICA to random rotations", IEEE Transactions on
       Neural Networks 22, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.frames import Gaussianize
    >>> t = np.random.default_rng(0).uniform(-2, 2, size=200)
    >>> rows = np.column_stack([t, t**2 + 0.1 * t])
    >>> z = Gaussianize(layers=2).fit(rows, np.ones(200)).forward(rows)
    >>> bool(np.abs(np.cov(z.T, bias=True) - np.eye(2)).max() < 1e-3)
    True
    """

    layers: int = 1
    ridge: float = RIDGE

    def __post_init__(self) -> None:
        if isinstance(self.layers, bool) or not isinstance(self.layers, (int, np.integer)) or self.layers < 1:
            raise InputError(f"layers = {self.layers!r}: expected a positive integer.", parameter="layers")

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> ComposedMap:
        maps: list[FrameMap] = []
        for layer in range(self.layers):
            marginal = Marginal(_LEAST_DEVIATION if layer else 0.0)
            for frame in (marginal, Whiten(self.ridge, components=True, least_deviation=_LEAST_DEVIATION)):
                maps.append(frame.fit(rows, weights))
                rows = maps[-1].forward(rows)
        return ComposedMap(tuple(maps))
