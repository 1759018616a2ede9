"""Define the colours and text styles of all pictures."""

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
    """Return blues for `count` nested regions, from the outermost (lightest) to the innermost."""
    shades = np.linspace(_PALEST, _DEEPEST, max(count, 2))[-count:]
    return ["#{:02X}{:02X}{:02X}".format(*shade) for shade in shades.round().astype(int)]


def column_label(name: str, longest: int = 60) -> str:
    """Return the name of a column, shortened to one line, with dollar signs escaped: they would begin a formula."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return (shown if len(shown) <= longest else f"{shown[: longest - 3]}...").replace("$", r"\$")


def percent(share: float) -> str:
    """Format a share in per cent with all its digits: 0.995 is not 100 %."""
    return f"{100 * share:.6g}%"


def new_figure(width: float, height: float) -> Figure:
    """Create a figure without pyplot: no window opens, and no display is needed.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    return require("matplotlib.figure", "plot", "Plotting").Figure(figsize=(width, height), layout="constrained")


def given_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes to draw on."""
    return new_figure(width, height).subplots() if ax is None else ax


def halo() -> list[Any]:
    """Draw a white outline around text, to keep it legible among dots."""
    return [require("matplotlib.patheffects", "plot", "Plotting").withStroke(linewidth=2.5, foreground="white")]


def write_note(axes: Axes, lines: list[str], *, over_dots: bool = False) -> None:
    """Write small `lines` in the lower right corner, above dots on the axis."""
    style: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 8, "zorder": 6, "path_effects": halo()}
    axes.text(0.99, 0.07 if over_dots else 0.01, "\n".join(lines), transform=axes.transAxes, **style)


def beyond_frame(count: int) -> list[str]:
    """Return the note about dots that are drawn at the edge of the frame."""
    return [f"{count:,} beyond the frame, drawn at its edge"] * bool(count)
