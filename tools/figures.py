"""Run the commands that the figures of the pages are from, and write their results and records.

    python tools/figures.py --data DIR [--minutes 60] [FILE ...]
    python tools/figures.py --list

The files are those of docs/figures.json, or the named ones. The output of a command, whose steps are joined by &&, is written to
docs/FILE, and its pictures (.png) to docs/images; DIR in it is the folder of `--data`. The record keeps the version of the
package and the processor seconds of the run. Without names those run that fit into `--minutes` of a processor by their last
record, the oldest versions first; a command whose cost is not recorded runs only by name. A file is written when its command has
succeeded, so an interrupted run leaves the older results.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "docs" / "figures.json"
IMAGES = ROOT / "docs" / "images"


def records() -> dict[str, dict[str, Any]]:
    """Return what is known of each file of results."""
    return dict(json.loads(RECORDS.read_text(encoding="utf-8")))


def version() -> str:
    """Return the version of the package."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def chosen(known: dict[str, dict[str, Any]], names: list[str], minutes: float) -> list[str]:
    """Return the named files, or those whose commands fit into the time, the oldest versions first."""
    if unknown := set(names) - known.keys():
        raise SystemExit(f"{', '.join(sorted(unknown))}: not in {RECORDS.relative_to(ROOT)}.")
    if names:
        return names
    left, found = 60.0 * minutes, []
    costs = {name: record["cpu_seconds"] for name, record in known.items() if record["cpu_seconds"] is not None}
    for name in sorted(costs, key=lambda each: (known[each]["version"], costs[each])):
        if costs[name] <= left:
            left -= costs[name]
            found.append(name)
    return found


def run(command: str, data: Path | None, keep: Path | None) -> tuple[str, float]:
    """Return the output of the steps of a command, and their processor seconds; a failure ends the program."""
    if any(word.split("/")[0] == "DIR" for word in shlex.split(command)) and data is None:
        raise SystemExit(f"{command}: give the folder of the data as --data.")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    output = ""
    with tempfile.TemporaryDirectory() as folder:  # empty, so that no run goes on with the lines of an older one
        for step in command.split(" && "):
            words = [str(data) + word[3:] if word.split("/")[0] == "DIR" else word for word in shlex.split(step)]
            done = subprocess.run(
                [sys.executable, *words[1:]],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": path},
                text=True,
                stdout=subprocess.PIPE,
            )
            if done.returncode:
                raise SystemExit(f"{step}: ended with exit code {done.returncode}.")
            output += done.stdout
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, IMAGES / picture.name)
        if keep is not None:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
    if not output.strip():
        raise SystemExit(f"{command}: printed nothing.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--keep", type=Path, help="folder for the other files that the commands write")
    parser.add_argument("--list", action="store_true", help="print the records and run nothing")
    options = parser.parse_args()
    known = records()
    if options.list:
        for name, record in known.items():
            cost = "" if record["cpu_seconds"] is None else f"{record['cpu_seconds']:.0f} s"
            print(f"{name:48} {record['version']:8} {cost:>8}  {record['command']}")
        return
    for name in chosen(known, options.files, options.minutes):
        print(f"{name}: {known[name]['command']}", file=sys.stderr)
        output, seconds = run(known[name]["command"], options.data and options.data.resolve(), options.keep)
        (ROOT / "docs" / name).write_text(output, encoding="utf-8")
        known[name] |= {"version": version(), "cpu_seconds": round(seconds, 1)}
        known[name].pop("reason", None)  # why a record was older
        RECORDS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
