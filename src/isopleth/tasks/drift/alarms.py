"""Alarms of drift monitors, the columns that changed, and what all monitors do with the rows of a stream."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from isopleth.core.errors import Hint, InputError, listed, warn_user
from isopleth.core.progress import Progress, ReportsProgress
from isopleth.core.threads import ONE_BLAS_THREAD, slices
from isopleth.results.charts import Chart, Series, thinned
from isopleth.results.keys import Fact, Key
from isopleth.results.result import Result, ShownTable, records, shown
from isopleth.results.text import counted, in_words
from isopleth.tables.checks import CheckedRows, TakesKinds, enter
from isopleth.tables.given import Given
from isopleth.tables.row_encoding import RowEncoding
from isopleth.tables.schema import Attached, Schema
from isopleth.tasks.column_changes import (
    LEFT_OPEN,
    ColumnSummary,
    as_read,
    changes,
    in_order,
    p_value_of_window,
    summaries,
)
from isopleth.tasks.drift.reference_context import ReferenceResiduals

# Alarms that are drawn, and alarms whose columns have a table of their own.
_MOST_ALARMS, _MOST_TABLES = 800, 5
_MOVED = "moved: the change of the column is beyond what chance gives any column in one of 100 windows."


# Fewer values that only rise may do so by chance.
_FEWEST_IN_ORDER = 10


def in_order_of_rows(values: np.ndarray) -> bool:
    """Tell whether the known values of a column never fall, or never rise, and are not all equal."""
    steps = np.diff(values[np.isfinite(values)])
    return len(steps) + 1 >= _FEWEST_IN_ORDER and bool(steps.any()) and bool((steps >= 0).all() or (steps <= 0).all())


@dataclass(frozen=True, eq=False, repr=False)
class DriftAlarms(Result):
    """Alarms in some rows of a stream, and the statistic that raised them.

    It is true if there is an alarm, its length is the number of alarms, and iteration gives their rows.

    Parameters
    ----------
    first_row : int
        Number of the first of these rows in the stream, counted from 0.
    statistic : ndarray of shape (m,)
        Distance from the reference of the window that ends with each row; NaN if the window is not full, in the first
        ``window - 1`` rows of the stream and after an alarm.
    threshold : float
        A statistic above it is an alarm.
    window : int
        Number of rows of a window.
    columns : tuple of dict
        Changes of the columns at each alarm, see :meth:`changes`.
    counted_from : int, default=0
        Number of the first row of the stream in tables, sentences and pages.
    dependence : float, default=1
        Number of consecutive rows of the reference that say as much as one independent row.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.tasks.drift.alarms import DriftAlarms
    >>> alarms = DriftAlarms(100, np.array([0.1, 0.2, 0.4]), threshold=0.3, window=20)
    >>> alarms
    DriftAlarms(1 alarm in rows 100 to 102: 102)
    >>> list(alarms), bool(alarms)
    ([102], True)
    """

    first_row: int
    statistic: np.ndarray
    threshold: float
    window: int
    columns: tuple[dict[str, Any], ...] = ()
    counted_from: int = 0
    dependence: float = 1.0

    @property
    def rows(self) -> np.ndarray:
        """Row numbers in the stream at which an alarm was raised."""
        return self.first_row + np.flatnonzero(self.statistic > self.threshold)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows.tolist())

    def __repr__(self) -> str:
        found = self.rows
        some = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
        where = (
            f"rows {self.first_row} to {self.first_row + len(self.statistic) - 1}" if len(self.statistic) else "no rows"
        )
        return f"DriftAlarms({len(found)} alarm{'' if len(found) == 1 else 's'} in {where}{': ' if some else ''}{some})"

    kind = "drift"
    title = "Drift of a stream"

    def _columns(self) -> dict[str, Any]:
        """Return a row for each alarm: ``row``, the ``first_row`` of its window, ``statistic`` and ``threshold``."""
        rows = self.rows
        return {
            "row": rows + self.counted_from,
            "first_row": rows - self.window + 1 + self.counted_from,
            "statistic": self.statistic[rows - self.first_row],
            "threshold": np.full(len(rows), self.threshold),
        }

    facts: ClassVar[dict[str, Fact]] = {
        "first_row": Fact(
            "integer", "first of these rows in the stream", lambda found: found.first_row + found.counted_from
        ),
        "rows": Fact("integer", "number of rows", lambda found: len(found.statistic)),
        "alarms": Fact("integer", "number of alarms", len),
        "threshold": Fact("number", "threshold of the distance", lambda found: found.threshold),
        "window": Fact("integer", "rows of a window", lambda found: found.window),
        "dependence": Fact("number", "rows that say as much as one independent row", lambda found: found.dependence),
        "column_changes": Fact(
            "list of list",
            "for each alarm an object for each column: how it changed",
            lambda found: [records(changes) for changes in found.columns],
        ),
    }
    row_keys: ClassVar[dict[str, Key]] = {
        "row": Key("integer", "row at which the alarm was raised"),
        "first_row": Key("integer", "first row of its window"),
        "statistic": Key("number", "distance of the window from the reference"),
        "threshold": Key("number", "threshold of the distance"),
    }

    def _sentences(self) -> list[str]:
        rows = counted(len(self.statistic), "row")
        words = []
        if self.dependence > 1.0:
            words = [
                f"Rows of the reference depend on each other: about {self.dependence:.1f} of them say as much as one independent "
                "row, and the threshold allows for it. If they were sorted by a column, such as a group, shuffle them."
            ]
        if not len(self):
            return [*words, f"No alarm: {rows} of the stream do not differ from the reference more than by chance."]
        noun = "row" if len(self) == 1 else "rows"
        where = in_words([str(row) for row in self.rows + self.counted_from], 8)
        words.append(
            f"{counted(len(self), 'alarm')} in {rows} of the stream, at {noun} {where} (counted from {self.counted_from})."
        )
        if self.columns:
            moved = [n for n, m in zip(self.columns[0]["column"], self.columns[0]["moved"], strict=True) if m]
            words += [f"At the first alarm these columns had moved: {in_words(moved)}."] * bool(moved)
            if given := self._moved_given:
                words.append(
                    f"These had moved from what the others of their rows let expect, in deviations: {in_words(given)}."
                )
            elif not moved:
                words.append("No single column is shown to have moved at the first alarm.")
        return words

    @property
    def _moved_given(self) -> list[str]:
        """The columns that had moved given the others at the first alarm, and how far."""
        if not self.columns:
            return []
        columns = zip(self.columns[0]["column"], self.columns[0]["shift_given_others"], strict=True)
        return [f"{name} ({'higher' if by > 0 else 'lower'} by {abs(by):.2g})" for name, by in columns if by]

    def changes(self, alarm: int = 0) -> dict[str, Any]:
        """Return how the columns of the window that raised an alarm differ from the reference, the surest change first.

        Parameters
        ----------
        alarm : int, default=0
            Which of the alarms among these rows, counted from 0.

        Returns
        -------
        dict
            Lists and arrays with one entry a column: "column"; "share", about the share of the values in the window that would
            have to change back (the largest difference of the distribution functions or, for words, the total variation distance,
            without what chance adds to it), with the ends "share_low" and "share_high" of an interval of 95 %;
            "median_before" and "median_after", "spread_before" and "spread_after" (from the first quartile to the third), where
            before is the reference; and "moved", which is true where the share is beyond what chance gives any of the columns in
            one of 100 windows; and "shift_given_others", the mean of the residual of a column of numbers given the other
            columns, in units of its standard deviation, 0 where that is not shown. The window was chosen by the alarm, so this
            describes the alarm and is no second test. A change of dependence alone moves no column by itself.

            If there are words, times or missing cells, there are further entries: "level", the word whose share among known
            cells changed most, with "level_before" and "level_after"; "time_before" and "time_after", medians of times, whose
            spreads are in seconds; "missing_before" and "missing_after", shares of missing cells; and "description", the change
            in words.

        Raises
        ------
        InputError
            If there is no alarm of this number.
        """
        if not 0 <= alarm < len(self.columns):
            raise InputError(
                f"alarm = {alarm!r}: there are {len(self.columns)} alarms among these rows, counted from 0."
            )
        return self.columns[alarm]

    def _tables(self) -> list[ShownTable]:
        about = "Before is the reference, after the window of the alarm."
        moved = zip((self.rows + self.counted_from)[:_MOST_TABLES], self.columns, strict=False)
        return [
            shown("Alarms", self._columns()),
            *(
                shown(f"Columns at the alarm of row {row}", as_read(changes), about, legend={"moved": _MOVED})
                for row, changes in moved
            ),
        ]

    def _charts(self) -> list[Chart]:
        steps, values = thinned(self.statistic)
        rows, raised = self.first_row + self.counted_from + steps, self.rows + self.counted_from
        notes = [f"row {row}: {value:.4g}" for row, value in zip(rows, values, strict=True)]
        series = [Series("statistic", rows, values, "line", "blue", notes)]
        if len(rows):
            ends = [int(rows[0]), int(rows[-1])]
            series.append(Series("threshold", ends, [self.threshold] * 2, "line", "text", dashed=True))
        if len(self):
            raised, heights = raised[:_MOST_ALARMS], self.statistic[self.rows - self.first_row][:_MOST_ALARMS]
            found = zip(raised, heights, strict=True)
            alarms = [f"alarm at row {row}: {height:.4g}, above {self.threshold:.4g}" for row, height in found]
            name = f"alarms ({len(self):,})"
            series.append(Series(name, raised, heights, "dots", "vermillion", alarms, strong=True))
        title = counted(len(self), "alarm") if len(self) else "No alarm"
        about = f"Distance of the last {self.window} rows from the reference; an alarm is raised above the threshold."
        return [Chart(title, "row", "distance", series, about, wide=True)]

    def _notes(self) -> list[str]:
        return [f"Rows are counted from {self.counted_from}.", *[LEFT_OPEN] * bool(self._moved_given)]


def joined(parts: list[DriftAlarms], most: int) -> DriftAlarms:
    """Return the alarms of consecutive rows of a stream as one result, which has the last `most` rows or a few more."""
    rows, first = 0, len(parts)
    while first and rows < most:
        first -= 1
        rows += len(parts[first].statistic)
    kept = parts[first:]
    columns = tuple(changes for part in kept for changes in part.columns)
    return replace(kept[0], statistic=np.concatenate([part.statistic for part in kept]), columns=columns)


# Quantiles that are kept of each column of the reference.
_MOST_QUANTILES = 1001
_LEVEL = 0.01


@dataclass(frozen=True, eq=False)
class ReferenceColumns:
    """Distributions of the columns of a reference."""

    encoding: RowEncoding  # columns
    summaries: tuple[ColumnSummary, ...]  # distribution of each, with at most 1,001 quantiles of numbers
    context: ReferenceResiduals  # regressions of the columns on each other

    @classmethod
    def of(cls, encoding: RowEncoding, rows: np.ndarray, context: ReferenceResiduals) -> Self:
        """Summarise the columns of rows that are not encoded."""
        return cls(encoding, tuple(summaries(encoding, rows, _MOST_QUANTILES)), context)

    def changes(self, window: np.ndarray) -> dict[str, Any]:
        """Compare a window with the reference by column, the surest change first; "moved" is rarer than 1 in 100 windows."""
        after, compared = summaries(self.encoding, window), self.encoding.compared
        p_values = np.array(
            [p_value_of_window(one, two, compared=compared) for one, two in zip(self.summaries, after, strict=True)]
        )
        table = changes(self.encoding, self.summaries, after)
        table["moved"] = p_values * len(p_values) <= _LEVEL
        moves = self.context.moves(self.encoding(window), self.summaries[0].rows, _LEVEL)
        table["shift_given_others"] = np.array([moves.get(j, 0.0) for j in range(len(p_values))])
        order = np.lexsort([-table.pop("minus_log_p"), p_values])
        return {"column": [self.encoding.names[j] for j in order]} | in_order(table, order)


# Why columns of times are not compared.
CLOCKS = "times, which are later in the stream"
# Rows that are processed together, so that memory does not grow with the rows of a call.
_AT_ONCE = 1024


class StreamMonitor(ReportsProgress, TakesKinds, BaseEstimator):
    """Base class of drift monitors; a subclass has `window` and `verbose`, and a fit sets the attributes below."""

    _use_of_limits = "merge"

    window: int
    verbose: bool | int
    threshold_: float
    state_: Any
    schema_: Schema
    _key: int
    _columns: ReferenceColumns

    @abstractmethod
    def _take_in(self, state: Any, X: np.ndarray) -> tuple[Any, np.ndarray, list[np.ndarray]]:
        """Return the state after the rows `X`, the statistic at each, and the windows that raised alarms."""

    def _alarms(self, given: Any) -> DriftAlarms:
        """Process the next rows of the stream, and return their alarms."""
        check_is_fitted(self, "threshold_")
        X = self._rows_of_stream(given)
        state = self.state_
        if getattr(state, "key", None) != self._key:
            raise InputError("state_ is not of this monitor with this reference; assign one that it has had since fit.")
        first, parts, windows = state.n_rows, [], []
        with ONE_BLAS_THREAD, Progress("rows of the stream", len(X), self.verbose) as tick:
            for part in slices(len(X), _AT_ONCE):
                state, statistic, found = self._take_in(state, X[part])
                parts.append(statistic)
                windows += found
                tick(len(statistic))
        self.state_ = state
        columns = tuple(self._columns.changes(window) for window in windows)
        return DriftAlarms(first, np.concatenate(parts), self.threshold_, int(self.window), columns).like(given)

    def _without_clocks(self, X: Any, table: CheckedRows) -> CheckedRows:
        """Leave out columns of times that are not asked for: in any order of the rows, every row of a stream comes later."""
        schema, read = table.columns, Attached.of(X)
        if schema is None:
            return table
        wanted = () if read is None else read.choices.time_columns
        clocks = {
            j: column.name
            for j, column in enumerate(schema.measured)
            if column.kind == "time" and column.name not in wanted
        }
        if not clocks or len(clocks) == len(schema.columns):
            return table
        names = listed([f"{str(name)!r} ({CLOCKS})" for name in clocks.values()])
        hint = None if read is None else Hint("{time_columns} uses them", time_columns=list(map(str, clocks.values())))
        warn_user(f"columns left out: {names}", hint=hint or "pass them as numbers if they are to be compared")
        self.schema_ = schema.without(clocks.values(), CLOCKS)
        return replace(table, rows=np.delete(table.rows, list(clocks), axis=1), columns=self.schema_)

    def _rows_of_stream(self, X: Any) -> np.ndarray:
        """Check the next rows of a stream; refuse a batch without any, which is often a query that went wrong."""
        given, known = Given.of(X), list(getattr(self, "feature_names_in_", ()))
        if given.names is not None and sorted(map(str, given.names)) == sorted(known):
            given = given.select(known)
        rows = given.table
        shape = getattr(rows, "shape", None) or (len(rows) if hasattr(rows, "__len__") else None,)
        if shape[0] == 0:
            raise InputError("X has no rows; expected one or more rows of the stream. Do not pass on empty batches.")
        return enter(self, given, missing=True).rows
