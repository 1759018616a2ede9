"""Choose the one or two columns of a density that a picture shows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isopleth.backend import to_numpy
from isopleth.density.search import Search
from isopleth.errors import InputError
from isopleth.frames import BoundedMap
from isopleth.tables.checks import enter

# Of the range of the centres: no nearer to a bound is a density looked at, which on the bound itself is none.
_NEAREST = 1e-3


@dataclass(frozen=True, eq=False)
class Section:
    """Fitted density of one or two columns of `whole`, with their bounds."""

    density: Any
    whole: Any
    columns: list[int]
    names: list[str]
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, density: Any, columns: Any) -> Self:
        """Return the density itself if `columns` are all it has, and one of the same kind fitted to them if it has more."""
        check_is_fitted(density, "centers_")
        names = _names(density)
        chosen = _chosen(columns, names)
        for j in chosen:
            if np.ptp(to_numpy(density.centers_)[:, j]) == 0:
                raise InputError(f"{names[j]} is constant, so there is no density of it to draw; choose other columns.")
        bounds = BoundedMap.of(density.get_params(deep=False).get("bounds"), names, names)
        low, high = bounds.low[chosen], bounds.high[chosen]
        whole = sorted(chosen) == list(range(len(names)))
        drawn = density if whole else _refitted(density, chosen, list(zip(low, high, strict=True)))
        return cls(drawn, density, chosen, [names[j] for j in chosen], low, high)

    @property
    def centers(self) -> np.ndarray:
        return np.asarray(to_numpy(self.whole.centers_)[:, self.columns])

    def rows(self, rows: Any) -> np.ndarray:
        """Return the chosen columns of `rows`, or an empty array for None."""
        if rows is None:
            return np.empty((0, len(self.columns)))
        return enter(self.whole, rows).rows[:, self.columns]

    def level_set(self, masses: np.ndarray) -> np.ndarray:
        """Return the log-density thresholds of the regions that hold `masses`."""
        return self.density.level_set(masses)

    def within_bounds(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of the frame, cut off at the bounds."""
        return np.maximum(low, self.low), np.minimum(high, self.high)

    def score_samples(self, points: np.ndarray) -> np.ndarray:
        """Return the log density at points of the chosen columns; points on a bound are moved just inside."""
        near = _NEAREST * np.ptp(self.centers, axis=0)
        inside = np.clip(points, self.low + near, self.high - near)
        in_order = inside[:, np.argsort(self.columns)] if self.density is self.whole else inside
        with warnings.catch_warnings():
            # A grid has no names; that is no slip of the user, whose density may have been fitted to a data frame.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return self.density.score_samples(in_order)


def _names(density: Any) -> list[str]:
    given = getattr(density, "feature_names_in_", None)
    return [f"column {j}" for j in range(density.n_features_in_)] if given is None else [str(name) for name in given]


def _chosen(columns: Any, names: list[str]) -> list[int]:
    """Return the positions of the chosen columns."""
    if columns is None:
        if len(names) > 2:
            raise InputError(
                f"columns = None: the density has {len(names)} columns; name or number the one or two of them to draw."
            )
        return list(range(len(names)))
    asked = [columns] if isinstance(columns, str) or np.ndim(columns) == 0 else list(columns)
    if len(asked) not in (1, 2):
        raise InputError(f"columns = {columns!r}: expected one or two columns, got {len(asked)}.")
    places = [_place(column, names) for column in asked]
    if len(set(places)) < len(places):
        raise InputError(f"columns = {columns!r}: the same column twice; name two that differ, or one.")
    return places


def _place(column: Any, names: list[str]) -> int:
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    listed = ", ".join(repr(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(
        f"columns: there is no column {column!r}; expected a number from 0 to {len(names) - 1} or one of {listed}."
    )


def _refitted(density: Any, columns: list[int], bounds: list[tuple[float, float]]) -> Any:
    """Fit a density of the same kind to these columns of the centres of `density`."""
    settings = density.get_params(deep=False)
    own = {"length_scale": _own(settings["length_scale"], columns), "bounds": bounds}
    fresh = clone(density).set_params(**{name: own[name] for name in own if settings.get(name) is not None})
    return fresh.fit(to_numpy(density.centers_)[:, columns], sample_weight=density.weights_)


def _own(length_scale: Any, columns: list[int]) -> Any:
    """Return the part of a length scale, or of the base of a search, that belongs to these columns."""
    if isinstance(length_scale, Search):
        return replace(length_scale, base=_own(length_scale.base, columns))
    one_for_all = isinstance(length_scale, str) or np.ndim(length_scale) == 0
    return length_scale if one_for_all else np.asarray(to_numpy(length_scale))[columns]
