"""Results: what is shown of them, and their output methods: table, dictionary, text, picture, page and notebook."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import wraps
from html import escape
from importlib.util import find_spec
from typing import Any, ClassVar, ParamSpec, Self, TypeVar, cast

import numpy as np

from isopleth.core.errors import InputError, warnings_about_answer
from isopleth.core.threads import slices
from isopleth.results.charts import Chart
from isopleth.results.keys import Fact, Key
from isopleth.results.text import cell_text, python_value, table_text

# Libraries of data frames that `table()` returns where no frame came in: the first one that is installed. pyarrow always is.
_FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
# Rows of a table that a notebook shows, and rows whose cells are made at once.
_SHOWN, _MADE_AT_ONCE = 10, 2**15


@dataclass(frozen=True)
class ShownTable:
    """Table as people read it; a page lets them sort the rows.

    Parameters
    ----------
    title : str
        Heading.
    columns : dict of str to sequence
        Columns of one length.
    total : int, optional
        Number of rows of the whole table, of which these may be the first.
    about : str
        A sentence on what the columns mean.
    computed : frozenset of str
        Columns of computed numbers, which are shown with four digits.
    brief : list of str, optional
        Columns that a terminal shows; all by default.
    legend : dict of str to str
        Sentences on what columns mean, by their names, which are said only where the column is shown.
    """

    title: str
    columns: dict[str, Any]
    total: int = 0
    about: str = ""
    computed: frozenset[str] = frozenset()
    brief: list[str] | None = None
    legend: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)

    def meanings(self, *, briefly: bool = False) -> list[str]:
        """Return what the columns mean that a page shows or, `briefly`, a terminal."""
        names = self.brief if briefly and self.brief is not None else self.columns
        return [self.legend[name] for name in names if name in self.legend]


@dataclass(frozen=True)
class Content:
    """Content of a result: everything that is shown of it.

    Parameters
    ----------
    title : str
        Heading.
    summary : list of str
        The finding in plain sentences.
    tables : list of ShownTable
        Tables, the first one before the pictures.
    charts : list of Chart
        Pictures.
    used : dict of str to str
        Columns and how they were used.
    notes : list of str
        What the numbers mean.
    """

    title: str
    summary: list[str]
    tables: list[ShownTable]
    charts: list[Chart] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Output methods that the results of all tasks share.

    A subclass says what it holds, once: ``_columns`` (the table) with the types of its ``row_keys``, ``facts`` (what is known
    beside the table), ``_sentences`` (the finding in plain words) and, where there is more to show, ``_charts`` (pictures, as
    data), ``_tables`` (the table as people read it, with what its columns mean) and ``_notes`` (what else to know). It sets
    ``kind`` and ``title``. Text,
    JSON, its schema, pages, and pictures of matplotlib are made from these. A task calls ``result.like(X)``, so that tables are
    in the library of the frame X, and is decorated with :func:`keeps_warnings`.

    Parameters
    ----------
    warnings : tuple of str, optional
        Sentences of the warnings that the answer may not hold for these data, which the finding begins with.

    Attributes
    ----------
    kind : str
        What this result is, in ``to_dict()["result"]``.
    title : str
        Heading of its page.
    facts : dict of str to Fact
        Keys of ``to_dict()`` beside the table, with their types, meanings and values.
    row_keys : dict of str to Key
        Columns of the table, with their types and meanings.
    """

    kind: ClassVar[str] = "result"
    title: ClassVar[str] = "Result"
    facts: ClassVar[dict[str, Fact]] = {}
    row_keys: ClassVar[dict[str, Key]] = {}

    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the table: arrays or lists of one length."""
        raise NotImplementedError

    def _first_rows(self, most: int | None) -> tuple[dict[str, Any], int]:
        """Return the first rows of the table and the number of all; a result of many rows overrides this and makes no others."""
        columns = self._columns()
        total = max((len(column) for column in columns.values()), default=0)
        return {name: column[:most] for name, column in columns.items()}, total

    def _sentences(self) -> list[str]:
        """Return the finding in plain words."""
        raise NotImplementedError

    def _said(self) -> list[str]:
        """Return the sentences of the finding, and before them those of warnings about it."""
        return [*self.warnings, *self._sentences()]

    def _tables(self) -> list[ShownTable]:
        """Return the tables as people read them."""
        return [shown("Table", self._columns())]

    def _charts(self) -> list[Chart]:
        """Return the pictures, the most important one first."""
        return []

    def _notes(self) -> list[str]:
        """Return sentences on what the numbers mean."""
        return []

    def _used(self) -> dict[str, str]:
        """Return the columns of the data and how they were used."""
        return {}

    def content(self) -> Content:
        """Return everything that is shown of the result, as data."""
        summary, tables = self._said(), self._tables()
        notes = list(dict.fromkeys([*(words for table in tables for words in table.meanings()), *self._notes()]))
        return Content(self.title, summary, tables, self._charts(), self._used(), notes)

    def like(self, *tables: Any) -> Self:
        """Return the result itself, which now gives its tables in the library of the first data frame among `tables`.

        Parameters
        ----------
        *tables : object
            Rows as a caller gave them.
        """
        found = [library for library in map(frame_library, tables) if library is not None]
        if found:
            vars(self)["_frame_library"] = found[0]  # past what a frozen dataclass guards, as cached properties do
        return self

    def table(self) -> Any:
        """Return the result as a table.

        Returns
        -------
        data frame
            Of the library whose frame was given to the task (pandas, polars, pyarrow, ...). If none was given: of pandas if it
            is installed, else of polars, else a ``pyarrow.Table``.
        """
        return as_frame(self._columns(), vars(self).get("_frame_library"))

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Return the result as plain Python objects, which the ``json`` module can write.

        Parameters
        ----------
        most : int, optional
            Largest number of rows of the table; all by default.

        Returns
        -------
        dict
            "result" (its kind), "isopleth" (the version), "summary" (sentences), "warnings" (those of them that say that the
            answer may not hold), numbers and words that depend on the kind,
            "table_rows" (rows of the whole table), and "table", a list with one dictionary a row, of the first `most`. A number
            that is missing or infinite is None.
        """
        import isopleth

        found = {"result": self.kind, "isopleth": isopleth.__version__, "summary": self._said()}
        found["warnings"] = list(self.warnings)
        found |= {name: fact.value(self) for name, fact in self.facts.items()}
        columns, length = self._first_rows(most)
        return plain(found | {"table_rows": length, "table": self._with_whole_numbers(records(columns))})

    def _with_whole_numbers(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return rows with whole numbers where their keys say so: columns with missing cells hold floats."""
        whole = [name for name, key in self.row_keys.items() if key.kind == "integer or null"]
        kept = {
            name: [None if row[name] is None else int(row[name]) for row in rows]
            for name in whole
            if rows and name in rows[0]
        }
        return [row | {name: cells[i] for name, cells in kept.items()} for i, row in enumerate(rows)]

    def text(self, most: int | None = 10) -> str:
        """Return the finding, the first rows of the table and what the numbers mean, as a terminal shows them.

        Parameters
        ----------
        most : int or None, default=10
            Largest number of rows; None for all.
        """
        table = self._tables()[0]
        rows = table_text(table, most)
        notes = [*table.meanings(briefly=True), *self._notes()]
        return "\n\n".join(["\n".join(self._said()), *([rows] if rows else []), "\n".join(notes)]).rstrip()

    def plot(self, ax: Any = None) -> Any:
        """Draw the result with matplotlib: all its pictures on a new figure, or the first one on `ax`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on. None makes a figure without pyplot, so that no window opens and no display is needed.

        Returns
        -------
        matplotlib.axes.Axes
            Those of the first picture; the figure is ``ax.figure``.

        Raises
        ------
        InputError
            If there is nothing to draw.
        MissingExtraError
            If matplotlib is not installed.
        """
        return self._draw(ax)

    def _draw(self, ax: Any) -> Any:
        """Draw the charts; a result that is best shown otherwise overrides this."""
        from isopleth.results.figures import draw

        charts = self._charts()
        if not charts:
            raise InputError(f"there is nothing to draw: {self._sentences()[0]}")
        return draw(charts, ax)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the result as one HTML page that needs no network and no other file.

        The page has the finding in words, a table that can be sorted, pictures that can be zoomed and show the row under the
        mouse, the columns and how they were used, and the versions of the libraries. It has at most 2 MB: of long tables it has
        the most important rows, and says so.

        Parameters
        ----------
        path : path-like
            The file, which ends in .html or .htm. It is written completely or not at all.

        Raises
        ------
        InputError
            If the name has another ending, the page is too large with the fewest rows, or the file cannot be written.
        """
        from isopleth.results.page import write_report

        write_report(self, path)

    def _repr_html_(self) -> str:
        """Return the sentences and the first rows of the table for a notebook."""
        columns, length = self._first_rows(_SHOWN)
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = zip(*columns.values(), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell_text(cell))}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>{length - _SHOWN:,} more rows are in <code>table()</code>.</p>" if length > _SHOWN else ""
        words = "".join(f"<p>{escape(sentence)}</p>" for sentence in self._said())
        return f"<div>{words}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"


_P = ParamSpec("_P")
_R = TypeVar("_R", bound=Result)


def keeps_warnings(task: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a task such that its result keeps the warnings that the answer may not hold."""

    @wraps(task)
    def kept(*args: _P.args, **options: _P.kwargs) -> _R:
        with warnings_about_answer() as sentences:
            found = task(*args, **options)
        vars(found)["warnings"] = tuple(dict.fromkeys([*found.warnings, *sentences]))
        return found

    return kept


# Rows of a table of which a page has the first, before it is shortened further.
MOST_ROWS = 1000


def shown(
    title: str,
    columns: Mapping[str, Any],
    about: str = "",
    brief: list[str] | None = None,
    legend: dict[str, str] | None = None,
) -> ShownTable:
    """Return the first rows of a table of computed numbers."""
    total = max((len(column) for column in columns.values()), default=0)
    first = {name: column[:MOST_ROWS] for name, column in columns.items()}
    return ShownTable(title, first, total, about, frozenset(columns), brief, legend or {})


def frame_library(table: Any) -> str | None:
    """Return the name of the library of a frame in memory; None for anything else, such as an Arrow stream, which is not read."""
    if isinstance(table, np.ndarray):
        return None
    import narwhals as nw

    frame = nw.from_native(table, pass_through=True, eager_only=True)
    return frame.implementation.value if isinstance(frame, nw.DataFrame) else None


def _given_frame(X: Any) -> Any:
    """Return a frame, or a table that was read from a file, as a frame of narwhals; None for anything else."""
    from isopleth.tables.given import Given  # for tables of data frames only: it takes a while to import

    return Given.of(X).frame


def chosen_rows(X: Any, positions: np.ndarray) -> Any:
    """Return the rows at these positions: a frame of the same library for a frame, else an array."""
    if (frame := _given_frame(X)) is None:
        return X[positions] if hasattr(X, "shape") else np.asarray(X)[positions]
    return frame[positions.tolist()].to_native()


def index_of(X: Any) -> dict[str, np.ndarray]:
    """Return the labels of the rows of a frame, by the name of its index; nothing where rows are only numbered."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or not hasattr(index, "to_numpy") or np.array_equal(index, np.arange(len(X))):
        return {}
    return {str(index.name or "index"): index.to_numpy()}


class ShownCells:
    """Cells of the rows of a large table as they are shown, which are made when they are asked for."""

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        take: Callable[[np.ndarray], np.ndarray],
        take_at: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    ) -> None:
        """`take` returns the cells of the rows at some positions, as an array of the dtype; `take_at` one cell of each."""
        self.shape, self.dtype, self._take = shape, np.dtype(dtype), take
        self._take_at = take_at or (lambda rows, columns: take(rows)[np.arange(len(rows)), columns])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Return cells: of a row or rows, and of all columns or some."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if (
            np.ndim(columns) == 0
            and not isinstance(columns, slice)
            and np.ndim(rows) == 0
            and not isinstance(rows, slice)
        ):
            return self._take_at(np.array([rows]), np.array([columns]))[0]
        positions = np.arange(len(self))[rows]
        cells = self._take(np.atleast_1d(positions))
        return cells[:, columns] if np.ndim(positions) else cells[0, columns]

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return one cell of each of some rows."""
        out = np.empty(len(rows), dtype=self.dtype)
        for some in slices(len(rows), _MADE_AT_ONCE):
            out[some] = self._take_at(rows[some], columns[some])
        return out

    def parts(self) -> list[slice]:
        """Return slices of rows whose cells are made at once: those of all rows take much more memory than their numbers."""
        return slices(len(self), _MADE_AT_ONCE)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the cells of all rows."""
        return self._take(np.arange(len(self))).astype(dtype or self.dtype, copy=False)

    @property
    def T(self) -> np.ndarray:  # noqa: N802 - as that of arrays
        """Cells of all rows, by column."""
        return np.asarray(self).T


def shown_cells(X: Any, rows: np.ndarray, names: list[str]) -> tuple[np.ndarray | ShownCells, list[str]]:
    """Return the cells of a frame with words, as objects, and its columns; `rows`, its numbers, and `names` for other tables.

    Cells of Arrow tables, which nobody can change, are made when they are asked for.
    """
    if (frame := _given_frame(X)) is None:
        return rows, names
    words = not all(column.dtype.is_numeric() for column in frame.iter_columns())
    if not words and rows.shape[1] == len(frame.columns):
        return rows, names
    columns = [str(name) for name in frame.columns]
    if frame.implementation.is_pyarrow():
        kind = object if words else np.float64
        return ShownCells(
            (len(frame), len(columns)), kind, lambda some: _cells_of(frame[some.tolist()], words)
        ), columns
    return _cells_of(frame, words), columns


def _cells_of(frame: Any, words: bool) -> np.ndarray:
    """Return the cells of a frame of narwhals, as objects if some are `words`."""
    import narwhals as nw

    from isopleth.tables.cells import is_missing

    def shown(cell: Any) -> Any:
        plainly = isinstance(cell, (bool, int, float, str, datetime, date, np.generic))
        return None if is_missing(cell) else cell if plainly else str(cell)

    cells = np.empty((len(frame), len(frame.columns)), dtype=object if words else np.float64)
    for j, column in enumerate(frame.iter_columns()):
        if column.dtype.is_float() and not column.is_null().any():  # far faster than cell by cell
            numbers = column.to_numpy()
            cells[:, j] = np.where(np.isnan(numbers), None, numbers.astype(object)) if words else numbers
        elif column.dtype == nw.String:
            cells[:, j] = column.to_list()
        else:
            cells[:, j] = [shown(cell) for cell in column.to_list()]
    return cells


def as_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """Return columns as a data frame. `library` is pandas by default, or polars or pyarrow if that is not installed."""
    import narwhals as nw

    if library is None:
        library = next(name for name in _FRAME_LIBRARIES if find_spec(name) is not None)
    of_objects = [
        name for name, column in columns.items() if isinstance(column, np.ndarray) and column.dtype.kind in "OU"
    ]
    ready = {**columns, **{name: columns[name].tolist() for name in of_objects}}
    if library != "pandas":  # others have no columns of numbers and words
        ready |= {name: _as_text(ready[name]) for name in of_objects if _is_mixed(ready[name])}
    return nw.from_dict(ready, backend=cast(Any, library)).to_native()


def _is_mixed(cells: list[Any]) -> bool:
    """Return whether a column has cells of kinds that Arrow keeps apart, such as numbers and words."""
    kinds = {float if isinstance(cell, (int, float)) and not isinstance(cell, bool) else type(cell) for cell in cells}
    return len(kinds - {type(None)}) > 1


def _as_text(cells: list[Any]) -> list[str | None]:
    return [None if cell is None or cell != cell else str(cell) for cell in cells]


def records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return columns as a list with one dictionary a row."""
    lists = [plain(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(value: Any) -> Any:
    """Return a value as objects that JSON knows: arrays as lists, missing and infinite numbers as None, others as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, np.ndarray):
        return [plain(one) for one in (value if value.dtype.kind == "M" else value.tolist())]
    if isinstance(value, np.generic):
        return plain(python_value(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return str(value)
