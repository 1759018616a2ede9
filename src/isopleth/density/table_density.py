"""Density of the columns of a table, in the words and units of the table, for rows with missing cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from isopleth.core.arrays import Backend
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, meant, probability, quoted, warn_user, whole_number
from isopleth.core.interval_cells import IntervalCells
from isopleth.core.parameters import on_host
from isopleth.core.progress import Progress
from isopleth.density.boxes import BoxProbability, box_probability
from isopleth.density.column_answers import ColumnAnswers
from isopleth.density.coordinates import ColumnCoordinates
from isopleth.density.fitted import RowDensity
from isopleth.tables.checks import encoded_rows
from isopleth.tables.coded_cells import encode_cell, measured_table, new_table
from isopleth.tables.given import Given
from isopleth.tables.schema import Attached, Schema, in_table_order
from isopleth.tables.typed_cells import write_cells

# Rounds in which draws of unknown words are made again.
_ROUNDS = 1000

# Ways to fill gaps.
STRATEGIES = ("mean", "draw")


@dataclass(frozen=True, repr=False)
class TableDensity(ColumnAnswers):
    """Density of numeric, categorical and time columns, which integrates and sums to 1.

    Returned by ``marginal`` and ``conditional`` of :class:`~isopleth.SOSREP` and :class:`~isopleth.KDE`; not made by hand. Rows
    are tables with the columns :attr:`names`. Cells may be missing: NaN, None, or an empty text.

    Parameters
    ----------
    rows : RowDensity
        The density of encoded rows.
    columns : Schema
        The columns of the table.
    library : str, optional
        Library of the frames that draws are returned as; None for arrays.
    frame_of_fit : tuple of str and dict
        Library of the frame of the fit, and the types of its columns by name.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth import SOSREP
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> first = SOSREP().fit(rows).marginal([0])
    >>> near, far = first.score_samples([[0.0], [3.0]])
    >>> bool(near > far)
    True
    """

    rows: RowDensity
    columns: Schema
    library: str | None = None
    frame_of_fit: tuple[str | None, Mapping[str, str]] = (None, {})

    @property
    def density(self) -> Any:
        """Density of points that may have missing cells."""
        return self.rows.cells

    @property
    def coordinates(self) -> ColumnCoordinates:
        """Bounds, shift and scale of the numeric columns."""
        return self.rows.coordinates

    @property
    def names(self) -> list[Any]:
        """Names of the columns, or their numbers."""
        return self.columns.names

    @property
    def n_numeric(self) -> int:
        """Number of numeric columns and times."""
        return self.coordinates.n_numeric

    # ---- rows -------------------------------------------------------------------------------------------------------

    def _read(self, X: Any) -> tuple[np.ndarray, IntervalCells, Backend]:
        given = Given.of(X)
        given.refuse_kinds(times=True)
        return *encoded_rows(given, self.columns, typed=Attached.of(given) is not None), given.backend

    def by_column(self, encoded: np.ndarray) -> np.ndarray:
        """Encoded cells in the order of the columns of the table."""
        return in_table_order(encoded, self.columns.order)

    def log_density(self, rows: np.ndarray, limits: IntervalCells | None = None) -> np.ndarray:
        """Log density of the known cells of encoded rows, integrated over the intervals of others."""
        return self.rows.log_density(rows, limits)

    def gradient(self, rows: np.ndarray, limits: IntervalCells | None = None) -> np.ndarray:
        """Gradient of :meth:`log_density` in the columns of the table; NaN in missing cells, words and rows outside bounds."""
        return self.by_column(self.rows.gradient(rows, limits))

    def score_samples(self, X: Any) -> np.ndarray:
        """Compute the log density of the known cells of each row, the others being integrated and summed out.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_columns)
            Rows; cells may be missing.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats; 0 for a row without a known cell, minus infinity on and beyond bounds.
        """
        rows, limits, backend = self._read(X)
        found = np.asarray(self.log_density(rows, limits))
        return found if backend.library is None else backend.array(found)

    def grad_log_density(self, X: Any) -> np.ndarray:
        """Compute the gradient of :meth:`score_samples` in the known numeric cells.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_columns)
            Rows; cells may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            NaN in missing cells and categorical columns.
        """
        rows, limits, backend = self._read(X)
        out: np.ndarray = backend.array(self.gradient(rows, limits))
        return out

    # ---- filling gaps -----------------------------------------------------------------------------------------------

    def fill(
        self,
        rows: np.ndarray,
        strategy: str,
        random_state: Any,
        verbose: bool | int = False,
        *,
        of_fit: bool = True,
        limits: IntervalCells | None = None,
    ) -> np.ndarray:
        """Encoded rows with their gaps filled; see :meth:`impute`. With `verbose`, progress is shown.

        With `of_fit`, rows may be rows of the fit, which are not filled by their own centres. Cells with `limits` are filled
        first, and count as known for the others.
        """
        if strategy not in STRATEGIES:
            raise InputError(f"strategy = {strategy!r}: expected 'mean' or 'draw'.", parameter="strategy")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        if limits is not None and len(limits):
            rows = self.rows.within(rows, limits, rng if strategy == "draw" else None)
        points, gaps = self._checked_points(rows), np.isnan(rows)
        own = self.density.own_centers(points) if of_fit else None
        with Progress("filling of gaps", int(np.isnan(points).any(axis=1).sum()), verbose) as tick:
            found = self.density.impute(points, strategy, rng, own, tick)
        found = self._known_words(points, found, strategy, rng, own)
        filled = self.coordinates.leave(found)
        curved = gaps[:, : self.n_numeric] & self.coordinates.bounds.curved & self.coordinates.frame.keep
        if strategy == "mean" and curved.any():
            some = np.flatnonzero(curved.any(axis=1))
            means = self.density.means_of_draws(
                points[some], self.coordinates.leave, None if own is None else own[some]
            )
            numbers = filled[:, : self.n_numeric]
            numbers[some] = np.where(curved[some], means[:, : self.n_numeric], numbers[some])
        return np.where(gaps, filled, rows)

    def _checked_points(self, rows: np.ndarray) -> np.ndarray:
        inside = self.coordinates.inside(rows)
        if not inside.all():
            raise InputError(f"row {int(np.argmin(inside))} of X is on or beyond the bounds, where the density is 0.")
        return self.coordinates.enter(rows)

    def unknown(self, points: np.ndarray) -> np.ndarray:
        """Mask of the codes that stand for words which no training row has."""
        return np.asarray(points[:, self.coordinates.frame.dim :] == np.array(self._known_sizes, dtype=float))

    @property
    def _known_sizes(self) -> list[int]:
        """Numbers of words of the training rows, of each categorical column; truth values have no others."""
        return [len(levels) for levels in self.columns.levels]

    def _known_words(
        self, points: np.ndarray, found: np.ndarray, strategy: str, rng: np.random.Generator, own: np.ndarray | None
    ) -> np.ndarray:
        """Fill gaps by words of the training rows only: by the likeliest one, or by draws that are made again."""
        asked = np.isnan(points[:, self.coordinates.frame.dim :])
        for _ in range(_ROUNDS if strategy == "draw" else 0):
            again = np.flatnonzero((self.unknown(found) & asked).any(axis=1))
            if not len(again):
                return found
            found[again] = self.density.impute(points[again], "draw", rng, None if own is None else own[again])
        wrong = self.unknown(found) & asked
        for j in np.flatnonzero(wrong.any(axis=0)):
            rows = np.flatnonzero(wrong[:, j])
            place = self.coordinates.frame.dim + int(j)
            shares = self.density.category_probabilities(points[rows], place, None if own is None else own[rows])
            found[rows, place] = shares[:, : self._known_sizes[j]].argmax(axis=1)
        return found

    def impute(self, X: Any, strategy: str = "mean", random_state: Any = None) -> Any:
        """Fill missing cells from the conditional density given the known cells of the row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_columns)
            Rows; cells may be missing.
        strategy : {"mean", "draw"}, default="mean"
            The conditional mean of numeric columns and the likeliest word, or a joint draw of all missing cells of a row. The
            mean of a column with bounds, and of any in frames other than "scale", is that of 200 draws.
        random_state : int, RandomState or None
            Seed of draws.

        Returns
        -------
        data frame or ndarray
            `X` with its gaps filled, of the same library; columns keep their types, so that whole numbers are filled with whole
            numbers, and known cells are as they were. A row that the density was fitted to
            is not filled by the centre that was made of it.

        Raises
        ------
        InputError
            For a strategy that is none of these, and for rows on or beyond bounds.
        """
        rows, limits, backend = self._read(X)
        return self.write(X, rows, self.fill(rows, strategy, random_state, limits=limits), backend)

    def write(self, X: Any, rows: np.ndarray, filled: np.ndarray, backend: Backend) -> Any:
        """Return `X` with the gaps of its encoded `rows` filled."""
        gaps = self.by_column(np.isnan(rows))
        return backend.array(write_cells(on_host(X, "X"), self.columns, self.by_column(filled), gaps))

    def like(self, X: Any, values: np.ndarray, backend: Backend) -> Any:
        """Return numbers and times by column as a frame if X is one."""
        return measured_table(Given.of(X), self.columns, values, backend)

    def intervals(
        self, rows: np.ndarray, confidence_level: float, *, of_fit: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits of the intervals of encoded rows, by column of the table; `of_fit` as for :meth:`fill`."""
        probability("confidence_level", confidence_level)
        points = self._checked_points(rows)
        ends, own = [], self.density.own_centers(points) if of_fit else None
        for end in self.density.intervals(points, confidence_level, own):
            found = np.where(np.isnan(rows), self.coordinates.leave(end), rows)
            found[:, self.n_numeric :] = np.nan
            ends.append(self.by_column(found))
        return ends[0], ends[1]

    # ---- other densities --------------------------------------------------------------------------------------------

    def _place(self, name: Any, what: str) -> int:
        """Place of a column, by name or number."""
        names = self.columns.names
        if name in names:
            return names.index(name)
        if name in self.columns.left_out:
            raise InputError(
                f"{what} names column {name!r}, which was left out at fit ({self.columns.left_out[name]})."
            )
        whole = isinstance(name, Integral) and not isinstance(name, bool)
        if whole and self.columns.named and not self.columns.left_out and int(name) in range(len(names)):
            return int(name)
        raise InputError(
            f"{what} names column {name!r}, which does not exist{meant([name], names)}; expected one of {quoted(names)}."
        )

    def _encoded_places(self, places: Sequence[int]) -> np.ndarray:
        """Return the positions of columns of the table among the encoded ones, numeric columns first."""
        where = np.empty(len(self.columns.columns), dtype=np.intp)
        where[self.columns.order] = np.arange(len(where))
        return where[list(places)]

    def _some(self, places: list[int], density: Callable[..., RowDensity]) -> TableDensity:
        """Return a density of columns of the table, by their places among encoded columns, numeric ones and those of points."""
        columns = self.columns.take(places)
        encoded = self._encoded_places([places[i] for i in columns.order])
        frame, numeric = self.coordinates.frame, encoded[encoded < self.n_numeric]
        kept = (np.cumsum(frame.keep) - 1)[numeric[frame.keep[numeric]]]
        words = encoded[encoded >= self.n_numeric] - self.n_numeric + frame.dim
        visible = np.concatenate([kept, words]).astype(np.intp)
        if not len(visible):
            names = quoted(columns.names)
            raise InputError(f"{names} had one value only at fit and no density; name a column that varied.")
        return TableDensity(
            density(encoded, numeric, visible),
            columns,
            self.library,
            self.frame_of_fit,
        )

    def marginal(self, columns: Sequence[Any]) -> TableDensity:
        """Return the density of some of the columns; the others are integrated and summed out.

        Parameters
        ----------
        columns : sequence of names or numbers
            The columns, in the order that its tables will have.

        Returns
        -------
        TableDensity

        Raises
        ------
        InputError
            If a column does not exist, was left out or is named twice, or if none varied at fit.
        """
        asked = [columns] if isinstance(columns, str) else list(columns)
        places = [self._place(name, "columns") for name in asked]
        if not places or len(set(places)) < len(places):
            raise InputError(f"columns = {columns!r}: expected different columns, at least one.")
        return self._some(places, self.rows.take)

    def _given(self, given: Any) -> dict[int, float]:
        """Encoded values by place of their column."""
        if not isinstance(given, Mapping) or not given:
            raise InputError(f"given = {given!r}: expected a dict from columns to values.")
        out: dict[int, float] = {}
        for name, value in given.items():
            place = self._place(name, "given")
            number = encode_cell(self.columns.columns[place], value, self.columns.missing)
            if np.isnan(number):
                text = f"{{parameter}} has no value for column {name!r}; leave the column out instead."
                raise InputError(text, parameter="given")
            if place in out:
                raise InputError(f"given names column {name!r} twice, by name and by number.")
            out[place] = number
        return out

    def _warn_of_new_words(self, values: dict[int, float]) -> None:
        """Warn of words that no training row has, which may be misspelt."""
        for place, number in values.items():
            column = self.columns.columns[place]
            if column.kind == "categorical" and number == len(column.levels):
                warn_user(
                    "{parameter} has a word for {column} that no training row has",
                    parameter="given",
                    column=column.name,
                    hint=f"the column has {quoted(column.levels)}",
                )

    def conditional(self, given: Mapping[Any, Any]) -> TableDensity:
        """Return the density of the other columns where some have given values.

        Parameters
        ----------
        given : mapping
            Values by name or number of a column: a number, a word or a time. A word that no training row has counts as one
            more category.

        Returns
        -------
        TableDensity

        Raises
        ------
        InputError
            If a column does not exist, was constant or left out at fit, a value is missing or on or beyond bounds, or
            nothing is left.
        """
        values = self._given(given)
        self._warn_of_new_words(values)
        rest = [i for i in range(len(self.columns.columns)) if i not in values]
        if not rest:
            raise InputError("{parameter} has a value for every column; leave at least one out.", parameter="given")
        row = np.full((1, len(self.columns.columns)), np.nan)
        encoded = self._encoded_places(list(values))
        row[0, encoded] = list(values.values())
        points = self._checked_points(row)
        known = {int(j): float(points[0, j]) for j in np.flatnonzero(~np.isnan(points[0]))}
        if len(known) < len(values):
            text = "{parameter} names a column that was constant at fit and has no density; leave it out."
            raise InputError(text, parameter="given")
        return self._some(rest, lambda *columns: self.rows.given(known, *columns))

    def probability(self, box: Mapping[Any, Any]) -> BoxProbability:
        """Return the probability of a box, as :meth:`isopleth.SOSREP.probability` describes it."""
        return box_probability(self, box)

    def sample(
        self,
        n_samples: int = 1,
        given: Mapping[Any, Any] | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> Any:
        """Draw independent rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : mapping, optional
            Values that some columns have in every row, as for :meth:`conditional`.
        random_state : int, RandomState or None
            Seed.
        verbose : bool or int, default=False
            Whether to show the progress of draws by rejection.

        Returns
        -------
        data frame or ndarray of shape (n_samples, n_columns)
            A frame of the library of the training rows, if those were one with words, times or gaps.
            Words are those of the training rows: draws of the category for other words are made again. Constant columns
            keep their value.

        Raises
        ------
        InputError
            If `n_samples` is not positive, and as :meth:`conditional`.
        """
        n_samples = whole_number("n_samples", n_samples)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        out, others, rest = self.begin(n_samples, given)
        out[:, others] = rest._draw(n_samples, rng, Budget(verbose=verbose))
        return new_table(self.columns, self.by_column(out), self.library)

    def begin(self, n: int, given: Mapping[Any, Any] | None) -> tuple[np.ndarray, np.ndarray, TableDensity]:
        """Return encoded rows with the given values, the places of the other columns, and the density of these."""
        values = {} if given is None else self._given(given)
        for place, value in values.items():
            column = self.columns.columns[place]
            if column.kind == "categorical" and value == len(column.levels):
                raise InputError(
                    "{parameter} has a word for {column} that no training row has",
                    parameter="given",
                    column=column.name,
                    hint=f"expected one of {quoted(column.levels)}",
                )
        rest = self if given is None else self.conditional(given)
        known = self._encoded_places(list(values))
        out = np.full((n, len(self.columns.columns)), np.nan)
        out[:, known] = list(values.values())
        return out, np.setdiff1d(np.arange(out.shape[1]), known), rest

    def _draw(self, n: int, rng: np.random.Generator, budget: Budget) -> np.ndarray:
        """Draw independent rows of known words."""
        points = self.rows.draw(n, rng, budget)
        for _ in range(_ROUNDS):
            again = np.flatnonzero(self.unknown(points).any(axis=1))
            if not len(again):
                break
            points[again] = self.rows.draw(len(again), rng)
        return self.rows.leave(points)

    def draw_evenly(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw points of known words evenly from the centres, and return the places of the two centres of each."""
        points, first, second = self.density.draw(n, rng, evenly=True)
        for _ in range(_ROUNDS):
            again = np.flatnonzero(self.unknown(points).any(axis=1))
            if not len(again):
                break
            points[again], first[again], second[again] = self.density.draw(len(again), rng)
        return points, first, second
