"""Exceptions and warnings about input. The sentence is made from their fields, for Python or for a shell."""

from __future__ import annotations

import importlib
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral, Real
from types import ModuleType
from typing import Any, Self

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def caller_level() -> int:
    """Return the `stacklevel` of a warning that points at the first line outside the library, through whatever calls it came."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def printable(text: str) -> str:
    """Return `text` with line breaks, terminal escapes and other characters that are not printable as escape sequences."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


# Longer values and names are shown by their first and last characters.
_LONGEST = 120


def _shortened(shown: str) -> str:
    """Return a value or name as it is shown, of not more than so many characters."""
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 20]}...{shown[-15:]}"


# More names than this are not listed in one sentence.
MANY_NAMES = 12


def listed(parts: list[str], most: int = 8) -> str:
    """Return the first of `parts` as one string, with the number of those left out."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def quoted(names: Iterable[Any], most: int = MANY_NAMES) -> str:
    """Return names in quotes as one string, the first ones where there are many."""
    return listed([_shortened(repr(name)) for name in names], most)


def other_names(lost: Sequence[Any], new: Sequence[Any]) -> str:
    """Return what a table lacks, and has beside what another one has, in words; nothing without either."""
    return " and ".join([*[f"lacks {quoted(lost)}"] * bool(lost), *[f"also has {quoted(new)}"] * bool(new)])


def meant(unknown: Iterable[Any], names: Iterable[Any]) -> str:
    """Return words that offer the most similar of the known names for each unknown one; nothing without a similar one."""
    known = {str(name).casefold(): name for name in names}
    near = [match for name in unknown for match in get_close_matches(str(name).casefold(), known, n=1)]
    verb = "is" if len(set(near)) == 1 else "are"
    return f", perhaps {quoted(dict.fromkeys(known[match] for match in near))} {verb} meant" if near else ""


class Wording:
    """Names of parameters in a message: here those of Python; the command line has a subclass with its options and files."""

    def parameter(self, name: str) -> str:
        """Return a parameter as the reader of the message knows it."""
        return name

    def setting(self, name: str, value: Any = ...) -> str:
        """Return a parameter with its value as the reader of the message would type it."""
        if isinstance(value, list):
            value = f"[{', '.join('...' if one is ... else repr(one) for one in value)}]"
        elif value is not ...:
            value = repr(value)
        return f"`{name}`" if value is ... else f"`{name}={value}`"


_PYTHON = Wording()


class Hint:
    """Advice that names parameters: ``Hint("leave it out with {exclude}", exclude=["a"])``; ``...`` is one without a value."""

    def __init__(self, text: str, **settings: Any) -> None:
        self.text, self.settings = text, settings

    def render(self, wording: Wording = _PYTHON) -> str:
        """Return the advice with the parameters as `wording` types them."""
        return _filled(self.text, {name: wording.setting(name, _typed(value)) for name, value in self.settings.items()})

    def __str__(self) -> str:
        return self.render()


def _typed(value: Any) -> Any:
    """Return a value that somebody may type, with ``...`` for words too long for it."""
    if isinstance(value, list):
        return [_typed(one) for one in value]
    return ... if isinstance(value, str) and len(value) > _LONGEST else value


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with values in the place of ``{name}``; other braces, as in the name of a column, stay."""
    first, *others = text.split("{")
    for piece in others:
        name, end, rest = piece.partition("}")
        first += values[name] + rest if end and name in values else "{" + piece
    return first


@dataclass(frozen=True)
class Message:
    """Fields of a message about input (:class:`InputError`); `source` is the file and `place` its name for a row ("line 7")."""

    text: str
    parameter: str | None = None
    column: str | int | None = None
    row: int | None = None
    value: Any = None
    hint: str | Hint | None = None
    source: str | None = None
    place: str | None = None

    def render(self, wording: Wording = _PYTHON) -> str:
        """Return the sentence."""
        values = {
            "value": _shortened(repr(self.value)),
            "row": self.place or f"row {self.row}",
            "column": f"column {_shortened(repr(self.column))}",
        }
        if self.parameter is not None:
            values["parameter"] = wording.parameter(self.parameter)
        text = _filled(self.text, values)
        if self.hint is not None:
            advice = self.hint.render(wording) if isinstance(self.hint, Hint) else self.hint
            text = f"{text.removesuffix('.')}; {advice.removesuffix('.')}."
        return printable(text if self.source is None else f"{self.source}: {text}")

    def located(self, source: object, place: Callable[[int], str] | None = None) -> Message:
        """Return the message with the file of the table, and its name for the row."""
        row = self.place if place is None or self.row is None else place(self.row)
        return replace(self, source=None if source is None else str(source), place=row)

    def __str__(self) -> str:
        return self.render()


class _Told(Exception):  # noqa: N818 - also of warnings
    """Fields of an exception or a warning."""

    message: Message

    def __init__(
        self,
        message: object = "",
        *,
        parameter: str | None = None,
        column: str | int | None = None,
        row: int | None = None,
        value: Any = None,
        hint: str | Hint | None = None,
    ) -> None:
        if not isinstance(message, Message):
            message = Message(str(message), parameter, column, row, value, hint)
        self.message = message
        super().__init__(message.render())

    @property
    def parameter(self) -> str | None:
        """Parameter that is wrong, or that takes the table."""
        return self.message.parameter

    @property
    def column(self) -> str | int | None:
        """Column, by name, or by number if it has no name."""
        return self.message.column

    @property
    def row(self) -> int | None:
        """Row, counted from 0."""
        return self.message.row

    @property
    def value(self) -> Any:
        """Value that was given."""
        return self.message.value

    @property
    def hint(self) -> str | None:
        """Advice on what to do."""
        return None if self.message.hint is None else str(self.message.hint)

    def located(self, source: object, place: Callable[[int], str] | None = None) -> Self:
        """Return the same error or warning, about the table in the file `source`, whose rows `place` names."""
        return type(self)(self.message.located(source, place))


class DataWarning(_Told, UserWarning):
    """Warning about data that can be used, but have a property that the user should know; it has the fields of `InputError`."""


def warn_user(message: object, category: type[Warning] = DataWarning, **about: Any) -> None:
    """Warn at the first line outside the library; `about` are fields of the warning."""
    warnings.warn(category(message, **about), stacklevel=caller_level())


# Sentences of the warnings about an answer, while the task that gives it runs.
_ABOUT_ANSWER: ContextVar[list[str] | None] = ContextVar("about_answer", default=None)


def warn_about_answer(text: str, **about: Any) -> None:
    """Warn that an answer may not hold for these data; its result says so, too, since a warning may be hidden or lost."""
    warn_user(text, **about)
    kept = _ABOUT_ANSWER.get()
    if kept is not None:
        sentence = Message(text, **{name: value for name, value in about.items() if name != "hint"}).render()
        kept.append(f"{sentence[0].upper()}{sentence[1:].removesuffix('.')}.")


@contextmanager
def warnings_about_answer() -> Iterator[list[str]]:
    """Collect the sentences of warnings about an answer that are given inside, without the advice at their ends."""
    kept = list[str]()
    token = _ABOUT_ANSWER.set(kept)
    try:
        yield kept
    finally:
        _ABOUT_ANSWER.reset(token)


class InputError(_Told, ValueError):
    """Error about wrong input. The message is one sentence: what is wrong, where, and what to do.

    Messages quote files: names of columns, cells, versions, paths. Characters that could control a terminal are therefore
    escaped here, in one place, so that no message can forget it.

    Parameters
    ----------
    message : str
        The sentence. ``{parameter}``, ``{column}``, ``{row}`` and ``{value}`` in it stand for the fields, with their kind, as in
        "column 'a'" and "row 3"; the command line writes the option, the file and the line in their place.
    parameter : str, optional
        Parameter that is wrong, or that takes the table.
    column : str or int, optional
        Column, by name, or by number if it has no name.
    row : int, optional
        Row, counted from 0.
    value : object, optional
        Value that was given.
    hint : str or Hint, optional
        Advice on what to do; it ends the sentence, behind a semicolon. A :class:`Hint` names parameters.

    Examples
    --------
    >>> raise InputError("{column} holds {value} in {row}", column="a", row=3, value="x", hint="leave the column out")
    Traceback (most recent call last):
    isopleth.core.errors.InputError: column 'a' holds 'x' in row 3; leave the column out.
    """


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """Return a parameter that has to be a whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        text = f"{{parameter}} = {{value}}: expected a whole number, at least {least}."
        raise InputError(text, parameter=name, value=value)
    return int(value)


def positive_number(name: str, value: Any) -> float:
    """Return a parameter that has to be a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise InputError("{parameter} = {value}: expected a positive, finite number.", parameter=name, value=value)
    return float(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> Any:
    """Return a parameter that has to be one of some words."""
    if value not in choices:
        raise InputError("{parameter} = {value}: expected one of " + quoted(choices) + ".", parameter=name, value=value)
    return value


def probability(name: str, value: Any) -> float:
    """Return a parameter that has to be a number between 0 and 1, both left out."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise InputError("{parameter} = {value}: expected a number between 0 and 1.", parameter=name, value=value)
    return float(value)


class TooLargeError(InputError):
    """A model of the size asked for does not fit in the memory limit."""

    def __init__(self, message: str, needed: float, limit: float, most: int) -> None:
        super().__init__(message)
        self.needed, self.limit, self.most = needed, limit, most


def refuse_too_large(what: str, needed: float, limit: float, advice: str, most: int = 0) -> None:
    """Refuse what needs more bytes than the limit; `what` begins the sentence, and `most` is the largest size that fits."""
    if needed > limit:
        text = f"{what} need {needed / 2**20:,.0f} MiB, more than memory_limit; {advice}, or raise memory_limit."
        raise TooLargeError(text, needed, limit, most)


class MissingExtraError(ImportError):
    """Error about an optional dependency that is not installed. The message names the extra that installs it."""


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional `module`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        # By the name of the library: isopleth itself need not be on the index that pip asks.
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install {package} (extra {extra!r})."
        ) from error
