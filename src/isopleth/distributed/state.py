"""Sums as named arrays and back: what of them has to be kept to go on another day."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

_PACKAGE = __name__.partition(".")[0]


def state_of(sums: Any) -> dict[str, np.ndarray]:
    """All arrays and numbers that an object of this library holds, by the path that leads to each.

    Parameters
    ----------
    sums : object
        Attributes, lists, tuples and dicts are gone through.

    Raises
    ------
    TypeError
        If it holds something of which it is not known whether it may change.

    Examples
    --------
    >>> import numpy as np
    >>> from isopleth.first_pass import ColumnMoments
    >>> moments = ColumnMoments(1).add(np.array([[1.0], [3.0]]))
    >>> state_of(moments)["deviation"]
    array([1.])
    >>> restored(ColumnMoments(1), state_of(moments)).weight
    2.0
    """
    found: dict[str, np.ndarray] = {}
    _collect(sums, "", found)
    return found


def _collect(value: Any, path: str, found: dict[str, np.ndarray]) -> None:
    if _is_number(value):
        found[path] = np.asarray(value)
    elif not _is_constant(value):
        for name, part in _parts(value, path):
            _collect(part, f"{path}.{name}" if path else name, found)


def restored(fresh: Any, state: dict[str, np.ndarray]) -> Any:
    """Sums with the arrays and numbers of `state` in the place of their own.

    Parameters
    ----------
    fresh : object
        Sums of the same kind, over no rows; they are changed or copied.
    state : dict of str to ndarray
        What :func:`state_of` has said.

    Raises
    ------
    KeyError
        If they are of another kind.
    """
    out = _replaced(fresh, "", state)
    if state_of(out).keys() != state.keys():
        raise KeyError("sums of another kind")
    return out


def _replaced(value: Any, path: str, state: dict[str, np.ndarray]) -> Any:
    """What does not change is left: it may be one object in several places, and a model is written by what is one."""
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
    if isinstance(value, dict):
        return {key: parts[str(key)] for key in value}
    if isinstance(value, (list, tuple)):
        return type(value)(*parts.values()) if hasattr(value, "_fields") else type(value)(parts.values())
    out = copy(value) if _is_frozen(value) else value
    vars(out).update(parts)
    return out


def _parts(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [(str(place), part) for place, part in enumerate(value)]
    if type(value).__module__.partition(".")[0] == _PACKAGE and hasattr(value, "__dict__"):
        return list(vars(value).items())
    raise TypeError(f"a {type(value).__name__} at {path or 'the top'} cannot be kept as arrays")


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.ndarray, np.generic))


def _same(some: np.ndarray, other: np.ndarray) -> bool:
    """To the last bit, the sign of zeros among them."""
    return (some.shape, some.dtype, some.tobytes()) == (other.shape, other.dtype, other.tobytes())


def _is_constant(value: Any) -> bool:
    return value is None or isinstance(value, (str, type, slice, range))


def _is_frozen(value: Any) -> bool:
    return getattr(getattr(type(value), "__dataclass_params__", None), "frozen", False)
