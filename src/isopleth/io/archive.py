"""The archive in which a model lies: what makes it one, and what is refused before anything of it is interpreted."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from isopleth.errors import InputError
from isopleth.io.array_header import read_array_header
from isopleth.io.canonical import canonical
from isopleth.io.seal import is_whole, sealed
from isopleth.io.trust import listed_types

FORMAT_VERSION = 1
"""Raised when files written from now on can no longer be read by what was released before; the seal stays as it is."""

_HEADER = "isopleth.json"
_LONGEST_HEADER = 10_000
"""Bytes; it holds two short values."""

_SCHEMA = "schema.json"
_OLDEST_PROTOCOL = 2
"""Of skops, when the first of these files was written; readers of earlier ones are less strict."""

_LOADERS = frozenset(
    [
        "ConstructorFromReduceNode",
        "DTypeNode",
        "DictNode",
        "FunctionNode",
        "JsonNode",
        "ListNode",
        "MaskedArrayNode",
        "NdArrayNode",
        "ObjectNode",
        "RandomGeneratorNode",
        "RandomStateNode",
        "SetNode",
        "SliceNode",
        "TupleNode",
        "TypeNode",
    ]
)
"""The parts of skops that bring back data. Others make functions, call them, or read what can swell in memory."""


class DamagedError(Exception):
    """The archive is not as it was written."""


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
        strange = _strange_loaders(zipped)
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
        _check_members(archive)
        strange = _strange_loaders(archive)
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


def _check_members(archive: ZipFile) -> None:
    """Every name once, and every array as long as its header says: memory is taken by the header."""
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise DamagedError("a member is there twice")
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            with archive.open(member) as file:
                header = read_array_header(file)
            if header.dtype.hasobject or header.end != member.file_size:
                raise DamagedError("an array is not as long as its header says")


def _strange_loaders(archive: ZipFile) -> list[str]:
    """Parts of skops that the description of the model asks for and no model needs."""
    tree = json.loads(archive.read(_SCHEMA))
    if tree["protocol"] < _OLDEST_PROTOCOL:
        raise DamagedError("no model was ever written in this protocol")
    found: set[str] = set()
    _count(tree, found, {})
    return sorted(found - _LOADERS)


def _count(part: Any, loaders: set[str], sizes: dict[Any, int]) -> int:
    """Objects that a part describes; the loaders they name are added to `loaders`.

    An object that occurs again must be described by as many words: references that are short would let a few lines stand for
    a tree that takes forever to walk through.
    """
    if isinstance(part, list):
        return sum(_count(inner, loaders, sizes) for inner in part)
    if not isinstance(part, dict):
        return 0
    size = sum(_count(inner, loaders, sizes) for inner in part.values())
    if "__loader__" in part:
        loaders.add(part["__loader__"])
        size += 1
    if "__id__" in part and sizes.setdefault(part["__id__"], size) != size:
        raise DamagedError("one object is described in two ways")
    return size
