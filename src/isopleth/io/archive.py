"""The archive in which a model lies: what makes it one, and what is refused before anything of it is interpreted."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from isopleth.errors import InputError
from isopleth.io.array_header import read_array_header
from isopleth.io.canonical import canonical
from isopleth.io.description import SCHEMA, DamagedError, strange_loaders
from isopleth.io.seal import is_whole, sealed
from isopleth.io.trust import listed_types

# Raised when files written from now on can no longer be read by what was released before; the seal stays as it is.
FORMAT_VERSION = 1

_HEADER = "isopleth.json"
# Bytes; it holds two short values.
_LONGEST_HEADER = 10_000


def finished(content: bytes) -> bytes:
    """The archive that skops has made, with the header of a model and the seal.

    Raises
    ------
    InputError
        If it holds what :func:`check_archive` would refuse.
    """
    import isopleth

    archive = BytesIO(canonical(content))
    with ZipFile(archive, "a") as zipped:
        try:
            strange = strange_loaders(json.loads(zipped.read(SCHEMA)))
        except DamagedError as error:
            raise InputError(f"the model holds what would not be loaded again: {error}; leave it out.") from error
        zipped.writestr(ZipInfo(_HEADER), json.dumps({"format": FORMAT_VERSION, "isopleth": isopleth.__version__}))
    if strange:
        raise InputError(f"the model holds what only a {strange[0]} brings back, which could run code; leave it out.")
    return sealed(archive.getvalue())


def check_archive(path: Path, content: bytes) -> None:
    """Refuse what is no model file, is not whole, or is of a later version.

    Raises
    ------
    InputError
        Where a sentence can say what is wrong.
    DamagedError
        If it has changed since it was written.
    """
    _check_beginning(path, content)
    with ZipFile(BytesIO(content)) as archive:
        if _HEADER not in archive.namelist():
            raise InputError(f"{path} is an archive without a model of isopleth; use a file that isopleth.save wrote.")
        # A few compressed bytes can stand for more than the memory holds; what is stored is no larger than the file.
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise InputError(f"{path} is compressed inside, as no model is; use a file that isopleth.save wrote.")
        if not is_whole(content):
            raise DamagedError("the checksum is another one")
        _check_version(path, archive)
        _check_members(archive, len(content))
        strange = strange_loaders(json.loads(archive.read(SCHEMA)))
    if strange:
        raise InputError(
            f"{path} names {listed_types(strange)}, which is not a part of a model and is not loaded; "
            "use a file from a source you know, written by isopleth.save."
        )


def _check_beginning(path: Path, content: bytes) -> None:
    if not content:
        raise InputError(f"{path} is empty; save the model again.")
    if content.startswith(b"\x80"):
        raise InputError(
            f"{path} looks like a pickle, which is not loaded because it could run code; "
            "save the model with isopleth.save."
        )
    if not content.startswith(b"PK"):
        raise InputError(f"{path} is no model file; use a file that isopleth.save wrote.")


def _check_version(path: Path, archive: ZipFile) -> None:
    with archive.open(_HEADER) as member:
        header = json.loads(member.read(_LONGEST_HEADER))
    version, writer = int(header["format"]), str(header["isopleth"])
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} was written by isopleth {writer} in format {version}; this version reads up to {FORMAT_VERSION}, "
            "so upgrade isopleth."
        )


def _check_members(archive: ZipFile, size: int) -> None:
    """Every name once, no more bytes than the file has, and every array as long as its header says: memory is taken by it."""
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise DamagedError("a member is there twice")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise DamagedError("the members are larger than the file")
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            with archive.open(member) as file:
                header = read_array_header(file)
            if header.dtype.hasobject or header.end != member.file_size:
                raise DamagedError("an array is not as long as its header says")
