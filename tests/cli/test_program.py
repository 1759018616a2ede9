"""The console as a whole: what it imports, and that messages name options of the command."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import click
import numpy as np
import pytest
from click.testing import CliRunner

import isopleth
from isopleth.cli import program as messages
from isopleth.cli.commands import COMMANDS, program
from isopleth.core.errors import Hint, Message


def loaded_by(*arguments: str) -> tuple[int, set[str]]:
    """Exit code of a run, and the packages that it imports."""
    code = (
        "import sys\n"
        "from isopleth_command import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    return run.returncode, set(run.stdout.rpartition("LOADED")[2].split())


HEAVY = {"numpy", "scipy", "sklearn", "skops", "pandas", "torch", "matplotlib", "pyarrow", "joblib"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["anomalies", "--help"], ["none"]])
def test_help_imports_nothing_that_takes_time(arguments):
    code, loaded = loaded_by(*arguments)
    assert code == (2 if arguments == ["none"] else 0)
    assert "click" in loaded
    assert not loaded & HEAVY


MISSING = {
    "anomalies": ["none.csv"],
    "changes": ["none.csv"],
    "compare": ["none.csv", "none.csv"],
    "describe": ["none.csv"],
    "expect": ["none.csv", "--given", "a=1"],
    "fill": ["none.csv", "--out", "o.csv"],
    "fit": ["none.csv", "--out", "m"],
    "monitor": ["--reference", "none.csv"],
    "prior": ["none.csv", "none.csv", "--target", "x"],
    "sample": ["none.csv", "-n", "5", "--out", "o.csv"],
    "score": ["none", "none.csv", "--out", "o.csv"],
}


@pytest.mark.parametrize("name", [command.name for command in COMMANDS if command.name in MISSING])
def test_a_missing_file_is_said_before_anything_is_imported(name):
    code, loaded = loaded_by(name, *MISSING[name])
    assert code == 2
    assert not loaded & HEAVY
    result = CliRunner().invoke(program, [name, *MISSING[name]])
    assert "does not exist; check the name and the folder." in result.stderr


def test_the_package_imports_nothing_until_it_is_asked():
    code = f"import sys, isopleth, isopleth.io; print(set({sorted(HEAVY)!r}) & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_public_names_are_those_that_can_be_imported():
    for module in (isopleth, isopleth.io):
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            assert getattr(module, name).__name__.rpartition(".")[2] == name
    assert not [name for name in dir(isopleth) if name.startswith("_") or name in ("Any", "lazy_loader")]
    assert isopleth.density.SOSREP is isopleth.SOSREP
    with pytest.raises(AttributeError, match="nothing"):
        isopleth.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="nothing"):
        isopleth.io.nothing  # noqa: B018
    names: dict[str, object] = {}
    exec("from isopleth import *", names)
    assert set(isopleth.__all__) <= set(names)


def refused(*arguments) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(program, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 2
    return result.stderr


def test_messages_name_the_options_of_the_command(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text('a,"b,c",word\n1,y,x\n2,x,y\n')
    assert refused("changes", file).endswith("choose the numbers with --column a.\n")
    assert "(--column);" in refused("changes", file, "--column", "z")
    names = [f"c{j}" for j in range(20)]
    file.write_text(
        "\n".join([",".join([*names, "number"]), ",".join(["x"] * 20 + ["1"]), ",".join(["y"] * 20 + ["2"])])
    )
    assert refused("changes", file).endswith("choose the numbers with --column number.\n")


def test_a_number_that_would_be_rounded_is_named_with_its_line(tmp_path):
    file = tmp_path / "t.csv"
    rows = np.random.default_rng(0).normal(size=(40, 2)).tolist()
    file.write_text("\n".join(["a,b", "9007199254740993,1", *(f"{a!r},{b!r}" for a, b in rows)]))
    result = CliRunner().invoke(program, ["changes", str(file)])
    assert result.exit_code == 2
    assert "column 'a' holds 9007199254740993 in line 2, a whole number beyond 2**53" in result.stderr
    assert "leave the column out with --exclude a." in result.stderr


def test_a_parameter_is_worded_as_the_option_of_the_command_that_runs():
    (command,) = (command for command in COMMANDS if command.name == "anomalies")
    advice = Hint("choose with {columns} or {trend}", columns=["a]`", "b,c", ...], trend="linear")
    message = Message("{parameter} names no column", parameter="columns", hint=advice)
    with click.Context(command):
        told = message.render(messages.ShellWording())
    assert told == "--columns names no column; choose with --columns 'a]`,\"b,c\",...' or `trend='linear'`."
    assert messages.ShellWording().parameter("columns") == "columns"  # outside a command, the words of Python stay


def test_a_signal_while_a_command_imports_what_it_needs_ends_the_process_at_once(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n4,5\n")
    code = """
import signal, sys
from isopleth_command import main
class Interrupt:
    def find_spec(self, name, *_):
        if name == "sklearn":
            try:
                signal.raise_signal(signal.SIGINT)
            except BaseException:  # as the import of a compiled module does
                raise ImportError("cut short") from None
sys.meta_path.insert(0, Interrupt())
main()
"""
    command = [sys.executable, "-c", code, "anomalies", str(tmp_path / "t.csv")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (130, "")
    assert run.stderr == "isopleth: interrupted; nothing is left half written.\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["isopleth", "an"], {"anomalies"}),
        (["isopleth", "compare", "--rep"], {"--report"}),
        (["isopleth", "d"], {"demo", "describe", "doctor"}),
    ],
)
def test_the_shell_completes_commands_and_options(words, expected):
    run = subprocess.run(
        [sys.executable, "-c", "from isopleth.cli.commands import program; program(prog_name='isopleth')"],
        env={
            **os.environ,
            "_ISOPLETH_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
    )
    assert {line.partition(",")[2] for line in run.stdout.splitlines()} == expected


@pytest.mark.parametrize(("share", "spent", "left"), [(1e-5, 4.0, None), (0.25, 0.5, None), (0.25, 4.0, 12.0)])
def test_the_time_that_is_left_is_estimated_when_there_is_something_to_go_by(share, spent, left):
    assert messages.seconds_left(share, spent) == left


def test_the_bar_counts_on_where_nothing_is_heard(monkeypatch):
    stage = messages.Stages(["reading", "fitting"])
    stage._stage, stage._since = "fitting", 10.0
    stage._heard_at, stage._label, stage._share, stage._spent = 20.0, ": laws", 0.5, 8.0
    assert stage._words(20.0) == ": laws 50%, 8 s left"
    assert stage._words(23.0) == ": laws 50%, 5 s left"
    assert stage._words(29.0) == ", 19 s so far"
    stage._share = 1.0
    assert stage._words(22.0) == ", 12 s so far"
    stage._share = 0.0
    assert stage._words(22.0) == ": laws, 12 s so far"
    stage.end()
