"""Sums of the passes of a fit in a partial file, from which an interrupted fit continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from isopleth.core.parts import S
from isopleth.io.resume import Journal

_PACKAGE = __name__.partition(".")[0]


def state_of(sums: Any) -> dict[str, np.ndarray]:
    """Return all arrays and numbers that an object of this library holds, by the path that leads to each."""
    found: dict[str, np.ndarray] = {}
    _collect(sums, "", found)
    return found


def _collect(value: Any, path: str, found: dict[str, np.ndarray]) -> None:
    """Add the arrays and numbers of a value to those that were found."""
    if _is_number(value):
        found[path] = np.asarray(value)
    elif not _is_constant(value):
        for name, part in _parts(value, path):
            _collect(part, f"{path}.{name}" if path else name, found)


def restored(fresh: Any, state: dict[str, np.ndarray]) -> Any:
    """Return sums with the arrays and numbers of `state` instead of their own."""
    out = _replaced(fresh, "", state)
    if state_of(out).keys() != state.keys():
        raise KeyError("sums of another kind")
    return out


def _replaced(value: Any, path: str, state: dict[str, np.ndarray]) -> Any:
    """Return `value` with its numbers replaced. Unchanged parts stay the same objects, since saved models depend on identity."""
    if _is_number(value):
        kept = state[path]
        if _same(kept, np.asarray(value)):
            return value
        return kept if isinstance(value, np.ndarray) else type(value)(kept.item())
    if _is_constant(value):
        return value
    old = dict(_parts(value, path))
    parts = {name: _replaced(part, f"{path}.{name}" if path else name, state) for name, part in old.items()}
    if all(parts[name] is part for name, part in old.items()):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(*parts.values()) if hasattr(value, "_fields") else type(value)(parts.values())
    out = copy(value) if _is_frozen(value) else value
    vars(out).update(parts)
    return out


def _parts(value: Any, path: str) -> list[tuple[str, Any]]:
    """Return the named parts of a sequence or of an object of this library; refuse others, which may change unseen."""
    if isinstance(value, (list, tuple)):
        return [(str(place), part) for place, part in enumerate(value)]
    if type(value).__module__.partition(".")[0] == _PACKAGE and hasattr(value, "__dict__"):
        return list(vars(value).items())
    raise TypeError(f"a {type(value).__name__} at {path or 'the top'} cannot be kept as arrays")


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.ndarray, np.generic))


def _same(some: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are equal to the last bit, including the sign of zeros."""
    return (some.shape, some.dtype, some.tobytes()) == (other.shape, other.dtype, other.tobytes())


def _is_constant(value: Any) -> bool:
    return value is None or isinstance(value, (str, type, slice, range))


def _is_frozen(value: Any) -> bool:
    return getattr(getattr(type(value), "__dataclass_params__", None), "frozen", False)


# Key of the number of rows of a pass; no attribute has this name.
_ROWS = "number of rows"


# Seconds between two savings of an unfinished pass.
SECONDS = 60.0


class Checkpoint:
    """Sums of passes over rows in a :class:`~isopleth.io.resume.Journal`; a repeated fit asks for the same ones in order."""

    def __init__(self, journal: Journal, seconds: float = SECONDS) -> None:
        self._journal, self._seconds, self._passes = journal, seconds, 0

    def next_pass(self) -> KeptPass:
        """Return the pass that comes next."""
        self._passes += 1
        return KeptPass(self._journal, f"pass {self._passes}", self._seconds)


class KeptPass:
    """One pass: its sums so far, and the number of rows they cover."""

    def __init__(self, journal: Journal, key: str, seconds: float) -> None:
        self._journal, self._key, self._seconds = journal, key, seconds
        self._due = time.monotonic() + seconds

    def begun(self, start: Callable[[], S]) -> tuple[S, int]:
        """Return the sums that were kept and the number of rows they cover, or new sums of no rows."""
        state = self._journal.read(self._key)
        if state is None:
            return start(), 0
        rows = int(state.pop(_ROWS))
        return restored(start(), state), rows

    def keep(self, sums: Any, rows: int, *, whole: bool) -> None:
        """Keep sums of the first `rows` rows, if it is time to, or if the pass is complete (`whole`)."""
        if whole or time.monotonic() >= self._due:
            self._journal.append(self._key, {_ROWS: np.asarray(rows), **state_of(sums)})
            self._due = time.monotonic() + self._seconds
