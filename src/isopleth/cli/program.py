"""The group of commands, and the exit code and message of each kind of failure."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from isopleth.cli.commands import COMMANDS
from isopleth.cli.messages import one_line_warnings, say
from isopleth.cli.process import INTERRUPTED, INTERRUPTED_CODE, signals_first
from isopleth.errors import InputError, MissingExtraError

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
    try:
        with signals_first():
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
    """Find unlikely rows in a table, test whether tables differ, and detect when a series or stream changes.

    Tables are .csv, .tsv, .jsonl, .xlsx, .parquet, .npy or .npz files; text may be compressed (.gz, .bz2, .zst). The name - is
    standard input.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in COMMANDS:
    program.add_command(_command)
