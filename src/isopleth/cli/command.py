"""Class of the commands: checks of the files to read, the function of the command, and --out to standard output."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import click

from isopleth.cli.process import leaving_at_once, turn_on_garbage_collection
from isopleth.cli.program import QUIET, Stages, worded_for_the_shell
from isopleth.core.errors import InputError
from isopleth.io.input_files import check_source

# What the bar says until the stages of the command begin.
_STARTING = "starting"


class Command(click.Command):
    """Command that is run by the function of its name in the module of its name, imported when it runs.

    Parameters
    ----------
    stages : str
        Names of the stages of its work, for the progress bar.
    reads : mapping of str to str
        Parameters that name files to read, and the kind of each file. They are checked before anything is imported.
    writes : {"table", "frame", "answers", "model"}
        What the file of --out holds.
    """

    def __init__(
        self, *arguments: Any, stages: str = "", reads: Mapping[str, str] = {}, writes: str = "table", **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._stages, self._reads, self._writes = stages.split(), reads, writes
        self.params += [_quiet_option(), _schema_option()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for the page that says how it was made."""
        ctx.obj = list(args)  # click empties the list
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Check the files to read, import the module of the command and run its function."""
        with written_to_standard_output(ctx, self._writes):
            return self._run(ctx)

    def _run(self, ctx: click.Context) -> Any:
        for parameter, kind in self._reads.items():
            if ctx.params[parameter] is not None:
                check_source(ctx.params[parameter], kind)
        stage = Stages(self._stages)
        try:
            if self._stages:
                stage(_STARTING)  # imports take seconds on a busy machine
            with leaving_at_once():
                function = getattr(import_module(f"isopleth.cli.{self.name}"), str(self.name))
                runs = import_module("isopleth.cli.run")
            turn_on_garbage_collection()
            with worded_for_the_shell():
                run, own = runs.Run.of(ctx, self._reads, stage, self._writes)
                try:
                    return function(run, **own)
                except InputError as error:
                    raise run.located(error) from error
        finally:
            stage.end()


def _quiet_option() -> click.Option:
    """Return the option that leaves out what is not an error on standard error."""

    def keep(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[QUIET] = ctx.meta.get(QUIET, False) or value

    how: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": keep}
    return click.Option(["-q", "--quiet"], help="Write errors only to standard error.", **how)


def _schema_option() -> click.Option:
    """Return the option that prints the JSON Schema of what --json prints."""

    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            from isopleth.cli.json_schema import json_schema

            click.echo(json.dumps(json_schema(str(ctx.command.name)), indent=2, ensure_ascii=False))
            ctx.exit()

    how: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True, "callback": show}
    return click.Option(["--json-schema"], help="Print the JSON Schema of the object that --json prints.", **how)


@contextmanager
def written_to_standard_output(ctx: click.Context, writes: str) -> Iterator[None]:
    """Write the complete file of ``--out -``, CSV for tables, in the place of what is printed otherwise."""
    if ctx.params.get("out") != Path("-"):
        yield
        return
    if ctx.params.get("as_json") or ctx.params.get("resume"):
        option = "--json" if ctx.params.get("as_json") else "--resume"
        raise InputError(f"{option} and --out - exclude each other", hint="give --out the name of a file")
    with tempfile.TemporaryDirectory(prefix="isopleth-") as folder:
        ctx.params["out"] = Path(folder) / ("model" if writes == "model" else "rows.csv")
        with contextlib.redirect_stdout(StringIO()):
            yield
        with open(ctx.params["out"], "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
