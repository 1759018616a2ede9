"""Kinds of table files: told by their suffix, held against their first bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from isopleth.errors import InputError
from isopleth.io.csv_file import CsvSource, read_csv, read_csv_names
from isopleth.io.numpy_file import NpySource, read_npz
from isopleth.io.parquet_file import ParquetSource, read_parquet_names
from isopleth.io.raw import Progress, Raw, Source

Columns = Sequence[str] | None


@dataclass(frozen=True)
class Format:
    """How a kind of file is recognised, read as a whole, opened to be read in blocks (None: not), and asked for names."""

    magic: tuple[bytes, ...]
    read: Callable[[Path, Columns, str | None], Raw]
    open: Callable[[Path, Columns, str | None, Progress], Source] | None
    names: Callable[[Path], list[str] | None]


def _no_names(path: Path) -> None:
    """Arrays name no columns."""


def _delimited(delimiter: str | None) -> Format:
    return Format(
        (),
        lambda path, columns, but: read_csv(path, delimiter, columns, but),
        lambda path, columns, but, progress: CsvSource(path, delimiter, columns, but, progress),
        partial(read_csv_names, delimiter=delimiter),
    )


def _in_blocks(
    magic: bytes, source: Callable[[Path, Columns, str | None], Source], names: Callable[[Path], list[str] | None]
) -> Format:
    """A format of which the whole is a single block."""

    def whole(path: Path, columns: Columns, but: str | None) -> Raw:
        found = source(path, columns, but)
        values = next((block.values for block in found.blocks(max(found.n_rows, 1))), None)
        if values is None:
            values = np.empty((0, len(found.names)))
        return Raw(values, found.names, found.named)

    return Format((magic,), whole, lambda path, columns, but, progress: source(path, columns, but), names)


_FORMATS = {
    ".csv": _delimited(None),
    ".tsv": _delimited("\t"),
    ".parquet": _in_blocks(b"PAR1", ParquetSource, read_parquet_names),
    ".npy": _in_blocks(b"\x93NUMPY", NpySource, _no_names),
    ".npz": Format((b"PK\x03\x04", b"PK\x05\x06"), read_npz, None, _no_names),
}

# Each holds a byte that no text begins with: a column may well be called PK or PAR1.
_BINARY = {
    b"PAR1\x15": "a Parquet file",
    b"\x93NUMPY": "an .npy file",
    b"PK\x03\x04": "a zip archive (an .npz file or a workbook)",
    b"\x1f\x8b": "compressed by gzip",
    b"\x80": "a pickle or other binary data",
}


def recognised(path: str | os.PathLike[str]) -> tuple[Path, Format]:
    """The file, and of which kind it is.

    Raises
    ------
    InputError
        If it is no readable file, of no kind that is read, or of another one than its name says.
    """
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


def _check_beginning(source: Path, kind: Format) -> None:
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


def check_shape(source: Path, rows: int, width: int, min_rows: int) -> None:
    """Refuse a table without columns, or with fewer than `min_rows` rows."""
    if not width:
        raise InputError(f"{source} has no columns; a table of numbers is needed.")
    if rows < min_rows:
        has = "only one row" if rows == 1 else f"{rows or 'no'} rows"
        raise InputError(f"{source} has {has}; at least {min_rows} {'are' if min_rows > 1 else 'is'} needed.")
