"""Pictures of a result of a search for changes: each column with its changes, their intervals and the levels between them."""

from __future__ import annotations

from functools import cached_property
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

import numpy as np

from isopleth.results.charts import Chart, Series, thinned
from isopleth.results.text import counted, in_words
from isopleth.tasks.changes.beside import line_at_ends

if TYPE_CHECKING:
    from isopleth.tasks.changes.result import ChangePoints

_MOST_CURVES = 6
# Least share of the width of a picture that the band of an incident has: 40 minutes of five weeks would not be seen.
_LEAST_BAND = 0.008
# Kinds of changes between which a segment is described by its mean.
_OF_MEANS = {"level", "incident", "scatter", "shape"}


def charts(found: ChangePoints) -> list[Chart]:
    """Return the chart of each column, as far as there is room."""
    drawn = _ChangeCharts(found)
    return [drawn.chart(column) for column in range(min(found.series.shape[1], _MOST_CURVES))]


class _ChangeCharts:
    """Charts of the columns of a series, which have lines, bands and words in common."""

    def __init__(self, found: ChangePoints) -> None:
        self._found = found
        self._label, self._moments, self._dates = found.axis()
        self._noun, self._numbers = found.steps
        self._title = counted(found.count, "change") if len(found) else "no change"

    def chart(self, column: int) -> Chart:
        """Return the chart of a column."""
        name = self._names[column] + self._given(column)
        return Chart(
            f"{name}: {self._title}",
            self._label,
            name,
            [self._curve(column), *self._means(column)],
            self._about(column),
            lines=self._lines,
            bands=self._bands,
            times="x" * self._dates,
            wide=True,
        )

    @cached_property
    def _names(self) -> list[str]:
        count = self._found.series.shape[1]
        return self._found.names or (["value"] if count == 1 else [f"column {j}" for j in range(count)])

    def _words(self, step: int) -> str:
        """Return a step in words, with its time."""
        when = "" if self._found.times is None else f" ({self._found.words_of_time(step)})"
        return f"{self._noun} {self._numbers[step]}{when}"

    @cached_property
    def _borders(self) -> list[float]:
        """Middles between the first steps after the changes and those before them."""
        places = self._found.change_points
        return (0.5 * (self._moments[places] + self._moments[np.maximum(places - 1, 0)])).tolist()

    @cached_property
    def _lines(self) -> list[tuple[float, str]]:
        """Borders with the words of the changes; those of incidents, which would hide their peaks, are bands."""
        places = zip(self._borders, self._found.change_points, self._found.kinds, strict=True)
        return [(border, f"{self._words(place)}, {kind}") for border, place, kind in places if kind != "incident"]

    @cached_property
    def _bands(self) -> list[tuple[float, float]]:
        """Intervals of the changes, and incidents. One between two rows that a gap separates may be anywhere in the gap."""
        moments, half = self._moments, 0.5 * float(np.median(np.diff(self._moments)))
        intervals = self._found.intervals[self._found.kinds != "incident"]
        bands = [(float(moments[max(a - 1, 0)]) + half, float(moments[b]) - half) for a, b in intervals]
        least = 0.5 * _LEAST_BAND * float(moments[-1] - moments[0])
        for start, end in self._found.incidents:
            low, high = float(moments[start]) - half, float(moments[end - 1]) + half
            wider = max(least - 0.5 * (high - low), 0.0)
            bands.append((low - wider, high + wider))
        return bands

    def _given(self, column: int) -> str:
        """Return what a column is judged given, in words."""
        how = {"rate": " per ", "residual": " given "}.get((self._found.judged or ("",) * (column + 1))[column])
        return "" if how is None else how + in_words(list(self._found.given), 3)

    def _curve(self, column: int) -> Series:
        """Return the values of a column, or what is judged of it given others, thinned if there are many."""
        found = self._found
        steps, values = thinned(
            (found.searched if found.judged and found.searched is not None else found.series)[:, column]
        )
        notes = [f"{self._words(step)}: {value:.6g}" for step, value in zip(steps, values, strict=True)]
        return Series(self._names[column], self._moments[steps], values, "line", "blue", notes)

    def _about(self, column: int) -> str:
        """Return the sentences below the chart of a column."""
        count = self._found.series.shape[1]
        shown = ["90 % intervals of the changes"] * (len(self._bands) > len(self._found.incidents))
        shown += ["incidents"] * bool(len(self._found.incidents))
        about = f"Vertical bands: {' and '.join(shown)}." * bool(shown)
        more = f" {_MOST_CURVES} of {count} columns are shown." * (column == 0 and count > _MOST_CURVES)
        return (about + more).strip()

    def _means(self, column: int) -> list[Series]:
        """Return the mean of each segment, or its line if it rises, unless slopes or the like changed: it does not show these."""
        found, states = self._found, self._found.segment_states
        if not len(found) or not set(found.kinds) <= _OF_MEANS:
            return []
        judged = found.series if found.searched is None or column in found.totals else found.searched
        parts = np.split(judged[:, [column]], found.change_points)
        ends = pairwise([self._moments[0], *self._borders, self._moments[-1]])
        # One colour, unless a state comes back.
        returns = len(np.unique(states)) < len(states)
        names = [f"level, state {state}" if returns else "level of the segment" for state in states]
        curves: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for name, part, (start, stop) in zip(names, parts, ends, strict=True):
            first, last = line_at_ends(part[:, 0])
            curves[name] += [(start, first), (stop, last), (stop, np.nan)]
        colours = cycle(("text", "vermillion", "grey"))
        return [
            Series(name, [x for x, _ in points], [y for _, y in points], "line", next(colours), strong=True)
            for name, points in curves.items()
        ]
