"""Common parts of the readers of all formats: blocks of rows, choice of columns, and missing cells."""

from __future__ import annotations

import bz2
import gzip
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast
from zipfile import BadZipFile, ZipFile

import numpy as np

from isopleth.errors import Hint, InputError

# Called with the share of a file that has been read.
Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Origin:
    """File that is read, and the name that messages give it.

    Parameters
    ----------
    path : Path
        File to read: the file itself, or a temporary file with unpacked data or with the data of standard input.
    shown : Path
        The name that the user knows.
    suffix : str
        Suffix that says the format, in small letters.
    temporary : object, optional
        The temporary file, which is removed when nothing refers to it any more.
    """

    path: Path
    shown: Path
    suffix: str
    temporary: object = None

    def __str__(self) -> str:
        return str(self.shown)


@dataclass(frozen=True, eq=False)
class UncheckedTable:
    """Table as it was read, not yet checked for missing cells."""

    values: np.ndarray
    names: list[str]
    named: bool
    lines: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a table, NaN for missing cells; `lines` are the lines of a text file on which the rows begin."""

    values: np.ndarray
    lines: np.ndarray | None = None


class Source(Protocol):
    """Chosen columns of a file, read in blocks of rows, from any row on.

    `missing` are those of all its cells, where opening it has looked at them.
    """

    names: list[str]
    named: bool
    n_rows: int
    missing: MissingCells | None

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Yield blocks of `size` rows from row `start` on; the last may be smaller."""
        ...


class MissingCells:
    """Count of missing and infinite cells in each column: found block by block, refused at the end.

    Parameters
    ----------
    width : int
        Number of columns.
    """

    def __init__(self, width: int) -> None:
        self._counts = np.zeros(width, dtype=np.int64)
        self._first = [""] * width
        self._rows = 0

    def add(self, block: Block) -> None:
        """Count the missing cells of the rows that follow."""
        bad = ~np.isfinite(block.values)
        for j in np.flatnonzero(bad.any(axis=0)):
            if not self._counts[j]:
                row = int(bad[:, j].argmax())
                self._first[j] = f"row {self._rows + row + 1}" if block.lines is None else f"line {block.lines[row]}"
            self._counts[j] += np.count_nonzero(bad[:, j])
        self._rows += len(bad)

    def refuse(self, path: Path | Origin, names: list[str]) -> None:
        """Refuse the file if any was found; `names` are those of the last columns, where the first are left out.

        Raises
        ------
        InputError
            If there is one; the message has the number of such rows in each column and the first of them.
        """
        left_out = len(self._counts) - len(names)
        bad = [int(j) for j in np.flatnonzero(self._counts) if j >= left_out]
        if not bad:
            return
        worst = [f"{names[j - left_out]!r} {self._where(j)}" for j in bad[:5]]
        more = len(bad) - len(worst)
        if more:
            worst.append(f"{more} more column{'s' if more > 1 else ''}")
        how = Hint("fill or drop these rows, or choose other columns with {columns}", columns=...)
        raise InputError(
            f"{path}: empty, NaN or infinite cells in {', '.join(worst)}", column=names[bad[0] - left_out], hint=how
        )

    def _where(self, j: int) -> str:
        count, place = self._counts[j], self._first[j]
        return f"({count} rows, the first at {place})" if count > 1 else f"({place})"


# More names than this are not listed in one sentence.
_MANY = 12


def listed(names: Sequence[str], most: int = _MANY) -> str:
    """Return names for a sentence: quoted, and cut short when there are many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def positions(
    path: Path | Origin, names: Sequence[str], columns: Sequence[str] | None, but: str | None = None
) -> list[int]:
    """Return the positions of the chosen columns among `names`, in the given order; for None all columns except `but`.

    Raises
    ------
    InputError
        If names of the file or of the choice repeat, if the choice is empty or names what the file does not have.
    """
    _refuse_repeated(f"{path}: the column name", names, "give every column its own name")
    if columns is None:
        return [j for j, name in enumerate(names) if name != but]
    if not columns:
        how = Hint("name at least one, or leave {columns} out to use all of them", columns=...)
        raise InputError("{parameter} names no column", parameter="columns", hint=how)
    _refuse_repeated("{parameter}: the column", columns, "name every column once")
    where = {name: position for position, name in enumerate(names)}
    unknown = [name for name in columns if name not in where]
    if unknown:
        text = f"{path} has no column {listed(unknown)} ({{parameter}}); it has {listed(names)}."
        raise InputError(text, parameter="columns", column=unknown[0])
    return [where[name] for name in columns]


def _refuse_repeated(subject: str, names: Sequence[str], advice: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{subject} {listed(repeated)} occurs more than once", parameter="columns", hint=advice)


def refuse_text(
    path: Path | Origin, text: Sequence[str], numeric: Sequence[str], *, chosen: bool, hint: str = ""
) -> None:
    """Refuse columns that hold no numbers; `hint` says what may have gone wrong with them.

    Raises
    ------
    InputError
        If `text` names any column.
    """
    if not text:
        return
    subject = f"{path}: no numbers in column{'s' if len(text) > 1 else ''} {listed(text)}{hint}"
    if chosen:
        how = Hint(f"leave {'them' if len(text) > 1 else 'it'} out of {{columns}}", columns=...)
        raise InputError(subject, column=text[0], hint=how)
    if not numeric:
        raise InputError(f"{subject}, and there are no others; a table of numbers is needed.", column=text[0])
    raise InputError(subject, column=text[0], hint=Hint("choose those to use with {columns}", columns=choice(numeric)))


def choice(names: Sequence[str]) -> list[Any]:
    """Return names to choose, the first ones and `...` where there are many."""
    return [*names[:_MANY], ...] if len(names) > _MANY else list(names)


def regrouped(pieces: Iterator[np.ndarray], size: int, skip: int = 0) -> Iterator[np.ndarray]:
    """Yield the rows of `pieces` without the first `skip`, `size` at a time."""
    held: list[np.ndarray] = []
    count = 0
    for piece in pieces:
        left = piece[skip:]
        skip = max(0, skip - len(piece))
        while len(left):
            held.append(left[: size - count])
            left = left[size - count :]
            count += len(held[-1])
            if count == size:
                yield np.concatenate(held)
                held, count = [], 0
    if count:
        yield np.concatenate(held)


STANDARD_INPUT = Path("-")

_SHOWN = Path("standard input")

# The standard input of this process, which can be read only once.
_read: list[Origin] = []


def _zstd(path: Path) -> IO[bytes]:
    import pyarrow

    return cast(IO[bytes], pyarrow.input_stream(str(path), compression="zstd"))


# Suffix of each kind of compression, its first bytes, and the function that opens such a file.
_PACKINGS: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    ".gz": (b"\x1f\x8b", gzip.GzipFile),
    ".bz2": (b"BZh", bz2.BZ2File),
    ".zst": (b"\x28\xb5\x2f\xfd", _zstd),
}
PACKED_SUFFIXES = tuple(_PACKINGS)


def unpacked(path: Path) -> Origin:
    """Return where the bytes of a file are: in itself or, for a packed one and standard input, in a temporary file.

    Parameters
    ----------
    path : Path
        The file; ``-`` for standard input.

    Raises
    ------
    InputError
        If it is packed in another way than its name says, or damaged.
    """
    if path == STANDARD_INPUT:
        if not _read:
            _read.append(_standard_input())
        return _read[0]
    suffix = path.suffix.lower()
    if suffix not in _PACKINGS:
        return Origin(path, path, suffix)
    magic, _ = _PACKINGS[suffix]
    with open(path, "rb") as file:
        if file.read(len(magic)) != magic:
            raise InputError(f"{path} is named {suffix} but its content is not; rename it or save it again.")
    return _unpack(Origin(path, path, suffix), suffix, path.with_suffix("").suffix.lower())


def _unpack(packed: Origin, packing: str, suffix: str) -> Origin:
    import pyarrow

    copy = tempfile.NamedTemporaryFile(prefix="isopleth-")  # noqa: SIM115 - removed with the origin that holds it
    try:
        with _PACKINGS[packing][1](packed.path) as file:
            shutil.copyfileobj(file, copy, 2**20)
    except (EOFError, zlib.error, pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise InputError(f"{packed} is damaged or cut short; compress it again.") from None
    copy.flush()
    return Origin(Path(copy.name), packed.shown, suffix, copy)


def _standard_input() -> Origin:
    """Copy standard input; its first bytes say the format."""
    copy = tempfile.NamedTemporaryFile(prefix="isopleth-")  # noqa: SIM115 - removed with the origin that holds it
    shutil.copyfileobj(sys.stdin.buffer, copy, 2**20)
    copy.flush()
    origin = Origin(Path(copy.name), _SHOWN, "", copy)
    beginning = _beginning(origin.path)
    for packing, (magic, _) in _PACKINGS.items():
        if beginning.startswith(magic):
            origin = _unpack(origin, packing, "")
    return Origin(origin.path, _SHOWN, _suffix_by_content(origin.path), origin.temporary)


def _beginning(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def _suffix_by_content(path: Path) -> str:
    beginning = _beginning(path)
    if beginning.startswith(b"PAR1\x15"):
        return ".parquet"
    if beginning.startswith(b"\x93NUMPY"):
        return ".npy"
    if beginning.startswith(b"PK\x03\x04"):
        try:
            with ZipFile(path) as archive:
                return ".npz" if any(name.endswith(".npy") for name in archive.namelist()) else ".xlsx"
        except BadZipFile:
            return ".npz"
    return ".jsonl" if beginning.lstrip().startswith(b"{") else ".csv"
