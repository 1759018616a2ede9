"""Names of frames."""

from __future__ import annotations

from typing import Any

from isopleth.errors import InputError
from isopleth.frames.base import Frame
from isopleth.frames.compose import Compose
from isopleth.frames.gaussianize import Gaussianize
from isopleth.frames.linear import Scale, Whiten
from isopleth.frames.marginal import Marginal
from isopleth.frames.sinh_arcsinh import SinhArcsinh

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
