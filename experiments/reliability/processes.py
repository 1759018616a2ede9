"""Malformed files and arguments as processes of their own, with little memory and a limit of time."""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path

from experiments.reliability import samples
from experiments.reliability.commands import command, side_by_side
from experiments.reliability.malformed import malformed_arguments
from experiments.reliability.outcomes import Tally, wrong_end

ADDRESS_SPACE = 4 * 2**30
# For a loaded machine; most runs take two.
SECONDS = 120


def campaign(count: int, seed: int = 0) -> Tally:
    """Start `count` processes, each with something wrong as a rule, and hold exit code and messages against the rules."""
    tables, models = samples.tables(), samples.model_files()

    def case(number: int) -> Tally:
        tally, rng = Tally(), random.Random(f"{seed} {number}")
        with tempfile.TemporaryDirectory() as folder:
            arguments, stdin, how = malformed_arguments(rng, Path(folder), tables, models)
            _run(tally, Path(folder), arguments, stdin, f"{arguments} ({how})")
        return tally

    return side_by_side(case, count)


def _run(tally: Tally, place: Path, arguments: list[str], stdin: bytes, case: str) -> None:
    kind = arguments[0]
    limited = ["sh", "-c", f'ulimit -v {ADDRESS_SPACE // 1024} && exec "$@"', "sh", *command(arguments)]
    try:
        done = subprocess.run(limited, input=stdin, capture_output=True, timeout=SECONDS, cwd=place, check=False)
    except subprocess.TimeoutExpired:
        tally.add(kind, "", f"{case}: more than {SECONDS} seconds")
        return
    said = done.stderr.decode(errors="replace").splitlines()
    defect = wrong_end(done.returncode, said)
    tally.add(kind, f"exit {done.returncode}", defect and f"{case}: {defect}")
    for path in place.glob(".isopleth-*"):
        tally.add(kind, "", f"{case}: {path.name} is left")
