"""Compressed files and standard input, copied into a temporary file so that they can be read from any place."""

from __future__ import annotations

import bz2
import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast
from zipfile import BadZipFile, ZipFile

from isopleth.errors import InputError
from isopleth.io.source import Origin

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
