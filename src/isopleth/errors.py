"""Exceptions and warnings about input, with messages that are safe to show on a terminal."""

from __future__ import annotations

import importlib
from types import ModuleType


def printable(text: str) -> str:
    """Return `text` with line breaks, terminal escapes and other characters that are not printable as escape sequences.

    Parameters
    ----------
    text : str
        Any text, such as a column name or a cell of a file from an unknown source.

    Returns
    -------
    str
        The same text where every character is printable.

    Examples
    --------
    >>> print(printable("a \\x1b[31mred\\x1b[0m word, größer"))
    a \\x1b[31mred\\x1b[0m word, größer
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def listed(parts: list[str], most: int = 8) -> str:
    """Return the first of `parts` as one string, with the number of those left out."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


class DataWarning(UserWarning):
    """Warning about data that can be used, but have a property that the user should know.

    Control characters in the message are escaped, as in :class:`InputError`.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))


class InputError(ValueError):
    """Error about wrong input. The message is one sentence: what is wrong, where, and what to do.

    Messages quote files: names of columns, cells, versions, paths. Characters that could control a terminal are therefore
    escaped here, in one place, so that no message can forget it.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))


class TooLargeError(InputError):
    """A model of the size asked for does not fit in the memory limit.

    Parameters
    ----------
    message : str
        The sentence for those who call from Python.
    needed, limit : float
        Bytes that the model takes, and bytes that it may take.
    most : int
        The largest size that fits; 0 if none does.
    """

    def __init__(self, message: str, needed: float, limit: float, most: int) -> None:
        super().__init__(message)
        self.needed, self.limit, self.most = needed, limit, most


class MissingExtraError(ImportError):
    """Error about an optional dependency that is not installed. The message names the extra that installs it."""


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
