"""What the description of a model may ask for: the text in an archive of skops, by which objects are made from files."""

from __future__ import annotations

import hashlib
import json
from typing import Any

# The member of an archive in which it stands.
SCHEMA = "schema.json"

# Of skops, when the first of these files was written; readers of earlier ones are less strict.
_OLDEST_PROTOCOL = 2

# Words in the pool of a seed, as text, if nobody asked for more; stirring it takes the square of them.
_POOL = "4"

# The parts of skops that bring back data. Others make functions, call them, or read what can swell in memory.
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
    """The archive is not as it was written."""


def strange_loaders(tree: Any) -> list[str]:
    """Parts of skops that a description asks for and no model needs.

    Parameters
    ----------
    tree : object
        The description, read from JSON.

    Raises
    ------
    DamagedError
        If the file is small for what would be made of it: one object in many words, or one array as many objects.
    """
    if tree["protocol"] < _OLDEST_PROTOCOL:
        raise DamagedError("no model was ever written in this protocol")
    walk = _Walk()
    walk.through(tree)
    return sorted(walk.loaders - _LOADERS)


class _Walk:
    """What was met on a way through all parts of a description."""

    def __init__(self) -> None:
        self.loaders: set[str] = set()
        self._words: dict[Any, bytes] = {}
        self._owners: dict[Any, Any] = {}

    def through(self, part: Any) -> bytes:
        """A checksum of a part, which is looked at on the way."""
        if isinstance(part, list):
            return _digest([self.through(inner) for inner in part])
        if not isinstance(part, dict):
            return _digest(json.dumps(part))
        words = _digest([(key, self.through(inner)) for key, inner in part.items()])
        if "__loader__" in part:
            self._look_at(part, words)
        return words

    def _look_at(self, part: dict[str, Any], words: bytes) -> None:
        self.loaders.add(part["__loader__"])
        address = part.get("__id__")
        # skops takes what it met first under this address: a short reference could stand for a tree without end.
        if address is not None and self._words.setdefault(address, words) != words:
            raise DamagedError("one object is described in two ways")
        # What has no address, or zero, is made anew each time.
        if "file" in part and (not address or self._owners.setdefault(part["file"], address) != address):
            raise DamagedError("one file is read as several objects")
        if part["__loader__"] == "RandomGeneratorNode":
            pool = part["content"]["seed_seq"]["content"]["pool_size"]["content"]
            if pool != _POOL:
                raise DamagedError("the pool of a random generator is not of the usual size")


def _digest(words: object) -> bytes:
    return hashlib.sha256(repr(words).encode("utf-8", "backslashreplace")).digest()
