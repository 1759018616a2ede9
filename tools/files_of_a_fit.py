"""Count the files of the package that one fit or command runs through, and how often a command opens its tables.

Run ``python tools/files_of_a_fit.py`` to print the table of CONTRIBUTING.md, with ``--list`` to name the files too. Functions are
traced in every thread. Each call is made twice and the second one counts, so that nothing that runs on import is in the count.
Opens are counted by an audit hook, which sees those of Python; a library that opens a path in compiled code is not seen.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from isopleth import LSDD, SOSREP, AnomalyDetector, KernelScore

sys.path.insert(0, str(Path(__file__).parent))
from house import walk

_counters: list[Counter[str]] = []


def traced(call: Callable[[], Any]) -> dict[str, set[str]]:
    """Return the functions that `call` runs, by file of the package."""
    found: dict[str, set[str]] = {}
    for path, function in walk(call).runs:
        found.setdefault(path, set()).add(function)
    return found


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _counters and isinstance(arguments[0], (str, bytes, os.PathLike)):
        _counters[-1][os.path.realpath(os.fsdecode(arguments[0]))] += 1


@contextmanager
def opened() -> Iterator[Counter[str]]:
    """Count how often each file is opened; the keys are real paths."""
    if _audit not in _hooked:  # a hook cannot be removed
        sys.addaudithook(_audit)
        _hooked.append(_audit)
    _counters.append(Counter())
    try:
        yield _counters[-1]
    finally:
        _counters.pop()


_hooked: list[Any] = []


def run_command(*arguments: object) -> int:
    """Run the command line in this process without its output; return the exit code."""
    from isopleth.cli.commands import program

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            program.main([str(argument) for argument in arguments], prog_name="isopleth")
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def fits() -> dict[str, Callable[[], Any]]:
    """Return the fits that are counted, by what the table calls them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 3)), rng.normal(0.3, 1.0, size=(200, 3))
    return {
        "SOSREP.fit": lambda: SOSREP().fit(X),
        "KernelScore.fit": lambda: KernelScore().fit(X),
        "LSDD.fit": lambda: LSDD().fit(X, Y),
        "AnomalyDetector.fit": lambda: AnomalyDetector(random_state=0).fit(X),
    }


def commands(folder: Path) -> dict[str, list[Any]]:
    """Write small tables of numbers; return the arguments of the commands that are counted, by what the table calls them."""
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0.0), ("b", 0.3)):
        rows = rng.normal(shift, 1.0, size=(200, 3))
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header="x,y,z", comments="")
    labels = np.repeat([0, 1], 100)
    np.savetxt(
        folder / "labelled.csv",
        np.column_stack([rows + labels[:, None], labels]),
        "%.6g",
        ",",
        header="x,y,z,class",
        comments="",
    )
    a, b, labelled = folder / "a.csv", folder / "b.csv", folder / "labelled.csv"
    return {
        "anomalies FILE": ["anomalies", a],
        "changes FILE": ["changes", a],
        "compare A B": ["compare", a, b, "--resamples", "99"],
        "prior LABELLED FILE": ["prior", labelled, b, "--target", "class"],
    }


def of_command(arguments: list[Any]) -> tuple[dict[str, set[str]], int]:
    """Return the functions that a command runs, by file, and the most times that it opens one of its tables."""
    if run_command(*arguments):
        raise RuntimeError(f"isopleth {' '.join(map(str, arguments))} failed")
    tables = [os.path.realpath(one) for one in arguments if isinstance(one, Path)]
    with opened() as counts:
        found = traced(lambda: run_command(*arguments))
    return found, max(counts[table] for table in tables)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the files")
    asked = parser.parse_args()
    print(f"{'':<22}{'files':>7}{'functions':>11}{'opens':>7}")

    def show(name: str, found: dict[str, set[str]], opens: object) -> None:
        print(f"{name:<22}{len(found):>7}{sum(map(len, found.values())):>11}{opens!s:>7}")
        if asked.list:
            for path, functions in sorted(found.items()):
                print(f"    {path:<44}{len(functions):>4}")

    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for name, fit in fits().items():
            fit()
            show(name, traced(fit), "")
        for name, arguments in commands(Path(folder)).items():
            show(name, *of_command(arguments))


if __name__ == "__main__":
    main()
