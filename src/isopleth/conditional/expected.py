"""Expected content of a table where some columns have given values: the law of each other column given these alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from isopleth.conditional.cell_law import CellLaw, means, modes
from isopleth.conditional.estimator import ConditionalDensity
from isopleth.conditional.fit_rows import MOST_ROWS, drawn_for_columns
from isopleth.conditional.forest import Growth
from isopleth.conditional.imputer import KnownRange, table_schema
from isopleth.conditional.target import classes, decoded_target
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, meant, probability, quoted, warn_about_answer
from isopleth.core.interval_laws import IntervalPoints
from isopleth.core.laws import interpolated
from isopleth.core.progress import AtMost, Progress
from isopleth.core.threads import DEFAULT_N_JOBS
from isopleth.results.charts import Chart, Series
from isopleth.results.text import shares_text, times_text
from isopleth.tables.checks import CheckedRows, enter
from isopleth.tables.coded_cells import displayed_cells, encode_cell
from isopleth.tables.intervals import given_interval
from isopleth.tables.schema import Schema

# Trees of a forest, and steps of progress of a column: a forest or two, and what takes as long as these.
_TREES, _STEPS = 100, 400
# Rows with all given columns that are enough to do without the others.
_FEWEST = 30
# Places at which the curve of a column is drawn, and the mass that they span.
_PLACES, _MASS = 301, 0.998
_LEVEL = 0.9
_DAY = 86400.0  # seconds


@dataclass(frozen=True, eq=False)
class ExpectedCells:
    """Laws of columns given values of others, each by itself; answers are dicts by the name of the column."""

    columns: Schema  # the columns that are asked for
    laws: tuple[CellLaw, ...]
    row: np.ndarray  # (1, d): the given values, encoded
    n_fitted: int  # most rows that one of the laws is fitted to
    # Given columns whose value is beyond all rows of the fit, and the least and largest value of these: answers extrapolate.
    beyond: Mapping[Any, tuple[Any, Any]]

    @property
    def finer(self) -> frozenset[str]:
        """Columns that are answered between the numbers in which they are recorded."""
        return frozenset(str(law.column.name) for law in self._numbers() if law.is_finer)

    def mean(self) -> dict[Any, Any]:
        """Return the mean of each column of numbers or times."""
        return {law.column.name: self._one(law, means(*curve)) for law, curve in self._curves}

    def mode(self) -> dict[Any, Any]:
        """Return the likeliest value of each column."""
        numbers = {law.column.name: self._one(law, modes(*curve)) for law, curve in self._curves}
        words = {name: next(iter(shares)) for name, shares in self.probabilities().items()}
        return {column.name: (numbers | words)[column.name] for column in self.columns.columns}

    def median(self) -> dict[Any, Any]:
        """Return the median of each column of numbers or times."""
        return self.quantile(0.5)

    def quantile(self, q: float, least: Mapping[Any, float] | None = None) -> dict[Any, Any]:
        """Return a quantile of each column of numbers or times; InputError if `q` is not between 0 and 1.

        For columns in `least`, it is that of the law given that the number is above the one stated there.
        """
        probability("q", q)
        ends = {law.column.name: (least or {}).get(law.column.name, -np.inf) for law in self._numbers()}
        return {
            law.column.name: self._one(law, quantile_above(*curve, q=q, least=ends[law.column.name]))
            for law, curve in self._curves
        }

    def interval(self, confidence_level: float = _LEVEL) -> dict[Any, tuple[Any, Any]]:
        """Return the central interval of each column of numbers or times; InputError if the level is not between 0 and 1."""
        probability("confidence_level", confidence_level)
        low, high = (self.quantile(0.5 + side * 0.5 * confidence_level) for side in (-1.0, 1.0))
        return {name: (low[name], high[name]) for name in low}

    def probabilities(self) -> dict[Any, dict[Any, float]]:
        """Return the probability of each word of each column of words, the most probable first."""
        found = {}
        for law in self.laws:
            if law.is_words:
                shares = law.probabilities(self.row)[0].tolist()
                pairs = sorted(zip(classes(law.column).tolist(), shares, strict=True), key=lambda pair: -pair[1])
                found[law.column.name] = dict(pairs)
        return found

    def charts(
        self, confidence_level: float = _LEVEL, values: Mapping[str, tuple[Any, Any, Any]] | None = None
    ) -> list[Chart]:
        """Return pictures of the columns, as data: a curve for numbers and times, bars for words.

        `values` are the median and ends of the interval of each column, where they are shown elsewhere as the table records them.
        """
        ends = {} if values is None else values
        return [
            self._bars(law) if law.is_words else self._curve(law, confidence_level, ends.get(str(law.column.name)))
            for law in self.laws
        ]

    @cached_property
    def _curves(self) -> list[tuple[CellLaw, tuple[np.ndarray, np.ndarray]]]:
        """Laws of numbers, each with places and the distribution function there: their tables take longer than any answer."""
        found = [(law, law.curves(self.row, lambda y, F: np.stack([y, F], axis=-1))) for law in self._numbers()]
        return [(law, (curve[..., 0], curve[..., 1])) for law, curve in found]

    def _numbers(self) -> list[CellLaw]:
        return [law for law in self.laws if not law.is_words]

    def _one(self, law: CellLaw, values: np.ndarray) -> Any:
        """Return a number, or a time to the second, of a table of one cell."""
        found = decoded_target(law.column, values)[0, 0]
        return found if law.column.kind == "time" else float(found)

    def _bars(self, law: CellLaw) -> Chart:
        shares = self.probabilities()[law.column.name]
        bars = Series("", [], list(shares.values()), "bars", "blue")
        title = f"{law.column.name}: {shares_text(shares)}"
        return Chart(title, "probability", "", [bars], names=list(map(str, shares)))

    def _curve(self, law: CellLaw, level: float, values: tuple[Any, Any, Any] | None) -> Chart:
        name = law.column.name
        ends = values or (self.median()[name], *self.interval(level)[name])
        middle, low, high = times_text(ends) if law.column.kind == "time" else [f"{float(end):.4g}" for end in ends]
        span = law.quantiles(self.row, np.array([0.5 - 0.5 * _MASS, 0.5 + 0.5 * _MASS]))[0]
        places = (
            np.linspace(span[0], span[1], _PLACES) if span[0] < span[1] else span[0] + np.linspace(-1e-9, 1e-9, _PLACES)
        )
        half = max(0.5 * law.step, 0.5 * (places[1] - places[0]))
        logs = law.cells(np.tile(self.row, (_PLACES, 1)), places - half, places + half)[:, 1]
        heights, times = np.exp(logs) / (2.0 * half), "x" * (law.column.kind == "time")
        places, heights = places + law.column.origin, heights * (_DAY if times else 1.0)
        shown = (
            times_text(list(np.round(places).astype("datetime64[s]")))
            if times
            else [f"{place:.4g}" for place in places]
        )
        notes = [f"{place}: density {height:.3g}" for place, height in zip(shown, heights, strict=True)]
        return Chart(
            f"{name}: {middle}, {low} to {high} with {100 * level:.3g} %",
            str(name),
            "density per day" if times else "density",
            [Series("", places, heights, "line", "blue", notes)],
            times=times,
        )


def quantile_above(y: np.ndarray, F: np.ndarray, *, q: float, least: float = -np.inf) -> np.ndarray:
    """Return a quantile, (n, 1), of laws given that their numbers are above `least`.

    Where hardly any mass is above it, the tail counts as that of a normal law with the same median and spread: the curve of a law
    ends at some place, and a line may lead far below what a column can hold.
    """
    if np.isinf(least):
        return interpolated(np.full((len(y), 1), q), F, y)
    under = np.array([[np.interp(least, places, mass)] for places, mass in zip(y, F, strict=True)])
    low, middle, high = (interpolated(np.full((len(y), 1), level), F, y) for level in (ndtr(-1.0), 0.5, ndtr(1.0)))
    spread = np.maximum(0.5 * (high - low), np.finfo(float).tiny)
    tail = np.log1p(-q) + log_ndtr((middle - least) / spread)
    normal = middle - spread * ndtri_exp(tail)
    own = interpolated(under + q * (1.0 - under), F, y)
    return np.maximum((1.0 - under) * own + under * normal, least)


@dataclass(frozen=True)
class LawsGiven:
    """Given values by column, for which laws of the other columns are fitted."""

    given: Mapping[Any, Any]
    n_jobs: int | None = DEFAULT_N_JOBS
    verbose: bool | int = False
    max_samples: int = MOST_ROWS  # most rows that a law is fitted to, drawn by what they hold

    def fit(self, X: Any) -> ExpectedCells:
        """Return the laws of the other columns of a table, each fitted to the rows whose cell is known.

        A word that no row has is warned of. InputError if a column does not exist or all have values.
        """
        reader = ConditionalDensity()
        table = enter(reader, X, reset=True, missing=True)
        columns = table_schema(reader, table)
        points = IntervalPoints.of(table.rows, table.limits, table.weights)
        rows_in = points(table.rows, table.limits)
        values = self._encoded(columns, points, table.order)
        place = np.empty(len(columns.columns), dtype=np.intp)
        place[table.order] = np.arange(len(place))
        known = np.sort(place[list(values)]).astype(np.intp)
        asked = [j for j in range(len(place)) if j not in values]
        row = np.full(len(place), np.nan)
        row[place[list(values)]] = list(values.values())
        # A row of which a given column is unknown says less of the law where all of them are known.
        whole = ~np.isnan(rows_in[:, known]).any(axis=1)
        ends = [table.limits.ends(table.rows[:, place[j]], int(place[j])) for j in asked]
        masks = [~np.isnan(high) for _, high in ends]
        masks = [mask & whole if (mask & whole).sum() >= _FEWEST else mask for mask in masks]
        kept, places = drawn_for_columns(table.rows, np.stack(masks, axis=1), self.max_samples)
        laws = []
        with Progress("laws of columns", len(asked) * _STEPS, self.verbose) as tick:
            for j, (low, high), some in zip(asked, ends, places, strict=True):
                steps, rows = AtMost(_STEPS, tick), kept[some]
                laws.append(
                    CellLaw.fit(
                        rows_in[np.ix_(rows, known)],
                        int((known < table.n_numeric).sum()),
                        columns.columns[j],
                        low[rows],
                        table.weights[rows],
                        high[rows],
                        growth=Growth(_TREES, budget=Budget.of(self), tick=steps),
                    )
                )
                steps.end()
        others = replace(columns, columns=tuple(columns.columns[j] for j in asked))
        beyond = self._beyond(table, columns, values, place)
        return ExpectedCells(others, tuple(laws), row[None, known], max(map(len, places)), beyond)

    def _beyond(
        self, table: CheckedRows, columns: Schema, values: Mapping[int, float], place: np.ndarray
    ) -> dict[Any, tuple[Any, Any]]:
        """Return the columns whose given number or time is beyond all rows, and the least and largest of these."""
        found = {}
        for j, value in values.items():
            column, at = columns.columns[j], int(place[j])
            if column.kind == "categorical" or given_interval(self.given[self._named(column.name)]) is not None:
                continue
            least, largest = KnownRange.of(*table.limits.ends(table.rows[:, at], at), column.origin).ends
            if not least <= value <= largest:
                low, high = displayed_cells(column, np.array([least, largest]))
                found[column.name] = (low, high)
        return found

    def _named(self, name: Any) -> Any:
        """Return the key of the given values for a column."""
        return next(key for key in self.given if str(key) == str(name))

    def _encoded(self, columns: Schema, points: IntervalPoints, order: np.ndarray) -> dict[int, float]:
        """Return the given values by the number of their column, the points of limits in their place."""
        names = [str(name) for name in columns.names]
        found = {}
        for name, value in self.given.items():
            if str(name) not in names:
                offered = f"{meant([name], names)}; expected one of {quoted(names)}"
                raise InputError(f"given names column {name!r}, which does not exist{offered}.")
            j = names.index(str(name))
            column = columns.columns[j]
            ends = given_interval(value) if column.kind == "numeric" else None
            if ends is None:
                found[j] = encode_cell(column, value, columns.missing)
            else:
                found[j] = points.at(int(np.flatnonzero(order == j)[0]), *ends)
            if np.isnan(found[j]):
                raise InputError(
                    f"{{parameter}} has no value for column {name!r}; leave the column out.", parameter="given"
                )
            if column.kind == "categorical" and found[j] == len(column.levels):
                warn_about_answer(
                    "{parameter} has a word for {column} that no training row has",
                    parameter="given",
                    column=column.name,
                    hint=f"the column has {quoted(column.levels)}",
                )
        if len(found) == len(names):
            raise InputError("{parameter} has a value for every column; leave at least one out.", parameter="given")
        return found
