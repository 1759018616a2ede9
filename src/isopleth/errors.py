"""What the library raises when it is given what it cannot use."""

from __future__ import annotations

import importlib
from types import ModuleType


class DataWarning(UserWarning):
    """The data can be used, but something about them should be known."""


class InputError(ValueError):
    """The input is wrong. The message is one sentence: what, where, and what to do."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed. The message names the extra that brings it."""


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional `module`.

    Raises
    ------
    MissingExtraError
        If it is not installed; the message says how to install `extra`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'isopleth[{extra}]'."
        ) from error
