"""Measure how many ideas the code asks of its reader, and print the table of figures that CONTRIBUTING.md shows.

Run ``python tools/house.py`` for the table, ``--list`` to name what is behind its figures. Each figure is counted in the code or
in a run of it. ``tools/files_of_a_fit.py`` and ``tools/size.py`` have the counts by fit and by package.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from size import counted
from walls import SOURCE, against, public_modules

ROOT = Path(__file__).parents[1]

# Names of the properties by which estimators of densities ask what they have been fitted to.
QUESTIONS = (
    "_is_stack",
    "_of_kinds",
    "_by_columns",
    "_only_scaled",
    "_takes_kinds",
    "_marginal_of_kinds",
    "_is_product",
)

# Parameters of users that are one value inside, a Budget.
BUDGET = {"memory_limit", "n_jobs", "verbose"}


@dataclass
class Walk:
    """Functions of the package that a call runs, and how often the call goes from one file to another."""

    runs: Counter[tuple[str, str]] = field(default_factory=Counter)  # of functions, by file and qualified name
    moves: int = 0  # calls of a function in another file than the caller's
    known: set[CodeType] = field(default_factory=set)

    @property
    def classes(self) -> set[str]:
        """Classes of which a function runs."""
        parts = (name.partition(".") for _, name in self.runs)
        return {owner for owner, _, rest in parts if rest and not rest.startswith("<locals>")}  # else a function's own

    def named(self, name: str) -> int:
        """Return how often a function of this name runs."""
        return sum(count for (_, function), count in self.runs.items() if function == name)


def walk(call: Callable[[], Any]) -> Walk:
    """Trace the functions of the package that `call` runs, in all threads; functions without a name are not counted."""
    found, package = Walk(), f"{SOURCE}/"

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(package):
            return
        if not frame.f_code.co_name.startswith("<"):
            found.runs[path[len(package) :], frame.f_code.co_qualname] += 1
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(package):
            caller = caller.f_back
        found.moves += caller is not None and caller.f_code.co_filename != path

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def fit_of_sosrep() -> Walk:
    """Trace the second of two fits of SOSREP at its defaults, so that nothing that runs on import is counted."""
    from isopleth import SOSREP

    X = np.random.default_rng(0).normal(size=(200, 3))
    SOSREP().fit(X)
    return walk(lambda: SOSREP().fit(X))


def mixed_frame() -> Any:
    """Return a frame with numbers and words, with gaps in both, whole numbers, truth values, times and declared categories."""
    import pandas as pd

    rng, n = np.random.default_rng(0), 60
    frame = pd.DataFrame(
        {
            "price": rng.normal(size=n),
            "rooms": rng.integers(0, 9, n),
            "colour": rng.choice(["red", "blue", "green"], n),
            "new": rng.random(n) < 0.5,
            "since": pd.date_range("2024-01-01", periods=n),
            "size": pd.Categorical(rng.choice(["small", "large"], n)),
        }
    )
    frame.loc[3, "price"] = np.nan
    frame.loc[4, "colour"] = None
    return frame


def door() -> Walk:
    """Trace `enter` of a mixed frame at the beginning of a fit."""
    from isopleth import AnomalyDetector
    from isopleth.tables.checks import enter

    frame = mixed_frame()
    detector = AnomalyDetector()
    enter(detector, frame, reset=True)
    return walk(lambda: enter(detector, frame, reset=True))


@dataclass(frozen=True)
class Body:
    """Body of a function: its lines of code without signature and docstring, and the names that it assigns."""

    place: str
    lines: int
    names: int


def bodies(folder: Path) -> Iterator[Body]:
    """Yield the bodies of all functions under a folder."""
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(source))):
            if isinstance(node, ast.FunctionDef):
                text = ["if 1:", *source[node.body[0].lineno - 1 : node.end_lineno]]
                if isinstance(node.body[0], ast.Expr):
                    text = [
                        "if 1:",
                        *source[node.body[0].end_lineno : node.end_lineno],
                        " " * node.body[0].col_offset + "0",
                    ]
                stored = {
                    one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
                }
                lines = counted("\n".join(text))["code"] - 1 - isinstance(node.body[0], ast.Expr)
                yield Body(f"{path.relative_to(folder).as_posix()}:{node.name}", lines, len(stored))


def branches(folder: Path) -> float:
    """Return the number of `if`, as statements and in expressions, in a thousand lines of code."""
    found = code = 0
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found += sum(isinstance(node, (ast.If, ast.IfExp)) for node in ast.walk(ast.parse(text)))
        code += counted(text)["code"]
    return 1000.0 * found / code


def questions() -> list[str]:
    """Return the places in the package where it is asked what an estimator was fitted to."""
    return [
        f"{path.relative_to(SOURCE).as_posix()}:{node.lineno} {node.attr}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in QUESTIONS
    ]


def budget_parameters(folder: Path = SOURCE) -> list[str]:
    """Return the functions and data classes under a folder that take memory, threads or progress one by one.

    Estimators and public functions do, by names that scikit-learn's users know; inside, they are one Budget.
    """
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.FunctionDef):
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            elif isinstance(node, ast.ClassDef):
                fields = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
                names = [one.id for one in fields if isinstance(one, ast.Name)]
            if taken := sorted(BUDGET & set(names)):
                found.append(f"{path.relative_to(folder).as_posix()}:{node.name} {', '.join(taken)}")  # type: ignore[attr-defined]
    return found


def methods() -> list[str]:
    """Return the methods and properties of SOSREP, those of its bases among them, without those between two underscores."""
    import inspect

    from isopleth import SOSREP

    names = [name for name in dir(SOSREP) if not name.startswith("__")]
    return [n for n in names if callable(getattr(SOSREP, n)) or isinstance(inspect.getattr_static(SOSREP, n), property)]


def inner_tests() -> dict[str, int]:
    """Return the lines of code of each test file that imports a module which is not public."""
    return {path: lines for path, (lines, inner) in _tests().items() if inner}


def _tests() -> dict[str, tuple[int, bool]]:
    found, public = {}, public_modules()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules = {
            name
            for node in ast.walk(ast.parse(text))
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
        }
        inner = any(name.partition(".")[0] == SOURCE.name and name not in public for name in modules)
        found[path.relative_to(ROOT).as_posix()] = (counted(text)["code"], inner)
    return found


def start() -> list[str]:
    """Return the files of the package that ``from isopleth import AnomalyDetector`` loads in a fresh process."""
    code = (
        "import sys; from isopleth import AnomalyDetector; "
        "print(*[m.__file__ for n, m in list(sys.modules.items()) if n.split('.')[0] == 'isopleth' and m.__file__], sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return sorted(done.stdout.split("\n"))[1:]


def figures() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each figure of the table: its words, its values, and what is behind it."""
    fit, entered = fit_of_sosrep(), door()
    named = [f"{path} {name}" for path, name in sorted(fit.runs)]
    yield "classes; functions that SOSREP().fit(X) runs", f"{len(fit.classes)}; {len(fit.runs)}", named
    named = [f"{path} {name} {count}" for (path, name), count in sorted(entered.runs.items())]
    words = "functions; moves between files in enter of a mixed frame; runs of frame_names"
    yield words, f"{len(entered.runs)}; {entered.moves}; {entered.named('frame_names')}", named
    found = sorted(bodies(SOURCE / "tasks" / "changes"), key=lambda one: -one.lines)
    named = [f"{one.place} {one.lines} lines, {one.names} names" for one in found[:10]]
    yield (
        "changes: lines of the longest function; most local names",
        (f"{found[0].lines}; {max(one.names for one in found)}"),
        named,
    )
    yield "methods of SOSREP", str(len(methods())), methods()
    yield 'questions "what was fitted?"', str(len(questions())), questions()
    taken = budget_parameters()
    yield "functions and classes that take memory, threads or progress one by one", str(len(taken)), taken
    parts = f"{branches(SOURCE):.0f}; {branches(SOURCE / 'tables'):.0f}; {branches(SOURCE / 'files'):.0f}"
    yield "`if` in a thousand lines; in tables; in files", parts, []
    yield "imports against the walls", str(len(against())), list(map(str, against()))
    tests, inner = _tests(), inner_tests()
    share = sum(inner.values()) / sum(lines for lines, _ in tests.values())
    yield (
        "lines of tests in files that import modules that are not public",
        f"{share:.0%}",
        [f"{path} {lines}" for path, lines in inner.items()],
    )
    loaded = start()
    code = sum(counted(Path(path).read_text(encoding="utf-8"))["code"] for path in loaded)
    yield (
        "modules; lines of code that `from isopleth import AnomalyDetector` loads",
        f"{len(loaded)}; {code:,}",
        [Path(path).relative_to(SOURCE).as_posix() for path in loaded],
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name what is behind each figure")
    asked = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for words, value, behind in figures():
            print(f"| {words} | {value} |")
            for line in behind if asked.list else ():
                print(f"    {line}")


if __name__ == "__main__":
    main()
