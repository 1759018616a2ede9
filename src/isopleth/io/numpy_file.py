"""Tables in NumPy's own files. Nothing pickled is ever read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, TypeVar
from zipfile import ZipFile

import numpy as np

from isopleth.errors import InputError
from isopleth.io.source import Block, MissingCells, Origin, UncheckedTable, positions

# Bytes of a header; longer ones are slow to parse, and no array of numbers has one.
_LONGEST = 10_000


@dataclass(frozen=True, eq=False)
class ArrayHeader:
    """Shape and type of an array in a file, and the position of its numbers.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    dtype : dtype
        Type of the entries. If it has objects, which are pickled, the array must not be read.
    fortran_order : bool
        Whether the numbers stand column by column.
    offset : int
        Position of the first number.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    offset: int

    @property
    def end(self) -> int:
        """Position behind the last number."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def read_array_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header with which an .npy file begins, and nothing else.

    Raises
    ------
    ValueError
        If it is none, or is damaged. (Its parser may raise other exceptions as well.)
    """
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format is for names that arrays of numbers do not have")
    shape, fortran_order, dtype = readers[version](file, max_header_size=_LONGEST)
    if any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape} has a negative length")
    return ArrayHeader(shape, dtype, fortran_order, file.tell())


_T = TypeVar("_T")
# Largest ratio of unpacked to packed size; deflate compresses no better.
_DENSEST = 1100


class NpySource:
    """Chosen columns of an .npy file, mapped into memory and read in blocks.

    Parameters
    ----------
    path : Origin
        The file.
    columns, but
        As for :func:`isopleth.io.read_table`.

    Raises
    ------
    InputError
        If it holds no two-dimensional array of numbers, or less than its header says.
    """

    named = False
    missing: MissingCells | None = None

    def __init__(self, path: Origin, columns: Sequence[str] | None, but: str | None) -> None:
        self._path = path
        array = self._mapped()
        self._where, self.names = _chosen(path, "the array", array, columns, but)
        self.n_rows = len(array)

    def blocks(self, size: int, start: int = 0) -> Iterator[Block]:
        """Yield blocks of `size` rows from row `start` on; the last may be smaller."""
        for first in range(start, self.n_rows, size):
            # A new memory map for each block, because the pages that a map has read count as memory of the process.
            yield Block(_numbers(self._mapped()[first : first + size], self._where))

    def _mapped(self) -> np.ndarray:
        return _loaded(self._path, "the array", lambda: _map(self._path.path))


def _map(path: Path) -> np.ndarray:
    """Return an .npy file as an array whose numbers are read when they are needed."""
    with open(path, "rb") as file:
        header = read_array_header(file)
    if header.dtype.hasobject:
        raise ValueError("needs allow_pickle")
    if header.end > path.stat().st_size:
        raise ValueError("shorter than its header says")
    order: Literal["F", "C"] = "F" if header.fortran_order else "C"
    if not math.prod(header.shape):  # no bytes cannot be mapped
        return np.empty(header.shape, header.dtype, order)
    return np.memmap(path, header.dtype, "r", header.offset, header.shape, order)


def read_npz(path: Origin, columns: Sequence[str] | None, but: str | None) -> UncheckedTable:
    """Read the array X of an .npz file, or its only two-dimensional one."""
    with _loaded(path, "the archive", lambda: ZipFile(path.path)) as archive:
        keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        key = "X" if "X" in keys else _only_table(path, archive, keys)
        what = f"array {key!r}"
        return _table(path, what, _loaded(path, what, lambda: _read(archive, key)), columns, but)


def _header(archive: ZipFile, key: str) -> ArrayHeader:
    """Return the header of an array in an archive, if the archive can hold as much as it says."""
    member = archive.getinfo(f"{key}.npy")
    with archive.open(member) as file:
        header = read_array_header(file)
    if header.end > member.file_size or member.file_size > _DENSEST * (member.compress_size + 1):
        raise ValueError("shorter than its header says")
    return header


def _read(archive: ZipFile, key: str) -> np.ndarray:
    _header(archive, key)  # memory is taken by it, before the numbers are there
    with archive.open(f"{key}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _loaded(path: Origin, what: str, load: Callable[[], _T]) -> _T:
    try:
        return load()
    except MemoryError:
        raise
    except Exception as error:  # damaged headers make NumPy raise whatever its parsers do
        if "allow_pickle" in str(error):
            raise InputError(
                f"{path}: {what} holds pickled Python objects, which are not read because they could run code; "
                "save it as an array of numbers."
            ) from None
        raise InputError(f"{path}: {what} is damaged or cut short; save the file again.") from None


def _only_table(path: Origin, archive: ZipFile, keys: list[str]) -> str:
    """Return the key of the two-dimensional array, if there is exactly one."""
    headers = {key: _loaded(path, f"array {key!r}", partial(_header, archive, key)) for key in keys}
    # Arrays of objects may be stored beside the table.
    shapes = {key: None if header.dtype.hasobject else header.shape for key, header in headers.items()}
    tables = [key for key, shape in shapes.items() if shape is not None and len(shape) == 2]
    if len(tables) == 1:
        return tables[0]
    held = ", ".join(f"{key!r} {'of objects' if shape is None else shape}" for key, shape in shapes.items())
    count = "more than one" if tables else "no"
    raise InputError(f"{path} holds {count} two-dimensional array (it holds {held or 'nothing'}); name the table X.")


def _table(path: Origin, what: str, array: Any, columns: Sequence[str] | None, but: str | None) -> UncheckedTable:
    where, names = _chosen(path, what, array, columns, but)
    return UncheckedTable(_numbers(array, where), names, named=False)


def _chosen(
    path: Origin, what: str, array: Any, columns: Sequence[str] | None, but: str | None
) -> tuple[list[int], list[str]]:
    """Return the positions of the chosen columns in an array, and their names."""
    if array.ndim != 2:
        raise InputError(f"{path}: {what} has shape {array.shape}; a table has two axes, rows and columns.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path}: {what} holds {array.dtype}, not real numbers; convert it before saving.")
    names = [f"x{j + 1}" for j in range(array.shape[1])]
    where = positions(path, names, columns, but)
    return where, [names[j] for j in where]


def _numbers(array: np.ndarray, where: list[int]) -> np.ndarray:
    return np.array(array[:, where], dtype=np.float64, order="C")
