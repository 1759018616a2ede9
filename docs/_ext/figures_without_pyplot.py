"""Pictures of examples whose figures were made without pyplot, as this library makes its own."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the new figures among an example's variables and return the lines that show them."""
    paths = []
    for value in list(block_vars["example_globals"].values()):
        figure = value.figure if isinstance(value, Axes) else value
        if not isinstance(figure, Figure) or hasattr(figure, "number") or getattr(figure, "_scraped", False):
            continue  # figures of pyplot have a number, and a scraper of their own
        figure._scraped = True
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=150)
        paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
