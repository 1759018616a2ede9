"""Tables in NumPy's own files; nothing pickled is ever read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isopleth.errors import InputError
from isopleth.io.raw import Raw
from isopleth.io.selection import positions

_T = TypeVar("_T")


def read_npy(path: Path, columns: Sequence[str] | None, but: str | None) -> Raw:
    """Read the two-dimensional array of an .npy file."""
    array = _loaded(path, "the array", lambda: np.load(path, allow_pickle=False))
    return _table(path, "the array", array, columns, but)


def read_npz(path: Path, columns: Sequence[str] | None, but: str | None) -> Raw:
    """Read the array X of an .npz file, or its only two-dimensional one."""
    with _loaded(path, "the archive", lambda: np.load(path, allow_pickle=False)) as archive:
        key = "X" if "X" in archive.files else _only_table(path, archive)
        return _table(path, f"array {key!r}", _loaded(path, f"array {key!r}", lambda: archive[key]), columns, but)


def _loaded(path: Path, what: str, load: Callable[[], _T]) -> _T:
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


def _only_table(path: Path, archive: Any) -> str:
    """The key of the only two-dimensional array, if there is exactly one."""
    shapes = {key: _shape(path, archive, key) for key in archive.files}
    tables = [key for key, shape in shapes.items() if shape is not None and len(shape) == 2]
    if len(tables) == 1:
        return tables[0]
    held = ", ".join(f"{key!r} {'of objects' if shape is None else shape}" for key, shape in shapes.items())
    count = "more than one" if tables else "no"
    raise InputError(f"{path} holds {count} two-dimensional array (it holds {held or 'nothing'}); name the table X.")


def _shape(path: Path, archive: Any, key: str) -> tuple[int, ...] | None:
    """None for what is not a plain array: it may lie beside the table as long as it is not the table."""
    try:
        return np.shape(_loaded(path, f"array {key!r}", lambda: archive[key]))
    except InputError as error:
        if "pickled" in str(error):
            return None
        raise


def _table(path: Path, what: str, array: Any, columns: Sequence[str] | None, but: str | None) -> Raw:
    if array.ndim != 2:
        raise InputError(f"{path}: {what} has shape {array.shape}; a table has two axes, rows and columns.")
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path}: {what} holds {array.dtype}, not real numbers; convert it before saving.")
    names = [f"x{j + 1}" for j in range(array.shape[1])]
    where = positions(path, names, columns, but)
    return Raw(np.array(array[:, where], dtype=np.float64, order="C"), [names[j] for j in where], named=False)
