"""Result of a search for changes: places, kinds and intervals, in tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from isopleth.results.charts import Chart
from isopleth.results.keys import NUMBER, PLACE, Fact, Key
from isopleth.results.result import Result, ShownTable, shown
from isopleth.results.text import counted, in_words
from isopleth.tables.time_text import as_datetime, places_of_times, time_words
from isopleth.tasks.changes.beside import height_of_incident, numbers_beside
from isopleth.tasks.changes.changed_season import changed_part
from isopleth.tasks.changes.charts import charts
from isopleth.tasks.changes.zones import in_zone

# Time of a day at which it begins, in words.
_MIDNIGHT = " 00:00:00"
# Most stretches that stand still in the sentences.
_MOST_STILL = 8
# Seconds of seasons that have names, and largest relative difference.
_NAMED = {86_400.0: "days", 604_800.0: "weeks", 2_629_746.0: "months", 31_556_952.0: "years"}
_OFF = 1e-3
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
# What stands before and after a change.
_BESIDE = (
    "mean without the seasons, or the value of its line where a part beside a change of level rises or falls (of a change of "
    "scatter the standard deviation, of slope the rise a step, of frequency the period in steps, of the relation of two columns "
    "their correlation)"
)


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
        Sentences on times that are uneven, lack steps or have a clock that is set; steps of the result are rows of the series.
    periods : ndarray of shape (k,), optional
        Mean lengths in steps of the seasons that were taken out before changes were sought.
    searched : ndarray of shape (T, d), optional
        The values in which changes were sought, in the units of the series: without the seasons, and increments in place of
        running totals. By default the series.
    totals : tuple of int
        Columns that are running totals.
    trend : str
        "line" or "curve" if the series drifts along one, which changes describe no better; "" if it does not.
    zone : str, optional
        Time zone of `times`, which then are datetimes in UTC.
    given : tuple of str
        Names of columns that were given.
    judged : tuple of str
        How each column was judged if columns were given: "rate" for a count in proportion to the only one, else "residual".
    follows : tuple of (int, str)
        Counts with changes that follow another count, and the name of this one.
    followed_by : dict of str to int
        Kinds of changes that were sought, and how many steps have to follow one: later changes are not sought.
    still : tuple of (int, int, int)
        First step, last step and column of each stretch at which a column that moves elsewhere has one value. The search takes
        these steps as gaps, unless they are more than a quarter of the column.
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
    searched: np.ndarray | None = field(default=None, repr=False)
    totals: tuple[int, ...] = field(default=(), repr=False)
    trend: str = field(default="", repr=False)
    zone: str | None = field(default=None, repr=False)
    given: tuple[str, ...] = field(default=(), repr=False)
    judged: tuple[str, ...] = field(default=(), repr=False)
    follows: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    followed_by: dict[str, int] = field(default_factory=dict, repr=False)
    still: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.change_points)

    def __repr__(self) -> str:
        found = [
            f"{self.change_points[i]}{'' if end is None else f' to {end}'} ({self.kinds[i]})"
            for i, end in zip(*self._told, strict=True)
        ]
        return f"ChangePoints({', '.join(found) or 'none'})"

    kind = "change_points"
    title = "Changes of a series"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each change, an incident being one, with the numbers before and after it in every column."""
        starts, last = self._told
        steps, chosen = self.change_points[starts], np.asarray(starts, dtype=int)
        out: dict[str, Any] = {name: column[steps] for name, column in self.where.items()}
        out = out or {"change": steps}
        if self.clock is not None:
            out["time"] = self.clock[steps]
        ends, names = self.steps[1][self.intervals[chosen]], self.names or list(map(str, range(self.series.shape[1])))
        out |= {
            "earliest": ends[:, 0],
            "latest": ends[:, 1],
            "kind": self.kinds[chosen],
            "pvalue": self.p_values[chosen],
        }
        out["columns"] = np.array([", ".join(names[j] for j in self.columns[i]) for i in starts], dtype=object)
        if len(self.incidents):
            out["until"] = np.array([np.nan if end is None else self.steps[1][end] for end in last], dtype=np.float64)
            heights = [np.nan if end is None else self._height(i) for i, end in zip(starts, last, strict=True)]
            out["height"] = np.array(heights)
        out["state"] = self.segment_states[1:][chosen]
        before, after = self._beside
        for j in range(self.series.shape[1]):
            label = "" if self.series.shape[1] == 1 else f"_{j if self.names is None else self.names[j]}"
            out |= {f"before{label}": before[:, j], f"after{label}": after[:, j]}
        return out

    @property
    def _judged(self) -> np.ndarray:
        """Values in which changes were sought."""
        return self.series if self.searched is None else self.searched

    @property
    def _parts(self) -> list[np.ndarray]:
        """Parts of these values between the changes."""
        return np.split(self._judged, self.change_points.astype(int))

    @property
    def _beside(self) -> tuple[np.ndarray, np.ndarray]:
        """Values before and after each told change, of shape (m, d) each; after an incident, those after its end."""
        starts, last = self._told
        parts, dim = self._parts, self.series.shape[1]
        out = np.empty((2, len(starts), dim))
        for row, (i, end) in enumerate(zip(starts, last, strict=True)):
            for side, part in enumerate((parts[i], parts[i + 1 + (end is not None)])):
                out[side, row] = numbers_beside(str(self.kinds[i]), part, self.columns[i], first=side == 1)
        return out[0], out[1]

    @cached_property
    def _told(self) -> tuple[list[int], list[int | None]]:
        """Numbers of the changes that are told, an incident by its start, and the last step of each incident."""
        starts: list[int] = []
        last: list[int | None] = []
        i = 0
        while i < len(self):
            both = i + 1 < len(self) and self.kinds[i] == self.kinds[i + 1] == "incident"
            starts.append(i)
            last.append(int(self.change_points[i + 1]) - 1 if both else None)
            i += 1 + both
        return starts, last

    @property
    def count(self) -> int:
        """Number of changes, an incident counted once."""
        return len(self._told[0])

    @cached_property
    def clock(self) -> np.ndarray | None:
        """Times of the steps in their zone."""
        return self.times if self.times is None or self.zone is None else in_zone(self.times, self.zone)

    @property
    def segment_states(self) -> np.ndarray:
        """State of each segment, from 0."""
        return np.arange(len(self) + 1) if self.states is None else np.asarray(self.states)

    @property
    def steps(self) -> tuple[str, np.ndarray]:
        """Name of a step, and the numbers of the steps: lines of a file, else steps counted from 0."""
        return next(iter(self.where.items()), ("step", np.arange(len(self.series))))

    facts: ClassVar[dict[str, Fact]] = {
        "rows": Fact("integer", "steps of the series", lambda found: len(found.series)),
        "columns": Fact("integer", "columns of the series", lambda found: found.series.shape[1]),
        "changes": Fact("integer", "number of changes, an incident counted once", lambda found: found.count),
        "followed_by": Fact(
            "object",
            "kinds of changes that were sought, and how many steps have to follow one",
            lambda found: found.followed_by,
        ),
        "standing_still": Fact(
            "list of object",
            "stretches at which a column that moves elsewhere has one value, as a sensor that froze does",
            lambda found: [
                {
                    "column": found._name(column),
                    "value": float(found.series[first, column]),
                    "first": int(found.steps[1][first]),
                    "last": int(found.steps[1][last]),
                    "steps": last - first + 1,
                }
                for first, last, column in found.still
            ],
            {
                "column": Key("string", "name of the column"),
                "value": Key("number", "the value"),
                "first": Key("integer", "first step, counted like the place of a change"),
                "last": Key("integer", "last step"),
                "steps": Key("integer", "number of steps"),
            },
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = PLACE | {
        "change": Key(
            "integer", "first step after it, counted from 0, where rows of a file are not known", optional=True
        ),
        "time": Key("string or number", "time of the step, if the series has times", optional=True),
        "earliest": Key("integer", "lower limit of a 90 % interval for the place, counted like the place"),
        "latest": Key("integer", "upper limit"),
        "kind": Key("string", "level, incident, slope, scatter, shape, frequency or relation"),
        "pvalue": Key(NUMBER, "about the least false alarm rate at which it would be reported"),
        "columns": Key("string", "columns in which it was seen"),
        "until": Key("integer or null", "last step of an incident, counted like the place", optional=True),
        "height": Key(NUMBER, "how far an incident is above what is beside it, without the seasons", optional=True),
        "state": Key("integer", "state of the part after it; parts that are alike have the same one"),
        "before": Key(NUMBER, f"{_BESIDE} before it; before_NAME for several columns", optional=True),
        "after": Key(NUMBER, "the same after it, or after the end of an incident; after_NAME", optional=True),
    }

    def _sentences(self) -> list[str]:
        steps = counted(len(self.series), "step")
        about = [self.spacing] * bool(self.spacing) + self._totals() + self._given() + self._drift() + self._seasons()
        about = [*self._standing_still(), *about]
        if not len(self):
            return [f"The series of {steps} shows no change.", *about]
        places, single = self._places(), self.count == 1
        first = f"The series of {steps} changes {'once' if single else f'{self.count} times'}."
        told = f"The first {'step' if single else 'steps'} after a change: {in_words(places, 8)}."
        return [first, told, *self._changed_seasons(), *self._returning(), *about]

    def _changed_seasons(self) -> list[str]:
        """Return which part of a season changes, for each change of a scan of which this is known."""
        bounds, out = [0, *self.change_points.tolist(), len(self.series)], []
        for i in np.flatnonzero(np.isin(self.kinds, ["shape", "scatter", "frequency"])):
            before, after = (self.series[bounds[k] : bounds[k + 1]] for k in (i, i + 1))
            found = (
                (j, round(float(period)), changed_part(before[:, j], after[:, j], round(float(period))))
                for period in sorted([] if self.periods is None else self.periods, reverse=True)
                for j in self.columns[i]
            )
            for j, period, part in found:
                if part is not None:
                    size = f"{abs(part[2]):.3g} {'higher' if part[2] > 0.0 else 'lower'}"
                    after_what = f"{self.steps[0]} {self.steps[1][self.change_points[i]]}"
                    phases = self._phases(bounds[i], part[0], part[1], period)
                    out.append(f"From {after_what} on, {self._name(j)} is {size} {phases}.")
                    break
        return out

    def _phases(self, start: int, first: int, last: int, period: int) -> str:
        """Return a part of a cycle in words: times of a day or a week, or steps."""
        unit = {"days": ("day", "%H:%M"), "weeks": ("week", "%A %H:%M")}.get(self._season(period))
        moments = (
            [] if unit is None or self.clock is None else [as_datetime(self._cell(start + p)) for p in (first, last)]
        )
        if unit is None or any(moment is None for moment in moments) or not moments:
            return f"at steps {(start + first) % period} to {(start + last) % period} of each {period}, counted from 0"
        words = [moment.strftime(unit[1]) for moment in moments if moment is not None]
        return f"from {words[0]} to {words[1]} of each {unit[0]}"

    def _cell(self, step: int) -> Any:
        """Return a time as a datetime or text."""
        assert self.clock is not None
        time = self.clock[step]
        return time.astype("datetime64[us]").item() if isinstance(time, np.datetime64) else time

    def _standing_still(self) -> list[str]:
        """Return at which steps columns that move elsewhere stand still."""
        noun, numbers = self.steps
        out = []
        for first, last, column in self.still[:_MOST_STILL]:
            ends = [
                f"{noun} {numbers[step]}" if self.times is None else self.words_of_time(step) for step in (first, last)
            ]
            name, steps = self._name(column), counted(last - first + 1, "step")
            value = f"{self.series[first, column]:.6g}"
            out.append(
                f"{name if self.names else name.capitalize()} stands still at {value} from {ends[0]} to {ends[1]} ({steps})."
            )
        more = len(self.still) - len(out)
        return out + [f"Columns stand still {counted(more, 'more time')}."] * (more > 0)

    def _totals(self) -> list[str]:
        """Return which columns are running totals."""
        names = [self._name(j) for j in self.totals]
        if not names:
            return []
        which, whose = ("is a running total", "its") if len(names) == 1 else ("are running totals", "their")
        words = in_words(names)
        return [
            f"{words[0].upper() + words[1:] if not self.names else words} {which}: changes of {whose} increments were sought."
        ]

    def _given(self) -> list[str]:
        """Return how columns were judged given others, or which counts should be."""
        out, others = [], in_words(list(self.given), 8)
        for kind in ("rate", "residual"):
            names = in_words([self._name(j) for j, own in enumerate(self.judged) if own == kind], 8)
            how = f"per {others}" if kind == "rate" else f"given {others}: what follows from it is taken out"
            out += [f"Judged {'as rates' if kind == 'rate' else 'by residuals'}: {names}, {how}."] * bool(names)
        for j in dict.fromkeys(j for j, _ in self.follows):
            other = [name for own, name in self.follows if own == j]
            how = f"--given {other[0]}" if self.where else f"given={other[0]!r}"
            what = f"{how} judges its rate" if len(other) == 1 else "its rate is judged if one of them is given"
            out.append(f"{self._name(j)} is a count that follows {in_words(other, 8)}: {what}.")
        return out

    def _drift(self) -> list[str]:
        """Return how a series drifts that has no changes of slope."""
        if not self.trend or "slope" in self.kinds:
            return []
        how = "a line" if self.trend == "line" else "a smooth curve"
        changes = "further changes" if len(self) else "changes"
        along = f"along {how}: {changes} describe this no better, but are not ruled out."
        if self.series.shape[1] > 1 or len(self):
            return [f"{'Between changes it' if len(self) else 'It'} drifts {along}"]
        known = self._judged[~np.isnan(self._judged[:, 0]), 0]
        ends = max(len(known) // 10, 1)
        first, last = known[:ends].mean(), known[-ends:].mean()
        rise = f"from about {first:.3g} to about {last:.3g}"
        return [f"It drifts {rise} {along}"]

    def _seasons(self) -> list[str]:
        """Return which seasons were taken out, and how they stay in."""
        if self.periods is None or not len(self.periods):
            return []
        names = [self._season(float(period)) for period in self.periods]
        named = [name for name in names if name]
        lengths = [f"{period:.6g}" for period, name in zip(self.periods, names, strict=True) if not name]
        if lengths:
            noun = "a season" if len(lengths) == 1 else "seasons"
            named.append(f"{noun} of {in_words(lengths, 8)} steps")
        how = "--period none" if self.where else "period=None"
        return [f"Taken out: {in_words(named, 8)} ({how} leaves them in)."]

    def _season(self, period: float) -> str:
        """Return the name of a season of the calendar, or nothing."""
        if self.times is None or self.spacing.startswith("The times are uneven"):
            return ""
        places, dates = places_of_times(self.times)
        length = period * float(np.median(np.diff(places)))
        return next((f"{name}" for unit, name in _NAMED.items() if dates and abs(length - unit) <= _OFF * unit), "")

    def _name(self, column: int) -> str:
        """Return the name of a column of the series."""
        return self.names[column] if self.names else "the series" if self.series.shape[1] == 1 else f"column {column}"

    def _places(self) -> list[str]:
        """Return the places of the changes in words; both ends of an incident together, with its height."""
        noun, column = self.steps
        told = []
        for i, last in zip(*self._told, strict=True):
            place = self.change_points[i]
            time = "" if self.times is None else f", {self.words_of_time(place)}"
            if last is None:
                told.append(f"{noun} {column[place]} ({self.kinds[i]}{time})")
                continue
            time += "" if self.times is None else f" to {self.words_of_time(last)}"
            places = f"{noun} {column[place]}" if last == place else f"{noun}s {column[place]} to {column[last]}"
            height = self._height(i)
            size = f"{abs(height):.3g} {'higher' if height > 0.0 else 'lower'}"
            told.append(f"{places} (incident, {size}{time})")
        return told

    def words_of_time(self, step: int) -> str:
        """Return the time of a step in words; a day without its midnight, if all times are days."""
        if self.times is None:
            return ""
        assert self.clock is not None
        words = time_words(self.clock[step])
        return words.removesuffix(_MIDNIGHT) if self._in_days else words

    @cached_property
    def _in_days(self) -> bool:
        """Tell whether all times are the beginnings of days."""
        return (
            self.times is not None
            and self.zone is None
            and self.times.dtype.kind == "M"
            and bool((self.times == self.times.astype("M8[D]")).all())
        )

    def _height(self, number: int) -> float:
        """Return how far an incident is above stretches of the same length beside it."""
        start, end = self.change_points[number : number + 2]
        return height_of_incident(self._judged, int(start), int(end), self.columns[number])

    @property
    def incidents(self) -> np.ndarray:
        """First steps of incidents and the steps after them, of shape (k, 2)."""
        starts, last = self._told
        found = [(self.change_points[i], end + 1) for i, end in zip(starts, last, strict=True) if end is not None]
        return np.array(found, dtype=int).reshape(-1, 2)

    def _returning(self) -> list[str]:
        """Return which segments are in a state that comes back."""
        states = self.segment_states
        parts = {state: np.flatnonzero(states == state) + 1 for state in np.unique(states).tolist()}
        alike = {state: in_words(list(map(str, of_it)), 8) for state, of_it in parts.items() if len(of_it) > 1}
        return [
            f"State {state} comes back: of the {len(states)} parts between changes, {numbers} are alike."
            for state, numbers in alike.items()
        ]

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
        if self.clock is not None:
            places, dates = places_of_times(self.clock)
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
            f"before and after: {_BESIDE}.",
            *["until and height: last step of an incident, and how far it is from what is beside it."]
            * bool(len(self.incidents)),
            f"kind: {in_words([f'{kind} ({words})' if kind != words else kind for kind, words in MEANINGS.items()], 8)}.",
        ] * bool(len(self)) + self._too_late()

    def _too_late(self) -> list[str]:
        """Return at which steps before the end changes are not sought, and which kinds are not sought at all."""
        if not self.followed_by:
            return []
        of = {
            n: [kind for kind, own in self.followed_by.items() if own == n]
            for n in sorted(set(self.followed_by.values()))
        }
        last = "; ".join(f"{in_words(kinds)} in the last {counted(n - 1, 'step')}" for n, kinds in of.items())
        sought = [kind for kind in MEANINGS if kind != "incident" and (kind != "relation" or self.series.shape[1] > 1)]
        lacking = [kind for kind in sought if kind not in self.followed_by]
        short = f"The series is too short for changes of {in_words(lacking)}."
        told = f"Changes that too few steps follow are not sought: {last}; a level is if two steps stand out sharply."
        return [told, *[short] * bool(lacking)]
