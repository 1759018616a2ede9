"""Pictures become files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from isopleth.errors import require
from isopleth.io.atomic import atomic_write, check_target
from isopleth.io.writing import check_suffix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_figure_target(path: str | os.PathLike[str]) -> None:
    """Find out before the work whether :func:`save_figure` will be able to write `path`.

    Parameters
    ----------
    path : path-like
        The file.

    Raises
    ------
    InputError
        If the suffix is none of .png, .svg, .pdf or the file cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    check_suffix(path, FIGURE_SUFFIXES)
    check_target(path)
    require("matplotlib", "plot", "Plotting")


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure; that of axes `ax` is ``ax.figure``.
    path : path-like
        The file; the suffix decides the format.

    Raises
    ------
    InputError
        If the suffix is none of these or the file cannot be written.
    """
    suffix = check_suffix(path, FIGURE_SUFFIXES)
    with atomic_write(path) as file:
        figure.savefig(file, format=suffix.removeprefix("."), dpi=200)
