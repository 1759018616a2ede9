"""Composition of frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isopleth.backend import Array, namespace
from isopleth.errors import InputError
from isopleth.frames.base import ColumnMap, Frame, FrameMap, MapAt, like


@dataclass(frozen=True)
class ComposedMap(FrameMap):
    """Maps one after the other.

    Parameters
    ----------
    maps : tuple of FrameMap
        The first map is applied first.
    """

    maps: tuple[FrameMap, ...]

    @property
    def dim(self) -> int:
        return self.maps[0].dim

    @property
    def affine(self) -> bool:  # type: ignore[override]
        return all(one.affine for one in self.maps)

    @property
    def by_columns(self) -> bool:  # type: ignore[override]
        return all(one.by_columns for one in self.maps)

    def forward(self, X: Array) -> Array:
        for one in self.maps:
            X = one.forward(X)
        return X

    def inverse(self, Z: Array) -> Array:
        for one in self.maps[::-1]:
            Z = one.inverse(Z)
        return Z

    def _stages(self, X: Array) -> list[Array]:
        """Return the rows that each map takes."""
        stages = [X]
        for one in self.maps[:-1]:
            stages.append(one.forward(stages[-1]))
        return stages

    def at(self, X: Array) -> MapAt:
        found = self.maps[0].at(X)
        for one in self.maps[1:]:
            found = found.then(one.at(found.rows))
        return found

    def log_volume(self, X: Array) -> Array:
        return self.at(X).log_volume

    def grad_log_volume(self, X: Array) -> Array:
        return self.at(X).grad_log_volume

    def pullback(self, X: Array, V: Array) -> Array:
        return self.at(X).pullback(V)

    def pushforward(self, X: Array, V: Array) -> Array:
        for one, rows in zip(self.maps, self._stages(X), strict=True):
            V = one.pushforward(rows, V)
        return V

    def laplacian_log_volume(self, X: Array) -> Array:
        return self._second_derivatives(X)[0]

    def laplacian(self, X: Array) -> Array:
        return self._second_derivatives(X)[1]

    def _second_derivatives(self, X: Array) -> tuple[Array, Array]:
        """Return the Laplacians of the log-volume and of the coordinates.

        Of affine maps, and of maps by columns with slopes t' and log-slopes l: with J and D the Jacobian and Laplacian of the
        coordinates so far and r the squared norms of the rows of J, the log-volume gains sum_j l_j'' r_j + l_j' D_j.
        """
        xp = namespace(X)
        volume = xp.zeros_like(X[:, 0])
        jacobian = xp.zeros_like(X)[:, :, None] + like(np.eye(self.dim), X)
        laplacian = xp.zeros_like(X)
        for one, rows in zip(self.maps, self._stages(X), strict=True):
            if one.affine:
                laplacian = one.pushforward(rows, laplacian)
                columns = [one.pushforward(rows, jacobian[:, :, i]) for i in range(self.dim)]
                jacobian = xp.stack(columns, axis=2)
                continue
            if not isinstance(one, ColumnMap):
                raise self._refusal()
            slope, bend = xp.exp(one.log_slopes(rows)), one.log_slope_gradients(rows)
            squares = xp.sum(jacobian**2, axis=2)
            volume = volume + xp.sum(one.log_slope_curvatures(rows) * squares + bend * laplacian, axis=1)
            laplacian = slope * (bend * squares + laplacian)
            jacobian = slope[:, :, None] * jacobian
        return volume, laplacian


@dataclass(frozen=True, init=False, repr=False)
class Compose(Frame):
    """Frames one after the other; each is fitted to the rows that the one before it has mapped.

    Parameters
    ----------
    *frames : Frame
        The first frame maps the rows as they are given.

    Examples
    --------
    >>> from isopleth.frames import Compose, Gaussianize, Scale
    >>> Compose(Scale(), Gaussianize(layers=2))
    Compose(Scale(), Gaussianize(layers=2, ridge=1e-14))
    """

    frames: tuple[Frame, ...]

    def __init__(self, *frames: Frame) -> None:
        bad = [one for one in frames if not isinstance(one, Frame)]
        if bad or not frames:
            raise InputError(
                f"frames = {frames!r}: expected one frame or more, such as Scale() or Whiten().", parameter="frames"
            )
        object.__setattr__(self, "frames", frames)

    def __repr__(self) -> str:
        return f"Compose({', '.join(map(repr, self.frames))})"

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> ComposedMap:
        maps: list[FrameMap] = []
        for one in self.frames:
            maps.append(one.fit(rows, weights))
            rows = maps[-1].forward(rows)
        return ComposedMap(tuple(maps))
