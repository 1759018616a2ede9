"""The process around the command: what it takes from its surroundings, and how it ends after a signal."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITH_ANOTHER_PROGRAM = """
import atexit, os, signal, sys, time
import isopleth.cli.commands as commands, isopleth.cli.process as process
atexit.register(lambda: print("the interpreter ended"))
def program(**_):
    {body}
commands.program = program
process.main()
"""


def outcome(body: str, **variables: str) -> tuple[int, str, str]:
    code = WITH_ANOTHER_PROGRAM.format(body=body)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=variables or None
    )
    return run.returncode, run.stdout, run.stderr


def test_the_backend_of_a_notebook_is_not_for_the_command(monkeypatch):
    """Its name made every picture fail: matplotlib knows it only inside the notebook."""
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    assert outcome("print(os.environ.get('MPLBACKEND')); sys.exit(3)") == (3, "None\nthe interpreter ended\n", "")


@pytest.mark.parametrize(("name", "code", "words"), [("SIGTERM", 143, "terminated"), ("SIGINT", 130, "interrupted")])
def test_the_process_ends_without_the_interpreter_after_a_signal(name, code, words):
    """Abandoned threads of compiled libraries print a message of C++ when the interpreter ends below them."""
    found = outcome(f"print('written'); os.kill(os.getpid(), signal.{name}); time.sleep(20)")
    assert found[:2] == (code, "written\n")
    assert words in found[2]
    assert found[2].count("\n") == bool(words)
