"""Pages as HTML: text is escaped, numbers are shortened, and nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import math
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from isopleth.report.page import Chart, Page, PageTable, Series
from isopleth.results import cell_text, in_words

_SCRIPTS = ("chart.umd.min.js", "chartjs-plugin-zoom.min.js", "report.js")
# Cells of a table, and letters of a cell or of the text of a point, of a page in full length.
_MOST_CELLS, _LONGEST_CELL, _LONGEST_NOTE = 12_000, 160, 240
_LONG_CELL = 24
# Names of columns of one kind.
_MOST_NAMES = 100
_FEWEST_ROWS = 5
# The page may run its own scripts, and load nothing at all.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


@cache
def _asset(name: str) -> str:
    return files("isopleth.report").joinpath("assets", name).read_text(encoding="utf-8")


def render(page: Page, details: dict[str, str], share: float = 1.0) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    page : Page
        The content.
    details : dict of str to str
        How the page was made: the command, versions and so on.
    share : float
        Share of the rows of a table and of the text of points that is kept, for pages that would be too long.
    """
    parts = [_summary(page), *(_table(table, k, share) for k, table in enumerate(page.tables[:1]))]
    parts += [_chart(chart, k) for k, chart in enumerate(page.charts)]
    parts += [_table(table, k, share) for k, table in enumerate(page.tables[1:], start=1)]
    parts += [_used(page.used), _notes(page.notes), _details(details)]
    data = json.dumps(
        [_chart_data(chart, share) for chart in page.charts], separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    scripts = "".join(f"<script>{_asset(name)}</script>\n" for name in _SCRIPTS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="color-scheme" content="light dark">
<title>{escape(page.title)}</title>
<style>{_asset("report.css")}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<main id="main">
{"".join(part for part in parts if part)}
</main>
<script type="application/json" id="charts">{_safe(data)}</script>
<!-- {_asset("LICENSES.txt")} -->
{scripts}</body>
</html>
"""


def _safe(data: str) -> str:
    """Return JSON that cannot end the script element that it stands in."""
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _summary(page: Page) -> str:
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in page.summary)
    button = '<button type="button" id="theme" hidden>Dark colours</button>'
    return f'<header><h1>{escape(page.title)}</h1>{button}</header>\n<section class="summary">{words}</section>\n'


def shown_rows(table: PageTable, share: float) -> int:
    """Return how many rows of a table a page has."""
    there = max((len(column) for column in table.columns.values()), default=0)
    return min(there, max(_FEWEST_ROWS, int(share * _MOST_CELLS / max(1, len(table.columns)))))


def _table(table: PageTable, number: int, share: float) -> str:
    rows = shown_rows(table, share)
    if not rows:
        return ""
    longest = max(12, int(share * _LONGEST_CELL))
    numeric = [all(_is_number(cell) for cell in column[:rows]) for column in table.columns.values()]
    head = "".join(
        f'<th scope="col"{" class=n" if n else ""}><button type="button">{escape(_cut(name, longest))}</button></th>'
        for name, n in zip(table.columns, numeric, strict=True)
    )
    cells = [
        [_cell(cell, n, longest, name in table.computed) for cell in column[:rows]]
        for (name, column), n in zip(table.columns.items(), numeric, strict=True)
    ]
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    some = f"The first {rows:,} of {table.total:,} rows. " if rows < table.total else ""
    about = f"{some}{table.about} The buttons in the head sort the rows.".strip()
    return f"""<section><h2 id="t{number}">{escape(table.title)}</h2><p class="about">{escape(about)}</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="t{number}"><table><thead><tr>{head}</tr></thead>
<tbody>{body}</tbody></table></div><p class="about printed">Printed are at most the first 100 rows and ten columns.</p></section>
"""


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float, np.number)) and not isinstance(cell, (bool, np.bool_))


def _cell(cell: Any, numeric: bool, longest: int, computed: bool) -> str:
    text = _cut(cell_text(cell), longest)
    if not numeric:
        return f"<td class=long>{escape(text)}</td>" if len(text) > _LONG_CELL else f"<td class=s>{escape(text)}</td>"
    if computed and "." in text:
        text = f"{cell:.4g}"
    # Sorting uses the number itself where the text has fewer digits.
    exact = repr(cell.item() if isinstance(cell, np.generic) else cell)
    return (
        f"<td class=n>{text}</td>"
        if exact == text or exact == f"{text}.0"
        else f"<td class=n data-v={exact}>{text}</td>"
    )


def _chart(chart: Chart, number: int) -> str:
    height = f' style="height:{90 + 26 * len(chart.names)}px"' if chart.names else ""
    marks = f" Vertical lines: {'; '.join(text for _, text in chart.lines[:8])}." if chart.lines else ""
    return f"""<section class="picture"><h2 id="c{number}">{escape(chart.title)}</h2>
<p class="about">{escape(chart.about + marks)}</p>
<div class="canvas"{height}><canvas tabindex="0" role="img" aria-labelledby="c{number}"
aria-describedby="r{number}"></canvas></div>
<div class="tools"><button type="button" data-zoom="1.4">Zoom in</button><button type="button" data-zoom="0.7">Zoom out</button>
<button type="button" data-zoom="0">Whole picture</button></div>
<p class="reading" id="r{number}" aria-live="polite"></p></section>
"""


def _chart_data(chart: Chart, share: float) -> dict[str, Any]:
    longest = max(40, int(share * _LONGEST_NOTE))
    data: dict[str, Any] = {
        "title": chart.title,
        "x": chart.x_label,
        "y": chart.y_label,
        "log": chart.log_x,
        "names": [_cut(name, 40) for name in chart.names],
        "lines": [[_place(place, "x" in chart.times), _cut(text, 80)] for place, text in chart.lines],
        "times": chart.times,
    }
    return data | {"series": [_series_data(series, longest, chart.times) for series in chart.series]}


def _series_data(series: Series, longest: int, times: str) -> dict[str, Any]:
    return {
        "name": series.name,
        "x": [_place(value, "x" in times) for value in series.x],
        "y": [_place(value, "y" in times) for value in series.y],
        "low": [_short(value) for value in series.low],
        "style": series.style,
        "colour": series.colour,
        "notes": [_cut(note, longest) for note in series.notes],
        "strong": series.strong,
        "beyond": list(map(int, series.beyond)),
        "dashed": series.dashed,
    }


def _place(value: float, time: bool) -> float | None:
    """Return a number, or seconds since 1970 to the millisecond, as a picture shows them."""
    return round(float(value), 3) if time and math.isfinite(value) else _short(value)


def _short(value: float) -> float | None:
    """Return a number with seven digits, which is more than a screen shows; None if it is missing or infinite."""
    if not math.isfinite(value):
        return None
    number = float(f"{value:.7g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _used(used: dict[str, str]) -> str:
    if not used:
        return ""
    kinds: dict[str, list[str]] = {}
    for name, how in used.items():
        kinds.setdefault(how, []).append(_cut(name, _LONGEST_CELL))
    rows = "".join(
        f"<tr><td>{escape(_cut(how, 200))}</td><td>{escape(in_words(names, _MOST_NAMES))}</td></tr>"
        for how, names in kinds.items()
    )
    head = '<thead><tr><th scope="col">taken as</th><th scope="col">columns</th></tr></thead>'
    table = f'<div class="scroll" tabindex="0" role="region" aria-labelledby="used"><table>{head}<tbody>{rows}</tbody>'
    return f'<section><h2 id="used">What was taken as what</h2>{table}</table></div></section>\n'


def _notes(notes: list[str]) -> str:
    if not notes:
        return ""
    return f"<section><h2>How to read the numbers</h2><ul>{''.join(f'<li>{escape(n)}</li>' for n in notes)}</ul></section>\n"


def _details(details: dict[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in details.items())
    return f"<section><h2>How this page was made</h2><dl>{rows}</dl></section>\n"
