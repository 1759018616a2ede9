"""Write figures to files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isopleth.errors import DataWarning, require
from isopleth.tables.files import atomic_write, check_target
from isopleth.tables.write import check_suffix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_figure_target(path: str | os.PathLike[str]) -> None:
    """Check before the work whether :func:`save_figure` can write `path`.

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
    """Write a figure to a .png, .svg or .pdf file, completely or not at all.

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

    Warns
    -----
    DataWarning
        If the font lacks letters of the names in the picture.
    """
    suffix = check_suffix(path, FIGURE_SUFFIXES)
    with atomic_write(path) as file, _one_warning_for_letters():
        figure.savefig(file, format=suffix.removeprefix("."), dpi=200)


@contextmanager
def _one_warning_for_letters() -> Iterator[None]:
    """Repeat the warnings of the block, with those for letters that the font lacks combined into one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="Glyph .* missing from")
        yield
    others = [warning for warning in caught if "missing from" not in str(warning.message)]
    for warning in others:
        warnings.warn(warning.message, stacklevel=3)
    if len(others) < len(caught):
        said = "some letters of the picture are missing from its font and drawn as boxes: set matplotlib's font.family."
        warnings.warn(said, DataWarning, stacklevel=4)
