"""Files to read: checks before any work, and the header of an array without its numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import IO, TYPE_CHECKING

from isopleth.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np


def is_pattern(path: Path) -> bool:
    """Return whether a name is a pattern for many files, and not that of a file."""
    return has_magic(str(path)) and not path.exists()


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Return the names of files, with their folders where several have one name, as in year=2024/part.parquet."""
    names = [path.name for path in paths]
    if len(set(names)) == len(names):
        return names
    whole = [os.path.abspath(path) for path in paths]
    common = os.path.commonpath([os.path.dirname(path) for path in whole])
    return [Path(os.path.relpath(path, common)).as_posix() for path in whole]


def check_source(path: str | os.PathLike[str], what: str = "file") -> Path:
    """Check before any work that a file can be read; `what` is "files" where a pattern may stand for many."""
    source, many = Path(path), ""
    if what == "files":
        if is_pattern(source):
            return source
        what, many = "file", f", or all with a pattern in quotes: '{source}/**/*.parquet'"
    if what == "file" and is_pattern(source):
        raise InputError(
            f"{source} does not exist, and as a pattern it may stand for many files where one is read; name one file."
        )
    if what == "file" and str(source) == "-":
        return source
    try:
        if source.is_dir():
            raise InputError(f"{source} is a folder; name a {what} in it{many}.")
        if not source.exists():
            raise InputError(f"{source} does not exist; check the name and the folder.")
        if not source.is_file():
            raise InputError(f"{source} is not a plain file; copy what it gives into one.")
    except PermissionError:  # of the folder
        raise InputError(f"{source} may not be read; ask for the permission to read it.") from None
    if not os.access(source, os.R_OK):
        raise InputError(f"{source} may not be read; ask for the permission to read it.")
    return source


# Bytes of a header; longer ones are slow to parse, and no array of numbers has one.
_LONGEST = 10_000


@dataclass(frozen=True, eq=False)
class ArrayHeader:
    """Shape and type of an array in a file, and the position of its numbers."""

    shape: tuple[int, ...]  # shape of the array
    dtype: np.dtype  # type of the entries. If it has objects, which are pickled, the array must not be read
    fortran_order: bool  # whether the numbers stand column by column
    offset: int  # position of the first number

    @property
    def end(self) -> int:
        """Position behind the last number."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def read_array_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header with which an .npy file begins, and nothing else."""
    import numpy as np  # commands check their files before anything large is imported

    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format is for names that arrays of numbers do not have")
    shape, fortran_order, dtype = readers[version](file, max_header_size=_LONGEST)
    if any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape} has a negative length")
    return ArrayHeader(shape, dtype, fortran_order, file.tell())
