"""Group of commands, exit codes, and messages on standard error: one line each, and a progress bar on a terminal."""

from __future__ import annotations

import csv
import errno
import shlex
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isopleth.cli.process import INTERRUPTED, INTERRUPTED_CODE, reraise_signals
from isopleth.core.errors import DataWarning, InputError, Message, MissingExtraError, Wording, printable
from isopleth.core.progress_listeners import IN_LOG, listen
from isopleth.io.output_files import is_for_want_of_room

if TYPE_CHECKING:
    from isopleth.io.resume import Journal


_ERASE = "\r\x1b[K"
# Where the context of a run keeps whether it is to be quiet.
QUIET = "isopleth.quiet"


def _is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(QUIET, False)


def say(message: object, *, error: bool = False) -> None:
    """Write `message` to standard error in place of the progress bar, broken between words; with --quiet only an error."""
    if _is_quiet() and not error:
        return
    text = message.render(ShellWording()) if isinstance(message, Message) else str(message)
    line = printable(" ".join(text.split()))
    with suppress(OSError):  # where a message cannot be shown, the exit code still can
        if sys.stderr.isatty():
            from isopleth.results.text import wrapped

            lines = wrapped(f"isopleth: {line}", shutil.get_terminal_size().columns)
            click.echo(f"{_ERASE}{lines}", err=True)
        else:
            click.echo(f"isopleth: {line}", err=True)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings by :func:`say`, without source lines; of equal ones, as of several methods with the same rows, the first."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = str(message.message.render(ShellWording()) if isinstance(message, DataWarning) else message)
        if text not in shown:
            say(f"warning: {text}")
        shown.add(text)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


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
def of_this_version(path: Path) -> Iterator[None]:
    """Report a model file whose objects lack an attribute that this version asks them for; all other errors are defects."""
    try:
        yield
    except AttributeError as error:
        from isopleth.io.registry import is_registered

        if not is_registered(type(error.obj)):
            raise
        raise other_version(path) from error


def other_version(path: Path) -> InputError:
    """Return the refusal of a model file that another version wrote."""
    return InputError(f"{path} does not fit this version of isopleth: fit and save it again.")


class ShellWording(Wording):
    """Parameters as the options of the command that runs: ``--columns a,b`` for ```columns=['a', 'b']```."""

    def __init__(self) -> None:
        context = click.get_current_context(silent=True)
        parameters = context.command.params if context else []
        self._options = {str(p.name): p.opts[0] for p in parameters if isinstance(p, click.Option)}

    def parameter(self, name: str) -> str:
        """Return the option of that name; rows that Python calls X come from the table that was read."""
        return self._options.get(name, "the table" if name == "X" else name)

    def setting(self, name: str, value: Any = ...) -> str:
        """Return the option with its value, quoted for a shell; a list is one line of CSV, as the option reads it."""
        if name not in self._options:
            return super().setting(name, value)
        if value is ...:
            return self._options[name]
        text = StringIO()
        value = [f"{key}={new}" for key, new in value.items()] if isinstance(value, dict) else value
        parts = value if isinstance(value, list) else [value]
        csv.writer(text, lineterminator="").writerow("..." if part is ... else part for part in parts)
        return f"{self._options[name]} {shlex.quote(text.getvalue())}"


@contextmanager
def worded_for_the_shell() -> Iterator[None]:
    """Word the errors of the block for the shell: parameters are options there."""
    try:
        yield
    except InputError as error:
        raise click.ClickException(error.message.render(ShellWording())) from error


class Stages:
    """Progress of named stages on standard error: a bar on a terminal, elsewhere a line every ten seconds.

    It hears of computations too, whose names, shares and estimates of what is left stand behind the stage that they are part of.
    Where nothing is heard for a while the bar counts on: the estimate down, or the seconds of the stage up.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._terminal, self._visible = sys.stderr.isatty(), not _is_quiet()
        self._shown, self._stage, self._since = "", "", 0.0
        self._label, self._share, self._spent, self._heard_at = "", 0.0, 0.0, 0.0
        self._next = time.monotonic() + IN_LOG  # of a line in a log: shorter commands leave none
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._counter: threading.Thread | None = None
        if self._visible:
            listen(self.heard)

    def __call__(self, name: str, share: float | None = None) -> None:
        """Show a stage, and what share of it is done."""
        if not self._visible:
            return
        now = time.monotonic()
        if name != self._stage:
            self._stage, self._since = name, now
        if self._counter is None and self._terminal:
            self._counter = threading.Thread(target=self._count, daemon=True)
            self._counter.start()
        self._hear(now, "", share or 0.0, now - self._since)

    def heard(self, label: str, share: float, spent: float) -> None:
        """Show a computation in the stage: what it does, which share is done, after so many seconds."""
        self._hear(time.monotonic(), f": {label}", share, spent)

    def _hear(self, now: float, label: str, share: float, spent: float) -> None:
        self._label, self._share, self._spent, self._heard_at = label, share, spent, now
        self._show(now)

    def _count(self) -> None:
        """Show each second how the time passes, from a thread of its own: the main one may be in compiled code."""
        while not self._ended.wait(_SILENCE):
            if (now := time.monotonic()) - self._heard_at >= _SILENCE:
                self._show(now)

    def _words(self, now: float) -> str:
        """Return the computation that runs with its share and what is left of it; without these, the seconds of the stage."""
        silent = now - self._heard_at
        left = seconds_left(self._share, self._spent)
        if silent >= _SILENCE and (left is None or silent >= left):
            ended = self._share >= 1.0 or left is not None
            return f"{'' if ended else self._label}, {now - self._since:.0f} s so far"
        shown = f" {self._share:.0%}" if self._share else ""
        return f"{self._label}{shown}" + ("" if left is None else f", {max(left - silent, 0.0):.0f} s left")

    def _show(self, now: float) -> None:
        """Show the stages that are done, and the one that runs with some words."""
        with self._lock:
            if self._ended.is_set():
                return
            done = self._names.index(self._stage) if self._stage in self._names else 0
            line = f"[{'#' * done + '-' * (len(self._names) - done)}] {self._stage}{self._words(now)}"
            if not self._terminal:
                self._log(now, line)
            elif line != self._shown:
                most = shutil.get_terminal_size().columns - 1
                click.echo(f"{_ERASE}{line[:most]}", err=True, nl=False)
                self._shown = line

    def _log(self, now: float, line: str) -> None:
        """Write a line if the last one is long ago."""
        if now >= self._next:
            self._next = now + IN_LOG
            click.echo(line, err=True)

    def end(self) -> None:
        """Erase the bar."""
        if self._visible:
            listen(None)
        with self._lock:
            self._ended.set()
            if self._shown:
                click.echo(_ERASE, err=True, nl=False)
                self._shown = ""


# Seconds without news after which the bar counts on by itself.
_SILENCE = 1.0
# Share of a computation from which on the time that is left is estimated: the first steps include preparations.
_LEAST_SHARE = 0.01


def seconds_left(share: float, spent: float) -> float | None:
    """Return an estimate of the seconds that are left, from a second and a hundredth on; None before."""
    return spent * (1.0 - share) / share if share >= _LEAST_SHARE and spent >= 1.0 else None


_WRONG_INPUT = 2


class _Interrupted(click.ClickException):
    exit_code = INTERRUPTED_CODE


class Program(click.Group):
    """Group of commands whose failures are one line, never a traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit with its code."""
        with one_line_warnings():
            sys.exit(self._run(*args, **{**extra, "standalone_mode": False}))

    def _run(self, *args: Any, **extra: Any) -> int:
        try:
            code = super().main(*args, **extra)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "isopleth"
            message = error.format_message()
            end = " See" if message.endswith("?") else "; see"
            say(f"{message.rstrip('.')}{end} {command} --help.", error=True)
            return _WRONG_INPUT
        except click.ClickException as error:
            say(error.format_message(), error=True)
            return INTERRUPTED_CODE if isinstance(error, _Interrupted) else _WRONG_INPUT
        except click.Abort:  # click raises it for an interrupt between the steps below
            say(INTERRUPTED, error=True)
            return INTERRUPTED_CODE
        return code if isinstance(code, int) else 0

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> click.Context:
        """Parse the arguments; the help is printed here already."""
        with _failures_as_sentences():
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with _failures_as_sentences():
            return super().invoke(ctx)


@contextmanager
def _failures_as_sentences() -> Iterator[None]:
    """Context in which interrupts and failures of the system end the command with a sentence."""
    try:
        with reraise_signals():
            yield
    except KeyboardInterrupt as error:  # some say what can be resumed
        raise _Interrupted(str(error) or INTERRUPTED) from None
    except BrokenPipeError:
        raise  # click ends without a message, because nobody reads the output any more
    except OSError as error:
        raise click.ClickException(_sentence(error)) from error
    except (InputError, MissingExtraError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    except MemoryError as error:
        raise click.ClickException(f"{str(error) or 'out of memory'}; use fewer rows or columns.") from error


# Errors of writing. Those of the files that a command writes name the file.
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO}


def _sentence(error: OSError) -> str:
    """Return a failure of the system as a sentence."""
    reason = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {reason}; check the path."
    if error.errno in _UNWRITABLE:
        return f"standard output cannot be written: {reason}; send it elsewhere."
    return f"{reason}; nothing was completed."


@click.group(cls=Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="isopleth", prog_name="isopleth", message="%(prog)s %(version)s")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Find wrong cells and unusual rows, fill gaps, compare tables, estimate class shares, and detect changes.

    Tables are .csv, .txt, .tsv, .jsonl, .xlsx, .parquet, .feather, .arrow, .npy or .npz files, also compressed (.gz, .bz2, .xz,
    .zst). The name - is standard input. A quoted pattern, as in 'folder/*.parquet', is all files that match it as one table,
    except for changes, fit, prior and score.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
