"""Plot densities: isopleths around given masses for two columns, a curve for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from isopleth.errors import InputError
from isopleth.plotting.columns import Section
from isopleth.plotting.style import (
    BLUE,
    MASSES,
    beyond_frame,
    column_label,
    fills,
    given_or_new,
    halo,
    label_places,
    percent,
    write_note,
)
from isopleth.plotting.view import View, draw_dots, robust_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 120
# Of its width, the frame grows by this at each side where the outermost isopleth runs out of it.
_STEP = 0.07
_MOST_STEPS = 10
# Nats below the peak at which a curve may end.
_TAIL = np.log(100.0)
# Nats below the outermost isopleth: between a number and minus infinity, no place of a line can be interpolated.
_FLOOR = 50.0


@dataclass(frozen=True, eq=False)
class Isopleths:
    """Increasing levels of a log density and the decreasing masses of their regions."""

    log_density: Callable[[np.ndarray], np.ndarray]
    levels: np.ndarray
    masses: np.ndarray

    @classmethod
    def of(cls, density: Any, masses: Sequence[float] | np.ndarray) -> Self:
        """Compute the isopleths of a fitted density of one or two columns.

        Raises
        ------
        InputError
            If `masses` are not between 0 and 1, or the density is 0 at all of them.
        """
        asked = np.atleast_1d(np.asarray(masses))
        if not asked.size:
            raise InputError("masses is empty; expected at least one number between 0 and 1.")
        levels, asked = np.asarray(density.level_set(asked)), -np.sort(-asked)
        # Rows that repeat much can give two masses one level, and a density can be 0 at the outermost.
        levels, first = np.unique(np.sort(levels), return_index=True)
        finite = np.isfinite(levels)
        if not finite.any():
            raise InputError(
                f"the density is 0 at the boundary of the regions of masses = {asked.tolist()}; fit with a larger length_scale."
            )
        return cls(density.score_samples, levels[finite], asked[first[finite]])

    def heights(self, points: np.ndarray) -> np.ndarray:
        """Return the log density at `points`, cut off a little below the lowest level."""
        return np.maximum(self.log_density(points), self.levels[0] - _FLOOR)

    @property
    def labels(self) -> list[str]:
        return [percent(mass) for mass in self.masses]


def plot_density(
    density: Any,
    columns: Any = None,
    masses: Sequence[float] = MASSES,
    rows: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a fitted density of one or two columns.

    For one column, the picture has its curve, and below it the regions of highest density that hold the stated masses; for two
    columns, the isopleths around these regions. If the density has further columns, a clone of the estimator, with the settings
    of the chosen columns, is fitted to these columns of the centres, with the weights of `density`, and drawn.

    Parameters
    ----------
    density : estimator
        A fitted density of this library.
    columns : str, int or sequence of one or two of these, optional
        Names or numbers of the columns to draw, the horizontal one first. None is all columns of a density that has one or
        two.
    masses : sequence of float, default=(0.5, 0.8, 0.95, 0.99)
        Masses of the regions, between 0 and 1.
    rows : array-like or data frame of shape (n_samples, n_features), optional
        Rows to draw as dots, with all the columns of `density`. Rows far beyond the centres are drawn at the edge of the
        frame. If there are more than 5,000 rows, 5,000 of them are drawn, chosen at random. A note in the picture says so.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. None makes a figure without pyplot, so that no window opens and no display is needed.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; their figure is ``ax.figure``, which :func:`save_figure` writes to a file. Where pyplot shall show the
        figure, pass `ax` from ``plt.subplots()``.

    Raises
    ------
    InputError
        If `columns` names none, a constant one or more than two, or is None where there are more; if `masses` are not
        between 0 and 1; if `rows` cannot be used.
    MissingExtraError
        If matplotlib is not installed.
    sklearn.exceptions.NotFittedError
        If `density` is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> from isopleth.plotting import plot_density
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> ax = plot_density(SOSREP().fit(X), masses=(0.5, 0.9), rows=X)
    >>> ax.get_xlabel(), sorted(text.get_text() for text in ax.texts if "%" in text.get_text())
    ('column 0', ['50%', '90%'])
    """
    section = Section.of(density, columns)
    points = section.rows(rows)
    ax = given_or_new(ax, 6.4, 4.8)
    isopleths = Isopleths.of(section, masses)
    low, high = _closing_frame(isopleths, section, *robust_range(np.concatenate([section.centers, points])))
    draw_isopleths(ax, isopleths, section.names, low, high)
    ax.set_title("Regions of highest density, by the mass they hold", loc="left", fontsize=10)
    view = View(points, section.names, low, high)
    notes = draw_dots(ax, view, np.arange(len(points))) if len(points) else []
    write_note(ax, notes + beyond_frame(view.outside), over_dots=len(section.names) == 1)
    return ax


def _closing_frame(
    isopleths: Isopleths, section: Section, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Enlarge the frame until the outermost isopleth closes inside it or at the bounds of the columns."""
    margin = 0.05 * (high - low)
    low, high = section.within_bounds(low - margin, high + margin)
    floor = isopleths.levels[0]
    if len(low) == 1:
        floor = min(floor, isopleths.heights(section.centers).max() - _TAIL)
    for _ in range(_MOST_STEPS):
        sides = np.array([[_reaches(isopleths, floor, low, high, j, end) for end in (0, 1)] for j in range(len(low))])
        step = _STEP * (high - low)
        before = low, high
        low, high = section.within_bounds(low - step * sides[:, 0], high + step * sides[:, 1])
        if np.array_equal(before, (low, high)):
            break
    return low, high


def _reaches(isopleths: Isopleths, floor: float, low: np.ndarray, high: np.ndarray, column: int, end: int) -> bool:
    """Return whether the log density exceeds `floor` somewhere on one edge of the frame."""
    edge = np.linspace(low, high, _GRID)
    edge[:, column] = (low, high)[end][column]
    return bool((isopleths.heights(edge) >= floor).any())


def draw_isopleths(axes: Axes, isopleths: Isopleths, names: list[str], low: np.ndarray, high: np.ndarray) -> None:
    """Draw the isopleths of a density of one or two columns between the corners `low` and `high`."""
    (_draw_curve if len(names) == 1 else _draw_lines)(axes, isopleths, low, high)
    axes.set_xlabel(column_label(names[0]))
    axes.set_ylabel("density" if len(names) == 1 else column_label(names[1]))


def _draw_lines(axes: Axes, isopleths: Isopleths, low: np.ndarray, high: np.ndarray) -> None:
    x, y = np.linspace(low, high, _GRID, axis=-1)
    height = isopleths.heights(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)).reshape(_GRID, _GRID)
    levels = isopleths.levels
    axes.contourf(x, y, height, levels=[*levels, np.inf], colors=fills(len(levels)))
    lines = axes.contour(x, y, height, levels=levels, colors=BLUE, linewidths=0.9, linestyles="solid", zorder=4)
    axes.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
    places = label_places(lines, low, high)
    if places:
        masses = dict(zip(levels, isopleths.labels, strict=True))
        for text in axes.clabel(lines, fmt=masses, fontsize=8, zorder=6, manual=places):
            text.set_path_effects(halo())


def _draw_curve(axes: Axes, isopleths: Isopleths, low: np.ndarray, high: np.ndarray) -> None:
    x = np.linspace(low[0], high[0], 4 * _GRID)
    height = isopleths.heights(x[:, None])
    for level, label, fill in zip(isopleths.levels, isopleths.labels, fills(len(isopleths.levels)), strict=True):
        axes.fill_between(x, np.exp(height), where=height >= level, color=fill, linewidth=0, label=label)
    axes.plot(x, np.exp(height), color=BLUE, linewidth=1.2)
    axes.legend(title="region holding", frameon=False, fontsize=8, title_fontsize=8)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(bottom=0.0)
