"""Colours and letters of all pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MASSES = (0.5, 0.8, 0.95, 0.99)
# Okabe and Ito's colours are told apart by readers with any kind of colour vision, and in grey.
BLUE, VERMILLION, GREY, BLACK = "#0072B2", "#D55E00", "#7A7A7A", "#000000"
_PALEST, _DEEPEST = (0xEA, 0xF3, 0xFA), (0x8F, 0xBE, 0xDD)


def fills(count: int) -> list[str]:
    """Blues of `count` nested regions, from the outermost, which is the palest, to the innermost."""
    shades = np.linspace(_PALEST, _DEEPEST, max(count, 2))[-count:]
    return ["#{:02X}{:02X}{:02X}".format(*shade) for shade in shades.round().astype(int)]


def column_label(name: str, longest: int = 60) -> str:
    """The name of a column as letters on one line, shortened: dollars, as in prices, would begin a formula."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return (shown if len(shown) <= longest else f"{shown[: longest - 3]}...").replace("$", r"\$")


def percent(share: float) -> str:
    """A share in percent with the digits it has: 0.995 is no 100 %."""
    return f"{100 * share:.6g}%"


def new_figure(width: float, height: float) -> Figure:
    """A figure without pyplot: no window opens, and no display is needed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    return require("matplotlib.figure", "plot", "Plotting").Figure(figsize=(width, height), layout="constrained")


def given_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes to draw on."""
    return new_figure(width, height).subplots() if ax is None else ax


def halo() -> list[Any]:
    """White round letters, which keeps them legible among dots."""
    return [require("matplotlib.patheffects", "plot", "Plotting").withStroke(linewidth=2.5, foreground="white")]


def write_note(axes: Axes, lines: list[str], *, over_dots: bool = False) -> None:
    """Write small `lines` in the lower right corner, with room for dots that stand on the axis."""
    style: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 8, "zorder": 6, "path_effects": halo()}
    axes.text(0.99, 0.07 if over_dots else 0.01, "\n".join(lines), transform=axes.transAxes, **style)


def beyond_frame(count: int) -> list[str]:
    """What is to be said about so many dots that are drawn at the edge."""
    return [f"{count:,} beyond the frame, drawn at its edge"] * bool(count)
