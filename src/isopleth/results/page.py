"""Write results as HTML pages that need no network: a template, its data, and the limit of their size."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.core.errors import InputError, require
from isopleth.io.output_files import atomic_write, check_suffix, check_target
from isopleth.results.charts import Chart, Series, outlines
from isopleth.results.text import cell_text, in_words

if TYPE_CHECKING:
    from isopleth.results.result import Content, Result, ShownTable

_SUFFIXES = (".html", ".htm")
# Bytes of a page. Pages that would be longer have fewer rows and shorter texts.
MOST_BYTES = 2_000_000
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
_VERSIONS = ("numpy", "scipy", "scikit-learn")
_SCRIPTS = ("chart.umd.min.js", "chartjs-plugin-zoom.min.js", "report.js")
# Cells of a table, and letters of a cell or of the text of a point, of a page in full length.
_MOST_CELLS, _LONGEST_CELL, _LONGEST_NOTE = 12_000, 160, 240
_LONG_CELL = 24
# Names of columns of one kind.
_MOST_NAMES = 100
_FEWEST_ROWS = 5


@dataclass(frozen=True)
class Context:
    """Further content of a page, beside the result: the command and the files, how columns were used, and further notes."""

    command: str | None = None
    source: str | None = None
    used: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def check_report_target(path: str | os.PathLike[str]) -> None:
    """Raise InputError before the work if a page cannot be written there, or its name does not end in .html or .htm."""
    check_suffix(path, _SUFFIXES)
    check_target(path)


def write_report(result: Result, path: str | os.PathLike[str], context: Context | None = None) -> None:
    """Write the page of a result, completely or not at all; raise InputError if that cannot be done."""
    check_report_target(path)
    content = _within_limit(result.content(), context or Context())
    with atomic_write(path) as file:
        file.write(content)


def _within_limit(page: Content, context: Context) -> bytes:
    """Return the page with as many rows as its largest size allows."""
    for share in _SHARES:
        content = render(page, context, share).encode("utf-8", "replace")
        if len(content) <= MOST_BYTES:
            return content
    raise InputError(
        f"the page has more than {MOST_BYTES // 1_000_000} MB even without most rows; shorten the names of columns."
    )


@cache
def _asset(name: str) -> Any:
    markup = require("markupsafe", "plot", "A page").Markup
    return markup(files("isopleth.results").joinpath("assets", name).read_text(encoding="utf-8"))


@cache
def _template() -> Any:
    """Return the template of pages."""
    # Imported late: only pages need it.
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(_asset("page.html"), globals={"asset": _asset})


def render(page: Content, context: Context | None = None, share: float = 1.0) -> str:
    """Return a page as HTML, with this share of the cells of tables, of their longest text and of the text of points."""
    context = context or Context()
    used = dict(context.used) or page.used
    data = json.dumps(
        [_chart_data(chart, share) for chart in page.charts], separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return _template().render(
        page=page,
        tables=[_table(table, share) for table in page.tables],
        charts=page.charts,
        used=_kinds(used),
        about=context.notes,
        details=_details(context),
        data=_safe(data),
        scripts=_SCRIPTS,
    )


def _details(context: Context) -> dict[str, str]:
    """Return what a page says of its making: command, date, versions and files."""
    import isopleth

    versions = [f"isopleth {isopleth.__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in _VERSIONS]
    details = {
        "Command": context.command or "report() of the result, in Python",
        "Date": date.today().isoformat(),
        "Versions": ", ".join(versions),
    }
    if context.source:
        details["Files"] = context.source
    return details | {"Pictures": "Chart.js 4.6.1 and chartjs-plugin-zoom 2.2.0 (MIT licence), in this file"}


def _safe(data: str) -> Any:
    """Return JSON that cannot end the script element that it stands in."""
    import markupsafe

    return markupsafe.Markup(data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shown_rows(table: ShownTable, share: float) -> int:
    """Return how many rows of a table a page has."""
    return min(len(table), max(_FEWEST_ROWS, int(share * _MOST_CELLS / max(1, len(table.columns)))))


def _table(table: ShownTable, share: float) -> dict[str, Any]:
    """Return head, rows and sentence of a table; a cell is its kind, its text and, where that has fewer digits, the number."""
    rows = shown_rows(table, share)
    longest = max(12, int(share * _LONGEST_CELL))
    known = [[cell for cell in column[:rows] if cell is not None] for column in table.columns.values()]
    numeric = [bool(cells) and all(map(_is_number, cells)) for cells in known]
    cells = [
        [_cell(cell, n, longest, name in table.computed) for cell in column[:rows]]
        for (name, column), n in zip(table.columns.items(), numeric, strict=True)
    ]
    total = max(table.total, len(table))
    some = f"The first {rows:,} of {total:,} rows. " if rows < total else ""
    return {
        "title": table.title,
        "about": f"{some}{table.about} The buttons in the head sort the rows.".strip(),
        "head": [(_cut(name, longest), n) for name, n in zip(table.columns, numeric, strict=True)],
        "rows": list(zip(*cells, strict=True)),
    }


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float, np.number)) and not isinstance(cell, (bool, np.bool_))


def _cell(cell: Any, numeric: bool, longest: int, computed: bool) -> tuple[str, str, str | None]:
    """Return the class, the text and the exact value of a cell of a table."""
    text = _cut(cell_text(cell), longest)
    if not numeric or cell is None:
        return "long" if len(text) > _LONG_CELL else "s", text, None
    if computed and "." in text:
        text = f"{cell:.4g}"
    exact = repr(cell.item() if isinstance(cell, np.generic) else cell)
    return "n", text, None if exact in (text, f"{text}.0") else exact


def _kinds(used: Mapping[str, str]) -> list[tuple[str, str]]:
    kinds: dict[str, list[str]] = {}
    for name, how in used.items():
        kinds.setdefault(how, []).append(_cut(name, _LONGEST_CELL))
    return [(_cut(how, 200), in_words(names, _MOST_NAMES)) for how, names in kinds.items()]


def _chart_data(chart: Chart, share: float) -> dict[str, Any]:
    """Return a chart as data for the script of the page."""
    longest = max(40, int(share * _LONGEST_NOTE))
    below = [] if chart.contours is None else outlines(chart.contours)
    return {
        "title": chart.title,
        "x": chart.x_label,
        "y": chart.y_label,
        "log": chart.log_x,
        "names": [_cut(name, 40) for name in chart.names],
        "lines": [[_place(place, "x" in chart.times), _cut(text, 80)] for place, text in chart.lines],
        "bands": [[_place(end, "x" in chart.times) for end in band] for band in chart.bands],
        "times": chart.times,
        "series": [_series_data(series, longest, chart.times) for series in [*below, *chart.series]],
    }


def _series_data(series: Series, longest: int, times: str) -> dict[str, Any]:
    places = {name: [_place(value, name in times) for value in getattr(series, name)] for name in ("x", "y", "low")}
    texts = {name: [_cut(text, longest) for text in getattr(series, name)] for name in ("notes", "labels")}
    return asdict(series) | places | texts | {"beyond": list(map(int, series.beyond))}


def _place(value: float, time: bool) -> float | None:
    """Return a number with seven digits, more than a screen shows, or seconds to the millisecond; None if it is not finite."""
    if not math.isfinite(value):
        return None
    number = round(float(value), 3) if time else float(f"{value:.7g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
