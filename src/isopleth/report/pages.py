"""What the page of each kind of result says and shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from isopleth.plotting.change_points import MEANINGS, borders
from isopleth.plotting.view import bin_edges, deviations_of, extreme_columns, robust_range, some
from isopleth.report.page import Chart, Page, PageTable, Series, thinned
from isopleth.results import Result, cell_text, counted, in_words
from isopleth.tables.clock_times import length_text, seconds_of, time_text, time_words
from isopleth.tasks.anomaly.result import Anomalies
from isopleth.tasks.change_points.detector import ChangePoints
from isopleth.tasks.class_prior.estimator import ClassPriors
from isopleth.tasks.drift.alarms import DriftAlarms
from isopleth.tasks.goodness_of_fit.stein import SteinTestResult
from isopleth.tasks.made_rows.result import MadeRows
from isopleth.tasks.two_sample.testing import TwoSampleResult

# Rows of a table of which a page has the first, before it is shortened further; values of rows that are shown beside them.
_MOST_ROWS, _MOST_COLUMNS = 1000, 24
_MOST_DOTS, _MOST_FLAGGED = 2000, 800
# Values in the text of a dot.
_VALUES = 5
_BINS = 30
_MOST_WORDS = 20
_MOST_HISTOGRAMS, _MOST_CURVES = 6, 6
_LEVEL = 0.05
_SPREAD_OF_TIMES = "time_before and time_after: medians of a column of times, whose spread is in seconds."


@singledispatch
def page_of(result: Any, labels: tuple[str, str] = ("X", "Y")) -> Page:
    """Return the page of a result; a function for a further class is added by ``page_of.register``.

    Parameters
    ----------
    result : Result
        What a task returned. The page of a class that is not registered has its sentences and its table.
    labels : tuple of str
        Names of the two samples of a comparison.
    """
    if not isinstance(result, Result):
        raise TypeError(f"a {type(result).__name__} has no page; pass the result of a task.")
    title = result.kind.replace("_", " ").capitalize()
    return Page(title, result._sentences(), [_table("Table", result._columns())])


def _table(title: str, columns: dict[str, Any], about: str = "") -> PageTable:
    total = max((len(column) for column in columns.values()), default=0)
    return PageTable(
        title, {name: column[:_MOST_ROWS] for name, column in columns.items()}, total, about, frozenset(columns)
    )


@page_of.register
def _anomalies(found: Anomalies, labels: tuple[str, str] = ("X", "Y")) -> Page:
    words = [*found._sentences(), *_least_likely(found)]
    charts = [chart for chart in (_rows_chart(found), _scores_chart(found)) if chart is not None]
    notes = [
        "score: higher is more normal. The table begins with the least likely row.",
        "p-value: the share of ordinary rows that are at least as unlikely; small values are unusual.",
        f"flagged: {found.rule}.",
        f"certain: selected so that about {found.fdr:.3g} of the selected rows are expected to be ordinary.",
    ]
    notes += [
        "explained by: with the best value in its place, the score of the row would rise by the number after the plus sign."
    ] * (found.explanation is not None)
    used = dict.fromkeys(found.names, "number") if found.values.dtype.kind == "f" else {}
    return Page("Anomalies", words, [_anomaly_table(found)], charts, used, notes)


def _least_likely(found: Anomalies) -> list[str]:
    first = int(found.order[0])
    place = ", ".join(f"{name} {column[first]}" for name, column in found.where.items())
    words = f"The least likely one is {place} (score {found.scores[first]:.4g}, p {_p(found.p_values[first])})"
    reason = found.reasons()[first] or _values_text(found, np.array([first]))[0]
    return [f"{words}: {reason.replace('  ', ', ')}."]


def _p(value: float) -> str:
    return f"= {value:.3g}" if value >= 1e-6 else "< 1e-6"


def _anomaly_table(found: Anomalies) -> PageTable:
    shown = found.order[:_MOST_ROWS]
    columns: dict[str, Any] = {"rank": np.arange(1, len(shown) + 1)}
    columns |= {name: column[: len(shown)] for name, column in found._columns().items()}
    chosen = _telling_columns(found)
    for j in chosen:
        name = found.names[j] if found.names[j] not in columns else f"{found.names[j]} (column)"
        columns[name] = found.values[shown, j]
    left_out = len(found.names) - len(chosen)
    about = f"{len(chosen)} of {len(found.names)} columns are shown." if left_out else ""
    return PageTable("The least likely rows", columns, len(found), about, frozenset({"score", "pvalue"}))


def _telling_columns(found: Anomalies) -> list[int]:
    """Return the columns to show, in the order of the table; of many, those in which flagged rows deviate most."""
    if len(found.names) <= _MOST_COLUMNS:
        return list(range(len(found.names)))
    names, numbers = found.numbers
    ringed = found.order[: max(10, int(found.flagged.sum()))]
    first = [found.names.index(names[j]) for j in extreme_columns(numbers, ringed)[:_MOST_COLUMNS]]
    return sorted(first or range(_MOST_COLUMNS))


def _values_text(found: Anomalies, rows: np.ndarray) -> list[str]:
    """Return the most extreme values of rows as text."""
    names, numbers = found.numbers
    if numbers.shape[1] == 0 or np.isnan(numbers).any():
        pairs = [list(zip(found.names, found.values[i], strict=True))[:_VALUES] for i in rows]
    else:
        z = np.abs(deviations_of(numbers[rows], numbers))
        pairs = [
            [
                (names[j], _number(names[j], numbers[i, j], found.times))
                for j in np.argsort(-deviation, kind="stable")[:_VALUES]
            ]
            for i, deviation in zip(rows, z, strict=True)
        ]
    return ["  ".join(f"{name}={cell_text(value)}" for name, value in some) for some in pairs]


def _number(name: str, value: float, times: Sequence[str]) -> Any:
    """Return a number, or seconds since 1970 as text."""
    return time_text(float(value)) if name in times else value


def _row_notes(found: Anomalies, rows: np.ndarray) -> list[str]:
    where = [", ".join(f"{name} {column[i]}" for name, column in found.where.items()) for i in rows]
    marks = ["certain" if found.certain[i] else "flagged" if found.flagged[i] else "not flagged" for i in rows]
    return [
        f"{place} ({mark}): score {found.scores[i]:.4g}, p {_p(found.p_values[i])}\n{values}"
        for place, mark, i, values in zip(where, marks, rows, _values_text(found, rows), strict=True)
    ]


def _rows_chart(found: Anomalies) -> Chart | None:
    """Return dots of the rows in the two columns in which the flagged ones deviate most."""
    names, numbers = found.numbers
    flagged = found.order[found.flagged[found.order]]
    ringed = flagged if len(flagged) else found.order[:10]
    complete = numbers[:, ~np.isnan(numbers).any(axis=0)]
    kept = [name for name, column in zip(names, numbers.T, strict=True) if not np.isnan(column).any()]
    chosen = np.sort(extreme_columns(complete, ringed)[:2])
    if len(chosen) < 2:
        return None
    points = complete[:, chosen]
    low, high = robust_range(points)
    others = some(np.setdiff1d(np.arange(len(found)), ringed), _MOST_DOTS)
    shown = ringed[:_MOST_FLAGGED]
    name = f"flagged ({len(flagged):,})" if len(flagged) else "the least likely, not flagged"
    plain = f"not flagged ({len(others):,} of {len(found) - len(ringed):,} shown)"
    series = [
        _dots(found, plain, points, others, low, high, "grey"),
        _dots(found, name, points, shown, low, high, "vermillion" if len(flagged) else "text"),
    ]
    x, y = (kept[j] for j in chosen)
    outside = int(((points < low) | (points > high)).any(axis=1).sum())
    about = f"The two columns in which {'flagged' if len(flagged) else 'the least likely'} rows deviate most."
    about += f" Triangles: {counted(outside, 'row')} beyond the frame; their texts have the true values." * bool(
        outside
    )
    title = (
        f"{counted(len(flagged), 'flagged row')} in {x} and {y}"
        if len(flagged)
        else f"No row is flagged in {x} and {y}"
    )
    times = "".join(axis for axis, name in (("x", x), ("y", y)) if name in found.times)
    return Chart(title, x, y, series, about, times=times)


def _dots(
    found: Anomalies, name: str, points: np.ndarray, rows: np.ndarray, low: np.ndarray, high: np.ndarray, colour: Any
) -> Series:
    there = points[rows]
    drawn = np.clip(there, low, high)
    # Direction of the true place, in units of the frame; angles run clockwise from the top.
    away = (there - drawn) / np.where(high > low, high - low, 1.0)
    angles = np.degrees(np.arctan2(away[:, 0], away[:, 1])).round() % 360
    beyond = np.where(np.any(away != 0.0, axis=1), angles, -1)
    strong = colour != "grey"
    return Series(name, drawn[:, 0], drawn[:, 1], "dots", colour, _row_notes(found, rows), strong=strong, beyond=beyond)


def _scores_chart(found: Anomalies) -> Chart:
    n, order = len(found), found.order
    ranks = np.unique(np.geomspace(1, n, 600).round().astype(int)) - 1
    scores, flagged = found.scores[order], found.flagged[order]
    quarter, three = np.percentile(scores, [25, 75])
    lowest = quarter - 20.0 * (three - quarter)  # one wild score must not flatten all others
    series = []
    for name, colour, mask in (("not flagged", "grey", ~flagged), ("flagged", "vermillion", flagged)):
        some_ranks = ranks[mask[ranks]]
        if len(some_ranks):
            drawn = np.maximum(scores[some_ranks], lowest)
            beyond = np.where(scores[some_ranks] < lowest, 180, -1)
            notes = _row_notes(found, order[some_ranks])
            label, strong = f"{name} ({int(mask.sum()):,})", colour == "vermillion"
            dots = Series(label, some_ranks + 1, drawn, "dots", colour, notes, strong=strong, beyond=beyond)
            series.append(dots)
    title = "No row is flagged"
    if flagged.any():
        title = f"Rows are flagged up to p = {found.p_values[order][flagged].max():.3g}"
    return Chart(title, "rank, the least likely row first", "score", series, "Scores of all rows in order.", log_x=True)


@page_of.register
def _two_samples(result: TwoSampleResult, labels: tuple[str, str] = ("X", "Y")) -> Page:
    columns = result._columns()
    notes = [
        "p-value of a column: it alone, adjusted for the number of columns, so that the chance to name any column falsely is at "
        f"most {_LEVEL:.0%}.",
        "share: at least this share of the values would have to change to give the column its distribution in the other table.",
        f"before is {labels[0]}, after is {labels[1]}. spread: from the first quartile to the third.",
        f"The p-value of the whole comparison is from {result.n_resamples} permutations and is exact.",
    ]
    notes += [_SPREAD_OF_TIMES] * ("time_before" in columns)
    about = "Each column by itself, the largest change first."
    charts = [_columns_chart(result, columns), *_histograms(result, columns, labels)]
    return Page("Comparison of two tables", result._sentences(), [_table("Columns", columns, about)], charts, {}, notes)


def _columns_chart(result: TwoSampleResult, columns: dict[str, Any]) -> Chart:
    shown = slice(0, 25)
    share, p = np.asarray(columns["share"], dtype=float)[shown], columns["pvalue"][shown]
    names = list(map(str, columns["column"][shown]))
    notes = [
        f"{name}: {one:.1%} of the values differ, p = {pvalue:.3g}"
        for name, one, pvalue in zip(names, share, p, strict=True)
    ]
    clear = np.asarray(p) <= _LEVEL
    series = [
        Series("differs by itself", [], np.where(clear, share, 0.0), "bars", "vermillion", notes),
        Series("no difference shown", [], np.where(clear, 0.0, share), "bars", "grey", notes),
    ]
    some_of = (
        f" The first {len(names)} of {len(columns['column'])} columns." if len(names) < len(columns["column"]) else ""
    )
    count = int((np.asarray(columns["pvalue"]) <= _LEVEL).sum())
    title = f"{count} of {counted(len(columns['column']), 'column')} {'differs' if count == 1 else 'differ'}"
    return Chart(
        title, "share of the values that differ, at least", "", series, f"Each column alone.{some_of}", names=names
    )


def _histograms(result: TwoSampleResult, columns: dict[str, Any], labels: tuple[str, str]) -> list[Chart]:
    """Return both samples in the columns that differ most: numbers as histograms, words as shares."""
    p = dict(zip(columns["column"], columns["pvalue"], strict=True))
    chosen = [name for name in columns["column"] if p[name] <= _LEVEL][:_MOST_HISTOGRAMS] or columns["column"][:1]
    charts = []
    for name in chosen:
        cells = result.known_cells(result.names.index(name))
        if not all(map(len, cells)):
            continue
        if any(values.dtype == object for values in cells):
            charts.append(_shares_chart(str(name), cells, labels, p[name]))
        elif np.ptp(np.concatenate(cells)) > 0:
            charts.append(_histogram(str(name), cells, labels, p[name]))
    return charts


def _histogram(name: str, cells: tuple[np.ndarray, np.ndarray], labels: tuple[str, str], p: float) -> Chart:
    times = cells[0].dtype.kind == "M"
    one, two = map(seconds_of, cells) if times else cells
    text = time_text if times else "{:.6g}".format
    low, high = robust_range(np.concatenate([one, two])[:, None])
    edges = bin_edges(np.concatenate([one, two]), _BINS, low[0], high[0])
    series, outside = [], 0
    for label, values, colour in ((labels[0], one, "blue"), (labels[1], two, "vermillion")):
        counts = np.histogram(values, edges)[0] / len(values)
        outside += int(((values < low[0]) | (values > high[0])).sum())
        notes = [
            f"{label}: {share:.1%} between {text(a)} and {text(b)}"
            for share, a, b in zip(counts, edges, edges[1:], strict=False)
        ]
        median = f"{label}: median {text(round(np.median(values)) if times else np.median(values))}"
        # The outline begins and ends on the axis.
        outline = np.concatenate([edges[:1], edges]), np.concatenate([[0.0], counts, [0.0]])
        series.append(Series(median, *outline, "steps", colour, ["", *notes, ""]))
    about = f"{counted(outside, 'value')} beyond the frame left out." if outside else ""
    title = _move(name, one, two, p, times)
    return Chart(title, name, "share of the rows", series, about, times="x" * times)


def _shares_chart(name: str, cells: tuple[np.ndarray, np.ndarray], labels: tuple[str, str], p: float) -> Chart:
    """Return the shares of the most frequent words of a column in both samples."""
    words, counts = np.unique(np.concatenate(cells).astype(str), return_counts=True)
    shown = words[np.argsort(-counts, kind="stable")[:_MOST_WORDS]]
    one, two = (np.array([(values.astype(str) == word).mean() for word in shown]) for values in cells)
    notes = [
        f"{word}: {a:.1%} in {labels[0]}, {b:.1%} in {labels[1]}" for word, a, b in zip(shown, one, two, strict=True)
    ]
    series = [
        Series(labels[0], [], one, "pairs", "blue", notes),
        Series(labels[1], [], two, "pairs", "vermillion", notes),
    ]
    most = int(np.argmax(np.abs(two - one)))
    said = f"{shown[most]} from {one[most]:.1%} to {two[most]:.1%}" if p <= _LEVEL else "no difference shown"
    some_of = f"The {len(shown)} most frequent of {len(words)} words." if len(shown) < len(words) else ""
    return Chart(
        f"{name}: {said} (p = {p:.3g})", "share of the rows", "", series, some_of, names=[str(w) for w in shown]
    )


def _move(name: Any, one: np.ndarray, two: np.ndarray, p: float, times: bool) -> str:
    """Return what happened to a column, for a title."""
    (a, b, c), (d, e, f) = (np.percentile(values, [25, 50, 75]) for values in (one, two))
    end = f" (p = {p:.3g})"
    if p > _LEVEL:
        return f"{name}: no difference shown{end}"
    if abs(e - b) >= abs((f - d) - (c - a)):
        before, after = (time_text(round(x)) if times else f"{x:.4g}" for x in (b, e))
        return f"{name}: median from {before} to {after}{end}"
    before, after = (length_text(x) if times else f"{x:.4g}" for x in (c - a, f - d))
    return f"{name}: spread from {before} to {after}{end}"


@page_of.register
def _made_rows(found: MadeRows, labels: tuple[str, str] = ("X", "Y")) -> Page:
    charts = []
    for name in sorted(found.distance, key=lambda one: -found.distance[one])[:_MOST_HISTOGRAMS]:
        cells = found.known_cells(name)
        both = ("table", "made rows")
        if cells[0].dtype == object:
            charts.append(_shares_chart(name, cells, both, 0.0))
        elif np.ptp(np.concatenate(cells)) > 0:
            charts.append(_histogram(name, cells, both, 0.0))
        else:
            continue
        charts[-1] = replace(charts[-1], title=f"{name}: {found.distance[name]:.1%} of the values differ")
    first = {name: column[:_MOST_ROWS] for name, column in found.made.items()}
    table = PageTable("Made rows", dict(list(first.items())[:_MOST_COLUMNS]), len(found))
    distances = {"column": list(found.distance), "share that differs": list(found.distance.values())}
    tables = [table, _table("How much each column differs from the table", distances)] if found.distance else [table]
    notes = [
        "share that differs: the least share of the known cells that would have to change to be as those of the table are."
    ]
    return Page("Made rows", found._sentences(), tables, charts, {}, notes * bool(found.distance))


@page_of.register
def _change_points(found: ChangePoints, labels: tuple[str, str] = ("X", "Y")) -> Page:
    dim = found.series.shape[1]
    names = found.names or (["value"] if dim == 1 else [f"column {j}" for j in range(dim)])
    noun, where = next(iter(found.where.items()), ("step", np.arange(len(found.series))))
    places = zip(where[found.places], found.kinds, strict=True)
    axis, moments, dates = found.axis()
    when = (
        np.full(len(found.series), "")
        if found.times is None
        else np.array([f" ({time_words(t)})" for t in found.times])
    )
    after = when[found.places]
    lines = [
        (float(border), f"{noun} {place}{time}, {kind}")
        for (place, kind), time, border in zip(places, after, borders(moments, found.places), strict=True)
    ]
    count = f"{len(found)} change{'' if len(found) == 1 else 's'}" if len(found) else "no change"
    charts = []
    for j in range(min(dim, _MOST_CURVES)):
        steps, values = thinned(found.series[:, j])
        texts = [f"{noun} {where[s]}{when[s]}: {v:.6g}" for s, v in zip(steps, values, strict=True)]
        curve = Series(names[j], moments[steps], values, "line", "blue", texts)
        charts.append(Chart(f"{names[j]}: {count}", axis, names[j], [curve], "", lines=lines, times="x" * dates))
    notes = [
        f"{noun}: the first one after the change.{'' if found.where else ' Steps are counted from 0.'}",
        f"earliest and latest: {noun}s between which the first one after the change is, with a probability of about 90 %.",
        "pvalue: about the least false alarm rate at which the change would be reported.",
        "before and after: means of the parts of the series beside the change.",
        f"kind: {in_words([f'{kind} ({words})' if kind != words else kind for kind, words in MEANINGS.items()], 8)}.",
    ]
    return Page("Changes of a series", found._sentences(), [_table("Changes", found._columns())], charts, {}, notes)


@page_of.register
def _stein_test(result: SteinTestResult, labels: tuple[str, str] = ("X", "Y")) -> Page:
    counts, edges = np.histogram(result.resampled, _BINS)
    notes = [
        f"{counted(int(count), 'vector')} of random signs between {a:.4g} and {b:.4g}"
        for count, a, b in zip(counts, edges, edges[1:], strict=False)
    ]
    outline = np.concatenate([edges[:1], edges]), np.concatenate([[0], counts, [0]])
    signs = Series("random signs", *outline, "steps", "grey", ["", *notes, ""])
    # A dot on the axis keeps the statistic in the frame, where it is larger than all others.
    sample = Series(
        "this sample",
        [result.statistic],
        [0.0],
        "dots",
        "vermillion",
        [f"this sample: {result.statistic:.4g}"],
        strong=True,
    )
    verdict = "The sample does not fit the score" if result.pvalue <= _LEVEL else "No misfit is shown"
    lines = [(result.statistic, f"statistic of this sample, {result.statistic:.4g}")]
    about = "Statistics of random signs, as a sample from the density would give them."
    charts = [
        Chart(
            f"{verdict}: p = {result.pvalue:.3g}", "statistic", "vectors of signs", [signs, sample], about, lines=lines
        )
    ]
    if len(result.length_scales) > 1:
        texts = [
            f"length scale {x:.4g}: score {y:.4g}" for x, y in zip(result.length_scales, result.scores, strict=True)
        ]
        dots = Series("score", result.length_scales, result.scores, "dots", "blue", texts, strong=True)
        title = f"The largest score is that of length scale {result.length_scale:.3g}"
        charts.append(Chart(title, "length scale, in standard deviations", "score", [dots], log_x=True))
    reading = [
        "length_scale: in standard deviations of the columns.",
        "discrepancy: unbiased estimate of the squared kernel Stein discrepancy; around 0 for a sample from the density.",
        "score: the normal score of the discrepancy among those of random signs. The largest one is the statistic.",
        "p-value: the share of all vectors of signs, the observed one and "
        f"{result.n_resamples:,} random ones, whose statistic is no smaller.",
    ]
    table = _table("Length scales", result._columns())
    return Page("Fit of a sample to a score", result._sentences(), [table], charts, {}, reading)


@page_of.register
def _class_priors(found: ClassPriors, labels: tuple[str, str] = ("X", "Y")) -> Page:
    columns = found._columns()
    shown = np.argsort(-found.priors, kind="stable")[:40]
    classes = [str(found.classes[k]) for k in shown]
    share, lower, upper = found.priors[shown], found.lower[shown], found.upper[shown]
    notes = [
        f"{name}: {one:.2%} ({low:.2%} to {high:.2%})"
        for name, one, low, high in zip(classes, share, lower, upper, strict=True)
    ]
    level = f"{100.0 * found.confidence_level:.6g} %"
    series = [
        Series(f"{level} interval", [], upper, "ranges", "blue", notes, low=lower),
        Series("share", [], share, "dots", "blue", notes, strong=True),
    ]
    title = f"{classes[0]} is the most frequent class: {share[0]:.1%}"
    chart = Chart(
        title, "share of the rows", "", series, "Dots are the estimates, bars their intervals.", names=classes
    )
    reading = [
        "prior: the share of the rows without labels that belong to the class.",
        f"lower and upper: limits of an interval with a confidence of {level} for each class by itself, for the share "
        + ("in the population that the rows were drawn from." if found.population else "among these rows."),
    ]
    return Page("Shares of classes", found._sentences(), [_table("Classes", columns)], [chart], {}, reading)


@page_of.register
def _drift(found: DriftAlarms, labels: tuple[str, str] = ("X", "Y")) -> Page:
    steps, values = thinned(found.statistic)
    first = found.first_row + found.counted_from
    rows, raised = first + steps, found.rows + found.counted_from
    series = [
        Series(
            "statistic", rows, values, "line", "blue", [f"row {r}: {v:.4g}" for r, v in zip(rows, values, strict=True)]
        )
    ]
    if len(rows):
        ends = [int(rows[0]), int(rows[-1])]
        series.append(Series("threshold", ends, [found.threshold] * 2, "line", "text", dashed=True))
    if len(found):
        heights = found.statistic[found.rows - found.first_row]
        alarms = [
            f"alarm at row {r}: {h:.4g}, above {found.threshold:.4g}" for r, h in zip(raised, heights, strict=True)
        ]
        most = slice(0, _MOST_FLAGGED)
        series.append(
            Series(
                f"alarms ({len(found):,})", raised[most], heights[most], "dots", "vermillion", alarms[most], strong=True
            )
        )
    title = f"{counted(len(found), 'alarm')}" if len(found) else "No alarm"
    about = f"Distance of the last {found.window} rows from the reference; an alarm is raised above the threshold."
    tables = [_table("Alarms", found._columns())]
    tables += [
        _table(
            f"Columns at the alarm of row {row}",
            dict(columns),
            "Before is the reference, after the window of the alarm.",
        )
        for row, columns in zip(raised[:5], found.columns[:5], strict=False)
    ]
    notes = [
        f"Rows are counted from {found.counted_from}.",
        "moved: the change of the column is beyond what chance gives any column in one of 100 windows.",
    ]
    notes += [_SPREAD_OF_TIMES] * any("time_before" in columns for columns in found.columns)
    return Page(
        "Drift of a stream", found._sentences(), tables, [Chart(title, "row", "distance", series, about)], {}, notes
    )
