"""Write pages to files."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from isopleth.errors import InputError
from isopleth.report.pages import page_of
from isopleth.report.rendering import render
from isopleth.results import Result, own_version
from isopleth.tables.files import atomic_write, check_target
from isopleth.tables.write import check_suffix

_SUFFIXES = (".html", ".htm")
# Bytes of a page. Pages that would be longer have fewer rows and shorter texts.
MOST_BYTES = 2_000_000
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
_VERSIONS = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Context:
    """What a page says beside the result.

    Parameters
    ----------
    command : str, optional
        The command line that made it.
    source : str, optional
        Files that were read.
    used : mapping of str to str
        Columns and how they were used; by default those that the result knows.
    notes : list of str
        Further sentences on how to read the numbers.
    labels : tuple of str
        Names of the samples of a comparison.
    """

    command: str | None = None
    source: str | None = None
    used: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    labels: tuple[str, str] = ("X", "Y")


def check_report_target(path: str | os.PathLike[str]) -> None:
    """Check before the work whether a page can be written.

    Raises
    ------
    InputError
        If the name does not end in .html or .htm, or the file cannot be written.
    """
    check_suffix(path, _SUFFIXES)
    check_target(path)


def write_report(result: Result, path: str | os.PathLike[str], context: Context | None = None) -> None:
    """Write the page of a result, completely or not at all.

    Parameters
    ----------
    result : Result
        What a task returned.
    path : path-like
        The file, which ends in .html.
    context : Context, optional
        The command and the files, if there are any.

    Raises
    ------
    InputError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from isopleth import two_sample_test
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 50, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "result.html"
    ...     two_sample_test(X, Y, n_resamples=99, random_state=0).report(path)
    ...     path.stat().st_size < 2_000_000
    True
    """
    check_report_target(path)
    context = context or Context()
    page = page_of(result, context.labels)
    page = replace(page, used=dict(context.used) or page.used, notes=[*page.notes, *context.notes])
    content = _content(page, _details(context))
    with atomic_write(path) as file:
        file.write(content)


def _content(page: Any, details: dict[str, str]) -> bytes:
    for share in _SHARES:
        content = render(page, details, share).encode("utf-8", "replace")
        if len(content) <= MOST_BYTES:
            return content
    raise InputError(
        f"the page has more than {MOST_BYTES // 1_000_000} MB even without most rows; shorten the names of columns."
    )


def _details(context: Context) -> dict[str, str]:
    versions = [f"isopleth {own_version()}", f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in _VERSIONS]
    details = {"Command": context.command or "report() of the result, in Python", "Versions": ", ".join(versions)}
    if context.source:
        details["Files"] = context.source
    return details | {"Pictures": "Chart.js 4.6.1 and chartjs-plugin-zoom 2.2.0 (MIT licence), in this file"}
