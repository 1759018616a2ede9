"""The same bytes for the same model, whenever and in whatever process it is saved."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any
from zipfile import ZipFile, ZipInfo

from isopleth.io.description import SCHEMA

# Parts that are equal if they are written alike: it may depend on the day which of them are one object.
_VALUES = frozenset({"JsonNode", "TypeNode"})


def canonical(archive: bytes) -> bytes:
    """An archive of skops with numbers counted from 0 in the place of addresses in memory, and without times.

    Parameters
    ----------
    archive : bytes
        What ``skops.io.dumps`` gives.

    Returns
    -------
    bytes
        What loads to the same object.

    Examples
    --------
    >>> from skops.io import dumps
    >>> canonical(dumps([1.0, "a"])) == canonical(dumps([float("1"), "A".lower()]))
    True
    """
    out = BytesIO()
    with ZipFile(BytesIO(archive)) as found, ZipFile(out, "w") as written:
        tree = json.loads(found.read(SCHEMA))
        files: dict[str, str] = {}
        _renumber(tree, {}, files)
        for old, new in files.items():
            written.writestr(ZipInfo(new), found.read(old))
        written.writestr(ZipInfo(SCHEMA), json.dumps(tree))
    return out.getvalue()


def _renumber(part: Any, met: dict[Any, dict[str, Any]], files: dict[str, str]) -> None:
    """Give the objects of a description numbers in the order in which they are met, and their files names by theirs.

    An object that is met again is described in the words of the first time: some of what skops makes to describe it is made
    anew each time, at another address.
    """
    if isinstance(part, list):
        for inner in part:
            _renumber(inner, met, files)
    if not isinstance(part, dict):
        return
    if "__id__" in part and "__loader__" in part:
        address = part.pop("__id__")
        key = json.dumps(part) if part["__loader__"] in _VALUES else address
        if key in met:
            part.clear()
            part.update(met[key])
            return
        part["__id__"] = len(met)
        met[key] = part
        if isinstance(part.get("file"), str):
            old = part["file"]
            part["file"] = files.setdefault(old, f"{len(files)}{PurePosixPath(old).suffix}")
    for inner in part.values():
        _renumber(inner, met, files)
