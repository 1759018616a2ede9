"""Reading a table of numbers from a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from isopleth.errors import InputError
from isopleth.io.csv_file import read_csv, read_csv_names
from isopleth.io.numpy_file import read_npy, read_npz
from isopleth.io.parquet_file import read_parquet, read_parquet_names
from isopleth.io.raw import Raw


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


@dataclass(frozen=True)
class _Format:
    """How a kind of file is recognised and read."""

    magic: tuple[bytes, ...]
    read: Callable[[Path, Sequence[str] | None, str | None], Raw]
    names: Callable[[Path], list[str] | None]


def _no_names(path: Path) -> None:
    """Arrays name no columns."""


def _delimited(delimiter: str | None) -> _Format:
    return _Format(
        (),
        lambda path, columns, but: read_csv(path, delimiter, columns, but),
        partial(read_csv_names, delimiter=delimiter),
    )


_FORMATS = {
    ".csv": _delimited(None),
    ".tsv": _delimited("\t"),
    ".parquet": _Format((b"PAR1",), read_parquet, read_parquet_names),
    ".npy": _Format((b"\x93NUMPY",), read_npy, _no_names),
    ".npz": _Format((b"PK\x03\x04", b"PK\x05\x06"), read_npz, _no_names),
}

# Each holds a byte that no text begins with: a column may well be called PK or PAR1.
_BINARY = {
    b"PAR1\x15": "a Parquet file",
    b"\x93NUMPY": "an .npy file",
    b"PK\x03\x04": "a zip archive (an .npz file or a workbook)",
    b"\x1f\x8b": "compressed by gzip",
    b"\x80": "a pickle or other binary data",
}


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
    source, kind = _recognised(path)
    raw = kind.read(source, columns, but)
    _check_shape(source, raw, min_rows)
    _refuse_missing(source, raw)
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
    source, kind = _recognised(path)
    return kind.names(source)


def _recognised(path: str | os.PathLike[str]) -> tuple[Path, _Format]:
    source = Path(path)
    if source.is_dir():
        raise InputError(f"{source} is a folder; name a file in it.")
    if not source.exists():
        raise InputError(f"{source} does not exist; check the name and the folder.")
    if not source.is_file():
        raise InputError(f"{source} is not a plain file; copy what it gives into one.")
    kind = _FORMATS.get(source.suffix.lower())
    if kind is None:
        raise InputError(f"{source}: {source.suffix!r} files are not read; use one of {', '.join(_FORMATS)}.")
    _check_beginning(source, kind)
    return source, kind


def _check_beginning(source: Path, kind: _Format) -> None:
    """Refuse a file whose first bytes are of another kind than its suffix."""
    try:
        with open(source, "rb") as file:
            beginning = file.read(8)
    except PermissionError:
        raise InputError(f"{source} may not be read; ask for the permission to read it.") from None
    if not beginning:
        raise InputError(f"{source} is empty; a table of numbers is needed.")
    if kind.magic and beginning.startswith(kind.magic):
        return
    other = next((name for magic, name in _BINARY.items() if beginning.startswith(magic)), None)
    if other:
        raise InputError(f"{source} is named {source.suffix} but is {other}; rename it or save it again.")
    if kind.magic:
        raise InputError(f"{source} is named {source.suffix} but its content is not; rename it or save it again.")


def _check_shape(source: Path, raw: Raw, min_rows: int) -> None:
    rows, width = raw.values.shape
    if not width:
        raise InputError(f"{source} has no columns; a table of numbers is needed.")
    if rows < min_rows:
        has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
        raise InputError(f"{source} has {has}; at least {min_rows} {'are' if min_rows > 1 else 'is'} needed.")


def _refuse_missing(source: Path, raw: Raw) -> None:
    bad = ~np.isfinite(raw.values)
    counts = bad.sum(axis=0)
    if not counts.any():
        return
    worst = [f"{raw.names[j]!r} {_where(raw, bad[:, j])}" for j in np.flatnonzero(counts)[:5]]
    more = np.count_nonzero(counts) - len(worst)
    if more:
        worst.append(f"{more} more column{'s' if more > 1 else ''}")
    raise InputError(
        f"{source}: empty, NaN or infinite cells in {', '.join(worst)}; "
        "fill or drop these rows, or use other columns with --columns."
    )


def _where(raw: Raw, bad: np.ndarray) -> str:
    count, first = int(bad.sum()), int(bad.argmax())
    place = f"row {first + 1}" if raw.lines is None else f"line {raw.lines[first]}"
    return f"({count} rows, the first at {place})" if count > 1 else f"({place})"
