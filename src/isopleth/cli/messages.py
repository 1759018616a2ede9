"""What goes to standard error: one line a message, and a bar on a terminal while work goes on."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

from isopleth.errors import InputError

_ERASE = "\r\x1b[K"


def printable(text: str) -> str:
    """`text` with escapes for line breaks and for what would steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def say(message: object) -> None:
    """Write `message` to standard error as one line, in place of a bar that may stand there."""
    line = printable(" ".join(str(message).split()))
    with suppress(OSError):  # where a message cannot be shown, the exit code still can
        click.echo(f"{_ERASE if sys.stderr.isatty() else ''}isopleth: {line}", err=True)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings in the manner of :func:`say`, without the source lines that mean nothing to a user."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        yield


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {message}")


@contextmanager
def naming_columns(names: Sequence[str]) -> Iterator[None]:
    """Pass on the warnings and refusals of the block with names for the numbers by which arrays make columns be called."""

    def named(message: object) -> str:
        return re.sub(r"\bcolumn (\d+)\b", lambda found: repr(names[int(found[1])]), str(message))

    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        except InputError as error:
            raise InputError(named(error)) from error
    for warning in caught:
        warnings.warn(named(warning.message), warning.category, stacklevel=3)


@contextmanager
def resumable(partial: Path) -> Iterator[None]:
    """Say of a run that is interrupted where it can be gone on with."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; what was done is in {partial}: go on with --resume.") from None


class Stages:
    """A bar of named stages on standard error, where that is a terminal; nothing where it is not.

    Parameters
    ----------
    names : sequence of str
        The stages in their order; calling the object with one of them starts it, or says how far it is.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._visible = sys.stderr.isatty()
        self._shown = ""

    def __call__(self, name: str, share: float | None = None) -> None:
        if not self._visible:
            return
        done = self._names.index(name)
        bar = "#" * done + "-" * (len(self._names) - done)
        line = f"[{bar}] {name}" + ("" if share is None else f" {share:.0%}")
        if line != self._shown:
            click.echo(f"{_ERASE}{line}", err=True, nl=False)
            self._shown = line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._visible:
            click.echo(_ERASE, err=True, nl=False)
