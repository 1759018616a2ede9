"""Disks that are full or read-only, limits on the size of files, streams that take nothing: one sentence, and nothing left."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.reliability import samples
from experiments.reliability.commands import command
from experiments.reliability.outcomes import Tally, is_sentence

# Bytes: less than any of the files that are written.
_ROOM = 16 * 1024


def campaign(count: int, seed: int = 0) -> Tally:
    """Every way to write a file, in every such place, `count` times; `seed` makes other rows."""
    tally = Tally()
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            table = place / "in.csv"
            np.savetxt(table, samples.rows(seed, 1000), delimiter=",", header="a,b,c", comments="")
            _limited(tally, table, place)
            _mounted(tally, table, place, "full", f"size={_ROOM}")
            _mounted(tally, table, place, "read-only", "ro")
            _streams(tally, table)
    return tally


def _outputs(table: Path, place: Path) -> dict[str, list[str]]:
    return {
        "--out .csv": ["anomalies", str(table), "--out", str(place / "out.csv")],
        "--out .parquet": ["anomalies", str(table), "--out", str(place / "out.parquet")],
        "--save": ["anomalies", str(table), "--save", str(place / "out.isopleth")],
        "--plot": ["anomalies", str(table), "--plot", str(place / "out.png")],
        "--state": ["monitor", "--reference", str(table), "--state", str(place / "out.state"), "--run-length", "100"],
    }


def _limited(tally: Tally, table: Path, place: Path) -> None:
    folder = place / "limited"
    folder.mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_ROOM, _ROOM))

    for name, arguments in _outputs(table, folder).items():
        _refused(tally, f"files limited to 16 KB, {name}", arguments, folder, limit)


def _mounted(tally: Tally, table: Path, place: Path, what: str, options: str) -> None:
    """A small file system in memory, where this process may mount one."""
    folder = place / what
    folder.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounting.returncode:
        tally.add(f"{what} file system", "not tested: no permission to mount one")
        return
    try:
        for name, arguments in _outputs(table, folder).items():
            _refused(tally, f"{what} file system, {name}", arguments, folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _refused(
    tally: Tally, kind: str, arguments: list[str], folder: Path, limit: Callable[[], None] | None = None
) -> None:
    done = subprocess.run(
        command(arguments), capture_output=True, preexec_fn=limit, stdin=subprocess.DEVNULL, timeout=120, check=False
    )
    said = done.stderr.decode().splitlines()
    left = sorted(os.listdir(folder))
    fine = done.returncode == 2 and len(said) == 1 and is_sentence(said[0]) and not left
    tally.add(
        kind, "exit 2, one sentence, nothing left", "" if fine else f"exit {done.returncode}, {said[-3:]}, left {left}"
    )


def _streams(tally: Tally, table: Path) -> None:
    """Standard streams that are full or closed."""
    for redirection, codes in ((">/dev/full", {2}), (">&-", {0, 2}), ("2>&-", {0}), ("<&-", {0}), ("2>/dev/full", {0})):
        line = f'"$@" {redirection}'
        arguments = command(["anomalies", str(table)])
        done = subprocess.run(["sh", "-c", line, "sh", *arguments], capture_output=True, timeout=120, check=False)
        said = done.stderr.decode().splitlines()
        fine = done.returncode in codes and len(said) <= 1 and all(is_sentence(message) for message in said)
        tally.add(
            f"streams {redirection}", f"exit {done.returncode}", "" if fine else f"exit {done.returncode}, {said[-3:]}"
        )
