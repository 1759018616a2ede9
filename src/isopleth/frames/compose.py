"""Frames made of other frames: compositions, Gaussianization, named ones, and linear coordinates for Stein discrepancies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isopleth.core.arrays import Array, namespace
from isopleth.core.errors import InputError, whole_number
from isopleth.core.scales import deviations
from isopleth.frames.base import ColumnMap, Frame, FrameMap, MapAt, like
from isopleth.frames.linear import RIDGE, Scale, ScaleMap, Whiten
from isopleth.frames.marginal import Marginal
from isopleth.frames.sinh_arcsinh import SinhArcsinh


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
        whole_number("layers", self.layers)

    def fit(self, rows: np.ndarray, weights: np.ndarray) -> ComposedMap:
        maps: list[FrameMap] = []
        for layer in range(self.layers):
            marginal = Marginal(_LEAST_DEVIATION if layer else 0.0)
            for frame in (marginal, Whiten(self.ridge, components=True, least_deviation=_LEAST_DEVIATION)):
                maps.append(frame.fit(rows, weights))
                rows = maps[-1].forward(rows)
        return ComposedMap(tuple(maps))


# Frames by name.
FRAMES: dict[str, Frame] = {
    "scale": Scale(),
    "whiten": Whiten(),
    "smooth": Compose(SinhArcsinh(), Whiten()),
    "marginal": Marginal(),
    "gp1": Gaussianize(1),
    "gp2": Gaussianize(2),
    "gp4": Gaussianize(4),
}


def get_frame(frame: Any) -> Frame:
    """Return the frame of a name, or a frame itself.

    Raises
    ------
    InputError
        If it is neither.

    Examples
    --------
    >>> from isopleth.frames import get_frame
    >>> get_frame("scale")
    Scale()
    """
    if isinstance(frame, Frame):
        return frame
    if isinstance(frame, str) and frame in FRAMES:
        return FRAMES[frame]
    raise InputError(
        f"frame = {frame!r}: expected a Frame or one of {', '.join(map(repr, FRAMES))}.", parameter="frame"
    )


# Relative size of what is added to covariance matrices, which may be singular. In directions in which neither rows nor scores
# vary it decides alone, and the coordinates are scaled columns there.
_RIDGE = 1e-12


def stein_transforms(frame: Any, rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return matrices that take rows and scores into linear coordinates; constant columns stay as they are.

    In "balanced" coordinates z = J x, rows and scores have the same covariance matrix: with C and F those of rows and scores,
    :math:`M = J^\top J` solves M C M = F. For a normal density M is its precision matrix, whatever the rows. Affine maps of the
    rows change the coordinates by a rotation and a shift.
    """
    balanced = isinstance(frame, str) and frame == "balanced"
    found = None if balanced else get_frame(frame)
    varying = np.flatnonzero((rows != rows[:1]).any(axis=0))
    of_rows = np.eye(rows.shape[1])
    of_scores = of_rows.copy()
    if len(varying):
        block, weights = np.ix_(varying, varying), np.ones(len(rows))
        if found is None:
            of_rows[block], of_scores[block] = _balanced(rows[:, varying], scores[:, varying])
        else:
            map = found.fit(rows[:, varying], weights)
            if not map.affine:
                message = f"frame = {frame!r} is not affine; expected 'balanced', 'scale' or 'whiten'."
                raise InputError(message, parameter="frame")
            steps = np.eye(len(varying))
            of_rows[block] = map.pushforward(np.broadcast_to(rows[:1, varying], steps.shape), steps)
            of_scores[block] = np.linalg.inv(of_rows[block]).T
    return of_rows, of_scores


def _balanced(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return D^-1 L^-T S^(1/2) and D L S^(-1/2) for deviations D, C = L L^T and S^2 = L^T F L in scaled columns."""
    unit = deviations(rows, np.ones(len(rows)))
    C = _covariance(rows / unit)
    F = _covariance(scores * unit)
    L = np.linalg.cholesky(C)
    values, vectors = np.linalg.eigh(L.T @ F @ L)
    root = np.maximum(values, _RIDGE * values[-1]) ** 0.25
    return np.linalg.solve(L.T, vectors * root) / unit[:, None], unit[:, None] * (L @ (vectors / root))


def _covariance(rows: np.ndarray) -> np.ndarray:
    """Return the covariance matrix with a ridge, or the identity matrix if all rows are equal."""
    centred = rows - rows.mean(axis=0)
    C, d = centred.T @ centred / len(rows), rows.shape[1]
    size = np.trace(C) / d
    return C + _RIDGE * size * np.eye(d) if size > 0.0 else np.eye(d)


def divided_by(scale: np.ndarray) -> ScaleMap:
    """Return the map that divides columns by `scale`."""
    return ScaleMap(np.zeros(len(scale)), scale)


def chain(*maps: FrameMap) -> FrameMap:
    """Return maps one after the other as one; neighbours that scale columns are merged."""
    flat: list[FrameMap] = []
    for one in maps:
        for part in one.maps if isinstance(one, ComposedMap) else (one,):
            last = flat[-1] if flat else None
            if isinstance(last, ScaleMap) and isinstance(part, ScaleMap):
                flat[-1] = ScaleMap(last.shift + last.scale * part.shift, last.scale * part.scale)
            else:
                flat.append(part)
    return flat[0] if len(flat) == 1 else ComposedMap(tuple(flat))
