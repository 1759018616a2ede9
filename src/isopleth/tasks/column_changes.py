"""Changes of single columns between two tables: medians and spreads, shares of words, and shares of missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, kstwobign, norm

from isopleth.core.p_values import binomial_p_values
from isopleth.tables.coded_cells import decode_cells, displayed_cells
from isopleth.tables.kinds import Column
from isopleth.tables.row_encoding import RowEncoding

# Words and missing cells are described where their share changes by so much.
_VISIBLE = 0.005
_WORDS = 3
_OTHER = "other words"
# Words that occur up to so often in both tables have exact distributions of their counts.
_RARE = 60
# Normal quantile of an interval of 95 %.
_Z = 1.96
# Note below sentences on columns that moved given the others.
LEFT_OPEN = (
    "In these sentences a deviation is the standard deviation of a column around what the others of its row let expect."
)


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Distribution of the cells of a column in one table."""

    rows: int  # number of rows
    missing: int  # missing cells among them
    values: np.ndarray  # sorted numbers; those of a long column may be quantiles
    counts: np.ndarray  # how often each category occurs, one for words that were not known last; empty for numbers

    @classmethod
    def of(cls, column: Column, cells: np.ndarray, most: int | None = None) -> Self:
        """Summarise cells, codes for words, NaN where one is missing; keep at most so many quantiles of numbers."""
        known = cells[~np.isnan(cells)]
        missing = len(cells) - len(known)
        if column.kind == "categorical":
            counts = np.bincount(known.astype(np.intp), minlength=len(column.levels) + 1).astype(np.float64)
            return cls(len(cells), missing, np.empty(0), counts)
        values = np.sort(known)
        if most is not None and len(values) > most:
            values = values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))]
        return cls(len(cells), missing, values, np.empty(0))

    @property
    def gaps(self) -> float:
        """Share of missing cells."""
        return self.missing / self.rows

    @property
    def shares(self) -> np.ndarray:
        """Shares of the categories among known cells."""
        return self.counts / max(float(self.counts.sum()), 1.0)

    @property
    def quartiles(self) -> np.ndarray:
        """Quartiles of numbers; NaN for words."""
        return np.quantile(self.values, [0.25, 0.5, 0.75]) if len(self.values) else np.full(3, np.nan)


class Share(NamedTuple):
    """Share of the cells of a column that would have to change, with an interval of 95 %."""

    value: float
    low: float
    high: float


def share_that_differs(one: ColumnSummary, two: ColumnSummary, *, compared: bool, z: float = _Z) -> Share:
    """Estimate the share of cells that would have to change to give a column the distribution it has in the other table.

    For words it is the total variation distance, for numbers the largest difference of the distribution functions, without what
    chance adds to them. A missing cell is a value of its own if gaps are compared, and left out otherwise. `z` is the normal
    quantile of the interval.
    """
    if len(one.counts) or len(two.counts):
        return _variation(one, two, compared, z)
    gaps = np.array([one.gaps, two.gaps])
    rows = np.array([each.rows if compared else max(each.rows - each.missing, 1) for each in (one, two)])
    # The mean square of the largest difference, over the reciprocal of rows, is that of a Brownian bridge, pi^2 / 12.
    largest = distance(one, two, compared=compared)
    square = largest**2 - np.pi**2 / 12.0 * (1.0 / rows).sum()
    lost = (gaps[1] - gaps[0]) ** 2 - (gaps * (1.0 - gaps) / rows).sum() if compared else 0.0
    value = float(np.sqrt(max(square, lost, 0.0)))
    # No share has a larger standard error than that of one half.
    half = z * 0.5 * float(np.sqrt((1.0 / rows).sum()))
    return Share(value, max(value - half, 0.0), min(largest + half, 1.0))


def _variation(one: ColumnSummary, two: ColumnSummary, compared: bool, z: float) -> Share:
    """Return the total variation distance of words, which is about 0 where the distributions are equal.

    The sum of absolute differences is too large in the mean, by at most what it is if the words of both tables are dealt at
    random: these two are the ends of the interval, but for the standard error of a share. Where words are rare it is wide.
    """
    counts = np.array([np.append(each.counts, each.missing if compared else 0.0) for each in (one, two)])
    totals = np.maximum(counts.sum(axis=1), 1.0)
    pairs, times = np.unique(counts.T, axis=0, return_counts=True)
    sums, chances = np.array([[_without_chance(*pair, *totals), _by_chance(pair.sum(), *totals)] for pair in pairs]).T
    largest = 0.5 * float(np.abs(counts[0] / totals[0] - counts[1] / totals[1]).sum())
    half = z * 0.5 * float(np.sqrt((1.0 / totals).sum()))
    value, chance = max(0.5 * float(times @ sums), 0.0), 0.5 * float(times @ chances)
    return Share(value, max(min(largest - chance - half, value), 0.0), min(largest + half, 1.0))


def _without_chance(a: float, b: float, n: float, m: float) -> float:
    """Return the absolute difference of two shares a / n and b / m, of mean 0 if the probabilities are equal.

    If one half of the rows chose the sign of the difference and the other half estimated it, chance would add nothing. This is
    the mean over all halves; frequent words have as many halves as normal variables.
    """
    if a + b > _RARE:
        difference, shares = a / n - b / m, np.array([a / n, b / m])
        error = float(np.sqrt((shares * (1.0 - shares) / (n, m)).sum()))
        if error == 0.0:
            return abs(difference)
        z = difference / error
        return float(difference * (2.0 * ndtr(z) - 1.0) - 2.0 * error * norm.pdf(z))
    i, j = np.arange(a + 1.0)[:, None], np.arange(b + 1.0)
    sign = np.sign(np.round(i / n - j / m, 12))
    return float((binom.pmf(i, a, 0.5) * binom.pmf(j, b, 0.5) * sign * 2.0 * ((a - i) / n - (b - j) / m)).sum())


def _by_chance(total: float, n: float, m: float) -> float:
    """Return the mean absolute difference of the shares of a word that occurs so often in both tables, if these are equal."""
    if total > _RARE:
        share = total / (n + m)
        return float(np.sqrt(2.0 / np.pi * share * (1.0 - share) * (1.0 / n + 1.0 / m)))
    i = np.arange(total + 1.0)
    return float(binom.pmf(i, total, n / (n + m)) @ np.abs(i / n - (total - i) / m))


def distance(one: ColumnSummary, two: ColumnSummary, *, compared: bool) -> float:
    """Return the largest difference of the distribution functions of numbers, whose missing cells lie outside if compared."""
    known = np.array([1.0 - one.gaps, 1.0 - two.gaps]) if compared else np.ones(2)
    places = np.concatenate([one.values, two.values])
    if not len(places):
        return 0.0
    below = [np.searchsorted(each.values, places, side="right") / max(len(each.values), 1) for each in (one, two)]
    lower = np.abs(known[0] * below[0] - known[1] * below[1]).max()
    upper = np.abs(known[0] * (1.0 - below[0]) - known[1] * (1.0 - below[1])).max()
    return float(max(lower, upper))


def p_value_of_window(one: ColumnSummary, two: ColumnSummary, *, compared: bool) -> float:
    """Return an approximate p-value of a window `two` against a reference `one`, as if the window had been chosen before."""
    found = []
    if len(one.counts):
        # Words that are rare in the reference have no share of 0.
        chances = (one.counts + 0.5) / (one.counts.sum() + 0.5 * len(one.counts))
        words = np.flatnonzero(one.counts + two.counts)
        found.append(_smallest(binomial_p_values(two.counts[words], int(two.counts.sum()), chances[words])))
    elif len(two.values) and len(one.values):
        known = (one.rows - one.missing) * len(two.values) / (one.rows - one.missing + len(two.values))
        found.append(float(kstwobign.sf(np.sqrt(known) * distance(one, two, compared=False))))
    if compared and (one.missing or two.missing):
        chance = np.array([(one.missing + 0.5) / (one.rows + 1.0)])
        found.append(float(binomial_p_values(np.array([two.missing]), two.rows, chance)[0]))
    return _smallest(np.array(found))


def _smallest(p_values: np.ndarray) -> float:
    """Return the smallest p-value times their number, at most 1."""
    return float(min(p_values.min(initial=1.0) * len(p_values), 1.0)) if len(p_values) else 1.0


def minus_log_p(one: ColumnSummary, two: ColumnSummary, *, compared: bool) -> dict[str, float]:
    """Return minus the logs of approximate p-values of changed values and of gaps, which order columns of equal p-values."""
    found = {"values": 0.0}
    if len(one.counts) or len(two.counts):
        totals = np.array([max(float(each.counts.sum()), 1.0) for each in (one, two)])
        z = _contrasts(one.counts, two.counts, totals)
        found["values"] = max(0.0, float(np.max(z**2, initial=0.0)) / 2.0 - np.log(max(int(np.count_nonzero(z)), 1)))
    elif len(one.values) and len(two.values):
        known = [each.rows - each.missing for each in (one, two)]
        square = distance(one, two, compared=False) ** 2 / sum(1.0 / count for count in known)
        found["values"] = max(0.0, 2.0 * square - np.log(2.0))
    if compared:
        lost, lost_after = (np.array([float(each.missing)]) for each in (one, two))
        rows = np.array([one.rows, two.rows], dtype=np.float64)
        found["gaps"] = float(_contrasts(lost, lost_after, rows)[0] ** 2) / 2.0
    return found


def _contrasts(one: np.ndarray, two: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the differences of shares over their standard errors where the shares are equal."""
    pooled = (one + two) / totals.sum()
    error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / totals).sum())
    return np.divide(one / totals[0] - two / totals[1], error, out=np.zeros(len(error)), where=error > 0.0)


def summaries(encoding: RowEncoding, rows: np.ndarray, most: int | None = None) -> list[ColumnSummary]:
    """Summarise the columns of rows that are not encoded."""
    cells = zip(encoding.kinds, encoding.cells, strict=True)
    return [ColumnSummary.of(column, rows[:, cell.place], most) for column, cell in cells]


def changes(encoding: RowEncoding, before: Sequence[ColumnSummary], after: Sequence[ColumnSummary]) -> dict[str, Any]:
    """Return how columns changed, as columns of a table in the order of the table; fewer for complete numbers."""
    columns, compared, pairs = encoding.kinds, encoding.compared, list(zip(before, after, strict=True))
    logs = [minus_log_p(*pair, compared=compared) for pair in pairs]
    quartiles = np.array([[one.quartiles, two.quartiles] for one, two in pairs])
    shares = np.array([share_that_differs(one, two, compared=compared) for one, two in pairs]).reshape(-1, 3)
    out: dict[str, Any] = {
        "share": shares[:, 0],
        "share_low": shares[:, 1],
        "share_high": shares[:, 2],
        "minus_log_p": np.array([max(each.values()) for each in logs]),
        "median_before": quartiles[:, 0, 1],
        "median_after": quartiles[:, 1, 1],
        "spread_before": quartiles[:, 0, 2] - quartiles[:, 0, 0],
        "spread_after": quartiles[:, 1, 2] - quartiles[:, 1, 0],
    }
    complete = all(column.kind == "numeric" for column in columns) and not any(
        each.missing for each in [*before, *after]
    )
    if complete and not any(_has_equal_medians(*pair) for pair in pairs):
        return out
    times = np.array([column.kind == "time" for column in columns])
    if times.any():
        for place, key in enumerate(("before", "after")):
            moments = np.full(len(columns), np.datetime64("NaT"), dtype="datetime64[us]")
            for j in np.flatnonzero(times & np.isfinite(quartiles[:, place, 1])):
                moment = _moment(columns[int(j)], quartiles[j, place, 1])
                aware = isinstance(moment, datetime)  # written in UTC, as NumPy knows no zones
                moments[j] = moment.astimezone(UTC).replace(tzinfo=None) if aware else moment
            out[f"time_{key}"] = moments
            out[f"median_{key}"] = np.where(times, np.nan, out[f"median_{key}"])
    if any(column.kind == "categorical" for column in columns):
        moved = [
            _words(column, *pair)[0] if len(pair[0].counts) else None
            for column, pair in zip(columns, pairs, strict=True)
        ]
        out["level"] = [None if found is None else found[0] for found in moved]
        out["level_before"] = np.array([np.nan if found is None else found[1] for found in moved])
        out["level_after"] = np.array([np.nan if found is None else found[2] for found in moved])
    out["missing_before"] = np.array([one.gaps for one, _ in pairs])
    out["missing_after"] = np.array([two.gaps for _, two in pairs])
    out["description"] = [
        _description(column, *pair, found.get("gaps", 0.0) > found["values"])
        for column, pair, found in zip(columns, pairs, logs, strict=True)
    ]
    return out


# Columns that the words about a change say: a page shows the words, so that its last columns are in view.
_IN_WORDS = frozenset(
    [f"{what}_{when}" for what in ("median", "spread", "time", "level", "missing") for when in ("before", "after")]
    + ["level", "description", "shift_given_others", "others_without", "statistic", "minus_log_p"]
)


def as_read(columns: dict[str, Any]) -> dict[str, Any]:
    """Return changes of columns as people read them: in words, in place of the columns that the words say."""
    said = columns.get("description")
    if said is None:
        four = [columns[f"{what}_{when}"] for what in ("median", "spread") for when in ("before", "after")]
        said = [f"median: {a:.4g} -> {b:.4g};  spread: {c:.4g} -> {d:.4g}" for a, b, c, d in zip(*four, strict=True)]
    read: dict[str, Any] = {name: columns[name] for name in ("pvalue", "share", "column") if name in columns}
    read["change"] = np.array(said, dtype=object)
    # The ends of the interval last: what follows the words about the change is in view.
    last = ["share_low", "share_high"]
    names = [name for name in columns if name not in last] + [name for name in last if name in columns]
    rest = {name: columns[name] for name in names if name not in _IN_WORDS and name not in read}
    return read | {
        name: np.array(column, dtype=object) if isinstance(column, list) else column for name, column in rest.items()
    }


def _words(column: Column, one: ColumnSummary, two: ColumnSummary) -> list[tuple[str, float, float]]:
    """Return words with their shares in both tables, the largest change first."""
    before, after = one.shares, two.shares
    order = np.argsort(-np.abs(after - before), kind="stable")
    names = [*column.levels, _OTHER]
    return [(names[j], float(before[j]), float(after[j])) for j in order]


def _description(column: Column, one: ColumnSummary, two: ColumnSummary, gaps_first: bool) -> str:
    """Return the change of a column in words, the part with the smaller p-value first."""
    parts = []
    if column.kind == "categorical":
        found = _words(column, one, two)
        if len(column.levels) <= 2:  # the share of one of two words says that of the other
            found = [word for word in found if word[0] != "False"][:1]
        shown = [word for word in found[:_WORDS] if abs(word[2] - word[1]) >= _VISIBLE] or found[:1]
        parts = [
            f"share of {word if word == _OTHER else repr(word)}: {_percent(a)} -> {_percent(b)}" for word, a, b in shown
        ]
    elif len(one.values) and len(two.values):
        (low, middle, high), (low_after, middle_after, high_after) = one.quartiles, two.quartiles
        if column.kind == "time":
            parts = [f"median: {_moment_text(column, middle)} -> {_moment_text(column, middle_after)}"]
        else:
            parts = [f"median: {middle:.4g} -> {middle_after:.4g}"]
            if _has_equal_medians(one, two):
                parts = [f"mean: {one.values.mean():.4g} -> {two.values.mean():.4g}"]
            if parts[0].startswith("median") or high - low != high_after - low_after:
                parts.append(f"spread: {high - low:.4g} -> {high_after - low_after:.4g}")
    if abs(two.gaps - one.gaps) >= _VISIBLE or not parts:
        parts.insert(0 if gaps_first else len(parts), f"missing: {_percent(one.gaps)} -> {_percent(two.gaps)}")
    return "; ".join(parts)


def _has_equal_medians(one: ColumnSummary, two: ColumnSummary) -> bool:
    """Tell whether numbers change and their medians do not, as written: of 0 and 1, the mean is the share of 1."""
    if not (len(one.values) and len(two.values)) or one.values.mean() == two.values.mean():
        return False
    return f"{one.quartiles[1]:.4g}" == f"{two.quartiles[1]:.4g}"


def _moment(column: Column, seconds: float) -> Any:
    return decode_cells(column, np.array([seconds]))[0]


def _moment_text(column: Column, seconds: float) -> str:
    moment = displayed_cells(column, np.array([seconds]))[0]
    return str(moment.astype("datetime64[s]") if isinstance(moment, np.datetime64) else moment).replace("T", " ")


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %" if share >= 0.0005 or share == 0.0 else "< 0.05 %"


def in_order(table: dict[str, Any], order: np.ndarray) -> dict[str, Any]:
    """Return some entries of a table of columns, in this order."""
    return {
        key: values[order] if isinstance(values, np.ndarray) else [values[j] for j in order]
        for key, values in table.items()
    }
