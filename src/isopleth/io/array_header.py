"""What the header of a NumPy array announces, held against what is there before any memory is taken for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import IO

import numpy as np

# Bytes of a header; longer ones are slow to parse, and no array of numbers has one.
_LONGEST = 10_000


@dataclass(frozen=True, eq=False)
class ArrayHeader:
    """Shape and type of an array in a file, and where its numbers begin.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    dtype : dtype
        Of its entries; it may have objects, which are pickled and not to be read.
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
