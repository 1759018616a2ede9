"""How the pages are built: offline, warnings as errors, every example run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
os.environ["PYTHONWARNINGS"] = "default"

import isopleth

project = "isopleth"
author = "The isopleth developers"
release = version = isopleth.__version__
copyright = author  # a year would make builds differ

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # copies MathJax into the pages, so that formulas need no network
    "myst_nb",  # runs the notebooks; CHANGELOG.md
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "architecture",
    "command_line",
    "initials",
    "machine_page",
    "measured",
    "which_tool",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "**/GALLERY_HEADER.rst",
    "gallery/*.ipynb",
]  # the gallery has pages of its own for its notebooks
default_role = "py:obj"
pygments_style = "sphinx"

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

html_theme = "pydata_sphinx_theme"
html_title = "isopleth"
html_short_title = "isopleth"
html_static_path = ["_static"]
html_css_files = ["isopleth.css"]
html_js_files = [
    ("search_ranking.js", {"defer": "defer"})
]  # runs after the search of Sphinx is defined, and before it is used
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "header_links_before_dropdown": 5,  # the five groups of pages
    "logo": {"text": "isopleth"},
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "navigation_depth": 2,
    "show_toc_level": 2,
}

autosummary_generate = True
# Libraries that adapters are for: the pages need their names only, and to install them took longer than all else.
autodoc_mock_imports = ["pyod", "quapy", "river", "skchange", "sktime"]
autodoc_typehints = "none"  # docstrings say types, and more: shapes and units
numpydoc_show_class_members = False  # the template lists methods
numpydoc_xref_param_type = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib", "figures_without_pyplot.scrape"),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "thumbnail_size": (880, 400),  # most pictures have panels side by side
    "min_reported_time": 10**6,  # times differ from build to build
    "write_computation_times": False,
    "reference_url": {},
}


def _is_explained_elsewhere(app: object, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out methods of classes that stand in for those of other libraries, and scikit-learn's of metadata routing."""
    stands_in = str(getattr(obj, "__module__", "")).startswith("sphinx.")
    return True if stands_in or re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", _is_explained_elsewhere)
