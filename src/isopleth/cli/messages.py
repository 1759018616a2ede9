"""Messages on standard error: one line each, and a progress bar on a terminal."""

from __future__ import annotations

import csv
import re
import shutil
import sys
import textwrap
import warnings
from ast import literal_eval
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from isopleth.errors import InputError, printable
from isopleth.tables.files import is_for_want_of_room

if TYPE_CHECKING:
    from isopleth.io.resume import Journal

_ERASE = "\r\x1b[K"


def say(message: object) -> None:
    """Write `message` to standard error as one line, in place of the progress bar; broken between words on a terminal."""
    line = printable(" ".join(str(message).split()))
    with suppress(OSError):  # where a message cannot be shown, the exit code still can
        if sys.stderr.isatty():
            columns = shutil.get_terminal_size().columns
            lines = textwrap.fill(f"isopleth: {line}", columns, break_long_words=False, break_on_hyphens=False)
            click.echo(f"{_ERASE}{lines}", err=True)
        else:
            click.echo(f"isopleth: {line}", err=True)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings by :func:`say`, without source lines."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        yield


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    context = click.get_current_context(silent=True)
    text = _with_options(str(message), context.command) if context else str(message)
    say(f"warning: {text}")


@contextmanager
def naming_columns(names: Sequence[str]) -> Iterator[None]:
    """Replace the numbers of columns in warnings and errors of the block by their names."""

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
    """Add to the message of an interrupt what is stored and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if not partial.exists():
            raise
        raise KeyboardInterrupt(f"interrupted; what was done is in {partial}: continue with --resume.") from None


@contextmanager
def removed_if_refused(journal: Journal) -> Iterator[None]:
    """Remove the partial file of a refused run, which would be refused again, unless the disk was full."""
    try:
        yield
    except InputError as error:
        if not is_for_want_of_room(error):
            journal.remove()
        raise


@contextmanager
def options_named(command: click.Command) -> Iterator[None]:
    """Name options of `command` where an error of the block names a parameter of the library, as in ```columns```.

    Raises
    ------
    InputError
        With ``--columns`` in the place of ```columns```, if the command has such an option.
    """
    try:
        yield
    except InputError as error:
        raise InputError(_with_options(str(error), command)) from error


def _with_options(message: str, command: click.Command) -> str:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            message = message.replace(f"`{parameter.name}`", parameter.opts[0])
            message = re.sub(rf"`{parameter.name}=(\[.*?\])`", partial(_option_with_names, parameter.opts[0]), message)
    return message


def _option_with_names(option: str, found: re.Match[str]) -> str:
    """Return ``--columns a,b`` for ```columns=['a', 'b']```."""
    try:
        names = literal_eval(found[1])
    except (ValueError, SyntaxError):  # a name that looks like the end of the list
        return f"{option} {found[1]}"
    text = StringIO()
    csv.writer(text, lineterminator="").writerow("..." if name is ... else name for name in names)
    return f"{option} {text.getvalue()}"


class Stages:
    """Progress bar of named stages on standard error; nothing is shown where that is no terminal.

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
