"""Plot the held-out losses of a search for a length scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.core.errors import require
from isopleth.results.figures import BLUE, GREY, VERMILLION, given_or_new, halo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The frame reaches so many times as high above the best loss as that of the largest scale: losses of small scales can
# be thousands of times larger.
_HEADROOM = 2.0
# Nats above the best candidate of a mixture that are shown.
_SHOWN_NATS = 3.0


def plot_search(path: Any, ax: Axes | None = None) -> Axes:
    """Draw the held-out losses of a fit; the method ``plot`` of :class:`~isopleth.density.Choices` describes them."""
    ax = given_or_new(ax, 4.2)
    if path.weights is not None:
        return _draw_mixture(path, ax)
    finite = np.isfinite(path.losses)
    low, high = _frame(path, finite)
    style: dict[str, Any] = {
        "fmt": "o-",
        "color": BLUE,
        "markersize": 4,
        "linewidth": 0.9,
        "elinewidth": 0.9,
        "capsize": 2,
    }
    # NaN breaks the line: nothing is known between a loss and an infinite one.
    losses, errors = np.where(finite, path.losses, np.nan), np.nan_to_num(path.standard_errors)
    ax.errorbar(path.factors, losses, errors, **style, label="loss, one standard error each way")
    ax.axvline(path.best_factor, color=VERMILLION, linewidth=0.9, linestyle="--")
    best: dict[str, Any] = {
        "color": VERMILLION,
        "markersize": 7,
        "zorder": 4,
        "label": f"chosen: {path.best_factor:.4g}",
    }
    ax.plot([path.best_factor], [path.losses[path.best_index]], "o", **best)
    ax.set_ylim(low, high)
    _mark(ax, path.factors[finite & (path.losses > high)], 0.97, "^", "loss beyond the frame")
    _mark_infinite(ax, path)
    _mark(ax, path.factors[np.isnan(path.losses)], 0.03, "|", "not computed")
    _label(ax, path.criterion)
    return ax


# Area of the dot of a candidate that has all the weight, in square points, and of one that has none.
_LARGEST_DOT, _LEAST_DOT = 300.0, 4.0


def _draw_mixture(path: Any, ax: Axes) -> Axes:
    """Draw the losses of the candidates of a mixture, a line for each frame, with dots whose area is the weight."""
    frames = list(dict.fromkeys(path.frames))
    for name in frames:
        own = np.array([frame == name for frame in path.frames]) & ~np.isnan(path.factors)
        (line,) = ax.plot(path.factors[own], path.losses[own], linewidth=0.9, label=name)
        areas = _LEAST_DOT + _LARGEST_DOT * path.weights[own]
        ax.scatter(path.factors[own], path.losses[own], areas, color=line.get_color())
        normals = np.array([frame == name for frame in path.frames]) & np.isnan(path.factors)
        for loss, weight in zip(path.losses[normals], path.weights[normals], strict=True):
            label = f"normal densities in {name}: weight {weight:.0%}"
            ax.axhline(loss, color=line.get_color(), linewidth=0.9, linestyle="--", label=label)
    finite = path.losses[np.isfinite(path.losses)]
    ax.set_ylim(finite.min() - 0.05, min(finite.max(), finite.min() + _SHOWN_NATS) + 0.05)
    _label(ax, path.criterion)
    ax.set_title("Candidates of the mixture; the size of a dot is its weight", loc="left", fontsize=10)
    return ax


def _frame(path: Any, finite: np.ndarray) -> tuple[float, float]:
    """Return the smallest and largest loss to show."""
    losses = path.losses[finite]
    best = path.losses[path.best_index]
    error = np.nan_to_num(path.standard_errors[path.best_index])
    place = int(np.sum(finite[: path.best_index]))
    # If the largest scale is the best, the next smaller one shows how steep the losses are.
    beside = losses[-1] if place < len(losses) - 1 else losses[max(place - 1, 0)]
    span = max(beside - best, error)
    if not span > 0:  # the only loss, or all are equal
        return best - 1.0, best + 1.0
    high = min(best + _HEADROOM * span, losses.max() + 0.2 * span)
    lowest = min(losses.min(), best - error)
    # Below the dots there is space for the marks of scales that were left out.
    return lowest - 0.15 * (high - lowest), high


def _mark(axes: Axes, factors: np.ndarray, height: float, marker: str, label: str) -> None:
    """Mark scales at a given height of the frame."""
    if len(factors):
        heights = np.full(len(factors), height)
        style: dict[str, Any] = {"color": GREY, "linestyle": "none", "markersize": 6, "label": label}
        axes.plot(factors, heights, marker=marker, transform=axes.get_xaxis_transform(), **style)


def _mark_infinite(axes: Axes, path: Any) -> None:
    """Mark the scales whose loss is infinite."""
    infinite = np.isposinf(path.losses)
    reason = "" if path.criterion == "likelihood" else "f ≤ 0 or "
    _mark(
        axes,
        path.factors[infinite],
        0.97,
        "x",
        f"infinite loss: {reason}no finite loss\nat this share of held-out rows",
    )
    style: dict[str, Any] = {"ha": "center", "va": "top", "rotation": 90, "fontsize": 8, "color": GREY}
    for factor, share in zip(path.factors[infinite], path.share_not_positive[infinite], strict=True):
        text = axes.text(factor, 0.93, f"{share:.2%}", transform=axes.get_xaxis_transform(), **style)
        text.set_path_effects(halo())


def _label(axes: Axes, criterion: str) -> None:
    """Label the axes of the picture of a search."""
    loss = "minus log density (nats)" if criterion == "likelihood" else "Hyvärinen loss"
    axes.set(xscale="log", xlabel="length scale, in multiples of the base scale", ylabel=f"held-out {loss}")
    axes.set_title(
        "Search for the length scale" + ", stable minimum" * (criterion == "stable_minimum"), loc="left", fontsize=10
    )
    ticker = require("matplotlib.ticker", "plot", "Plotting")
    # A grid seldom spans a power of ten, and multiples such as 0.5 and 2 are what people think in.
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.legend(frameon=False, fontsize=8)
