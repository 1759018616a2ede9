"""Answers of a density of the columns of a table for each of them: values, intervals and probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from isopleth.core.errors import InputError, probability
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.results.charts import Chart, Series
from isopleth.results.text import shares_text, times_text
from isopleth.tables.cells import TRUTH
from isopleth.tables.coded_cells import displayed_cells, encode_cell
from isopleth.tables.kinds import Column
from isopleth.tables.schema import Schema

# Name of the category for words that no training row has.
OTHER_WORDS = "any other word"
# Places at which the curve of a column is drawn and its mode is looked for, and the mass that they span.
_PLACES, _MASS = 301, 0.998
_LEVEL = 0.9
_DAY = 86400.0  # seconds


class ColumnAnswers(ABC):
    """Answers for each column by itself, whatever the others are; dicts by the name of the column.

    A subclass is a density with `columns`, `names`, `density`, `coordinates` and the methods that this one calls.
    """

    columns: Schema

    @property
    @abstractmethod
    def density(self) -> Any:
        """Density of points of which cells may be missing."""

    @property
    @abstractmethod
    def coordinates(self) -> ColumnCoordinates:
        """Map of rows to points."""

    def mean(self) -> dict[Any, Any]:
        """Return the mean of each column of numbers or times.

        Returns
        -------
        dict
            Numbers and datetime64 by name.

        Examples
        --------
        >>> import numpy as np
        >>> from isopleth import SOSREP
        >>> rows = np.random.default_rng(0).normal(size=(300, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
        >>> given = SOSREP().fit(rows).conditional({0: 1.0})
        >>> low, high = given.interval()[0]  # of the only column that is left
        >>> low < 0.0 < 0.5 < given.mean()[0] < 1.1 < high, 0.2 < given.cdf({0: 0.8})[0] < 0.7
        (True, True)
        """
        found = self._decoded(self.fill(self._nothing(), "mean", 0, of_fit=False))  # type: ignore[attr-defined]
        return {column.name: found[column.name] for column in self.columns.measured}

    def median(self) -> dict[Any, Any]:
        """Return the median of each column of numbers or times, as :meth:`quantile`."""
        return self.quantile(0.5)

    def quantile(self, q: float) -> dict[Any, Any]:
        """Return a quantile of each column of numbers or times.

        Parameters
        ----------
        q : float
            Between 0 and 1.

        Returns
        -------
        dict
            Numbers and datetime64 by name.

        Raises
        ------
        InputError
            If `q` is not between 0 and 1.
        """
        probability("q", q)
        # One end of a central interval; that of the median is as short as can be told from none.
        ends = self.interval(max(abs(2.0 * q - 1.0), 1e-9))
        return {name: end[int(q > 0.5)] for name, end in ends.items()}

    def interval(self, confidence_level: float = _LEVEL) -> dict[Any, tuple[Any, Any]]:
        """Return the central interval of each column of numbers or times.

        Parameters
        ----------
        confidence_level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        dict
            Pairs of numbers or datetime64 by name.

        Raises
        ------
        InputError
            If `confidence_level` is not between 0 and 1.
        """
        rows = self._nothing()
        ends = [self._decoded(end, ordered=True) for end in self.intervals(rows, confidence_level, of_fit=False)]  # type: ignore[attr-defined]
        names = [column.name for column in self.columns.measured]
        return {name: (ends[0][name], ends[1][name]) for name in names}

    def cdf(self, values: Mapping[Any, Any]) -> dict[Any, float]:
        """Return the probability that columns are at most so large.

        Parameters
        ----------
        values : mapping
            A number or time by name of its column.

        Returns
        -------
        dict
            Probabilities by name.

        Raises
        ------
        InputError
            If a column does not exist or holds words.
        """
        found = {}
        for name, value in values.items():
            place = self._place(name, "values")  # type: ignore[attr-defined]
            column, j = self.columns.columns[place], int(self._encoded_places([place])[0])  # type: ignore[attr-defined]
            if column.kind == "categorical":
                raise InputError("{column} holds words; ask for probabilities() of it", column=column.name)
            row = self._nothing()
            row[0, j] = number = encode_cell(column, value, self.columns.missing)
            at, kept = self.coordinates, self.coordinates.frame.keep
            if not kept[j]:  # a column that was constant at fit
                found[column.name] = float(number >= at.constants[j])
            elif not at.inside(row)[0]:
                found[column.name] = float(number >= at.bounds.high[j])
            else:
                inner = int(np.cumsum(kept)[j] - 1)
                place_in_frame = float(at.enter(row)[0, inner])
                found[column.name] = min(max(self.density.cumulative(inner, place_in_frame), 0.0), 1.0)
        return found

    def probabilities(self) -> dict[Any, dict[Any, float]]:
        """Return the probability of each word of each column of words; they add up to 1.

        Returns
        -------
        dict
            By name, dicts from words to probabilities, the most probable first. Truth values are False and True; other columns
            have "any other word" for those that no training row has.
        """
        found: dict[Any, dict[Any, float]] = {}
        row = np.full((1, self.density.dim), np.nan)
        for place, column in enumerate(self.columns.columns):
            if column.kind == "categorical":
                j = int(self._encoded_places([place])[0]) - self.coordinates.n_numeric + self.coordinates.frame.dim  # type: ignore[attr-defined]
                shares = self.density.category_probabilities(row, j)[0]
                words = (False, True) if column.levels == TRUTH else (*column.levels, OTHER_WORDS)
                pairs = sorted(zip(words, shares.tolist(), strict=True), key=lambda pair: -pair[1])
                found[column.name] = dict(pairs)
        return found

    def mode(self) -> dict[Any, Any]:
        """Return the likeliest value of each column by itself: the top of the curve of its density, or the likeliest word.

        Returns
        -------
        dict
            Numbers, datetime64 and words by name.
        """
        found = {}
        words = self.probabilities()
        for column in self.columns.columns:
            if column.kind == "categorical":
                found[column.name] = next(word for word in words[column.name] if word != OTHER_WORDS)
            else:
                places, heights = self._curve(column)
                found[column.name] = _plain(column, places[int(heights.argmax())])
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw the density of each column: a curve for numbers and times, bars for words.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes for the first column; None makes a figure with all of them.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from isopleth.results.figures import draw

        return draw(self.charts(), ax)

    def charts(self) -> list[Chart]:
        """Return the pictures of the columns, as data."""
        return [self._chart(column) for column in self.columns.columns]

    def _chart(self, column: Column) -> Chart:
        """Return the picture of the law of a column."""
        title = f"{column.name}: {self._said(column)}"
        if column.kind == "categorical":
            shares = self.probabilities()[column.name]
            return Chart(
                title,
                "probability",
                "",
                [Series("", [], list(shares.values()), "bars", "blue")],
                names=list(map(str, shares)),
            )
        places, heights = self._curve(column)
        times = "x" * (column.kind == "time")
        return Chart(
            title,
            str(column.name),
            "density per day" if times else "density",
            [Series("", places + column.origin, heights * (_DAY if times else 1.0), "line", "blue")],
            times=times,
        )

    def _curve(self, column: Column) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded places of a column of numbers or times, and the density there."""
        one = self.marginal([column.name])  # type: ignore[attr-defined]
        low, high = one.intervals(one._nothing(), _MASS, of_fit=False)
        places = np.linspace(low[0, 0], high[0, 0], _PLACES)
        return places, np.exp(one.log_density(places[:, None]))

    def _said(self, column: Column) -> str:
        """Return what is expected in a column, in words."""
        if column.kind == "categorical":
            return shares_text(self.probabilities()[column.name])
        one = self.marginal([column.name])  # type: ignore[attr-defined]
        ends = (one.median()[column.name], *one.interval(_LEVEL)[column.name])
        middle, low, high = times_text(ends) if column.kind == "time" else [f"{end:.4g}" for end in ends]
        return f"{middle}, {low} to {high} with {_LEVEL:.0%}".replace("%", " %")

    def __repr__(self) -> str:
        lines = [f"{column.name}: {self._said(column)}" for column in self.columns.columns if self._varies(column)]
        return "\n".join(lines)

    def _varies(self, column: Column) -> bool:
        place = int(self._encoded_places([self.columns.columns.index(column)])[0])  # type: ignore[attr-defined]
        return place >= self.coordinates.n_numeric or bool(self.coordinates.frame.keep[place])

    def _nothing(self) -> np.ndarray:
        """Return one encoded row of which nothing is known."""
        return np.full((1, len(self.columns.columns)), np.nan)

    def _decoded(self, encoded: np.ndarray, ordered: bool = False) -> dict[Any, Any]:
        """Return the numbers and times of an encoded row by name; `ordered` as the columns of the table."""
        row = (encoded if ordered else self.by_column(encoded))[0]  # type: ignore[attr-defined]
        return {
            column.name: _plain(column, row[j])
            for j, column in enumerate(self.columns.columns)
            if column.kind != "categorical"
        }


def _plain(column: Column, value: float) -> Any:
    """Return a number, or a time to the second, as which a model knows no fractions."""
    if column.kind == "numeric":
        return float(value)
    return displayed_cells(column, np.rint(np.array([value + column.origin])) - column.origin)[0]
