"""Reading a table of numbers from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isopleth.io.formats import check_shape, recognised
from isopleth.io.gaps import Gaps
from isopleth.io.raw import Block


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers, and where its rows and columns come from.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        float64, all finite.
    names : list of str
        One a column; ``x1``, ``x2``, ... where the file has none.
    named : bool
        Whether the names come from the file.
    source : Path
        The file.
    lines : ndarray of shape (n,), optional
        For text files, the line of the file on which each row begins, counted from 1.
    """

    values: np.ndarray
    names: list[str]
    named: bool
    source: Path
    lines: np.ndarray | None = None


def read_table(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, *, but: str | None = None, min_rows: int = 2
) -> Table:
    """Read a table of numbers.

    The suffix decides the format: .csv (comma, semicolon or tab; a first line without numbers is the header), .tsv,
    .parquet, .npy, and .npz (its array ``X``, or its only two-dimensional one). Booleans are read as 0 and 1. Of text
    that pandas wrote, an index without a name that counts the rows is left out, and 0, 1, 2, ... in the first line are
    a header; a warning says so.

    Parameters
    ----------
    path : path-like
        The file.
    columns : sequence of str, optional
        Columns to read, in this order; all by default. Files without names have ``x1``, ``x2``, ...
    but : str, optional
        The column that "all" leaves out, as the classes of the rows.
    min_rows : int, default=2
        Fewer rows than this are refused.

    Returns
    -------
    Table
        Every value finite.

    Raises
    ------
    InputError
        If the file cannot be read as a table of finite numbers. The message says what is wrong, where, and what to do.
    MissingExtraError
        If the format needs a package that is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "points.csv"
    >>> _ = path.write_text("a,b\\n1,2\\n3,4\\n")
    >>> table = read_table(path, columns=["b"])
    >>> table.names, table.values.tolist()
    (['b'], [[2.0], [4.0]])
    >>> folder.cleanup()
    """
    source, kind = recognised(path)
    raw = kind.read(source, columns, but)
    check_shape(source, len(raw.values), raw.values.shape[1], min_rows)
    gaps = Gaps(len(raw.names))
    gaps.add(Block(raw.values, raw.lines))
    gaps.refuse(source, raw.names)
    return Table(raw.values, raw.names, raw.named, source, raw.lines)


def read_names(path: str | os.PathLike[str]) -> list[str] | None:
    """Column names that a file brings, or None where it has none.

    Parameters
    ----------
    path : path-like
        The file, in a format of :func:`read_table`.

    Raises
    ------
    InputError, MissingExtraError
        As :func:`read_table`.
    """
    source, kind = recognised(path)
    return kind.names(source)
