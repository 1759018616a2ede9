"""Compare time, memory and accuracy of isopleth with other libraries and the papers' algorithms.

    python -m benchmarks [--only NAME ...] [--quick] [--out FILE ...]

measures everything; the programs take turns. Programs that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import anomalies, memory
from benchmarks.machine import description
from benchmarks.measure import Figures, measured
from benchmarks.report import Section, section
from benchmarks.subjects import SUBJECTS

# Name of the tables of areas under the ROC curve.
AREAS = "areas"


def names() -> list[str]:
    """Return the names of all tables."""
    return [comparison.name for comparisons in SUBJECTS.values() for comparison in comparisons] + [AREAS]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a check that it runs, no figures to quote")
    parser.add_argument("--only", nargs="+", choices=names(), metavar="NAME", help=", ".join(names()))
    parser.add_argument("--out", type=Path, nargs="+", default=[], help="files: .json has the figures, others are reST")
    parser.add_argument("--data", type=Path, help="a folder of ADBench's .npz files, for the areas under the curve")
    options = parser.parse_args(arguments)
    if options.data is not None and not list(options.data.glob("*.npz")):
        parser.error(f"{options.data} holds no .npz files; ADBench's classical sets are expected there.")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the tables."""
    options = parse(arguments)
    start = time.perf_counter()
    head = [*description(), *notes(options.quick)]
    print("\n".join(head), flush=True)
    sections: list[Section] = []
    figures: dict[str, dict[str, Figures]] = {}
    wanted = options.only or names()
    for module, comparisons in SUBJECTS.items():
        for comparison in comparisons:
            if comparison.name in wanted:
                found = measured(comparison, module, options.quick)
                figures[comparison.name] = found
                show(section(comparison, found, options.quick), sections)
    if AREAS in wanted:
        for quality in anomalies.qualities(options.quick, options.data):
            show(quality, sections)
    for path in options.out:
        write(path, head, sections, figures)
    print(f"{time.perf_counter() - start:.0f} s in all", file=sys.stderr)


def show(one: Section, sections: list[Section]) -> None:
    """Print each table as soon as it is complete."""
    print(one.text(), flush=True)
    sections.append(one)


def notes(quick: bool) -> list[str]:
    """Return the lines that explain the figures."""
    out = ["Quick run: small sizes, no figures to quote."] if quick else []
    out.append(
        "Times are processor time, all threads together: medians of turns taken in rotation, without the first, which compiles."
    )
    if memory.available():
        return [*out, "Memory is the largest resident size during a run in a process of its own, less that before it."]
    return [*out, "Memory: not measured on this system."]


def write(path: Path, head: list[str], sections: list[Section], figures: dict[str, Any]) -> None:
    """Return the figures as JSON, or the tables as reStructuredText."""
    if path.suffix == ".json":
        plain = {name: {program: asdict(one) for program, one in found.items()} for name, found in figures.items()}
        tables = [asdict(one) for one in sections]
        text = json.dumps({"machine": head, "figures": plain, "tables": tables}, indent=1)
    else:
        text = "\n".join([*(f"| {line}" for line in head), "", *(one.rst() for one in sections)])
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
