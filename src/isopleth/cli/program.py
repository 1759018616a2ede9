"""The group of commands, and how each way of failing ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

import isopleth
from isopleth.cli.anomalies import anomalies
from isopleth.cli.changes import changes
from isopleth.cli.compare import compare
from isopleth.cli.demo import demo
from isopleth.cli.fit import fit
from isopleth.cli.messages import one_line_warnings, say
from isopleth.cli.monitor import monitor
from isopleth.cli.prior import prior
from isopleth.cli.process import INTERRUPTED, INTERRUPTED_CODE, signals_first
from isopleth.cli.score import score
from isopleth.errors import InputError, MissingExtraError

_WRONG_INPUT = 2


class _Interrupted(click.ClickException):
    exit_code = INTERRUPTED_CODE


class Program(click.Group):
    """A group of commands of which none ends in a traceback or in more than one line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit with its code."""
        with one_line_warnings():
            sys.exit(self._run(*args, **{**extra, "standalone_mode": False}))

    def _run(self, *args: Any, **extra: Any) -> int:
        try:
            super().main(*args, **extra)
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "isopleth"
            say(f"{error.format_message().rstrip('.')}; see {command} --help.")
            return _WRONG_INPUT
        except click.ClickException as error:
            say(error.format_message())
            return INTERRUPTED_CODE if isinstance(error, _Interrupted) else _WRONG_INPUT
        except click.Abort:  # what click makes of an interrupt between the steps below
            say(INTERRUPTED)
            return INTERRUPTED_CODE
        return 0

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments; the help is printed here already."""
        with _failures_as_sentences():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with _failures_as_sentences():
            return super().invoke(ctx)


@contextmanager
def _failures_as_sentences() -> Iterator[None]:
    try:
        with signals_first():
            yield
    except KeyboardInterrupt as error:  # some say what is left to go on with
        raise _Interrupted(str(error) or INTERRUPTED) from None
    except BrokenPipeError:
        raise  # click ends quietly: whoever read the output has seen enough
    except OSError as error:
        raise click.ClickException(_sentence(error)) from error
    except (InputError, MissingExtraError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    except MemoryError as error:
        raise click.ClickException(f"{str(error) or 'out of memory'}; use fewer rows or columns.") from error


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}; check the path." if error.filename else f"{reason}; nothing was completed."


@click.group(cls=Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(isopleth.__version__, prog_name="isopleth", message="%(prog)s %(version)s")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Questions to tables without a model: which rows are unlikely, what differs, since when, and how sure is that?"""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


program.add_command(anomalies)
program.add_command(changes)
program.add_command(compare)
program.add_command(demo)
program.add_command(fit)
program.add_command(monitor)
program.add_command(prior)
program.add_command(score)
