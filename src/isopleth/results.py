"""Output methods of results: table, dictionary, picture, page and notebook."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any, ClassVar, Self, cast

import numpy as np

# Libraries of data frames that `table()` returns where no frame came in: the first one that is installed. pyarrow always is.
_FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
# Rows of a table that a notebook shows.
_SHOWN = 10


class Result:
    """Output methods that the results of all tasks share.

    A subclass defines ``_columns`` (the table), ``_facts`` (what is known beside the table), ``_sentences`` (the finding in plain
    words) and ``plot``, and sets ``kind``. A task calls ``result.like(X)``, so that tables are in the library of the frame X.
    ``isopleth.report`` has a function for the page of each class; results without one have a page with sentences and table.

    Attributes
    ----------
    kind : str
        What this result is, in ``to_dict()["result"]``.
    """

    kind: ClassVar[str] = "result"

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the table: arrays or lists of one length."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """Return what is known beside the table: numbers, words, and lists and dictionaries of these."""
        raise NotImplementedError

    def _sentences(self) -> list[str]:
        """Return the finding in plain words."""
        raise NotImplementedError

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
            "result" (its kind), "isopleth" (the version), "summary" (sentences), numbers and words that depend on the kind, and
            "table", a list with one dictionary a row. A number that is missing or infinite is None.
        """
        found = {"result": self.kind, "isopleth": own_version(), "summary": self._sentences()} | self._facts()
        columns = {name: column[:most] for name, column in self._columns().items()}
        return plain(found | {"table": records(columns)})

    def plot(self) -> Any:
        """Draw the result with matplotlib."""
        raise NotImplementedError

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the result as one HTML page that needs no network and no other file.

        The page has the finding in words, a table that can be sorted, pictures that can be zoomed and show the row under the
        mouse, the columns and how they were used, and the versions of the libraries. It has at most 2 MB: of long tables it has
        the most important rows, and says so.

        Parameters
        ----------
        path : path-like
            The file, which ends in .html. It is written completely or not at all.

        Raises
        ------
        InputError
            If the name has another ending or the file cannot be written.
        """
        from isopleth.report import write_report

        write_report(self, path)

    def _repr_html_(self) -> str:
        """Return the sentences and the first rows of the table for a notebook."""
        columns = self._columns()
        length = max((len(column) for column in columns.values()), default=0)
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = zip(*(column[:_SHOWN] for column in columns.values()), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell_text(cell))}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>{length - _SHOWN:,} more rows are in <code>table()</code>.</p>" if length > _SHOWN else ""
        words = "".join(f"<p>{escape(sentence)}</p>" for sentence in self._sentences())
        return f"<div>{words}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"


def frame_library(table: Any) -> str | None:
    """Return the name of the library of a frame in memory; None for anything else, such as an Arrow stream, which is not read."""
    if isinstance(table, np.ndarray):
        return None
    import narwhals as nw

    frame = nw.from_native(table, pass_through=True, eager_only=True)
    return frame.implementation.value if isinstance(frame, nw.DataFrame) else None


def chosen_rows(X: Any, positions: np.ndarray) -> Any:
    """Return the rows at these positions: a frame of the same library for a frame, else an array."""
    if frame_library(X) is None:
        return X[positions] if hasattr(X, "shape") else np.asarray(X)[positions]
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[positions.tolist()].to_native()


def shown_cells(X: Any, rows: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return the cells of a frame with words, as objects, and its columns; `rows`, its numbers, and `names` for other tables."""
    if frame_library(X) is None:
        return rows, names
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    columns = [column.to_list() for column in frame.iter_columns()]
    if all(column.dtype.is_numeric() for column in frame.iter_columns()):
        return rows, names
    cells = np.empty((len(frame), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        cells[:, j] = column
    return cells, [str(name) for name in frame.columns]


def as_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """Return columns as a data frame.

    Parameters
    ----------
    columns : mapping of str to array-like of shape (n,)
        The columns.
    library : str, optional
        "pandas", "polars", "pyarrow", ...; by default the first of these three that is installed.
    """
    import narwhals as nw

    if library is None:
        library = next(name for name in _FRAME_LIBRARIES if find_spec(name) is not None)
    ready = {name: column.tolist() if _is_of_objects(column) else column for name, column in columns.items()}
    return nw.from_dict(ready, backend=cast(Any, library)).to_native()


def _is_of_objects(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "OU"


def records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return columns as a list with one dictionary a row."""
    lists = [plain(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def plain(value: Any) -> Any:
    """Return a value as objects that JSON knows: arrays as lists, missing and infinite numbers as None, others as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return str(value)


def cell_text(cell: Any) -> str:
    """Return a cell of a table as short text: numbers with six digits, nothing for what is missing."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell == "":
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float):
        if math.isnan(cell):
            return ""
        return f"{cell:.0f}" if cell.is_integer() and abs(cell) < 1e15 else f"{cell:.6g}"
    return str(cell)


def own_version() -> str:
    """Return the version of this package."""
    import isopleth

    return isopleth.__version__


def in_words(names: Sequence[str], most: int = 5) -> str:
    """Return names as a list in a sentence: "a, b and c", or "a, b and 7 more".

    Examples
    --------
    >>> in_words(["a"]), in_words(["a", "b", "c"]), in_words(list("abcdefg"), most=3)
    ('a', 'a, b and c', 'a, b, c and 4 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as in "1 row" and "1,234 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
