"""Result of a search for changes: places, kinds and intervals, in tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, pairwise
from typing import Any, ClassVar

import numpy as np

from isopleth.results.charts import Chart, Series, thinned
from isopleth.results.keys import NUMBER, PLACE, Fact, Key
from isopleth.results.result import Result, ShownTable, shown
from isopleth.results.text import counted, in_words
from isopleth.tables.text_types import axis_of, time_words

_MOST_CURVES = 6
# Time of a day at which it begins, in words.
_MIDNIGHT = " 00:00:00"
# Descriptions of the kinds of changes.
MEANINGS = {
    "level": "level",
    "incident": "level that is left for a short while",
    "slope": "slope",
    "scatter": "scatter",
    "shape": "shape or dependence",
    "frequency": "frequency",
    "relation": "relation of columns",
}


@dataclass(frozen=True, eq=False)
class ChangePoints(Result):
    """Changes of a series.

    Parameters
    ----------
    change_points : ndarray of shape (m,), int
        First steps after the changes, ascending; the first step of the series is number 0.
    kinds : ndarray of shape (m,), str
        Kinds of the changes: "level", "slope", "scatter", "frequency", "relation" (between columns), or "shape" for any other;
        "incident" for the first step of a short level and that after it.
    series : ndarray of shape (T, d)
        The series.
    p_values : ndarray of shape (m,)
        The least false alarm rates at which each change would be reported.
    columns : list of tuple of int
        The columns in which each change was seen.
    intervals : ndarray of shape (m, 2), int
        Least and largest first step after each change: 90 % intervals.
    states : ndarray of shape (m + 1,), int, optional
        State of each segment; segments that are alike have the same one. By default all differ.
    where : dict of str to ndarray of shape (T,), optional
        Columns that say where the steps stand, such as lines of a file; by default steps are counted from 0.
    names : list of str, optional
        Names of the columns of the series.
    times : ndarray of shape (T,), optional
        Times of the steps.
    spacing : str, default=""
        A sentence on times that are uneven, or that lack steps; the steps of the result are rows of the series.
    periods : ndarray of shape (k,), optional
        Mean lengths in steps of the seasons that were taken out before changes were sought.
    """

    change_points: np.ndarray
    kinds: np.ndarray
    series: np.ndarray = field(repr=False)
    p_values: np.ndarray = field(repr=False)
    columns: list[tuple[int, ...]] = field(repr=False)
    intervals: np.ndarray = field(repr=False)
    states: np.ndarray | None = field(default=None, repr=False)
    where: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    names: list[str] | None = field(default=None, repr=False)
    times: np.ndarray | None = field(default=None, repr=False)
    spacing: str = field(default="", repr=False)
    periods: np.ndarray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.change_points)

    def __repr__(self) -> str:
        found = ", ".join(f"{place} ({kind})" for place, kind in zip(self.change_points, self.kinds, strict=True))
        return f"ChangePoints({found or 'none'})"

    kind = "change_points"
    title = "Changes of a series"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each change, with the means of the segments beside it in every column of the series."""
        bounds = np.concatenate([[0], self.change_points, [len(self.series)]]).astype(int)
        means = np.array([np.nanmean(self.series[a:b], axis=0) for a, b in pairwise(bounds)])
        out: dict[str, Any] = {name: column[self.change_points] for name, column in self.where.items()}
        out = out or {"change": self.change_points}
        if self.times is not None:
            out["time"] = self.times[self.change_points]
        ends, names = self.steps[1][self.intervals], self.names or list(map(str, range(self.series.shape[1])))
        out |= {"earliest": ends[:, 0], "latest": ends[:, 1], "kind": self.kinds, "pvalue": self.p_values}
        out["columns"] = np.array([", ".join(names[j] for j in some) for some in self.columns], dtype=object)
        out["state"] = self.segment_states[1:]
        for j in range(self.series.shape[1]):
            label = "" if self.series.shape[1] == 1 else f"_{j if self.names is None else self.names[j]}"
            out |= {f"before{label}": means[:-1, j], f"after{label}": means[1:, j]}
        return out

    @property
    def segment_states(self) -> np.ndarray:
        """State of each segment, from 0."""
        return np.arange(len(self) + 1) if self.states is None else np.asarray(self.states)

    @property
    def steps(self) -> tuple[str, np.ndarray]:
        """What the steps are called, and their numbers: lines of a file, else steps counted from 0."""
        return next(iter(self.where.items()), ("step", np.arange(len(self.series))))

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "steps of the series", lambda found: len(found.series)),
        "columns": Fact("integer", "columns of the series", lambda found: found.series.shape[1]),
        "changes": Fact("integer", "number of changes", len),
    }
    row_keys: ClassVar[dict[str, Key]] = PLACE | {
        "change": Key(
            "integer", "first step after it, counted from 0, where rows of a file are not known", optional=True
        ),
        "time": Key("string or number", "time of the step, if the series has times", optional=True),
        "earliest": Key("integer", "lower limit of a 90 % interval for the place, counted like the place"),
        "latest": Key("integer", "upper limit"),
        "kind": Key("string", "level, incident (both ends), slope, scatter, shape, frequency or relation"),
        "pvalue": Key(NUMBER, "about the least false alarm rate at which it would be reported"),
        "columns": Key("string", "columns in which it was seen"),
        "state": Key("integer", "state of the part after it; parts that are alike have the same one"),
        "before": Key(NUMBER, "mean before; before_NAME for several columns", optional=True),
        "after": Key(NUMBER, "mean after; after_NAME for several columns", optional=True),
    }

    def _sentences(self) -> list[str]:
        steps = counted(len(self.series), "step")
        spacing = [self.spacing] * bool(self.spacing) + self._seasons()
        if not len(self):
            return [f"The series of {steps} shows no change.", *spacing]
        kinds = self._told()
        first = f"The series of {steps} changes {'once' if len(kinds) == 1 else f'{len(kinds)} times'}."
        places = f"The first {'step' if len(kinds) == 1 else 'steps'} after a change: {in_words(kinds, 8)}."
        return [first, places, *self._returning(), *spacing]

    def _seasons(self) -> list[str]:
        """Return which seasons were taken out, and how they stay in."""
        if self.periods is None or not len(self.periods):
            return []
        noun = "a season" if len(self.periods) == 1 else "seasons"
        lengths = in_words([f"{period:.6g}" for period in self.periods], 8)
        return [f"Taken out: {noun} of {lengths} steps (with period none they stay in)."]

    def _told(self) -> list[str]:
        """Return the places of the changes in words; both ends of an incident together, with its height."""
        noun, column = self.steps
        told, ends = [], set(self.incidents[:, 1].tolist())
        starts = dict(zip(self.incidents[:, 0].tolist(), self.incidents[:, 1].tolist(), strict=True))
        for i, (place, kind) in enumerate(zip(self.change_points, self.kinds, strict=True)):
            if place in ends and kind == "incident" and place not in starts:
                continue
            time = "" if self.times is None else f", {self.words_of_time(place)}"
            if place in starts:
                last = starts[place] - 1
                time += "" if self.times is None else f" to {self.words_of_time(last)}"
                told.append(f"{noun}s {column[place]} to {column[last]} (incident, {self._height(i)}{time})")
            else:
                told.append(f"{noun} {column[place]} ({kind}{time})")
        return told

    def words_of_time(self, step: int) -> str:
        """Return the time of a step in words; a day without its midnight, if all times are days."""
        if self.times is None:
            return ""
        words = time_words(self.times[step])
        return words.removesuffix(_MIDNIGHT) if self._in_days else words

    @cached_property
    def _in_days(self) -> bool:
        """Whether all times are the beginnings of days."""
        return (
            self.times is not None
            and self.times.dtype.kind == "M"
            and bool((self.times == self.times.astype("M8[D]")).all())
        )

    def _height(self, number: int) -> str:
        """Return in words how far the largest column of an incident is from stretches of the same length beside it."""
        start, end = self.change_points[number : number + 2]
        length = end - start
        around = [self.series[max(start - length, 0) : start], self.series[end : end + length]]
        heights = np.nanmean(self.series[start:end], axis=0) - np.mean([np.nanmean(a, axis=0) for a in around], axis=0)
        own = heights[list(self.columns[number])]
        height = float(own[np.argmax(np.abs(own))])
        return f"{abs(height):.3g} {'higher' if height > 0.0 else 'lower'}"

    @property
    def incidents(self) -> np.ndarray:
        """First steps of incidents and the steps after them, of shape (k, 2)."""
        found, i = [], 0
        while i < len(self) - 1:
            both = self.kinds[i] == self.kinds[i + 1] == "incident"
            if both:
                found.append(self.change_points[i : i + 2])
            i += 1 + both
        return np.array(found, dtype=int).reshape(-1, 2)

    def _returning(self) -> list[str]:
        """Return which segments are in a state that comes back."""
        states = self.segment_states
        groups = [np.flatnonzero(states == state) + 1 for state in np.unique(states)]
        alike = [in_words([str(number) for number in group], 8) for group in groups if len(group) > 1]
        return [f"Segments {numbers} are alike: a state comes back." for numbers in alike]

    def axis(self) -> tuple[str, np.ndarray, bool]:
        """Return where pictures show the steps: at their times if known, else at their lines of a file, else counted from 0.

        Returns
        -------
        name : str
            Name of the axis.
        change_points : ndarray of shape (T,)
            Place of each step.
        dates : bool
            Whether places are seconds since 1970.
        """
        if self.times is not None:
            places, dates = axis_of(self.times)
            if (np.diff(places) > 0.0).all():  # nanoseconds are less than the digits of seconds since 1970
                return "time", places, dates
        name, counts = self.steps
        return name, np.asarray(counts, dtype=np.float64), False

    def _tables(self) -> list[ShownTable]:
        return [shown("Changes", self._columns())]

    def _charts(self) -> list[Chart]:
        return charts(self)

    def _notes(self) -> list[str]:
        noun, _ = self.steps
        return [
            f"{noun}: the first one after the change.{'' if self.where else ' Steps are counted from 0.'}",
            f"earliest and latest: {noun}s between which the first one after the change is, with a probability of about 90 %.",
            "pvalue: about the least false alarm rate at which the change would be reported.",
            "state: that of the part after the change; parts that are alike have the same one, and the first part has state 0.",
            "before and after: means of the parts of the series beside the change.",
            f"kind: {in_words([f'{kind} ({words})' if kind != words else kind for kind, words in MEANINGS.items()], 8)}.",
        ] * bool(len(self))


def charts(found: ChangePoints) -> list[Chart]:
    """Return each column of the series with its changes, their intervals and the means between them."""
    dim = found.series.shape[1]
    names = found.names or (["value"] if dim == 1 else [f"column {j}" for j in range(dim)])
    noun, where = found.steps
    axis, moments, dates = found.axis()
    when = np.full(len(moments), "")
    if found.times is not None:
        when = np.array([f" ({found.words_of_time(step)})" for step in range(len(moments))])
    borders = [_border(moments, place) for place in found.change_points]
    lines = [
        (border, f"{noun} {where[place]}{when[place]}, {kind}")
        for place, kind, border in zip(found.change_points, found.kinds, borders, strict=True)
    ]
    # A change between two rows that a gap separates may be anywhere in the gap.
    half = 0.5 * float(np.median(np.diff(moments)))
    bands = [(float(moments[max(a - 1, 0)]) + half, float(moments[b]) - half) for a, b in found.intervals]
    title = f"{len(found)} change{'' if len(found) == 1 else 's'}" if len(found) else "no change"
    out = []
    for j in range(min(dim, _MOST_CURVES)):
        steps, values = thinned(found.series[:, j])
        notes = [f"{noun} {where[s]}{when[s]}: {v:.6g}" for s, v in zip(steps, values, strict=True)]
        curve = Series(names[j], moments[steps], values, "line", "blue", notes)
        series = [curve, *_means(found, j, moments, borders)]
        about = "Vertical bands: 90 % intervals of the changes." * bool(bands)
        about += f" {_MOST_CURVES} of {dim} columns are shown." * (j == 0 and dim > _MOST_CURVES)
        how: dict[str, Any] = {"lines": lines, "bands": bands, "times": "x" * dates, "wide": True}
        out.append(Chart(f"{names[j]}: {title}", axis, names[j], series, about.strip(), **how))
    return out


def _border(moments: np.ndarray, place: int) -> float:
    """Return the middle between a step and the one before it."""
    return float(0.5 * (moments[place] + moments[max(place - 1, 0)]))


def _means(found: ChangePoints, column: int, moments: np.ndarray, borders: list[float]) -> list[Series]:
    """Return the mean of each segment, unless slopes, frequencies or relations changed, which it does not describe."""
    if not len(found) or not set(found.kinds) <= {"level", "incident", "scatter", "shape"}:
        return []
    bounds = [0, *found.change_points.tolist(), len(found.series)]
    ends = [moments[0], *borders, moments[-1]]
    states = found.segment_states
    # One colour, unless a state comes back.
    returns = len(np.unique(states)) < len(states)
    out: dict[str, tuple[list[float], list[float]]] = {}
    for (a, b), (start, stop), state in zip(pairwise(bounds), pairwise(ends), states, strict=True):
        part = found.series[a:b, column]
        mean = np.nanmean(part) if not np.isnan(part).all() else np.nan
        x, y = out.setdefault(f"mean, state {state}" if returns else "mean of the segment", ([], []))
        x += [start, stop, stop]
        y += [mean, mean, np.nan]
    colours = cycle(("text", "vermillion", "grey"))
    return [Series(name, x, y, "line", next(colours), strong=True) for name, (x, y) in out.items()]
