"""Charts of a comparison: how much each column differs, and both samples in the columns that differ most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isopleth.core.p_values import LEVEL
from isopleth.results.charts import Chart, Series, compared, dots, robust_range, some
from isopleth.results.text import counted

if TYPE_CHECKING:
    from isopleth.tasks.two_sample.result import TwoSampleResult

_MOST_BARS, _MOST_HISTOGRAMS, _MOST_DOTS = 25, 6, 2000
# Of the largest excess of a sample at its rows: those where it is at least this are drawn strong.
_STANDING_OUT = 0.5


def charts(result: TwoSampleResult) -> list[Chart]:
    """Return the columns by how much they differ, and the columns that differ most, or else rows in two columns."""
    if not np.isfinite(result.witness.statistics).any():
        return []  # all rows are equal
    columns = result.changes(1.0)
    clear = [name for name, p in zip(columns["column"], columns["pvalue"], strict=True) if p <= LEVEL]
    bars = _columns_chart(columns)
    if not clear and result.problem.is_of_numbers and np.isfinite(result.witness.statistics).sum() > 1:
        return [bars, _rows_chart(result)]
    p = dict(zip(columns["column"], columns["pvalue"], strict=True))
    said = dict(zip(columns["column"], columns.get("description", []), strict=False))
    found = []
    for name in clear[:_MOST_HISTOGRAMS] or columns["column"][:1]:
        chart = compared(str(name), result.known_cells(result.names.index(name)), result.labels, float(p[name]))
        if chart is not None and p[name] <= LEVEL and said.get(name, "").startswith("missing"):
            chart = replace(chart, title=f"{name}: {said[name].partition(';')[0]} (p = {p[name]:.3g})")
        found += [] if chart is None else [chart]
    return [bars, *found]


def _columns_chart(columns: dict[str, Any]) -> Chart:
    """Return the picture of how much each column differs."""
    first = slice(0, _MOST_BARS)
    share, p = np.asarray(columns["share"], dtype=float)[first], np.asarray(columns["pvalue"])[first]
    names = list(map(str, columns["column"][first]))
    notes = [
        f"{name}: about {part:.1%} of the values differ, p = {pvalue:.3g}"
        for name, part, pvalue in zip(names, share, p, strict=True)
    ]
    clear = p <= LEVEL
    series = [
        Series("differs by itself", [], np.where(clear, share, 0.0), "bars", "vermillion", notes),
        Series("no difference shown", [], np.where(clear, 0.0, share), "bars", "grey", notes),
    ]
    total = len(columns["column"])
    about = "Each column alone." + f" The first {len(names)} of {total} columns." * (len(names) < total)
    count = int((np.asarray(columns["pvalue"]) <= LEVEL).sum())
    verb = "differs by itself" if count == 1 else "differ by themselves"
    title = f"{count} of {counted(total, 'column')} {verb}"
    return Chart(title, "share of the values that differ, about", "", series, about, names=names)


def _rows_chart(result: TwoSampleResult) -> Chart:
    """Return the rows of both samples in the two columns with the smallest p-values, strong where their sample has more rows."""
    witness = result.witness
    order = witness.order[np.isfinite(witness.statistics[witness.order])]
    chosen = np.sort(order[:2])
    x, y = (rows[:, chosen] for rows in result.problem.given)
    low, high = robust_range(np.concatenate([x, y]))
    series = []
    for rows, excess, colour, label in ((x, witness.x, "blue", 0), (y, -witness.y, "vermillion", 1)):
        drawn = some(np.arange(len(rows)), _MOST_DOTS)
        strong = excess[drawn] >= max(_STANDING_OUT * float(excess.max()), np.finfo(float).tiny)
        weak = dots("", rows[drawn[~strong]], low, high, colour)
        series += [weak, dots(result.labels[label], rows[drawn[strong]], low, high, colour, strong=True)]
    across, up = (result.names[j] for j in chosen)
    title = "No column is shown to differ by itself" if result.pvalue <= LEVEL else "No difference is shown"
    return Chart(title, across, up, series, "Strong: places with more rows than the other sample.")
