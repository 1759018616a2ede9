"""Save fitted models to files that cannot run code, and load them.

A file is a zip archive with reproducible bytes and a checksum. It is checked before anything in it is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
from copy import copy
from dataclasses import is_dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from sklearn.base import BaseEstimator

from isopleth.core.arrays import is_foreign, to_numpy
from isopleth.core.budget import Budget
from isopleth.core.errors import InputError, MissingExtraError
from isopleth.core.parameters import check_memory_limit
from isopleth.io.input_files import check_source, read_array_header
from isopleth.io.output_files import atomic_write
from isopleth.io.registry import REGISTERED, listed_types, trusted_types


def with_numpy_arrays(value: Any) -> Any:
    """Return a model with NumPy's arrays in place of others, and without callbacks; the model itself where it has neither."""
    if isinstance(value, type):
        return value
    if is_foreign(value):
        return to_numpy(value)
    if isinstance(value, dict):
        found = {key: with_numpy_arrays(part) for key, part in value.items()}
        return value if _same(found.values(), value.values()) else found
    if isinstance(value, (list, tuple)):
        parts = [with_numpy_arrays(part) for part in value]
        if _same(parts, value):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if not (isinstance(value, BaseEstimator) or is_dataclass(value)):
        return value
    state = {name: part for name, part in vars(value).items() if not _is_passing(value, name, part)}
    found = with_numpy_arrays(state)
    if found is state and len(state) == len(vars(value)):
        return value
    out = copy(value)
    vars(out).clear()
    vars(out).update(found)  # also for frozen dataclasses; `out` is a new copy
    return out


def _is_passing(value: Any, name: str, part: Any) -> bool:
    """Tell whether an attribute is no part of a model: callbacks, and what an answer has left for the next one."""
    cached = isinstance(getattr(type(value), name, None), cached_property) and not isinstance(part, float)
    return name == "_skl_callbacks" or cached


def _same(some: Any, others: Any) -> bool:
    return all(a is b for a, b in zip(some, others, strict=True))


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a model to a file, completely or not at all.

    The arrays of a model that was fitted to tensors are converted to NumPy's, and :func:`load` gives a model of NumPy: its
    predictions equal those of the first up to rounding.

    The file is a zip archive that `skops <https://skops.readthedocs.io>`_ writes: arrays and names of types, no code. Of
    functions, as in a FunctionTransformer, it may name NumPy's and SciPy's ufuncs (``np.log1p``, ``scipy.special.logit``); any
    other is refused by its name.

    Parameters
    ----------
    model : estimator
        A model of this library, or a scikit-learn estimator (say, a pipeline) that holds one.
    path : path-like
        The file; an existing one is replaced.

    Raises
    ------
    InputError
        If the model holds something that could not be loaded again without running code, such as a function, or if the
        file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.preprocessing import StandardScaler
    >>> from isopleth.io import load, save
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "model.isopleth"
    >>> save(StandardScaler().fit([[0.0], [2.0]]), path)
    >>> load(path).mean_
    array([1.])
    >>> folder.cleanup()
    """
    if not isinstance(model, BaseEstimator):
        raise InputError(f"a {type(model).__name__} is not a model; save an estimator.")
    content = _archive(model)
    with atomic_write(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str], *, memory_limit: float = 2.0**30) -> Any:
    """Read a model that :func:`save` wrote. No code of the file is run, whoever wrote it.

    Parameters
    ----------
    path : path-like
        The file.
    memory_limit : float, default=2**30
        Bytes that the objects of the model may take, estimated from above, in addition to the size of the file.

    Returns
    -------
    estimator
        The saved model. If it was fitted to NumPy arrays, its predictions are equal to the last bit.

    Raises
    ------
    InputError
        If the file does not exist, is no plain file or no model of this library (a pickle, for example), is damaged,
        was written by a later version, names types that are neither of this library nor of NumPy and scikit-learn, or
        describes more objects than `memory_limit` allows.
    """
    check_memory_limit(memory_limit)
    source = check_source(path, "model file")
    content = source.read_bytes()
    try:
        check_archive(source, content, Budget(memory_limit))
        model = _constructed(source, content)
    except (InputError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # a damaged or hostile file can make the reader of the archive raise anything
        text = f"{source} is damaged or cut short; save the model again, or fetch the file again."
        raise InputError(text) from error
    if not isinstance(model, BaseEstimator):
        raise InputError(f"{path} holds a {type(model).__name__} and no model; save an estimator.")
    return model


def _archive(model: BaseEstimator) -> bytes:
    """Return a model as the bytes of an archive; refuse what could be loaded only by running code."""
    from skops.io import dumps, get_untrusted_types  # its import takes longer than everything else together

    try:
        content = dumps(with_numpy_arrays(model))
    except (TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"this {type(model).__name__} cannot be saved without running code: {error}") from error
    _, refused = trusted_types(get_untrusted_types(data=content))
    ours = [name for name in refused if name.startswith("isopleth.")]
    if ours:
        raise InputError(
            f"this {type(model).__name__} holds {listed_types(ours)}, of this library but not in isopleth/io/registry.py, which "
            "lists what a file may hold: add a line there."
        )
    if refused:
        raise InputError(
            f"this {type(model).__name__} holds {listed_types(refused)}, which cannot be loaded again without running "
            "code; replace it by a name, a number or a kernel of this library."
        )
    return finished(content)


def _constructed(path: Path, content: bytes) -> Any:
    """Build the objects of an archive, all of whose types are known."""
    from skops.io import get_untrusted_types, loads  # its import takes longer than everything else together

    accepted, refused = trusted_types(get_untrusted_types(data=content))
    if refused:
        raise InputError(
            f"{path} names {listed_types(refused)}, which is not a part of a model and is not loaded; "
            "use a file from a source you know, written by isopleth.save."
        )
    return loads(content, trusted=accepted)


# Name of the archive member that holds the description.
SCHEMA = "schema.json"

# Protocol of skops when the first model was written; readers of earlier protocols are less strict.
_OLDEST_PROTOCOL = 2

# Default size of the entropy pool of a seed, as text; mixing a pool takes time proportional to the square of its size.
_POOL = "4"

# Loaders of skops that restore data. Others make or call functions, or read data that can become large in memory.
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


class DamagedError(Exception):
    """Error about an archive that has changed since it was written."""


# Types that one description names at most: a model of words, gaps and times has about 40, and what looks each of them up takes
# time that is proportional to their number.
_MOST_TYPES = 500


def strange_loaders(tree: Any) -> list[str]:
    """Return the names of skops loaders in a description that no model needs."""
    if tree["protocol"] < _OLDEST_PROTOCOL:
        raise DamagedError("no model was ever written in this protocol")
    walk = _Walk()
    walk.through(tree)
    return sorted(walk.loaders - _LOADERS)


class _Walk:
    """Check of all parts of a description, which collects the loaders that it names."""

    def __init__(self) -> None:
        self.loaders: set[str] = set()
        self._types: set[str] = set()
        self._words: dict[Any, bytes] = {}
        self._owners: dict[Any, Any] = {}

    def through(self, part: Any) -> Any:
        """Check a part and return its checksum; a number or text, as most parts are, is its own."""
        if isinstance(part, list):
            return _digest([self.through(inner) for inner in part])
        if not isinstance(part, dict):
            return part
        words = _digest([(key, self.through(inner)) for key, inner in part.items()])
        if "__loader__" in part:
            self._look_at(part, words)
        return words

    def _look_at(self, part: dict[str, Any], words: bytes) -> None:
        """Check one object of the description before its parts."""
        self.loaders.add(part["__loader__"])
        self._check_type(part)
        address = part.get("__id__")
        # For a known address skops reuses the first object. References could otherwise describe an endless tree.
        if address is not None and self._words.setdefault(address, words) != words:
            raise DamagedError("one object is described in two ways")
        # An object without an address, or with address 0, is created each time.
        if "file" in part and (not address or self._owners.setdefault(part["file"], address) != address):
            raise DamagedError("one file is read as several objects")
        if part["__loader__"] == "RandomGeneratorNode":
            pool = part["content"]["seed_seq"]["content"]["pool_size"]["content"]
            if pool != _POOL:
                raise DamagedError("the pool of a random generator is not of the usual size")

    def _check_type(self, part: dict[str, Any]) -> None:
        """Refuse a class of this library that a loader would call, and more types than any model has."""
        name = f"{part['__module__']}.{part['__class__']}"
        self._types.add(name)
        if len(self._types) > _MOST_TYPES:
            raise DamagedError("no model has as many types")
        # Other loaders would call the class. This one creates an object and sets its attributes.
        if part["__loader__"] != "ObjectNode" and name in REGISTERED:
            raise DamagedError("an object is created by calling its class")


def _digest(words: object) -> bytes:
    return hashlib.sha256(repr(words).encode("utf-8", "backslashreplace")).digest()


_MARK = b"sha256:"
_DIGITS = 64


def sealed(archive: bytes) -> bytes:
    """Return a zip archive with the SHA-256 of all its bytes in its comment, which is at the end of the file."""
    buffer = BytesIO(archive)
    with ZipFile(buffer, "a") as zipped:
        zipped.comment = _MARK + b"0" * _DIGITS
    before = buffer.getvalue()[:-_DIGITS]
    return before + _checksum(before)


def is_whole(content: bytes) -> bool:
    """Return whether the checksum at the end fits. It finds accidents only: who changes a file can seal it again."""
    before = content[:-_DIGITS]
    return before.endswith(_MARK) and content[-_DIGITS:] == _checksum(before)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode("ascii")


# Loaders of plain values, which are equal if their descriptions are: which of them are one object can vary between runs.
_VALUES = frozenset({"JsonNode", "TypeNode"})


def reproducible(archive: bytes) -> bytes:
    """Return an archive of skops with numbers from 0 instead of memory addresses, and without times."""
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
    """Number the objects of a description, and their files, in the order in which they are met; skops takes addresses."""
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


# Increased when released versions can no longer read the files that are written, or when files of earlier versions can no
# longer be read: 1 was that of 0.1 and 0.2, 2 is that of 0.3. The checksum keeps its form.
FORMAT_VERSION = 2

_HEADER = "isopleth.json"
# Bytes of the header, which holds two short values.
_LONGEST_HEADER = 10_000


def finished(content: bytes) -> bytes:
    """Return the archive that skops has made, with the header of a model and the checksum."""
    import isopleth

    archive = BytesIO(reproducible(content))
    with ZipFile(archive, "a") as zipped:
        try:
            strange = strange_loaders(json.loads(zipped.read(SCHEMA)))
        except DamagedError as error:
            raise InputError(f"the model holds what would not be loaded again: {error}; leave it out.") from error
        zipped.writestr(ZipInfo(_HEADER), json.dumps({"format": FORMAT_VERSION, "isopleth": isopleth.__version__}))
    if strange:
        raise InputError(f"the model holds what only a {strange[0]} brings back, which could run code; leave it out.")
    return sealed(archive.getvalue())


def check_archive(path: Path, content: bytes, budget: Budget) -> None:
    """Refuse a file that is no model, is incomplete, or is of a later version."""
    _check_beginning(path, content)
    with ZipFile(BytesIO(content)) as archive:
        if _HEADER not in archive.namelist():
            raise InputError(
                f"{path} is an archive without a model of isopleth; use a file that isopleth fit, or save() in Python, wrote."
            )
        # A few compressed bytes can become more than the memory holds. Stored data is no larger than the file.
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise InputError(
                f"{path} is compressed inside, as no model is; use a file that isopleth fit, or save() in Python, wrote."
            )
        if not is_whole(content):
            raise DamagedError("the checksum is another one")
        _check_version(path, archive)
        _check_members(archive, len(content))
        description = archive.read(SCHEMA)
        _check_memory(path, description, budget)
        strange = strange_loaders(json.loads(description))
    if strange:
        raise InputError(
            f"{path} names {listed_types(strange)}, which is not a part of a model and is not loaded; "
            "use a file from a source you know, written by isopleth.save."
        )


# Bytes of memory for each value of a description, and for each object; measured on hostile files they are at most 270 and 1,700.
_VALUE_BYTES, _OBJECT_BYTES = 300, 3000


def _check_memory(path: Path, description: bytes, budget: Budget) -> None:
    """Refuse a description of more objects than fit, before it is parsed: three bytes of JSON can become 270 of memory."""
    values = sum(description.count(sign) for sign in (b"[", b",", b"\\"))  # an escape can hide another of them
    objects = description.count(b"{")
    needed = values * _VALUE_BYTES + objects * _OBJECT_BYTES
    if needed > budget.memory:
        raise InputError(
            f"{path} describes {objects:,} objects with {values:,} values, which may take {needed / 1e9:.2g} GB",
            parameter="memory_limit",
            value=budget.memory,
            hint="raise memory_limit if you know where the file is from",
        )


def _check_beginning(path: Path, content: bytes) -> None:
    """Refuse files that are empty, pickles, or no archives."""
    if not content:
        raise InputError(f"{path} is empty; save the model again.")
    if content.startswith(b"\x80"):
        raise InputError(
            f"{path} looks like a pickle, which is not loaded because it could run code; "
            "save the model with isopleth.save."
        )
    if not content.startswith(b"PK"):
        raise InputError(f"{path} is no model file; use a file that isopleth fit, or save() in Python, wrote.")


def _check_version(path: Path, archive: ZipFile) -> None:
    """Refuse an archive in a later or an earlier format than this version reads."""
    with archive.open(_HEADER) as member:
        header = json.loads(member.read(_LONGEST_HEADER))
    version, writer = int(header["format"]), str(header["isopleth"])
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} was written by isopleth {writer} in format {version}; this version reads up to {FORMAT_VERSION}, "
            "so upgrade isopleth."
        )
    if version < FORMAT_VERSION:
        raise InputError(
            f"{path} was written by isopleth {writer}, whose model files this version does not read; "
            "fit the model again and save it."
        )


def _check_members(archive: ZipFile, size: int) -> None:
    """Check that names are unique, that members fit in the file, and that all but the texts are arrays as long as they say."""
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise DamagedError("a member is there twice")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise DamagedError("the members are larger than the file")
    for member in archive.infolist():
        if member.filename not in (SCHEMA, _HEADER):  # NumPy goes by the first bytes, not by the name
            with archive.open(member) as file:
                header = read_array_header(file)
            if header.dtype.hasobject or header.end != member.file_size:
                raise DamagedError("an array is not as long as its header says")
