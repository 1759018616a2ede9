"""Which types a model file may name."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable, Sequence
from types import ModuleType

from sklearn.base import BaseEstimator

from isopleth.errors import MissingExtraError

_PACKAGE = __name__.partition(".")[0]
# More names than this are not listed in one sentence, and longer ones are cut.
_MANY, _LONG = 8, 100


def trusted_types(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Part the names of types into those that may be loaded and those that may not.

    What skops trusts by itself (numbers, arrays, scikit-learn's estimators) is not among `names`. Of the rest, only
    this library's own estimators and data classes are accepted, by the exact name under which they are defined: holding
    data is all they do when they are made. A name that only leads through a module of this library to something else is
    refused.
    """
    names = list(names)
    accepted = [name for name in names if _is_own(name)]
    return accepted, [name for name in names if name not in accepted]


def listed_types(names: Sequence[str]) -> str:
    """Names for a sentence: whoever wrote them may have chosen many, long ones, or ones with line breaks."""
    plain = [name.encode("unicode_escape").decode("ascii") for name in names[:_MANY]]
    shown = ", ".join(name if len(name) <= _LONG else name[: _LONG - 3] + "..." for name in plain)
    return shown if len(names) <= _MANY else f"{shown} and {len(names) - _MANY} more"


def _is_own(name: str) -> bool:
    module_name, _, class_name = name.rpartition(".")
    module = _own_module(module_name)
    found = vars(module).get(class_name) if module else None
    return (
        isinstance(found, type)
        and (found.__module__, found.__qualname__) == (module_name, class_name)
        and (issubclass(found, BaseEstimator) or dataclasses.is_dataclass(found))
    )


def _own_module(name: str) -> ModuleType | None:
    parts = name.split(".")
    if parts[0] != _PACKAGE or not all(part.isidentifier() for part in parts):
        return None
    try:
        return importlib.import_module(name)
    except MissingExtraError:
        raise
    except ImportError:
        return None
