"""Result of a search for anomalies: scores, p-values and flags of the rows of a table."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from isopleth.core.errors import InputError
from isopleth.core.rows import sample_places
from isopleth.results.charts import (
    Chart,
    Contours,
    Series,
    columns_by_deviation,
    deviations_of,
    dots,
    robust_range,
    some,
)
from isopleth.results.keys import NUMBER, PLACE, Fact, Key
from isopleth.results.result import MOST_ROWS, Result, ShownCells, ShownTable
from isopleth.results.text import LEAST_P, cell_text, counted, place_text, pvalue_text
from isopleth.tasks.anomaly import shared_values
from isopleth.tasks.anomaly.explanation import COLUMNS_A_ROW, Explanation
from isopleth.tasks.anomaly.gap import rows_before_gap
from isopleth.tasks.anomaly.whole_table import DecidingColumn, sentences

# Columns of values that a page shows.
_MOST_COLUMNS = 24


@dataclass(frozen=True, eq=False, repr=False)
class Anomalies(Result):
    """Scores, p-values and flags of the rows of a table; result of :meth:`AnomalyDetector.anomalies`.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    values : ndarray of shape (n, d)
        The rows, as numbers or as words and numbers.
    scores : ndarray of shape (n,)
        Higher is more normal.
    p_values : ndarray of shape (n,)
        p-values of the rows.
    labels : ndarray of shape (n,), int
        -1 for flagged rows, 1 for all others.
    certain : ndarray of shape (n,), bool
        Rows that are selected with control of the false discovery rate.
    fdr : float
        That false discovery rate.
    rule : str
        What a flag means, in a few words.
    where : dict of str to ndarray of shape (n,)
        Columns that say where the rows stand: the labels of the index of a frame that has some, by default "row", counted from 0.
    explanation : Explanation, optional
        Which columns make some rows unlikely.
    explained_rows : ndarray of shape (k,), int, optional
        Positions of those rows.
    drawn : tuple of ndarray and two lists of str, optional
        Columns of numbers for pictures, with missing cells filled, their names, and those of the names whose columns hold times,
        in seconds since 1970.
    resolution : float, default=1e-6
        Smallest p-value that the rows can show; smaller ones become it. For new rows, one over the number of fitted rows and one.
    known : ndarray of shape (n,), bool, optional
        Rows that are known to be anomalies, which pictures mark.
    at_least : ndarray of shape (n,), int, optional
        Entry k - 1 is a lower limit on the number of anomalies among the first k rows in `order`. All limits hold together with
        the confidence, so that a list may be cut anywhere after it was looked at. New rows and a clean reference only.
    confidence : float, default=0.95
        That confidence.
    new : bool, default=False
        Whether the rows are others than those of the fit.
    of_cells : list of str
        What the cells of flagged rows say, in sentences.
    sampled : int, optional
        Number of rows that the rule was fitted to, where these are a sample.
    decided_by : DecidingColumn, optional
        Column that alone makes nearly all certain rows unlikely, where many new rows are certain.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import AnomalyDetector
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> X[7] = 9.0
    >>> found = AnomalyDetector(random_state=0).fit(X).anomalies(X)
    >>> int(found.order[0]), int(found.certain.sum())
    (7, 1)
    >>> print(found.to_dict()["summary"][0].split(" as ")[0], "...")
    10 of 300 rows are flagged: worth a look, ...
    """

    names: list[str]
    values: np.ndarray | ShownCells
    scores: np.ndarray
    p_values: np.ndarray
    labels: np.ndarray
    certain: np.ndarray
    fdr: float
    rule: str
    where: dict[str, np.ndarray] = field(default_factory=dict)
    explanation: Explanation | None = None
    explained_rows: np.ndarray | None = None
    drawn: tuple[np.ndarray, list[str], list[str]] | None = None
    resolution: float = LEAST_P
    known: np.ndarray | None = None
    at_least: np.ndarray | None = None
    confidence: float = 0.95
    new: bool = False
    of_cells: list[str] = field(default_factory=list)
    decided_by: DecidingColumn | None = None
    sampled: int | None = None

    def __post_init__(self) -> None:
        vars(self)["p_values"] = np.maximum(self.p_values, self.resolution)
        vars(self)["where"] = self.where or {"row": np.arange(len(self))}

    kind = "anomalies"
    title = "Anomalies"

    def __len__(self) -> int:
        """Return the number of rows of the table."""
        return len(self.scores)

    def __repr__(self) -> str:
        return f"Anomalies({int(self.flagged.sum())} of {counted(len(self), 'row')} flagged)"

    @property
    def flagged(self) -> np.ndarray:
        """Mask of the flagged rows."""
        return self.labels < 0

    @cached_property
    def order(self) -> np.ndarray:
        """Positions of the rows, the least likely first; ties stay in the order of the table."""
        return np.argsort(self.scores, kind="stable")

    def reasons(self) -> np.ndarray:
        """Return for each row the columns that explain it, as text; empty for rows that are not explained."""
        words = np.full(len(self), "", dtype=object)
        if self.explanation is not None and self.explained_rows is not None:
            words[self.explained_rows] = [
                self.explanation.describe(i, COLUMNS_A_ROW) for i in range(len(self.explained_rows))
            ]
        return words

    def _columns(self) -> dict[str, Any]:
        """Return a row for each row of the table, the least likely first."""
        order = self.order
        found = {name: column[order] for name, column in self.where.items()} | {
            "score": self.scores[order],
            "pvalue": self.p_values[order],
            "flagged": self.flagged[order],
            "certain": self.certain[order],
        }
        if self.at_least is not None:
            found["at_least"] = self.at_least
        return found if self.explanation is None else found | {"explained_by": self.reasons()[order]}

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "rows of the table", len),
        "columns": Fact("list of string", "columns that were used", lambda found: found.names),
        "flagged": Fact("integer", "number of flagged rows", lambda found: int(found.flagged.sum())),
        "certain": Fact(
            "integer", "number of rows selected at the false discovery rate", lambda found: int(found.certain.sum())
        ),
        "fdr": Fact("number", "that rate", lambda found: found.fdr),
        "rule": Fact("string", "what a flag means", lambda found: found.rule),
        "rows_before_gap": Fact(
            "integer",
            "least likely rows that a gap in the scores sets apart from all others; 0 without a gap",
            lambda found: found.gap,
        ),
        "pvalue_resolution": Fact(
            "number",
            "smallest p-value that the rows can show; no p-value is smaller",
            lambda found: found.resolution,
        ),
        "decided_by": Fact(
            "string or null",
            "column that alone makes nearly all certain rows unlikely, where many new rows are certain",
            lambda found: found.decided_by and found.decided_by.name,
        ),
        "fit_rows": Fact(
            "integer or null",
            "rows that the rule was fitted to, where these are a sample of the rows",
            lambda found: found.sampled,
        ),
        "flag_error": Fact(
            "number or null",
            "standard error of p-values at the limit of the flags, of such a fit",
            lambda found: found.flag_error,
        ),
        "certified_rows": Fact(
            "integer or null",
            "with --reference: rows of the list that the summary names; 0 if every limit is 0",
            lambda found: found.certified[0],
        ),
        "certified_anomalies": Fact(
            "integer or null", "lower limit on the number of anomalies in this list", lambda found: found.certified[1]
        ),
        "confidence": Fact(
            "number or null",
            "confidence of these limits, of all lists together",
            lambda found: None if found.at_least is None else found.confidence,
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = PLACE | {
        "score": Key(NUMBER, "higher is more normal"),
        "pvalue": Key(NUMBER, "p-value of the row"),
        "flagged": Key("boolean", "whether the row is flagged"),
        "certain": Key("boolean", "whether it is selected at the false discovery rate"),
        "at_least": Key(
            "integer", "lower limit on the number of anomalies up to this row; with --reference", optional=True
        ),
        "explained_by": Key("string", "columns that make the row unlikely; with --explain or --report", optional=True),
    }

    @property
    def certified(self) -> tuple[int, int] | tuple[None, None]:
        """Rows and certified anomalies of the list with the largest product of that number and its share; None without limits."""
        if self.at_least is None:
            return None, None
        best = int(np.argmax(self.at_least.astype(float) ** 2 / np.arange(1, len(self) + 1)))
        number = int(self.at_least[best])
        return (best + 1 if number else 0), number

    def _certificate(self) -> list[str]:
        """Return the sentence on a number of anomalies that holds for all lists at once."""
        rows, number = self.certified
        if rows is None:
            return []
        sure = f"{self.confidence:.0%} confidence"
        if not number:  # stands beside rows that are certain at a false discovery rate
            return [
                f"A number of anomalies that holds for all lists at once with {sure} is a stricter promise, and is 0 here: "
                "it takes more anomalies or more reference rows."
            ]
        verb = "is an anomaly" if number == 1 else "are anomalies"
        return [
            f"At least {number:,} of the first {counted(rows, 'row')} {verb}, with {sure} in such limits for all lists at once."
        ]

    @property
    def flag_error(self) -> float | None:
        """Standard error of the p-value of the last flagged row, for a rule that was fitted to a sample."""
        if self.sampled is None:
            return None
        last = float(self.p_values[self.flagged].max()) if self.flagged.any() else float(self.p_values.min())
        return math.sqrt(last * (1.0 - last) / self.sampled)

    def _of_sample(self) -> list[str]:
        """Return the sentence on the sample that the rule was fitted to."""
        if self.sampled is None:
            return []
        whose = "the fitted rows" if self.new else f"the {counted(len(self), 'row')}"
        return [
            f"The rule is fitted to a sample of {self.sampled:,} of {whose}: another sample would give p-values at the limit "
            f"of the flags that differ by {self.flag_error:.2g} (one standard error)."
        ]

    def _sentences(self) -> list[str]:
        whole = sentences(self.certain, self.decided_by) if self.new else []
        return whole + self._of_rows() + self._of_sample() + self.of_cells

    def _of_rows(self) -> list[str]:
        """Return sentences about single rows."""
        flagged, certain = int(self.flagged.sum()), int(self.certain.sum())
        verb = "is" if flagged == 1 else "are"
        first = f"{flagged:,} of {counted(len(self), 'row')} {verb} flagged: {self.rule}."
        rate = f"at a false discovery rate of {self.fdr:.3g}"
        if not certain:
            second = f"None of them is certain {rate}: unusual rows of an ordinary table look like this, too."
            return [first, *self._apart(), second, *self._certificate(), *self._least_likely()]
        which = "is an anomaly" if certain == 1 else "are anomalies"
        return [
            first,
            *self._apart(),
            f"{counted(certain, 'row')} {which} {rate}, the share of ordinary rows expected among such rows, if {self._assumed}."
            + self._beyond_flags(),
            *self._certificate(),
            *self._least_likely(),
        ]

    def _beyond_flags(self) -> str:
        """Say why rows can be certain that are not flagged: where many are anomalies, less unlikely ones are, too."""
        more = int((self.certain & ~self.flagged).sum())
        return f" {more:,} of them are not flagged: among so many, less unlikely rows count, too." if more else ""

    @property
    def _assumed(self) -> str:
        """Return what the stronger word, certain, assumes."""
        if self.new:
            return "ordinary rows come from the distribution of the fitted ones"
        return "scores of ordinary rows fall off beyond the others as they do among them"

    @cached_property
    def gap(self) -> int:
        """Number of least likely rows that a gap of the scores sets apart from all others; 0 without a clear one."""
        return rows_before_gap(self.scores, int(self.flagged.sum()))

    def _apart(self) -> list[str]:
        """Return whether a gap of the scores sets the least likely rows apart."""
        if not self.gap:
            return ["No gap in the scores sets these rows apart from the others."] * bool(self.flagged.any())
        below, above = self.scores[self.order[self.gap - 1]], self.scores[self.order[self.gap]]
        if self.gap == 1:
            which, these = "the least likely row", f"its score is {below:.4g}"
        else:
            which, these = f"the {self.gap:,} least likely rows", f"their scores are at most {below:.4g}"
        apart = f"A gap in the scores sets {which} apart from the others: {these}, those of all others at least {above:.4g}."
        return [apart, *shared_values.sentence(self.names, self.values, self.order[: self.gap])]

    def _least_likely(self) -> list[str]:
        """Return the sentence on the least likely row."""
        row = int(self.order[0])
        place = place_text(self.where, row)
        reason = self.reasons()[row] or values_text(self, np.array([row]))[0]
        words = f"The least likely one is {place} (score {self.scores[row]:.4g}, p {self.pvalue_text(row)})"
        return [f"{words}: {reason.replace('  ', ', ')}."]

    def _tables(self) -> list[ShownTable]:
        """Return the least likely rows: rank, place, score, p-value, flag, why, and the values of the row."""
        first = self.order[:MOST_ROWS]
        where = {name: column[first] for name, column in self.where.items()}
        flags = np.where(self.certain[first], "certain", np.where(self.flagged[first], "flagged", ""))
        why = "most extreme values" if self.explanation is None else "explained by"
        reasons = values_text(self, first, COLUMNS_A_ROW) if self.explanation is None else self.reasons()[first]
        columns: dict[str, Any] = {"rank": np.arange(1, len(first) + 1)} | where | {"score": self.scores[first]}
        columns |= {"pvalue": self.p_values[first], "flag": flags}
        if self.at_least is not None:
            columns["at least"] = self.at_least[: len(first)]
        columns[why] = reasons
        brief = list(columns)
        chosen, cells = self._telling_columns(), self.values[first]
        for j in chosen:
            name = self.names[j] if self.names[j] not in columns else f"{self.names[j]} (column)"
            columns[name] = cells[:, j]
        about = f"{len(chosen)} of {len(self.names)} columns are shown." if len(chosen) < len(self.names) else ""
        computed = frozenset({"score", "pvalue", "at least"})
        return [ShownTable("The least likely rows", columns, len(self), about, computed, brief)]

    def _telling_columns(self) -> list[int]:
        """Return the columns to show, in the order of the table; of many, those in which flagged rows deviate most."""
        if len(self.names) <= _MOST_COLUMNS:
            return list(range(len(self.names)))
        names, numbers = self.numbers
        marked = self.order[: max(10, int(self.flagged.sum()))]
        first = [self.names.index(names[j]) for j in columns_by_deviation(numbers, marked)[:_MOST_COLUMNS]]
        return sorted(first or range(_MOST_COLUMNS))

    def _charts(self) -> list[Chart]:
        rows = rows_chart(self)
        first = [] if rows is None else [rows]
        limits = [] if self.at_least is None or not self.at_least.any() else [certificate_chart(self, self.at_least)]
        return [*first, scores_chart(self), *limits]

    def _notes(self) -> list[str]:
        notes = [
            "score: higher is more normal.",
            "pvalue: the share of ordinary rows that are at least as unlikely; small values are unusual. It is not smaller than "
            f"{self.resolution:.3g}, which is what these rows can show.",
            f"flagged: {self.rule}.",
            f"certain: selected so that about {self.fdr:.3g} of the selected rows are expected to be ordinary, if "
            f"{self._assumed}."
            + " Rows that are known to be ordinary, as a reference, replace this assumption."
            * (self.at_least is None),
        ]
        if self.at_least is not None:
            notes.append(
                "at least: a lower limit on the number of anomalies among the rows up to this one. All limits hold together "
                f"with {self.confidence:.0%} confidence, if ordinary new rows come from the distribution of the reference."
            )
        return notes + [
            "explained by: the cells that fit the others of their row least, with what is usual there (the middle 90 % of the "
            "law of the column given the others); or, if all fit, those that are rare by themselves."
        ] * (self.explanation is not None)

    def _used(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "number") if self.values.dtype.kind == "f" else {}

    def pvalue_text(self, row: int) -> str:
        """Return a p-value with its sign: "= 0.01", or "<= 0.001" where the rows show no smaller ones."""
        return pvalue_text(self.p_values[row], self.resolution)

    @property
    def times(self) -> list[str]:
        """Names of the columns of :attr:`numbers` that hold times, in seconds since 1970."""
        return self.drawn[2] if self.drawn is not None else []

    @cached_property
    def numbers(self) -> tuple[list[str], np.ndarray]:
        """Names and values of the columns of numbers, NaN where a cell is missing."""
        if self.drawn is not None:
            return self.drawn[1], self.drawn[0]
        if self.values.dtype.kind == "f":
            return self.names, np.asarray(self.values)
        found = {}
        for name, column in zip(self.names, self.values.T, strict=True):
            with suppress(TypeError, ValueError):
                found[name] = np.array([np.nan if cell is None else float(cell) for cell in column])
        return list(found), np.column_stack(list(found.values())) if found else np.empty((len(self), 0))


def with_fields(found: Anomalies, **fields: Any) -> Anomalies:
    """Return anomalies with other fields than the scores; the order of the rows is not sought again."""
    changed = replace(found, **fields)
    vars(changed)["order"] = found.order
    return changed


_MOST_DOTS, _MOST_FLAGGED = 2000, 800
# Rows with which the values of a row are compared for its text.
COMPARED_ROWS = 20_000
# Values in the text of a dot, and dots that carry their rank.
_VALUES, _MOST_NUMBERED = 5, 20
# So many rows are marked where none is flagged.
_LEAST_LIKELY = 10
# Rows that the density of the isopleths is fitted to, places along each side of its grid, and the masses of the regions.
_MOST_FITTED, _GRID, _MASSES = 500, 60, (0.5, 0.8, 0.95, 0.99)
_MARGIN = 0.06
# Ranges of the rows that are not flagged that the frame has at either side of them, at most.
_ROOM = 2.0
# Interquartile ranges below the first quartile at which the frame of the scores ends: one wild score must not flatten the others.
_WILD = 20.0


def rows_chart(found: Anomalies) -> Chart | None:
    """Return the rows in two columns of numbers that explain the least likely ones, or in which flagged ones deviate most."""
    names, numbers = found.numbers
    complete = ~np.isnan(numbers).any(axis=0)
    names, numbers = [name for name, kept in zip(names, complete, strict=True) if kept], numbers[:, complete]
    flagged = found.order[found.flagged[found.order]]
    marked = flagged if len(flagged) else found.order[:_LEAST_LIKELY]
    extreme = columns_by_deviation(numbers, marked) if numbers.shape[1] else np.empty(0, dtype=int)
    reasons = [names.index(name) for name in _reasons_of_first(found) if name in names]
    chosen = np.sort(list(dict.fromkeys([*reasons, *extreme]))[:2]).astype(int)
    if not len(chosen):
        return None
    points, axes = numbers[:, chosen], [names[j] for j in chosen]
    low, high = robust_range(points)
    others = np.setdiff1d(np.arange(len(found)), marked)
    if len(others):  # one wild value must not shrink the cloud of the others to a point
        least, most = points[others].min(axis=0), points[others].max(axis=0)
        room = _ROOM * (most - least)
        low, high = np.where(room > 0.0, [np.maximum(low, least - room), np.minimum(high, most + room)], [low, high])
    contours, curve = _density(points[others] if len(flagged) else points, points, low, high)
    series = curve + _dots(found, points, low, high, others, marked)
    outside = int(((points < low) | (points > high)).any(axis=1).sum())
    about = f"The columns in which {'flagged' if len(flagged) else 'the least likely'} rows deviate most"
    if reasons:
        about = "The columns of numbers that explain the least likely rows"
    about += ", and the regions that hold 50, 80, 95 and 99 % of a density of the others." * (contours is not None)
    about += "." * (contours is None)
    about += f" Triangles: {counted(outside, 'row')} beyond the frame." * bool(outside)
    where = " and ".join(axes)
    title = f"{counted(len(flagged), 'flagged row')} in {where}" if len(flagged) else f"No row is flagged in {where}"
    times = "".join(axis for axis, name in zip("xy", axes, strict=False) if name in found.times)
    y_label = axes[1] if len(axes) == 2 else "density"
    return Chart(title, axes[0], y_label, series, about, times=times, contours=contours)


def _reasons_of_first(found: Anomalies) -> list[str]:
    """Return the columns that explain the least likely rows; the row of rank k counts 1/k."""
    why, rows = found.explanation, found.explained_rows
    if why is None or rows is None:
        return []
    weight = np.zeros(len(why.names))
    rank = np.argsort(found.order, kind="stable")[rows] + 1
    for i in np.flatnonzero(rank <= _LEAST_LIKELY):
        surprise = why.surprise(int(i))
        weight += surprise / max(float(surprise.max()), 1e-300) / rank[i]
    return [why.names[j] for j in np.argsort(-weight, kind="stable") if weight[j] > 0.0]


def _density(
    rows: np.ndarray, points: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[Contours | None, list[Series]]:
    """Return the isopleths of a density of two columns of `rows`, or its curve for one column."""
    from isopleth.density import SOSREP  # here, since detectors need no density until they draw

    # If so many rows are flagged that the others have no density, the density of all rows is drawn.
    fitted = rows if len(rows) > 1 and np.ptp(rows, axis=0).all() else points
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about two columns of a table that was warned of at fit
        try:
            density = SOSREP(frame="scale").fit(some(fitted, _MOST_FITTED))
            levels = density.level_set(_MASSES)
        except InputError:  # a column whose frame is one value has no density
            return None, []
        margin = _MARGIN * (high - low)
        sides = np.linspace(low - margin, high + margin, _GRID if len(low) == 2 else 4 * _GRID, axis=-1)
        if len(low) == 1:
            return None, [Series("density", sides[0], np.exp(density.score_samples(sides[0][:, None])), "line", "blue")]
        grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        height = density.score_samples(grid).reshape(_GRID, _GRID)
    labels = {float(level): f"{mass:.0%}" for level, mass in zip(levels, _MASSES, strict=True) if np.isfinite(level)}
    kept = sorted(level for level in labels if level < height.max())
    if not kept:
        return None, []
    floor = np.maximum(height, kept[0] - 50.0)  # no line can be interpolated between a number and minus infinity
    return Contours(sides[0], sides[1], floor, kept, [labels[level] for level in kept]), []


def _dots(
    found: Anomalies, points: np.ndarray, low: np.ndarray, high: np.ndarray, others: np.ndarray, marked: np.ndarray
) -> list[Series]:
    """Return the series of dots of a picture: plain rows, flagged ones, and those that are known to be anomalies."""
    flagged = bool(found.flagged.any())
    plain, strong = some(others, _MOST_DOTS), marked[:_MOST_FLAGGED]
    grey = f"not flagged ({len(plain):,} of {len(others):,} shown)"
    name = f"flagged ({len(marked):,})" if flagged else f"the {len(marked)} least likely, not flagged"
    ranks = [str(rank + 1) for rank in range(min(len(strong), _MOST_NUMBERED))]
    more: dict[str, Any] = {"notes": _row_notes(found, strong), "strong": True, "labels": ranks}
    series = [
        dots(grey, points[plain], low, high, notes=_row_notes(found, plain)),
        dots(name, points[strong], low, high, "vermillion" if flagged else "text", **more),
    ]
    if found.known is not None:
        rows = np.flatnonzero(found.known)
        drawn = dots("", points[rows], low, high)
        series.append(Series(f"known anomaly ({len(rows):,})", drawn.x, drawn.y, "crosses", "text"))
    return series


def certificate_chart(found: Anomalies, at_least: np.ndarray) -> Chart:
    """Return the lower limits on the number of anomalies in lists, beside lists of anomalies only."""
    count = max(_LEAST_LIKELY, min(len(found), 2 * int(np.searchsorted(at_least, at_least[-1])) + 2))
    k = np.unique(np.linspace(1, min(count, len(found)), 600).round().astype(int))
    series = [
        Series("at least", k, at_least[k - 1], "steps", "vermillion", strong=True),
        Series("all rows of the list", k, k, "line", "grey", dashed=True),
    ]
    most = int(at_least[-1])
    title = f"At least {most:,} of {counted(len(found), 'row')} {'is an anomaly' if most == 1 else 'are anomalies'}"
    about = (
        f"Lower limits for lists of the least likely rows; all hold together with {found.confidence:.0%} confidence."
    )
    return Chart(title, "rows in the list", "anomalies in it", series, about)


def scores_chart(found: Anomalies) -> Chart:
    """Return the scores of all rows in order, those of flagged rows in another colour."""
    n, order = len(found), found.order
    ranks = np.unique(np.geomspace(1, n, 600).round().astype(int)) - 1
    scores, flagged = found.scores[order], found.flagged[order]
    quarter, three = np.percentile(scores, [25, 75])
    lowest = quarter - _WILD * (three - quarter)
    series = []
    for name, colour, mask in (("not flagged", "grey", ~flagged), ("flagged", "vermillion", flagged)):
        chosen = ranks[mask[ranks]]
        if len(chosen):
            drawn, beyond = np.maximum(scores[chosen], lowest), np.where(scores[chosen] < lowest, 180, -1)
            more: dict[str, Any] = {"notes": _row_notes(found, order[chosen]), "strong": colour != "grey"}
            series.append(
                Series(f"{name} ({int(mask.sum()):,})", chosen + 1, drawn, "dots", colour, beyond=beyond, **more)
            )
    title = "No row is flagged"
    if flagged.any():
        title = f"Rows are flagged up to p = {found.p_values[order][flagged].max():.3g}"
    if found.known is not None:
        rank = np.argsort(order, kind="stable")[found.known]
        caught = int(found.flagged[found.known].sum())
        title = f"{caught} of {len(rank)} known anomalies are flagged"
        series.append(Series("known anomaly", rank + 1, np.maximum(scores[rank], lowest), "crosses", "text"))
    x_label = "rank, the least likely row first"
    return Chart(title, x_label, "score", series, "Scores of all rows in order; higher is more normal.", log_x=True)


def _row_notes(found: Anomalies, rows: np.ndarray) -> list[str]:
    """Return what the picture says of a row under the mouse."""
    where = [place_text(found.where, i) for i in rows]
    reasons = found.reasons()[rows]
    marks = ["certain" if found.certain[i] else "flagged" if found.flagged[i] else "not flagged" for i in rows]
    return [
        f"{place} ({mark}): score {found.scores[i]:.4g}, p {found.pvalue_text(i)}\n{why or values}"
        for place, mark, i, why, values in zip(where, marks, rows, reasons, values_text(found, rows), strict=True)
    ]


def values_text(found: Anomalies, rows: np.ndarray, most: int = _VALUES) -> list[str]:
    """Return the most extreme values of rows as text."""
    cells = found.values[rows]
    return [
        "  ".join(f"{found.names[j]}={cell_text(row[j])}" for j in np.argsort(-z, kind="stable")[:most] if z[j] >= 0.0)
        for row, z in zip(
            cells, _deviations(cells, found.values[sample_places(len(found), COMPARED_ROWS)]), strict=True
        )
    ]


def _deviations(cells: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how extreme cells are among other rows: in robust deviations; for words, the deviation of a normal law as rare.

    Cells of a column of one word have -1, since they are never extreme.
    """
    out = np.zeros(cells.shape)
    for j, (column, beside) in enumerate(zip(cells.T, others.T, strict=True)):
        numbers, known = (x if x.dtype != object else _numbers(x) for x in (column, beside))
        if numbers is None or known is None:
            words, counts = np.unique([str(cell) for cell in beside], return_counts=True)
            share = dict(zip(words.tolist(), counts / len(beside), strict=True))
            rare = np.array([share.get(str(cell), 0.5 / len(beside)) for cell in column])
            out[:, j] = ndtri(1.0 - 0.5 * rare) if len(words) > 1 else -1.0
        else:
            known = known[np.isfinite(known)]
            if len(known):
                out[:, j] = np.nan_to_num(np.abs(deviations_of(numbers[:, None], known[:, None])[:, 0]))
    return out


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """Return a column of objects as numbers; None if it holds words."""
    kinds = {type(cell) for cell in column if cell is not None}
    if not kinds or any(issubclass(kind, str) for kind in kinds):
        return None
    if any(issubclass(kind, datetime) for kind in kinds):
        return np.array([np.nan if cell is None else cell.timestamp() for cell in column])
    if any(issubclass(kind, time) for kind in kinds):  # of day
        return np.array(
            [np.nan if cell is None else 3600 * cell.hour + 60 * cell.minute + cell.second for cell in column]
        )
    return np.array([np.nan if cell is None else cell for cell in column], dtype=np.float64)
